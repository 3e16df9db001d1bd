/*
 * How this works. A pattern of a mesh knows points, not cells. Each domain is moved away from the
 * middle of the mesh a little, with its halo, so that both copies of a point are seen: the owner's
 * as a dot, others as rings in the colour of the owner. Dots are as large as the points lie apart.
 */
#include "halo/pattern/sketch.h"
#include "halo/pattern/svg.h"

#include <inttypes.h>
#include <stdlib.h>

#define TOP    50.0
#define MARGIN 52.0
#define WIDTH  960.0
#define HEIGHT 700.0
/* How far apart domains are moved, as a part of their distance from the middle. */
#define APART 0.4
/* More points than this are not drawn one by one. */
#define POINTS_MAX 20000

/* A corner and the opposite one. */
typedef struct extent {
    hemi_spot low;
    hemi_spot high;
} extent;

typedef struct drawing {
    const hemi_sketch *sketch;
    FILE *file;
    hemi_spot *moves;      /* of each domain, in the coordinates of the mesh */
    hemi_spot *middles;    /* of what each domain owns */
    unsigned char **halos; /* 1 for each point of a domain that is halo */
    extent all;
    double scale;
    double dot;
    double ground;  /* what is pale around a dot */
    uint64_t every; /* how many points there are for one that is drawn */
    double height;
} drawing;

static hemi_spot point_of(const drawing *m, size_t domain, uint64_t at) {
    const double *xy = m->sketch->coordinates[domain];
    return (hemi_spot){xy[2 * at], xy[2 * at + 1]};
}

static hemi_spot paper(const drawing *m, size_t domain, hemi_spot at) {
    hemi_spot moved = {at.x + m->moves[domain].x, at.y + m->moves[domain].y};
    return (hemi_spot){MARGIN + (moved.x - m->all.low.x) * m->scale,
                       TOP + MARGIN + (m->all.high.y - moved.y) * m->scale};
}

static void widen(extent *e, hemi_spot at, bool first) {
    if (first)
        *e = (extent){at, at};
    e->low.x = at.x < e->low.x ? at.x : e->low.x;
    e->low.y = at.y < e->low.y ? at.y : e->low.y;
    e->high.x = at.x > e->high.x ? at.x : e->high.x;
    e->high.y = at.y > e->high.y ? at.y : e->high.y;
}

static hem_status mark_halos(drawing *m) {
    const hemi_sketch *s = m->sketch;
    for (size_t d = 0; d < s->domain_count; d++) {
        m->halos[d] = calloc(s->domains[d]->points + 1, 1);
        if (m->halos[d] == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "hem_pattern_draw: no memory for the picture");
    }
    for (size_t i = 0; i < s->link_count; i++) {
        const hemi_sketch_side *halo = &s->links[i].halo;
        for (uint64_t k = 0; k < halo->end->total; k++)
            m->halos[halo->domain][halo->list[k]] = 1;
    }
    return HEM_OK;
}

/* The middle of what each domain owns, and how far it is moved. @return the points owned in all. */
static uint64_t find_middles(drawing *m) {
    const hemi_sketch *s = m->sketch;
    hemi_spot sum = {0, 0};
    uint64_t all = 0;
    for (size_t d = 0; d < s->domain_count; d++) {
        hemi_spot own = {0, 0};
        uint64_t count = 0;
        for (uint64_t i = 0; i < s->domains[d]->points; i++) {
            if (m->halos[d][i])
                continue;
            hemi_spot at = point_of(m, d, i);
            own = (hemi_spot){own.x + at.x, own.y + at.y};
            count++;
        }
        sum = (hemi_spot){sum.x + own.x, sum.y + own.y};
        all += count;
        double n = count > 0 ? (double)count : 1;
        m->middles[d] = (hemi_spot){own.x / n, own.y / n};
    }
    double n = all > 0 ? (double)all : 1;
    for (size_t d = 0; d < s->domain_count; d++)
        m->moves[d] = (hemi_spot){APART * (m->middles[d].x - sum.x / n),
                                  APART * (m->middles[d].y - sum.y / n)};
    return all;
}

/* How large everything becomes, and what a dot is. */
static void set_scale(drawing *m, uint64_t owned) {
    const hemi_sketch *s = m->sketch;
    extent still = {{0, 0}, {0, 0}};
    bool first = true;
    uint64_t points = 0;
    for (size_t d = 0; d < s->domain_count; d++)
        for (uint64_t i = 0; i < s->domains[d]->points; i++) {
            hemi_spot at = point_of(m, d, i);
            hemi_spot moved = {at.x + m->moves[d].x, at.y + m->moves[d].y};
            widen(&still, at, first);
            widen(&m->all, moved, first);
            first = false;
            points++;
        }
    double width = m->all.high.x - m->all.low.x;
    double height = m->all.high.y - m->all.low.y;
    double across = width > 0 ? (WIDTH - 2 * MARGIN) / width : 1;
    double down = height > 0 ? (HEIGHT - 2 * MARGIN) / height : across;
    m->scale = across < down || width <= 0 ? (width > 0 ? across : down) : down;
    m->height = 2 * MARGIN + height * m->scale;
    double area = (still.high.x - still.low.x) * (still.high.y - still.low.y);
    double apart = hemi_sqrt(area / (double)(owned > 0 ? owned : 1)) * m->scale;
    m->dot = apart * 0.55 < 2 ? 2 : apart * 0.55 > 14 ? 14 : apart * 0.55;
    m->ground = apart * 1.7 < m->dot ? m->dot : apart * 1.7;
    m->every = points / POINTS_MAX + 1;
}

static void draw_own(const drawing *m, size_t domain) {
    const hemi_sketch_domain *d = m->sketch->domains[domain];
    for (int layer = 0; layer < 2; layer++) {
        /* A pale ground shows the domain as one piece. */
        hemi_colour colour = hemi_svg_colour(d->rank, layer == 0 ? 0.8 : 0);
        hemi_svg_dots_begin(m->file, colour.text, layer == 0 ? m->ground : m->dot);
        for (uint64_t i = 0; i < d->points; i += m->every)
            if (!m->halos[domain][i])
                hemi_svg_dot(m->file, paper(m, domain, point_of(m, domain, i)));
        hemi_svg_dots_end(m->file);
    }
}

static void draw_halo(const drawing *m, const hemi_sketch_link *link) {
    size_t domain = link->halo.domain;
    uint32_t owner = m->sketch->domains[link->owner.domain]->rank;
    for (int layer = 0; layer < 2; layer++) {
        hemi_colour colour = hemi_svg_colour(owner, layer == 0 ? 0 : 0.85);
        hemi_svg_dots_begin(m->file, colour.text, layer == 0 ? m->dot : m->dot * 0.6);
        for (uint64_t i = 0; i < link->halo.end->total; i += m->every)
            hemi_svg_dot(m->file,
                         paper(m, domain, point_of(m, domain, (uint64_t)link->halo.list[i])));
        hemi_svg_dots_end(m->file);
    }
}

/* The middle of one end of a link, on paper. */
static hemi_spot end_middle(const drawing *m, const hemi_sketch_side *side) {
    hemi_spot sum = {0, 0};
    double count = (double)side->end->total;
    for (uint64_t i = 0; i < side->end->total; i++) {
        hemi_spot at = point_of(m, side->domain, (uint64_t)side->list[i]);
        sum = (hemi_spot){sum.x + at.x / count, sum.y + at.y / count};
    }
    return paper(m, side->domain, sum);
}

static void draw_arrow(const drawing *m, const hemi_sketch_link *link) {
    hemi_arrow arrow = {end_middle(m, &link->owner),
                        end_middle(m, &link->halo),
                        m->sketch->domains[link->owner.domain]->rank,
                        m->sketch->domains[link->halo.domain]->rank,
                        link->halo.end->total,
                        true};
    hemi_svg_arrow(m->file, &arrow);
}

static void draw_name(const drawing *m, size_t domain) {
    const hemi_sketch_domain *d = m->sketch->domains[domain];
    hemi_text how = {"count", "middle", {"#222222"}};
    hemi_spot at = paper(m, domain, m->middles[domain]);
    if (d->points == d->halo_points)
        return;
    if (d->id == (int64_t)d->rank)
        hemi_svg_text(m->file, at, &how, "rank %u", d->rank);
    else
        hemi_svg_text(m->file, at, &how, "rank %u, domain %" PRId64, d->rank, d->id);
}

static void draw_layers(const drawing *m) {
    const hemi_sketch *s = m->sketch;
    for (size_t d = 0; d < s->domain_count; d++)
        draw_own(m, d);
    for (size_t i = 0; i < s->link_count; i++)
        draw_halo(m, &s->links[i]);
    for (size_t i = 0; i < s->link_count; i++)
        draw_arrow(m, &s->links[i]);
    for (size_t d = 0; d < s->domain_count; d++)
        draw_name(m, d);
}

static void draw_all(drawing *m, uint64_t owned) {
    char title[256];
    const hemi_sketch *s = m->sketch;
    (void)snprintf(title, sizeof title, "%s%s%" PRIu64 " points on %u ranks",
                   s->title != NULL ? s->title : "", s->title != NULL ? ": " : "", owned, s->ranks);
    double legend = TOP + m->height;
    hemi_svg_begin(m->file, WIDTH, legend + hemi_legend_height(s, WIDTH), title, 0);
    if (m->every > 1) {
        hemi_text grey = {"small", "start", {"#777777"}};
        hemi_svg_text(m->file, (hemi_spot){24, 50}, &grey, "one of %" PRIu64 " points is drawn",
                      m->every);
    }
    draw_layers(m);
    hemi_legend_draw(s, m->file, legend, WIDTH);
    hemi_svg_end(m->file);
}

hem_status hemi_draw_mesh(const hemi_sketch *sketch, FILE *file) {
    size_t domains = sketch->domain_count + 1;
    drawing m = {.sketch = sketch, .file = file};
    m.moves = calloc(domains, sizeof *m.moves);
    m.middles = calloc(domains, sizeof *m.middles);
    m.halos = calloc(domains, sizeof(unsigned char *));
    hem_status status = HEM_OK;
    if (m.moves == NULL || m.middles == NULL || m.halos == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "hem_pattern_draw: no memory for the picture");
    else
        status = mark_halos(&m);
    if (status == HEM_OK) {
        uint64_t owned = find_middles(&m);
        set_scale(&m, owned);
        draw_all(&m, owned);
    }
    for (size_t d = 0; m.halos != NULL && d < sketch->domain_count; d++)
        free(m.halos[d]);
    free(m.halos);
    free(m.middles);
    free(m.moves);
    return status;
}
