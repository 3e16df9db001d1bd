/*
 * Random small decompositions of grids, with random fields: every halo cell gets its owner's value
 * and nothing else changes. A failure names the seed and the number of the decomposition.
 *
 * HEM_HALO_CASES is how many there are (1000 per run, so that all runs together make 10,000);
 * HEM_HALO_FIRST the first one's number.
 *
 * hem-test: ranks=1,2,3,4,5 modes=processes,threads timeout=120
 */
#include "halo_kit.h"

/* What the exchange says that it receives is what the fields' cells say. */
static void check_bytes(const halo_set *s, const hem_exchange *exchange) {
    hem_exchange_facts facts = {.struct_size = sizeof facts};
    uint64_t received = 0;
    uint64_t local = 0;
    uint64_t sums[2];
    uint64_t all[2];

    for (size_t i = 0; i < s->count; i++) {
        const halo_field *f = &s->fields[i];
        uint64_t bytes = f->spec.element * f->spec.levels * f->spec.components;

        for (size_t k = 0; k < f->domain->count; k++) {
            if (f->domain->cells[k].kind != HALO_COPY)
                continue;
            if (f->domain->cells[k].owner == f->domain->rank)
                local += bytes;
            else
                received += bytes;
        }
    }
    CHECK_OK(hem_exchange_info(exchange, &facts));
    CHECK_EQ(facts.recv_bytes, received);
    CHECK_EQ(facts.local_bytes, local);
    CHECK(facts.direct_bytes <= received);
    sums[0] = facts.send_bytes;
    sums[1] = facts.recv_bytes;
    CHECK_OK(hem_allreduce(s->world, sums, all, 2, HEM_U64, HEM_SUM, LIMIT));
    CHECK_EQ(all[0], all[1]);
}

static void one(hem_world *world, uint64_t seed, uint64_t number) {
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)me);
    int dims = 1 + (int)harness_below(&rng, 4);
    int64_t cells = dims == 1 ? 60 : dims == 2 ? 14 : dims == 3 ? 7 : 4;
    halo_grid g = halo_grid_random(dims, cells, 10, size, &rng);
    halo_case c = halo_grid_case(&g, size);
    hem_pattern *pattern = halo_grid_pattern(world, &g, &c);
    halo_set s = {.world = world};
    size_t fields = 1 + harness_below(&rng, 2);
    hem_exchange *exchange;

    for (size_t k = 0; k < fields; k++) {
        halo_spec spec = halo_spec_random(&rng, 3);

        halo_set_add(&s, pattern, &c, &spec, (int)harness_below(&own, HALO_LAYOUTS),
                     harness_below(&own, 8) ? HALO_PRIVATE : HALO_MIXED, &own);
    }
    exchange = halo_set_exchange(&s);
    check_bytes(&s, exchange);
    if (number % 16 == 0)
        CHECK_OK(hem_pattern_validate(pattern, LIMIT));
    hem_pattern_destroy(pattern);
    halo_set_run(&s, exchange, NULL, number);
    halo_set_run(&s, exchange, NULL, number + 1);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    halo_case_free(&c);
    halo_grid_free(&g);
}

static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Every other one on a world of the same ranks in the opposite order. */
int rank_main(hem_world *world) {
    hem_world *turned = NULL;
    uint64_t seed = harness_seed(world);
    uint64_t first = number_of("HEM_HALO_FIRST", 0);
    uint64_t count = number_of("HEM_HALO_CASES", (uint64_t)harness_rounds(1000));

    CHECK_OK(hem_world_split(world, 3, -hem_world_rank(world), &turned));
    for (uint64_t number = first; number < first + count; number++) {
        harness_step("decomposition", number);
        one(number % 2 ? turned : world, seed, number);
    }
    CHECK_OK(hem_world_close(turned));
    harness_close(world, HEM_OK);
    return 0;
}
