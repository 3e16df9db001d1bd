/* All-gather (v) and gather: everybody posts its block, and whoever collects reads them in place. */
#include "coll/pieces.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    (void)stage_bytes;
    return job->kind == HEM_ALLGATHER || job->kind == HEM_ALLGATHERV || job->kind == HEM_GATHER;
}

static bool collects(const hemi_job *job) {
    return job->kind != HEM_GATHER || job->rank == job->root;
}

static uint64_t lay_out(hemi_collective *c) {
    size_t most = hemi_block_most(&c->job);
    hemi_collective_cut(c, most, most, c->context->stage_bytes);
    return hemi_pieces(most, c->width);
}

static void post(hemi_collective *c, uint64_t k) {
    size_t n = hemi_piece(hemi_block_bytes(&c->job, c->job.rank), c->width, k);
    hemi_collective_post_data(c, k, n == 0 ? NULL : c->job.send + k * c->width, n);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    for (uint32_t r = 0; collects(job) && r < job->size; r++) {
        size_t n = hemi_piece(hemi_block_bytes(job, r), c->width, k);
        hemi_found found = hemi_found_own(c, job->send + k * c->width);
        hem_status status = r == job->rank ? HEM_OK : hemi_collective_find(c, k, r, n, n, &found);
        if (status == HEM_OK && n > 0)
            status = hemi_collective_copy(c, &found, 0,
                                          job->recv + hemi_block_start(job, r) + k * c->width, n);
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

const hemi_method hemi_direct_gather = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .post = post,
    .pull = pull,
};
