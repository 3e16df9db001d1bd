/*
 * An exchange over the panels of a cubed sphere gives every halo cell the value that solid geometry
 * says lies there, turns vectors into the axes of the panel that receives them, and leaves alone what
 * lies beyond the corners of the cube.
 *
 * hem-test: ranks=1,2,3,4,5,6,8 modes=processes,threads timeout=120
 */
#include "halo_kit.h"

static const hem_dtype vector_types[] = {HEM_F64, HEM_F32, HEM_I64, HEM_I32,  HEM_I16,
                                         HEM_I8,  HEM_F16, HEM_C64, HEM_C128, HEM_BF16};

static halo_spec vector_spec(harness_rng *rng) {
    return (halo_spec){
        .dtype = vector_types[harness_below(rng, sizeof vector_types / sizeof *vector_types)],
        .levels = 1 + harness_below(rng, 4),
        .components = 2,
        .flags = HEM_FIELD_VECTOR,
        .numbers = true,
        .seed = harness_random(rng),
    };
}

/* Two components that are no vector must not be turned. */
static halo_spec pair_spec(harness_rng *rng) {
    halo_spec spec = vector_spec(rng);

    spec.flags = 0;
    return spec;
}

static void one(hem_world *world, uint64_t seed, uint64_t number) {
    int size = hem_world_size(world);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)hem_world_rank(world));
    halo_cube cube = halo_cube_random(1 + (int64_t)harness_below(&rng, 12),
                                      1 + harness_below(&rng, 6), size, &rng);
    halo_case c = halo_cube_case(&cube, size);
    hem_pattern *pattern = halo_cube_pattern(world, &cube, &c);
    halo_spec specs[4] = {vector_spec(&rng), halo_spec_random(&rng, 3), pair_spec(&rng),
                          vector_spec(&rng)};
    halo_set s = {.world = world};
    hem_exchange *exchange;

    for (int k = 0; k < 4; k++)
        halo_set_add(&s, pattern, &c, &specs[k], (int)harness_below(&own, HALO_LAYOUTS),
                     (int)harness_below(&own, HALO_MEMORIES), &own);
    exchange = halo_set_exchange(&s);
    if (number % 8 == 0)
        CHECK_OK(hem_pattern_validate(pattern, LIMIT));
    hem_pattern_destroy(pattern);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    halo_case_free(&c);
    halo_cube_free(&cube);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (int i = 0; i < harness_rounds(100); i++) {
        harness_step("sphere", (uint64_t)i);
        one(world, seed, (uint64_t)i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
