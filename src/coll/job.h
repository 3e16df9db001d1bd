/* A collective as the algorithms see it: checked, with sizes in bytes and every array filled in. */
#ifndef HEMI_COLL_JOB_H
#define HEMI_COLL_JOB_H

#include "coll/reduce/reduce.h"

#include <hem/coll.h>

/** hem_sparse, as a kind. */
#define HEMI_KIND_SPARSE ((hem_coll_kind)15)

typedef struct hemi_job {
    hem_coll_kind kind;
    uint32_t rank;
    uint32_t size;
    uint32_t root;
    hem_dtype dtype;  /**< 0 where an element size was given instead */
    hem_reduction op; /**< 0 where nothing is combined */
    size_t element;   /**< bytes of one */
    size_t count;     /**< elements: of the vector, or of each block, or of this rank's block */
    /* In the kinds with V, one per rank, in elements; else NULL. Owned by the job. */
    size_t *counts;
    size_t *displs;
    size_t *send_counts;
    size_t *send_displs;
    const unsigned char *send;
    unsigned char *recv;
    hemi_reducer reducer; /**< of the kinds that combine */
} hemi_job;

/**
 * Check what the caller says and fill in a job. Talks to nobody.
 *
 * @return HEM_OK; HEM_ERR_ARG, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED, HEM_ERR_MEMORY.
 */
hem_status hemi_job_make(const hem_coll *coll, uint32_t rank, uint32_t size, hemi_job *job_p);

/** Free the arrays. */
void hemi_job_clear(hemi_job *job);

#endif
