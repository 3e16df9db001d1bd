/*
 * Barriers of kernels: ten thousand uses of several ids in turns, over launches and graph replays,
 * with nobody let through early; their halves; pairs; and after one that failed none passes that
 * should not.
 *
 * hem-test: ranks=1 timeout=180 delayed=1
 */
#include "proto.h"

enum {
    WARPS = 2
};

/* Which id a round uses: in turns that never line up with the launches. */
HEM_DEV uint32_t id_of(uint64_t round) {
    return (uint32_t)(round * round / 3 % PROTO_BARRIERS);
}

/* Two sets of cells by turns: a cell is written again only after a barrier that all entered when
 * they had read it. */
HEM_DEV uint64_t *cell_of(const proto_args *args, int rank, uint64_t round) {
    return &args->ranks[rank].words[round % 2];
}

HEM_DEV void look_round(const proto_args *args, hem_group g, int me, uint64_t round) {
    for (uint32_t rank = g.rank; rank < (uint32_t)args->size; rank += g.size)
        proto_expect(args, me, *cell_of(args, (int)rank, round) == round);
}

/* The number of rounds so far is in memory, so that a graph can be replayed. */
DEVICE_KERNEL(reuse, proto_args) {
    const int me = (int)hem_block_index();
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    uint64_t *done = &args->ranks[me].words[8];
    if (!proto_plays(args->scope))
        return;
    const uint64_t first = *done + 1;
    for (uint64_t round = first; round < first + args->rounds; round++) {
        if (g.rank == g.size - 1)
            *cell_of(args, me, round) = round;
        hem_status status = hem_dev_barrier(w, g, id_of(round), args->timeout_ns);
        proto_expect(args, me, status == HEM_OK);
        look_round(args, g, me, round);
    }
    hem_group_sync(g);
    if (g.rank == 0)
        *done = first + args->rounds - 1;
}

/* The same in halves: somebody else's work lies in between. */
DEVICE_KERNEL(halves, proto_args) {
    const int me = (int)hem_block_index();
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    if (!proto_plays(args->scope))
        return;
    for (uint64_t round = args->from; round < args->from + args->rounds; round++) {
        if (g.rank == g.size - 1)
            *cell_of(args, me, round) = round;
        proto_expect(args, me, hem_dev_barrier_arrive(w, g, 0) == HEM_OK);
        proto_expect(args, me, hem_dev_barrier(w, g, 3, args->timeout_ns) == HEM_OK);
        proto_expect(args, me, hem_dev_barrier_wait(w, g, 0, args->timeout_ns) == HEM_OK);
        look_round(args, g, me, round);
    }
}

/* Ranks meet two by two, in an order in which nobody waits for a third for ever. */
DEVICE_KERNEL(pairs, proto_args) {
    const int me = (int)hem_block_index();
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    if (!proto_plays(args->scope))
        return;
    for (uint64_t round = args->from; round < args->from + args->rounds; round++)
        for (int step = 0; step < args->size; step++) {
            const int peer = me ^ step; /* itself first */
            const uint32_t id = (uint32_t)((round + (uint64_t)step) % PROTO_BARRIERS);
            uint64_t *mine = &args->ranks[me].words[64 + peer * 2 + (int)(round % 2)];
            uint64_t *yours = &args->ranks[peer].words[64 + me * 2 + (int)(round % 2)];
            if (g.rank == g.size - 1)
                *mine = round;
            hem_status status = hem_dev_barrier_peer(w, g, peer, id, args->timeout_ns);
            proto_expect(args, me, status == HEM_OK);
            proto_expect(args, me, *yours == round);
        }
}

/* One rank alone does one thing; word 0 gets the status. */
DEVICE_KERNEL(alone, proto_args) {
    const int me = (int)args->from;
    hem_group g = hem_block();
    hem_dev_window w = proto_window(args, me);
    hem_status status = HEM_OK;
    if (args->what == 0)
        status = hem_dev_barrier(w, g, 2, args->timeout_ns);
    else if (args->what == 1)
        status = hem_dev_barrier_wait(w, g, 2, args->timeout_ns);
    else
        status = hem_dev_barrier_peer(w, g, 1 - me, 2, args->timeout_ns);
    if (g.rank == 0)
        args->ranks[me].words[0] = (uint64_t) - (int)status;
}

static void check_reuse(int size, uint32_t scope, int uses) {
    proto p;
    proto_open(&p, size);
    proto_args args = proto_begin(&p, 50);
    const uint32_t blocks = (uint32_t)size;
    args.scope = scope;
    harness_step("barriers again and again, ranks", (uint64_t)size);
    device_capture_begin(p.stream);
    device_launch(reuse, p.stream, blocks, WARPS, &args);
    device_graph graph = device_capture_end(p.stream);
    for (int use = 0; use < uses; use += 100 + 13) {
        args.rounds = 50;
        device_graph_launch(graph, p.stream);
        device_launch(reuse, p.stream, blocks, WARPS, &args);
        args.rounds = 13;
        device_launch(reuse, p.stream, blocks, WARPS, &args);
        if (use % 8 == 0)
            proto_end(&p);
    }
    proto_end(&p);
    uint64_t done = proto_word(&p, 0, 8);
    CHECK(done >= (uint64_t)uses);
    for (int rank = 1; rank < size; rank++)
        CHECK_EQ(proto_word(&p, rank, 8), done);
    device_graph_destroy(graph);
    proto_close(&p);
}

static void check_forms(int size) {
    proto p;
    proto_open(&p, size);
    proto_args args = proto_begin(&p, (uint32_t)harness_rounds(40));
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("halves and pairs, ranks", (uint64_t)size);
        args.scope = scope;
        device_launch(halves, p.stream, (uint32_t)size, WARPS, &args);
        device_launch(pairs, p.stream, (uint32_t)size, WARPS, &args);
        proto_end(&p);
        args.from += args.rounds;
    }
    proto_close(&p);
}

static void act(proto *p, int rank, uint32_t what, hem_status want) {
    proto_args args = proto_begin(p, 0);
    args.from = (uint64_t)rank;
    args.what = what;
    args.timeout_ns = want == HEM_OK ? (int64_t)LIMIT : (int64_t)HEM_MS(10);
    device_launch(alone, p->stream, 1, WARPS, &args);
    device_stream_sync(p->stream);
    CHECK_EQ(proto_word(p, rank, 0), (uint64_t) - (int)want);
}

/* An arrival stands, and counts once. */
static void check_failures(void) {
    proto p;
    proto_open(&p, 2);
    harness_step("after a barrier that failed", 0);
    act(&p, 0, 0, HEM_ERR_TIMEOUT);
    act(&p, 0, 1, HEM_ERR_TIMEOUT); /* nobody is there yet */
    act(&p, 1, 0, HEM_OK);
    act(&p, 0, 1, HEM_OK);          /* taken up again */
    act(&p, 0, 0, HEM_ERR_TIMEOUT); /* the second entry of 0, of which 1 has had one */
    act(&p, 1, 0, HEM_OK);
    act(&p, 1, 0, HEM_ERR_TIMEOUT); /* the third entry of 1 */
    act(&p, 0, 1, HEM_OK);
    act(&p, 0, 0, HEM_OK);
    act(&p, 0, 2, HEM_ERR_TIMEOUT);
    act(&p, 1, 2, HEM_OK);
    act(&p, 1, 2, HEM_ERR_TIMEOUT);
    act(&p, 0, 2, HEM_OK);
    proto_close(&p);
}

int rank_main(hem_world *world) {
    check_failures();
    check_reuse(2, HEM_SCOPE_BLOCK, harness_rounds(10000));
    check_reuse(3, HEM_SCOPE_WARP, harness_rounds(3000));
    check_reuse(4, HEM_SCOPE_THREAD, harness_rounds(1000));
    check_reuse(8, HEM_SCOPE_WARPS, harness_rounds(500));
    check_forms(2);
    check_forms(4);
    check_forms(8);
    harness_close(world, HEM_OK);
    return 0;
}
