/*
 * The cubed sphere as a solid cube. The cube has half edges of `cells`; a cell's centre is a point on
 * its surface with odd coordinates. What lies beyond the edge of a panel is found by folding the
 * panel's plane over the edge and asking which panel has that point.
 */
#include "halo_kit.h"

/* Of each panel: where it faces, and where its x and y point. East of the panel that faces +X is +Y;
 * the south edge of the north panel touches panel 0, and so does the north edge of the south one. */
static const int facing[6][3] = {{1, 0, 0},  {0, 1, 0}, {-1, 0, 0},
                                 {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
static const int x_axis[6][3] = {{0, 1, 0}, {-1, 0, 0}, {0, -1, 0},
                                 {1, 0, 0}, {0, 1, 0},  {0, 1, 0}};
static const int y_axis[6][3] = {{0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {-1, 0, 0}, {1, 0, 0}};

static int64_t dot(const int *a, const int64_t *b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* A place beside a panel, folded down: where on the cube, and where its x and y point there. */
struct spot {
    int64_t at[3];
    int64_t x[3];
    int64_t y[3];
};

static bool fold(int64_t n, int panel, int64_t i, int64_t j, struct spot *s) {
    int64_t u = 2 * i + 1 - n;
    int64_t v = 2 * j + 1 - n;
    int64_t down = 0;
    bool beside_x = u < -n || u > n;
    bool beside_y = v < -n || v > n;

    if (beside_x && beside_y)
        return false;
    if (beside_x)
        down = u < 0 ? -n - u : u - n;
    if (beside_y)
        down = v < 0 ? -n - v : v - n;
    if (beside_x)
        u = u < 0 ? -n : n;
    if (beside_y)
        v = v < 0 ? -n : n;
    for (int k = 0; k < 3; k++) {
        int out = facing[panel][k];

        s->at[k] = out * (n - down) + x_axis[panel][k] * u + y_axis[panel][k] * v;
        s->x[k] = beside_x ? (u < 0 ? out : -out) : x_axis[panel][k];
        s->y[k] = beside_y ? (v < 0 ? out : -out) : y_axis[panel][k];
    }
    return true;
}

/* The panel on which a spot lies, and its cell there. */
static int land(int64_t n, const struct spot *s, int64_t *i_p, int64_t *j_p) {
    for (int panel = 0; panel < 6; panel++) {
        if (dot(facing[panel], s->at) != n)
            continue;
        *i_p = (dot(x_axis[panel], s->at) + n - 1) / 2;
        *j_p = (dot(y_axis[panel], s->at) + n - 1) / 2;
        return panel;
    }
    harness_fail(__FILE__, __LINE__, "a place of no panel");
}

static bool covers(const halo_box *b, int panel, int64_t i, int64_t j) {
    return b->panel == panel && i >= b->box.start[0] && i < b->box.start[0] + b->box.count[0] &&
           j >= b->box.start[1] && j < b->box.start[1] + b->box.count[1];
}

static void set_sides(halo_cell *cell, const hem_box *box, const int64_t *at) {
    for (int k = 0; k < 2; k++) {
        if (at[k] < 0)
            cell->sides |= (uint16_t)HEM_SIDE_LOW(k);
        if (at[k] >= box->count[k])
            cell->sides |= (uint16_t)HEM_SIDE_HIGH(k);
    }
}

static halo_cell judge(const halo_cube *cube, const halo_box *b, const int64_t *at) {
    halo_cell cell = {.owner = -1};
    struct spot s;
    int64_t i;
    int64_t j;
    int panel;

    set_sides(&cell, &b->box, at);
    if (cube->faces_only && (cell.sides & 3) && (cell.sides & 12))
        return cell;
    if (!fold(cube->cells, b->panel, b->box.start[0] + at[0], b->box.start[1] + at[1], &s))
        return cell;
    panel = land(cube->cells, &s, &i, &j);
    cell.key = (panel * cube->cells + i) * cube->cells + j;
    cell.turn[0] = (int8_t)dot(x_axis[panel], s.x);
    cell.turn[1] = (int8_t)dot(y_axis[panel], s.x);
    cell.turn[2] = (int8_t)dot(x_axis[panel], s.y);
    cell.turn[3] = (int8_t)dot(y_axis[panel], s.y);
    cell.kind = cell.sides ? HALO_HOLE : HALO_OWN;
    for (size_t k = 0; cell.sides && k < cube->count; k++) {
        if (covers(&cube->boxes[k], panel, i, j)) {
            cell.kind = HALO_COPY;
            cell.owner = cube->boxes[k].rank;
        }
    }
    /* The library knows sides of grids only; the sphere's halos always take part. */
    cell.sides = 0;
    return cell;
}

halo_case halo_cube_case(const halo_cube *cube, int ranks) {
    halo_case c = {.ranks = ranks};

    for (size_t b = 0; b < cube->count; b++) {
        const halo_box *box = &cube->boxes[b];
        int64_t shape[2] = {box->box.count[0] + 2 * cube->halo, box->box.count[1] + 2 * cube->halo};
        halo_domain *d = halo_case_add(&c, box->rank, 2, shape);

        d->is_grid = true;
        d->id = (int64_t)b;
        d->first[0] = d->first[1] = cube->halo;
        for (size_t k = 0; k < d->count; k++) {
            int64_t at[2] = {(int64_t)k / shape[1] - cube->halo,
                             (int64_t)k % shape[1] - cube->halo};

            d->cells[k] = judge(cube, box, at);
        }
    }
    return c;
}

halo_cube halo_cube_random(int64_t cells, size_t parts, int ranks, harness_rng *rng) {
    halo_cube cube = {.cells = cells, .halo = (int64_t)harness_below(rng, 4)};
    halo_grid all = {.dims = 2};

    if (cube.halo > cells || harness_below(rng, 8) == 0)
        cube.halo = cells;
    cube.faces_only = harness_below(rng, 4) == 0;
    for (int panel = 0; panel < 6; panel++) {
        halo_grid one = {.dims = 2, .extent = {cells, cells}};

        halo_grid_cut(&one, 1 + harness_below(rng, parts), rng);
        for (size_t i = 0; i < one.count; i++) {
            halo_grid_add(&all, &one.boxes[i].box, 0);
            all.boxes[all.count - 1].panel = panel;
        }
        halo_grid_free(&one);
    }
    halo_grid_deal(&all, ranks, harness_below(rng, 2), harness_below(rng, 4) ? 0 : 5, rng);
    cube.boxes = all.boxes;
    cube.count = all.count;
    return cube;
}

void halo_cube_free(halo_cube *cube) {
    free(cube->boxes);
    *cube = (halo_cube){0};
}

hem_pattern *halo_cube_pattern(hem_world *world, const halo_cube *cube, const halo_case *c) {
    hem_sphere_domain *domains = calloc(cube->count + 1, sizeof *domains);
    hem_sphere_options o = {
        .struct_size = sizeof o,
        .cells = cube->cells,
        .halo = cube->halo,
        .faces_only = cube->faces_only,
        .domains = domains,
    };
    hem_pattern *pattern = NULL;

    CHECK(domains != NULL);
    for (size_t b = 0; b < cube->count; b++)
        if (cube->boxes[b].rank == hem_world_rank(world))
            domains[o.domain_count++] =
                (hem_sphere_domain){(int64_t)b, cube->boxes[b].panel, cube->boxes[b].box};
    CHECK_OK(hem_pattern_sphere(world, &o, &pattern));
    free(domains);
    CHECK(pattern != NULL);
    halo_check_facts(c, world, pattern);
    return pattern;
}
