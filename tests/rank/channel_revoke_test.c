/*
 * A revoke wakes every rank that waits on a channel, in every call, with HEM_ERR_REVOKED; every
 * later call returns it, also for what could be had; and a shrink gives a world in which channels
 * work. A rank that closes its world ends its peers' waits with HEM_ERR_PEER, but what it had sent
 * before can still be received.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "channel_waits.h"

#define REVOKED(call) CHECK_STATUS(call, HEM_ERR_REVOKED)

static void stamp(hem_window *clock) {
    uint64_t now = (uint64_t)harness_now();
    uint64_t old = 0;

    CHECK_OK(hem_fetch_add(clock, 0, 0, 0, &old));
    CHECK_OK(hem_fetch_add(clock, 0, 0, now - old, &old));
}

static void check_time(hem_window *clock) {
    uint64_t when = 0;
    int64_t took;

    CHECK_OK(hem_fetch_add(clock, 0, 0, 0, &when));
    took = harness_now() - (int64_t)when;
    if (took > HEM_MS(50) + harness_slack())
        harness_fail(__FILE__, __LINE__, "learnt of it after %lld us", (long long)took / 1000);
}

static void later_calls(hem_world *world, int peer) {
    uint8_t data[64] = {0};
    hem_message half = {peer, data, 8};
    hem_op *op = NULL;

    REVOKED(hem_send(world, peer, 0, data, 8, LIMIT));
    REVOKED(hem_recv(world, peer, 1, data, 8, NULL, LIMIT));
    REVOKED(hem_sendrecv(world, 0, &half, NULL, LIMIT));
    REVOKED(hem_sendrecv(world, 0, NULL, &half, LIMIT));
    REVOKED(hem_send_start(world, peer, 0, data, 8, &op));
    REVOKED(hem_recv_start(world, peer, 0, data, 8, &op));
    REVOKED(hem_send_plan(world, peer, 0, data, 8, &op));
    REVOKED(hem_recv_plan(world, peer, 0, data, 8, &op));
    REVOKED(hem_channel_prepare(world, peer, 0, LIMIT));
    CHECK(op == NULL);
    CHECK_ALL(data, 64, 0);
}

static void shrunk_works(hem_world *world) {
    hem_world *rest = NULL;

    CHECK_OK(hem_world_shrink(world, &rest));
    chan_works(rest, chan_partner(rest), 0, 0);
    chan_crossing(rest, 1, harness_rounds(20), 100000);
    CHECK_OK(hem_world_close(rest));
}

/* Operations that were under way end; one that is persistent cannot be started any more. */
static void started_ends(hem_op **ops) {
    bool done = false;
    hem_status status;

    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(hem_op_wait(ops[i], LIMIT), HEM_ERR_REVOKED);
        status = hem_op_test(ops[i], &done);
        CHECK(status == HEM_ERR_REVOKED && done);
    }
    CHECK_STATUS(hem_op_start(ops[2]), HEM_ERR_REVOKED);
    for (int i = 0; i < 3; i++)
        FREE_OP(ops[i]);
}

/* Rank 0 has sent something to all before it revokes; it must not be had afterwards. */
static void revoke_in(hem_world *world, hem_window *clock, enum chan_wait kind) {
    hem_world *copy = NULL;
    uint8_t data[64] = {0};
    hem_op *ops[3] = {NULL};
    int me = hem_world_rank(world);

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    chan_wait_ready(kind, copy);
    if (me != 0 && kind != CHAN_PREPARE) {
        CHECK_OK(hem_recv_start(copy, 0, 9, data, 8, &ops[0]));
        CHECK_OK(hem_recv_start(copy, me, 9, data, 8, &ops[1]));
        CHECK_OK(hem_recv_plan(copy, 0, 9, data, 8, &ops[2]));
    }
    harness_barrier(clock);
    if (me == 0) {
        for (int peer = 1; peer < hem_world_size(copy) && kind != CHAN_PREPARE; peer++)
            CHECK_OK(hem_send(copy, peer, 1, "early", 5, LIMIT));
        chan_wait_begin(kind, copy);
        harness_sleep_ms(8);
        stamp(clock);
        CHECK_OK(hem_world_revoke(copy));
    } else {
        REVOKED(chan_wait_for(kind, copy, 0));
        check_time(clock);
        if (ops[0])
            started_ends(ops);
    }
    later_calls(copy, (me + 1) % hem_world_size(copy));
    later_calls(copy, 0);
    if (me == 0)
        chan_wait_forget(false);
    shrunk_works(copy);
    CHECK_OK(hem_world_close(copy));
}

/* A message that rank 0 was in the middle of is withdrawn by its close; the next never comes. */
static void wait_until_left(enum chan_wait kind, hem_world *copy) {
    hem_status status = chan_wait_for(kind, copy, 0);

    if (kind == CHAN_MID_RECV && status == HEM_ERR_REVOKED)
        status = chan_wait_for(kind, copy, 0);
    CHECK_STATUS(status, HEM_ERR_PEER);
    CHECK_NAMES_RANK(0);
}

/* Rank 0 sends a little, then leaves while the others wait for it, or before they do. */
static void leave_in(hem_world *world, enum chan_wait kind, bool early) {
    static const size_t lengths[] = {0, 8, 40, 41, 3000};
    hem_world *copy = NULL;
    uint8_t data[4096];
    int me = hem_world_rank(world);
    size_t got = 0;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    chan_wait_ready(kind, copy);
    for (size_t i = 0; me == 0 && kind != CHAN_PREPARE && i < 5; i++) {
        for (int peer = 1; peer < hem_world_size(copy); peer++) {
            chan_fill(data, lengths[i], i);
            CHECK_OK(hem_send(copy, peer, (uint32_t)(1 + i), data, lengths[i], LIMIT));
        }
    }
    if (me == 0) {
        chan_wait_begin(kind, copy);
        harness_sleep_ms(early ? 0 : 10);
    } else {
        harness_sleep_ms(early ? 10 : 0);
        wait_until_left(kind, copy);
        CHECK_STATUS(hem_send(copy, 0, 0, data, 8, LIMIT), HEM_ERR_PEER);
        for (size_t i = 0; kind != CHAN_PREPARE && i < 5; i++) {
            CHECK_OK(hem_recv(copy, 0, (uint32_t)(1 + i), data, 4096, &got, LIMIT));
            CHECK_EQ(got, lengths[i]);
            CHECK_BYTES(data, got, i);
            CHECK_STATUS(hem_recv(copy, 0, (uint32_t)(1 + i), data, 4096, &got, LIMIT),
                         HEM_ERR_PEER);
        }
    }
    CHECK_OK(hem_world_close(copy));
    if (me == 0)
        chan_wait_forget(false);
}

/* Rank 0 sends to all and leaves at once; the others look before, while or after it does. */
static void send_then_leave(hem_world *world, harness_rng *rng, uint64_t round) {
    static const size_t lengths[] = {8, 40, 41, 5000, 30000};
    size_t bytes = lengths[round % 5];
    hem_world *copy = NULL;
    uint8_t data[30000];
    size_t got = 0;
    hem_op *op = NULL;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    for (int peer = 0; peer < hem_world_size(copy); peer++)
        CHECK_OK(hem_channel_prepare(copy, peer, 0, LIMIT));
    if (hem_world_rank(copy) == 0) {
        chan_fill(data, bytes, round);
        for (int peer = 1; peer < hem_world_size(copy); peer++)
            CHECK_OK(hem_send(copy, peer, 0, data, bytes, LIMIT));
    } else {
        harness_dither(harness_random(rng));
        if (round % 2) {
            CHECK_OK(hem_recv(copy, 0, 0, data, sizeof data, &got, LIMIT));
        } else {
            CHECK_OK(hem_recv_start(copy, 0, 0, data, sizeof data, &op));
            CHECK_OK(hem_op_wait(op, LIMIT));
            got = hem_op_bytes(op);
            FREE_OP(op);
        }
        CHECK_EQ(got, bytes);
        CHECK_BYTES(data, got, round);
        CHECK_STATUS(hem_recv(copy, 0, 0, data, sizeof data, &got, LIMIT), HEM_ERR_PEER);
    }
    CHECK_OK(hem_world_close(copy));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    harness_rng rng = harness_rng_of(seed, (uint64_t)hem_world_rank(world), 0);
    uint64_t rounds = (uint64_t)harness_rounds(120 / hem_world_size(world));
    hem_window *clock = harness_window(world, 64);

    for (int kind = 0; kind < CHAN_WAITS; kind++) {
        harness_step(chan_wait_name((enum chan_wait)kind), 0);
        revoke_in(world, clock, (enum chan_wait)kind);
        harness_barrier(clock);
        leave_in(world, (enum chan_wait)kind, false);
        leave_in(world, (enum chan_wait)kind, true);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        harness_step("sends and leaves", round);
        send_then_leave(world, &rng, round);
    }
    harness_destroy(clock);
    harness_close(world, HEM_OK);
    return 0;
}
