/*
 * A slot (peer, id) holds what that peer set or added, each comparison says what arithmetic says,
 * sums go over all peers, waiting for any of several tells the first that holds, and signal_all
 * reaches everybody but oneself. Slots of other peers and other ids do not move.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

static const hem_compare compares[] = {HEM_EQ, HEM_NE, HEM_GT, HEM_GE, HEM_LT, HEM_LE};

static bool holds(hem_compare compare, uint64_t a, uint64_t b) {
    switch (compare) {
    case HEM_EQ:
        return a == b;
    case HEM_NE:
        return a != b;
    case HEM_GT:
        return a > b;
    case HEM_GE:
        return a >= b;
    case HEM_LT:
        return a < b;
    default:
        return a <= b;
    }
}

/* All three test forms, and the three waits, against a slot of known value. */
static void check_against(hem_window *window, int peer, uint32_t id, uint64_t have, uint64_t want) {
    hem_signal_want one;
    hem_status status;
    size_t which;
    bool expected;
    bool done;

    for (size_t i = 0; i < 6; i++) {
        one = (hem_signal_want){peer, id, compares[i], want};
        expected = holds(compares[i], have, want);
        status = expected ? HEM_OK : HEM_ERR_TIMEOUT;
        done = !expected;
        CHECK_OK(hem_test_signal_from(window, peer, id, compares[i], want, &done));
        CHECK_EQ(done, expected);
        done = !expected;
        CHECK_OK(hem_test_signal(window, id, compares[i], want, &done));
        CHECK_EQ(done, expected);
        done = !expected;
        CHECK_OK(hem_test_signal_any(window, &one, 1, &which, &done));
        CHECK_EQ(done, expected);
        CHECK_STATUS(hem_wait_signal_from(window, peer, id, compares[i], want, 0), status);
        CHECK_STATUS(hem_wait_signal(window, id, compares[i], want, 0), status);
        CHECK_STATUS(hem_wait_signal_any(window, &one, 1, &which, 0), status);
    }
}

/* Only the left neighbour signals id 0, so its slot and the sum are the same. */
static void comparisons(hem_world *world, hem_window *window) {
    static const uint64_t values[] = {
        0, 1, 2, 41, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
    int left = harness_left(world);
    int right = harness_right(world);
    uint64_t value;

    for (size_t i = 0; i < 8; i++) {
        CHECK_OK(hem_signal(window, right, 0, HEM_SIGNAL_SET, values[i]));
        harness_barrier(window);
        CHECK_OK(hem_read_signal_from(window, left, 0, &value));
        CHECK_EQ(value, values[i]);
        for (size_t k = 0; k < 8; k++)
            check_against(window, left, 0, values[i], values[k]);
        harness_barrier(window);
    }
}

/* SET after ADD, ADD after SET, ADD across the end of the numbers, from put_signal_op as well. */
static void operations(hem_world *world, hem_window *window) {
    int left = harness_left(world);
    int right = harness_right(world);
    uint64_t value;

    CHECK_OK(hem_signal(window, right, 1, HEM_SIGNAL_ADD, 5));
    CHECK_OK(hem_signal(window, right, 1, HEM_SIGNAL_SET, 100));
    CHECK_OK(hem_signal(window, right, 1, HEM_SIGNAL_ADD, 11));
    CHECK_OK(hem_put_signal_op(window, right, 0, NULL, 0, 1, HEM_SIGNAL_ADD, (uint64_t)-1));
    CHECK_OK(hem_signal(window, right, 1, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1000));
    harness_barrier(window);
    CHECK_OK(hem_read_signal_from(window, left, 1, &value));
    CHECK_EQ(value, 1110);
    harness_barrier(window);
    CHECK_OK(hem_put_signal_op(window, right, 8, "12345678", 8, 1, HEM_SIGNAL_SET | HEM_SIGNAL_WEAK,
                               UINT64_MAX));
    CHECK_OK(hem_wait_signal_from(window, left, 1, HEM_EQ, UINT64_MAX, LIMIT));
    CHECK(memcmp((char *)hem_window_memory(window) + 8, "12345678", 8) == 0);
    harness_barrier(window);
    CHECK_OK(hem_signal(window, right, 1, HEM_SIGNAL_ADD, 3));
    CHECK_OK(hem_wait_signal_from(window, left, 1, HEM_EQ, 2, LIMIT));
    harness_barrier(window);
}

/* Everybody adds a different amount at everybody, oneself included. */
static void sums(hem_world *world, hem_window *window) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    uint64_t sum = 0;
    uint64_t value;

    for (int peer = 0; peer < size; peer++) {
        CHECK_OK(hem_signal(window, peer, 2, HEM_SIGNAL_ADD, 1u << rank));
        sum += 1u << peer;
    }
    CHECK_OK(hem_wait_signal(window, 2, HEM_EQ, sum, LIMIT));
    CHECK_OK(hem_read_signal(window, 2, &value));
    CHECK_EQ(value, sum);
    for (int peer = 0; peer < size; peer++) {
        CHECK_OK(hem_read_signal_from(window, peer, 2, &value));
        CHECK_EQ(value, 1u << peer);
    }
    harness_barrier(window);
}

static void to_all(hem_world *world, hem_window *window) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    uint64_t value;

    CHECK_OK(hem_signal_all(window, 3, HEM_SIGNAL_SET, 9));
    CHECK_OK(hem_signal_all(window, 3, HEM_SIGNAL_ADD, 1));
    harness_barrier(window);
    for (int peer = 0; peer < size; peer++) {
        CHECK_OK(hem_read_signal_from(window, peer, 3, &value));
        CHECK_EQ(value, peer == rank ? 0 : 10);
    }
    harness_barrier(window);
}

/* The first want that holds is named, wherever it stands in the list. */
static void any_of(hem_world *world, hem_window *window) {
    int size = hem_world_size(world);
    hem_signal_want wants[16];
    size_t which = 99;
    size_t count = (size_t)size;

    for (int peer = 0; peer < size; peer++)
        wants[peer] = (hem_signal_want){peer, 4, HEM_GE, 1};
    for (int caller = 0; caller < size; caller++) {
        if (hem_world_rank(world) == caller)
            for (int peer = 0; peer < size; peer++)
                CHECK_OK(hem_signal(window, peer, 4, HEM_SIGNAL_SET, 1));
        CHECK_OK(hem_wait_signal_any(window, wants, count, &which, LIMIT));
        CHECK_EQ(which, caller);
        wants[caller].value = 2;
        harness_barrier(window);
    }
    wants[size - 1] = (hem_signal_want){size - 1, 4, HEM_EQ, 1};
    CHECK_OK(hem_wait_signal_any(window, wants, count, &which, 0));
    CHECK_EQ(which, size - 1);
    wants[0] = (hem_signal_want){0, 4, HEM_LT, 2};
    CHECK_OK(hem_wait_signal_any(window, wants, count, &which, 0));
    CHECK_EQ(which, 0);
    harness_barrier(window);
}

/* Nobody used the last id. */
static void untouched(hem_world *world, hem_window *window) {
    uint64_t value = 1;

    for (int peer = 0; peer < hem_world_size(world); peer++) {
        CHECK_OK(hem_read_signal_from(window, peer, 15, &value));
        CHECK_EQ(value, 0);
    }
    CHECK_OK(hem_read_signal(window, 15, &value));
    CHECK_EQ(value, 0);
}

int rank_main(hem_world *world) {
    hem_window *window = harness_window(world, 64);

    comparisons(world, window);
    operations(world, window);
    sums(world, window);
    to_all(world, window);
    any_of(world, window);
    untouched(world, window);
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
