/*
 * Many runs back to back with other values each time, many domains, many indices: nothing of an older
 * or a newer run is ever seen, with ranks of different speed, from private and library memory, though
 * owners change their values as soon as their run is finished. More than 2^20 indices per neighbour
 * arrive.
 *
 * hem-test: ranks=2,3,4,8 modes=processes,threads timeout=120
 */
#include "halo_kit.h"

struct rank {
    hem_world *world;
    int me;
    int size;
    uint64_t seed;
};

/* Somebody is late now and then, by more or less. */
static void nap(harness_rng *rng) {
    size_t dice = harness_below(rng, 64);

    if (dice == 0)
        harness_sleep_ms(1);
    else
        harness_dither(harness_random(rng));
}

/* Fill at once after a check: whoever still read the last round's values would be noticed. */
static void runs(struct rank *r, halo_set *s, hem_pattern *pattern, int count, bool started) {
    harness_rng own = harness_rng_of(r->seed, (uint64_t)count, (uint64_t)r->me);
    hem_exchange *exchange = halo_set_exchange(s);

    hem_pattern_destroy(pattern);
    for (int i = 0; i < count; i++) {
        halo_set_fill(s, (uint64_t)i);
        CHECK_OK(hem_exchange_start(exchange, NULL));
        if (started)
            nap(&own);
        CHECK_OK(hem_exchange_finish(exchange, LIMIT));
        halo_set_expect(s, NULL, (uint64_t)i);
        halo_set_check(s);
        nap(&own);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
}

/* A ring of boxes: `rows` of halo of `width` doubles each way. */
static void ring(struct rank *r, int64_t rows, int64_t width, int memory, int count) {
    harness_rng rng = harness_rng_of(r->seed, (uint64_t)width, (uint64_t)memory);
    halo_grid g = {.dims = 2, .extent = {rows * r->size, width}, .low = {rows}, .high = {rows}};
    halo_spec spec = halo_spec_plain(r->seed);
    halo_set s = {.world = r->world};
    hem_window *window = NULL;
    hem_pattern *pattern;
    halo_case c;

    g.periodic[0] = true;
    for (int i = 0; i < r->size; i++)
        halo_grid_add(&g, &(hem_box){{rows * i, 0}, {rows, width}}, i);
    c = halo_grid_case(&g, r->size);
    pattern = halo_grid_pattern(r->world, &g, &c);
    if (memory == HALO_POOL) {
        s.pool_bytes = (size_t)(3 * rows * width) * 8 + 4096;
        window = harness_window(r->world, s.pool_bytes);
        s.pool = hem_window_memory(window);
    }
    halo_set_add(&s, pattern, &c, &spec, HALO_C, memory, &rng);
    runs(r, &s, pattern, count, memory % 2);
    halo_set_free(&s);
    if (window)
        harness_destroy(window);
    halo_case_free(&c);
    halo_grid_free(&g);
}

/* From what rides in one line to what moves in one copy. */
static void back_to_back(struct rank *r) {
    static const struct {
        int64_t rows;
        int64_t width;
        int count;
    } sizes[] = {{1, 1, 1000},  {1, 5, 1000},  {1, 6, 300},
                 {2, 100, 300}, {4, 1500, 40}, {8, 8000, 6}};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int memory = 0; memory <= HALO_POOL; memory++) {
            harness_step("back to back", i * 10 + (uint64_t)memory);
            ring(r, sizes[i].rows, sizes[i].width, memory, harness_rounds(sizes[i].count));
        }
}

static void many_domains(struct rank *r) {
    harness_rng rng = harness_rng_of(r->seed, 0, 5);
    halo_grid g = {.dims = 3, .low = {1, 1, 1}, .high = {1, 2, 1}, .periodic = {true, false, true}};
    halo_set s = {.world = r->world};
    hem_pattern *pattern;
    halo_case c;

    harness_step("64 domains", 0);
    for (int i = 0; i < 3; i++)
        g.extent[i] = 18;
    halo_grid_cut(&g, 64 * (size_t)r->size, &rng);
    halo_grid_deal(&g, r->size, false, 0, &rng);
    c = halo_grid_case(&g, r->size);
    pattern = halo_grid_pattern(r->world, &g, &c);
    for (int i = 0; i < 2; i++) {
        halo_spec spec = halo_spec_random(&rng, 2);

        halo_set_add(&s, pattern, &c, &spec, HALO_ANY, HALO_PRIVATE, &rng);
    }
    runs(r, &s, pattern, harness_rounds(30), true);
    halo_set_free(&s);
    halo_case_free(&c);
    halo_grid_free(&g);
}

/* More than 2^20 indices to the right neighbour, the last ones first. */

enum {
    INDICES = (1 << 20) + 1234
};

static uint32_t value_of(int rank, int64_t i, uint32_t round) {
    return (uint32_t)i * 2654435761u + (uint32_t)rank * 97 + round;
}

static hem_pattern *make_indices(struct rank *r, int64_t *from, int64_t *to) {
    size_t points = 3 * (size_t)INDICES;
    hem_point_list send = {harness_right(r->world), 0, from, INDICES};
    hem_point_list receive = {harness_left(r->world), 0, to, INDICES};
    hem_explicit_options o = {.struct_size = sizeof o,
                              .domain_points = &points,
                              .domain_count = 1,
                              .sends = &send,
                              .send_count = 1,
                              .receives = &receive,
                              .receive_count = 1};
    hem_pattern *pattern = NULL;

    CHECK_OK(hem_pattern_explicit(r->world, &o, &pattern));
    return pattern;
}

static void check_indices(const struct rank *r, const uint32_t *field, const int64_t *to,
                          uint32_t round) {
    int left = harness_left(r->world);

    for (int64_t i = 0; i < INDICES; i++) {
        int64_t at = (int64_t)INDICES - 1 - i;

        if (field[to[i]] != value_of(left, at, round))
            harness_fail(__FILE__, __LINE__, "index %lld of round %u is %u, not %u", (long long)i,
                         round, field[to[i]], value_of(left, at, round));
    }
    for (int64_t i = 0; i < INDICES; i++) {
        CHECK_EQ(field[i], value_of(r->me, i, round));
        CHECK_EQ(field[INDICES + 2 * i + 1 - i % 2], 0);
    }
}

static void many_indices(struct rank *r, bool library) {
    int64_t *from = malloc(INDICES * sizeof *from);
    int64_t *to = malloc(INDICES * sizeof *to);
    size_t bytes = 3 * (size_t)INDICES * 4;
    hem_memory *memory = NULL;
    hem_exchange *exchange = NULL;
    uint32_t *field;
    hem_binding b = {.field = {.struct_size = sizeof b.field, .dtype = HEM_U32}};
    hem_exchange_options o = {.struct_size = sizeof o, .bindings = &b, .count = 1};
    hem_pattern *pattern;

    harness_step("indices", library);
    CHECK(from && to);
    /* Every second cell, one time the even one, one time the odd one. */
    for (int64_t i = 0; i < INDICES; i++) {
        from[i] = INDICES - 1 - i;
        to[i] = INDICES + 2 * i + i % 2;
    }
    pattern = make_indices(r, from, to);
    if (library)
        CHECK_OK(hem_memory_alloc(r->world, bytes, &memory));
    field = library ? hem_memory_address(memory) : calloc(1, bytes);
    CHECK(field != NULL);
    b.pattern = pattern;
    b.field.memory = field;
    b.field.bytes = bytes;
    CHECK_OK(hem_exchange_create(r->world, &o, &exchange));
    for (uint32_t round = 0; round < 3; round++) {
        for (int64_t i = 0; i < INDICES; i++)
            field[i] = value_of(r->me, i, round);
        CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
        check_indices(r, field, to, round);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    hem_pattern_destroy(pattern);
    if (library)
        CHECK_OK(hem_memory_free(memory));
    else
        free(field);
    free(from);
    free(to);
}

/* The same number of points in the face of a box, each in a row of its own. */
static void many_rows(struct rank *r) {
    hem_grid_domain d = {.box = {{0, 2 * r->me}, {INDICES, 2}}};
    hem_grid_options g = {.struct_size = sizeof g,
                          .dims = 2,
                          .extent = {INDICES, 2 * r->size},
                          .periodic = {false, true},
                          .halo_low = {0, 1},
                          .domains = &d,
                          .domain_count = 1};
    uint32_t *field = calloc(3 * (size_t)INDICES, sizeof *field);
    hem_binding b = {.field = {.struct_size = sizeof b.field, .dtype = HEM_U32}};
    hem_exchange_options o = {.struct_size = sizeof o, .bindings = &b, .count = 1};
    hem_pattern *pattern = NULL;
    hem_exchange *exchange = NULL;

    harness_step("rows", 0);
    CHECK(field != NULL);
    CHECK_OK(hem_pattern_grid(r->world, &g, &pattern));
    b.pattern = pattern;
    b.field.memory = field;
    CHECK_OK(hem_exchange_create(r->world, &o, &exchange));
    for (uint32_t round = 0; round < 2; round++) {
        for (int64_t i = 0; i < INDICES; i++) {
            field[3 * i + 1] = 0;
            field[3 * i + 2] = value_of(r->me, i, round);
        }
        CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
        for (int64_t i = 0; i < INDICES; i++)
            CHECK_EQ(field[3 * i], value_of(harness_left(r->world), i, round));
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    hem_pattern_destroy(pattern);
    free(field);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.seed = harness_seed(world);
    many_domains(&r);
    back_to_back(&r);
    many_indices(&r, false);
    many_indices(&r, true);
    many_rows(&r);
    harness_close(world, HEM_OK);
    return 0;
}
