/* A few shapes of SVG, written to a file as they come. Failures are the file's. */
#ifndef HEMI_HALO_PATTERN_SVG_H
#define HEMI_HALO_PATTERN_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** A point of the picture; x to the right, y downwards. */
typedef struct hemi_spot {
    double x;
    double y;
} hemi_spot;

typedef struct hemi_area {
    double x;
    double y;
    double width;
    double height;
} hemi_area;

/** "#rrggbb". */
typedef struct hemi_colour {
    char text[8];
} hemi_colour;

/** The colour of a rank, `paler` of it white: 0 is the colour itself, 1 white; -1 is black. */
hemi_colour hemi_svg_colour(uint32_t rank, double paler);

static inline hemi_spot hemi_area_middle(hemi_area area) {
    return (hemi_spot){area.x + area.width / 2, area.y + area.height / 2};
}

/** The beginning of a picture, with a title above. The first `hatched` ranks need a hatching. */
void hemi_svg_begin(FILE *file, double width, double height, const char *title, uint32_t hatched);
void hemi_svg_end(FILE *file);

/** A filled area. `fill` is a colour; the area is of rank `rank`'s hatching if that is NULL. */
void hemi_svg_area(FILE *file, hemi_area area, const char *fill, uint32_t rank);

/** Lines that cut an area into `across` times `down` cells. */
void hemi_svg_cells(FILE *file, hemi_area area, int64_t across, int64_t down);

/** How a text stands: its class in the style, and where its anchor is. */
typedef struct hemi_text {
    const char *kind;   /**< title, label, small, count */
    const char *anchor; /**< start, middle, end */
    hemi_colour colour;
} hemi_text;

/** A text with its middle line at `at`. What is not plain is escaped. */
void hemi_svg_text(FILE *file, hemi_spot at, const hemi_text *how, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** An arrow, with a tooltip. It is moved to its right, so that there is room for one back. */
typedef struct hemi_arrow {
    hemi_spot from;
    hemi_spot to;
    uint32_t owner;
    uint32_t reader;
    uint64_t points;
    bool labelled; /**< with the number of points beside it */
} hemi_arrow;

void hemi_svg_arrow(FILE *file, const hemi_arrow *arrow);

/** Dots: begin, then each one, then end. */
void hemi_svg_dots_begin(FILE *file, const char *colour, double size);
void hemi_svg_dot(FILE *file, hemi_spot at);
void hemi_svg_dots_end(FILE *file);

/** What the library has no other use for than here, and so does not link a library for. */
double hemi_sqrt(double x);

#endif
