/* Grids cut into boxes, and what each storage cell of each box is; see halo_kit.h. */
#include "halo_kit.h"

void halo_grid_add(halo_grid *g, const hem_box *box, int rank) {
    g->boxes = realloc(g->boxes, (g->count + 1) * sizeof *g->boxes);
    CHECK(g->boxes != NULL);
    g->boxes[g->count++] = (halo_box){.box = *box, .rank = rank};
}

void halo_grid_free(halo_grid *g) {
    free(g->boxes);
    *g = (halo_grid){0};
}

/* Cutting. */

/* Cut box `which` across its `dim` at `at` points from its start. */
static void cut(halo_grid *g, size_t which, int dim, int64_t at) {
    hem_box rest = g->boxes[which].box;

    g->boxes[which].box.count[dim] = at;
    rest.start[dim] += at;
    rest.count[dim] -= at;
    halo_grid_add(g, &rest, 0);
}

void halo_grid_cut(halo_grid *g, size_t parts, harness_rng *rng) {
    hem_box all = {{0}, {0}};

    for (int i = 0; i < g->dims; i++)
        all.count[i] = g->extent[i];
    halo_grid_add(g, &all, 0);
    for (size_t tries = 0; g->count < parts && tries < 20 * parts; tries++) {
        size_t which = harness_below(rng, g->count);
        int dim = (int)harness_below(rng, (size_t)g->dims);
        int64_t count = g->boxes[which].box.count[dim];

        if (count > 1)
            cut(g, which, dim, 1 + (int64_t)harness_below(rng, (size_t)count - 1));
    }
}

static int by_rank(const void *a, const void *b) {
    const halo_box *x = a;
    const halo_box *y = b;
    int order = (x->rank > y->rank) - (x->rank < y->rank);

    for (int i = 0; i < HEM_DIMS && !order; i++)
        order = (x->box.start[i] > y->box.start[i]) - (x->box.start[i] < y->box.start[i]);
    return order ? order : (x->panel > y->panel) - (x->panel < y->panel);
}

/* Domains of a rank in any order. */
static void shuffle(halo_box *boxes, size_t count, harness_rng *rng) {
    for (size_t i = count; i > 1; i--) {
        size_t j = harness_below(rng, i);
        halo_box kept = boxes[i - 1];

        boxes[i - 1] = boxes[j];
        boxes[j] = kept;
    }
}

void halo_grid_deal(halo_grid *g, int ranks, bool random, size_t drop, harness_rng *rng) {
    size_t kept = 0;

    for (size_t i = 0; i < g->count; i++) {
        if (drop && harness_below(rng, drop) == 0)
            continue;
        g->boxes[kept] = g->boxes[i];
        g->boxes[kept].rank =
            (int)(random ? harness_below(rng, (size_t)ranks) : kept % (size_t)ranks);
        kept++;
    }
    g->count = kept;
    if (kept)
        qsort(g->boxes, kept, sizeof *g->boxes, by_rank);
    for (size_t i = 0, n = 1; i < kept; i += n) {
        for (n = 1; i + n < kept && g->boxes[i + n].rank == g->boxes[i].rank;)
            n++;
        shuffle(g->boxes + i, n, rng);
    }
}

halo_grid halo_grid_random(int dims, int64_t cells, size_t parts, int ranks, harness_rng *rng) {
    halo_grid g = {.dims = dims};
    bool random = harness_below(rng, 2);
    size_t drop = harness_below(rng, 3) ? 0 : 2 + harness_below(rng, 6);

    for (int i = 0; i < dims; i++) {
        g.extent[i] = 1 + (int64_t)harness_below(rng, (size_t)cells);
        g.periodic[i] = harness_below(rng, 2);
        g.low[i] = (int64_t)harness_below(rng, 4);
        g.high[i] = (int64_t)harness_below(rng, 4);
        if (harness_below(rng, 16) == 0)
            g.high[i] = g.extent[i] + (int64_t)harness_below(rng, 3);
    }
    g.faces_only = harness_below(rng, 5) == 0;
    halo_grid_cut(&g, 1 + harness_below(rng, parts), rng);
    halo_grid_deal(&g, ranks, random, drop, rng);
    return g;
}

/* The reference. */

/* Where a cell is in the grid; false if it is outside of it. */
static bool place_of(const halo_grid *g, const hem_box *box, const int64_t *at, int64_t *place) {
    for (int i = 0; i < g->dims; i++) {
        int64_t x = box->start[i] + at[i];

        if (g->periodic[i])
            x = (x % g->extent[i] + g->extent[i]) % g->extent[i];
        if (x < 0 || x >= g->extent[i])
            return false;
        place[i] = x;
    }
    return true;
}

static bool inside(int dims, const hem_box *box, const int64_t *place) {
    for (int i = 0; i < dims; i++)
        if (place[i] < box->start[i] || place[i] >= box->start[i] + box->count[i])
            return false;
    return true;
}

static int64_t key_of(const halo_grid *g, const int64_t *place) {
    int64_t key = 0;

    for (int i = 0; i < g->dims; i++)
        key = key * g->extent[i] + place[i];
    return key;
}

/* Who owns which place: a map of the grid, if it is small, or else the boxes one after the other. */
struct owners {
    const halo_grid *g;
    int *map;
};

static int search(const halo_grid *g, const int64_t *place) {
    for (size_t i = 0; i < g->count; i++)
        if (inside(g->dims, &g->boxes[i].box, place))
            return g->boxes[i].rank;
    return -1;
}

static int owner_of(const struct owners *o, const int64_t *place) {
    return o->map ? o->map[key_of(o->g, place)] : search(o->g, place);
}

/* Write the rank of a box into the map. */
static void paint(const struct owners *o, const halo_box *b) {
    int64_t place[HEM_DIMS];
    int dims = o->g->dims;
    int i = 0;

    memcpy(place, b->box.start, sizeof place);
    while (i >= 0) {
        o->map[key_of(o->g, place)] = b->rank;
        for (i = dims - 1; i >= 0 && ++place[i] == b->box.start[i] + b->box.count[i]; i--)
            place[i] = b->box.start[i];
    }
}

static struct owners find_owners(const halo_grid *g) {
    struct owners o = {.g = g};
    int64_t points = 1;

    for (int i = 0; i < g->dims; i++) {
        if (g->extent[i] > (1 << 22) / points)
            return o;
        points *= g->extent[i];
    }
    o.map = malloc((size_t)points * sizeof *o.map);
    CHECK(o.map != NULL);
    for (int64_t k = 0; k < points; k++)
        o.map[k] = -1;
    for (size_t b = 0; b < g->count; b++)
        paint(&o, &g->boxes[b]);
    return o;
}

/* `at` is relative to the first point that the box owns. */
static halo_cell judge(const struct owners *o, const hem_box *box, const int64_t *at) {
    const halo_grid *g = o->g;
    halo_cell cell = {.owner = -1, .turn = {1, 0, 0, 1}};
    int64_t place[HEM_DIMS];
    int beyond = 0;

    for (int i = 0; i < g->dims; i++) {
        if (at[i] < 0)
            cell.sides |= (uint16_t)HEM_SIDE_LOW(i);
        if (at[i] >= box->count[i])
            cell.sides |= (uint16_t)HEM_SIDE_HIGH(i);
        beyond += at[i] < 0 || at[i] >= box->count[i];
    }
    if (!place_of(g, box, at, place) || (g->faces_only && beyond > 1))
        return cell;
    cell.key = key_of(g, place);
    if (beyond == 0) {
        cell.kind = HALO_OWN;
        return cell;
    }
    cell.owner = owner_of(o, place);
    cell.kind = cell.owner < 0 ? HALO_HOLE : HALO_COPY;
    return cell;
}

halo_case halo_grid_case(const halo_grid *g, int ranks) {
    halo_case c = {.ranks = ranks};
    struct owners owners = find_owners(g);

    for (size_t b = 0; b < g->count; b++) {
        const hem_box *box = &g->boxes[b].box;
        int64_t shape[HEM_DIMS];
        int64_t at[HEM_DIMS];
        halo_domain *d;

        for (int i = 0; i < g->dims; i++)
            shape[i] = g->low[i] + box->count[i] + g->high[i];
        d = halo_case_add(&c, g->boxes[b].rank, g->dims, shape);
        d->is_grid = true;
        d->id = (int64_t)b + 1000;
        for (int i = 0; i < g->dims; i++) {
            d->first[i] = g->low[i];
            at[i] = -g->low[i];
        }
        for (size_t k = 0; k < d->count; k++) {
            d->cells[k] = judge(&owners, box, at);
            for (int i = g->dims - 1; i >= 0; i--) {
                if (++at[i] < box->count[i] + g->high[i])
                    break;
                at[i] = -g->low[i];
            }
        }
    }
    free(owners.map);
    return c;
}

/* Patterns. */

hem_grid_options halo_grid_options(const halo_grid *g, int rank) {
    hem_grid_options o = {
        .struct_size = sizeof o,
        .dims = g->dims,
        .faces_only = g->faces_only,
    };
    hem_grid_domain *domains = calloc(g->count + 1, sizeof *domains);

    CHECK(domains != NULL);
    for (int i = 0; i < g->dims; i++) {
        o.extent[i] = g->extent[i];
        o.periodic[i] = g->periodic[i];
        o.halo_low[i] = g->low[i];
        o.halo_high[i] = g->high[i];
    }
    for (size_t b = 0; b < g->count; b++) {
        if (g->boxes[b].rank != rank)
            continue;
        domains[o.domain_count].id = (int64_t)b + 1000;
        domains[o.domain_count++].box = g->boxes[b].box;
    }
    o.domains = domains;
    return o;
}

hem_pattern *halo_grid_pattern(hem_world *world, const halo_grid *g, const halo_case *c) {
    hem_grid_options options = halo_grid_options(g, hem_world_rank(world));
    hem_pattern *pattern = NULL;

    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    free((void *)(uintptr_t)options.domains);
    CHECK(pattern != NULL);
    if (c)
        halo_check_facts(c, world, pattern);
    return pattern;
}
