/* Gather: everybody sends to the root, which receives from all at once, straight into place. */
#include "coll/plans.h"

bool hemi_fits_linear_gather(const hemi_job *job) {
    return job->kind == HEM_GATHER || job->kind == HEM_GATHERV;
}

static void plan_root(const hemi_job *job, hemi_plan *plan) {
    for (uint32_t r = 0; r < job->size; r++) {
        hemi_block block = hemi_job_block(job, r);
        hemi_place at = hemi_place_at(HEMI_OUTPUT, block.offset);
        if (r != job->rank)
            hemi_plan_recv(plan, r, at, block.bytes);
        else if (!hemi_job_in_place(job, block.offset))
            hemi_plan_copy(plan, at, hemi_place_at(HEMI_INPUT, 0), block.bytes);
    }
}

hem_status hemi_plan_linear_gather(const hemi_job *job, hemi_plan *plan_p) {
    hemi_job_begin_plan(job, plan_p);
    if (job->rank == job->root)
        plan_root(job, plan_p);
    else
        hemi_plan_send(plan_p, job->root, hemi_place_at(HEMI_INPUT, 0), job->count * job->element);
    return hemi_plan_finish(plan_p);
}
