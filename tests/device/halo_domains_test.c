/*
 * Sixty-four domains per rank on the device, dealt in order or at random, so that most neighbours are on
 * other ranks and every pair of ranks shares many links: each halo gets its own owner's values, byte for
 * byte what the host's exchange gives, forward and reverse, again and again.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "halo_twin.h"

#ifndef DOMAINS
#define DOMAINS 64
#endif

/* Two dimensions are enough for so many boxes; none is empty. */
static twin_case make_case(hem_world *world, bool random, harness_rng *rng) {
    twin_case t;
    int size = hem_world_size(world);
    memset(&t, 0, sizeof t);
    t.g.dims = 2;
    for (int i = 0; i < 2; i++) {
        t.g.extent[i] = 40;
        t.g.periodic[i] = i == 0;
        t.g.low[i] = 1 + i;
        t.g.high[i] = 2 - i;
    }
    halo_grid_cut(&t.g, DOMAINS * (size_t)size, rng);
    halo_grid_deal(&t.g, size, random, 0, rng);
    t.c = halo_grid_case(&t.g, size);
    t.pattern = halo_grid_pattern(world, &t.g, &t.c);
    return t;
}

/* Whatever another way was asked for goes it. */
static void check_way(const twin *t) {
    hem_exchange_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.struct_size = sizeof facts;
    CHECK_OK(hem_exchange_info(t->exchange, &facts));
    CHECK_EQ(facts.direct_bytes, TWIN_WAY > HEM_EXCHANGE_BEST ? facts.recv_bytes : 0);
}

static void one_case(hem_world *world, uint64_t seed, bool random) {
    harness_rng rng = harness_rng_of(seed, random, 1);
    harness_rng own = harness_rng_of(seed, random, 100 + (uint64_t)hem_world_rank(world));
    twin_case c = make_case(world, random, &rng);
    halo_spec spec;
    twin t;
    memset(&t, 0, sizeof t);
    memset(&spec, 0, sizeof spec);
    spec.dtype = HEM_I32;
    spec.levels = 2;
    spec.components = 1;
    t.world = t.host.world = world;
    twin_add(&t, &c, &spec, &own);
    CHECK(t.host.count >= DOMAINS / 4);
    twin_bind(&t, TWIN_DEVICE, &own);
    check_way(&t);
    for (uint64_t round = 0; round < 6; round++) {
        bool back = round % 3 == 2 && TWIN_WAY != HEM_EXCHANGE_ENGINES; /* which only go forward */
        hem_exchange_how how = twin_how(back ? HEM_COMBINE_SUM : (hem_combine)0, &rng);
        how.fields = 0;
        twin_fill(&t, round);
        CHECK_OK(hem_exchange_run(t.exchange, &how, LIMIT));
        twin_check(&t, &how);
    }
    twin_free(&t);
    twin_case_free(&c);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    CHECK_OK(hem_device_open(world, NULL));
    harness_step("in order", 0);
    one_case(world, seed, false);
    harness_step("at random", 0);
    one_case(world, seed, true);
    harness_close(world, HEM_OK);
    return 0;
}
