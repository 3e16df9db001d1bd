/*
 * A barrier between two ranks involves those two alone, works from either side, keeps its ids apart
 * from those of the barriers over all, and mixes with them in any order.
 *
 * hem-test: ranks=2,3,4,5,8,17 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <sched.h>

enum {
    RANKS = 64
};

/* All pairs of a random list, which is the same on all ranks, with a word that proves each one. */
static void random_pairs(hem_world *world, hem_window *window, harness_rng *shared, int rounds) {
    int rank = hem_world_rank(world);
    size_t size = (size_t)hem_world_size(world);
    const uint64_t *mine = hem_window_memory(window);

    for (int round = 1; round <= rounds; round++) {
        int a = (int)harness_below(shared, size);
        int b = (int)((size_t)(a + 1) + harness_below(shared, size - 1)) % (int)size;
        uint32_t id = (uint32_t)harness_below(shared, 3);
        int peer = rank == a ? b : a;
        size_t place = (size_t)(round & 1) * RANKS;

        if (harness_below(shared, 8) == 0)
            CHECK_OK(hem_barrier(window, id, LIMIT));
        if (rank != a && rank != b)
            continue;
        CHECK_OK(hem_put_value(window, peer, (place + (size_t)rank) * 8, (uint64_t)round));
        CHECK_OK(hem_barrier_peer(window, peer, id, LIMIT));
        CHECK_EQ(mine[place + (size_t)peer], round);
        CHECK_OK(hem_barrier_peer(window, peer, id, LIMIT));
    }
}

/* Arrive at all peers first, on each pair from both sides, wait in the opposite order. */
static void all_at_once(hem_world *world, hem_window *window, int rounds) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    bool done;

    for (int round = 0; round < rounds; round++) {
        for (int step = 1; step < size; step++)
            CHECK_OK(hem_barrier_peer_arrive(window, (rank + step) % size, 1));
        CHECK_OK(hem_barrier_arrive(window, 1));
        for (int step = size - 1; step > 0; step--) {
            for (done = false; !done && round % 2; sched_yield())
                CHECK_OK(hem_barrier_peer_test(window, (rank + step) % size, 1, &done));
            if (!done)
                CHECK_OK(hem_barrier_peer_wait(window, (rank + step) % size, 1, LIMIT));
        }
        CHECK_OK(hem_barrier_wait(window, 1, LIMIT));
    }
}

/* Ranks 0 and 1 meet over and over while the others have not even come. */
static void two_alone(hem_world *world, hem_window *window, int rounds) {
    int rank = hem_world_rank(world);
    bool done = false;

    if (rank < 2) {
        CHECK_OK(hem_barrier_arrive(window, 2));
        for (int round = 0; round < rounds; round++)
            CHECK_OK(hem_barrier_peer(window, 1 - rank, 2, LIMIT));
        CHECK_OK(hem_barrier_test(window, 2, &done));
        CHECK(done == (hem_world_size(world) == 2));
        CHECK_OK(hem_signal_all(window, 0, HEM_SIGNAL_ADD, 1));
    } else {
        CHECK_OK(hem_wait_signal(window, 0, HEM_GE, 2, LIMIT));
        CHECK_OK(hem_barrier_arrive(window, 2));
    }
    if (!done)
        CHECK_OK(hem_barrier_wait(window, 2, LIMIT));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    hem_window *window = harness_window_ids(world, 2 * RANKS * 8, 0, 3, 0);
    harness_rng shared = harness_rng_of(seed, 0, 0);

    random_pairs(world, window, &shared, harness_rounds(5000));
    all_at_once(world, window, harness_rounds(8000 / hem_world_size(world)));
    two_alone(world, window, harness_rounds(3000));
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
