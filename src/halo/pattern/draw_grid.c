/*
 * How this works. The boxes of the grid are drawn apart, so that each has room for its halo around it:
 * wherever a box begins or ends, the picture has a gap. Halos are drawn thicker than they are where
 * points are small. x is dimension 0, to the right; y is dimension 1, upwards.
 */
#include "halo/pattern/sketch.h"
#include "halo/pattern/svg.h"

#include <inttypes.h>
#include <stdlib.h>

#define TOP       58.0
#define GAP_ROOM  44.0 /* between two halos, for arrows and numbers */
#define LARGEST   26.0 /* of a point */
#define BOX_LEAST 64.0
/* With more links than this, there are no numbers, and with yet more no arrows. */
#define NUMBERS_MAX 600
#define ARROWS_MAX  4000

/* One dimension of the picture. */
typedef struct ruler {
    int64_t *cuts; /* where boxes begin or end inside of the grid */
    size_t cut_count;
    int64_t extent;
    bool periodic;
    int64_t low; /* width of the halo */
    int64_t high;
    double point; /* the size of a point */
    double halo;  /* the same of one in a halo */
    double gap;
    double margin;
} ruler;

typedef struct drawing {
    const hemi_sketch *sketch;
    FILE *file;
    ruler rulers[2];
    double width;
    double height; /* of the grid, without the legend */
} drawing;

static int compare(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void keep_distinct(ruler *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->cut_count; i++)
        if (r->cuts[i] > 0 && r->cuts[i] < r->extent &&
            (kept == 0 || r->cuts[kept - 1] != r->cuts[i]))
            r->cuts[kept++] = r->cuts[i];
    r->cut_count = kept;
}

static hem_status make_ruler(const hemi_sketch *sketch, int dim, ruler *r) {
    const hem_pattern *pattern = sketch->pattern;
    *r = (ruler){.extent = pattern->extent[dim],
                 .periodic = pattern->periodic[dim],
                 .low = pattern->halo_low[dim],
                 .high = pattern->halo_high[dim]};
    r->cuts = calloc(2 * sketch->domain_count + 1, sizeof *r->cuts);
    if (r->cuts == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_pattern_draw: no memory for the picture");
    for (size_t i = 0; i < sketch->domain_count; i++) {
        const hemi_sketch_domain *d = sketch->domains[i];
        r->cuts[r->cut_count++] = d->start[dim];
        r->cuts[r->cut_count++] = d->start[dim] + d->count[dim];
    }
    qsort(r->cuts, r->cut_count, sizeof *r->cuts, compare);
    keep_distinct(r);
    return HEM_OK;
}

/* A halo is not thinner than one can see, and not thicker than leaves room for the rest. */
static double halo_size(const ruler *r) {
    int64_t widest = r->low > r->high ? r->low : r->high;
    double size = widest > 0 ? 36 / (double)widest : 0;
    return size < 11 ? size : 11;
}

static void set_scale(ruler *rulers) {
    static const double room[2] = {960, 640};
    double point = LARGEST;
    for (int d = 0; d < 2; d++) {
        ruler *r = &rulers[d];
        r->halo = halo_size(r);
        r->gap = r->halo * (double)(r->low + r->high) + GAP_ROOM;
        r->margin = 24;
        if (r->periodic)
            r->margin +=
                r->halo * (double)(r->low > r->high ? r->low : r->high) + (d == 0 ? 66 : 46);
        double parts = (double)(r->cut_count + 1);
        double left = room[d] - 2 * r->margin - r->gap * (parts - 1);
        left = left > BOX_LEAST * parts ? left : BOX_LEAST * parts;
        double size = left / (double)r->extent;
        point = size < point ? size : point;
    }
    for (int d = 0; d < 2; d++) {
        /* No box is so small that its halo would be all there is. */
        double least = BOX_LEAST * (double)(rulers[d].cut_count + 1) / (double)rulers[d].extent;
        rulers[d].point = point > least ? point : least;
    }
}

static double length_of(const ruler *r) {
    return 2 * r->margin + r->point * (double)r->extent + r->gap * (double)r->cut_count;
}

/* Where a box begins that begins at `at`, and where one ends that ends there. */
static double place(const ruler *r, int64_t at, bool end) {
    size_t before = 0;
    while (before < r->cut_count && (end ? r->cuts[before] < at : r->cuts[before] <= at))
        before++;
    return r->margin + r->point * (double)at + r->gap * (double)before;
}

/* A position in a domain, from the first point that it owns: in its box, or in its halo. */
static double position(const ruler *r, const hemi_sketch_domain *d, int dim, int64_t at) {
    double low = place(r, d->start[dim], false);
    double high = place(r, d->start[dim] + d->count[dim], true);
    if (at < 0)
        return low + r->halo * (double)at;
    if (at > d->count[dim])
        return high + r->halo * (double)(at - d->count[dim]);
    return low + (high - low) * (double)at / (double)d->count[dim];
}

static hemi_area area_of(const drawing *g, const hemi_sketch_domain *d, const int64_t *start,
                         const int64_t *count) {
    double low[2];
    double high[2];
    for (int k = 0; k < 2; k++) {
        low[k] = position(&g->rulers[k], d, k, start[k]);
        high[k] = position(&g->rulers[k], d, k, start[k] + count[k]);
    }
    return (hemi_area){low[0], TOP + g->height - high[1], high[0] - low[0], high[1] - low[1]};
}

static hemi_area side_area(const drawing *g, const hemi_sketch_side *side) {
    return area_of(g, g->sketch->domains[side->domain], side->end->start, side->end->count);
}

static void draw_box(const drawing *g, const hemi_sketch_domain *d) {
    static const int64_t none[2] = {0, 0};
    hemi_area area = area_of(g, d, none, d->count);
    hemi_svg_area(g->file, area, hemi_svg_colour(d->rank, 0.35).text, 0);
}

static void draw_sent(const drawing *g) {
    for (size_t i = 0; i < g->sketch->link_count; i++) {
        const hemi_sketch_side *owner = &g->sketch->links[i].owner;
        uint32_t rank = g->sketch->domains[owner->domain]->rank;
        hemi_svg_area(g->file, side_area(g, owner), hemi_svg_colour(rank, 0).text, 0);
    }
}

static void draw_cells(const drawing *g, const hemi_sketch_domain *d) {
    static const int64_t none[2] = {0, 0};
    if (g->rulers[0].point >= 5 && g->rulers[1].point >= 5)
        hemi_svg_cells(g->file, area_of(g, d, none, d->count), d->count[0], d->count[1]);
}

static void draw_halo(const drawing *g, const hemi_sketch_link *link) {
    uint32_t owner = g->sketch->domains[link->owner.domain]->rank;
    hemi_svg_area(g->file, side_area(g, &link->halo), NULL, owner);
}

/* What stands in a box: only what fits. */
static void draw_name(const drawing *g, const hemi_sketch_domain *d) {
    static const int64_t none[2] = {0, 0};
    hemi_area area = area_of(g, d, none, d->count);
    hemi_spot at = hemi_area_middle(area);
    hemi_text name = {"label", "middle", hemi_svg_colour(d->rank, -0.6)};
    hemi_text small = {"small", "middle", name.colour};
    if (area.width < 90 || area.height < 56) {
        hemi_svg_text(g->file, at, &name, "%u", d->rank);
        return;
    }
    hemi_svg_text(g->file, (hemi_spot){at.x, at.y - 10}, &name, "rank %u", d->rank);
    at.y += 9;
    if (d->id == (int64_t)d->rank || area.width < 150)
        hemi_svg_text(g->file, at, &small, "%" PRId64 " x %" PRId64, d->count[0], d->count[1]);
    else
        hemi_svg_text(g->file, at, &small, "domain %" PRId64 ", %" PRId64 " x %" PRId64, d->id,
                      d->count[0], d->count[1]);
}

/* In which directions a halo lies beyond the grid: then it comes around the grid. */
static hemi_spot beyond(const drawing *g, const hemi_sketch_side *halo) {
    const hemi_sketch_domain *d = g->sketch->domains[halo->domain];
    double out[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        int64_t start = d->start[k] + halo->end->start[k];
        out[k] = start < 0 ? -1 : start >= g->rulers[k].extent ? 1 : 0;
    }
    return (hemi_spot){out[0], -out[1]};
}

/* Whether it does so at the edge of the picture, next to its box: there is room for an arrow. */
static bool at_edge(const drawing *g, const hemi_sketch_side *halo) {
    const hemi_sketch_domain *d = g->sketch->domains[halo->domain];
    for (int k = 0; k < 2; k++) {
        int64_t end = halo->end->start[k] + halo->end->count[k];
        bool low = d->start[k] + end <= 0;
        bool high = d->start[k] + halo->end->start[k] >= g->rulers[k].extent;
        if ((low && (d->start[k] != 0 || end != 0)) || (high && halo->end->start[k] != d->count[k]))
            return false;
    }
    return true;
}

static bool is_corner(uint32_t sides) {
    return (sides & 3) != 0 && (sides & 12) != 0;
}

/* From outside, with the owner's name. */
static void draw_around(const drawing *g, hemi_arrow *arrow, hemi_spot out, hemi_area halo) {
    double away[2] = {halo.width / 2 + 24, halo.height / 2 + 24};
    arrow->labelled = false;
    arrow->from = (hemi_spot){arrow->to.x + out.x * away[0], arrow->to.y + out.y * away[1]};
    hemi_svg_arrow(g->file, arrow);
    if (out.x != 0 && out.y != 0)
        return;
    hemi_text how = {"count",
                     out.x < 0   ? "end"
                     : out.x > 0 ? "start"
                                 : "middle",
                     hemi_svg_colour(arrow->owner, -0.35)};
    hemi_spot at = {arrow->from.x + 4 * out.x, arrow->from.y + 9 * out.y};
    hemi_svg_text(g->file, at, &how, "%u: %" PRIu64, arrow->owner, arrow->points);
}

static void draw_arrow(const drawing *g, const hemi_sketch_link *link) {
    hemi_area halo = side_area(g, &link->halo);
    hemi_spot out = beyond(g, &link->halo);
    hemi_arrow arrow = {hemi_area_middle(side_area(g, &link->owner)),
                        hemi_area_middle(halo),
                        g->sketch->domains[link->owner.domain]->rank,
                        g->sketch->domains[link->halo.domain]->rank,
                        link->halo.end->total,
                        !is_corner(link->halo.end->sides) && g->sketch->link_count <= NUMBERS_MAX};
    if (out.x == 0 && out.y == 0)
        hemi_svg_arrow(g->file, &arrow);
    else if (at_edge(g, &link->halo))
        draw_around(g, &arrow, out, halo);
}

/* In layers: what is sent lies on the boxes, the halos and arrows on top. */
static void draw_layers(const drawing *g) {
    const hemi_sketch *s = g->sketch;
    for (size_t i = 0; i < s->domain_count; i++)
        draw_box(g, s->domains[i]);
    draw_sent(g);
    for (size_t i = 0; i < s->domain_count; i++)
        draw_cells(g, s->domains[i]);
    for (size_t i = 0; i < s->link_count; i++)
        draw_halo(g, &s->links[i]);
    for (size_t i = 0; i < s->domain_count; i++)
        draw_name(g, s->domains[i]);
    for (size_t i = 0; i < s->link_count && s->link_count <= ARROWS_MAX; i++)
        draw_arrow(g, &s->links[i]);
}

static void make_title(const hemi_sketch *sketch, char *text, size_t room) {
    const hem_pattern *p = sketch->pattern;
    (void)snprintf(text, room, "%s%s%" PRId64 " x %" PRId64 " points on %u ranks",
                   sketch->title != NULL ? sketch->title : "", sketch->title != NULL ? ": " : "",
                   p->extent[0], p->extent[1], sketch->ranks);
}

static void draw_axes(const drawing *g) {
    const hem_pattern *p = g->sketch->pattern;
    static const hemi_text grey = {"small", "start", {"#777777"}};
    hemi_svg_text(g->file, (hemi_spot){24, 50}, &grey,
                  "x to the right%s, halo %" PRId64 " below and %" PRId64
                  " above;  y upwards%s, halo %" PRId64 " below and %" PRId64 " above",
                  p->periodic[0] ? ", periodic" : "", p->halo_low[0], p->halo_high[0],
                  p->periodic[1] ? ", periodic" : "", p->halo_low[1], p->halo_high[1]);
}

hem_status hemi_draw_grid(const hemi_sketch *sketch, FILE *file) {
    drawing g = {.sketch = sketch, .file = file};
    char title[256];
    hem_status status = make_ruler(sketch, 0, &g.rulers[0]);
    if (status == HEM_OK)
        status = make_ruler(sketch, 1, &g.rulers[1]);
    if (status == HEM_OK) {
        set_scale(g.rulers);
        g.width = length_of(&g.rulers[0]);
        g.width = g.width > 720 ? g.width : 720;
        g.height = length_of(&g.rulers[1]);
        double legend = TOP + g.height;
        make_title(sketch, title, sizeof title);
        hemi_svg_begin(file, g.width, legend + hemi_legend_height(sketch, g.width), title,
                       sketch->ranks > 2 ? sketch->ranks : 2);
        draw_axes(&g);
        draw_layers(&g);
        hemi_legend_draw(sketch, file, legend, g.width);
        hemi_svg_end(file);
    }
    free(g.rulers[0].cuts);
    free(g.rulers[1].cuts);
    return status;
}
