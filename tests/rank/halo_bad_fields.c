#include "halo_bad_fields.h"

enum {
    ANY_SIZE = HALO_ARG | HALO_RANGE | HALO_LIMIT
};

static void small(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->bytes = HALO_BAD_POINTS * HALO_BAD_POINTS * 8 - 1;
}

static void small_with_levels(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->bytes = HALO_BAD_POINTS * HALO_BAD_POINTS * 8;
    f->level_stride = 8;
    f->stride[1] = 8;
    f->stride[0] = 8 * (HALO_BAD_POINTS + 1);
}

static void negative(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->stride[0] = -8 * HALO_BAD_POINTS;
    f->stride[1] = 8;
}

static void negative_level(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->stride[0] = 8 * HALO_BAD_POINTS * 2;
    f->stride[1] = 16;
    f->levels = 2;
    f->level_stride = -8;
}

static void one_stride(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->stride[0] = 8 * HALO_BAD_POINTS;
}

static void wide_stride(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->stride[0] = INT64_MAX / 2;
    f->stride[1] = 8;
    f->bytes = HALO_BAD_ROOM * sizeof(double);
}

static void many_levels(halo_bad_set *s, hem_field *f) {
    for (size_t i = 0; i < HALO_BAD_BINDINGS; i++)
        s->b[i].field.levels = SIZE_MAX / 16;
    f->levels = SIZE_MAX / 16;
}

static void no_memory(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->memory = NULL;
}

static void no_type(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->dtype = 0;
}

static void strange_type(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->dtype = (hem_dtype)99;
}

static void type_and_size(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->element = 3;
}

static void other_type(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->dtype = HEM_I64;
}

static void other_levels(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->levels = 2;
}

static void other_components(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->components = 3;
}

static void no_domain(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->domain = 1;
}

static void strange_flag(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->flags = 1u << 20;
}

static void vector_of_one(halo_bad_set *s, hem_field *f) {
    (void)f;
    for (size_t i = 0; i < HALO_BAD_BINDINGS; i++)
        s->b[i].field.flags = HEM_FIELD_VECTOR;
}

static void no_struct_size(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->struct_size = 0;
}

static void low_origin(halo_bad_set *s, hem_field *f) {
    (void)s;
    f->has_origin = true;
    f->origin[1] = 1;
}

static void high_number(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->b[0].number = 65;
    s->b[1].number = 1;
}

static void same_number(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->b[0].number = s->b[1].number = 3;
}

static void half_numbered(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->b[1].number = 3;
}

static void other_numbers(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->b[0].number = 1;
    s->b[1].number = 3;
}

static void fewer_fields(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.count = 1;
}

static void more_fields(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.count = HALO_BAD_BINDINGS + 1;
}

static void no_fields(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.count = 0;
}

static void no_bindings(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.bindings = NULL;
}

static void no_pattern(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->b[0].pattern = NULL;
}

static void foreign_pattern(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->b[0].pattern = s->foreign;
}

static void strange_limit(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.setup_timeout_ns = -9;
}

static void strange_run_limit(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.run_timeout_ns = -9;
}

static void no_size(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.struct_size = 1;
}

static const halo_bad_field table[] = {
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

void halo_bad_open(halo_bad_set *s, hem_world *world) {
    s->world = world;
    s->me = hem_world_rank(world);
    s->size = hem_world_size(world);
    CHECK_OK(hem_world_split(world, 0, 0, &s->other));
    s->pattern = make_pattern(world);
    s->foreign = make_pattern(s->other);
}

void halo_bad_close(halo_bad_set *s) {
    CHECK_OK(hem_pattern_destroy(s->pattern));
    CHECK_OK(hem_pattern_destroy(s->foreign));
    CHECK_OK(hem_world_close(s->other));
}

void halo_bad_fresh(halo_bad_set *s) {
    for (int i = 0; i < HALO_BAD_BINDINGS + 1; i++)
        s->b[i] = (hem_binding){
            .pattern = s->pattern,
            .field = {.struct_size = sizeof(hem_field),
                      .memory = s->memory[i % HALO_BAD_BINDINGS],
                      .dtype = HEM_F64},
        };
    s->o = (hem_exchange_options){
        .struct_size = sizeof s->o, .bindings = s->b, .count = HALO_BAD_BINDINGS, .way = s->way};
}

void halo_bad_refuse(halo_bad_set *s, const char *what, unsigned allowed) {
    hem_exchange *exchange = NULL;
    halo_refused(s->world, what, hem_exchange_create(s->world, &s->o, &exchange), allowed);
    CHECK(exchange == NULL);
}

void halo_bad_one(halo_bad_set *s, const halo_bad_field *bad) {
    if (bad->needs_two && s->size == 1)
        return;
    halo_bad_fresh(s);
    if (s->me == s->size - 1)
        bad->spoil(s, &s->b[HALO_BAD_BINDINGS - 1].field);
    halo_bad_refuse(s, bad->what, bad->allowed);
    if (bad->names != NULL)
        CHECK_SENTENCE(bad->names);
}

/* One domain of two has a field less than the other. */
static void uneven_domains(halo_bad_set *s) {
    hem_grid_domain d[2] = {{.id = 1, .box = {{8 * s->me}, {4}}},
                            {.id = 2, .box = {{8 * s->me + 4}, {4}}}};
    hem_grid_options g = {.struct_size = sizeof g, .dims = 1, .halo_low = {1}, .halo_high = {1}};
    hem_pattern *pattern = NULL;

    g.extent[0] = 8 * s->size;
    g.domains = d;
    g.domain_count = 2;
    CHECK_OK(hem_pattern_grid(s->world, &g, &pattern));
    halo_bad_fresh(s);
    for (int i = 0; i < 3; i++) {
        s->b[i].pattern = pattern;
        s->b[i].field.domain = (size_t)i % 2;
    }
    s->o.count = s->me == 0 ? 3 : 2;
    halo_bad_refuse(s, "a domain without its field", HALO_ARG | HALO_MISMATCH);
    CHECK_OK(hem_pattern_destroy(pattern));
}

hem_pattern *halo_bad_sphere(halo_bad_set *s, int panels) {
    hem_sphere_domain d[6];
    hem_sphere_options o = {.struct_size = sizeof o, .cells = 4, .halo = 1, .domains = d};
    hem_pattern *pattern = NULL;

    for (int i = 0; i < panels; i++)
        d[i] = (hem_sphere_domain){1 + i, i, {{0, 0}, {4, 4}}};
    o.domain_count = s->me == 0 ? (size_t)panels : 0;
    CHECK_OK(hem_pattern_sphere(s->world, &o, &pattern));
    return pattern;
}

/* Numbers cannot be negated if they have no sign. */
static void vector_of_bytes(halo_bad_set *s) {
    hem_pattern *pattern = halo_bad_sphere(s, 1);

    halo_bad_fresh(s);
    s->o.count = s->me == 0;
    s->b[0].pattern = pattern;
    s->b[0].field.dtype = HEM_U32;
    s->b[0].field.components = 2;
    s->b[0].field.flags = HEM_FIELD_VECTOR;
    halo_bad_refuse(s, "a vector without signs", HALO_ARG | HALO_UNSUPPORTED);
    CHECK_OK(hem_pattern_destroy(pattern));
}

void halo_bad_all(halo_bad_set *s, size_t every, void (*works)(halo_bad_set *s)) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        harness_step(table[i].what, i);
        halo_bad_one(s, &table[i]);
        if (i % every == 0)
            works(s);
    }
    harness_step("domains", 0);
    uneven_domains(s);
    harness_step("vector", 0);
    vector_of_bytes(s);
    works(s);
}
