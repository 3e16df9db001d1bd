/*
 * A run may take part of the fields and of the sides, forward and reverse, another part each time;
 * the rest stays as it is. Ranks that disagree get an error, never a hang or silence, and other
 * exchanges of the same fields work on.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=90
 */
#include "halo_back.h"

enum {
    FIELDS = 5
};

struct rank {
    hem_world *world;
    int me;
    int size;
    uint64_t seed;
};

static hem_exchange_how random_how(harness_rng *rng, bool numbered) {
    hem_exchange_how how = {.struct_size = sizeof how};

    if (harness_below(rng, 3))
        how.sides = (uint32_t)harness_below(rng, 256);
    if (harness_below(rng, 3) == 0)
        how.fields = harness_random(rng);
    else if (harness_below(rng, 2))
        how.fields =
            1ull << (numbered ? 13 * harness_below(rng, FIELDS) : harness_below(rng, FIELDS));
    if (harness_below(rng, 2))
        how.combine = (hem_combine)(1 + harness_below(rng, HEM_COMBINE_REPLACE));
    return how;
}

static void run_parts(halo_set *s, hem_exchange *exchange, const halo_copies *copies,
                      const hem_exchange_how *how, uint64_t round) {
    if (!how->combine) {
        halo_set_run(s, exchange, how, round);
        return;
    }
    halo_back_fill(s, round);
    CHECK_OK(hem_exchange_run(exchange, how, LIMIT));
    halo_back_expect(s, copies, how, round);
    halo_set_check(s);
}

/* Of a grid, whose halos have sides; and of a mesh, whose halos have none and always take part. */
static void parts_of(struct rank *r, bool mesh, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, mesh);
    harness_rng own = harness_rng_of(r->seed, number, 3 + (uint64_t)r->me);
    halo_grid g = halo_grid_random(1 + (int)harness_below(&rng, 4), 7, 10, r->size, &rng);
    halo_mesh m = halo_mesh_torus(5, 7);
    bool numbered = harness_below(&rng, 2);
    halo_set s = {.world = r->world};
    halo_copies copies;
    hem_pattern *pattern;
    hem_exchange *exchange;
    halo_case c;

    halo_mesh_deal(&m, 2 * r->size, r->size, true, &rng);
    c = mesh ? halo_mesh_case(&m, r->size, rng) : halo_grid_case(&g, r->size);
    pattern =
        mesh ? halo_mesh_pattern(r->world, &c, HALO_BY_ID) : halo_grid_pattern(r->world, &g, &c);
    copies = halo_copies_of(&c);
    for (uint32_t i = 0; i < FIELDS; i++) {
        halo_spec spec = {.dtype = i % 2 ? HEM_I32 : HEM_F64,
                          .levels = 1 + harness_below(&rng, 3),
                          .components = 1 + i % 2,
                          .number = numbered ? 1 + 13 * i : 0,
                          .seed = harness_random(&rng)};

        halo_set_add(&s, pattern, &c, &spec, (int)harness_below(&own, HALO_LAYOUTS), HALO_MIXED,
                     &own);
    }
    exchange = halo_set_exchange(&s);
    for (uint64_t round = 0; round < 24; round++) {
        hem_exchange_how how = random_how(&rng, numbered);

        run_parts(&s, exchange, &copies, &how, round);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    hem_pattern_destroy(pattern);
    halo_set_free(&s);
    free(copies.all);
    halo_case_free(&c);
    halo_mesh_free(&m);
    halo_grid_free(&g);
}

/* Ranks around a ring, all of which are neighbours of rank 0 if they are up to three. */
struct ring {
    halo_grid g;
    halo_case c;
    halo_set s;
    hem_pattern *pattern;
};

static struct ring make_ring(struct rank *r, harness_rng *rng) {
    struct ring ring = {.s = {.world = r->world}};

    ring.g = (halo_grid){.dims = 1, .extent = {8 * r->size}, .low = {2}, .high = {3}};
    ring.g.periodic[0] = true;
    for (int i = 0; i < r->size; i++)
        halo_grid_add(&ring.g, &(hem_box){{8 * i}, {8}}, i);
    ring.c = halo_grid_case(&ring.g, r->size);
    ring.pattern = halo_grid_pattern(r->world, &ring.g, &ring.c);
    for (uint64_t i = 0; i < 2; i++) {
        halo_spec spec = halo_spec_plain(i);

        spec.levels = 1 + 20 * i;
        halo_set_add(&ring.s, ring.pattern, &ring.c, &spec, HALO_C, HALO_MIXED, rng);
    }
    return ring;
}

static void free_ring(struct ring *ring) {
    hem_pattern_destroy(ring->pattern);
    halo_set_free(&ring->s);
    halo_case_free(&ring->c);
    halo_grid_free(&ring->g);
}

/* What rank 0 does otherwise than the rest. */
static hem_exchange_how strange(int kind) {
    hem_exchange_how how = {.struct_size = sizeof how};

    if (kind == 0)
        how.fields = 1;
    if (kind == 1)
        how.sides = HEM_SIDE_LOW(0);
    if (kind == 2)
        how.combine = HEM_COMBINE_SUM;
    if (kind == 3)
        how.combine = HEM_COMBINE_MAX;
    return how;
}

/* Fields and directions that differ show in the message, or in nobody sending one. */
static void disagree(struct rank *r, int kind) {
    harness_rng rng = harness_rng_of(r->seed, 0, 9);
    struct ring ring = make_ring(r, &rng);
    hem_exchange *other = halo_set_exchange(&ring.s);
    hem_exchange_options options = halo_set_options(&ring.s);
    hem_exchange *exchange = NULL;
    hem_exchange_how odd = strange(kind);
    hem_exchange_how even = {.struct_size = sizeof even};
    hem_status status;
    int64_t began;

    if (kind == 3)
        even.combine = HEM_COMBINE_MIN;
    /* Which is also how long giving it up waits for a run that does not end. */
    options.setup_timeout_ns = HEM_SEC(2);
    CHECK_OK(hem_exchange_create(r->world, &options, &exchange));
    halo_set_run(&ring.s, exchange, NULL, 1);
    began = harness_now();
    status = hem_exchange_run(exchange, r->me ? &even : &odd, HEM_SEC(1));
    CHECK(harness_now() - began < HEM_SEC(1) + 10 * harness_slack());
    if (status != HEM_ERR_MISMATCH && status != HEM_ERR_REVOKED && status != HEM_ERR_TIMEOUT)
        harness_fail(__FILE__, __LINE__, "disagreement %d gave %s: %s", kind,
                     hem_status_name(status), hem_last_error());
    CHECK(hem_last_error()[0] != 0);
    if (status != HEM_ERR_TIMEOUT)
        CHECK_STATUS(hem_exchange_run(exchange, NULL, LIMIT), HEM_ERR_REVOKED);
    /* The same fields, bound again, were not concerned. */
    harness_same(r->world, 1);
    hem_exchange_destroy(exchange);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&ring.s, other, NULL, 10 + round);
    CHECK_OK(hem_exchange_destroy(other));
    free_ring(&ring);
}

static void bad_how(struct rank *r) {
    harness_rng rng = harness_rng_of(r->seed, 0, 11);
    struct ring ring = make_ring(r, &rng);
    hem_exchange *exchange = halo_set_exchange(&ring.s);
    hem_exchange_how how = {.struct_size = sizeof how, .combine = 5};
    struct {
        hem_exchange_how how;
        uint64_t more;
    } longer = {.how = {.struct_size = sizeof longer}, .more = 1};

    CHECK_STATUS(hem_exchange_run(exchange, &how, LIMIT), HEM_ERR_ARG);
    CHECK(strstr(hem_last_error(), "hem_exchange_run: 5 is no way") != NULL);
    CHECK_STATUS(hem_exchange_prepare(exchange, &how), HEM_ERR_ARG);
    CHECK(strstr(hem_last_error(), "hem_exchange_prepare: 5 is no way") != NULL);
    CHECK_STATUS(hem_exchange_start(exchange, &longer.how), HEM_ERR_ARG);
    how = (hem_exchange_how){.struct_size = 0};
    CHECK_STATUS(hem_exchange_start(exchange, &how), HEM_ERR_ARG);
    CHECK_STATUS(hem_exchange_prepare(exchange, &how), HEM_ERR_ARG);
    CHECK_STATUS(hem_exchange_prepare(NULL, NULL), HEM_ERR_ARG);
    CHECK_OK(hem_exchange_prepare(exchange, NULL));
    CHECK_STATUS(hem_exchange_run(exchange, NULL, -5), HEM_ERR_ARG);
    /* A longer struct whose tail is zero means what the short one does. */
    longer.more = 0;
    halo_set_run(&ring.s, exchange, &longer.how, 5);
    CHECK_OK(hem_exchange_destroy(exchange));
    free_ring(&ring);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.seed = harness_seed(world);
    bad_how(&r);
    for (int i = 0; i < harness_rounds(40); i++) {
        harness_step("parts", (uint64_t)i);
        parts_of(&r, i % 4 == 3, (uint64_t)i);
    }
    for (int kind = 0; kind < 4 && (r.size == 2 || r.size == 3); kind++) {
        harness_step("disagreement", (uint64_t)kind);
        disagree(&r, kind);
    }
    harness_close(world, HEM_OK);
    return 0;
}
