/*
 * A reverse run combines halo values into their owners': sum, min, max and replace give what a global
 * reference gives, on grids, meshes and the cubed sphere; halos stay as they are. Forward and reverse
 * are each other's transpose in exact arithmetic. Sums of floating-point numbers come out in the order
 * of ranks and domains, with the same bits every time.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=120
 */
#include "coll_reference.h"
#include "halo_back.h"

struct rank {
    hem_world *world;
    int me;
    int size;
    uint64_t seed;
};

/* A case of any kind, with its pattern. */
struct thing {
    halo_grid g;
    halo_mesh m;
    halo_cube cube;
    halo_case c;
    hem_pattern *pattern;
    halo_copies copies;
};

static struct thing make_thing(struct rank *r, int kind, bool periodic, harness_rng *rng) {
    struct thing t = {.pattern = NULL};

    if (kind == 0) {
        t.g = halo_grid_random(1 + (int)harness_below(rng, 3), 9, 9, r->size, rng);
        for (int i = 0; i < t.g.dims && !periodic; i++)
            t.g.periodic[i] = false;
        t.c = halo_grid_case(&t.g, r->size);
        t.pattern = halo_grid_pattern(r->world, &t.g, &t.c);
    } else if (kind == 1) {
        t.m = halo_mesh_ball(1 + (int)harness_below(rng, 2));
        halo_mesh_deal(&t.m, 1 + (int)harness_below(rng, 20), r->size, harness_below(rng, 2), rng);
        t.c = halo_mesh_case(&t.m, r->size, *rng);
        t.pattern = halo_mesh_pattern(r->world, &t.c, HALO_BY_POSITION);
    } else {
        t.cube = halo_cube_random(1 + (int64_t)harness_below(rng, 8), 4, r->size, rng);
        t.c = halo_cube_case(&t.cube, r->size);
        t.pattern = halo_cube_pattern(r->world, &t.cube, &t.c);
    }
    t.copies = halo_copies_of(&t.c);
    return t;
}

static void free_thing(struct thing *t) {
    hem_pattern_destroy(t->pattern);
    free(t->copies.all);
    halo_case_free(&t->c);
    halo_grid_free(&t->g);
    halo_mesh_free(&t->m);
    halo_cube_free(&t->cube);
}

/* Every combination against the reference. */

static halo_spec number_spec(const struct thing *t, int kind, harness_rng *rng) {
    halo_spec spec = halo_spec_random(rng, 3);

    spec.numbers = true;
    if (!spec.dtype || t->copies.most > 100)
        spec.dtype = HEM_I64;
    if (spec.dtype == HEM_BYTE)
        spec.dtype = HEM_U8;
    spec.element = 0;
    if (kind == 2 && harness_below(rng, 2)) {
        spec.dtype = harness_below(rng, 2) ? HEM_F64 : HEM_I32;
        spec.components = 2;
        spec.flags = HEM_FIELD_VECTOR;
    }
    return spec;
}

static bool can(const halo_spec *spec, hem_combine combine) {
    static const hem_reduction ops[] = {0, HEM_SUM, HEM_MIN, HEM_MAX, 0};

    return combine == HEM_COMBINE_REPLACE || coll_supported(spec->dtype, ops[combine]);
}

static void combine_all(struct rank *r, int kind, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, (uint64_t)kind);
    harness_rng own = harness_rng_of(r->seed, number, 10 + (uint64_t)r->me);
    struct thing t = make_thing(r, kind, true, &rng);
    halo_spec specs[2] = {number_spec(&t, kind, &rng), number_spec(&t, kind, &rng)};
    halo_set s = {.world = r->world};
    hem_exchange *exchange;

    for (int i = 0; i < 2; i++)
        halo_set_add(&s, t.pattern, &t.c, &specs[i], (int)harness_below(&own, HALO_LAYOUTS),
                     (int)harness_below(&own, HALO_MEMORIES), &own);
    exchange = halo_set_exchange(&s);
    for (int i = 1; i <= HEM_COMBINE_REPLACE; i++) {
        hem_exchange_how how = {.struct_size = sizeof how, .combine = (hem_combine)i};

        halo_back_fill(&s, number + (uint64_t)i);
        if (!can(&specs[0], how.combine) || !can(&specs[1], how.combine)) {
            if (s.count)
                CHECK_STATUS(hem_exchange_run(exchange, &how, LIMIT), HEM_ERR_UNSUPPORTED);
            continue;
        }
        CHECK_OK(hem_exchange_run(exchange, &how, LIMIT));
        halo_back_expect(&s, &t.copies, &how, number + (uint64_t)i);
        halo_set_check(&s);
        /* And forward in between, so that the two share what they wait on. */
        halo_set_run(&s, exchange, NULL, number + 100 + (uint64_t)i);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    free_thing(&t);
}

/* <A x, y> = <x, A^T y>, modulo 2^64. */

static uint64_t weight(const halo_field *f, size_t k, size_t e) {
    harness_rng rng = harness_rng_of(f->spec.seed, (uint64_t)f->domain->id, k << 20 | e);

    return harness_random(&rng);
}

/* The sum over all cells of a kind of what is there times its weight; then put something there. */
static uint64_t dot_product(halo_set *s, int kind, int put_kind, bool put_weight) {
    uint64_t sum = 0;

    for (size_t i = 0; i < s->count; i++) {
        halo_field *f = &s->fields[i];

        for (size_t k = 0; k < f->domain->count; k++) {
            for (size_t e = 0; e < f->spec.levels * f->spec.components; e++) {
                unsigned char *at = halo_at(f, k, e / f->spec.components, e % f->spec.components);
                uint64_t w = weight(f, k, e);
                uint64_t v;

                memcpy(&v, at, 8);
                if (f->domain->cells[k].kind == kind)
                    sum += v * w;
                if (f->domain->cells[k].kind == put_kind)
                    memcpy(at, put_weight ? &w : &(uint64_t){0}, 8);
            }
        }
    }
    return sum;
}

static void transpose(struct rank *r, int kind, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, 20 + (uint64_t)kind);
    struct thing t = make_thing(r, kind, true, &rng);
    halo_spec spec = halo_spec_plain(harness_random(&rng));
    hem_exchange_how how = {.struct_size = sizeof how, .combine = HEM_COMBINE_SUM};
    halo_set s = {.world = r->world};
    uint64_t sums[2];
    uint64_t all[2];
    hem_exchange *exchange;

    spec.components = 2;
    spec.flags = kind == 2 ? HEM_FIELD_VECTOR : 0;
    spec.levels = 1 + harness_below(&rng, 3);
    halo_set_add(&s, t.pattern, &t.c, &spec, HALO_ANY, HALO_MIXED, &rng);
    exchange = halo_set_exchange(&s);
    halo_set_fill(&s, number);
    /* x: the weights of owned cells. */
    dot_product(&s, HALO_OWN, HALO_OWN, true);
    CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
    /* y: the weights of halo cells. */
    sums[0] = dot_product(&s, HALO_COPY, HALO_COPY, true);
    dot_product(&s, HALO_NONE, HALO_OWN, false);
    CHECK_OK(hem_exchange_run(exchange, &how, LIMIT));
    sums[1] = dot_product(&s, HALO_OWN, HALO_NONE, false);
    CHECK_OK(hem_allreduce(r->world, sums, all, 2, HEM_U64, HEM_SUM, LIMIT));
    CHECK_EQ(all[0], all[1]);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    free_thing(&t);
}

/* Numbers whose sum depends on the order. */

static double wild(int64_t key, int rank, size_t domain, uint64_t round) {
    harness_rng rng = harness_rng_of((uint64_t)key, (uint64_t)rank, domain * 64 + round);
    double v = (double)(harness_random(&rng) >> 11) + 1;

    for (size_t scale = harness_below(&rng, 40); scale > 0; scale--)
        v *= 0.25;
    return harness_below(&rng, 2) ? v : -v;
}

static void wild_fill(halo_set *s, const halo_copies *copies, uint64_t round) {
    halo_set_fill(s, round);
    for (size_t i = 0; i < s->count; i++) {
        halo_field *f = &s->fields[i];
        const halo_domain *d = f->domain;

        for (size_t k = 0; k < d->count; k++) {
            bool own = d->cells[k].kind == HALO_OWN;
            double v = wild(d->cells[k].key, own ? 999 : d->rank, own ? 0 : d->index, round);
            size_t count;
            const halo_copy *copy = halo_copies_find(copies, d->cells[k].key, &count);
            unsigned char *at = halo_at(f, k, 0, 0);

            if (!own && d->cells[k].kind != HALO_COPY)
                continue;
            memcpy(at, &v, 8);
            for (size_t n = 0; own && n < count; n++)
                v += wild(copy[n].key, copy[n].rank, copy[n].domain, round);
            memcpy(f->image + (at - f->base), &v, 8);
        }
    }
}

static void same_bits(struct rank *r, int kind, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, 40);
    struct thing t = make_thing(r, kind, false, &rng);
    hem_exchange_how how = {.struct_size = sizeof how, .combine = HEM_COMBINE_SUM};
    halo_spec spec = {.dtype = HEM_F64, .levels = 1, .components = 1, .seed = 2};
    halo_set s = {.world = r->world};
    hem_exchange *exchange;

    halo_set_add(&s, t.pattern, &t.c, &spec, HALO_C, HALO_MIXED, &rng);
    exchange = halo_set_exchange(&s);
    for (uint64_t round = 0; round < 6; round++) {
        wild_fill(&s, &t.copies, round / 2);
        if (r->me == (int)round % r->size)
            harness_sleep_ms(1);
        CHECK_OK(hem_exchange_run(exchange, &how, LIMIT));
        halo_set_check(&s);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    free_thing(&t);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.seed = harness_seed(world);
    for (int i = 0; i < harness_rounds(90); i++) {
        harness_step("transpose", (uint64_t)i);
        transpose(&r, i % 3, (uint64_t)i);
        harness_step("combine", (uint64_t)i);
        combine_all(&r, i % 3, (uint64_t)i);
        harness_step("order", (uint64_t)i);
        if (i % 3 < 2)
            same_bits(&r, i % 3, (uint64_t)i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
