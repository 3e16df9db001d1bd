/*
 * An exchange over a mesh gives every halo point its owner's value and changes nothing else: for
 * random and ragged partitions of a triangulated sphere and of a torus, one to three rings of halo,
 * 1 to 80 levels, any layout, and however halos are told to the library.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=120
 */
#include "halo_kit.h"

struct rank {
    hem_world *world;
    int me;
    int size;
    uint64_t seed;
};

static halo_mesh make_mesh(const struct rank *r, harness_rng *rng) {
    halo_mesh m = harness_below(rng, 2) ? halo_mesh_ball((int)harness_below(rng, 4))
                                        : halo_mesh_torus(1 + (int64_t)harness_below(rng, 24),
                                                          1 + (int64_t)harness_below(rng, 24));
    size_t parts = 1 + harness_below(rng, harness_below(rng, 4) ? 12 : 64 * (size_t)r->size);

    m.rings = 1 + (int)harness_below(rng, 3);
    halo_mesh_deal(&m, (int)parts, r->size, harness_below(rng, 3) > 0, rng);
    return m;
}

static void add_fields(halo_set *s, const hem_pattern *pattern, const halo_case *c,
                       harness_rng *rng, harness_rng *own) {
    static const size_t levels[] = {1, 2, 3, 17, 80};
    size_t fields = 1 + harness_below(rng, 3);

    for (size_t k = 0; k < fields; k++) {
        halo_spec spec = halo_spec_random(rng, 3);

        if (k == 0)
            spec.levels = levels[harness_below(rng, 5)];
        halo_set_add(s, pattern, c, &spec, (int)harness_below(own, HALO_LAYOUTS),
                     (int)harness_below(own, HALO_MEMORIES), own);
    }
}

static void one(struct rank *r, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, 0);
    harness_rng own = harness_rng_of(r->seed, number, 1 + (uint64_t)r->me);
    halo_mesh m = make_mesh(r, &rng);
    halo_case c = halo_mesh_case(&m, r->size, rng);
    hem_pattern *pattern = halo_mesh_pattern(r->world, &c, (int)(number % HALO_WAYS));
    halo_set s = {.world = r->world};
    hem_exchange *exchange;

    add_fields(&s, pattern, &c, &rng, &own);
    exchange = halo_set_exchange(&s);
    if (number % 8 == 0)
        CHECK_OK(hem_pattern_validate(pattern, LIMIT));
    hem_pattern_destroy(pattern);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    halo_case_free(&c);
    halo_mesh_free(&m);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.seed = harness_seed(world);
    for (int i = 0; i < harness_rounds(60); i++) {
        harness_step("mesh", (uint64_t)i);
        one(&r, (uint64_t)i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
