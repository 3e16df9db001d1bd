/*
 * An exchange over explicit lists moves the k-th point of each list that a rank sends to the k-th
 * point of the list that its peer receives it with, and changes nothing else. Lists may be empty,
 * name a point of the sender twice, go to the rank itself, and there may be many per pair.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "halo_kit.h"

static void one(hem_world *world, uint64_t seed, uint64_t number) {
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)hem_world_rank(world));
    halo_set s = {.world = world};
    halo_spec spec = halo_spec_random(&rng, 5);
    halo_case c;
    halo_lists lists = halo_lists_random(200, 200, hem_world_size(world), &c, &rng);
    hem_pattern *pattern = halo_lists_pattern(world, &lists, &c);
    hem_exchange *exchange;

    halo_set_add(&s, pattern, &c, &spec, (int)harness_below(&own, HALO_LAYOUTS),
                 (int)harness_below(&own, HALO_MEMORIES), &own);
    exchange = halo_set_exchange(&s);
    CHECK_OK(hem_pattern_validate(pattern, LIMIT));
    hem_pattern_destroy(pattern);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    halo_case_free(&c);
    halo_lists_free(&lists);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (int i = 0; i < harness_rounds(100); i++) {
        harness_step("lists", (uint64_t)i);
        one(world, seed, (uint64_t)i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
