/* With HEM_CHECK: what everybody says that it calls, in a step before all others. On device buffers that is
 * one of the steps in which an operation is made. */
#ifndef HEMI_COLL_CLAIM_H
#define HEMI_COLL_CLAIM_H

#include "coll/collective.h"

/** What a rank calls. */
typedef struct hemi_coll_claim {
    uint8_t kind;
    uint8_t op;
    uint16_t dtype;
    uint32_t root;
    uint64_t count;
    uint64_t counts; /**< a hash */
    uint64_t steps;  /**< of the algorithm; 0 on device buffers */
    uint64_t element;
} hemi_coll_claim;

hemi_coll_claim hemi_claim_of(const hemi_job *job);

/** Compare what rank `r` calls with `first`, which is rank 0's. @return as hemi_claim_compare. */
hem_status hemi_claim_differs(const hemi_coll_claim *first, const hemi_coll_claim *other,
                              uint32_t r);

/** Post what this rank calls, or that its arguments were refused. The line is free. */
void hemi_claim_post(const hemi_collective *c);

/**
 * Compare what all have posted; everybody comes to the same result.
 *
 * @return HEM_OK, or HEM_ERR_MISMATCH with a sentence that says who called what.
 */
hem_status hemi_claim_compare(const hemi_collective *c);

#endif
