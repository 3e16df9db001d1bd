/* What is below a picture: what its signs mean, and a line of numbers for each rank. */
#include "halo/pattern/sketch.h"
#include "halo/pattern/svg.h"

#include <inttypes.h>

#define LINE        20.0
#define COLUMN      330.0
#define LISTED_MAX  48u
#define SIGNS_LINES 3

static const hemi_text plain = {"small", "start", {"#222222"}};
static const hemi_text grey = {"small", "start", {"#777777"}};

static uint32_t listed(const hemi_sketch *sketch) {
    return sketch->ranks < LISTED_MAX ? sketch->ranks : LISTED_MAX;
}

static uint32_t columns(double width) {
    return width < 2 * COLUMN ? 1 : (uint32_t)((width - 24) / COLUMN);
}

static uint32_t lines(const hemi_sketch *sketch, double width) {
    return (listed(sketch) + columns(width) - 1) / columns(width);
}

double hemi_legend_height(const hemi_sketch *sketch, double width) {
    return LINE * (double)(SIGNS_LINES + lines(sketch, width) + (sketch->ranks > LISTED_MAX)) + 24;
}

/* What a rank has: points that it owns, that others read, and that it reads. */
typedef struct sums {
    uint64_t domains;
    uint64_t own;
    uint64_t sent;
    uint64_t received;
} sums;

static sums add_up(const hemi_sketch *sketch, uint32_t rank) {
    sums s = {0};
    for (size_t i = 0; i < sketch->domain_count; i++) {
        const hemi_sketch_domain *d = sketch->domains[i];
        bool grid = sketch->pattern->kind == HEMI_PATTERN_GRID;
        if (d->rank != rank)
            continue;
        s.domains++;
        s.own += grid ? (uint64_t)(d->count[0] * d->count[1]) : d->points - d->halo_points;
    }
    for (size_t i = 0; i < sketch->link_count; i++) {
        const hemi_sketch_link *link = &sketch->links[i];
        bool sends = sketch->domains[link->owner.domain]->rank == rank;
        bool reads = sketch->domains[link->halo.domain]->rank == rank;
        s.sent += sends && !reads ? link->owner.end->total : 0;
        s.received += reads && !sends ? link->owner.end->total : 0;
    }
    return s;
}

static void draw_rank(const hemi_sketch *sketch, FILE *file, uint32_t rank, hemi_spot at) {
    sums s = add_up(sketch, rank);
    hemi_area swatch = {at.x, at.y - 6, 12, 12};
    hemi_svg_area(file, swatch, hemi_svg_colour(rank, 0).text, 0);
    hemi_svg_text(file, (hemi_spot){at.x + 20, at.y}, &plain, "rank %u", rank);
    if (s.domains == 0)
        hemi_svg_text(file, (hemi_spot){at.x + 75, at.y}, &grey, "no domain");
    else
        hemi_svg_text(file, (hemi_spot){at.x + 75, at.y}, &grey,
                      "owns %" PRIu64 ", sends %" PRIu64 ", receives %" PRIu64, s.own, s.sent,
                      s.received);
}

static void draw_signs_grid(FILE *file, double y) {
    hemi_area own = {24, y - 7, 14, 14};
    hemi_area rim = {150, y - 7, 14, 14};
    hemi_area halo = {330, y - 7, 14, 14};
    hemi_svg_area(file, own, hemi_svg_colour(0, 0.35).text, 0);
    hemi_svg_text(file, (hemi_spot){44, y}, &plain, "owned points");
    hemi_svg_area(file, rim, hemi_svg_colour(0, 0).text, 0);
    hemi_svg_text(file, (hemi_spot){170, y}, &plain, "owned, read by others");
    hemi_svg_area(file, halo, NULL, 1);
    hemi_svg_text(file, (hemi_spot){350, y}, &plain, "halo, in the colour of its owner");
}

static void draw_ring(FILE *file, hemi_spot at, uint32_t rank) {
    hemi_svg_dots_begin(file, hemi_svg_colour(rank, 0).text, 12);
    hemi_svg_dot(file, at);
    hemi_svg_dots_end(file);
    hemi_svg_dots_begin(file, hemi_svg_colour(rank, 0.8).text, 8);
    hemi_svg_dot(file, at);
    hemi_svg_dots_end(file);
}

static void draw_signs_mesh(FILE *file, double y) {
    hemi_svg_dots_begin(file, hemi_svg_colour(0, 0).text, 12);
    hemi_svg_dot(file, (hemi_spot){31, y});
    hemi_svg_dots_end(file);
    hemi_svg_text(file, (hemi_spot){44, y}, &plain, "owned point");
    draw_ring(file, (hemi_spot){157, y}, 1);
    hemi_svg_text(file, (hemi_spot){170, y}, &plain, "halo point, in the colour of its owner");
}

void hemi_legend_draw(const hemi_sketch *sketch, FILE *file, double top, double width) {
    double y = top + LINE / 2;
    bool grid = sketch->pattern->kind == HEMI_PATTERN_GRID;
    if (grid)
        draw_signs_grid(file, y);
    else
        draw_signs_mesh(file, y);
    y += LINE;
    hemi_arrow arrow = {{24, y - 3}, {44, y - 3}, 0, 0, 0, false};
    hemi_svg_arrow(file, &arrow);
    hemi_svg_text(file, (hemi_spot){52, y}, &plain,
                  grid ? "from owner to halo, with the number of points; thin: corners;"
                         " from outside, with the rank: around the grid"
                       : "from owner to halo, with the number of points");
    y += LINE * 1.5;
    uint32_t rows = lines(sketch, width);
    for (uint32_t r = 0; r < listed(sketch); r++) {
        uint32_t column = r / rows;
        uint32_t row = r % rows;
        draw_rank(sketch, file, r,
                  (hemi_spot){24 + COLUMN * (double)column, y + LINE * (double)row});
    }
    if (sketch->ranks > LISTED_MAX)
        hemi_svg_text(file, (hemi_spot){24, y + LINE * (double)rows}, &grey, "and %u ranks more",
                      sketch->ranks - LISTED_MAX);
}
