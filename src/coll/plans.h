/*
 * The algorithms of collectives as plans: each file <algorithm>_<collective>.c has the builder
 * hemi_plan_<algorithm>_<collective>, and a predicate hemi_fits_... that says whether it keeps the
 * contract of hem/coll.h for a job. Builders talk to nobody; all ranks must build from jobs that
 * agree.
 *
 * Order. "Chain" below means that contributions are combined as ((0 op 1) op 2) op ..., the very bits
 * that one loop over all ranks gives; since partial results travel, sums and products of f16 and bf16
 * do not fit. "Tree" means that the operands stay in the order of ranks but neighbours are combined
 * first: only integers and user functions fit, for which that is the same, so that the bits of a
 * result do not depend on the algorithm. "Once" means that all contributions to an element meet on
 * one rank and are combined at once: everything fits.
 *
 * What jobs must look like, beside coll/job.h: `displs` may be NULL if blocks follow each other, and
 * may be in any order otherwise. BROADCAST reads the root's `send`, or its `recv` if `send` is NULL, and
 * writes everybody's `recv`, which may be NULL at the root. In place is found by comparing addresses:
 * `send` and `recv`, or the own block in the one with the other. An all-to-all in place is staged.
 */
#ifndef HEMI_COLL_PLANS_H
#define HEMI_COLL_PLANS_H

#include "coll/job.h"
#include "plan/plan.h"

/** An algorithm for one kind of collective. */
typedef struct hemi_algorithm {
    const char *name; /**< of the family, such as "ring" */
    hem_coll_kind kind;
    bool (*fits)(const hemi_job *job);
    hem_status (*plan)(const hemi_job *job, hemi_plan *plan_p);
} hemi_algorithm;

/** All algorithms in this header. */
const hemi_algorithm *hemi_algorithms(size_t *count_p);

/** The algorithm with this name for this kind of collective, or NULL. */
const hemi_algorithm *hemi_algorithm_find(const char *name, hem_coll_kind kind);

/* Chain. Every link carries each byte at most twice, as many as in a ring that turns. */
bool hemi_fits_ring_allreduce(const hemi_job *job);
hem_status hemi_plan_ring_allreduce(const hemi_job *job, hemi_plan *plan_p);
/* Chain. Equal blocks and -v. */
bool hemi_fits_ring_reduce_scatter(const hemi_job *job);
hem_status hemi_plan_ring_reduce_scatter(const hemi_job *job, hemi_plan *plan_p);
/* Equal blocks and -v. */
bool hemi_fits_ring_allgather(const hemi_job *job);
hem_status hemi_plan_ring_allgather(const hemi_job *job, hemi_plan *plan_p);

/* Tree. For short vectors: the whole vector travels in each of log2(size) rounds. */
bool hemi_fits_doubling_allreduce(const hemi_job *job);
hem_status hemi_plan_doubling_allreduce(const hemi_job *job, hemi_plan *plan_p);
/* Equal blocks only. */
bool hemi_fits_doubling_allgather(const hemi_job *job);
hem_status hemi_plan_doubling_allgather(const hemi_job *job, hemi_plan *plan_p);

bool hemi_fits_tree_broadcast(const hemi_job *job);
hem_status hemi_plan_tree_broadcast(const hemi_job *job, hemi_plan *plan_p);
/* Tree. */
bool hemi_fits_tree_reduce(const hemi_job *job);
hem_status hemi_plan_tree_reduce(const hemi_job *job, hemi_plan *plan_p);

/* Equal blocks and -v. */
bool hemi_fits_pairwise_alltoall(const hemi_job *job);
hem_status hemi_plan_pairwise_alltoall(const hemi_job *job, hemi_plan *plan_p);
/* Once. */
bool hemi_fits_pairwise_allreduce(const hemi_job *job);
hem_status hemi_plan_pairwise_allreduce(const hemi_job *job, hemi_plan *plan_p);
/* Once. Equal blocks and -v. */
bool hemi_fits_pairwise_reduce_scatter(const hemi_job *job);
hem_status hemi_plan_pairwise_reduce_scatter(const hemi_job *job, hemi_plan *plan_p);

/* Equal blocks and -v. */
bool hemi_fits_linear_gather(const hemi_job *job);
hem_status hemi_plan_linear_gather(const hemi_job *job, hemi_plan *plan_p);
bool hemi_fits_linear_scatter(const hemi_job *job);
hem_status hemi_plan_linear_scatter(const hemi_job *job, hemi_plan *plan_p);

bool hemi_fits_dissemination_barrier(const hemi_job *job);
hem_status hemi_plan_dissemination_barrier(const hemi_job *job, hemi_plan *plan_p);

/* What the builders share: coll/plans.c. */

/** A rank's block in a buffer that has one for each rank, in bytes. */
typedef struct hemi_block {
    size_t offset;
    size_t bytes;
} hemi_block;

/** Block `rank` of the buffer that `counts` and `displs` describe, or of equal blocks. */
hemi_block hemi_job_block(const hemi_job *job, uint32_t rank);

/** The same of the side that ALLTOALLV sends. */
hemi_block hemi_job_send_block(const hemi_job *job, uint32_t rank);

/** Whether `send` is byte `offset` of `recv`. */
static inline bool hemi_job_in_place(const hemi_job *job, size_t offset) {
    return (uintptr_t)job->send == (uintptr_t)job->recv + offset;
}

/** Whether partial results may travel: not if the job must be rounded once. */
bool hemi_job_may_split(const hemi_job *job);

/** Whether neighbours may be combined first without changing bits. */
bool hemi_job_may_regroup(const hemi_job *job);

/** A world of one: what is sent is the result, once it has been through the reduction. Byte `offset` of
 *  the input on. */
hem_status hemi_job_plan_alone(const hemi_job *job, size_t offset, size_t bytes, hemi_plan *plan_p);

/** Start a plan for the job, with its reduction if it has one. */
void hemi_job_begin_plan(const hemi_job *job, hemi_plan *plan);

/**
 * How many bytes, of whole elements, to give each piece of `total` bytes that go through `stages`
 * ranks one after the other. The same on all ranks.
 */
size_t hemi_job_piece(const hemi_job *job, size_t total, uint32_t stages);

#endif
