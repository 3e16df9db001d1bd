/*
 * All-to-all in pairs: in step k every rank sends to the one k above and receives from the one k
 * below, so that no rank has many senders at a time. A few steps share a round, so that a rank that
 * is late delays only those who have nothing else to do.
 *
 * In place, what is to be sent is copied away first: blocks may be written in any order, and with -v
 * they may lie across each other.
 */
#include "coll/plans.h"

/* Steps that share a round. */
#define AT_ONCE 8

bool hemi_fits_pairwise_alltoall(const hemi_job *job) {
    return job->kind == HEM_ALLTOALL || job->kind == HEM_ALLTOALLV;
}

/* Copy all blocks away, each to where it was. */
static void save(const hemi_job *job, hemi_plan *plan) {
    for (uint32_t r = 0; r < job->size; r++) {
        hemi_block block = hemi_job_send_block(job, r);
        hemi_plan_copy(plan, hemi_place_at(HEMI_SCRATCH, block.offset),
                       hemi_place_at(HEMI_OUTPUT, block.offset), block.bytes);
    }
    hemi_plan_round(plan);
}

hem_status hemi_plan_pairwise_alltoall(const hemi_job *job, hemi_plan *plan_p) {
    uint32_t rank = job->rank;
    uint32_t size = job->size;
    bool in_place = hemi_job_in_place(job, 0);
    hemi_space space = in_place ? HEMI_SCRATCH : HEMI_INPUT;
    hemi_block own = hemi_job_block(job, rank);
    hemi_job_begin_plan(job, plan_p);
    if (in_place)
        save(job, plan_p);
    hemi_plan_copy(plan_p, hemi_place_at(HEMI_OUTPUT, own.offset),
                   hemi_place_at(space, hemi_job_send_block(job, rank).offset), own.bytes);
    for (uint32_t k = 1; k < size; k++) {
        uint32_t to = (uint32_t)(((uint64_t)rank + k) % size);
        uint32_t from = (rank + size - k) % size;
        hemi_block in = hemi_job_block(job, from);
        hemi_block out = hemi_job_send_block(job, to);
        hemi_plan_recv(plan_p, from, hemi_place_at(HEMI_OUTPUT, in.offset), in.bytes);
        hemi_plan_send(plan_p, to, hemi_place_at(space, out.offset), out.bytes);
        if (k % AT_ONCE == 0)
            hemi_plan_round(plan_p);
    }
    return hemi_plan_finish(plan_p);
}
