/*
 * Grids as large as numbers go, and boxes as unequal as they can be: links are where they should be,
 * nothing overflows, and the set-up stays small and quick.
 *
 * hem-test: ranks=1,2,4,7 modes=processes,threads timeout=60
 */
#include "halo/pattern/pattern.h"
#include "harness.h"

#define FAR (INT64_C(1) << 62)

static hem_pattern *make(hem_world *world, const hem_grid_options *o) {
    hem_pattern *pattern = NULL;

    CHECK_OK(hem_pattern_grid(world, o, &pattern));
    return pattern;
}

static uint64_t received(const hem_pattern *pattern) {
    uint64_t points = 0;

    for (size_t i = 0; i < pattern->recvs.count; i++)
        points += pattern->recvs.links[i].points.total;
    return points;
}

/* A ring of 2^62 points, cut evenly: one link from each side, wherever the ring ends. */
static void ring(hem_world *world, int64_t extent) {
    int size = hem_world_size(world);
    int me = hem_world_rank(world);
    hem_grid_options o = {.struct_size = sizeof o, .dims = 1, .periodic = {true}};
    hem_grid_domain domains[2];
    hem_grid_cut cut;
    hem_pattern *pattern;

    o.extent[0] = extent;
    o.halo_low[0] = 3;
    o.halo_high[0] = 2;
    CHECK_OK(hem_grid_balance(1, o.extent, 2 * size, &cut));
    for (int i = 0; i < 2; i++) {
        domains[i].id = i;
        CHECK_OK(hem_grid_part(&cut, 2 * me + i, &domains[i].box));
    }
    o.domains = domains;
    o.domain_count = 2;
    pattern = make(world, &o);
    CHECK_EQ(pattern->holes, 0);
    CHECK_EQ(pattern->recvs.count, 4);
    CHECK_EQ(pattern->sends.count, 4);
    for (size_t i = 0; i < 4; i++) {
        const hemi_link *link = &pattern->recvs.links[i];
        const hem_box *box = &domains[link->here].box;
        bool low = link->sides == HEM_SIDE_LOW(0);

        CHECK(low || link->sides == HEM_SIDE_HIGH(0));
        CHECK_EQ(link->there, 1 - link->here);
        CHECK_EQ(link->points.start[0], low ? -3 : box->count[0]);
        CHECK_EQ(link->points.count[0], low ? 3 : 2);
    }
    for (size_t i = 0; i < 4; i++) {
        const hemi_link *link = &pattern->sends.links[i];
        int64_t count = domains[link->here].box.count[0];
        bool low = link->sides == HEM_SIDE_LOW(0);

        CHECK_EQ(link->points.start[0], low ? count - 3 : 0);
    }
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* Halos that reach around almost all of the ring: single points far apart. */
static void far_reach(hem_world *world) {
    int size = hem_world_size(world);
    int me = hem_world_rank(world);
    hem_grid_domain domain = {me, {{me * (FAR / size)}, {1}}};
    hem_grid_options o = {.struct_size = sizeof o, .dims = 1, .periodic = {true}};
    hem_pattern *pattern;

    o.extent[0] = FAR;
    o.halo_low[0] = FAR / 2;
    o.halo_high[0] = FAR / 2 - 1;
    o.domains = &domain;
    o.domain_count = 1;
    pattern = make(world, &o);
    CHECK_EQ(received(pattern), size - 1);
    CHECK_EQ(pattern->holes, FAR - size);
    CHECK_EQ(pattern->domains[0].points, FAR);
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* A box of 2^30 x 2^30 points and one of a single point, which touch, and tiny ones far away. If the
 * large one looked for them tile by tile along its edges, this would not end. */
static void giant_and_dwarfs(hem_world *world) {
    int me = hem_world_rank(world);
    int last = hem_world_size(world) - 1;
    int64_t edge = INT64_C(1) << 30;
    hem_grid_domain domains[5] = {{0, {{0, 0}, {edge, edge}}},
                                  {1, {{edge, edge / 2}, {1, 1}}},
                                  {2, {{edge + 900, 5}, {1, 1}}},
                                  {3, {{5, edge + 77}, {1, 2}}},
                                  {4, {{edge - 1, edge}, {1, 1}}}};
    hem_grid_options o = {.struct_size = sizeof o, .dims = 2};
    hem_pattern *pattern;
    int64_t start = harness_now();

    for (int d = 0; d < 2; d++) {
        o.extent[d] = 2 * edge;
        o.halo_low[d] = o.halo_high[d] = 1;
    }
    o.domains = me == 0 ? domains : domains + 1;
    o.domain_count = me == 0 ? 1 : me == last ? 4 : 0;
    if (last == 0)
        o.domain_count = 5;
    pattern = make(world, &o);
    if (me == 0) {
        uint64_t points = 0;

        for (size_t i = 0; i < pattern->recvs.count; i++)
            points += pattern->recvs.links[i].here == 0 ? pattern->recvs.links[i].points.total : 0;
        CHECK_EQ(points, 2);
    }
    if (me == last) {
        /* The second one has 3 neighbours of the large one, the fifth 2. */
        CHECK_EQ(received(pattern) - (last == 0 ? 2 : 0), 3 + 2);
    }
    CHECK(pattern->setup_bytes < 8 << 20);
    CHECK(pattern->setup_peak_bytes < 16 << 20);
    CHECK(harness_now() - start < HEM_SEC(10));
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* Four dimensions, with extents that only together are too many to count. */
static void deep(hem_world *world) {
    int me = hem_world_rank(world);
    hem_grid_domain domain = {me, {{me, FAR - 1, 0, FAR - 2}, {1, 1, 1, 2}}};
    hem_grid_options o = {.struct_size = sizeof o, .dims = 4};
    hem_pattern *pattern;
    int64_t neighbours = (me > 0) + (me < hem_world_size(world) - 1);

    for (int d = 0; d < 4; d++) {
        o.extent[d] = FAR - d % 2;
        o.periodic[d] = true;
        o.halo_low[d] = o.halo_high[d] = 1;
    }
    domain.box.start[1] = o.extent[1] - 1;
    domain.box.start[3] = o.extent[3] - 2;
    o.domains = &domain;
    o.domain_count = 1;
    pattern = make(world, &o);
    CHECK_EQ(received(pattern), 2 * neighbours);
    CHECK_EQ(pattern->holes, 3 * 3 * 3 * 4 - 2 - 2 * neighbours);
    CHECK_OK(hem_pattern_destroy(pattern));
}

int rank_main(hem_world *world) {
    harness_step("ring", 0);
    ring(world, FAR);
    ring(world, FAR - 1);
    ring(world, FAR - 7);
    harness_step("far reach", 0);
    far_reach(world);
    harness_step("giant", 0);
    giant_and_dwarfs(world);
    harness_step("deep", 0);
    deep(world);
    harness_close(world, HEM_OK);
    return 0;
}
