/*
 * Rings of ranks over a pipe with a window: buffers inside of it, outside and half of each, on either
 * side, of many lengths and alignments, one rank to itself. Where a buffer lies inside, nothing goes
 * through the rings, and nobody writes beside the buffer. Far peers, and chains where the ends do one
 * half.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=180
 */
#include "pipe_straight_kit.h"

#define SHORT 512
#define ROOM  (9u << 20)

typedef struct shape {
    enum straight_where send;
    enum straight_where recv;
    size_t bytes;
    size_t send_odd;
    size_t recv_odd;
} shape;

/* Everybody sends `by` ranks to the right. */
static void shift(straight_kit *it, const shape *s, int by, const hem_pipe_how *how,
                  uint64_t number) {
    pipe_kit *kit = &it->kit;
    int to = (kit->rank + by) % kit->size;
    int from = (kit->rank + kit->size - by % kit->size) % kit->size;
    unsigned char *send = straight_place(it, s->send, false, s->bytes, s->send_odd);
    unsigned char *recv = straight_place(it, s->recv, true, s->bytes, s->recv_odd);
    harness_step("message", number);
    straight_clear(recv, s->bytes);
    pipe_kit_fill(send, s->bytes, pipe_kit_tag(kit->rank, to, number));
    pipe_kit_call(kit, to, send, s->bytes, from, recv, s->bytes, how);
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    pipe_kit_expect(recv, s->bytes, pipe_kit_tag(from, kit->rank, number));
}

static void lengths(straight_kit *it, enum straight_where send, enum straight_where recv,
                    harness_rng *rng, uint64_t number) {
    static const size_t bytes[] = {0, 1, SHORT, SHORT + 1, 1024, 2049, 4096, 20001, 65536, 200003};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        hem_pipe_how how =
            pipe_kit_how(1 + (uint32_t)(it->kit.rank + (int)i) % 2, 2, 1 + (uint32_t)i % 2, 0);
        shape s = {send, recv, bytes[i], harness_below(rng, 17), harness_below(rng, 17)};
        shift(it, &s, 1, &how, number + i);
    }
}

/* 1 to 16 bytes off, on both sides alike and not. */
static void alignments(straight_kit *it, uint64_t number) {
    hem_pipe_how how = pipe_kit_how(2, 2, 1, 0);
    for (size_t odd = 1; odd <= 16; odd++) {
        shape s = {STRAIGHT_INSIDE, STRAIGHT_INSIDE, 9000 + odd, odd, odd};
        shift(it, &s, 1, &how, number + 2 * odd);
        s.recv_odd = odd * 5 % 16;
        shift(it, &s, 1, &how, number + 2 * odd + 1);
    }
}

/* The first rank only sends, the last only receives, from and to the same place. */
static void chain(straight_kit *it, enum straight_where where, size_t bytes, uint64_t tag) {
    pipe_kit *kit = &it->kit;
    bool first = kit->rank == 0, last = kit->rank == kit->size - 1;
    unsigned char *data = straight_place(it, where, true, bytes, 3);
    hem_pipe_how how = pipe_kit_how(2, 1 + (uint32_t)kit->rank % 2, 1, 512);
    straight_clear(data, bytes);
    if (first)
        pipe_kit_fill(data, bytes, tag);
    if (!first)
        pipe_kit_call(kit, -1, NULL, 0, kit->rank - 1, data, bytes, &how);
    if (!last)
        pipe_kit_call(kit, kit->rank + 1, data, bytes, -1, NULL, 0, &how);
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    pipe_kit_expect(data, bytes, tag);
}

static void large(straight_kit *it, uint64_t number) {
    size_t bytes = harness_sanitized() || it->kit.size > 3 ? 2000001 : 8000001;
    hem_pipe_how how = pipe_kit_how(2, 2, 1, 0);
    for (int send = STRAIGHT_INSIDE; send <= STRAIGHT_OUTSIDE; send++)
        for (int recv = STRAIGHT_INSIDE; recv <= STRAIGHT_OUTSIDE; recv++) {
            shape s = {(enum straight_where)send, (enum straight_where)recv, bytes, 0, 1};
            shift(it, &s, 1, &how, number++);
        }
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(2, 2048, 2, SHORT);
    straight_kit it = straight_open(world, &options, ROOM);
    harness_rng rng = harness_rng_of(harness_seed(world), (uint64_t)it.kit.rank, 0);
    uint64_t number = 1;

    for (int send = 0; send < STRAIGHT_WHERES; send++)
        for (int recv = 0; recv < STRAIGHT_WHERES; recv++, number += 100)
            if (send == STRAIGHT_INSIDE || recv == STRAIGHT_INSIDE)
                lengths(&it, (enum straight_where)send, (enum straight_where)recv, &rng, number);
    alignments(&it, 2000);
    chain(&it, STRAIGHT_INSIDE, 150000, 77);
    for (int r = 0; r < it.kit.size; r++)
        CHECK(!straight_ring_used(&it, r));
    for (int send = STRAIGHT_OUTSIDE; send < STRAIGHT_WHERES; send++)
        for (int recv = STRAIGHT_OUTSIDE; recv < STRAIGHT_WHERES; recv++, number += 100)
            lengths(&it, (enum straight_where)send, (enum straight_where)recv, &rng, number);
    CHECK(straight_ring_used(&it, straight_left(&it)));
    for (int by = 0; by < it.kit.size; by++) {
        shape s = {STRAIGHT_INSIDE, by % 2 == 0 ? STRAIGHT_INSIDE : STRAIGHT_OUTSIDE, 70000, 0, 0};
        hem_pipe_how how = pipe_kit_how(1, 3, 1, 0);
        shift(&it, &s, by, it.kit.size > 3 ? &how : NULL, 3000 + (uint64_t)by);
    }
    chain(&it, STRAIGHT_OUTSIDE, 15000, 78);
    large(&it, 4000);
    straight_close(&it, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
