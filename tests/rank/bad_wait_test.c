/*
 * Every signal, wait, counter and barrier call with a bad window, rank, id, operation, comparison,
 * time limit or pointer returns a status and a sentence at once, changes nothing, and leaves
 * outputs alone. So do the calls on worlds.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <limits.h>

#define ARG(call)   CHECK_STATUS(call, HEM_ERR_ARG)
#define RANGE(call) CHECK_STATUS(call, HEM_ERR_RANGE)

static void no_window(void) {
    hem_signal_want want = {0, 0, HEM_EQ, 0};
    uint64_t word = 9;
    size_t which = 9;
    bool done = true;

    ARG(hem_put_signal(NULL, 0, 0, &word, 8, 0, 1));
    ARG(hem_put_signal_op(NULL, 0, 0, &word, 8, 0, HEM_SIGNAL_SET, 1));
    ARG(hem_put_signal_start(NULL, 0, 0, &word, 8, 0, 1, 0));
    ARG(hem_signal(NULL, 0, 0, HEM_SIGNAL_SET, 1));
    ARG(hem_signal_all(NULL, 0, HEM_SIGNAL_SET, 1));
    ARG(hem_wait_signal(NULL, 0, HEM_EQ, 0, 0));
    ARG(hem_wait_signal_from(NULL, 0, 0, HEM_EQ, 0, 0));
    ARG(hem_wait_signal_any(NULL, &want, 1, &which, 0));
    ARG(hem_test_signal(NULL, 0, HEM_EQ, 0, &done));
    ARG(hem_test_signal_from(NULL, 0, 0, HEM_EQ, 0, &done));
    ARG(hem_test_signal_any(NULL, &want, 1, &which, &done));
    ARG(hem_read_signal(NULL, 0, &word));
    ARG(hem_read_signal_from(NULL, 0, 0, &word));
    ARG(hem_read_counter(NULL, 0, &word));
    ARG(hem_wait_counter(NULL, 0, 0, 0));
    ARG(hem_test_counter(NULL, 0, 0, &done));
    ARG(hem_barrier(NULL, 0, 0));
    ARG(hem_barrier_arrive(NULL, 0));
    ARG(hem_barrier_wait(NULL, 0, 0));
    ARG(hem_barrier_test(NULL, 0, &done));
    ARG(hem_barrier_peer(NULL, 0, 0, 0));
    ARG(hem_barrier_peer_arrive(NULL, 0, 0));
    ARG(hem_barrier_peer_wait(NULL, 0, 0, 0));
    ARG(hem_barrier_peer_test(NULL, 0, 0, &done));
    CHECK(word == 9 && which == 9 && done);
}

static void bad_rank(hem_window *w, int rank) {
    hem_signal_want want = {rank, 0, HEM_EQ, 0};
    uint64_t word = 9;
    size_t which = 9;
    bool done = true;

    RANGE(hem_put_signal(w, rank, 0, &word, 8, 0, 1));
    RANGE(hem_put_signal_op(w, rank, 0, &word, 8, 0, HEM_SIGNAL_SET, 1));
    RANGE(hem_put_signal_start(w, rank, 0, &word, 8, 0, 1, 0));
    RANGE(hem_signal(w, rank, 0, HEM_SIGNAL_SET, 1));
    RANGE(hem_wait_signal_from(w, rank, 0, HEM_EQ, 0, 0));
    RANGE(hem_wait_signal_any(w, &want, 1, &which, 0));
    RANGE(hem_test_signal_from(w, rank, 0, HEM_EQ, 0, &done));
    RANGE(hem_test_signal_any(w, &want, 1, &which, &done));
    RANGE(hem_read_signal_from(w, rank, 0, &word));
    RANGE(hem_barrier_peer(w, rank, 0, 0));
    RANGE(hem_barrier_peer_arrive(w, rank, 0));
    RANGE(hem_barrier_peer_wait(w, rank, 0, 0));
    RANGE(hem_barrier_peer_test(w, rank, 0, &done));
    CHECK(word == 9 && which == 9 && done);
}

/* `id` is out of range for signals (16), barriers (4) and counters (4) alike. */
static void bad_id(hem_window *w, int peer, uint32_t id) {
    hem_signal_want wants[] = {{peer, 0, HEM_NE, 0}, {peer, id, HEM_EQ, 0}};
    uint64_t word = 9;
    size_t which = 9;
    bool done = true;

    RANGE(hem_put_signal(w, peer, 0, &word, 8, id, 1));
    RANGE(hem_put_signal_op(w, peer, 0, &word, 8, id, HEM_SIGNAL_SET, 1));
    RANGE(hem_put_signal_start(w, peer, 0, &word, 8, id, 1, 0));
    RANGE(hem_put_signal_start(w, peer, 0, &word, 8, 0, 1, id));
    RANGE(hem_signal(w, peer, id, HEM_SIGNAL_SET, 1));
    RANGE(hem_signal_all(w, id, HEM_SIGNAL_SET, 1));
    RANGE(hem_wait_signal(w, id, HEM_EQ, 0, 0));
    RANGE(hem_wait_signal_from(w, peer, id, HEM_EQ, 0, 0));
    RANGE(hem_wait_signal_any(w, wants, 2, &which, 0));
    RANGE(hem_test_signal(w, id, HEM_EQ, 0, &done));
    RANGE(hem_test_signal_from(w, peer, id, HEM_EQ, 0, &done));
    RANGE(hem_test_signal_any(w, wants, 2, &which, &done));
    RANGE(hem_read_signal(w, id, &word));
    RANGE(hem_read_signal_from(w, peer, id, &word));
    RANGE(hem_read_counter(w, id, &word));
    RANGE(hem_wait_counter(w, id, 0, 0));
    RANGE(hem_test_counter(w, id, 0, &done));
    RANGE(hem_barrier(w, id, 0));
    RANGE(hem_barrier_arrive(w, id));
    RANGE(hem_barrier_wait(w, id, 0));
    RANGE(hem_barrier_test(w, id, &done));
    RANGE(hem_barrier_peer_arrive(w, peer, id));
    RANGE(hem_barrier_peer_wait(w, peer, id, 0));
    RANGE(hem_barrier_peer_test(w, peer, id, &done));
    CHECK(word == 9 && which == 9 && done);
}

static void bad_op(hem_window *w, int peer, int op) {
    uint64_t word = 9;

    ARG(hem_put_signal_op(w, peer, 0, &word, 8, 0, op, 1));
    ARG(hem_signal(w, peer, 0, op, 1));
    ARG(hem_signal_all(w, 0, op, 1));
}

static void bad_compare(hem_window *w, int peer, int number) {
    hem_compare compare = (hem_compare)number;
    hem_signal_want want = {peer, 0, compare, 0};
    size_t which = 9;
    bool done = true;

    ARG(hem_wait_signal(w, 0, compare, 0, 0));
    ARG(hem_wait_signal_from(w, peer, 0, compare, 0, 0));
    ARG(hem_wait_signal_any(w, &want, 1, &which, 0));
    ARG(hem_test_signal(w, 0, compare, 0, &done));
    ARG(hem_test_signal_from(w, peer, 0, compare, 0, &done));
    ARG(hem_test_signal_any(w, &want, 1, &which, &done));
    CHECK(which == 9 && done);
}

/* Conditions that hold already do not excuse a bad limit. */
static void bad_time(hem_window *w, int peer, int64_t limit) {
    hem_signal_want want = {peer, 0, HEM_EQ, 0};
    size_t which = 9;

    ARG(hem_wait_signal(w, 0, HEM_EQ, 0, limit));
    ARG(hem_wait_signal_from(w, peer, 0, HEM_EQ, 0, limit));
    ARG(hem_wait_signal_any(w, &want, 1, &which, limit));
    ARG(hem_wait_counter(w, 0, 0, limit));
    ARG(hem_barrier(w, 1, limit));
    ARG(hem_barrier_wait(w, 1, limit));
    ARG(hem_barrier_peer(w, peer, 1, limit));
    ARG(hem_barrier_peer_wait(w, peer, 1, limit));
    CHECK_EQ(which, 9);
}

static void no_output(hem_window *w, int peer) {
    hem_signal_want want = {peer, 0, HEM_EQ, 0};
    size_t which = 9;
    bool done;

    ARG(hem_wait_signal_any(w, NULL, 1, &which, 0));
    ARG(hem_test_signal_any(w, NULL, 1, &which, &done));
    ARG(hem_test_signal(w, 0, HEM_EQ, 0, NULL));
    ARG(hem_test_signal_from(w, peer, 0, HEM_EQ, 0, NULL));
    ARG(hem_test_signal_any(w, &want, 1, &which, NULL));
    ARG(hem_read_signal(w, 0, NULL));
    ARG(hem_read_signal_from(w, peer, 0, NULL));
    ARG(hem_read_counter(w, 0, NULL));
    ARG(hem_test_counter(w, 0, 0, NULL));
    ARG(hem_barrier_test(w, 0, NULL));
    ARG(hem_barrier_peer_test(w, peer, 0, NULL));
    CHECK_EQ(which, 9);
}

static void bad_world_calls(hem_world *world) {
    hem_world *part = world;
    hem_window *window = NULL;

    ARG(hem_world_revoke(NULL));
    ARG(hem_world_split(NULL, 0, 0, &part));
    ARG(hem_world_shrink(NULL, &part));
    ARG(hem_window_create(NULL, NULL, &window));
    ARG(hem_world_open(NULL, NULL));
    ARG(hem_world_threads(0, NULL, NULL, NULL));
    ARG(hem_world_split(world, -2, 0, &part));
    ARG(hem_world_split(world, INT_MIN, 0, &part));
    CHECK(part == world);
    CHECK_EQ(hem_world_alive(world, -1), HEM_ERR_RANGE);
    CHECK_EQ(hem_world_alive(world, hem_world_size(world)), HEM_ERR_RANGE);
    CHECK_EQ(hem_world_host(world, INT_MAX), HEM_ERR_RANGE);
    CHECK_EQ(hem_world_host(world, INT_MIN), HEM_ERR_RANGE);
}

static void all_calls(hem_window *w, int size, int peer) {
    bad_rank(w, -1);
    bad_rank(w, size);
    bad_rank(w, INT_MAX);
    bad_id(w, peer, 16);
    bad_id(w, peer, UINT32_MAX);
    bad_id(w, peer, 1u << 31);
    bad_op(w, peer, 0);
    bad_op(w, peer, 3);
    bad_op(w, peer, HEM_SIGNAL_WEAK);
    bad_op(w, peer, HEM_SIGNAL_ADD | 32);
    bad_op(w, peer, -1);
    bad_compare(w, peer, 0);
    bad_compare(w, peer, 7);
    bad_compare(w, peer, -1);
    bad_time(w, peer, -2);
    bad_time(w, peer, INT64_MIN);
    no_output(w, peer);
}

int rank_main(hem_world *world) {
    int size = hem_world_size(world);
    hem_window *w = harness_window(world, 64);
    uint64_t value = 1;

    no_window();
    all_calls(w, size, harness_right(world));
    bad_world_calls(world);
    harness_barrier(w);
    CHECK_ALL(hem_window_memory(w), 64, 0);
    for (uint32_t id = 0; id < 16; id++) {
        CHECK_OK(hem_read_signal(w, id, &value));
        CHECK_EQ(value, 0);
    }
    CHECK_OK(hem_barrier(w, 1, LIMIT));
    harness_destroy(w);
    harness_close(world, HEM_OK);
    return 0;
}
