/*
 * Sparse: messages to some ranks whose receivers do not know of them: see coll/parcels.h.
 *
 * What one rank has for another travels as one packet: for each message its length, in 16 bytes, and
 * its bytes, rounded up to 16. The receiver keeps all packets in one block, ordered by sender, and the
 * result points into it.
 */
#include "coll/blocks.h"
#include "coll/sparse.h"
#include "device/touch.h"

#include <stdlib.h>

#define UNIT 16u

typedef struct sparse {
    hemi_parcels parcels;
    const hem_parcel *list;
    size_t count;
    hem_sparse_result *result_p;
    unsigned char *packed; /* what is sent, if it does not fit */
    bool borrowed;         /* from the context */
    unsigned char *block;  /* all that comes */
    uint64_t *starts;      /* of each rank's packet in it, and its end */
    uint64_t few[HEMI_SOURCES_FEW + 1];
} sparse;

_Static_assert(sizeof(sparse) <= HEMI_COLLECTIVE_ROOM, "it lies in the operation");

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return job->kind == HEMI_KIND_SPARSE && hemi_parcels_can(job, stage_bytes);
}

static uint64_t padded(uint64_t bytes) {
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

static hem_status check_list(const hem_parcel *list, size_t count, uint32_t size) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].peer < 0 || (uint32_t)list[i].peer >= size)
            return hemi_fail(HEM_ERR_RANGE,
                             "hem_sparse: rank %d of message %zu is not one of 0 to %u",
                             list[i].peer, i, size - 1);
        if (list[i].data == NULL && list[i].bytes > 0)
            return hemi_fail(HEM_ERR_ARG, "hem_sparse: the data of message %zu is NULL", i);
        if (list[i].bytes > INT64_MAX / 2 - total)
            return hemi_fail(HEM_ERR_RANGE, "hem_sparse: the messages are too long in all");
        total += padded(list[i].bytes) + UNIT;
    }
    return HEM_OK;
}

static hem_status check_places(const hemi_root *root, const hem_parcel *list, size_t count) {
    hem_status status = HEM_OK;
    if (!hemi_device_is_asked_for(root))
        return HEM_OK;
    for (size_t i = 0; i < count && status == HEM_OK; i++)
        status = hemi_device_check_host(root, list[i].data, list[i].bytes, "hem_sparse",
                                        "copy it, or use a pipe (hem_pipe_sendrecv) or a planned "
                                        "hem_alltoallv");
    return status;
}

static hem_status prepare(hemi_collective *c) {
    const hemi_sparse_call *call = c->call;
    const hem_parcel *list = call->parcels;
    size_t count = call->count;
    hem_status status = check_list(list, count, c->job.size);
    if (status == HEM_OK)
        status = check_places(c->context->world->root, list, count);
    if (status != HEM_OK)
        return status;
    sparse *s = (sparse *)(void *)c->room;
    memset(s, 0, sizeof *s);
    c->state = s;
    s->list = list;
    s->count = count;
    s->result_p = call->result_p;
    s->starts = s->few;
    if (c->job.size > HEMI_SOURCES_FEW)
        s->starts = calloc((size_t)c->job.size + 1, sizeof *s->starts);
    if (s->starts == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for hem_sparse");
    status = hemi_parcels_make(c, &s->parcels);
    for (size_t i = 0; status == HEM_OK && i < count; i++)
        s->parcels.bytes[list[i].peer] += UNIT + padded(list[i].bytes);
    return status;
}

static void release(hemi_collective *c) {
    sparse *s = c->state;
    if (s == NULL)
        return;
    hemi_parcels_free(&s->parcels);
    if (s->starts != s->few)
        free(s->starts);
    if (!s->borrowed) {
        free(s->packed);
    } else if (c->op.world != NULL) { /* else the context is gone, too */
        hemi_engine_lock(c->op.world);
        c->context->kept.used = false;
        hemi_engine_unlock(c->op.world);
    }
    hemi_block_put(s->block);
    c->state = NULL;
}

/* What does not fit is packed once, in memory that the context keeps for the next time. */
static uint64_t lay_out(hemi_collective *c) {
    sparse *s = c->state;
    if (hemi_parcels_fit(c, &s->parcels))
        return 2;
    s->packed = hemi_context_borrow(c->context, s->parcels.total);
    s->borrowed = s->packed != NULL;
    if (!s->borrowed)
        s->packed = malloc(s->parcels.total);
    if (s->packed == NULL) {
        hemi_fail(HEM_ERR_MEMORY, "hem_sparse: no memory for %llu bytes of messages",
                  (unsigned long long)s->parcels.total);
        return 0;
    }
    uint64_t start = 0;
    for (uint32_t r = 0; r < c->job.size; r++) {
        s->parcels.starts[r] = start;
        start += r == c->job.rank ? 0 : s->parcels.bytes[r];
    }
    hemi_parcels_choose(c, &s->parcels, s->packed, s->parcels.total);
    return 2;
}

/* The packet for one rank. */
static void pack(const sparse *s, uint32_t to, unsigned char *at) {
    for (size_t i = 0; i < s->count; i++) {
        const hem_parcel *p = &s->list[i];
        if ((uint32_t)p->peer != to)
            continue;
        uint64_t head[2] = {p->bytes, 0};
        memcpy(at, head, UNIT);
        if (p->bytes > 0)
            memcpy(at + UNIT, p->data, p->bytes);
        at += UNIT + padded(p->bytes);
    }
}

static hem_status ready(hemi_collective *c, uint64_t k) {
    const sparse *s = c->state;
    if (k == 0)
        return HEM_OK;
    return hemi_collective_has_pulled(c, 0) ? hemi_mail_state(&s->parcels.mail) : HEMI_AGAIN;
}

static void post(hemi_collective *c, uint64_t k) {
    const sparse *s = c->state;
    const hemi_parcels *p = &s->parcels;
    if (k == 1) {
        hemi_collective_refer(c, k, 0, 0);
        return;
    }
    for (uint32_t r = 0; r < c->job.size; r++)
        if (r != c->job.rank && p->bytes[r] > 0)
            pack(s, r,
                 p->way == HEMI_PARCELS_POSTED ? hemi_parcels_room(c, p, r)
                                               : s->packed + p->starts[r]);
    hemi_parcels_post(c, p);
}

/* Read all tables: how much comes, and room for it. */
static hem_status make_room(hemi_collective *c, sparse *s) {
    uint64_t total = 0;
    for (uint32_t r = 0; r < c->job.size; r++) {
        uint64_t bytes = s->parcels.bytes[r];
        hem_status status = r == c->job.rank ? HEM_OK : hemi_parcels_look(c, r, &bytes);
        if (status != HEM_OK)
            return status;
        if (bytes % UNIT != 0 || bytes > INT64_MAX - total)
            return hemi_fail(HEM_ERR_MISMATCH, "hem_sparse: rank %u posted something else", r);
        s->starts[r] = total;
        total += bytes;
    }
    s->starts[c->job.size] = total;
    hemi_context *context = c->context;
    if (context->blocks == NULL)
        context->blocks = hemi_blocks_make(context->world->root->platform);
    if (total > 0 && s->block == NULL)
        s->block = hemi_block_get(context->blocks, total);
    return s->block != NULL || total == 0
               ? HEM_OK
               : hemi_fail(HEM_ERR_MEMORY, "hem_sparse: no memory for %llu bytes that come",
                           (unsigned long long)total);
}

static hem_status take(hemi_collective *c, sparse *s) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < c->job.size && status == HEM_OK; r++) {
        uint64_t bytes = s->starts[r + 1] - s->starts[r];
        unsigned char *to = s->block + s->starts[r];
        if (bytes > 0 && r == c->job.rank)
            pack(s, r, to);
        else if (bytes > 0)
            status = hemi_parcels_get(c, &s->parcels, r, to, bytes);
    }
    return status;
}

static void mail_out(hemi_collective *c, sparse *s) {
    const hemi_parcels *p = &s->parcels;
    for (uint32_t r = 0; p->way == HEMI_PARCELS_MAILED && r < c->job.size; r++)
        if (r != c->job.rank && p->bytes[r] > 0)
            hemi_mail_begin(&s->parcels.mail, c, true, r, s->packed + p->starts[r], p->bytes[r]);
}

/* Walk over the packets; with `out`, fill in what they hold. Lengths come from peers. */
static hem_status unpack(const hemi_collective *c, const sparse *s, hem_parcel *out,
                         size_t *count_p) {
    size_t count = 0;
    for (uint32_t r = 0; r < c->job.size; r++) {
        const unsigned char *at = s->block + s->starts[r];
        uint64_t left = s->starts[r + 1] - s->starts[r];
        while (left > 0) {
            uint64_t bytes = 0;
            memcpy(&bytes, at, sizeof bytes);
            if (bytes > left - UNIT || padded(bytes) > left - UNIT)
                return hemi_fail(HEM_ERR_MISMATCH, "hem_sparse: rank %u sent something else", r);
            if (out != NULL)
                out[count] = (hem_parcel){(int)r, bytes, at + UNIT};
            count++;
            at += UNIT + padded(bytes);
            left -= UNIT + padded(bytes);
        }
    }
    *count_p = count;
    return HEM_OK;
}

/* Before the list there is room for one more, which remembers the block. */
static hem_status finish(hemi_collective *c, sparse *s) {
    size_t count = 0;
    hem_status status = unpack(c, s, NULL, &count);
    if (status != HEM_OK)
        return status;
    hem_parcel *list = NULL;
    if (count > 0) {
        list = calloc(count + 1, sizeof *list);
        if (list == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "hem_sparse: no memory for %zu messages", count);
        list[0].data = s->block;
        list++;
        status = unpack(c, s, list, &count);
        s->block = NULL; /* it is the result's now */
    }
    s->result_p->parcels = list;
    s->result_p->count = count;
    return status;
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    sparse *s = c->state;
    if (k == 1)
        return finish(c, s);
    bool all_posted = hemi_parcels_all_posted(c, &s->parcels);
    if (s->parcels.mail.count == 0)
        mail_out(c, s);
    hem_status status = make_room(c, s);
    if (status == HEM_OK)
        status = take(c, s);
    if (status == HEM_OK && all_posted)
        status = finish(c, s);
    return status == HEM_OK && all_posted ? HEMI_ENOUGH : status;
}

static void stop(hemi_collective *c) {
    sparse *s = c->state;
    hemi_mail_stop(&s->parcels.mail);
}

const hemi_method hemi_direct_sparse = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .ready = ready,
    .post = post,
    .pull = pull,
    .uses_channels = true,
    .prepare = prepare,
    .stop = stop,
    .release = release,
};

void hem_sparse_free(hem_sparse_result *result) {
    if (result == NULL)
        return;
    if (result->parcels != NULL) {
        hem_parcel *list = result->parcels - 1;
        hemi_block_put((void *)(uintptr_t)list[0].data);
        free(list);
    }
    result->parcels = NULL;
    result->count = 0;
}
