/* Scatter: the root sends to all at once, straight from where the blocks are. */
#include "coll/plans.h"

bool hemi_fits_linear_scatter(const hemi_job *job) {
    return job->kind == HEM_SCATTER || job->kind == HEM_SCATTERV;
}

static void plan_root(const hemi_job *job, hemi_plan *plan) {
    for (uint32_t r = 0; r < job->size; r++) {
        hemi_block block = hemi_job_block(job, r);
        hemi_place at = hemi_place_at(HEMI_INPUT, block.offset);
        bool in_place = (uintptr_t)job->recv == (uintptr_t)job->send + block.offset;
        if (r != job->rank)
            hemi_plan_send(plan, r, at, block.bytes);
        else if (!in_place)
            hemi_plan_copy(plan, hemi_place_at(HEMI_OUTPUT, 0), at, block.bytes);
    }
}

hem_status hemi_plan_linear_scatter(const hemi_job *job, hemi_plan *plan_p) {
    hemi_job_begin_plan(job, plan_p);
    if (job->rank == job->root)
        plan_root(job, plan_p);
    else
        hemi_plan_recv(plan_p, job->root, hemi_place_at(HEMI_OUTPUT, 0), job->count * job->element);
    return hemi_plan_finish(plan_p);
}
