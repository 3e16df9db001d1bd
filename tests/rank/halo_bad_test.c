/*
 * Patterns of bad or disagreeing input: boxes that are empty, outside, overlapping or too large, ids
 * that nobody owns or two own, positions and ranks that do not exist, lists that do not match. All
 * ranks get the same error with a sentence that names what is wrong, nobody gets a pattern, and the
 * world works afterwards.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "halo_bad.h"

struct rank {
    hem_world *world;
    int me;
    int size;
    bool odd; /**< this rank is the one that passes something bad */
};

#define HUGE_COUNT ((int64_t)1 << 62)

/* Grids. What `odd` ranks do, in the order of bad_grids. */
struct bad {
    const char *what;
    unsigned allowed;
    bool needs_two; /**< ranks */
    const char *names;
};

enum {
    ANY_BOX = HALO_RANGE,
    ANY_ARG = HALO_ARG | HALO_RANGE,
    ANY_SIZE = HALO_ARG | HALO_RANGE | HALO_LIMIT | HALO_MEMORY
};

static const struct bad bad_grids[] = {
    {"no dimensions", HALO_ARG, false, NULL},
    {"five dimensions", HALO_ARG, false, NULL},
    {"another extent", HALO_MISMATCH, true, NULL},
    {"another halo", HALO_MISMATCH, true, NULL},
    {"another periodicity", HALO_MISMATCH, true, NULL},
    {"faces only on one rank", HALO_MISMATCH, true, NULL},
    {"an empty box", ANY_BOX, false, NULL},
    {"a box of negative size", ANY_BOX, false, NULL},
    {"a box below the grid", ANY_BOX, false, NULL},
    {"a box above the grid", ANY_BOX, false, NULL},
    {"a box whose end overflows", ANY_BOX, false, NULL},
    {"an extent of 0", ANY_ARG, false, NULL},
    {"a negative halo", ANY_ARG, false, NULL},
    {"a halo that overflows", ANY_SIZE, false, NULL},
    {"no domains but a count", HALO_ARG, false, NULL},
    {"no struct size", HALO_ARG, false, NULL},
    {"the same box twice", HALO_MISMATCH, false, "1000"},
    {"the neighbour's points", HALO_MISMATCH, true, "rank 1"},
    {"a negative time limit", HALO_ARG, false, NULL},
    {"no options", HALO_ARG, false, NULL},
};

static void spoil_box(hem_grid_domain *d, int kind) {
    if (kind == 6)
        d->box.count[0] = 0;
    if (kind == 7)
        d->box.count[0] = -3;
    if (kind == 8)
        d->box.start[0] = -1;
    if (kind == 9)
        d->box.start[0] += HUGE_COUNT;
    if (kind == 10)
        d->box.count[0] = INT64_MAX;
    if (kind == 17)
        d->box.count[0] += 1;
}

static void spoil_grid(hem_grid_options *o, int kind) {
    if (kind < 2)
        o->dims = kind ? 5 : 0;
    if (kind == 2)
        o->extent[0] += 4;
    if (kind == 3)
        o->halo_high[0] = 2;
    if (kind == 4)
        o->periodic[0] = false;
    if (kind == 5)
        o->faces_only = true;
    if (kind == 11)
        o->extent[0] = 0;
    if (kind == 12)
        o->halo_low[0] = -1;
    if (kind == 13)
        o->halo_low[0] = o->halo_high[0] = INT64_MAX - 3;
    if (kind == 14)
        o->domains = NULL;
    if (kind == 15)
        o->struct_size = 0;
    if (kind == 18)
        o->timeout_ns = -7;
}

/* The odd rank is 0; its box ends where that of rank 1 begins. */
static void bad_grid(struct rank *r, int kind) {
    const struct bad *b = &bad_grids[kind];
    halo_grid g = halo_ring(r->size);
    hem_grid_options o = halo_grid_options(&g, r->me);
    hem_grid_domain domains[2] = {o.domains[0], o.domains[0]};
    hem_pattern *pattern = (hem_pattern *)&g;
    hem_status status;

    free((void *)(uintptr_t)o.domains);
    o.domains = domains;
    /* Some are bad on all ranks alike. */
    if (r->odd || (kind >= 11 && kind <= 13))
        spoil_grid(&o, kind);
    if (r->odd) {
        spoil_box(&domains[0], kind);
        o.domain_count = kind == 16 ? 2 : 1;
    }
    status = hem_pattern_grid(r->world, r->odd && kind == 19 ? NULL : &o, &pattern);
    halo_refused(r->world, b->what, status, b->allowed);
    if (b->names)
        CHECK_SENTENCE(b->names);
    CHECK(pattern == (hem_pattern *)&g);
    halo_grid_free(&g);
}

/* A tail that this library does not know, not zero. */
static void bad_tails(struct rank *r) {
    struct {
        hem_grid_options o;
        uint64_t more;
    } grid = {.o = {.struct_size = sizeof grid, .dims = 1, .extent = {9}}, .more = r->odd};
    struct {
        hem_mesh_options o;
        uint64_t more;
    } mesh = {.o = {.struct_size = sizeof mesh}, .more = r->odd};
    hem_pattern *pattern = NULL;

    halo_refused(r->world, "a grid's tail", hem_pattern_grid(r->world, &grid.o, &pattern),
                 HALO_ARG);
    halo_refused(r->world, "a mesh's tail", hem_pattern_mesh(r->world, &mesh.o, &pattern),
                 HALO_ARG);
    mesh.more = 0;
    CHECK_OK(hem_pattern_mesh(r->world, &mesh.o, &pattern));
    hem_pattern_destroy(pattern);
}

/* Meshes: rank r owns 10 r to 10 r + 3 and has the first point of the next rank as halo. */

static const struct bad bad_meshes[] = {
    {"an id that nobody owns", HALO_MISMATCH, false, "777"},
    {"an id that two ranks own", HALO_MISMATCH, true, "10"},
    {"an id that is owned twice", HALO_MISMATCH, false, "3"},
    {"a position beyond the end", HALO_RANGE, false, NULL},
    {"a negative id", HALO_RANGE, false, NULL},
    {"a halo id that is no point", HALO_RANGE, false, NULL},
    {"an owner that is no rank", HALO_RANGE, false, NULL},
    {"an owner that does not own it", HALO_MISMATCH, true, NULL},
    {"owners on one rank only", HALO_MISMATCH | HALO_ARG, true, NULL},
    {"no points but a count", HALO_ARG, false, NULL},
    {"a count that overflows", ANY_SIZE, false, NULL},
    {"more halo than fits", ANY_SIZE, false, NULL},
    {"a halo without positions", HALO_ARG, false, NULL},
};

/* What a rank passes for one. */
struct mesh {
    int64_t points[5];
    size_t halo[1];
    int64_t ids[1];
    int owners[1];
    hem_mesh_domain d;
};

static void spoil_lists(struct mesh *m, int kind, const struct rank *r) {
    if (kind == 0)
        m->points[4] = 777;
    if (kind == 2)
        m->points[2] = 3;
    if (kind == 3)
        m->halo[0] = 5;
    if (kind == 4)
        m->points[1] = -1;
    if (kind == 5)
        m->ids[0] = 888;
    if (kind == 6)
        m->owners[0] = r->size;
    if (kind == 7)
        m->owners[0] = r->me;
}

static void spoil_mesh(struct mesh *m, int kind, const struct rank *r) {
    bool has_halo = r->size > 1;

    spoil_lists(m, kind, r);
    if (kind == 8)
        m->d.halo_owners = m->owners;
    if (kind == 9 || kind == 10)
        m->d.points = NULL;
    if (kind == 12)
        m->d.halo = NULL;
    if (kind == 10)
        m->d.count = SIZE_MAX / 4;
    if (kind == 11)
        m->d.halo_count = SIZE_MAX / 4;
    else
        m->d.halo_count = kind != 1 && (has_halo || kind == 0 || kind == 3 || kind == 5 ||
                                        kind == 6 || kind == 12);
}

static void bad_mesh(struct rank *r, int kind) {
    const struct bad *b = &bad_meshes[kind];
    int next = (r->me + 1) % r->size;
    struct mesh m = {
        .points = {10 * r->me, 10 * r->me + 1, 10 * r->me + 2, 10 * r->me + 3, 10 * next},
        .halo = {4},
        .ids = {10 * next},
        .owners = {next},
        .d = {.points = m.points, .count = 5, .halo = m.halo, .halo_count = r->size > 1},
    };
    hem_mesh_options o = {.struct_size = sizeof o, .domains = &m.d, .domain_count = 1};
    hem_pattern *pattern = NULL;

    /* One rank alone cannot have its own point as halo of the same domain. */
    if (r->size == 1)
        m.points[4] = m.ids[0] = 4;
    if (kind == 5) {
        m.d.halo = NULL;
        m.d.halo_ids = m.ids;
    }
    if (kind == 6 || kind == 7)
        m.d.halo_owners = m.owners;
    if (r->odd)
        spoil_mesh(&m, kind, r);
    halo_refused(r->world, b->what, hem_pattern_mesh(r->world, &o, &pattern), b->allowed);
    if (b->names)
        CHECK_SENTENCE(b->names);
    CHECK(pattern == NULL);
}

/* Lists: every rank sends its points 0 to 2 to the next one's 5 to 7. */

static const struct bad bad_lists[] = {
    {"a peer that is no rank", HALO_RANGE, false, NULL},
    {"a negative peer", HALO_RANGE, false, NULL},
    {"a domain that is none", HALO_RANGE, false, NULL},
    {"a point beyond the end", HALO_RANGE, false, NULL},
    {"a negative point", HALO_RANGE, false, NULL},
    {"a point that is received twice", HALO_ARG | HALO_RANGE | HALO_MISMATCH, false, NULL},
    {"a list that nobody receives", HALO_MISMATCH, false, NULL},
    {"a list that nobody sends", HALO_MISMATCH, false, NULL},
    {"a list that is too short", HALO_MISMATCH, false, NULL},
    {"a list that is nowhere", HALO_ARG, false, NULL},
    {"a count that overflows", ANY_SIZE | HALO_MISMATCH, false, NULL},
};

static void bad_list(struct rank *r, int kind) {
    const struct bad *b = &bad_lists[kind];
    int64_t sent[3] = {0, 1, 2};
    int64_t received[3] = {5, 6, 7};
    size_t points = 8;
    hem_point_list send = {.peer = harness_right(r->world), .points = sent, .count = 3};
    hem_point_list recv = {.peer = harness_left(r->world), .points = received, .count = 3};
    hem_explicit_options o = {.struct_size = sizeof o,
                              .domain_points = &points,
                              .domain_count = 1,
                              .sends = &send,
                              .send_count = 1,
                              .receives = &recv,
                              .receive_count = 1};
    hem_pattern *pattern = NULL;

    if (r->odd) {
        if (kind < 2)
            send.peer = kind ? -1 : r->size;
        if (kind == 2)
            recv.domain = 1;
        if (kind == 3)
            sent[2] = 8;
        if (kind == 4)
            received[0] = -1;
        if (kind == 5)
            received[1] = 5;
        if (kind == 6)
            o.receive_count = 0;
        if (kind == 7)
            o.send_count = 0;
        if (kind == 8)
            send.count = 2;
        if (kind == 9)
            recv.points = NULL;
        if (kind == 10)
            send.count = SIZE_MAX / 4, send.points = NULL;
    }
    halo_refused(r->world, b->what, hem_pattern_explicit(r->world, &o, &pattern), b->allowed);
    CHECK(pattern == NULL);
}

/* The sphere: rank 0 has panel 0, the rest nothing. */

static const struct bad bad_spheres[] = {
    {"a panel that is none", HALO_RANGE, false, NULL},
    {"a negative panel", HALO_RANGE, false, NULL},
    {"a box outside of its panel", HALO_RANGE, false, NULL},
    {"a halo wider than a panel", ANY_ARG, false, NULL},
    {"no cells", ANY_ARG, false, NULL},
    {"boxes that overlap", HALO_MISMATCH, false, NULL},
    {"another number of cells", HALO_MISMATCH, true, NULL},
};

static void bad_sphere(struct rank *r, int kind) {
    const struct bad *b = &bad_spheres[kind];
    hem_sphere_domain d[2] = {{1, 0, {{0, 0}, {4, 4}}}, {2, 0, {{3, 3}, {5, 5}}}};
    hem_sphere_options o = {.struct_size = sizeof o, .cells = 8, .halo = 1, .domains = d};
    hem_pattern *pattern = NULL;

    if (r->odd) {
        o.domain_count = kind == 5 ? 2 : 1;
        if (kind < 2)
            d[0].panel = kind ? -1 : 6;
        if (kind == 2)
            d[0].box.count[1] = 9;
        if (kind == 6)
            o.cells = 9;
    }
    if (kind == 3)
        o.halo = 9;
    if (kind == 4)
        o.cells = 0;
    halo_refused(r->world, b->what, hem_pattern_sphere(r->world, &o, &pattern), b->allowed);
    CHECK(pattern == NULL);
}

/* Run every row of a table with rank 0 as the odd one. */
static void each(struct rank *r, const struct bad *table, size_t count,
                 void (*one)(struct rank *r, int kind)) {
    for (size_t i = 0; i < count; i++) {
        harness_step(table[i].what, i);
        if (!table[i].needs_two || r->size > 1)
            one(r, (int)i);
        if (i % 3 == 0)
            halo_works(r->world);
    }
}

#define EACH(table, one) each(&r, (table), sizeof(table) / sizeof *(table), (one))

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.odd = r.me == 0;
    EACH(bad_grids, bad_grid);
    bad_tails(&r);
    EACH(bad_meshes, bad_mesh);
    EACH(bad_lists, bad_list);
    EACH(bad_spheres, bad_sphere);
    halo_works(world);
    harness_close(world, HEM_OK);
    return 0;
}
