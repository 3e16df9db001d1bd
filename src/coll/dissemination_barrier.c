/*
 * Barrier by dissemination: in round k every rank signals the one 2^k above and hears the one 2^k
 * below. After ceil(log2 P) rounds each has heard, through others, of all.
 */
#include "coll/plans.h"

bool hemi_fits_dissemination_barrier(const hemi_job *job) {
    return job->kind == HEM_BARRIER;
}

hem_status hemi_plan_dissemination_barrier(const hemi_job *job, hemi_plan *plan_p) {
    uint32_t size = job->size;
    hemi_job_begin_plan(job, plan_p);
    for (uint32_t step = 1; step < size; step *= 2) {
        hemi_plan_recv_signal(plan_p, (job->rank + size - step) % size);
        hemi_plan_send_signal(plan_p, (uint32_t)(((uint64_t)job->rank + step) % size));
        hemi_plan_round(plan_p);
    }
    return hemi_plan_finish(plan_p);
}
