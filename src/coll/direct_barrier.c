/* Barrier: everybody posts nothing, and waits until everybody has. */
#include "coll/collective.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    (void)stage_bytes;
    return job->kind == HEM_BARRIER;
}

static uint64_t lay_out(hemi_collective *c) {
    (void)c;
    return 1;
}

static void post(hemi_collective *c, uint64_t k) {
    hemi_collective_refer(c, k, 0, 0);
}

/* Whoever posted something called something else. */
static hem_status pull(hemi_collective *c, uint64_t k) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < c->job.size && status == HEM_OK; r++) {
        hemi_found found;
        status = hemi_collective_find(c, k, r, 0, 0, &found);
    }
    return status;
}

const hemi_method hemi_direct_barrier = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .post = post,
    .pull = pull,
};
