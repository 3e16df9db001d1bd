/*
 * The short way for short collectives: what fits into one post, on few ranks, with nothing special.
 *
 * It does what coll/collective.c does for a collective of one step, without making an operation first.
 * If the others do not come while it spins, it makes one after all, which goes on from there.
 */
#ifndef HEMI_COLL_QUICK_H
#define HEMI_COLL_QUICK_H

#include "coll/collective.h"

/** A collective that was posted and not finished. */
typedef struct hemi_quick {
    hemi_context *context;
    hemi_span *span;
    uint64_t step;
} hemi_quick;

/**
 * Try. HEM_OK: it is done. HEMI_AGAIN: `quick_p` is posted, and the caller makes a collective of it.
 * HEMI_ENOUGH: not a case for this, nothing was done. Otherwise how it failed.
 */
hem_status hemi_quick_run(hem_world *world, const hem_coll *coll, hemi_quick *quick_p);

/** Go on with what was posted. `c` was made from the same `coll`. Under the lock. */
void hemi_quick_adopt(const hemi_quick *quick, hemi_collective *c);

#endif
