/* Gatherv, scatterv and all-to-all-v: see coll/parcels.h. */
#include "coll/parcels.h"
#include "coll/pieces.h"

#include <stdlib.h>

typedef struct exchange {
    hemi_parcels parcels;
    unsigned char *copy; /* of what is sent, where it is also received into */
    size_t copy_bytes;
} exchange;

/* A block of the caller's buffers. */
typedef struct block {
    unsigned char *data;
    size_t bytes;
} block;

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return (job->kind == HEM_GATHERV || job->kind == HEM_SCATTERV || job->kind == HEM_ALLTOALLV) &&
           hemi_parcels_can(job, stage_bytes);
}

static block block_at(const unsigned char *buffer, const size_t *counts, const size_t *displs,
                      uint32_t r, size_t element) {
    block b = {NULL, counts[r] * element};
    if (b.bytes > 0)
        b.data = (unsigned char *)(uintptr_t)buffer + displs[r] * element;
    return b;
}

/* All that this rank has, to one rank. */
static block all_of(const unsigned char *buffer, size_t bytes, bool really) {
    block b = {really && bytes > 0 ? (unsigned char *)(uintptr_t)buffer : NULL, really ? bytes : 0};
    return b;
}

static block outgoing(const hemi_job *job, uint32_t to) {
    if (job->kind == HEM_ALLTOALLV)
        return block_at(job->send, job->send_counts, job->send_displs, to, job->element);
    if (job->kind == HEM_GATHERV)
        return all_of(job->send, job->count * job->element, to == job->root);
    if (job->rank == job->root)
        return block_at(job->send, job->counts, job->displs, to, job->element);
    return all_of(NULL, 0, false);
}

static block incoming(const hemi_job *job, uint32_t from) {
    if (job->kind == HEM_ALLTOALLV)
        return block_at(job->recv, job->counts, job->displs, from, job->element);
    if (job->kind == HEM_SCATTERV)
        return all_of(job->recv, job->count * job->element, from == job->root);
    if (job->rank == job->root)
        return block_at(job->recv, job->counts, job->displs, from, job->element);
    return all_of(NULL, 0, false);
}

/* How far the buffer goes that this rank sends from. */
static size_t buffer_bytes(const hemi_job *job) {
    size_t most = 0;
    for (uint32_t r = 0; r < job->size; r++) {
        block b = outgoing(job, r);
        size_t end = b.bytes == 0 ? 0 : (size_t)(b.data - job->send) + b.bytes;
        if (end > most)
            most = end;
    }
    return most;
}

/* Once the peers are known: how what does not fit goes; in place, from a copy. */
static uint64_t lay_out(hemi_collective *c) {
    exchange *e = c->state;
    const hemi_job *job = &c->job;
    bool in_place = (const unsigned char *)job->recv == job->send;
    if (hemi_parcels_fit(c, &e->parcels))
        return 2;
    size_t bytes = buffer_bytes(job);
    if (in_place) {
        e->copy = malloc(bytes);
        if (e->copy == NULL) {
            hemi_fail(HEM_ERR_MEMORY, "no memory for an exchange in place");
            return 0;
        }
    }
    e->copy_bytes = bytes;
    hemi_parcels_choose(c, &e->parcels, in_place ? e->copy : job->send, bytes);
    return 2;
}

static hem_status prepare(hemi_collective *c) {
    exchange *e = calloc(1, sizeof *e);
    if (e == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for an exchange");
    c->state = e;
    hem_status status = hemi_parcels_make(c, &e->parcels);
    for (uint32_t r = 0; status == HEM_OK && r < c->job.size; r++) {
        block b = outgoing(&c->job, r);
        e->parcels.bytes[r] = b.bytes;
        e->parcels.starts[r] = b.bytes == 0 ? 0 : (uint64_t)(b.data - c->job.send);
    }
    return status;
}

static void release(hemi_collective *c) {
    exchange *e = c->state;
    if (e == NULL)
        return;
    hemi_parcels_free(&e->parcels);
    free(e->copy);
    free(e);
    c->state = NULL;
}

static void begin(hemi_collective *c) {
    exchange *e = c->state;
    e->parcels.mail.count = 0;
}

static hem_status ready(hemi_collective *c, uint64_t k) {
    const exchange *e = c->state;
    if (k == 0)
        return HEM_OK;
    return hemi_collective_has_pulled(c, 0) ? hemi_mail_state(&e->parcels.mail) : HEMI_AGAIN;
}

static void post(hemi_collective *c, uint64_t k) {
    const exchange *e = c->state;
    const hemi_parcels *p = &e->parcels;
    if (k == 1) {
        hemi_collective_refer(c, k, 0, 0);
        return;
    }
    if (e->copy != NULL)
        memcpy(e->copy, c->job.send, e->copy_bytes);
    for (uint32_t r = 0; p->way == HEMI_PARCELS_POSTED && r < c->job.size; r++) {
        block b = outgoing(&c->job, r);
        if (r != c->job.rank && b.bytes > 0)
            memcpy(hemi_parcels_room(c, p, r), b.data, b.bytes);
    }
    hemi_parcels_post(c, p);
}

static hem_status expect(const hemi_collective *c, uint32_t from, uint64_t bytes, size_t room) {
    if (bytes == room)
        return HEM_OK;
    return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u sends %llu bytes where rank %u expects %zu",
                     hemi_call_name(c->op.call), from, (unsigned long long)bytes, c->job.rank,
                     room);
}

/* Take what came with the posts or can be read, and begin to receive the rest. */
static hem_status take(hemi_collective *c, hemi_parcels *p) {
    for (uint32_t r = 0; r < c->job.size; r++) {
        block in = incoming(&c->job, r);
        uint64_t bytes = p->bytes[r];
        hem_status status = r == c->job.rank ? HEM_OK : hemi_parcels_look(c, r, &bytes);
        if (status == HEM_OK)
            status = expect(c, r, bytes, in.bytes);
        if (status == HEM_OK && r == c->job.rank && bytes > 0)
            hemi_move(in.data, outgoing(&c->job, r).data, in.bytes);
        else if (status == HEM_OK && bytes > 0)
            status = hemi_parcels_get(c, p, r, in.data, bytes);
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

static void mail_out(hemi_collective *c, exchange *e) {
    const unsigned char *from = e->copy != NULL ? e->copy : c->job.send;
    const hemi_parcels *p = &e->parcels;
    for (uint32_t r = 0; p->way == HEMI_PARCELS_MAILED && r < c->job.size; r++)
        if (r != c->job.rank && p->bytes[r] > 0)
            hemi_mail_begin(&e->parcels.mail, c, true, r,
                            (unsigned char *)(uintptr_t)from + p->starts[r], p->bytes[r]);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    exchange *e = c->state;
    if (k == 1)
        return HEM_OK;
    bool all_posted = hemi_parcels_all_posted(c, &e->parcels);
    if (e->parcels.mail.count == 0)
        mail_out(c, e);
    hem_status status = take(c, &e->parcels);
    return status == HEM_OK && all_posted ? HEMI_ENOUGH : status;
}

static void stop(hemi_collective *c) {
    exchange *e = c->state;
    hemi_mail_stop(&e->parcels.mail);
}

const hemi_method hemi_direct_exchange = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .ready = ready,
    .post = post,
    .pull = pull,
    .uses_channels = true,
    .prepare = prepare,
    .begin = begin,
    .stop = stop,
    .release = release,
};
