/*
 * Signals of kernels: set and add, many blocks at once, to all and from all, CPUs taking part; waits
 * that run out of time, that the host ends, that hold although the host says that all is lost; what
 * is refused.
 *
 * hem-test: ranks=1 timeout=120
 */
#include "proto.h"

enum {
    WARPS = 3,
    BLOCKS = 6
};

/* A ring: every rank passes a number on, with all it got before. */
DEVICE_KERNEL(ring, proto_args) {
    const int me = (int)hem_block_index(), next = (me + 1) % args->size;
    const int last = (me + args->size - 1) % args->size;
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    uint64_t *cell = (uint64_t *)(void *)(args->ranks[next].data + 64);
    const uint64_t *mine = (const uint64_t *)(const void *)(args->ranks[me].data + 64);
    if (!proto_plays(args->scope))
        return;
    for (uint64_t round = args->from; round < args->from + args->rounds; round++) {
        if (me != 0)
            proto_expect(args, me,
                         hem_dev_wait_signal_from(w, g, last, 1, HEM_GE, round, args->timeout_ns) ==
                             HEM_OK);
        if (g.rank == 0) /* plain, through the address */
            *cell = me == 0 ? round : *mine + 1;
        hem_dev_signal(w, g, next, 1, round % 2 ? HEM_SIGNAL_SET : HEM_SIGNAL_ADD,
                       round % 2 ? round : 1);
        if (me == 0) {
            hem_status status =
                hem_dev_wait_signal_from(w, g, last, 1, HEM_EQ, round, args->timeout_ns);
            proto_expect(args, me, status == HEM_OK);
            proto_expect(args, me, *mine == round + (uint64_t)args->size - 1);
        }
    }
}

/* Every block adds for its rank, weakly or not; one block of each rank waits for the sum. */
DEVICE_KERNEL(add_many, proto_args) {
    const int me = (int)hem_block_index() % args->size;
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    const uint64_t per = hem_block_count() / (uint32_t)args->size;
    const uint64_t all = per * (uint64_t)(args->size - 1) * args->rounds;
    if (!proto_plays(args->scope))
        return;
    for (uint32_t round = 0; round < args->rounds; round++) {
        int op = HEM_SIGNAL_ADD | (round % 2 ? HEM_SIGNAL_WEAK : 0);
        proto_expect(args, me, hem_dev_signal_all(w, g, 4, op, 1) == HEM_OK);
    }
    if (hem_block_index() >= (uint32_t)args->size)
        return;
    hem_status status = hem_dev_wait_signal(w, g, 4, HEM_GE, args->from + all, args->timeout_ns);
    proto_expect(args, me, status == HEM_OK);
    uint64_t sum = 0, slot = 0;
    proto_expect(args, me, hem_dev_read_signal(w, 4, &sum) == HEM_OK && sum == args->from + all);
    proto_expect(args, me, hem_dev_read_signal_from(w, me, 4, &slot) == HEM_OK && slot == 0);
}

/* One writes for all, all look at it when they have seen the signal. */
DEVICE_KERNEL(tell_all, proto_args) {
    const int me = (int)hem_block_index();
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    if (!proto_plays(args->scope))
        return;
    for (uint64_t round = args->from; round < args->from + args->rounds; round++) {
        uint64_t *cells = args->ranks[0].words;
        if (me == 0) {
            for (uint32_t i = g.rank; i < 100; i += g.size)
                cells[i] = round + i;
            proto_expect(args, me, hem_dev_signal_all(w, g, 6, HEM_SIGNAL_SET, round) == HEM_OK);
            hem_status status = hem_dev_wait_signal(
                w, g, 7, HEM_EQ, round * (uint64_t)(args->size - 1), args->timeout_ns);
            proto_expect(args, me, status == HEM_OK);
            continue;
        }
        hem_status status = hem_dev_wait_signal_from(w, g, 0, 6, HEM_GE, round, args->timeout_ns);
        proto_expect(args, me, status == HEM_OK);
        for (uint32_t i = g.rank; i < 100; i += g.size)
            proto_expect(args, me, cells[i] == round + i);
        hem_dev_signal(w, g, 0, 7, HEM_SIGNAL_SET, round);
    }
}

/* Wait once; the status goes to word 0 of the rank, and how long it took to word 1. */
DEVICE_KERNEL(wait_once, proto_args) {
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, 0);
    if (!proto_plays(args->scope))
        return;
    uint64_t start = hemd_now_ns();
    hem_status status = HEM_OK;
    if (args->what == 0)
        status = hem_dev_wait_signal_from(w, g, 1, 8, HEM_GE, args->from, args->timeout_ns);
    else if (args->what == 1)
        status = hem_dev_wait_signal(w, g, 8, HEM_GE, args->from, args->timeout_ns);
    else if (args->what == 2)
        status = hem_dev_wait_counter(w, g, 2, args->from, args->timeout_ns);
    else if (args->what == 3)
        status = hem_dev_barrier(w, g, 1, args->timeout_ns);
    else
        status = hem_dev_barrier_peer(w, g, 1, 1, args->timeout_ns);
    hemd_add64_relaxed(&args->ranks[0].words[2], 1);
    proto_expect(args, 0, hem_group_any(g, status != HEM_OK) == (status != HEM_OK));
    if (g.rank == 0) {
        args->ranks[0].words[0] = (uint64_t) - (int)status;
        args->ranks[0].words[1] = hemd_now_ns() - start;
    }
}

DEVICE_KERNEL(read_trouble, proto_args) {
    if (hem_block().rank == 0)
        args->ranks[0].words[0] = (uint64_t) - (int)hem_dev_trouble(proto_window(args, 0));
}

HEM_DEV void compare_all(const proto_args *args, hem_dev_window w, hem_group g) {
    /* The slot is 5. What holds is found without waiting, what does not is not. */
    for (uint64_t value = 4; value <= 6; value++)
        for (int compare = HEM_EQ; compare <= HEM_LE; compare++) {
            bool want = compare == HEM_EQ   ? value == 5
                        : compare == HEM_NE ? value != 5
                        : compare == HEM_GT ? value < 5
                        : compare == HEM_GE ? value <= 5
                        : compare == HEM_LT ? value > 5
                                            : value >= 5;
            hem_status wanted = want ? HEM_OK : HEM_ERR_TIMEOUT;
            hem_compare how = (hem_compare)compare;
            proto_expect(args, 0, hem_dev_wait_signal_from(w, g, 0, 0, how, value, 0) == wanted);
            proto_expect(args, 0, hem_dev_wait_signal(w, g, 0, how, value, 0) == wanted);
        }
}

/* Rank 2 cannot be reached here. */
DEVICE_KERNEL(refused, proto_args) {
    hem_group g = hem_block();
    hem_dev_window w = proto_window(args, 0);
    const uint32_t cpus = PROTO_DEVICE_SIGNALS;
    uint64_t value = 0;
    proto_expect(args, 0, hem_dev_signal(w, g, 0, 0, HEM_SIGNAL_SET, 5) == HEM_OK);
    compare_all(args, w, g);
    proto_expect(args, 0, hem_dev_signal(w, g, 3, 0, HEM_SIGNAL_SET, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_signal(w, g, 1, PROTO_SIGNALS, 1, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_signal(w, g, 1, 0, 3, 1) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_signal(w, g, 1, 0, HEM_SIGNAL_WEAK, 1) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_signal(w, g, 2, 0, 1, 1) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_signal(w, g, 2, 3, 1, 1) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_signal_all(w, g, 0, HEM_SIGNAL_SET, 1) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_signal_all(w, g, PROTO_SIGNALS, 1, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_signal_all(w, g, 0, 0, 1) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_wait_signal(w, g, cpus, HEM_GE, 0, 0) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0,
                 hem_dev_wait_signal_from(w, g, 1, cpus, HEM_GE, 0, 0) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0,
                 hem_dev_wait_signal_from(w, g, 2, 0, HEM_GE, 0, 0) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_wait_signal_from(w, g, 4, 0, HEM_GE, 0, 0) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_wait_signal(w, g, PROTO_SIGNALS, HEM_GE, 0, 0) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_wait_signal(w, g, 0, (hem_compare)7, 0, 0) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_wait_signal(w, g, 0, HEM_GE, 0, -2) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_read_signal(w, cpus, &value) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_read_signal_from(w, 2, 0, &value) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_read_signal_from(w, -1, 0, &value) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_barrier(w, g, 0, 0) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_barrier(w, g, PROTO_BARRIERS, 0) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_barrier_arrive(w, g, 0) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_barrier_peer(w, g, 2, 0, 0) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_barrier_peer(w, g, 1, PROTO_BARRIERS, 0) == HEM_ERR_RANGE);
    /* An id that a CPU waits for is changed in its memory. */
    proto_expect(args, 0, hem_dev_signal(w, g, 1, cpus + 1, HEM_SIGNAL_ADD, 7) == HEM_OK);
}

static void check_rings(void) {
    for (int size = 2; size <= PROTO_RANKS; size *= 2) {
        proto p;
        proto_open(&p, size);
        proto_args args = proto_begin(&p, (uint32_t)harness_rounds(60));
        for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
            harness_step("a ring of ranks", (uint64_t)size);
            args.scope = scope;
            device_launch(ring, p.stream, (uint32_t)size, 2, &args);
            device_launch(tell_all, p.stream, (uint32_t)size, 2, &args);
            proto_end(&p);
            args.from += args.rounds;
        }
        proto_close(&p);
    }
}

static void check_adding(void) {
    proto p;
    proto_open(&p, 3);
    proto_args args = proto_begin(&p, (uint32_t)harness_rounds(100));
    args.from = 0;
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("adding from many blocks, scope", scope);
        args.scope = scope;
        device_launch(add_many, p.stream, BLOCKS, WARPS, &args);
        proto_end(&p);
        args.from += (uint64_t)BLOCKS / 3 * 2 * args.rounds;
    }
    proto_close(&p);
}

/* How a wait ends, with `limit` on the host's side of the story. */
static void ended(proto *p, hem_status want, uint64_t players) {
    device_stream_sync(p->stream);
    CHECK_EQ(proto_word(p, 0, PROTO_WORDS - 1), 0);
    CHECK_EQ(proto_word(p, 0, 0), (uint64_t) - (int)want);
    CHECK_EQ(proto_word(p, 0, 2), players);
    uint64_t none = 0;
    device_copy(&p->ranks[0].words[2], &none, sizeof none);
}

static uint64_t players(uint32_t scope, uint32_t warps) {
    uint64_t warp = device_stands_in() ? 1 : 32;
    if (scope == HEM_SCOPE_THREAD)
        return 1;
    return scope == HEM_SCOPE_WARP ? warp : scope == HEM_SCOPE_WARPS ? 2 * warp : warps * warp;
}

static void check_deadlines(proto *p) {
    proto_args args = proto_begin(p, 0);
    args.from = 1000;
    args.timeout_ns = HEM_MS(30);
    for (args.what = 0; args.what < 5; args.what++)
        for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
            harness_step("a deadline", args.what * 10 + scope);
            args.scope = scope;
            device_launch(wait_once, p->stream, 1, WARPS, &args);
            ended(p, HEM_ERR_TIMEOUT, players(scope, WARPS));
            CHECK(proto_word(p, 0, 1) >= (uint64_t)HEM_MS(30));
            CHECK(proto_word(p, 0, 1) < (uint64_t)(HEM_MS(300) + harness_slack()));
        }
}

static void check_raised(proto *p, uint32_t word, hem_status status, uint32_t what) {
    proto_args args = proto_begin(p, 0);
    args.from = 1000;
    args.what = what;
    args.scope = what % 4;
    harness_step("trouble while a kernel waits", word * 10 + what);
    device_launch(wait_once, p->stream, 1, WARPS, &args);
    harness_sleep_ms(10);
    CHECK(!device_stream_done(p->stream));
    proto_raise(p, word, status);
    if (word >= HEMD_TROUBLE_RANKS)
        proto_raise(p, HEMD_TROUBLE_SOME, HEM_ERR_PEER);
    ended(p, status, players(args.scope, WARPS));
    proto_raise(p, word, HEM_OK);
    proto_raise(p, HEMD_TROUBLE_SOME, HEM_OK);
}

/* A dead rank does not end waits that need not depend on it. */
static void check_other_death(proto *p, uint32_t what) {
    proto_args args = proto_begin(p, 0);
    args.from = 1000;
    args.what = what;
    args.timeout_ns = HEM_MS(20);
    harness_step("a death that does not matter", what);
    proto_raise(p, HEMD_TROUBLE_RANKS + 2, HEM_ERR_PEER);
    proto_raise(p, HEMD_TROUBLE_SOME, HEM_ERR_PEER);
    device_launch(wait_once, p->stream, 1, WARPS, &args);
    ended(p, HEM_ERR_TIMEOUT, players(HEM_SCOPE_BLOCK, WARPS));
    proto_raise(p, HEMD_TROUBLE_RANKS + 2, HEM_OK);
    proto_raise(p, HEMD_TROUBLE_SOME, HEM_OK);
}

/* The CPU's part of a slot, while a kernel waits; then it holds whatever else is wrong. */
static void check_cpu_part(proto *p) {
    proto_args args = proto_begin(p, 0);
    uint64_t part = 1000;
    args.from = 1000;
    harness_step("the CPU signals a kernel", 0);
    device_launch(wait_once, p->stream, 1, WARPS, &args);
    harness_sleep_ms(5);
    device_copy(&p->ranks[0].rows[1].slots[8].cpu, &part, sizeof part);
    ended(p, HEM_OK, players(HEM_SCOPE_BLOCK, WARPS));
    proto_raise(p, HEMD_TROUBLE_ALL, HEM_ERR_REVOKED);
    for (args.what = 0; args.what < 2; args.what++) {
        device_launch(wait_once, p->stream, 1, WARPS, &args);
        ended(p, HEM_OK, players(HEM_SCOPE_BLOCK, WARPS));
    }
    device_launch(read_trouble, p->stream, 1, 1, &args);
    device_stream_sync(p->stream);
    CHECK_EQ(proto_word(p, 0, 0), (uint64_t) - (int)HEM_ERR_REVOKED);
    proto_raise(p, HEMD_TROUBLE_ALL, HEM_OK);
    part = 0;
    device_copy(&p->ranks[0].rows[1].slots[8].cpu, &part, sizeof part);
}

static void check_endings(void) {
    proto p;
    proto_open(&p, 3);
    check_deadlines(&p);
    for (uint32_t what = 0; what < 5; what++) {
        check_raised(&p, HEMD_TROUBLE_ALL, HEM_ERR_REVOKED, what);
        check_raised(&p, HEMD_TROUBLE_ALL, HEM_ERR_CLOSED, what);
        if (what != 2)
            check_raised(&p, HEMD_TROUBLE_RANKS + 1, HEM_ERR_PEER, what);
    }
    check_raised(&p, HEMD_TROUBLE_RANKS + 2, HEM_ERR_PEER, 1);
    check_raised(&p, HEMD_TROUBLE_RANKS + 2, HEM_ERR_PEER, 3);
    check_other_death(&p, 0);
    check_other_death(&p, 2);
    check_other_death(&p, 4);
    check_cpu_part(&p);
    proto_close(&p);
}

static void check_refused(void) {
    proto p;
    uint64_t epoch = 1;
    proto_open(&p, 3);
    proto_rank *shadow = proto_shadow(&p);
    shadow[0].peers[2].route = HEMD_ROUTE_NONE;
    shadow[0].peers[2].out = NULL;
    shadow[0].peers[2].out_host = NULL;
    shadow[0].peers[2].in = NULL;
    proto_send(&p, shadow);
    free(shadow);
    proto_args args = proto_begin(&p, 0);
    harness_step("what is refused", 0);
    device_launch(refused, p.stream, 1, WARPS, &args);
    proto_end(&p);
    CHECK_EQ(p.host->slots[1][0][1].kernel, 7);
    device_copy(&epoch, &p.ranks[0].epochs[0], sizeof epoch);
    CHECK_EQ(epoch, 0);
    proto_close(&p);
}

int rank_main(hem_world *world) {
    check_rings();
    check_adding();
    check_endings();
    check_refused();
    harness_close(world, HEM_OK);
    return 0;
}
