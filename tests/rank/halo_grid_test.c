/*
 * An exchange over boxes of a grid gives every halo cell its owner's value and changes nothing else:
 * in 1 to 4 dimensions, periodic or not, with any widths, 1 to 64 domains per rank, holes, ranks
 * without domains, every layout, type and memory, and several patterns and fields in one exchange.
 *
 * All pairs of these choices occur in a run.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=120
 */
#include "cover.h"
#include "halo_kit.h"

enum {
    TYPE,
    LAYOUT,
    WIDTH,
    PARTS,
    DIMS,
    PERIODIC,
    MEMORY,
    SHAPE,
    EXTRA,
    FACTORS
};

enum {
    WIDTH_ONE,
    WIDTH_NONE,
    WIDTH_UNEVEN,
    WIDTH_LOW,
    WIDTH_WIDE,
    WIDTH_GRID, /**< wider than the grid in one dimension */
    WIDTHS
};

enum {
    EXTRA_NOTHING,
    EXTRA_FACES,
    EXTRA_HOLES,
    EXTRA_ONE_RANK, /**< the last rank has all domains */
    EXTRAS
};

/* Domains per rank, or fewer than ranks. */
static const size_t parts[] = {1, 3, 0, 16, 64};
static const int levels[FACTORS] = {HEM_BOOL + 4, HALO_LAYOUTS, WIDTHS, 5, 4, 3, HALO_MEMORIES, 4,
                                    EXTRAS};
static const size_t odd_sizes[] = {3, 7, 40};

struct rank {
    hem_world *world;
    int me;
    int size;
    uint64_t seed;
    char text[160];
};

static bool allows(int i, int a, int j, int b) {
    (void)i;
    (void)a;
    (void)j;
    (void)b;
    return true;
}

static void set_widths(halo_grid *g, int width, harness_rng *rng) {
    for (int i = 0; i < g->dims; i++) {
        g->low[i] = g->high[i] = width != WIDTH_NONE;
        if (width == WIDTH_UNEVEN) {
            g->low[i] = (int64_t)harness_below(rng, 4);
            g->high[i] = (int64_t)harness_below(rng, 4);
        }
        if (width == WIDTH_LOW)
            g->high[i] = 0;
        if (width == WIDTH_WIDE)
            g->low[i] = g->high[i] = g->dims > 2 ? 3 : 6;
    }
    if (width == WIDTH_GRID) {
        size_t dim = harness_below(rng, (size_t)g->dims);

        g->high[dim] = g->extent[dim] + 2;
        g->low[dim] = 2 * g->extent[dim];
    }
}

/* About so many boxes as are wanted, in a grid that is not much larger than they need. */
static halo_grid make_grid(const struct rank *r, const int *level, harness_rng *rng) {
    static const int64_t extents[] = {700, 29, 11, 6};
    halo_grid g = {.dims = level[DIMS] + 1, .faces_only = level[EXTRA] == EXTRA_FACES};
    size_t wanted = parts[level[PARTS]] * (size_t)r->size;
    bool narrow = level[WIDTH] != WIDTH_GRID;

    if (wanted == 0)
        wanted = r->size > 1 ? (size_t)r->size - 1 : 1;
    for (int i = 0; i < g.dims; i++) {
        int64_t most = narrow || wanted > 64 ? extents[level[DIMS]] : 4;

        g.extent[i] = most / 2 + (int64_t)harness_below(rng, (size_t)most) + 1;
        g.periodic[i] = level[PERIODIC] == 1 || (level[PERIODIC] == 2 && harness_below(rng, 2));
    }
    set_widths(&g, level[WIDTH], rng);
    if (!narrow && wanted > 64)
        wanted = 64;
    halo_grid_cut(&g, wanted, rng);
    halo_grid_deal(&g, r->size, level[PARTS] == 1, level[EXTRA] == EXTRA_HOLES ? 4 : 0, rng);
    for (size_t i = 0; i < g.count && level[EXTRA] == EXTRA_ONE_RANK; i++)
        g.boxes[i].rank = r->size - 1;
    return g;
}

static halo_spec make_spec(const int *level, harness_rng *rng) {
    halo_spec spec = {.levels = 1, .components = 1, .seed = harness_random(rng)};

    if (level[TYPE] < HEM_BOOL)
        spec.dtype = (hem_dtype)(level[TYPE] + 1);
    else
        spec.element = odd_sizes[level[TYPE] - HEM_BOOL > 2 ? 2 : level[TYPE] - HEM_BOOL];
    if (level[SHAPE] & 1)
        spec.levels = 2 + harness_below(rng, 4);
    if (level[SHAPE] & 2)
        spec.components = 2 + harness_below(rng, 2);
    return spec;
}

/* The exchange outlives its pattern; both directions of a pair of landing places are used. */
static void run_grid(struct rank *r, const int *level, harness_rng *rng) {
    halo_grid g = make_grid(r, level, rng);
    halo_case c = halo_grid_case(&g, r->size);
    hem_pattern *pattern = halo_grid_pattern(r->world, &g, &c);
    halo_spec spec = make_spec(level, rng);
    halo_set s = {.world = r->world};
    hem_exchange *exchange;

    halo_set_add(&s, pattern, &c, &spec, level[LAYOUT], level[MEMORY], rng);
    exchange = halo_set_exchange(&s);
    hem_pattern_destroy(pattern);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    halo_case_free(&c);
    halo_grid_free(&g);
}

static void run_row(struct rank *r, const int *level, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, 1);

    snprintf(r->text, sizeof r->text,
             "type %d layout %d width %d parts %d dims %d periodic %d mem %d shape %d extra %d row",
             level[TYPE], level[LAYOUT], level[WIDTH], level[PARTS], level[DIMS] + 1,
             level[PERIODIC], level[MEMORY], level[SHAPE], level[EXTRA]);
    harness_step(r->text, number);
    run_grid(r, level, &rng);
}

static void run_cover(struct rank *r) {
    uint64_t every = harness_sanitized() ? 4 : 1;
    cover *c = malloc(sizeof *c);
    cover_row row;

    CHECK(c != NULL);
    cover_begin(c, FACTORS, levels, allows, r->seed);
    for (uint64_t number = 0; cover_next(c, &row); number++)
        if (number % every == 0)
            run_row(r, row.level, number);
    free(c);
}

/* Several patterns, each with fields of several types, layouts and memories, some read-only. */
static void run_mixed(struct rank *r, uint64_t number) {
    enum {
        PATTERNS = 3
    };
    harness_rng rng = harness_rng_of(r->seed, number, 2);
    /* What follows may differ between ranks. */
    harness_rng own = harness_rng_of(r->seed, number, 100 + (uint64_t)r->me);
    halo_grid g[PATTERNS];
    halo_case c[PATTERNS];
    hem_pattern *pattern[PATTERNS];
    halo_set s = {.world = r->world};
    hem_exchange *exchange;

    harness_step("mixed exchange", number);
    for (int i = 0; i < PATTERNS; i++) {
        size_t fields = harness_below(&rng, 5);
        bool numbered = harness_below(&rng, 2);

        g[i] = halo_grid_random(1 + (int)harness_below(&rng, 4), 9, 12, r->size, &rng);
        c[i] = halo_grid_case(&g[i], r->size);
        pattern[i] = halo_grid_pattern(r->world, &g[i], &c[i]);
        for (size_t k = 0; k < fields; k++) {
            halo_spec spec = halo_spec_random(&rng, 4);

            spec.number = numbered ? 64 - 7 * (uint32_t)k : 0;
            spec.flags = harness_below(&own, 6) ? 0 : HEM_FIELD_READ_ONLY;
            halo_set_add(&s, pattern[i], &c[i], &spec, (int)harness_below(&own, HALO_LAYOUTS),
                         (int)harness_below(&own, HALO_MEMORIES), &own);
        }
    }
    halo_set_shuffle(&s, &own);
    exchange = halo_set_exchange(&s);
    for (uint64_t round = 0; round < 4; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    for (int i = 0; i < PATTERNS; i++) {
        hem_pattern_destroy(pattern[i]);
        halo_case_free(&c[i]);
        halo_grid_free(&g[i]);
    }
}

/* Indices beyond 32 bits: boxes at both ends of a periodic grid of 2^40 points. */
static void run_far(struct rank *r) {
    int64_t end = (int64_t)1 << 40;
    harness_rng rng = harness_rng_of(r->seed, 0, 3);
    halo_grid g = {.dims = 2, .extent = {end, 6}, .periodic = {true, true}, .low = {2, 1}};
    halo_spec spec = halo_spec_plain(r->seed);
    halo_set s = {.world = r->world};
    hem_exchange *exchange;
    hem_pattern *pattern;
    halo_case c;

    harness_step("far grid", 0);
    g.high[0] = 3;
    for (int rank = 0; rank < r->size; rank++) {
        hem_box low = {{4 * rank, 0}, {4, 3}};
        hem_box high = {{end - 5 * (rank + 1), 2}, {5, 4}};

        halo_grid_add(&g, &low, rank);
        halo_grid_add(&g, &high, rank);
    }
    c = halo_grid_case(&g, r->size);
    pattern = halo_grid_pattern(r->world, &g, &c);
    halo_set_add(&s, pattern, &c, &spec, HALO_ANY, HALO_PRIVATE, &rng);
    exchange = halo_set_exchange(&s);
    halo_set_run(&s, exchange, NULL, 1);
    CHECK_OK(hem_exchange_destroy(exchange));
    hem_pattern_destroy(pattern);
    halo_set_free(&s);
    halo_case_free(&c);
    halo_grid_free(&g);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.seed = harness_seed(world);
    run_far(&r);
    run_cover(&r);
    for (int i = 0; i < harness_rounds(40); i++)
        run_mixed(&r, (uint64_t)i);
    harness_close(world, HEM_OK);
    return 0;
}
