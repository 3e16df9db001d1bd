/* All-to-all: everybody posts a piece for everybody, and reads its own from each. */
#include "coll/spread.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return job->kind == HEM_ALLTOALL && stage_bytes >= job->size;
}

/* Elements may be cut anywhere. */
static uint64_t lay_out(hemi_collective *c) {
    c->job.count *= c->job.element;
    c->job.element = c->job.element > 0 ? 1 : 0;
    return hemi_spread_lay_out(c);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    size_t n = hemi_piece(job->count * job->element, c->width, k);
    for (uint32_t r = 0; r < job->size; r++) {
        hemi_found found;
        size_t offset = 0;
        hem_status status = hemi_spread_find(c, k, r, &found, &offset);
        if (status == HEM_OK && n > 0)
            status = hemi_collective_copy(c, &found, offset,
                                          job->recv + hemi_block_start(job, r) + k * c->width, n);
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

const hemi_method hemi_direct_alltoall = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .post = hemi_spread_post,
    .pull = pull,
};
