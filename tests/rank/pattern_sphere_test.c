/*
 * Patterns of the cubed sphere against its shape in space: every halo point is the cell that lies
 * there when one walks over the edges of a cube, vectors turn with the axes, cube corners are left
 * alone; for random cuts of the panels, with holes, ranks without domains and with many; and both
 * sides of every link.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "link_check.h"

enum {
    DOMAINS_MAX = 120,
    CELLS_MAX = 8,
    SPACE = 2 * CELLS_MAX + 1
};

/* How the header turns the panels: outside, x, y. */
static const int frames[6][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},   {{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}},
    {{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}, {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}},
    {{0, 0, 1}, {0, 1, 0}, {-1, 0, 0}},  {{0, 0, -1}, {0, 1, 0}, {1, 0, 0}},
};

struct cut {
    hem_sphere_options options;
    hem_sphere_domain domains[DOMAINS_MAX];
    int rank[DOMAINS_MAX];
    uint32_t index[DOMAINS_MAX];
    int count;
    int owner[6][CELLS_MAX][CELLS_MAX]; /* a domain, or -1 */
    int names[SPACE][SPACE][SPACE];     /* by place in space: panel, x, y, plus 1 */
    int mine[DOMAINS_MAX];
    int mine_count;
    const hem_pattern *pattern;
};

/* A cell of the cube. */
struct cell {
    int panel;
    int x;
    int y;
};

static int name_cell(struct cell cell) {
    return (cell.panel * CELLS_MAX + cell.x) * CELLS_MAX + cell.y;
}

static struct cell cell_named(int name) {
    return (struct cell){name / CELLS_MAX / CELLS_MAX, name / CELLS_MAX % CELLS_MAX,
                         name % CELLS_MAX};
}

/* Where a cell of a panel, or of the plane beyond one of its edges, is in space. */
static void locate(int panel, int n, int64_t x, int64_t y, int *at) {
    int flat[2] = {(int)(2 * x + 1 - n), (int)(2 * y + 1 - n)};
    int out = n;

    for (int d = 0; d < 2; d++) {
        int over = abs(flat[d]) - n;

        if (over <= 0)
            continue;
        out = n - over;
        flat[d] = flat[d] > 0 ? n : -n;
    }
    for (int i = 0; i < 3; i++)
        at[i] = CELLS_MAX + frames[panel][0][i] * out + frames[panel][1][i] * flat[0] +
                frames[panel][2][i] * flat[1];
}

/* The cell that is there. @return false beyond the corners of the cube. */
static bool find_cell(const struct cut *c, int panel, int64_t x, int64_t y, struct cell *cell_p) {
    int64_t n = c->options.cells;
    int at[3];

    if ((x < 0 || x >= n) && (y < 0 || y >= n))
        return false;
    locate(panel, (int)n, x, y, at);
    CHECK(c->names[at[0]][at[1]][at[2]] != 0);
    *cell_p = cell_named(c->names[at[0]][at[1]][at[2]] - 1);
    return true;
}

/* Making cuts. */

static void map_space(struct cut *c) {
    int n = (int)c->options.cells;
    int at[3];

    for (int p = 0; p < 6; p++)
        for (int x = 0; x < n; x++)
            for (int y = 0; y < n; y++) {
                locate(p, n, x, y, at);
                CHECK_EQ(c->names[at[0]][at[1]][at[2]], 0);
                c->names[at[0]][at[1]][at[2]] = name_cell((struct cell){p, x, y}) + 1;
            }
}

static void cut_panel(struct cut *c, harness_rng *rng, int panel, int parts) {
    int first = c->count;

    c->domains[c->count++] =
        (hem_sphere_domain){.panel = panel, .box = {{0, 0}, {c->options.cells, c->options.cells}}};
    for (int tries = 0; tries < 4 * parts && c->count < first + parts; tries++) {
        size_t pick = harness_below(rng, (size_t)(c->count - first));
        hem_sphere_domain *domain = &c->domains[first + (int)pick];
        int d = (int)harness_below(rng, 2);
        int64_t low;

        if (domain->box.count[d] < 2)
            continue;
        low = 1 + (int64_t)harness_below(rng, (size_t)domain->box.count[d] - 1);
        c->domains[c->count] = *domain;
        c->domains[c->count].box.start[d] += low;
        c->domains[c->count++].box.count[d] -= low;
        domain->box.count[d] = low;
    }
}

static void give_to_ranks(struct cut *c, harness_rng *rng, int size, int me) {
    uint32_t given[64] = {0};
    size_t some = 1 + harness_below(rng, (size_t)size);
    bool holes = harness_below(rng, 3) == 0;
    int kept = 0;

    for (int i = 0; i < c->count; i++)
        if (!holes || harness_below(rng, 5) != 0)
            c->domains[kept++] = c->domains[i];
    c->count = kept;
    for (int i = 0; i < c->count; i++) {
        c->rank[i] = (int)harness_below(rng, some);
        c->index[i] = given[c->rank[i]]++;
        c->domains[i].id = 100 - i;
        if (c->rank[i] == me)
            c->mine[c->mine_count++] = i;
    }
}

static void make_cut(struct cut *c, uint64_t seed, uint64_t round, int size, int me) {
    harness_rng rng = harness_rng_of(seed, round, 0);
    size_t parts = harness_below(&rng, 3) ? 4 : DOMAINS_MAX / 6;

    memset(c, 0, sizeof *c);
    memset(c->owner, -1, sizeof c->owner);
    c->options.struct_size = sizeof c->options;
    c->options.cells = 1 + (int64_t)harness_below(&rng, CELLS_MAX);
    c->options.halo = (int64_t)harness_below(&rng, (size_t)c->options.cells + 1);
    c->options.faces_only = harness_below(&rng, 4) == 0;
    map_space(c);
    for (int panel = 0; panel < 6; panel++)
        cut_panel(c, &rng, panel, 1 + (int)harness_below(&rng, parts));
    give_to_ranks(c, &rng, size, me);
    for (int i = 0; i < c->count; i++)
        for (int64_t x = 0; x < c->domains[i].box.count[0]; x++)
            for (int64_t y = 0; y < c->domains[i].box.count[1]; y++)
                c->owner[c->domains[i].panel][c->domains[i].box.start[0] + x]
                        [c->domains[i].box.start[1] + y] = i;
}

/* Comparing. */

static int64_t name_of(void *arg, size_t domain, const int64_t *at) {
    const struct cut *c = arg;
    const hem_sphere_domain *mine = &c->domains[c->mine[domain]];
    struct cell cell;

    CHECK(find_cell(c, mine->panel, mine->box.start[0] + at[0], mine->box.start[1] + at[1], &cell));
    return name_cell(cell);
}

struct halo {
    const struct cut *c;
    size_t domain;
    int writes[3 * CELLS_MAX][3 * CELLS_MAX]; /* from -CELLS_MAX on */
};

static uint32_t sides_of(const hem_box *box, int64_t x, int64_t y) {
    return (x < box->start[0] ? HEM_SIDE_LOW(0) : 0) |
           (x >= box->start[0] + box->count[0] ? HEM_SIDE_HIGH(0) : 0) |
           (y < box->start[1] ? HEM_SIDE_LOW(1) : 0) |
           (y >= box->start[1] + box->count[1] ? HEM_SIDE_HIGH(1) : 0);
}

/* A vector at a place of the plane beyond an edge, along an axis of the panel there, has which
 * component along x or y here? Walking over an edge, `out` of this panel turns to the way gone. */
static int component(const struct cut *c, int panel, int64_t x, int64_t y, int other, int from,
                     int to) {
    int64_t n = c->options.cells;
    int64_t at[2] = {x, y};
    int beyond = at[to] < 0 ? -1 : at[to] >= n ? 1 : 0;
    int sum = 0;

    for (int i = 0; i < 3; i++) {
        int want = beyond != 0 ? -beyond * frames[panel][0][i] : frames[panel][1 + to][i];

        sum += frames[other][1 + from][i] * want;
    }
    return sum;
}

static void check_turn(const struct cut *c, const hemi_link *link, int panel, int64_t x, int64_t y,
                       int other) {
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < 2; to++) {
            int got = link->turn.from[to] == from ? link->turn.sign[to] : 0;

            CHECK(got == component(c, panel, x, y, other, from, to));
        }
}

static void note_write(void *arg, const hemi_link *link, const int64_t *at) {
    struct halo *h = arg;
    const struct cut *c = h->c;
    const hem_sphere_domain *mine = &c->domains[c->mine[h->domain]];
    int64_t x = mine->box.start[0] + at[0];
    int64_t y = mine->box.start[1] + at[1];
    struct cell cell;
    int owner;

    CHECK(find_cell(c, mine->panel, x, y, &cell));
    owner = c->owner[cell.panel][cell.x][cell.y];
    CHECK(owner >= 0);
    CHECK_EQ(link->peer, c->rank[owner]);
    CHECK_EQ(link->there, c->index[owner]);
    CHECK_EQ(link->sides, sides_of(&mine->box, x, y));
    check_turn(c, link, mine->panel, x, y, cell.panel);
    h->writes[CELLS_MAX + x][CELLS_MAX + y]++;
}

/* Every point of the halo: written once if it has an owner, otherwise not. @return holes. */
static uint64_t check_writes(const struct halo *h, uint64_t *takes_part) {
    const struct cut *c = h->c;
    const hem_sphere_domain *mine = &c->domains[c->mine[h->domain]];
    const hem_box *box = &mine->box;
    int64_t halo = c->options.halo;
    uint64_t holes = 0;
    struct cell cell;

    for (int64_t x = box->start[0] - halo; x < box->start[0] + box->count[0] + halo; x++)
        for (int64_t y = box->start[1] - halo; y < box->start[1] + box->count[1] + halo; y++) {
            uint32_t sides = sides_of(box, x, y);
            bool part = sides != 0 && find_cell(c, mine->panel, x, y, &cell) &&
                        !(c->options.faces_only && __builtin_popcount(sides) > 1);
            bool owned = part && c->owner[cell.panel][cell.x][cell.y] >= 0;

            CHECK_EQ(h->writes[CELLS_MAX + x][CELLS_MAX + y], owned);
            holes += part && !owned;
            *takes_part += part;
        }
    return holes;
}

static uint64_t check_domain(const struct cut *c, size_t domain) {
    const hemi_domain *got = &c->pattern->domains[domain];
    const hem_sphere_domain *want = &c->domains[c->mine[domain]];
    struct halo h = {.c = c, .domain = domain};
    uint64_t takes_part = 0;
    uint64_t holes;

    for (size_t i = 0; i < c->pattern->recvs.count; i++)
        if (c->pattern->recvs.links[i].here == domain)
            link_each_point(c->pattern, &c->pattern->recvs.links[i], note_write, &h);
    holes = check_writes(&h, &takes_part);
    CHECK(got->id == want->id && got->panel == want->panel);
    CHECK(memcmp(&got->box, &want->box, sizeof got->box) == 0);
    CHECK_EQ(got->points, (want->box.count[0] + 2 * c->options.halo) *
                              (want->box.count[1] + 2 * c->options.halo));
    CHECK_EQ(got->halo_points, takes_part);
    return holes;
}

static void check_cut(hem_world *world, struct cut *c) {
    hem_sphere_domain domains[DOMAINS_MAX];
    hem_pattern *pattern = NULL;
    uint64_t holes = 0;

    for (int i = 0; i < c->mine_count; i++)
        domains[i] = c->domains[c->mine[i]];
    c->options.domains = domains;
    c->options.domain_count = (size_t)c->mine_count;
    CHECK_OK(hem_pattern_sphere(world, &c->options, &pattern));
    c->pattern = pattern;
    for (int i = 0; i < c->mine_count; i++)
        holes += check_domain(c, (size_t)i);
    CHECK_EQ(pattern->holes, holes);
    link_check_sides(world, pattern, name_of, c);
    CHECK_OK(hem_pattern_destroy(pattern));
}

static void random_cuts(hem_world *world) {
    uint64_t seed = harness_seed(world);
    static _Thread_local struct cut c;
    int rounds = harness_rounds(300);

    harness_note_seed(seed);
    for (int round = 0; round < rounds; round++) {
        harness_step("cut", (uint64_t)round);
        make_cut(&c, seed, (uint64_t)round, hem_world_size(world), hem_world_rank(world));
        check_cut(world, &c);
    }
}

/* What is wrong on one rank is an error on all. */
static void refuse(hem_world *world, const hem_sphere_options *bad, hem_status want) {
    hem_sphere_options good = {.struct_size = sizeof good, .cells = 4, .halo = 1};
    bool last = hem_world_rank(world) == hem_world_size(world) - 1;
    hem_pattern *pattern = NULL;

    CHECK_STATUS(hem_pattern_sphere(world, last ? bad : &good, &pattern), want);
    CHECK(pattern == NULL);
}

static void errors(hem_world *world) {
    hem_sphere_domain two[2] = {{7, 2, {{0, 0}, {3, 3}}}, {8, 2, {{2, 2}, {2, 2}}}};
    hem_sphere_domain panel = {1, 6, {{0, 0}, {1, 1}}};
    hem_sphere_domain box = {1, 5, {{3, 0}, {2, 1}}};
    hem_sphere_options o = {.struct_size = sizeof o, .cells = 4, .halo = 1};

    harness_step("errors", 0);
    o.domains = &panel;
    o.domain_count = 1;
    refuse(world, &o, HEM_ERR_RANGE);
    o.domains = &box;
    refuse(world, &o, HEM_ERR_RANGE);
    o.domains = two;
    o.domain_count = 2;
    refuse(world, &o, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("domain 7");
    CHECK_SENTENCE("domain 8");
    CHECK_NAMES_RANK(hem_world_size(world) - 1);
    two[1].panel = 3;
    o.halo = 5;
    refuse(world, &o, HEM_ERR_RANGE);
    o.halo = -1;
    refuse(world, &o, HEM_ERR_RANGE);
    o.halo = 2;
    if (hem_world_size(world) > 1)
        refuse(world, &o, HEM_ERR_MISMATCH);
    o.cells = 0;
    refuse(world, &o, HEM_ERR_ARG);
}

int rank_main(hem_world *world) {
    errors(world);
    random_cuts(world);
    harness_close(world, HEM_OK);
    return 0;
}
