/*
 * Patterns of structured grids against the definition: every halo point, its owner and its link, for
 * random cuts of grids in 1 to 4 dimensions, periodic and not, with halos of any width, holes, ranks
 * without domains and with many; and both sides of every link.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "link_check.h"

enum {
    DOMAINS_MAX = 96
};

/* A grid and all domains of all ranks, which every rank works out by itself. */
struct cut {
    hem_grid_options options;
    hem_grid_domain domains[DOMAINS_MAX];
    int rank[DOMAINS_MAX];
    uint32_t index[DOMAINS_MAX]; /* which of its rank's domains it is */
    int count;
    int64_t points;
    int *owner; /* per point of the grid: a domain, or -1 */
    int mine[DOMAINS_MAX];
    int mine_count;
    const hem_pattern *pattern;
};

static int64_t point_index(const struct cut *c, const int64_t *at) {
    int64_t index = 0;

    for (int d = 0; d < c->options.dims; d++)
        index = index * c->options.extent[d] + at[d];
    return index;
}

/* Where a point is in the grid. @return false if it is outside. */
static bool wrap(const struct cut *c, const int64_t *at, int64_t *in) {
    for (int d = 0; d < c->options.dims; d++) {
        int64_t extent = c->options.extent[d];

        in[d] = at[d];
        if (c->options.periodic[d])
            in[d] = (at[d] % extent + extent) % extent;
        if (in[d] < 0 || in[d] >= extent)
            return false;
    }
    return true;
}

static bool in_box(int dims, const hem_box *box, const int64_t *at) {
    for (int d = 0; d < dims; d++)
        if (at[d] < box->start[d] || at[d] >= box->start[d] + box->count[d])
            return false;
    return true;
}

/* Step through a box. @return false after the last point. */
static bool next_point(int dims, const hem_box *box, int64_t *at) {
    for (int d = dims - 1; d >= 0; d--) {
        if (++at[d] < box->start[d] + box->count[d])
            return true;
        at[d] = box->start[d];
    }
    return false;
}

/* Making cuts. */

static void choose_grid(struct cut *c, harness_rng *rng) {
    hem_grid_options *o = &c->options;
    static const int64_t most[HEM_DIMS + 1] = {0, 60, 14, 7, 5};
    bool wide = harness_below(rng, 4) == 0;

    o->struct_size = sizeof *o;
    o->dims = 1 + (int)harness_below(rng, HEM_DIMS);
    o->faces_only = harness_below(rng, 4) == 0;
    c->points = 1;
    for (int d = 0; d < o->dims; d++) {
        o->extent[d] = 1 + (int64_t)harness_below(rng, (size_t)most[o->dims]);
        o->periodic[d] = harness_below(rng, 2) == 0;
        o->halo_low[d] = (int64_t)harness_below(rng, 3);
        o->halo_high[d] = (int64_t)harness_below(rng, 3);
        if (wide && harness_below(rng, 2) == 0)
            o->halo_low[d] = (int64_t)harness_below(rng, 12);
        if (wide && harness_below(rng, 2) == 0)
            o->halo_high[d] = (int64_t)harness_below(rng, 12);
        if (o->dims >= 3) {
            o->halo_low[d] %= 6;
            o->halo_high[d] %= 6;
        }
        c->points *= o->extent[d];
    }
}

/* A long one, for long boxes among tiny ones. */
static void choose_long_grid(struct cut *c, harness_rng *rng) {
    hem_grid_options *o = &c->options;

    o->struct_size = sizeof *o;
    o->dims = 2;
    o->faces_only = false;
    for (int d = 0; d < 2; d++) {
        o->periodic[d] = harness_below(rng, 2) == 0;
        o->halo_low[d] = (int64_t)harness_below(rng, 3);
        o->halo_high[d] = 1;
    }
    o->extent[0] = 6000 + (int64_t)harness_below(rng, 4000);
    o->extent[1] = 2 + (int64_t)harness_below(rng, 5);
    c->points = o->extent[0] * o->extent[1];
}

/* Cut a random box at a random place, again and again, whatever the sizes. If they are to be uneven,
 * mostly next to an end. */
static void cut_boxes(struct cut *c, harness_rng *rng, int parts, bool uneven) {
    hem_box all = {{0}, {0}};

    for (int d = 0; d < c->options.dims; d++)
        all.count[d] = c->options.extent[d];
    c->domains[0].box = all;
    c->count = 1;
    for (int tries = 0; tries < 4 * parts && c->count < parts; tries++) {
        hem_box *box = &c->domains[harness_below(rng, (size_t)c->count)].box;
        int d = (int)harness_below(rng, (size_t)c->options.dims);
        hem_box *other = &c->domains[c->count].box;
        int64_t low;

        if (box->count[d] < 2)
            continue;
        low = 1 + (int64_t)harness_below(rng, (size_t)box->count[d] - 1);
        if (uneven && harness_below(rng, 4) != 0)
            low = low % 2 == 0 ? 1 : box->count[d] - 1;
        *other = *box;
        other->start[d] += low;
        other->count[d] -= low;
        box->count[d] = low;
        c->count++;
    }
}

/* Leave some out: holes. */
static void drop_boxes(struct cut *c, harness_rng *rng) {
    int kept = 0;

    for (int i = 0; i < c->count; i++)
        if (harness_below(rng, 5) != 0)
            c->domains[kept++] = c->domains[i];
    c->count = kept;
}

static void give_to_ranks(struct cut *c, harness_rng *rng, int size, int me) {
    uint32_t given[64] = {0};
    size_t some = 1 + harness_below(rng, (size_t)size);

    for (int i = 0; i < c->count; i++) {
        c->rank[i] = (int)harness_below(rng, some);
        c->index[i] = given[c->rank[i]]++;
        c->domains[i].id = (int64_t)harness_below(rng, 1000) - 500;
        if (c->rank[i] == me)
            c->mine[c->mine_count++] = i;
    }
}

static void map_owners(struct cut *c) {
    c->owner = malloc((size_t)c->points * sizeof *c->owner);
    CHECK(c->owner != NULL);
    for (int64_t i = 0; i < c->points; i++)
        c->owner[i] = -1;
    for (int i = 0; i < c->count; i++) {
        int64_t at[HEM_DIMS];

        memcpy(at, c->domains[i].box.start, sizeof at);
        do {
            c->owner[point_index(c, at)] = i;
        } while (next_point(c->options.dims, &c->domains[i].box, at));
    }
}

static void make_cut(struct cut *c, uint64_t seed, uint64_t round, int size, int me) {
    harness_rng rng = harness_rng_of(seed, round, 0);
    bool uneven = round % 32 == 31;

    memset(c, 0, sizeof *c);
    if (uneven)
        choose_long_grid(c, &rng);
    else
        choose_grid(c, &rng);
    cut_boxes(c, &rng, 1 + (int)harness_below(&rng, harness_below(&rng, 4) ? 12 : DOMAINS_MAX),
              uneven);
    if (harness_below(&rng, 2) == 0)
        drop_boxes(c, &rng);
    give_to_ranks(c, &rng, size, me);
    map_owners(c);
}

/* Comparing. */

static int64_t name_of(void *arg, size_t domain, const int64_t *at) {
    const struct cut *c = arg;
    const hem_box *box = &c->domains[c->mine[domain]].box;
    int64_t global[HEM_DIMS] = {0};
    int64_t in[HEM_DIMS];

    for (int d = 0; d < c->options.dims; d++)
        global[d] = box->start[d] + at[d];
    CHECK(wrap(c, global, in));
    return point_index(c, in);
}

/* The halo of one domain: which points, and what has come to each. */
struct halo {
    const struct cut *c;
    size_t domain;
    hem_box reach;
    int64_t points;
    int *writes;
};

static void start_halo(struct halo *h, const struct cut *c, size_t domain) {
    const hem_box *box = &c->domains[c->mine[domain]].box;

    h->c = c;
    h->domain = domain;
    h->points = 1;
    for (int d = 0; d < c->options.dims; d++) {
        h->reach.start[d] = box->start[d] - c->options.halo_low[d];
        h->reach.count[d] = box->count[d] + c->options.halo_low[d] + c->options.halo_high[d];
        h->points *= h->reach.count[d];
    }
    h->writes = calloc((size_t)h->points, sizeof *h->writes);
    CHECK(h->writes != NULL);
}

static int64_t halo_index(const struct halo *h, const int64_t *global) {
    int64_t index = 0;

    for (int d = 0; d < h->c->options.dims; d++) {
        CHECK(global[d] >= h->reach.start[d] && global[d] < h->reach.start[d] + h->reach.count[d]);
        index = index * h->reach.count[d] + global[d] - h->reach.start[d];
    }
    return index;
}

/* Which sides of its box a point is beyond. */
static uint32_t sides_of(const struct cut *c, const hem_box *box, const int64_t *at) {
    uint32_t sides = 0;

    for (int d = 0; d < c->options.dims; d++) {
        if (at[d] < box->start[d])
            sides |= HEM_SIDE_LOW(d);
        if (at[d] >= box->start[d] + box->count[d])
            sides |= HEM_SIDE_HIGH(d);
    }
    return sides;
}

static void note_write(void *arg, const hemi_link *link, const int64_t *at) {
    struct halo *h = arg;
    const struct cut *c = h->c;
    const hem_box *box = &c->domains[c->mine[h->domain]].box;
    int64_t global[HEM_DIMS] = {0};
    int64_t in[HEM_DIMS];
    int owner;

    for (int d = 0; d < c->options.dims; d++)
        global[d] = box->start[d] + at[d];
    CHECK(wrap(c, global, in));
    owner = c->owner[point_index(c, in)];
    CHECK(owner >= 0);
    CHECK_EQ(link->peer, c->rank[owner]);
    CHECK_EQ(link->there, c->index[owner]);
    CHECK_EQ(link->sides, sides_of(c, box, global));
    h->writes[halo_index(h, global)]++;
}

/* Every point of the halo: written once if it has an owner, otherwise not. @return holes. */
static uint64_t check_writes(struct halo *h, uint64_t *takes_part) {
    const struct cut *c = h->c;
    const hem_box *box = &c->domains[c->mine[h->domain]].box;
    uint64_t holes = 0;
    int64_t at[HEM_DIMS];
    int64_t in[HEM_DIMS];

    memcpy(at, h->reach.start, sizeof at);
    do {
        bool left_out = in_box(c->options.dims, box, at) || !wrap(c, at, in) ||
                        (c->options.faces_only && __builtin_popcount(sides_of(c, box, at)) > 1);
        bool owned = !left_out && c->owner[point_index(c, in)] >= 0;

        CHECK_EQ(h->writes[halo_index(h, at)], owned);
        holes += !left_out && !owned;
        *takes_part += !left_out;
    } while (next_point(c->options.dims, &h->reach, at));
    return holes;
}

static uint64_t check_domain(const struct cut *c, size_t domain) {
    const hemi_domain *got = &c->pattern->domains[domain];
    const hem_grid_domain *want = &c->domains[c->mine[domain]];
    uint64_t takes_part = 0;
    struct halo h;
    uint64_t holes;

    start_halo(&h, c, domain);
    for (size_t i = 0; i < c->pattern->recvs.count; i++)
        if (c->pattern->recvs.links[i].here == domain)
            link_each_point(c->pattern, &c->pattern->recvs.links[i], note_write, &h);
    holes = check_writes(&h, &takes_part);
    CHECK(got->id == want->id);
    CHECK(memcmp(&got->box, &want->box, sizeof got->box) == 0);
    CHECK_EQ(got->points, h.points);
    CHECK_EQ(got->halo_points, takes_part);
    free(h.writes);
    return holes;
}

static void check_cut(hem_world *world, struct cut *c) {
    hem_grid_domain domains[DOMAINS_MAX];
    hem_pattern *pattern = NULL;
    uint64_t holes = 0;

    for (int i = 0; i < c->mine_count; i++)
        domains[i] = c->domains[c->mine[i]];
    c->options.domains = domains;
    c->options.domain_count = (size_t)c->mine_count;
    CHECK_OK(hem_pattern_grid(world, &c->options, &pattern));
    c->pattern = pattern;
    for (int i = 0; i < c->mine_count; i++)
        holes += check_domain(c, (size_t)i);
    CHECK_EQ(pattern->holes, holes);
    link_check_sides(world, pattern, name_of, c);
    CHECK_OK(hem_pattern_destroy(pattern));
    free(c->owner);
}

static void random_cuts(hem_world *world) {
    uint64_t seed = harness_seed(world);
    static _Thread_local struct cut c;
    int rounds = harness_rounds(600);

    harness_note_seed(seed);
    for (int round = 0; round < rounds; round++) {
        harness_step("cut", (uint64_t)round);
        make_cut(&c, seed, (uint64_t)round, hem_world_size(world), hem_world_rank(world));
        check_cut(world, &c);
    }
}

/* One domain that is the whole periodic grid, with a halo that goes around it several times: all
 * links are those of the domain to itself. */
static void around_itself(hem_world *world) {
    static _Thread_local struct cut c;

    for (int dims = 1; dims <= 3; dims++) {
        harness_step("around itself", (uint64_t)dims);
        memset(&c, 0, sizeof c);
        c.options = (hem_grid_options){.struct_size = sizeof c.options, .dims = dims};
        c.points = 1;
        for (int d = 0; d < dims; d++) {
            c.options.extent[d] = 1 + d;
            c.options.periodic[d] = true;
            c.options.halo_low[d] = 5;
            c.options.halo_high[d] = 2;
            c.domains[0].box.count[d] = 1 + d;
            c.points *= 1 + d;
        }
        c.count = 1;
        c.rank[0] = hem_world_size(world) - 1;
        c.mine_count = hem_world_rank(world) == c.rank[0];
        map_owners(&c);
        check_cut(world, &c);
    }
}

int rank_main(hem_world *world) {
    around_itself(world);
    random_cuts(world);
    harness_close(world, HEM_OK);
    return 0;
}
