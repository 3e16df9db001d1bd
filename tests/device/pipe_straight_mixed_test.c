/*
 * Messages of random lengths and forms whose buffers lie inside of the window or not, each rank as it
 * likes, with random numbers of blocks, warps and chunks, put on the stream one after the other with no
 * pause; the same in graphs that are replayed, with calls in between. Then one rank sends ahead, short
 * messages and long ones, while the other comes later: it meets each with the right length.
 *
 * hem-test: ranks=1,2,3 timeout=180 delayed=3
 */
#include "pipe_straight_kit.h"

#define MESSAGES 40
#define LONGEST  60000
#define ROOM     ((size_t)MESSAGES * (LONGEST + 128) * 2)

typedef struct message {
    size_t bytes;
    unsigned char *send;
    unsigned char *recv;
} message;

typedef struct batch {
    message messages[MESSAGES];
} batch;

static unsigned char *anywhere(const straight_kit *it, bool receives, size_t at, harness_rng *own) {
    enum straight_where where = harness_below(own, 2) == 0 ? STRAIGHT_INSIDE : STRAIGHT_OUTSIDE;
    return straight_place(it, where, receives, 0, at + harness_below(own, 17));
}

/* Lengths are the same on all ranks, places are not. `at` is where the batch begins. */
static void make_batch(const straight_kit *it, batch *b, size_t at, harness_rng *common,
                       harness_rng *own) {
    for (int i = 0; i < MESSAGES; i++) {
        message *m = &b->messages[i];
        m->bytes = harness_below(common, harness_below(common, 3) == 0 ? LONGEST : 3000);
        m->send = anywhere(it, false, at, own);
        m->recv = anywhere(it, true, at, own);
        straight_clear(m->recv, m->bytes);
        at += m->bytes + 64;
    }
}

static void fill_batch(const straight_kit *it, batch *b, uint64_t round) {
    for (int i = 0; i < MESSAGES; i++)
        pipe_kit_fill(b->messages[i].send, b->messages[i].bytes,
                      pipe_kit_tag(it->kit.rank, 0, round * 1000 + (uint64_t)i));
}

static void expect_batch(const straight_kit *it, batch *b, uint64_t round) {
    for (int i = 0; i < MESSAGES; i++) {
        harness_step("message", round * 1000 + (uint64_t)i);
        pipe_kit_expect(b->messages[i].recv, b->messages[i].bytes,
                        pipe_kit_tag(straight_left(it), 0, round * 1000 + (uint64_t)i));
    }
}

static void put_batch(straight_kit *it, const batch *b, harness_rng *own,
                      const hem_pipe_options *options) {
    int right = straight_right(it), left = straight_left(it);
    for (int i = 0; i < MESSAGES; i++) {
        const message *m = &b->messages[i];
        hem_pipe_how how = pipe_kit_any_how(own, options);
        /* Now and then as two calls, where the send need not wait for the receive. */
        if (m->bytes <= options->short_bytes && harness_below(own, 3) == 0) {
            pipe_kit_call(&it->kit, right, m->send, m->bytes, -1, NULL, 0, &how);
            how = pipe_kit_any_how(own, options);
            pipe_kit_call(&it->kit, -1, NULL, 0, left, m->recv, m->bytes, &how);
        } else {
            pipe_kit_call(&it->kit, right, m->send, m->bytes, left, m->recv, m->bytes, &how);
        }
    }
}

static void finish(straight_kit *it, batch *b, uint64_t round) {
    device_stream_sync(it->kit.native);
    CHECK_OK(hem_pipe_status(it->kit.pipe));
    expect_batch(it, b, round);
}

static void with_graph(straight_kit *it, harness_rng *common, harness_rng *own,
                       const hem_pipe_options *options) {
    batch captured, eager;
    make_batch(it, &captured, 0, common, own);
    make_batch(it, &eager, ROOM / 2, common, own);
    device_capture_begin(it->kit.native);
    put_batch(it, &captured, own, options);
    device_graph graph = device_capture_end(it->kit.native);
    for (uint64_t round = 1; round <= 4; round++) {
        fill_batch(it, &captured, round);
        fill_batch(it, &eager, round + 50);
        device_graph_launch(graph, it->kit.native);
        put_batch(it, &eager, own, options);
        device_graph_launch(graph, it->kit.native);
        finish(it, &captured, round);
        expect_batch(it, &eager, round + 50);
    }
    device_graph_destroy(graph);
}

/* Rank 0 is ahead, as far as it can be. */
static void ahead(straight_kit *it, harness_rng *common, harness_rng *own,
                  const hem_pipe_options *options, uint64_t round) {
    batch b;
    make_batch(it, &b, 0, common, own);
    fill_batch(it, &b, round);
    harness_same(it->kit.world, round);
    if (it->kit.rank == 1)
        harness_sleep_ms(10);
    for (int i = 0; i < MESSAGES; i++) {
        hem_pipe_how how = pipe_kit_any_how(own, options);
        const message *m = &b.messages[i];
        if (it->kit.rank == 0)
            pipe_kit_call(&it->kit, 1, m->send, m->bytes, -1, NULL, 0, &how);
        else if (it->kit.rank == 1)
            pipe_kit_call(&it->kit, -1, NULL, 0, 0, m->recv, m->bytes, &how);
    }
    device_stream_sync(it->kit.native);
    CHECK_OK(hem_pipe_status(it->kit.pipe));
    if (it->kit.rank == 1)
        expect_batch(it, &b, round);
    harness_same(it->kit.world, round);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rounds = harness_rounds(6);
    for (int round = 0; round < rounds; round++) {
        hem_pipe_options options = pipe_kit_options(1 + (uint32_t)round % 3, 1024u << round % 2,
                                                    1 + (uint32_t)round % 4, 500u << round % 4);
        straight_kit it = straight_open(world, &options, ROOM);
        harness_rng common = harness_rng_of(seed, 1000, (uint64_t)round);
        harness_rng own = harness_rng_of(seed, (uint64_t)it.kit.rank, (uint64_t)round);
        batch b;
        make_batch(&it, &b, 0, &common, &own);
        fill_batch(&it, &b, 0);
        put_batch(&it, &b, &own, &options);
        finish(&it, &b, 0);
        for (uint64_t i = 0; i < 3 && it.kit.size > 1; i++)
            ahead(&it, &common, &own, &options, 100 + i);
        if (round % 3 == 0)
            with_graph(&it, &common, &own, &options);
        straight_close(&it, HEM_OK);
    }
    harness_close(world, HEM_OK);
    return 0;
}
