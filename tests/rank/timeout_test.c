/*
 * A wait whose condition does not come ends with HEM_ERR_TIMEOUT, not before its limit and not much
 * after, says what it waited for, and can be repeated. A limit of 0 looks once.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    KINDS = 6
};

static hem_status wait_in(hem_world *world, hem_window *window, int kind, int64_t limit) {
    int right = harness_right(world);
    hem_signal_want wants[] = {{right, 1, HEM_GE, 1}, {right, 2, HEM_EQ, 4}};
    size_t which;

    switch (kind) {
    case 0:
        return hem_wait_signal(window, 1, HEM_GE, 1, limit);
    case 1:
        return hem_wait_signal_from(window, right, 1, HEM_NE, 0, limit);
    case 2:
        return hem_wait_signal_any(window, wants, 2, &which, limit);
    case 3:
        return hem_wait_counter(window, 0, 1, limit);
    case 4:
        return hem_barrier_wait(window, 1, limit);
    default:
        return hem_barrier_peer_wait(window, right, 1, limit);
    }
}

static void check_time(int64_t start, int64_t limit) {
    int64_t took = harness_now() - start;

    if (took < limit || took > limit + harness_slack())
        harness_fail(__FILE__, __LINE__, "a wait of %lld ns took %lld ns", (long long)limit,
                     (long long)took);
}

/* Rank 0 has arrived at the barriers and waits for the others, which do not come yet. */
static void wait_in_vain(hem_world *world, hem_window *window) {
    static const int64_t limits[] = {0, HEM_US(30), HEM_MS(3), HEM_MS(60)};
    int64_t start;

    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < 4; i++) {
            start = harness_now();
            CHECK_STATUS(wait_in(world, window, kind, limits[i]), HEM_ERR_TIMEOUT);
            check_time(start, limits[i]);
        }
    }
}

/* A barrier that timed out is taken up again where it stood. */
static void take_up_again(hem_world *world, hem_window *window) {
    int rank = hem_world_rank(world);

    if (rank == 0) {
        CHECK_STATUS(hem_barrier(window, 2, HEM_MS(5)), HEM_ERR_TIMEOUT);
        CHECK_STATUS(hem_barrier_wait(window, 2, HEM_MS(5)), HEM_ERR_TIMEOUT);
        CHECK_STATUS(hem_barrier_peer(window, 1, 2, HEM_MS(5)), HEM_ERR_TIMEOUT);
        CHECK_OK(hem_signal_all(window, 5, HEM_SIGNAL_SET, 1));
        CHECK_OK(hem_barrier_wait(window, 2, LIMIT));
        CHECK_OK(hem_barrier_peer_wait(window, 1, 2, LIMIT));
    } else {
        CHECK_OK(hem_wait_signal_from(window, 0, 5, HEM_EQ, 1, LIMIT));
        CHECK_OK(hem_barrier(window, 2, LIMIT));
        if (rank == 1)
            CHECK_OK(hem_barrier_peer(window, 0, 2, LIMIT));
    }
    CHECK_OK(hem_barrier(window, 2, LIMIT));
    if (rank < 2)
        CHECK_OK(hem_barrier_peer(window, rank ^ 1, 2, LIMIT));
}

int rank_main(hem_world *world) {
    hem_window *window = harness_window(world, 64);
    int right = harness_right(world);

    if (hem_world_rank(world) == 0) {
        CHECK_OK(hem_barrier_arrive(window, 1));
        CHECK_OK(hem_barrier_peer_arrive(window, right, 1));
        wait_in_vain(world, window);
        CHECK_OK(hem_signal_all(window, 6, HEM_SIGNAL_SET, 1));
    } else {
        CHECK_OK(hem_wait_signal_from(window, 0, 6, HEM_EQ, 1, LIMIT));
        CHECK_OK(hem_barrier_arrive(window, 1));
        if (hem_world_rank(world) == 1)
            CHECK_OK(hem_barrier_peer(window, 0, 1, LIMIT));
    }
    CHECK_OK(hem_barrier_wait(window, 1, LIMIT));
    if (hem_world_rank(world) == 0)
        CHECK_OK(hem_barrier_peer_wait(window, right, 1, LIMIT));
    take_up_again(world, window);
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
