/*
 * An owner whose run times out may change its field as soon as it is told, though a neighbour may be
 * copying straight from it at that moment: whoever is told that its run went well has all values of
 * that run, and nothing of what came after.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=60
 */
#include "halo_kit.h"

enum {
    POINTS = 1 << 18
};

struct rank {
    hem_world *world;
    hem_window *window;
    hem_pattern *pattern;
    uint64_t *field;
    int me;
};

/* Rank 1's halo is all that rank 0 has. */
static void make_pattern(struct rank *r) {
    hem_grid_domain d = {.box = {{POINTS * r->me}, {POINTS}}};
    hem_grid_options o = {.struct_size = sizeof o,
                          .dims = 1,
                          .extent = {2 * POINTS},
                          .halo_low = {POINTS},
                          .domains = &d,
                          .domain_count = 1};

    CHECK_OK(hem_pattern_grid(r->world, &o, &r->pattern));
}

static void write_all(uint64_t *field, uint64_t value) {
    for (size_t i = 0; i < 2 * (size_t)POINTS; i++)
        field[i] = value;
}

static hem_exchange *make_exchange(struct rank *r, int64_t limit) {
    hem_binding b = {
        .pattern = r->pattern,
        .field = {.struct_size = sizeof b.field, .memory = r->field, .dtype = HEM_U64},
    };
    hem_exchange_options o = {
        .struct_size = sizeof o, .bindings = &b, .count = 1, .run_timeout_ns = limit};
    hem_exchange *exchange = NULL;

    CHECK_OK(hem_exchange_create(r->world, &o, &exchange));
    return exchange;
}

/* @return whether the owner was in too much of a hurry. */
static bool hurry(struct rank *r, harness_rng *rng, uint64_t round) {
    int64_t limit = HEM_US(100 + harness_below(rng, 2000));
    hem_exchange *exchange = make_exchange(r, r->me == 0 ? limit : 0);
    hem_status status;

    write_all(r->field, 2 * round);
    harness_barrier(r->window);
    if (r->me == 1)
        for (int64_t until = harness_now() + limit * 3 / 4; harness_now() < until;)
            continue;
    status = hem_exchange_run(exchange, NULL, LIMIT);
    if (r->me == 0)
        write_all(r->field, 2 * round + 1);
    for (size_t i = 0; i < POINTS && r->me == 1 && status == HEM_OK; i++)
        CHECK_EQ(r->field[i], 2 * round);
    if (status != HEM_OK && status != HEM_ERR_REVOKED && status != HEM_ERR_TIMEOUT)
        harness_fail(__FILE__, __LINE__, "a run gave %s: %s", hem_status_name(status),
                     hem_last_error());
    harness_barrier(r->window);
    CHECK_OK(hem_exchange_destroy(exchange));
    return status != HEM_OK;
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world)};
    hem_memory *memory = NULL;
    hem_exchange *exchange;
    hem_exchange_facts facts = {.struct_size = sizeof facts};
    uint64_t seed = harness_seed(world);
    int late = 0;

    r.window = harness_window(world, 64);
    CHECK_OK(hem_memory_alloc(world, 2 * (size_t)POINTS * 8, &memory));
    r.field = hem_memory_address(memory);
    make_pattern(&r);
    /* What this is about: data that moves once. */
    exchange = make_exchange(&r, 0);
    CHECK_OK(hem_exchange_info(exchange, &facts));
    CHECK_EQ(facts.direct_bytes, r.me == 1 ? (uint64_t)POINTS * 8 : 0);
    CHECK_OK(hem_exchange_destroy(exchange));
    for (int i = 0; i < harness_rounds(300); i++) {
        harness_rng rng = harness_rng_of(seed, (uint64_t)i, 0);

        harness_step("hurry", (uint64_t)i);
        late += hurry(&r, &rng, (uint64_t)i + 1);
    }
    if (r.me == 0)
        printf("%d runs timed out\n", late);
    hem_pattern_destroy(r.pattern);
    CHECK_OK(hem_memory_free(memory));
    harness_destroy(r.window);
    harness_close(world, HEM_OK);
    return 0;
}
