/*
 * All-gather around a ring: in each of P-1 rounds every rank passes on the block that it got in the
 * round before, beginning with its own. Every link carries all blocks but one, once.
 */
#include "coll/plans.h"

bool hemi_fits_ring_allgather(const hemi_job *job) {
    return job->kind == HEM_ALLGATHER || job->kind == HEM_ALLGATHERV;
}

hem_status hemi_plan_ring_allgather(const hemi_job *job, hemi_plan *plan_p) {
    uint32_t rank = job->rank;
    uint32_t size = job->size;
    hemi_block mine = hemi_job_block(job, rank);
    bool in_place = hemi_job_in_place(job, mine.offset);
    hemi_place from =
        in_place ? hemi_place_at(HEMI_OUTPUT, mine.offset) : hemi_place_at(HEMI_INPUT, 0);
    hemi_job_begin_plan(job, plan_p);
    if (!in_place)
        hemi_plan_copy(plan_p, hemi_place_at(HEMI_OUTPUT, mine.offset), from, mine.bytes);
    for (uint32_t k = 0; k + 1 < size; k++) {
        hemi_block out = hemi_job_block(job, (rank + size - k) % size);
        hemi_block in = hemi_job_block(job, (rank + size - k - 1) % size);
        hemi_plan_recv(plan_p, (rank + size - 1) % size, hemi_place_at(HEMI_OUTPUT, in.offset),
                       in.bytes);
        hemi_plan_send(plan_p, (rank + 1) % size,
                       k == 0 ? from : hemi_place_at(HEMI_OUTPUT, out.offset), out.bytes);
        hemi_plan_round(plan_p);
    }
    return hemi_plan_finish(plan_p);
}
