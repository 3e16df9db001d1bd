/*
 * Exchanges of bad or disagreeing fields: memory that is too small, strides that are negative or
 * overflow, domains, types, numbers and flags that are none, fields that differ between ranks or are
 * missing on some domain. All ranks get the same error with a sentence, nobody gets an exchange, and
 * the world works afterwards.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "halo_bad.h"

enum {
    POINTS = 6,
    BINDINGS = 2,
    ANY_SIZE = HALO_ARG | HALO_RANGE | HALO_LIMIT
};

/* A two-dimensional grid, 4 x 4 per rank with a halo of 1, bound to two fields. */
struct rank {
    hem_world *world;
    hem_world *other; /**< another world of the same ranks, with a pattern */
    hem_pattern *pattern;
    hem_pattern *foreign;
    int me;
    int size;
    double memory[BINDINGS][POINTS * POINTS * 4];
    hem_binding b[BINDINGS + 1];
    hem_exchange_options o;
};

struct bad {
    const char *what;
    unsigned allowed;
    bool needs_two;
    const char *names;
    void (*spoil)(struct rank *r, hem_field *f);
};

static void small(struct rank *r, hem_field *f) {
    (void)r;
    f->bytes = POINTS * POINTS * 8 - 1;
}

static void small_with_levels(struct rank *r, hem_field *f) {
    (void)r;
    f->bytes = POINTS * POINTS * 8;
    f->level_stride = 8;
    f->stride[1] = 8;
    f->stride[0] = 8 * (POINTS + 1);
}

static void negative(struct rank *r, hem_field *f) {
    (void)r;
    f->stride[0] = -8 * POINTS;
    f->stride[1] = 8;
}

static void negative_level(struct rank *r, hem_field *f) {
    (void)r;
    f->stride[0] = 8 * POINTS * 2;
    f->stride[1] = 16;
    f->levels = 2;
    f->level_stride = -8;
}

static void one_stride(struct rank *r, hem_field *f) {
    (void)r;
    f->stride[0] = 8 * POINTS;
}

static void wide_stride(struct rank *r, hem_field *f) {
    (void)r;
    f->stride[0] = INT64_MAX / 2;
    f->stride[1] = 8;
    f->bytes = sizeof r->memory[0];
}

static void many_levels(struct rank *r, hem_field *f) {
    for (size_t i = 0; i < BINDINGS; i++)
        r->b[i].field.levels = SIZE_MAX / 16;
    f->levels = SIZE_MAX / 16;
}

static void no_memory(struct rank *r, hem_field *f) {
    (void)r;
    f->memory = NULL;
}

static void no_type(struct rank *r, hem_field *f) {
    (void)r;
    f->dtype = 0;
}

static void strange_type(struct rank *r, hem_field *f) {
    (void)r;
    f->dtype = (hem_dtype)99;
}

static void type_and_size(struct rank *r, hem_field *f) {
    (void)r;
    f->element = 3;
}

static void other_type(struct rank *r, hem_field *f) {
    (void)r;
    f->dtype = HEM_I64;
}

static void other_levels(struct rank *r, hem_field *f) {
    (void)r;
    f->levels = 2;
}

static void other_components(struct rank *r, hem_field *f) {
    (void)r;
    f->components = 3;
}

static void no_domain(struct rank *r, hem_field *f) {
    (void)r;
    f->domain = 1;
}

static void strange_flag(struct rank *r, hem_field *f) {
    (void)r;
    f->flags = 1u << 20;
}

static void vector_of_one(struct rank *r, hem_field *f) {
    (void)f;
    for (size_t i = 0; i < BINDINGS; i++)
        r->b[i].field.flags = HEM_FIELD_VECTOR;
}

static void no_struct_size(struct rank *r, hem_field *f) {
    (void)r;
    f->struct_size = 0;
}

static void low_origin(struct rank *r, hem_field *f) {
    (void)r;
    f->has_origin = true;
    f->origin[1] = 1;
}

static void high_number(struct rank *r, hem_field *f) {
    (void)f;
    r->b[0].number = 65;
    r->b[1].number = 1;
}

static void same_number(struct rank *r, hem_field *f) {
    (void)f;
    r->b[0].number = r->b[1].number = 3;
}

static void half_numbered(struct rank *r, hem_field *f) {
    (void)f;
    r->b[1].number = 3;
}

static void other_numbers(struct rank *r, hem_field *f) {
    (void)f;
    r->b[0].number = 1;
    r->b[1].number = 3;
}

static void fewer_fields(struct rank *r, hem_field *f) {
    (void)f;
    r->o.count = 1;
}

static void more_fields(struct rank *r, hem_field *f) {
    (void)f;
    r->o.count = BINDINGS + 1;
}

static void no_fields(struct rank *r, hem_field *f) {
    (void)f;
    r->o.count = 0;
}

static void no_bindings(struct rank *r, hem_field *f) {
    (void)f;
    r->o.bindings = NULL;
}

static void no_pattern(struct rank *r, hem_field *f) {
    (void)f;
    r->b[0].pattern = NULL;
}

static void foreign_pattern(struct rank *r, hem_field *f) {
    (void)f;
    r->b[0].pattern = r->foreign;
}

static void strange_limit(struct rank *r, hem_field *f) {
    (void)f;
    r->o.setup_timeout_ns = -9;
}

static void strange_run_limit(struct rank *r, hem_field *f) {
    (void)f;
    r->o.run_timeout_ns = -9;
}

static void no_size(struct rank *r, hem_field *f) {
    (void)f;
    r->o.struct_size = 1;
}

static const struct bad table[] = {
    {"memory that is a byte short", HALO_RANGE, false, NULL, small},
    {"memory too small for its strides", HALO_RANGE, false, NULL, small_with_levels},
    {"a negative stride", HALO_ARG, false, "stride", negative},
    {"a negative stride of levels", HALO_ARG | HALO_MISMATCH, false, NULL, negative_level},
    {"only one of two strides", HALO_ARG, false, "stride", one_stride},
    {"a stride that overflows", ANY_SIZE, false, NULL, wide_stride},
    {"levels that overflow", ANY_SIZE | HALO_MISMATCH, false, NULL, many_levels},
    {"no memory", HALO_ARG, false, NULL, no_memory},
    {"no type and no size", HALO_ARG, false, NULL, no_type},
    {"a type that is none", HALO_ARG, false, NULL, strange_type},
    {"a type and another size", HALO_ARG, false, NULL, type_and_size},
    {"another type", HALO_MISMATCH, true, NULL, other_type},
    {"other levels", HALO_MISMATCH, true, NULL, other_levels},
    {"other components", HALO_MISMATCH, true, NULL, other_components},
    {"a domain that is none", HALO_RANGE, false, NULL, no_domain},
    {"a flag that is none", HALO_ARG, false, NULL, strange_flag},
    {"a vector of one component", HALO_ARG | HALO_MISMATCH, false, NULL, vector_of_one},
    {"a field without its size", HALO_ARG, false, NULL, no_struct_size},
    {"no room for the halo", HALO_RANGE, false, NULL, low_origin},
    {"a field's number above 64", HALO_RANGE | HALO_LIMIT, false, NULL, high_number},
    {"two fields of one number", HALO_ARG, false, NULL, same_number},
    {"some fields with numbers", HALO_ARG, false, NULL, half_numbered},
    {"other numbers", HALO_MISMATCH, true, NULL, other_numbers},
    {"fewer fields", HALO_MISMATCH, true, NULL, fewer_fields},
    {"more fields", HALO_MISMATCH, true, NULL, more_fields},
    {"no fields where others have some", HALO_MISMATCH, true, NULL, no_fields},
    {"bindings that are nowhere", HALO_ARG, false, NULL, no_bindings},
    {"no pattern", HALO_ARG, false, NULL, no_pattern},
    {"a pattern of another world", HALO_ARG | HALO_MISMATCH, false, NULL, foreign_pattern},
    {"a strange time limit", HALO_ARG, false, NULL, strange_limit},
    {"a strange time limit of runs", HALO_ARG, false, NULL, strange_run_limit},
    {"options without their size", HALO_ARG, false, NULL, no_size},
};

static hem_pattern *make_pattern(hem_world *world) {
    int size = hem_world_size(world);
    halo_grid g = {.dims = 2, .extent = {4 * size, 4}, .low = {1, 1}, .high = {1, 1}};
    hem_pattern *pattern;

    g.periodic[0] = g.periodic[1] = true;
    for (int i = 0; i < size; i++)
        halo_grid_add(&g, &(hem_box){{4 * i, 0}, {4, 4}}, i);
    pattern = halo_grid_pattern(world, &g, NULL);
    halo_grid_free(&g);
    return pattern;
}

static void fresh(struct rank *r) {
    for (int i = 0; i < BINDINGS + 1; i++)
        r->b[i] = (hem_binding){
            .pattern = r->pattern,
            .field = {.struct_size = sizeof(hem_field),
                      .memory = r->memory[i % BINDINGS],
                      .dtype = HEM_F64},
        };
    r->o = (hem_exchange_options){.struct_size = sizeof r->o, .bindings = r->b, .count = BINDINGS};
}

/* The last rank is the odd one. */
static void one(struct rank *r, const struct bad *b) {
    hem_exchange *exchange = NULL;

    fresh(r);
    if (r->me == r->size - 1)
        b->spoil(r, &r->b[BINDINGS - 1].field);
    halo_refused(r->world, b->what, hem_exchange_create(r->world, &r->o, &exchange), b->allowed);
    if (b->names)
        CHECK_SENTENCE(b->names);
    CHECK(exchange == NULL);
}

/* One domain of two has a field less than the other. */
static void uneven_domains(struct rank *r) {
    hem_grid_domain d[2] = {{.id = 1, .box = {{8 * r->me}, {4}}},
                            {.id = 2, .box = {{8 * r->me + 4}, {4}}}};
    hem_grid_options g = {.struct_size = sizeof g, .dims = 1, .halo_low = {1}, .halo_high = {1}};
    hem_pattern *pattern = NULL;
    hem_exchange *exchange = NULL;

    g.extent[0] = 8 * r->size;
    g.domains = d;
    g.domain_count = 2;
    CHECK_OK(hem_pattern_grid(r->world, &g, &pattern));
    fresh(r);
    for (int i = 0; i < 3; i++) {
        r->b[i].pattern = pattern;
        r->b[i].field.domain = (size_t)i % 2;
    }
    r->o.count = r->me == 0 ? 3 : 2;
    halo_refused(r->world, "a domain without its field",
                 hem_exchange_create(r->world, &r->o, &exchange), HALO_ARG | HALO_MISMATCH);
    CHECK(exchange == NULL);
    hem_pattern_destroy(pattern);
}

/* Numbers cannot be negated if they have no sign. */
static void vector_of_bytes(struct rank *r) {
    hem_sphere_domain d = {1, 0, {{0, 0}, {4, 4}}};
    hem_sphere_options o = {.struct_size = sizeof o, .cells = 4, .halo = 1, .domains = &d};
    hem_pattern *pattern = NULL;
    hem_exchange *exchange = NULL;

    o.domain_count = r->me == 0;
    CHECK_OK(hem_pattern_sphere(r->world, &o, &pattern));
    fresh(r);
    r->o.count = r->me == 0;
    r->b[0].pattern = pattern;
    r->b[0].field.dtype = HEM_U32;
    r->b[0].field.components = 2;
    r->b[0].field.flags = HEM_FIELD_VECTOR;
    halo_refused(r->world, "a vector without signs",
                 hem_exchange_create(r->world, &r->o, &exchange), HALO_ARG | HALO_UNSUPPORTED);
    CHECK(exchange == NULL);
    hem_pattern_destroy(pattern);
}

int rank_main(hem_world *world) {
    struct rank *r = calloc(1, sizeof *r);

    CHECK(r != NULL);
    r->world = world;
    r->me = hem_world_rank(world);
    r->size = hem_world_size(world);
    CHECK_OK(hem_world_split(world, 0, 0, &r->other));
    r->pattern = make_pattern(world);
    r->foreign = make_pattern(r->other);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        harness_step(table[i].what, i);
        if (!table[i].needs_two || r->size > 1)
            one(r, &table[i]);
        if (i % 4 == 0)
            halo_works(world);
    }
    uneven_domains(r);
    vector_of_bytes(r);
    halo_works(world);
    hem_pattern_destroy(r->pattern);
    hem_pattern_destroy(r->foreign);
    CHECK_OK(hem_world_close(r->other));
    free(r);
    harness_close(world, HEM_OK);
    return 0;
}
