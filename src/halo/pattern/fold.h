/*
 * The edges of a cube's panels: what lies beyond them.
 *
 * Every panel is a square of a cube, with its x and y along two of the cube's axes. Beyond an edge the
 * neighbouring panel is folded up into the plane of this one: coordinates of this panel that stick
 * out, by at most its length, name points of that panel. Everything follows from where the panels
 * are in space (include/hem/pattern.h says how they are turned); no table of edges is written down.
 */
#ifndef HEMI_HALO_PATTERN_FOLD_H
#define HEMI_HALO_PATTERN_FOLD_H

#include "halo/pattern/pattern.h"

#define HEMI_PANELS 6

/** The edges of a panel: where x is low, where it is high, and the same for y. */
enum hemi_edge {
    HEMI_EDGE_WEST,
    HEMI_EDGE_EAST,
    HEMI_EDGE_SOUTH,
    HEMI_EDGE_NORTH,
    HEMI_EDGES
};

/** A direction in space: one of 6, such as {0, -1, 0}. */
typedef struct hemi_heading {
    int8_t to[3];
} hemi_heading;

/** Where a panel is: its outside, and its x and y. */
typedef struct hemi_panel {
    hemi_heading out;
    hemi_heading axis[2];
} hemi_panel;

hemi_panel hemi_panel_of(int panel);

/**
 * How the coordinates of a panel become those of another: there[k] = step[k] x here[axis[k]] +
 * offset[k].
 */
typedef struct hemi_fold {
    int panel; /**< the other one */
    uint8_t axis[2];
    int8_t step[2];
    int64_t offset[2];
} hemi_fold;

/** What lies beyond an edge of a panel with `cells` points along each edge. */
hemi_fold hemi_fold_over(int panel, enum hemi_edge edge, int64_t cells);

/** The panel itself: nothing changes. */
hemi_fold hemi_fold_none(int panel);

/** A box in the coordinates of the other panel, and back. */
hem_box hemi_fold_there(const hemi_fold *fold, const hem_box *box);
hem_box hemi_fold_back(const hemi_fold *fold, const hem_box *box);

/** What becomes of a vector on its way from the other panel to this one. */
hemi_turn hemi_fold_turn(const hemi_fold *fold);

#endif
