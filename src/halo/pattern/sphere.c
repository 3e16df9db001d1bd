/*
 * How this works. As on a grid (grid.c), but what sticks out of a panel lies on the neighbouring one:
 * a domain asks about the part of its halo that is on its own panel, and, folded over, about the
 * parts beyond each edge. Owners are folded back into the plane of the domain's panel, where what
 * they share with the sides of its halo are the links. Beyond two edges there is nothing.
 */
#include "base/options.h"
#include "core/flight.h"
#include "halo/pattern/box.h"
#include "halo/pattern/cells.h"
#include "halo/pattern/fold.h"
#include "halo/pattern/tiling.h"

#include <hem/exchange.h>
#include <inttypes.h>
#include <stdlib.h>

/* Questions of a domain: twice those beyond 4 edges, once all that is on its panel, and once that
 * without its box. */
#define QUESTIONS_MAX (2 * HEMI_EDGES + 1 + 4)

typedef struct sphere {
    hemi_making making;
    hem_sphere_options options;
    hemi_owned *places;
    hemi_question *questions;
    size_t question_count;
    uint64_t question_bytes;
} sphere;

static hem_status check_sphere(const hem_sphere_options *o) {
    if (o->cells < 1 || o->cells > HEMI_POINTS_MAX / 4)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_sphere: %" PRId64 " cells: 1 to 2^60", o->cells);
    if (o->halo < 0 || o->halo > o->cells)
        return hemi_fail(HEM_ERR_RANGE,
                         "hem_pattern_sphere: a halo of %" PRId64 ": 0 to the %" PRId64 " cells",
                         o->halo, o->cells);
    if (o->domains == NULL && o->domain_count != 0)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_sphere: domains is NULL");
    return HEM_OK;
}

/* The box with its halo. */
static hem_box grow(const hem_sphere_options *o, const hem_box *box) {
    hem_box grown = *box;
    for (int d = 0; d < 2; d++) {
        grown.start[d] -= o->halo;
        grown.count[d] += 2 * o->halo;
    }
    return grown;
}

static hem_status check_domain(const hem_sphere_options *o, const hem_sphere_domain *domain) {
    if (domain->panel < 0 || domain->panel >= HEMI_PANELS)
        return hemi_fail(HEM_ERR_RANGE, "domain %" PRId64 ": panel %d: 0 to 5", domain->id,
                         domain->panel);
    for (int d = 0; d < 2; d++) {
        int64_t start = domain->box.start[d];
        int64_t count = domain->box.count[d];
        if (start < 0 || count < 1 || start >= o->cells || count > o->cells - start)
            return hemi_fail(HEM_ERR_RANGE,
                             "domain %" PRId64 ": %" PRId64 " points from %" PRId64
                             " on in dimension %d are not on a panel of %" PRId64,
                             domain->id, count, start, d, o->cells);
    }
    const hem_box grown = grow(o, &domain->box);
    if (hemi_box_points(2, &grown) < 0)
        return hemi_fail(HEM_ERR_RANGE,
                         "domain %" PRId64 " with its halo has more than 2^62 points", domain->id);
    return HEM_OK;
}

static hem_status read_options(hem_sphere_options *o, const hem_sphere_options *options,
                               hem_pattern **pattern_p) {
    hem_status status = hemi_options_read(o, sizeof *o, options, "hem_pattern_sphere");
    if (status == HEM_OK && pattern_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_pattern_sphere: pattern_p is NULL");
    if (status == HEM_OK)
        status = check_sphere(o);
    for (size_t i = 0; status == HEM_OK && i < o->domain_count; i++)
        status = check_domain(o, &o->domains[i]);
    return status;
}

static uint64_t fingerprint(const hem_sphere_options *o) {
    return hemi_mix(hemi_mix(hemi_mix(HEMI_PANELS, (uint64_t)o->cells), (uint64_t)o->halo),
                    o->faces_only);
}

/* The part of the plane that an edge's panel covers; HEMI_EDGES stands for the panel itself. */
static hem_box zone(const sphere *s, enum hemi_edge edge) {
    int64_t cells = s->options.cells;
    hem_box box = {{0, 0}, {cells, cells}};
    if (edge != HEMI_EDGES)
        box.start[edge >= HEMI_EDGE_SOUTH] =
            edge == HEMI_EDGE_EAST || edge == HEMI_EDGE_NORTH ? cells : -cells;
    return box;
}

static hemi_fold fold_over(const sphere *s, int panel, enum hemi_edge edge) {
    return edge == HEMI_EDGES ? hemi_fold_none(panel)
                              : hemi_fold_over(panel, edge, s->options.cells);
}

/* The eight sides and corners of the halo of a box, by number, and which sides they are. */
static uint32_t side(const sphere *s, const hem_box *box, int number, hem_box *side_p) {
    int which[2] = {number / 3, number % 3};
    uint32_t sides = 0;
    *side_p = *box;
    for (int d = 0; d < 2; d++) {
        if (which[d] == 1)
            continue;
        sides |= which[d] == 0 ? HEM_SIDE_LOW(d) : HEM_SIDE_HIGH(d);
        side_p->start[d] =
            which[d] == 0 ? box->start[d] - s->options.halo : box->start[d] + box->count[d];
        side_p->count[d] = s->options.halo;
    }
    return s->options.faces_only && __builtin_popcount(sides) > 1 ? 0 : sides;
}

/* The halo points of a box that are on some panel. */
static uint64_t halo_points(const sphere *s, const hem_box *box) {
    uint64_t points = 0;
    for (int edge = 0; edge <= HEMI_EDGES; edge++)
        for (int number = 0; number < 9; number++) {
            hem_box covered = zone(s, (enum hemi_edge)edge);
            hem_box part;
            hem_box meet = {{0}, {0}};
            if (side(s, box, number, &part) != 0 && hemi_box_meet(2, &part, &covered, &meet))
                points += (uint64_t)hemi_box_points(2, &meet);
        }
    return points;
}

static void fill_pattern(sphere *s) {
    hem_pattern *pattern = s->making.pattern;
    pattern->dims = 2;
    for (int d = 0; d < 2; d++) {
        pattern->extent[d] = s->options.cells;
        pattern->halo_low[d] = pattern->halo_high[d] = s->options.halo;
    }
    for (size_t i = 0; i < s->options.domain_count; i++) {
        const hem_sphere_domain *from = &s->options.domains[i];
        hemi_domain *domain = &pattern->domains[i];
        domain->id = from->id;
        domain->panel = from->panel;
        for (int d = 0; d < 2; d++) {
            domain->box.start[d] = from->box.start[d];
            domain->box.count[d] = from->box.count[d];
        }
        hem_box grown = grow(&s->options, &domain->box);
        domain->points = (uint64_t)hemi_box_points(2, &grown);
        domain->halo_points = halo_points(s, &domain->box);
    }
}

static void ask(sphere *s, size_t here, int panel, const hem_box *box, enum hemi_when when) {
    s->questions[s->question_count++] =
        (hemi_question){(uint32_t)here, (uint32_t)panel, when, *box};
}

static void ask_for(sphere *s, size_t here) {
    const hemi_domain *domain = &s->making.pattern->domains[here];
    const hem_box grown = grow(&s->options, &domain->box);
    hem_box parts[4];
    hem_box meet = {{0}, {0}};
    for (int edge = 0; edge < HEMI_EDGES; edge++) {
        const hem_box covered = zone(s, (enum hemi_edge)edge);
        const hemi_fold fold = fold_over(s, domain->panel, (enum hemi_edge)edge);
        if (!hemi_box_meet(2, &grown, &covered, &meet))
            continue;
        meet = hemi_fold_there(&fold, &meet);
        ask(s, here, fold.panel, &meet, HEMI_ASK_COARSE);
        ask(s, here, fold.panel, &meet, HEMI_ASK_FINE);
    }
    const hem_box panel = zone(s, HEMI_EDGES);
    (void)hemi_box_meet(2, &grown, &panel, &meet);
    ask(s, here, domain->panel, &meet, HEMI_ASK_COARSE);
    int count = hemi_box_subtract(2, &meet, &domain->box, parts);
    for (int i = 0; i < count; i++)
        ask(s, here, domain->panel, &parts[i], HEMI_ASK_FINE);
}

/* What this rank owns and asks. */
static hem_status make_questions(sphere *s) {
    size_t count = s->options.domain_count;
    s->places = calloc(count + 1, sizeof *s->places);
    s->questions = calloc(QUESTIONS_MAX * (count + 1), sizeof *s->questions);
    if (s->places == NULL || s->questions == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu domains", count);
    s->question_bytes = QUESTIONS_MAX * (count + 1) * sizeof *s->questions;
    hemi_router_hold(&s->making.router, s->question_bytes);
    for (size_t i = 0; i < count; i++) {
        const hemi_domain *domain = &s->making.pattern->domains[i];
        s->places[i] = (hemi_owned){domain->id, (uint32_t)domain->panel, domain->box};
        ask_for(s, i);
    }
    return HEM_OK;
}

/* The link over an edge: `meet` is in the plane of the domain's panel. Owners go through their x,
 * then y; the receiver along. */
static hemi_want link_over(const hemi_domain *domain, const hemi_owner *owner,
                           const hemi_fold *fold, const hem_box *meet, uint32_t sides) {
    const hem_box theirs = hemi_fold_there(fold, meet);
    hemi_want want = {.owner = owner->rank,
                      .there = owner->there,
                      .here = owner->here,
                      .sides = sides,
                      .turn = hemi_fold_turn(fold)};
    want.mine.total = want.theirs.total = (uint64_t)hemi_box_points(2, meet);
    for (int k = 0; k < 2; k++) {
        uint8_t axis = fold->axis[k];
        int64_t first = meet->start[axis] + (fold->step[k] > 0 ? 0 : meet->count[axis] - 1);
        want.mine.axis[k] = axis;
        want.mine.step[k] = fold->step[k];
        want.mine.start[k] = first - domain->box.start[axis];
        want.mine.count[k] = meet->count[axis];
        want.theirs.axis[k] = (uint8_t)k;
        want.theirs.step[k] = 1;
        want.theirs.start[k] = theirs.start[k] - owner->box.start[k];
        want.theirs.count[k] = theirs.count[k];
    }
    return want;
}

static hem_status fail_overlap(const hem_pattern *pattern, const hemi_owner *owner,
                               const hem_box *meet) {
    const hemi_domain *domain = &pattern->domains[owner->here];
    return hemi_fail(HEM_ERR_MISMATCH,
                     "domain %" PRId64 " of rank %u and domain %" PRId64
                     " of rank %u overlap: both own point (%" PRId64 ", %" PRId64 ") of panel %d",
                     domain->id, pattern->rank, owner->id, owner->rank, meet->start[0],
                     meet->start[1], domain->panel);
}

/* All links from an owner. @return HEM_OK, or HEM_ERR_MISMATCH if it overlaps the domain. */
static hem_status link_owner(sphere *s, const hemi_owner *owner, uint64_t *points_p) {
    const hem_pattern *pattern = s->making.pattern;
    const hemi_domain *domain = &pattern->domains[owner->here];
    hem_box meet = {{0}, {0}};
    if (domain->panel == (int)owner->space && hemi_box_meet(2, &domain->box, &owner->box, &meet))
        return fail_overlap(pattern, owner, &meet);
    for (int edge = 0; edge <= HEMI_EDGES; edge++) {
        const hemi_fold fold = fold_over(s, domain->panel, (enum hemi_edge)edge);
        const hem_box box = hemi_fold_back(&fold, &owner->box);
        for (int number = 0; number < 9 && fold.panel == (int)owner->space; number++) {
            hem_box part;
            uint32_t sides = side(s, &domain->box, number, &part);
            if (sides == 0 || !hemi_box_meet(2, &part, &box, &meet))
                continue;
            hemi_want want = link_over(domain, owner, &fold, &meet, sides);
            hemi_making_want(&s->making, &want);
            *points_p += want.mine.total;
        }
    }
    return HEM_OK;
}

static hem_status link_all(sphere *s, const hemi_search *search) {
    hem_pattern *pattern = s->making.pattern;
    uint64_t all = 0;
    uint64_t points = 0;
    hem_status status = HEM_OK;
    for (size_t i = 0; i < search->owner_count && status == HEM_OK; i++)
        status = link_owner(s, &search->owners[i], &points);
    for (size_t i = 0; i < pattern->domain_count; i++)
        all += pattern->domains[i].halo_points;
    pattern->holes = all - points;
    return status;
}

/* Search and link. What fails is remembered; the search is one that all take part in. */
static void make(sphere *s) {
    fill_pattern(s);
    hem_status status = make_questions(s);
    hemi_making_fail(&s->making, status);
    hemi_search search = {
        .dims = 2, .extent = {s->options.cells, s->options.cells}, .spaces = HEMI_PANELS};
    if (status == HEM_OK) {
        search.places = s->places;
        search.place_count = s->options.domain_count;
        search.questions = s->questions;
        search.question_count = s->question_count;
    }
    hemi_cells_search(&s->making, &search);
    if (s->making.status == HEM_OK)
        hemi_making_fail(&s->making, link_all(s, &search));
    hemi_cells_free(&s->making, &search);
    hemi_router_drop(&s->making.router, s->question_bytes);
    free(s->places);
    free(s->questions);
}

hem_status hem_pattern_sphere(hem_world *world, const hem_sphere_options *options,
                              hem_pattern **pattern_p) {
    sphere s = {.places = NULL};
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_sphere: world is NULL");
    hem_status status = read_options(&s.options, options, pattern_p);
    status = hemi_making_begin(&s.making, world, HEMI_CALL_PATTERN_SPHERE, HEMI_PATTERN_SPHERE,
                               s.options.domain_count, fingerprint(&s.options), status,
                               s.options.timeout_ns);
    if (status != HEM_OK)
        return status;
    make(&s);
    return hemi_making_finish(&s.making, pattern_p);
}
