/* Reduce-scatter: everybody posts a piece for everybody, and combines its own from all. */
#include "coll/sources.h"
#include "coll/spread.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return (job->kind == HEM_REDUCE_SCATTER || job->kind == HEM_REDUCE_SCATTERV) &&
           hemi_spread_fits(job, stage_bytes);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    const void **sources = c->state;
    size_t n = hemi_piece(hemi_block_bytes(job, job->rank), c->width, k);
    for (uint32_t r = 0; r < job->size; r++) {
        const unsigned char *data = NULL;
        hem_status status = hemi_spread_read(c, k, r, n, &data);
        if (status != HEM_OK)
            return status;
        sources[r] = data;
    }
    if (n > 0)
        hemi_reduce(&job->reducer, job->recv + k * c->width, sources, job->size, n / job->element);
    return HEM_OK;
}

const hemi_method hemi_direct_reduce_scatter = {
    .name = "direct",
    .fits = fits,
    .lay_out = hemi_spread_lay_out,
    .post = hemi_spread_post,
    .pull = pull,
    .prepare = hemi_sources_prepare,
    .release = hemi_sources_release,
};
