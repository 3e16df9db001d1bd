#include "coll/spread.h"

/* How far the buffer with all blocks goes. */
static size_t total_bytes(const hemi_job *job) {
    size_t total = 0;
    for (uint32_t r = 0; r < job->size; r++) {
        size_t end = hemi_block_start(job, r) + hemi_block_bytes(job, r);
        if (end > total)
            total = end;
    }
    return total;
}

/* Results go where blocks of `send` are: then all of them are staged, this rank's own, too. */
static bool in_place(const hemi_job *job) {
    return (const unsigned char *)job->recv == job->send;
}

bool hemi_spread_fits(const hemi_job *job, uint64_t stage_bytes) {
    return job->element == 0 || stage_bytes / job->size >= job->element;
}

uint64_t hemi_spread_lay_out(hemi_collective *c) {
    size_t most = hemi_block_most(&c->job);
    size_t element = c->job.element > 0 ? c->job.element : 1;
    size_t room = c->context->stage_bytes / c->job.size;
    /* Blocks start on cache lines where there is room for that. */
    if (room > 4096 && 4096 % element == 0)
        room = room / 4096 * 4096;
    hemi_collective_cut(c, total_bytes(&c->job), most, room / element * element);
    c->stride = most < c->width ? most : c->width;
    if (in_place(&c->job) && hemi_collective_need_copy(c, total_bytes(&c->job)) != HEM_OK)
        return 0;
    return hemi_pieces(most, c->width);
}

void hemi_spread_post(hemi_collective *c, uint64_t k) {
    const hemi_job *job = &c->job;
    uint64_t flags = 0;
    const unsigned char *data = job->send;
    if (c->copy != NULL)
        data = memcpy(c->copy, job->send, total_bytes(job));
    uint64_t where = in_place(job) && c->copy == NULL
                         ? 0
                         : hemi_collective_place(c, data, total_bytes(job), &flags);
    if (where != 0) {
        hemi_collective_refer(c, k, where, total_bytes(job) | flags | HEMI_POST_WHOLE);
        return;
    }
    size_t bytes = c->stride * job->size;
    unsigned char *room = hemi_collective_room(c, k, bytes);
    for (uint32_t r = 0; r < job->size; r++)
        if (r != job->rank || in_place(job)) {
            size_t n = hemi_piece(hemi_block_bytes(job, r), c->width, k);
            if (n > 0)
                memcpy(room + r * c->stride, job->send + hemi_block_start(job, r) + k * c->width,
                       n);
        }
    hemi_collective_publish(c, k, bytes);
}

hem_status hemi_spread_find(const hemi_collective *c, uint64_t k, uint32_t from,
                            hemi_found *found_p, size_t *offset_p) {
    const hemi_job *job = &c->job;
    hem_status status = HEM_OK;
    if (from == job->rank && (!in_place(job) || c->copy != NULL))
        *found_p = hemi_found_own(c, c->copy != NULL ? c->copy : job->send);
    else
        status = hemi_collective_find(c, k, from, c->stride * job->size, total_bytes(job), found_p);
    if (status == HEM_OK)
        *offset_p = found_p->whole ? hemi_block_start(job, job->rank) + k * c->width
                                   : job->rank * c->stride;
    return status;
}
