/* Gatherv, scatterv and all-to-all-v: see coll/parcels.h. */
#include "coll/parcels.h"
#include "coll/pieces.h"

#include <stdlib.h>

typedef struct exchange {
    hemi_parcels parcels;
    unsigned char *copy; /* of what is sent as messages, where it is also received into */
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

static uint64_t lay_out(hemi_collective *c) {
    (void)c;
    return 2;
}

static hem_status prepare(hemi_collective *c) {
    exchange *e = calloc(1, sizeof *e);
    if (e == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for an exchange");
    c->state = e;
    hem_status status = hemi_parcels_make(c, &e->parcels);
    for (uint32_t r = 0; status == HEM_OK && r < c->job.size; r++)
        e->parcels.bytes[r] = outgoing(&c->job, r).bytes;
    if (status != HEM_OK)
        return status;
    hemi_parcels_count(c, &e->parcels);
    bool in_place = (const unsigned char *)c->job.recv == c->job.send;
    if (in_place && !e->parcels.fits) {
        e->copy = malloc(e->parcels.total);
        if (e->copy == NULL)
            status = hemi_fail(HEM_ERR_MEMORY, "no memory for an exchange in place");
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
    for (uint32_t r = 0; p->fits && r < c->job.size; r++) {
        block b = outgoing(&c->job, r);
        if (r != c->job.rank && b.bytes > 0)
            memcpy(hemi_parcels_room(c, p, r), b.data, b.bytes);
    }
    hemi_parcels_post(c, p);
}

/* Take what came with the posts, and begin to receive the rest. */
static hem_status take(hemi_collective *c, hemi_parcels *p) {
    for (uint32_t r = 0; r < c->job.size; r++) {
        block in = incoming(&c->job, r);
        uint64_t bytes = p->bytes[r];
        const unsigned char *data = outgoing(&c->job, r).data;
        hem_status status = r == c->job.rank ? HEM_OK : hemi_parcels_look(c, r, &bytes, &data);
        if (status == HEM_OK && bytes != in.bytes)
            status = hemi_fail(
                HEM_ERR_MISMATCH, "%s: rank %u sends %llu bytes where rank %u expects %zu",
                hemi_call_name(c->op.call), r, (unsigned long long)bytes, c->job.rank, in.bytes);
        if (status != HEM_OK)
            return status;
        if (data != NULL)
            hemi_move(in.data, data, in.bytes);
        else if (in.bytes > 0)
            hemi_mail_begin(&p->mail, c->context->world, false, r, in.data, in.bytes);
    }
    return HEM_OK;
}

/* What did not fit goes as messages; in place, from a copy. */
static void send_rest(hemi_collective *c, exchange *e) {
    unsigned char *copy = e->copy;
    for (uint32_t r = 0; !e->parcels.fits && r < c->job.size; r++) {
        block b = outgoing(&c->job, r);
        if (r == c->job.rank || b.bytes == 0)
            continue;
        if (copy != NULL) {
            memcpy(copy, b.data, b.bytes);
            b.data = copy;
            copy += b.bytes;
        }
        hemi_mail_begin(&e->parcels.mail, c->context->world, true, r, b.data, b.bytes);
    }
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    exchange *e = c->state;
    if (k == 1)
        return HEM_OK;
    bool all_fit = hemi_parcels_all_fit(c, &e->parcels);
    hem_status status = all_fit ? HEM_OK : hemi_collective_use_channels(c);
    if (status != HEM_OK)
        return status;
    send_rest(c, e); /* first, since in place it is copied before anything comes */
    status = take(c, &e->parcels);
    return status == HEM_OK && all_fit ? HEMI_ENOUGH : status;
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
