/* Scatter: the root posts a piece for everybody, and each reads its own. */
#include "coll/spread.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return job->kind == HEM_SCATTER && stage_bytes >= job->size;
}

static uint64_t lay_out(hemi_collective *c) {
    c->job.count *= c->job.element;
    c->job.element = c->job.element > 0 ? 1 : 0;
    return hemi_spread_lay_out(c);
}

static void post(hemi_collective *c, uint64_t k) {
    if (c->job.rank == c->job.root)
        hemi_spread_post(c, k);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    hemi_found found;
    size_t offset = 0;
    size_t n = hemi_piece(job->count * job->element, c->width, k);
    hem_status status = hemi_spread_find(c, k, job->root, &found, &offset);
    if (status == HEM_OK && n > 0)
        status = hemi_collective_copy(c, &found, offset, job->recv + k * c->width, n);
    return status;
}

const hemi_method hemi_direct_scatter = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .post = post,
    .pull = pull,
    .needs_root_only = true,
};
