/* Reduce-scatter: everybody posts a piece for everybody, and combines its own from all. */
#include "coll/sources.h"
#include "coll/spread.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return (job->kind == HEM_REDUCE_SCATTER || job->kind == HEM_REDUCE_SCATTERV) &&
           hemi_spread_fits(job, stage_bytes);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    const hemi_sources_room *room = c->state;
    size_t n = hemi_piece(hemi_block_bytes(job, job->rank), c->width, k);
    for (uint32_t r = 0; r < job->size; r++) {
        hem_status status = hemi_spread_find(c, k, r, &room->found[r], &room->offsets[r]);
        if (status != HEM_OK)
            return status;
    }
    return n == 0 ? HEM_OK
                  : hemi_collective_combine(c, room->found, room->offsets, job->recv + k * c->width,
                                            n);
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
