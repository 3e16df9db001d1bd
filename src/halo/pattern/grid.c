/*
 * How this works. Each domain asks who owns what lies in its box and halo, wrapped into the grid
 * (halo/pattern/cells.h). It then cuts its halo by sides, images and owners (halo/pattern/images.h),
 * dimension by dimension; every combination of pieces is a link. An owner that shares points with
 * the box itself overlaps it. What no link covers, inside of the grid, is a hole.
 */
#include "base/options.h"
#include "core/flight.h"
#include "halo/pattern/cells.h"
#include "halo/pattern/grid_link.h"
#include "halo/pattern/tiling.h"

#include <inttypes.h>
#include <stdlib.h>

/* A halo that goes around a small grid so often has more links than anybody can have meant. */
#define IMAGES_MAX (UINT64_C(1) << 20)

/* The most questions of a domain: the box with its halo, and that without the box. */
#define QUESTIONS_MAX ((1 + 2 * HEM_DIMS) << HEM_DIMS)

typedef struct grid {
    hemi_making making;
    hem_grid_options options;
    hemi_linker linker;
    hemi_owned *places;
    hemi_question *questions;
    size_t question_count;
    size_t question_room;
} grid;

static hem_status check_grid(const hem_grid_options *o) {
    if (o->dims < 1 || o->dims > HEM_DIMS)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_grid: %d dimensions: 1 to %d can be", o->dims,
                         HEM_DIMS);
    for (int d = 0; d < o->dims; d++) {
        if (o->extent[d] < 1 || o->extent[d] > HEMI_POINTS_MAX)
            return hemi_fail(HEM_ERR_ARG,
                             "hem_pattern_grid: extent %" PRId64 " of dimension %d: 1 to 2^62",
                             o->extent[d], d);
        if (o->halo_low[d] < 0 || o->halo_high[d] < 0)
            return hemi_fail(HEM_ERR_ARG,
                             "hem_pattern_grid: halo of %" PRId64 " and %" PRId64
                             " points in dimension %d",
                             o->halo_low[d], o->halo_high[d], d);
    }
    if (o->domains == NULL && o->domain_count != 0)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_grid: domains is NULL");
    return HEM_OK;
}

/* The box with its halo. @return false if it has more than 2^62 points. */
static bool grow(const hem_grid_options *o, const hem_box *box, hem_box *grown_p) {
    for (int d = 0; d < o->dims; d++) {
        if (o->halo_low[d] > HEMI_POINTS_MAX || o->halo_high[d] > HEMI_POINTS_MAX ||
            box->count[d] > HEMI_POINTS_MAX - o->halo_low[d] ||
            box->count[d] + o->halo_low[d] > HEMI_POINTS_MAX - o->halo_high[d])
            return false;
        grown_p->start[d] = box->start[d] - o->halo_low[d];
        grown_p->count[d] = box->count[d] + o->halo_low[d] + o->halo_high[d];
    }
    return hemi_box_points(o->dims, grown_p) >= 0;
}

static hem_status check_domain(const grid *g, const hem_grid_domain *domain) {
    const hem_grid_options *o = &g->options;
    uint64_t images = 1;
    hem_box grown;
    for (int d = 0; d < o->dims; d++) {
        int64_t start = domain->box.start[d];
        int64_t count = domain->box.count[d];
        if (start < 0 || count < 1 || start >= o->extent[d] || count > o->extent[d] - start)
            return hemi_fail(HEM_ERR_RANGE,
                             "domain %" PRId64 ": %" PRId64 " points from %" PRId64
                             " on in dimension %d are not in a grid of %" PRId64,
                             domain->id, count, start, d, o->extent[d]);
    }
    if (!grow(o, &domain->box, &grown))
        return hemi_fail(HEM_ERR_RANGE,
                         "domain %" PRId64 " with its halo has more than 2^62 points", domain->id);
    for (int d = 0; d < o->dims; d++)
        if (__builtin_mul_overflow(
                images, hemi_axis_room(&g->linker.axes[d], hemi_box_stretch(&domain->box, d)) - 2,
                &images) ||
            images > IMAGES_MAX)
            return hemi_fail(HEM_ERR_RANGE,
                             "the halo of domain %" PRId64
                             " goes around the grid more than %" PRIu64 " times",
                             domain->id, IMAGES_MAX);
    return HEM_OK;
}

static hem_status read_options(grid *g, const hem_grid_options *options, hem_pattern **pattern_p) {
    hem_grid_options *o = &g->options;
    hem_status status = hemi_options_read(o, sizeof *o, options, "hem_pattern_grid");
    if (status == HEM_OK && pattern_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_pattern_grid: pattern_p is NULL");
    if (status == HEM_OK)
        status = check_grid(o);
    if (status != HEM_OK)
        return status;
    for (int d = 0; d < o->dims; d++)
        g->linker.axes[d] =
            (hemi_axis){o->extent[d], o->periodic[d], o->halo_low[d], o->halo_high[d]};
    for (size_t i = 0; i < o->domain_count && status == HEM_OK; i++)
        status = check_domain(g, &o->domains[i]);
    return status;
}

static uint64_t fingerprint(const hem_grid_options *o) {
    uint64_t hash = hemi_mix((uint64_t)o->dims, o->faces_only);
    for (int d = 0; d < o->dims && d < HEM_DIMS; d++) {
        hash = hemi_mix(hash, (uint64_t)o->extent[d]);
        hash = hemi_mix(hash, o->periodic[d]);
        hash = hemi_mix(hash, (uint64_t)o->halo_low[d]);
        hash = hemi_mix(hash, (uint64_t)o->halo_high[d]);
    }
    return hash;
}

/* The halo points of a box that are inside of the grid, images included. */
static uint64_t halo_points(const grid *g, const hem_box *box) {
    int dims = g->options.dims;
    hem_box inside = *box;
    int64_t own = hemi_box_points(dims, box);
    int64_t all = 0;
    if (!g->options.faces_only) {
        for (int d = 0; d < dims; d++)
            inside.count[d] = hemi_axis_inside(&g->linker.axes[d], hemi_box_stretch(box, d));
        return (uint64_t)(hemi_box_points(dims, &inside) - own);
    }
    for (int d = 0; d < dims; d++)
        all += own / box->count[d] *
               (hemi_axis_inside(&g->linker.axes[d], hemi_box_stretch(box, d)) - box->count[d]);
    return (uint64_t)all;
}

static void fill_pattern(grid *g) {
    const hem_grid_options *o = &g->options;
    hem_pattern *pattern = g->making.pattern;
    pattern->dims = o->dims;
    for (int d = 0; d < o->dims; d++) {
        pattern->extent[d] = o->extent[d];
        pattern->periodic[d] = o->periodic[d];
        pattern->halo_low[d] = o->halo_low[d];
        pattern->halo_high[d] = o->halo_high[d];
    }
    for (size_t i = 0; i < o->domain_count; i++) {
        hemi_domain *domain = &pattern->domains[i];
        hem_box grown = {{0}, {0}};
        (void)grow(o, &o->domains[i].box, &grown);
        domain->id = o->domains[i].id;
        for (int d = 0; d < o->dims; d++) {
            domain->box.start[d] = o->domains[i].box.start[d];
            domain->box.count[d] = o->domains[i].box.count[d];
        }
        domain->points = (uint64_t)hemi_box_points(o->dims, &grown);
        domain->halo_points = halo_points(g, &domain->box);
    }
}

/* Add the places in the grid of a box that may stick out of it. */
static void ask(grid *g, size_t here, const hem_box *box, enum hemi_when when) {
    hem_box parts[1 << HEM_DIMS];
    int count = hemi_box_wrap(g->options.dims, box, g->options.extent, g->options.periodic, parts);
    for (int i = 0; i < count; i++)
        g->questions[g->question_count++] = (hemi_question){(uint32_t)here, 0, when, parts[i]};
}

/* Make room for the questions of one more domain. */
static bool reserve(grid *g) {
    if (g->question_room - g->question_count >= QUESTIONS_MAX)
        return true;
    size_t room = 2 * g->question_room + QUESTIONS_MAX;
    hemi_question *grown = realloc(g->questions, room * sizeof *grown);
    if (grown == NULL)
        return false;
    hemi_router_hold(&g->making.router, (room - g->question_room) * sizeof *grown);
    g->questions = grown;
    g->question_room = room;
    return true;
}

/* What this rank owns and asks. */
static hem_status make_questions(grid *g) {
    const hem_grid_options *o = &g->options;
    hem_box parts[2 * HEM_DIMS];
    g->places = calloc(o->domain_count + 1, sizeof *g->places);
    if (g->places == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu domains", o->domain_count);
    for (size_t i = 0; i < o->domain_count; i++) {
        const hem_box *box = &g->making.pattern->domains[i].box;
        hem_box grown = {{0}, {0}};
        g->places[i] = (hemi_owned){o->domains[i].id, 0, *box};
        if (!reserve(g))
            return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu domains", o->domain_count);
        (void)grow(o, box, &grown);
        ask(g, i, &grown, HEMI_ASK_COARSE);
        int count = hemi_box_subtract(o->dims, &grown, box, parts);
        for (int k = 0; k < count; k++)
            ask(g, i, &parts[k], HEMI_ASK_FINE);
    }
    return HEM_OK;
}

/* Add up holes: halo points of a domain that no link has. */
static void count_holes(hem_pattern *pattern, uint64_t holes) {
    if (__builtin_add_overflow(pattern->holes, holes, &pattern->holes))
        pattern->holes = UINT64_MAX;
}

/* Link a domain to itself, around the grid, and to its owners. */
static hem_status link_domain(grid *g, size_t here, const hemi_owner *owners, size_t count) {
    hem_pattern *pattern = g->making.pattern;
    hemi_owner itself = {.here = (uint32_t)here,
                         .rank = pattern->rank,
                         .there = (uint32_t)here,
                         .box = pattern->domains[here].box};
    uint64_t all = 0;
    uint64_t points = 0;
    hem_status status = hemi_linker_add(&g->linker, &itself, &all);
    for (size_t i = 0; i < count && status == HEM_OK; i++) {
        status = hemi_linker_add(&g->linker, &owners[i], &points);
        all += points;
    }
    if (status == HEM_OK)
        count_holes(pattern, pattern->domains[here].halo_points - all);
    return status;
}

static hem_status link_all(grid *g, const hemi_search *search) {
    hem_status status = hemi_linker_begin(&g->linker);
    size_t first = 0;
    for (size_t i = 0; i < g->options.domain_count && status == HEM_OK; i++) {
        size_t end = first;
        while (end < search->owner_count && search->owners[end].here == i)
            end++;
        status = link_domain(g, i, search->owners + first, end - first);
        first = end;
    }
    return status;
}

/* Search and link. What fails is remembered; the search is one that all take part in. */
static void make(grid *g) {
    hem_status status;
    fill_pattern(g);
    status = make_questions(g);
    hemi_making_fail(&g->making, status);
    hemi_search search = {.dims = g->options.dims, .spaces = 1};
    for (int d = 0; d < g->options.dims; d++)
        search.extent[d] = g->options.extent[d];
    if (status == HEM_OK) {
        search.places = g->places;
        search.place_count = g->options.domain_count;
        search.questions = g->questions;
        search.question_count = g->question_count;
    }
    hemi_cells_search(&g->making, &search);
    if (g->making.status == HEM_OK)
        hemi_making_fail(&g->making, link_all(g, &search));
    hemi_cells_free(&g->making, &search);
    hemi_linker_free(&g->linker);
    hemi_router_drop(&g->making.router, g->question_room * sizeof *g->questions);
    free(g->questions);
    free(g->places);
}

hem_status hem_pattern_grid(hem_world *world, const hem_grid_options *options,
                            hem_pattern **pattern_p) {
    grid g = {.linker = {.making = NULL}};
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_grid: world is NULL");
    hem_status status = read_options(&g, options, pattern_p);
    status = hemi_making_begin(&g.making, world, HEMI_CALL_PATTERN_GRID, HEMI_PATTERN_GRID,
                               g.options.domain_count, fingerprint(&g.options), status,
                               g.options.timeout_ns);
    if (status != HEM_OK)
        return status;
    g.linker.making = &g.making;
    g.linker.faces_only = g.options.faces_only;
    make(&g);
    return hemi_making_finish(&g.making, pattern_p);
}
