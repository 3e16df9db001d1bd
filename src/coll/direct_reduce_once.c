/*
 * Reduce and all-reduce, each rank doing all of it: everybody posts everything, and whoever wants the
 * result combines everybody's. One wait per step; the best for short vectors, and for two ranks always.
 */
#include "coll/pieces.h"
#include "coll/sources.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return (job->kind == HEM_REDUCE || job->kind == HEM_ALLREDUCE) && job->element <= stage_bytes;
}

static bool collects(const hemi_job *job) {
    return job->kind != HEM_REDUCE || job->rank == job->root;
}

/* This rank's own result would overwrite what others still read. */
static bool in_place(const hemi_job *job) {
    return collects(job) && (const unsigned char *)job->recv == job->send;
}

static size_t bytes_of(const hemi_collective *c) {
    return c->job.count * c->job.element;
}

static uint64_t lay_out(hemi_collective *c) {
    size_t element = c->job.element;
    hemi_collective_cut(c, bytes_of(c), bytes_of(c), c->context->stage_bytes / element * element);
    if (in_place(&c->job) && hemi_collective_need_copy(c, bytes_of(c)) != HEM_OK)
        return 0;
    return hemi_pieces(bytes_of(c), c->width);
}

static void post(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    size_t n = hemi_piece(bytes_of(c), c->width, k);
    const unsigned char *data = n == 0 ? NULL : job->send + k * c->width;
    if (in_place(job) && c->copy != NULL) {
        memcpy(c->copy, data, n);
        hemi_collective_post_data(c, k, c->copy, n);
    } else if (in_place(job)) {
        hemi_move(hemi_collective_room(c, k, n), data, n);
        hemi_collective_publish(c, k, n);
    } else {
        hemi_collective_post_data(c, k, data, n);
    }
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    const hemi_sources_room *room = c->state;
    size_t n = hemi_piece(bytes_of(c), c->width, k);
    for (uint32_t r = 0; collects(job) && r < job->size; r++) {
        room->offsets[r] = 0;
        room->found[r] = hemi_found_own(c, job->send + k * c->width);
        hem_status status =
            r == job->rank ? HEM_OK : hemi_collective_find(c, k, r, n, n, &room->found[r]);
        if (status != HEM_OK)
            return status;
    }
    return !collects(job) || n == 0 ? HEM_OK
                                    : hemi_collective_combine(c, room->found, room->offsets,
                                                              job->recv + k * c->width, n);
}

const hemi_method hemi_direct_reduce_once = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .post = post,
    .pull = pull,
    .prepare = hemi_sources_prepare,
    .release = hemi_sources_release,
};
