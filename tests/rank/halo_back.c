#include "halo_back.h"

static int by_place(const void *a, const void *b) {
    const halo_copy *x = a;
    const halo_copy *y = b;

    if (x->key != y->key)
        return (x->key > y->key) - (x->key < y->key);
    if (x->rank != y->rank)
        return (x->rank > y->rank) - (x->rank < y->rank);
    return (x->domain > y->domain) - (x->domain < y->domain);
}

halo_copies halo_copies_of(const halo_case *c) {
    halo_copies copies = {0};
    size_t room = 1;
    size_t run = 0;

    for (size_t i = 0; i < c->count; i++)
        room += c->domains[i].count;
    copies.all = malloc(room * sizeof *copies.all);
    CHECK(copies.all != NULL);
    for (size_t i = 0; i < c->count; i++) {
        const halo_domain *d = &c->domains[i];

        for (size_t k = 0; k < d->count; k++)
            if (d->cells[k].kind == HALO_COPY)
                copies.all[copies.count++] =
                    (halo_copy){d->cells[k].key, d->rank, d->index, &d->cells[k]};
    }
    qsort(copies.all, copies.count, sizeof *copies.all, by_place);
    for (size_t i = 0; i < copies.count; i++) {
        run = i && copies.all[i].key == copies.all[i - 1].key ? run + 1 : 1;
        if (run > copies.most)
            copies.most = run;
    }
    return copies;
}

const halo_copy *halo_copies_find(const halo_copies *copies, int64_t key, size_t *count_p) {
    size_t low = 0;
    size_t high = copies->count;
    size_t end;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (copies->all[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < copies->count && copies->all[end].key == key;)
        end++;
    *count_p = end - low;
    return copies->all + low;
}

/* A number that sums of a hundred of do not leave the exact range of any floating type. */
static int64_t number_of(const halo_spec *spec, uint64_t round, int64_t key, int rank,
                         size_t domain, size_t element) {
    harness_rng rng = harness_rng_of(spec->seed + round, (uint64_t)key,
                                     ((uint64_t)rank << 32 | domain << 16) + element);

    if (spec->dtype == HEM_BOOL)
        return (int64_t)harness_below(&rng, 2);
    if (spec->dtype == HEM_BYTE || (spec->dtype >= HEM_U8 && spec->dtype <= HEM_U64))
        return (int64_t)harness_below(&rng, 5);
    /* A vector's zero may come back with a sign. */
    if (spec->flags & HEM_FIELD_VECTOR)
        return (harness_below(&rng, 2) ? 1 : -1) * (1 + (int64_t)harness_below(&rng, 2));
    return (int64_t)harness_below(&rng, 5) - 2;
}

enum {
    OWNERS = 1000 /**< stands for the rank of an owner's own number */
};

void halo_back_fill(halo_set *s, uint64_t round) {
    int me = hem_world_rank(s->world);

    halo_set_fill(s, round);
    for (size_t i = 0; i < s->count; i++) {
        halo_field *f = &s->fields[i];
        const halo_domain *d = f->domain;
        size_t elements = f->spec.levels * f->spec.components;

        for (size_t k = 0; k < d->count; k++) {
            bool own = d->cells[k].kind == HALO_OWN;

            for (size_t e = 0; e < elements && (own || d->cells[k].kind == HALO_COPY); e++)
                halo_put_number(f->spec.dtype,
                                number_of(&f->spec, round, d->cells[k].key, own ? OWNERS : me,
                                          own ? 0 : d->index, e),
                                halo_at(f, k, e / f->spec.components, e % f->spec.components));
        }
        memcpy(f->image, f->base, f->size);
    }
}

static int64_t combine(hem_combine how, hem_dtype dtype, int64_t a, int64_t b) {
    if (how == HEM_COMBINE_MIN)
        return a < b ? a : b;
    if (how == HEM_COMBINE_MAX || (how == HEM_COMBINE_SUM && dtype == HEM_BOOL))
        return a > b ? a : b;
    return how == HEM_COMBINE_SUM ? a + b : b;
}

/* What a copy says of component `c` of its owner: a vector is turned back. */
static int64_t said_by(const halo_spec *spec, const halo_copy *copy, uint64_t round, size_t level,
                       size_t c) {
    int64_t sum = 0;
    size_t first = level * spec->components;

    if (!(spec->flags & HEM_FIELD_VECTOR))
        return number_of(spec, round, copy->key, copy->rank, copy->domain, first + c);
    for (size_t from = 0; from < 2; from++)
        sum += copy->cell->turn[2 * from + c] *
               number_of(spec, round, copy->key, copy->rank, copy->domain, first + from);
    return sum;
}

static void expect_cell(halo_field *f, size_t k, const halo_copies *copies,
                        const hem_exchange_how *how, uint64_t round) {
    const halo_spec *spec = &f->spec;
    int64_t key = f->domain->cells[k].key;
    size_t count;
    const halo_copy *copy = halo_copies_find(copies, key, &count);

    for (size_t l = 0; l < spec->levels; l++) {
        for (size_t c = 0; c < spec->components; c++) {
            int64_t v = number_of(spec, round, key, OWNERS, 0, l * spec->components + c);

            for (size_t i = 0; i < count; i++)
                if (!how->sides || !(copy[i].cell->sides & ~how->sides))
                    v = combine(how->combine, spec->dtype, v, said_by(spec, &copy[i], round, l, c));
            halo_put_number(spec->dtype, v, f->image + (halo_at(f, k, l, c) - f->base));
        }
    }
}

void halo_back_expect(halo_set *s, const halo_copies *copies, const hem_exchange_how *how,
                      uint64_t round) {
    for (size_t i = 0; i < s->count; i++) {
        halo_field *f = &s->fields[i];

        if (f->spec.flags & HEM_FIELD_READ_ONLY)
            continue;
        if (how->fields && !(how->fields >> (f->number - 1) & 1))
            continue;
        for (size_t k = 0; k < f->domain->count; k++)
            if (f->domain->cells[k].kind == HALO_OWN)
                expect_cell(f, k, copies, how, round);
    }
}
