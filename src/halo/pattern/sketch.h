/*
 * A sketch: what rank 0 knows of a pattern when it draws it.
 *
 * Every rank writes down its domains and links; routed to rank 0, both ends of each link are put
 * together there.
 */
#ifndef HEMI_HALO_PATTERN_SKETCH_H
#define HEMI_HALO_PATTERN_SKETCH_H

#include "halo/pattern/pattern.h"
#include "halo/pattern/route.h"

#include <stdio.h>

/** A domain of some rank, as it says. */
typedef struct hemi_sketch_domain {
    uint32_t what; /**< HEMI_SKETCH_DOMAIN */
    uint32_t rank;
    int64_t id;
    int64_t start[2];
    int64_t count[2];
    uint64_t points;
    uint64_t halo_points;
} hemi_sketch_domain;

/** One end of a link, as its rank says. */
typedef struct hemi_sketch_end {
    uint32_t what;   /**< HEMI_SKETCH_SEND or HEMI_SKETCH_RECV */
    uint32_t peer;   /**< the rank at the other end */
    uint32_t domain; /**< of this rank */
    uint32_t sides;
    uint64_t total;
    int64_t start[2]; /**< grids: from the first point that the domain owns */
    int64_t count[2];
} hemi_sketch_end;

enum {
    HEMI_SKETCH_DOMAIN = 1,
    HEMI_SKETCH_SEND,
    HEMI_SKETCH_RECV
};

/** One end of a link, with the number of its domain in the sketch. */
typedef struct hemi_sketch_side {
    const hemi_sketch_end *end;
    const int64_t *list; /**< meshes: positions */
    size_t domain;
} hemi_sketch_side;

typedef struct hemi_sketch_link {
    hemi_sketch_side owner;
    hemi_sketch_side halo;
} hemi_sketch_link;

typedef struct hemi_sketch {
    const hem_pattern *pattern; /**< of rank 0 */
    uint32_t ranks;
    const char *title;
    const hemi_sketch_domain **domains; /**< ordered by rank */
    const double **coordinates;         /**< meshes: x and y of every point of each domain */
    size_t domain_count;
    hemi_sketch_link *links;
    size_t link_count;
} hemi_sketch;

/** Put what this rank has to say into the bag. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_sketch_tell(const hem_pattern *pattern, const double *const *coordinates,
                            hemi_bag *bag);

/**
 * Put together what all ranks said, which the sketch then refers to.
 * @return HEM_OK, HEM_ERR_MEMORY, HEM_ERR_MISMATCH.
 */
hem_status hemi_sketch_make(const hem_pattern *pattern, const hemi_bag *bag, hemi_sketch *sketch);
void hemi_sketch_free(hemi_sketch *sketch);

/** Draw a grid of two dimensions, and a mesh. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_draw_grid(const hemi_sketch *sketch, FILE *file);
hem_status hemi_draw_mesh(const hemi_sketch *sketch, FILE *file);

/** The height of the legend, and the legend itself from `top` on, `width` wide. */
double hemi_legend_height(const hemi_sketch *sketch, double width);
void hemi_legend_draw(const hemi_sketch *sketch, FILE *file, double top, double width);

#endif
