/*
 * A barrier can be used for ever, by several ids in any order: nobody leaves before all have
 * entered, and what was put before it is visible after it. Twenty thousand uses, the ids in a
 * random order that is the same on all ranks, some of them in halves and some by asking.
 *
 * hem-test: ranks=1,2,3,4,5,8,17 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <sched.h>

enum {
    IDS = 3
};

/* One of the three ways through. `dice` is the rank's own, so ways mix within one barrier. */
static void pass(hem_window *window, uint32_t id, uint64_t dice) {
    bool done = false;

    if (dice % 4 < 2) {
        CHECK_OK(hem_barrier(window, id, LIMIT));
        return;
    }
    CHECK_OK(hem_barrier_arrive(window, id));
    harness_dither(dice >> 8);
    if (dice % 4 == 3) {
        /* An answer of yes is the wait that succeeds. */
        for (int64_t limit = harness_now() + LIMIT; !done; sched_yield()) {
            CHECK_OK(hem_barrier_test(window, id, &done));
            CHECK(harness_now() < limit);
        }
        return;
    }
    CHECK_OK(hem_barrier_wait(window, id, LIMIT));
}

/* Every rank writes the round's number at every rank, by a different call each time. */
static void write_round(hem_world *world, hem_window *window, uint64_t round, uint64_t dice) {
    size_t place = ((round & 1) * 64 + (size_t)hem_world_rank(world)) * 8;

    for (int peer = 0; peer < hem_world_size(world); peer++) {
        if (dice % 3 == 0)
            CHECK_OK(hem_put(window, peer, place, &round, sizeof round));
        else if (dice % 3 == 1)
            CHECK_OK(hem_put_value(window, peer, place, round));
        else
            CHECK_OK(hem_put_signal(window, peer, place, &round, sizeof round, 0, 1));
    }
}

/* Two halves of the window alternate, so that one barrier a round is enough. */
static void check_round(hem_world *world, hem_window *window, uint64_t round) {
    const uint64_t *words = (uint64_t *)hem_window_memory(window) + (round & 1) * 64;

    for (int peer = 0; peer < hem_world_size(world); peer++)
        CHECK_EQ(words[peer], round);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int size = hem_world_size(world);
    hem_window *window = harness_window_ids(world, 128 * 8, 0, IDS, 0);
    harness_rng shared = harness_rng_of(seed, 0, 0);
    harness_rng own = harness_rng_of(seed, 1, (uint64_t)hem_world_rank(world));
    int rounds = harness_rounds(size > 8 ? 2000 : size > 5 ? 10000 : 20000);
    uint64_t dice;
    uint32_t id;

    for (int round = 1; round <= rounds; round++) {
        id = (uint32_t)harness_below(&shared, IDS);
        dice = harness_random(&own);
        write_round(world, window, (uint64_t)round, dice >> 32);
        harness_dither(dice >> 16);
        pass(window, id, dice);
        check_round(world, window, (uint64_t)round);
    }
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
