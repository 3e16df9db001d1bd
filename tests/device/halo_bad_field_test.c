/*
 * What tests/rank/halo_bad_field_test.c promises, of fields in device memory and for each way into halos: bad or
 * disagreeing fields give all ranks the same error with a sentence, nobody gets an exchange, and the next one
 * works, on the device and on the host. Beside those of the host: a way that is none, ways that differ, and
 * what copy engines have no use for, a field in host memory or a vector that changes its sign.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "../rank/halo_bad.h"
#ifdef __cplusplus
}
#endif

enum {
    POINTS = 6,
    CELLS = POINTS * POINTS,
    BINDINGS = 2,
    ROOM = CELLS * 4, /* doubles of a field */
    ANY_SIZE = HALO_ARG | HALO_RANGE | HALO_LIMIT
};

/* A two-dimensional grid, 4 x 4 per rank with a halo of 1, bound to two fields. */
typedef struct test {
    hem_world *world;
    hem_world *other; /* another world of the same ranks, with a pattern */
    hem_pattern *pattern;
    hem_pattern *foreign;
    int me;
    int size;
    hem_exchange_way way;
    double *memory[BINDINGS]; /* on the device */
    double plain[ROOM];
    hem_binding b[BINDINGS + 1];
    hem_exchange_options o;
} test;

typedef struct bad {
    const char *what;
    unsigned allowed;
    bool needs_two;
    const char *names;
    void (*spoil)(test *t, hem_field *f);
} bad;

static void short_memory(test *t, hem_field *f) {
    (void)t;
    f->bytes = CELLS * 8 - 1;
}

static void short_with_levels(test *t, hem_field *f) {
    (void)t;
    f->bytes = CELLS * 8;
    f->level_stride = 8;
    f->stride[1] = 8;
    f->stride[0] = 8 * (POINTS + 1);
}

static void negative(test *t, hem_field *f) {
    (void)t;
    f->stride[0] = -8 * POINTS;
    f->stride[1] = 8;
}

static void negative_level(test *t, hem_field *f) {
    (void)t;
    f->stride[0] = 8 * POINTS * 2;
    f->stride[1] = 16;
    f->levels = 2;
    f->level_stride = -8;
}

static void one_stride(test *t, hem_field *f) {
    (void)t;
    f->stride[0] = 8 * POINTS;
}

static void wide_stride(test *t, hem_field *f) {
    (void)t;
    f->stride[0] = INT64_MAX / 2;
    f->stride[1] = 8;
    f->bytes = ROOM * sizeof(double);
}

static void many_levels(test *t, hem_field *f) {
    for (size_t i = 0; i < BINDINGS; i++)
        t->b[i].field.levels = SIZE_MAX / 16;
    f->levels = SIZE_MAX / 16;
}

static void no_memory(test *t, hem_field *f) {
    (void)t;
    f->memory = NULL;
}

static void no_type(test *t, hem_field *f) {
    (void)t;
    f->dtype = (hem_dtype)0;
}

static void strange_type(test *t, hem_field *f) {
    (void)t;
    f->dtype = (hem_dtype)99;
}

static void type_and_size(test *t, hem_field *f) {
    (void)t;
    f->element = 3;
}

static void other_type(test *t, hem_field *f) {
    (void)t;
    f->dtype = HEM_I64;
}

static void other_levels(test *t, hem_field *f) {
    (void)t;
    f->levels = 2;
}

static void other_components(test *t, hem_field *f) {
    (void)t;
    f->components = 3;
}

static void no_domain(test *t, hem_field *f) {
    (void)t;
    f->domain = 1;
}

static void strange_flag(test *t, hem_field *f) {
    (void)t;
    f->flags = 1u << 20;
}

static void vector_of_one(test *t, hem_field *f) {
    (void)f;
    for (size_t i = 0; i < BINDINGS; i++)
        t->b[i].field.flags = HEM_FIELD_VECTOR;
}

static void no_struct_size(test *t, hem_field *f) {
    (void)t;
    f->struct_size = 0;
}

static void low_origin(test *t, hem_field *f) {
    (void)t;
    f->has_origin = true;
    f->origin[1] = 1;
}

static void high_number(test *t, hem_field *f) {
    (void)f;
    t->b[0].number = 65;
    t->b[1].number = 1;
}

static void same_number(test *t, hem_field *f) {
    (void)f;
    t->b[0].number = t->b[1].number = 3;
}

static void half_numbered(test *t, hem_field *f) {
    (void)f;
    t->b[1].number = 3;
}

static void other_numbers(test *t, hem_field *f) {
    (void)f;
    t->b[0].number = 1;
    t->b[1].number = 3;
}

static void fewer_fields(test *t, hem_field *f) {
    (void)f;
    t->o.count = 1;
}

static void more_fields(test *t, hem_field *f) {
    (void)f;
    t->o.count = BINDINGS + 1;
}

static void no_fields(test *t, hem_field *f) {
    (void)f;
    t->o.count = 0;
}

static void no_bindings(test *t, hem_field *f) {
    (void)f;
    t->o.bindings = NULL;
}

static void no_pattern(test *t, hem_field *f) {
    (void)f;
    t->b[0].pattern = NULL;
}

static void foreign_pattern(test *t, hem_field *f) {
    (void)f;
    t->b[0].pattern = t->foreign;
}

static void strange_limit(test *t, hem_field *f) {
    (void)f;
    t->o.setup_timeout_ns = -9;
}

static void strange_run_limit(test *t, hem_field *f) {
    (void)f;
    t->o.run_timeout_ns = -9;
}

static void no_size(test *t, hem_field *f) {
    (void)f;
    t->o.struct_size = 1;
}

static void no_way(test *t, hem_field *f) {
    (void)f;
    t->o.way = (hem_exchange_way)99;
}

static void other_way(test *t, hem_field *f) {
    (void)f;
    t->o.way = t->way == HEM_EXCHANGE_STAGED ? HEM_EXCHANGE_DIRECT : HEM_EXCHANGE_STAGED;
}

static const bad table[] = {
    {"memory that is a byte short", HALO_RANGE, false, NULL, short_memory},
    {"memory too small for its strides", HALO_RANGE, false, NULL, short_with_levels},
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
    {"a way that is none", HALO_ARG, false, NULL, no_way},
    {"another way", HALO_MISMATCH, true, NULL, other_way},
};

static hem_pattern *make_pattern(hem_world *world) {
    int me = hem_world_rank(world), size = hem_world_size(world);
    hem_grid_domain domain;
    hem_grid_options options;
    hem_pattern *pattern = NULL;
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    domain.id = me;
    domain.box.start[0] = 4 * me;
    domain.box.count[0] = domain.box.count[1] = 4;
    options.struct_size = sizeof options;
    options.dims = 2;
    options.extent[0] = 4 * size;
    options.extent[1] = 4;
    for (int dim = 0; dim < 2; dim++) {
        options.periodic[dim] = true;
        options.halo_low[dim] = options.halo_high[dim] = 1;
    }
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    return pattern;
}

static void fresh(test *t) {
    memset(t->b, 0, sizeof t->b);
    memset(&t->o, 0, sizeof t->o);
    for (int i = 0; i < BINDINGS + 1; i++) {
        t->b[i].pattern = t->pattern;
        t->b[i].field.struct_size = sizeof t->b[i].field;
        t->b[i].field.memory = t->memory[i % BINDINGS];
        t->b[i].field.dtype = HEM_F64;
    }
    t->o.struct_size = sizeof t->o;
    t->o.bindings = t->b;
    t->o.count = BINDINGS;
    t->o.way = t->way;
}

static void refuse(test *t, const char *what, unsigned allowed) {
    hem_exchange *exchange = NULL;
    hem_status status = hem_exchange_create(t->world, &t->o, &exchange);
    halo_refused(t->world, what, status, allowed);
    CHECK(exchange == NULL);
}

/* The last rank is the odd one. */
static void refuse_one(test *t, const bad *b) {
    fresh(t);
    if (t->me == t->size - 1)
        b->spoil(t, &t->b[BINDINGS - 1].field);
    refuse(t, b->what, b->allowed);
    if (b->names != NULL)
        CHECK_SENTENCE(b->names);
}

/* What storage index (i, j) of a field has, or is to get. */
static double value_at(const test *t, int field, int i, int j) {
    int x = (4 * t->me + i - 1 + 4 * t->size) % (4 * t->size);
    int y = (j - 1 + 4) % 4;
    return 1000.0 * (field + 1) + 10.0 * x + y;
}

static void fill(const test *t, int field) {
    double cells[CELLS];
    for (int c = 0; c < CELLS; c++) {
        int i = c / POINTS, j = c % POINTS;
        bool own = i > 0 && i < POINTS - 1 && j > 0 && j < POINTS - 1;
        cells[c] = own ? value_at(t, field, i, j) : -1;
    }
    device_copy(t->memory[field], cells, sizeof cells);
}

static void look(const test *t, int field) {
    double cells[CELLS];
    device_copy(cells, t->memory[field], sizeof cells);
    for (int c = 0; c < CELLS; c++)
        if (cells[c] != value_at(t, field, c / POINTS, c % POINTS))
            harness_fail(__FILE__, __LINE__, "way %d, field %d, cell %d: %g and not %g",
                         (int)t->way, field, c, cells[c],
                         value_at(t, field, c / POINTS, c % POINTS));
}

/* Good fields are exchanged. */
static void works(test *t) {
    hem_exchange *exchange = NULL;
    fresh(t);
    CHECK_OK(hem_exchange_create(t->world, &t->o, &exchange));
    for (int field = 0; field < BINDINGS; field++)
        fill(t, field);
    CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
    for (int field = 0; field < BINDINGS; field++)
        look(t, field);
    CHECK_OK(hem_exchange_destroy(exchange));
}

/* One domain of two has a field less than the other. */
static void uneven_domains(test *t) {
    hem_grid_domain d[2];
    hem_grid_options g;
    hem_pattern *pattern = NULL;
    memset(d, 0, sizeof d);
    memset(&g, 0, sizeof g);
    for (int i = 0; i < 2; i++) {
        d[i].id = 1 + i;
        d[i].box.start[0] = 8 * t->me + 4 * i;
        d[i].box.count[0] = 4;
    }
    g.struct_size = sizeof g;
    g.dims = 1;
    g.halo_low[0] = g.halo_high[0] = 1;
    g.extent[0] = 8 * t->size;
    g.domains = d;
    g.domain_count = 2;
    CHECK_OK(hem_pattern_grid(t->world, &g, &pattern));
    fresh(t);
    for (int i = 0; i < 3; i++) {
        t->b[i].pattern = pattern;
        t->b[i].field.domain = (size_t)i % 2;
    }
    t->o.count = t->me == 0 ? 3 : 2;
    refuse(t, "a domain without its field", HALO_ARG | HALO_MISMATCH);
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* A panel of a sphere for rank 0 alone, or all six: then some sides meet turned round. */
static hem_pattern *make_sphere(test *t, int panels) {
    hem_sphere_domain d[6];
    hem_sphere_options o;
    hem_pattern *pattern = NULL;
    memset(d, 0, sizeof d);
    memset(&o, 0, sizeof o);
    for (int i = 0; i < panels; i++) {
        d[i].id = 1 + i;
        d[i].panel = i;
        d[i].box.count[0] = d[i].box.count[1] = 4;
    }
    o.struct_size = sizeof o;
    o.cells = 4;
    o.halo = 1;
    o.domains = d;
    o.domain_count = t->me == 0 ? (size_t)panels : 0;
    CHECK_OK(hem_pattern_sphere(t->world, &o, &pattern));
    return pattern;
}

/* Numbers cannot be negated if they have no sign. */
static void vector_of_bytes(test *t) {
    hem_pattern *pattern = make_sphere(t, 1);
    fresh(t);
    t->o.count = t->me == 0;
    t->b[0].pattern = pattern;
    t->b[0].field.dtype = HEM_U32;
    t->b[0].field.components = 2;
    t->b[0].field.flags = HEM_FIELD_VECTOR;
    refuse(t, "a vector without signs", HALO_ARG | HALO_UNSUPPORTED);
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* An engine copies bytes as they are, and only between fields that it reaches. */
static void beyond_engines(test *t) {
    hem_pattern *pattern = make_sphere(t, 6);
    hem_binding b[6];
    fresh(t);
    if (t->me == t->size - 1)
        t->b[BINDINGS - 1].field.memory = t->plain;
    refuse(t, "a field in host memory", HALO_UNSUPPORTED);
    fresh(t);
    memset(b, 0, sizeof b);
    for (int i = 0; i < 6; i++) {
        b[i].pattern = pattern;
        b[i].field = t->b[0].field;
        b[i].field.domain = (size_t)i;
        b[i].field.dtype = HEM_F32;
        b[i].field.components = 2;
        b[i].field.flags = HEM_FIELD_VECTOR;
        b[i].field.memory = t->memory[i % 2] + i / 2 * CELLS;
    }
    t->o.bindings = b;
    t->o.count = t->me == 0 ? 6 : 0;
    refuse(t, "a vector that changes its sign", HALO_UNSUPPORTED);
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* A GPU may lack what copy engines need, on all ranks alike; there is nothing else to refuse then. */
static bool is_possible(test *t) {
    hem_exchange *exchange = NULL;
    fresh(t);
    hem_status status = hem_exchange_create(t->world, &t->o, &exchange);
    if (status == HEM_ERR_UNSUPPORTED && t->way == HEM_EXCHANGE_ENGINES) {
        printf("rank %d: left out: %s\n", t->me, hem_last_error());
        return false;
    }
    CHECK_OK(status);
    CHECK_OK(hem_exchange_destroy(exchange));
    return true;
}

static void check_way(test *t) {
    if (!is_possible(t))
        return;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        harness_step(table[i].what, i);
        if (!table[i].needs_two || t->size > 1)
            refuse_one(t, &table[i]);
        if (i % 8 == 0)
            works(t);
    }
    harness_step("domains", 0);
    uneven_domains(t);
    harness_step("vector", 0);
    vector_of_bytes(t);
    harness_step("engines", 0);
    if (t->way == HEM_EXCHANGE_ENGINES)
        beyond_engines(t);
    works(t);
    halo_works(t->world);
}

int rank_main(hem_world *world) {
    static const hem_exchange_way ways[] = {HEM_EXCHANGE_STAGED, HEM_EXCHANGE_BEST,
                                            HEM_EXCHANGE_DIRECT, HEM_EXCHANGE_ENGINES};
    test *t = (test *)calloc(1, sizeof *t);
    CHECK(t != NULL);
    CHECK_OK(hem_device_open(world, NULL));
    t->world = world;
    t->me = hem_world_rank(world);
    t->size = hem_world_size(world);
    CHECK_OK(hem_world_split(world, 0, 0, &t->other));
    t->pattern = make_pattern(world);
    t->foreign = make_pattern(t->other);
    for (int i = 0; i < BINDINGS; i++)
        t->memory[i] = (double *)device_alloc(ROOM * sizeof(double));
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        t->way = ways[w];
        check_way(t);
    }
    CHECK_OK(hem_pattern_destroy(t->pattern));
    CHECK_OK(hem_pattern_destroy(t->foreign));
    CHECK_OK(hem_world_close(t->other));
    for (int i = 0; i < BINDINGS; i++)
        device_free(t->memory[i]);
    free(t);
    harness_close(world, HEM_OK);
    return 0;
}
