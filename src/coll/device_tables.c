/* What the kernel reads, and the copies around it. Every rank's part of the window looks the same. */
#include "coll/device.h"
#include "window/device.h"

#include <hem/cuda.h>
#include <hem/window.h>
#include <stdlib.h>
#include <string.h>

/* Slices and shares begin on lines, if buffers do. */
#define GRAIN HEM_DEV_LINE

/* The tables as the host fills them in; each has room for one entry per rank. */
typedef struct tables {
    hemd_coll_move *moves;
    unsigned char **tos;
    const unsigned char **sources;
    hemd_coll_post *posts;
    uint64_t move_count;
    uint64_t to_count;
} tables;

static uint64_t places(const hemi_coll_device *d, uint64_t *tos_at, uint64_t *sources_at,
                       uint64_t *posts_at) {
    *tos_at = d->size * sizeof(hemd_coll_move);
    *sources_at = *tos_at + d->size * sizeof(unsigned char *);
    *posts_at = *sources_at + d->size * sizeof(unsigned char *);
    return *posts_at + d->size * sizeof(hemd_coll_post);
}

uint64_t hemi_coll_device_tables(const hemi_coll_device *d) {
    uint64_t at[3];
    return places(d, &at[0], &at[1], &at[2]);
}

/* Where kernels of this rank see a buffer of rank r. */
static unsigned char *buffer_of(const hemi_coll_device *d, int which, uint32_t r) {
    bool aside = which == HEMI_COLL_RECV && d->all.moved != 0;
    if (d->direct && !aside)
        return d->maps[which][r].address;
    return (unsigned char *)hemi_window_device_address(d->window, r) + d->staged_at[which];
}

static void add_to(tables *t, unsigned char *to) {
    t->tos[t->to_count++] = to;
}

/* One move to one place, unless the bytes are there already. */
static void add_move(tables *t, const unsigned char *from, unsigned char *to, uint64_t bytes) {
    if (bytes == 0 || from == to)
        return;
    hemd_coll_move *move = &t->moves[t->move_count++];
    move->from = from;
    move->bytes = bytes;
    move->first_to = (uint32_t)t->to_count;
    move->to_count = 1;
    add_to(t, to);
}

/* All-gather: what this rank has, once from memory to everybody. */
static void gather_moves(const hemi_coll_device *d, tables *t) {
    const unsigned char *from = buffer_of(d, HEMI_COLL_SEND, d->rank);
    hemd_coll_move *move = &t->moves[0];
    uint64_t bits = (uintptr_t)from;
    move->from = from;
    move->bytes = d->spans[d->rank].send_bytes;
    for (uint32_t i = 1; i <= d->size && move->bytes > 0; i++) {
        uint32_t r = (d->rank + i) % d->size;
        unsigned char *to = buffer_of(d, HEMI_COLL_RECV, r) + d->theirs[r].recv_at;
        if (to == from)
            continue;
        bits |= (uintptr_t)to;
        move->to_count++;
        add_to(t, to);
    }
    move->even = bits % 16 == 0;
    t->move_count = move->to_count > 0;
}

/* Each rank begins with another one, so that not all are at the same. */
static void copy_moves(const hemi_coll_device *d, tables *t) {
    hem_coll_kind kind = d->job.kind;
    bool push = kind == HEM_GATHER || kind == HEM_GATHERV;
    if (kind == HEM_ALLGATHER || kind == HEM_ALLGATHERV) {
        gather_moves(d, t);
        return;
    }
    for (uint32_t i = 1; i <= d->size; i++) {
        uint32_t r = (d->rank + i) % d->size;
        if (push && d->spans[r].send_bytes > 0)
            add_move(t, buffer_of(d, HEMI_COLL_SEND, d->rank) + d->spans[r].send_at,
                     buffer_of(d, HEMI_COLL_RECV, r) + d->theirs[r].recv_at,
                     d->spans[r].send_bytes);
        else if (!push && d->spans[r].recv_bytes > 0)
            add_move(t, buffer_of(d, HEMI_COLL_SEND, r) + d->theirs[r].send_at,
                     buffer_of(d, HEMI_COLL_RECV, d->rank) + d->spans[r].recv_at,
                     d->spans[r].recv_bytes);
    }
}

/* Bytes of the vector that this rank combines, and where they begin. */
static uint64_t slice(const hemi_coll_device *d, uint64_t *begin_p) {
    bool whole = d->job.kind == HEM_ALLREDUCE || d->job.kind == HEM_REDUCE;
    *begin_p = 0;
    if (!whole)
        return d->spans[d->rank].recv_bytes;
    uint64_t total = d->all.pair_bytes;
    /* Whole elements: a multiple of both. */
    uint64_t grain = GRAIN % d->job.element == 0 ? GRAIN : GRAIN * d->job.element;
    uint64_t each = (total / d->size + grain) / grain * grain;
    uint64_t begin = d->rank * each < total ? d->rank * each : total;
    *begin_p = begin;
    return total - begin < each ? total - begin : each;
}

/* Vectors need all addresses to be misaligned alike, by whole elements. */
static void find_vectors(hemd_coll_args *args, const tables *t) {
    uint64_t first = (uintptr_t)t->sources[0] % 16;
    bool alike = true;
    for (uint64_t i = 0; i < args->source_count; i++)
        alike = alike && (uintptr_t)t->sources[i] % 16 == first;
    for (uint64_t i = 0; i < t->to_count; i++)
        alike = alike && (uintptr_t)t->tos[i] % 16 == first;
    uint64_t head = (16 - first) % 16;
    if (!alike || head % args->element != 0 || head > args->bytes)
        return;
    args->head = head;
    args->vectors = (args->bytes - head) / 16;
}

static void reduce_tables(const hemi_coll_device *d, tables *t, hemd_coll_args *args) {
    uint64_t begin = 0;
    args->bytes = slice(d, &begin);
    args->source_count = d->size;
    bool all = d->job.kind == HEM_ALLREDUCE;
    bool one = d->job.kind == HEM_REDUCE;
    if (args->bytes == 0) {
        args->source_count = 0;
        return;
    }
    for (uint32_t r = 0; r < d->size; r++) {
        t->sources[r] = buffer_of(d, HEMI_COLL_SEND, r) + d->theirs[r].send_at + begin;
        if (all || (one && r == d->job.root) || (!all && !one && r == d->rank))
            add_to(t, buffer_of(d, HEMI_COLL_RECV, r) + begin);
    }
    /* Of the reduce of another root, what a rank sends to this one is nothing: all begin at 0. */
    find_vectors(args, t);
}

static void unit_tables(const hemi_coll_device *d, tables *t, hemd_coll_args *args) {
    uint64_t row = args->words;
    for (uint32_t r = 0; r < d->size; r++) {
        const hemi_coll_span *s = &d->spans[r];
        hemd_coll_post *post = &t->posts[r];
        unsigned char *mine = hemi_window_device_address(d->window, d->rank);
        unsigned char *there = hemi_window_device_address(d->window, r);
        post->send = s->send_bytes > 0 ? d->buffers[HEMI_COLL_SEND] + s->send_at : NULL;
        post->send_bytes = s->send_bytes;
        post->recv = s->recv_bytes > 0 ? d->buffers[HEMI_COLL_RECV] + s->recv_at : NULL;
        post->recv_bytes = s->recv_bytes;
        post->out = (hemd_unit *)(void *)(there + d->units_at) + d->rank * row;
        post->in = (const hemd_unit *)(const void *)(mine + d->units_at) + r * row;
    }
    hem_coll_kind kind = d->job.kind;
    args->same = kind == HEM_ALLREDUCE || kind == HEM_ALLGATHER || kind == HEM_ALLGATHERV;
    if (args->form != HEMD_COLL_UNITS_REDUCE)
        return;
    args->recv_bytes = d->spans[d->rank].recv_bytes;
    args->recv = args->recv_bytes > 0 ? d->buffers[HEMI_COLL_RECV] : NULL;
}

static hem_status make_copies(const hemi_coll_device *d, hemi_coll_copies *c, int which) {
    c->to = calloc(d->size, sizeof *c->to);
    c->from = calloc(d->size, sizeof *c->from);
    c->bytes = calloc(d->size, sizeof *c->bytes);
    if (c->to == NULL || c->from == NULL || c->bytes == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective on a device");
    /* A vector that all send or receive is one piece. */
    hem_coll_kind kind = d->job.kind;
    bool recv = which == HEMI_COLL_RECV;
    bool once = kind == HEM_ALLREDUCE || kind == HEM_REDUCE || kind == HEM_BROADCAST ||
                (recv ? kind == HEM_REDUCE_SCATTER || kind == HEM_REDUCE_SCATTERV
                      : kind == HEM_ALLGATHER || kind == HEM_ALLGATHERV);
    for (uint32_t r = 0; r < d->size && !(once && c->count > 0); r++) {
        const hemi_coll_span *s = &d->spans[r];
        uint64_t at = recv ? s->recv_at : s->send_at;
        uint64_t bytes = recv ? s->recv_bytes : s->send_bytes;
        unsigned char *staged =
            d->multi ? hemi_coll_device_slot(d, which, r) : buffer_of(d, which, d->rank) + at;
        unsigned char *place = d->buffers[which] + at;
        if (bytes == 0)
            continue;
        c->to[c->count] = recv ? place : staged;
        c->from[c->count] = recv ? staged : place;
        c->bytes[c->count++] = bytes;
    }
    return HEM_OK;
}

static hem_status stage(hemi_coll_device *d) {
    hem_status status = HEM_OK;
    if (d->units || d->job.kind == HEM_BARRIER)
        return HEM_OK;
    if (!d->direct)
        status = make_copies(d, &d->before, HEMI_COLL_SEND);
    if (status == HEM_OK && (!d->direct || d->all.moved != 0))
        status = make_copies(d, &d->after, HEMI_COLL_RECV);
    return status;
}

static void fill_tables(hemi_coll_device *d, tables *t) {
    hemd_coll_args *args = &d->args;
    uint32_t parts = 1;
    args->code = hemi_coll_device_combines(&d->job) ? hemi_coll_device_code(&d->job, &parts) : 0;
    args->element = (uint32_t)(d->job.element / parts);
    bool reduces = args->code != 0;
    if (d->job.kind == HEM_BARRIER) {
        args->form = HEMD_COLL_MEET;
    } else if (d->units) {
        args->form = reduces ? HEMD_COLL_UNITS_REDUCE : HEMD_COLL_UNITS;
        unit_tables(d, t, args);
    } else if (d->multi) {
        uint64_t begin = 0;
        uint64_t bytes = slice(d, &begin);
        hemi_coll_device_part(d, begin, bytes);
        return;
    } else if (reduces) {
        args->form = HEMD_COLL_REDUCE;
        reduce_tables(d, t, args);
    } else {
        args->form = HEMD_COLL_COPY;
        copy_moves(d, t);
    }
    args->move_count = t->move_count;
    args->to_count = t->to_count;
    if (d->size <= HEMD_COLL_FEW)
        memcpy(args->few, t->posts, d->size * sizeof *t->posts);
}

hem_status hemi_coll_device_fill(hemi_coll_device *d) {
    uint64_t tos_at;
    uint64_t sources_at;
    uint64_t posts_at;
    uint64_t bytes = places(d, &tos_at, &sources_at, &posts_at);
    unsigned char *host = calloc(1, bytes);
    if (host == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective on a device");
    tables t = {.moves = (hemd_coll_move *)(void *)host,
                .tos = (unsigned char **)(void *)(host + tos_at),
                .sources = (const unsigned char **)(void *)(host + sources_at),
                .posts = (hemd_coll_post *)(void *)(host + posts_at)};
    hem_status status = hem_window_device(d->window, &d->args.window);
    if (status == HEM_OK) {
        fill_tables(d, &t);
        status = stage(d);
    }
    if (status == HEM_OK)
        status = hem_put(d->window, (int)d->rank, d->tables_at, host, bytes);
    free(host);
    unsigned char *mine = hemi_window_device_address(d->window, d->rank);
    unsigned char *at = mine + d->tables_at;
    d->args.state = (hemd_coll_state *)(void *)mine;
    d->args.moves = (const hemd_coll_move *)(void *)at;
    d->args.tos = (unsigned char *const *)(void *)(at + tos_at);
    d->args.sources = (const unsigned char *const *)(void *)(at + sources_at);
    d->args.posts = (const hemd_coll_post *)(void *)(at + posts_at);
    return status;
}
