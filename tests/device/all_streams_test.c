/*
 * A window, a pipe, an exchange and collectives are busy at the same time, each on a stream of its own,
 * put there in a random order that differs between ranks and with nobody waiting for anybody: none
 * disturbs the other, and each step has what its peers had at that step. In between the host does some of
 * them itself, and CPUs use the same window. Four threads have 28 streams, seven each, and a GPU has
 * queues for 32 of a process: with nine each it hung (docs/gpu.md).
 *
 * hem-test: ranks=1,2,3,4 modes=processes,threads timeout=120 labels=legacy
 */
#include "all_kit.h"

#define STEPS 12 /* of each part in a round */

/* A random order of STEPS steps of each part, this rank's own. */
static void put_steps(all_kit *kit, harness_rng *rng, const bool *brief) {
    int left[ALL_PARTS], done[ALL_PARTS];
    for (int part = 0; part < ALL_PARTS; part++) {
        left[part] = STEPS;
        done[part] = 0;
    }
    for (int i = 0; i < STEPS * ALL_PARTS; i++) {
        int part = (int)harness_below(rng, ALL_PARTS);
        while (left[part] == 0)
            part = (part + 1) % ALL_PARTS;
        all_step(kit, part, brief[done[part]]);
        left[part]--;
        done[part]++;
        harness_dither(harness_random(rng));
    }
}

/* The CPUs' part of the window: a word beside those of kernels goes round. */
static void relay(all_kit *kit, uint64_t round) {
    CHECK_OK(hem_signal(kit->window, kit->right, 13, HEM_SIGNAL_ADD, 1));
    CHECK_OK(hem_wait_signal_from(kit->window, kit->left, 13, HEM_GE, round + 1, LIMIT));
    CHECK_OK(hem_barrier(kit->window, 0, LIMIT));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    all_kit kit = all_open(world, true);
    harness_rng all = harness_rng_of(seed, 1, 2), own = harness_rng_of(seed, 3, (uint64_t)kit.rank);
    uint64_t rounds = (uint64_t)harness_rounds(30);
    for (uint64_t round = 0; round < rounds; round++) {
        bool brief[STEPS];
        for (int i = 0; i < STEPS; i++)
            brief[i] = harness_below(&all, 4) != 0;
        harness_step("round", round);
        put_steps(&kit, &own, brief);
        relay(&kit, round);
        /* What the host waits for comes behind all that anybody may wait for. */
        all_step_by_host(&kit, ALL_HALO, true);
        all_step_by_host(&kit, ALL_COLL, brief[0]);
        all_step(&kit, ALL_PIPE, brief[1]);
        all_step(&kit, ALL_WINDOW, true);
    }
    all_check(&kit, rounds * (STEPS + 1));
    all_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
