/*
 * Images: which points of a halo are copies of which points of an owner, on a grid that may be
 * periodic.
 *
 * Around a periodic grid lie images of it, shifted by whole periods. A halo reaches into as many as
 * it is wide. In each dimension the halo below a box, the box and the halo above are cut at the edges
 * of images; what an owner covers of a piece is a piece of a link.
 */
#ifndef HEMI_HALO_PATTERN_IMAGES_H
#define HEMI_HALO_PATTERN_IMAGES_H

#include "halo/pattern/box.h"

/** One dimension of a grid and of the halos on it. */
typedef struct hemi_axis {
    int64_t extent;
    bool periodic;
    int64_t low; /**< width of the halo */
    int64_t high;
} hemi_axis;

/** Points of one dimension that a domain copies from an owner. */
typedef struct hemi_cover {
    int64_t mine;   /**< the first one, counted from the first one of the domain's box */
    int64_t theirs; /**< the same, in the owner's */
    int64_t count;
    uint32_t low;  /**< 1: it is of the halo below the box */
    uint32_t high; /**< 1: above */
} hemi_cover;

/** A box's stretch with its halo. */
static inline hemi_stretch hemi_axis_reach(const hemi_axis *axis, hemi_stretch own) {
    return (hemi_stretch){own.start - axis->low, own.count + axis->low + axis->high};
}

/** The most pieces that hemi_axis_pieces gives: images that the halo reaches, and 2 for its edges. */
uint64_t hemi_axis_room(const hemi_axis *axis, hemi_stretch own);

/** How many points of the box with its halo are inside of the grid, all images counted. */
int64_t hemi_axis_inside(const hemi_axis *axis, hemi_stretch own);

/** What a domain copies from an owner in this dimension, and what they share. @return how many. */
size_t hemi_axis_pieces(const hemi_axis *axis, hemi_stretch own, hemi_stretch owner,
                        hemi_cover *pieces);

#endif
