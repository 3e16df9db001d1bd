/* Posting blocks for every rank at once: what all-to-all, scatter and reduce-scatter share. */
#ifndef HEMI_COLL_SPREAD_H
#define HEMI_COLL_SPREAD_H

#include "coll/pieces.h"

/** Decide on width and stride so that a piece of every rank's block fits into a stage. */
uint64_t hemi_spread_lay_out(hemi_collective *c);

/** Whether a piece of at least one element for every rank fits. */
bool hemi_spread_fits(const hemi_job *job, uint64_t stage_bytes);

/** Post piece k of every rank's block, or all of `send` in place if that is allowed. */
void hemi_spread_post(hemi_collective *c, uint64_t k);

/** Find piece k of this rank's block at `from`: what was posted, and where in it. */
hem_status hemi_spread_find(const hemi_collective *c, uint64_t k, uint32_t from,
                            hemi_found *found_p, size_t *offset_p);

#endif
