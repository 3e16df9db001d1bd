/*
 * What is wrong with the boxes of one rank, or with two together, is the same error on all ranks, and
 * names who it was: bad options, boxes outside of the grid, numbers that overflow, ranks that mean
 * different grids, owners that overlap, whatever their sizes. And the world goes on.
 *
 * hem-test: ranks=1,2,3,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

#define FAR (INT64_C(1) << 62)

static _Thread_local int me;
static _Thread_local int size;

static hem_grid_options plain(int dims, int64_t extent) {
    hem_grid_options o = {.struct_size = sizeof o, .dims = dims};

    for (int d = 0; d < dims; d++) {
        o.extent[d] = extent;
        o.halo_low[d] = o.halo_high[d] = 1;
    }
    return o;
}

static void expect(hem_world *world, const hem_grid_options *o, hem_status want) {
    hem_pattern *pattern = NULL;
    hem_status status = hem_pattern_grid(world, o, &pattern);

    CHECK_STATUS(status, want);
    CHECK((pattern != NULL) == (want == HEM_OK));
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* Rank `who` passes `bad`, the others something that is good by itself. */
static void refuse(hem_world *world, int who, const hem_grid_options *bad, hem_status want) {
    hem_grid_options good = *bad;

    good.domains = NULL;
    good.domain_count = 0;
    expect(world, hem_world_rank(world) == who ? bad : &good, want);
    if (want != HEM_ERR_MISMATCH)
        CHECK_NAMES_RANK(who);
}

static void bad_boxes(hem_world *world) {
    static const struct {
        int64_t start;
        int64_t count;
    } bad[] = {{-1, 2},  {0, 0},         {0, 11},        {10, 1},        {9, 2},
               {0, -1},  {INT64_MAX, 1}, {1, INT64_MAX}, {INT64_MIN, 1}, {INT64_MIN, INT64_MIN},
               {5, FAR}, {FAR, FAR}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int dim = 0; dim < 2; dim++) {
            hem_grid_domain domains[2] = {{11, {{0, 0}, {1, 1}}}, {-12, {{3, 3}, {1, 1}}}};
            hem_grid_options o = plain(2, 10);

            harness_step("bad box", i);
            domains[1].box.start[dim] = bad[i].start;
            domains[1].box.count[dim] = bad[i].count;
            o.domains = domains;
            o.domain_count = 2;
            refuse(world, (int)i % hem_world_size(world), &o, HEM_ERR_RANGE);
            CHECK_SENTENCE("-12");
        }
}

/* What one rank gets wrong before there is a grid. */
static void bad_options(hem_world *world) {
    hem_grid_domain domain = {1, {{0}, {1, 1, 1, 1}}};
    int last = hem_world_size(world) - 1;
    bool mine = hem_world_rank(world) == last;
    hem_pattern *pattern = NULL;

    harness_step("bad options", 0);
    for (int i = 0; i < 9; i++) {
        hem_grid_options o = plain(2, 10);

        harness_step("bad options", (uint64_t)i);
        if (mine && i == 0)
            o.dims = 0;
        if (mine && i == 1)
            o.dims = HEM_DIMS + 1;
        if (mine && i == 2)
            o.extent[1] = 0;
        if (mine && i == 3)
            o.extent[0] = FAR + 1;
        if (mine && i == 4)
            o.halo_low[1] = -1;
        if (mine && i == 5)
            o.halo_high[0] = INT64_MIN;
        if (mine && i == 6)
            o.domain_count = 1;
        if (mine && i == 7)
            o.struct_size = 3;
        if (mine && i == 8)
            o.timeout_ns = -5;
        expect(world, &o, HEM_ERR_ARG);
        CHECK_NAMES_RANK(last);
    }
    hem_grid_options o = plain(1, 10);
    CHECK_STATUS(hem_pattern_grid(world, &o, mine ? NULL : &pattern), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_grid(world, mine ? NULL : &o, &pattern), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_grid(NULL, &o, &pattern), HEM_ERR_ARG);
    o.domains = &domain;
    o.domain_count = mine;
    expect(world, &o, HEM_OK);
}

/* Counts that do not fit. */
static void overflows(hem_world *world) {
    hem_grid_domain domain = {77, {{0}, {1, 1, 1, 1}}};
    hem_grid_options o = plain(1, FAR);

    harness_step("overflow", 0);
    o.domains = &domain;
    o.domain_count = 1;
    domain.box.count[0] = FAR;
    refuse(world, 0, &o, HEM_ERR_RANGE);
    CHECK_SENTENCE("77");
    domain.box.count[0] = 1;
    o.halo_low[0] = INT64_MAX;
    refuse(world, 0, &o, HEM_ERR_RANGE);
    o.halo_low[0] = FAR;
    refuse(world, 0, &o, HEM_ERR_RANGE);
    o = plain(4, INT64_C(1) << 40);
    o.domains = &domain;
    o.domain_count = 1;
    for (int d = 0; d < 4; d++)
        domain.box.count[d] = INT64_C(1) << 20;
    refuse(world, 0, &o, HEM_ERR_RANGE);
    /* A halo that goes around the grid beyond all measure. */
    o = plain(2, 1);
    o.domains = &domain;
    o.domain_count = 1;
    for (int d = 0; d < 2; d++) {
        domain.box.count[d] = 1;
        o.periodic[d] = true;
        o.halo_high[d] = INT64_C(1) << 30;
    }
    refuse(world, 0, &o, HEM_ERR_RANGE);
}

/* Ranks that mean different grids. */
static void mismatches(hem_world *world) {
    if (size == 1)
        return;
    for (int i = 0; i < 7; i++) {
        hem_grid_options o = plain(2, 10);

        harness_step("mismatch", (uint64_t)i);
        if (me == size - 1) {
            o.dims = i == 0 ? 1 : 2;
            o.extent[1] = i == 1 ? 11 : 10;
            o.periodic[0] = i == 2;
            o.halo_low[0] = i == 3 ? 2 : 1;
            o.halo_high[1] = i == 4 ? 0 : 1;
            o.faces_only = i == 5;
            o.halo_high[0] = i == 6 ? 3 : 1;
        }
        expect(world, &o, HEM_ERR_MISMATCH);
    }
}

/* Two boxes, of any sizes, that overlap: of one rank and of two. Each asks the other once. */
static void overlap(hem_world *world, const hem_box *a, const hem_box *b, int dims, int64_t extent,
                    int first, int second) {
    hem_grid_domain domains[2];
    hem_grid_options o = plain(dims, extent);
    size_t count = 0;

    if (me == first)
        domains[count++] = (hem_grid_domain){1001, *a};
    if (me == second)
        domains[count++] = (hem_grid_domain){2002, *b};
    for (int d = 0; d < dims; d++)
        o.periodic[d] = true;
    o.domains = domains;
    o.domain_count = count;
    expect(world, &o, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("1001");
    CHECK_SENTENCE("2002");
    CHECK_NAMES_RANK(first);
    CHECK_NAMES_RANK(second);
}

static void overlaps(hem_world *world) {
    static const struct {
        hem_box a;
        hem_box b;
    } pairs[] = {
        {{{0, 0}, {5, 5}}, {{4, 4}, {5, 5}}},         /* a corner */
        {{{0, 0}, {5, 5}}, {{0, 0}, {5, 5}}},         /* the same */
        {{{0, 0}, {900, 900}}, {{450, 450}, {1, 1}}}, /* deep inside */
        {{{0, 0}, {900, 1}}, {{899, 0}, {1, 900}}},   /* two lines that cross */
        {{{0, 0}, {1000, 1000}}, {{999, 999}, {1, 1}}}, {{{3, 3}, {1, 1}}, {{3, 3}, {1, 1}}},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int way = 0; way < 4; way++) {
            bool swap = way % 2 == 1;
            int first = (int)i % size;
            int second = way < 2 ? first : (first + 1) % size;

            harness_step("overlap", i);
            overlap(world, swap ? &pairs[i].b : &pairs[i].a, swap ? &pairs[i].a : &pairs[i].b, 2,
                    1000, first, second);
        }
}

/* Among many good ones there is one that overlaps. */
static void one_of_many(hem_world *world) {
    hem_grid_domain domains[33];
    hem_grid_options o = plain(1, 32 * (int64_t)size);

    harness_step("one of many", 0);
    for (int i = 0; i < 32; i++)
        domains[i] = (hem_grid_domain){me * 100 + i, {{i * size + me}, {1}}};
    domains[32] = (hem_grid_domain){-9, {{17 * size}, {1}}};
    o.domains = domains;
    o.domain_count = me == size - 1 ? 33 : 32;
    expect(world, &o, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("domain 17");
    CHECK_SENTENCE("domain -9");
    o.domain_count = 32;
    expect(world, &o, HEM_OK);
}

int rank_main(hem_world *world) {
    me = hem_world_rank(world);
    size = hem_world_size(world);
    bad_options(world);
    bad_boxes(world);
    overflows(world);
    mismatches(world);
    overlaps(world);
    one_of_many(world);
    harness_close(world, HEM_OK);
    return 0;
}
