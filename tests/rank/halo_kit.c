/* Cases and sets; see halo_kit.h. */
#include "halo_kit.h"

/* Cases. */

halo_domain *halo_case_add(halo_case *c, int rank, int dims, const int64_t *shape) {
    halo_domain *d;

    c->domains = realloc(c->domains, (c->count + 1) * sizeof *c->domains);
    CHECK(c->domains != NULL);
    d = &c->domains[c->count];
    *d = (halo_domain){.rank = rank, .dims = dims, .count = 1};
    if (c->count && d[-1].rank == rank)
        d->index = d[-1].index + 1;
    for (int i = 0; i < dims; i++) {
        d->shape[i] = shape[i];
        d->count *= (size_t)shape[i];
    }
    d->cells = calloc(d->count + 1, sizeof *d->cells);
    CHECK(d->cells != NULL);
    c->count++;
    return d;
}

void halo_case_free(halo_case *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->domains[i].cells);
    free(c->domains);
    *c = (halo_case){0};
}

size_t halo_case_of(const halo_case *c, int rank, halo_domain **first_p) {
    size_t count = 0;

    *first_p = NULL;
    for (size_t i = 0; i < c->count; i++) {
        if (c->domains[i].rank != rank)
            continue;
        if (count++ == 0)
            *first_p = &c->domains[i];
    }
    return count;
}

/* What the cells of all domains say of rank `me`: points received from and sent to each rank. */
struct tally {
    uint64_t *recv;
    uint64_t *send;
    uint64_t holes;
    size_t domains;
    int dims;
};

static struct tally count_up(const halo_case *c, int me) {
    struct tally t = {.recv = calloc((size_t)c->ranks, 8), .send = calloc((size_t)c->ranks, 8)};

    CHECK(t.recv && t.send);
    for (size_t i = 0; i < c->count; i++) {
        const halo_domain *d = &c->domains[i];

        t.dims = d->dims;
        t.domains += d->rank == me;
        for (size_t k = 0; k < d->count; k++) {
            const halo_cell *cell = &d->cells[k];

            t.holes += d->rank == me && cell->kind == HALO_HOLE;
            if (cell->kind != HALO_COPY)
                continue;
            if (d->rank == me)
                t.recv[cell->owner]++;
            if (cell->owner == me)
                t.send[d->rank]++;
        }
    }
    return t;
}

static void check_neighbours(const struct tally *t, const halo_case *c, int me,
                             const hem_pattern *pattern, const hem_pattern_facts *facts) {
    size_t n = 0;
    uint64_t sent = 0;
    uint64_t received = 0;
    hem_neighbour got;

    for (int peer = 0; peer < c->ranks; peer++) {
        if (peer == me || t->recv[peer] + t->send[peer] == 0)
            continue;
        CHECK_OK(hem_pattern_neighbour(pattern, n++, &got));
        CHECK_EQ(got.rank, peer);
        CHECK_EQ(got.send_points, t->send[peer]);
        CHECK_EQ(got.recv_points, t->recv[peer]);
        sent += got.send_points;
        received += got.recv_points;
    }
    CHECK_EQ(facts->neighbours, n);
    CHECK_EQ(facts->send_points, sent);
    CHECK_EQ(facts->recv_points, received);
    CHECK_STATUS(hem_pattern_neighbour(pattern, n, &got), HEM_ERR_RANGE);
}

void halo_check_facts(const halo_case *c, const hem_world *world, const hem_pattern *pattern) {
    int me = hem_world_rank(world);
    hem_pattern_facts facts = {.struct_size = sizeof facts};
    struct tally t = count_up(c, me);

    CHECK_OK(hem_pattern_info(pattern, &facts));
    CHECK_EQ(facts.domains, t.domains);
    if (c->count)
        CHECK_EQ(facts.dims, t.dims);
    CHECK_EQ(facts.local_points, t.recv[me]);
    CHECK_EQ(facts.holes, t.holes);
    check_neighbours(&t, c, me, pattern, &facts);
    free(t.recv);
    free(t.send);
}

/* Sets. */

static halo_field *grow(halo_set *s) {
    s->fields = realloc(s->fields, (s->count + 1) * sizeof *s->fields);
    s->bindings = realloc(s->bindings, (s->count + 1) * sizeof *s->bindings);
    CHECK(s->fields && s->bindings);
    s->bindings[s->count] = (hem_binding){0};
    return &s->fields[s->count++];
}

/* How many fields the domain has already. */
static uint32_t number_of(const halo_set *s, const halo_domain *d) {
    uint32_t n = 0;

    for (size_t i = 0; i < s->count; i++)
        n += s->fields[i].domain == d;
    return n;
}

void halo_set_add(halo_set *s, const hem_pattern *pattern, const halo_case *c,
                  const halo_spec *spec, int layout, int memory, harness_rng *rng) {
    halo_domain *mine;
    size_t n = halo_case_of(c, hem_world_rank(s->world), &mine);

    for (size_t i = 0; i < n; i++) {
        uint32_t counted = number_of(s, &mine[i]) + 1;
        halo_field *f = grow(s);
        hem_binding *b = &s->bindings[s->count - 1];

        *f = (halo_field){.domain = &mine[i], .spec = *spec};
        f->number = spec->number ? spec->number : counted;
        halo_field_make(s, f, layout, memory, rng);
        b->pattern = pattern;
        b->field = f->field;
        b->number = spec->number;
    }
}

void halo_set_shuffle(halo_set *s, harness_rng *rng) {
    for (size_t i = s->count; i > 1; i--) {
        size_t j = harness_below(rng, i);
        hem_binding *a = &s->bindings[i - 1];
        hem_binding *b = &s->bindings[j];
        hem_binding kept = *a;
        bool free_to_move = a->number && b->number;

        /* Neighbours of different domains or patterns may always change places. */
        if (!free_to_move) {
            b = a - 1;
            if (a->field.domain == b->field.domain && a->pattern == b->pattern)
                continue;
        }
        *a = *b;
        *b = kept;
    }
}

hem_exchange_options halo_set_options(const halo_set *s) {
    return (hem_exchange_options){
        .struct_size = sizeof(hem_exchange_options),
        .bindings = s->bindings,
        .count = s->count,
    };
}

hem_exchange *halo_set_exchange(halo_set *s) {
    hem_exchange_options options = halo_set_options(s);
    hem_exchange *exchange = NULL;

    CHECK_OK(hem_exchange_create(s->world, &options, &exchange));
    CHECK(exchange != NULL);
    return exchange;
}

void halo_set_free(halo_set *s) {
    for (size_t i = 0; i < s->count; i++) {
        halo_field *f = &s->fields[i];

        if (f->memory)
            CHECK_OK(hem_memory_free(f->memory));
        else if (!f->pooled)
            free(f->base);
        free(f->image);
    }
    free(s->fields);
    free(s->bindings);
    s->fields = NULL;
    s->bindings = NULL;
    s->count = 0;
    s->pool_used = 0;
}

void halo_set_run(halo_set *s, hem_exchange *exchange, const hem_exchange_how *how,
                  uint64_t round) {
    halo_set_fill(s, round);
    CHECK_OK(hem_exchange_run(exchange, how, LIMIT));
    halo_set_expect(s, how, round);
    halo_set_check(s);
}

/* Specs. */

halo_spec halo_spec_plain(uint64_t seed) {
    return (halo_spec){.dtype = HEM_I64, .levels = 1, .components = 1, .seed = seed};
}

halo_spec halo_spec_random(harness_rng *rng, size_t most) {
    static const size_t odd[] = {1, 3, 5, 7, 12, 24, 33, 40, 100};
    halo_spec spec = {
        .levels = 1,
        .components = 1,
        .seed = harness_random(rng),
        .dtype = (hem_dtype)harness_below(rng, HEM_BOOL + 1),
    };

    if (!spec.dtype)
        spec.element = odd[harness_below(rng, sizeof odd / sizeof *odd)];
    if (harness_below(rng, 2))
        spec.levels = 1 + harness_below(rng, most);
    if (harness_below(rng, 2))
        spec.components = 1 + harness_below(rng, most);
    return spec;
}
