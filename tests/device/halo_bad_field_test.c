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
#include "../rank/halo_bad_fields.h"
#ifdef __cplusplus
}
#endif

enum {
    CELLS = HALO_BAD_POINTS * HALO_BAD_POINTS
};

static void no_way(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.way = (hem_exchange_way)99;
}

static void other_way(halo_bad_set *s, hem_field *f) {
    (void)f;
    s->o.way = s->way == HEM_EXCHANGE_STAGED ? HEM_EXCHANGE_DIRECT : HEM_EXCHANGE_STAGED;
}

/* What storage index (i, j) of a field has, or is to get. */
static double value_at(const halo_bad_set *s, int field, int i, int j) {
    int x = (4 * s->me + i - 1 + 4 * s->size) % (4 * s->size);
    int y = (j - 1 + 4) % 4;
    return 1000.0 * (field + 1) + 10.0 * x + y;
}

static void fill(const halo_bad_set *s, int field) {
    double cells[CELLS];
    for (int c = 0; c < CELLS; c++) {
        int i = c / HALO_BAD_POINTS, j = c % HALO_BAD_POINTS;
        bool own = i > 0 && i < HALO_BAD_POINTS - 1 && j > 0 && j < HALO_BAD_POINTS - 1;
        cells[c] = own ? value_at(s, field, i, j) : -1;
    }
    device_copy(s->memory[field], cells, sizeof cells);
}

static void look(const halo_bad_set *s, int field) {
    double cells[CELLS];
    device_copy(cells, s->memory[field], sizeof cells);
    for (int c = 0; c < CELLS; c++)
        if (cells[c] != value_at(s, field, c / HALO_BAD_POINTS, c % HALO_BAD_POINTS))
            harness_fail(__FILE__, __LINE__, "way %d, field %d, cell %d: %g and not %g",
                         (int)s->way, field, c, cells[c],
                         value_at(s, field, c / HALO_BAD_POINTS, c % HALO_BAD_POINTS));
}

/* Good fields are exchanged. */
static void works(halo_bad_set *s) {
    hem_exchange *exchange = NULL;
    halo_bad_fresh(s);
    CHECK_OK(hem_exchange_create(s->world, &s->o, &exchange));
    for (int field = 0; field < HALO_BAD_BINDINGS; field++)
        fill(s, field);
    CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
    for (int field = 0; field < HALO_BAD_BINDINGS; field++)
        look(s, field);
    CHECK_OK(hem_exchange_destroy(exchange));
}

/* An engine copies bytes as they are, and only between fields that it reaches. */
static void beyond_engines(halo_bad_set *s) {
    double plain[HALO_BAD_ROOM] = {0};
    hem_pattern *pattern = halo_bad_sphere(s, 6);
    hem_binding b[6];
    halo_bad_fresh(s);
    if (s->me == s->size - 1)
        s->b[HALO_BAD_BINDINGS - 1].field.memory = plain;
    halo_bad_refuse(s, "a field in host memory", HALO_UNSUPPORTED);
    halo_bad_fresh(s);
    memset(b, 0, sizeof b);
    for (int i = 0; i < 6; i++) {
        b[i].pattern = pattern;
        b[i].field = s->b[0].field;
        b[i].field.domain = (size_t)i;
        b[i].field.dtype = HEM_F32;
        b[i].field.components = 2;
        b[i].field.flags = HEM_FIELD_VECTOR;
        b[i].field.memory = s->memory[i % 2] + i / 2 * CELLS;
    }
    s->o.bindings = b;
    s->o.count = s->me == 0 ? 6 : 0;
    halo_bad_refuse(s, "a vector that changes its sign", HALO_UNSUPPORTED);
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* A GPU may lack what copy engines need, on all ranks alike; there is nothing else to refuse then. */
static bool is_possible(halo_bad_set *s) {
    hem_exchange *exchange = NULL;
    halo_bad_fresh(s);
    hem_status status = hem_exchange_create(s->world, &s->o, &exchange);
    if (status == HEM_ERR_UNSUPPORTED && s->way == HEM_EXCHANGE_ENGINES) {
        printf("rank %d: left out: %s\n", s->me, hem_last_error());
        return false;
    }
    CHECK_OK(status);
    CHECK_OK(hem_exchange_destroy(exchange));
    return true;
}

static void check_way(halo_bad_set *s) {
    static const halo_bad_field none = {"a way that is none", HALO_ARG, false, NULL, no_way};
    static const halo_bad_field other = {"another way", HALO_MISMATCH, true, NULL, other_way};
    if (!is_possible(s))
        return;
    halo_bad_all(s, 8, works);
    harness_step("ways", 0);
    halo_bad_one(s, &none);
    halo_bad_one(s, &other);
    if (s->way == HEM_EXCHANGE_ENGINES)
        beyond_engines(s);
    works(s);
    halo_works(s->world);
}

int rank_main(hem_world *world) {
    static const hem_exchange_way ways[] = {HEM_EXCHANGE_STAGED, HEM_EXCHANGE_BEST,
                                            HEM_EXCHANGE_DIRECT, HEM_EXCHANGE_ENGINES};
    halo_bad_set *s = (halo_bad_set *)calloc(1, sizeof *s);
    CHECK(s != NULL);
    CHECK_OK(hem_device_open(world, NULL));
    halo_bad_open(s, world);
    for (int i = 0; i < HALO_BAD_BINDINGS; i++)
        s->memory[i] = (double *)device_alloc(HALO_BAD_ROOM * sizeof(double));
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        s->way = ways[w];
        check_way(s);
    }
    halo_bad_close(s);
    for (int i = 0; i < HALO_BAD_BINDINGS; i++)
        device_free(s->memory[i]);
    free(s);
    harness_close(world, HEM_OK);
    return 0;
}
