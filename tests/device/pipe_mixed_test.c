/*
 * Messages of random lengths and forms, with random numbers of blocks, warps and chunks that differ
 * between the sides and between calls, put on the stream one after the other with no pause; and the
 * same captured in graphs that are replayed, with calls in between. Nothing is overwritten unread, and
 * messages arrive in the order of their calls.
 *
 * hem-test: ranks=2,3 timeout=180 delayed=2,3
 */
#include "pipe_kit.h"

#define MESSAGES 40
#define LONGEST  60000

typedef struct message {
    size_t bytes;
    size_t send_at;
    size_t recv_at;
} message;

typedef struct batch {
    message messages[MESSAGES];
    int count;
    unsigned char *send;
    unsigned char *recv;
    size_t room;
} batch;

/* Lengths are the same on all ranks, places are not. */
static void make_batch(batch *b, harness_rng *common, harness_rng *own) {
    size_t at = 32;
    b->count = MESSAGES;
    for (int i = 0; i < b->count; i++) {
        size_t below = harness_below(common, 3) == 0 ? LONGEST : 3000;
        b->messages[i].bytes = harness_below(common, below);
        b->messages[i].send_at = at + harness_below(own, 16);
        b->messages[i].recv_at = at + harness_below(own, 16);
        at += b->messages[i].bytes + 64;
    }
    b->room = at + 32;
    b->send = (unsigned char *)device_alloc(b->room);
    b->recv = (unsigned char *)device_alloc(b->room);
}

static void free_batch(batch *b) {
    device_free(b->send);
    device_free(b->recv);
}

static void fill_batch(batch *b, int rank, uint64_t round) {
    for (int i = 0; i < b->count; i++)
        pipe_kit_fill(b->send + b->messages[i].send_at, b->messages[i].bytes,
                      pipe_kit_tag(rank, 0, round * 1000 + (uint64_t)i));
}

static void expect_batch(batch *b, int from, uint64_t round) {
    for (int i = 0; i < b->count; i++) {
        harness_step("message", round * 1000 + (uint64_t)i);
        pipe_kit_expect(b->recv + b->messages[i].recv_at, b->messages[i].bytes,
                        pipe_kit_tag(from, 0, round * 1000 + (uint64_t)i));
    }
}

static void put_batch(pipe_kit *kit, const batch *b, harness_rng *own,
                      const hem_pipe_options *options) {
    int right = (kit->rank + 1) % kit->size, left = (kit->rank + kit->size - 1) % kit->size;
    for (int i = 0; i < b->count; i++) {
        const message *m = &b->messages[i];
        hem_pipe_how how = pipe_kit_any_how(own, options);
        /* Now and then as two calls: the sends of all ranks fit into the staging. */
        if (m->bytes < 2000 && harness_below(own, 3) == 0) {
            pipe_kit_call(kit, right, b->send + m->send_at, m->bytes, -1, NULL, 0, &how);
            how = pipe_kit_any_how(own, options);
            pipe_kit_call(kit, -1, NULL, 0, left, b->recv + m->recv_at, m->bytes, &how);
        } else {
            pipe_kit_call(kit, right, b->send + m->send_at, m->bytes, left, b->recv + m->recv_at,
                          m->bytes, &how);
        }
    }
}

static void finish(pipe_kit *kit, batch *b, uint64_t round) {
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    expect_batch(b, (kit->rank + kit->size - 1) % kit->size, round);
}

static void with_graph(pipe_kit *kit, harness_rng *common, harness_rng *own,
                       const hem_pipe_options *options) {
    batch captured, eager;
    make_batch(&captured, common, own);
    make_batch(&eager, common, own);
    device_capture_begin(kit->native);
    put_batch(kit, &captured, own, options);
    device_graph graph = device_capture_end(kit->native);
    for (uint64_t round = 1; round <= 4; round++) {
        fill_batch(&captured, kit->rank, round);
        fill_batch(&eager, kit->rank, round + 50);
        device_graph_launch(graph, kit->native);
        put_batch(kit, &eager, own, options);
        device_graph_launch(graph, kit->native);
        finish(kit, &captured, round);
        expect_batch(&eager, (kit->rank + kit->size - 1) % kit->size, round + 50);
    }
    device_graph_destroy(graph);
    free_batch(&captured);
    free_batch(&eager);
}

/* More than the staging holds is sent before the receiver comes: the sender has to wait for it. */
static void burst(pipe_kit *kit, size_t bytes, int count) {
    size_t each = bytes + 64;
    unsigned char *data = (unsigned char *)device_alloc(each * (size_t)count + 64);
    hem_pipe_how how = pipe_kit_how(1, 1 + (uint32_t)kit->rank, 1, 0);
    for (int i = 0; i < count; i++)
        if (kit->rank == 0)
            pipe_kit_fill(data + 32 + (size_t)i * each, bytes, (uint64_t)i);
    if (kit->rank == 1)
        harness_sleep_ms(30);
    for (int i = 0; i < count; i++) {
        unsigned char *at = data + 32 + (size_t)i * each;
        if (kit->rank == 0)
            pipe_kit_call(kit, 1, at, bytes, -1, NULL, 0, &how);
        else if (kit->rank == 1)
            pipe_kit_call(kit, -1, NULL, 0, 0, at, bytes, &how);
    }
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    for (int i = 0; i < count && kit->rank == 1; i++)
        pipe_kit_expect(data + 32 + (size_t)i * each, bytes, (uint64_t)i);
    device_free(data);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rounds = harness_rounds(6);
    for (int round = 0; round < rounds; round++) {
        hem_pipe_options options = pipe_kit_options(1 + (uint32_t)round % 3, 1024u << round % 2,
                                                    1 + (uint32_t)round % 4, 500u << round % 4);
        pipe_kit kit = pipe_kit_open(world, &options);
        harness_rng common = harness_rng_of(seed, 1000, (uint64_t)round);
        harness_rng own = harness_rng_of(seed, (uint64_t)kit.rank, (uint64_t)round);
        batch b;
        make_batch(&b, &common, &own);
        fill_batch(&b, kit.rank, 0);
        put_batch(&kit, &b, &own, &options);
        finish(&kit, &b, 0);
        free_batch(&b);
        burst(&kit, 400, 100);
        if (round % 3 == 0)
            with_graph(&kit, &common, &own, &options);
        pipe_kit_close(&kit, HEM_OK);
    }
    harness_close(world, HEM_OK);
    return 0;
}
