#include "halo_setup.h"

enum {
    SIDE = 16, /**< points of a rank's box, each way */
    HALO = 2,
    STORED = SIDE + 2 * HALO,
    FIRST = 4 /**< ranks of the smallest world */
};

/* The most that a rank needed. */
struct cost {
    uint64_t messages;
    uint64_t bytes;
    uint64_t peak;
};

struct rank {
    hem_world *world;
    hem_grid_cut cut;
    hem_box box;
    int size;
};

static struct rank place(hem_world *world) {
    struct rank r = {.world = world, .size = hem_world_size(world)};
    int64_t parts = 1;
    int64_t extent[2];

    for (int64_t i = 1; i * i <= r.size; i++)
        if (r.size % i == 0)
            parts = i;
    extent[0] = SIDE * parts;
    extent[1] = SIDE * (r.size / parts);
    CHECK_OK(hem_grid_balance(2, extent, r.size, &r.cut));
    CHECK_OK(hem_grid_part(&r.cut, hem_world_rank(world), &r.box));
    CHECK_EQ(r.box.count[0], SIDE);
    CHECK_EQ(r.box.count[1], SIDE);
    return r;
}

/* The number of a point whose coordinates may be outside of the grid, which is periodic. */
static int64_t id_of(const struct rank *r, int64_t x, int64_t y) {
    int64_t w = r->cut.extent[0];
    int64_t h = r->cut.extent[1];

    return (x % w + w) % w * h + (y % h + h) % h;
}

static hem_pattern *make_grid(const struct rank *r) {
    hem_grid_domain d = {.box = r->box};
    hem_grid_options o = {.struct_size = sizeof o,
                          .dims = 2,
                          .extent = {r->cut.extent[0], r->cut.extent[1]},
                          .periodic = {true, true},
                          .halo_low = {HALO, HALO},
                          .halo_high = {HALO, HALO},
                          .domains = &d,
                          .domain_count = 1};
    hem_pattern *pattern = NULL;

    CHECK_OK(hem_pattern_grid(r->world, &o, &pattern));
    return pattern;
}

/* The same points in the same storage, as a mesh. In a small world points of the own box can be
 * halo as well, which a mesh does not have: such cells are left out and get numbers of their own. */
static bool is_halo(const struct rank *r, int64_t i, int64_t j) {
    bool own = i >= HALO && i < SIDE + HALO && j >= HALO && j < SIDE + HALO;

    return !own && r->cut.extent[0] > SIDE && r->cut.extent[1] > SIDE;
}

static hem_pattern *make_mesh(const struct rank *r) {
    int64_t points[STORED * STORED];
    size_t halo[STORED * STORED];
    hem_mesh_domain d = {.points = points, .count = STORED * STORED, .halo = halo};
    hem_mesh_options o = {.struct_size = sizeof o, .domains = &d, .domain_count = 1};
    hem_pattern *pattern = NULL;
    int64_t spare = ((int64_t)hem_world_rank(r->world) + 1) << 40;

    for (int64_t i = 0; i < STORED; i++) {
        for (int64_t j = 0; j < STORED; j++) {
            int64_t k = i * STORED + j;
            bool own = i >= HALO && i < SIDE + HALO && j >= HALO && j < SIDE + HALO;

            points[k] = id_of(r, r->box.start[0] + i - HALO, r->box.start[1] + j - HALO);
            if (is_halo(r, i, j))
                halo[d.halo_count++] = (size_t)k;
            else if (!own)
                points[k] = spare + k;
        }
    }
    CHECK_OK(hem_pattern_mesh(r->world, &o, &pattern));
    return pattern;
}

static void exchange_once(const struct rank *r, const hem_pattern *pattern, bool mesh) {
    int64_t field[STORED * STORED];
    hem_binding b = {
        .pattern = pattern,
        .field = {.struct_size = sizeof b.field, .memory = field, .dtype = HEM_I64},
    };
    hem_exchange_options o = {.struct_size = sizeof o, .bindings = &b, .count = 1};
    hem_exchange *exchange = NULL;

    for (int64_t k = 0; k < STORED * STORED; k++) {
        int64_t i = k / STORED - HALO;
        int64_t j = k % STORED - HALO;
        bool own = i >= 0 && i < SIDE && j >= 0 && j < SIDE;

        field[k] = own ? id_of(r, r->box.start[0] + i, r->box.start[1] + j) : -1;
    }
    CHECK_OK(hem_exchange_create(r->world, &o, &exchange));
    CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
    for (int64_t k = 0; k < STORED * STORED; k++) {
        int64_t i = k / STORED;
        int64_t j = k % STORED;
        bool own = i >= HALO && i < SIDE + HALO && j >= HALO && j < SIDE + HALO;
        int64_t id = id_of(r, r->box.start[0] + i - HALO, r->box.start[1] + j - HALO);

        CHECK_EQ(field[k], own || !mesh || is_halo(r, i, j) ? id : -1);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
}

static struct cost cost_of(const struct rank *r, const hem_pattern *pattern) {
    hem_pattern_facts facts = {.struct_size = sizeof facts};
    uint64_t mine[3];
    uint64_t most[3];

    CHECK_OK(hem_pattern_info(pattern, &facts));
    mine[0] = facts.setup_messages;
    mine[1] = facts.setup_bytes;
    mine[2] = facts.setup_peak_bytes;
    CHECK_OK(hem_allreduce(r->world, mine, most, 3, HEM_U64, HEM_MAX, LIMIT));
    return (struct cost){most[0], most[1], most[2]};
}

static struct cost measure(const struct rank *r, bool mesh) {
    hem_pattern *pattern = mesh ? make_mesh(r) : make_grid(r);
    struct cost cost = cost_of(r, pattern);

    if (hem_world_rank(r->world) == 0)
        printf("%s, %d ranks: at most %llu messages, %llu bytes, %llu bytes of memory\n",
               mesh ? "mesh" : "grid", r->size, (unsigned long long)cost.messages,
               (unsigned long long)cost.bytes, (unsigned long long)cost.peak);
    exchange_once(r, pattern, mesh);
    hem_pattern_destroy(pattern);
    return cost;
}

static uint64_t log_of(int ranks) {
    uint64_t bits = 0;

    while (1 << bits < ranks)
        bits++;
    return bits;
}

/*
 * A route is a message per bit of the number of ranks, perhaps one more; a pattern needs a handful of
 * them. Each record, of which there are as many as points of the halo and registered tiles, is carried
 * once per bit. 64 bytes for each of the points that a rank stores and a fixed part are generous.
 */
static void check_cost(const struct cost *cost, int ranks) {
    uint64_t bits = log_of(ranks) + 1;
    uint64_t few = ranks <= 32 ? (uint64_t)ranks : 0;

    CHECK(cost->messages > 0);
    CHECK(cost->messages <= 8 * (bits + few));
    CHECK(cost->bytes <= bits * (STORED * STORED * 64 + 8192));
    CHECK(cost->peak <= 8 * (STORED * STORED * 64 + 16384));
}

int halo_setup_main(hem_world *world) {
    struct cost last[2] = {{0, 0, 0}, {0, 0, 0}};
    int size = hem_world_size(world);

    for (int ranks = FIRST; ranks <= size; ranks *= 2) {
        bool in = hem_world_rank(world) < ranks;
        hem_world *part = NULL;
        struct rank r;

        CHECK_OK(hem_world_split(world, in ? 0 : HEM_NO_COLOUR, 0, &part));
        for (int mesh = 0; mesh < 2 && in; mesh++) {
            struct cost cost;

            harness_step(mesh ? "mesh of ranks" : "grid of ranks", (uint64_t)ranks);
            r = place(part);
            cost = measure(&r, mesh);
            check_cost(&cost, ranks);
            /* Twice the ranks are one bit more. Half of them were there the last time. */
            if (ranks > 64 && hem_world_rank(world) < ranks / 2) {
                CHECK(cost.messages <= last[mesh].messages + 8);
                CHECK(cost.bytes <= last[mesh].bytes + last[mesh].bytes / 2);
                CHECK(cost.peak <= last[mesh].peak * 2);
            }
            last[mesh] = cost;
        }
        if (in)
            CHECK_OK(hem_world_close(part));
    }
    harness_close(world, HEM_OK);
    return 0;
}
