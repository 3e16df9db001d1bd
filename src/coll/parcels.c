#include "coll/parcels.h"

#include <stdlib.h>

/* Before the table: how the rest comes, and from where. Two words per rank follow. */
#define HEAD 2u

static size_t table_bytes(uint32_t size) {
    return (HEAD + 2 * (size_t)size) * sizeof(uint64_t);
}

bool hemi_parcels_can(const hemi_job *job, uint64_t stage_bytes) {
    return table_bytes(job->size) <= stage_bytes;
}

hem_status hemi_parcels_make(const hemi_collective *c, hemi_parcels *p) {
    uint32_t size = c->job.size;
    p->bytes = size <= HEMI_SOURCES_FEW ? p->few : calloc(2 * (size_t)size, sizeof *p->bytes);
    if (p->bytes == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a table of %u ranks", size);
    p->starts = p->bytes + size;
    memset(p->bytes, 0, 2 * (size_t)size * sizeof *p->bytes);
    return HEM_OK;
}

void hemi_parcels_free(hemi_parcels *p) {
    hemi_mail_free(&p->mail);
    if (p->bytes != p->few)
        free(p->bytes);
    p->bytes = NULL;
}

bool hemi_parcels_fit(const hemi_collective *c, hemi_parcels *p) {
    p->total = 0;
    for (uint32_t r = 0; r < c->job.size; r++)
        if (r != c->job.rank)
            p->total += p->bytes[r];
    p->way = HEMI_PARCELS_POSTED;
    return p->total <= c->context->stage_bytes - table_bytes(c->job.size);
}

void hemi_parcels_choose(const hemi_collective *c, hemi_parcels *p, const void *buffer,
                         size_t bytes) {
    p->base = hemi_context_offset(c->context, buffer, bytes);
    p->way = HEMI_PARCELS_LIBRARY;
    if (p->base == 0) {
        p->base = (uintptr_t)buffer;
        p->way = c->context->pulls ? HEMI_PARCELS_PRIVATE : HEMI_PARCELS_MAILED;
    }
}

static size_t posted_bytes(const hemi_collective *c, const hemi_parcels *p) {
    return table_bytes(c->job.size) + (p->way == HEMI_PARCELS_POSTED ? (size_t)p->total : 0);
}

unsigned char *hemi_parcels_room(const hemi_collective *c, const hemi_parcels *p, uint32_t rank) {
    unsigned char *room = hemi_collective_room(c, 0, posted_bytes(c, p)) + table_bytes(c->job.size);
    for (uint32_t r = 0; r < rank; r++)
        room += r == c->job.rank ? 0 : p->bytes[r];
    return room;
}

void hemi_parcels_post(const hemi_collective *c, const hemi_parcels *p) {
    size_t bytes = posted_bytes(c, p);
    unsigned char *room = hemi_collective_room(c, 0, bytes);
    uint64_t head[HEAD] = {(uint64_t)p->way, p->base};
    memcpy(room, head, sizeof head);
    memcpy(room + sizeof head, p->bytes, 2 * (size_t)c->job.size * sizeof *p->bytes);
    hemi_collective_publish(c, 0, bytes);
}

/* A rank's post of the first step, with everything in it that was checked. */
typedef struct seen {
    const unsigned char *post;
    uint64_t way;
    uint64_t base;
    uint64_t bytes; /* for this rank */
    uint64_t start;
    uint64_t before; /* of the data that is posted */
} seen;

static uint64_t word(const seen *s, size_t i) {
    uint64_t value = 0;
    memcpy(&value, s->post + i * sizeof value, sizeof value);
    return value;
}

static bool read_table(const hemi_collective *c, uint32_t rank, uint64_t posted, seen *s) {
    const hemi_arena *arena = &c->context->world->root->arena;
    uint32_t size = c->job.size;
    uint64_t total = 0;
    s->way = word(s, 0);
    s->base = word(s, 1);
    for (uint32_t r = 0; r < size; r++) {
        uint64_t n = word(s, HEAD + r);
        if (n > UINT64_MAX / 4 - total)
            return false;
        if (r == c->job.rank)
            s->before = total;
        total += r == rank ? 0 : n;
    }
    s->bytes = word(s, HEAD + c->job.rank);
    s->start = word(s, HEAD + size + c->job.rank);
    if (s->way == HEMI_PARCELS_POSTED)
        return posted == table_bytes(size) + total;
    if (s->way == HEMI_PARCELS_LIBRARY)
        return s->base <= arena->total_bytes && s->start <= arena->total_bytes - s->base &&
               s->bytes <= arena->total_bytes - s->base - s->start;
    return s->way == HEMI_PARCELS_MAILED || (s->way == HEMI_PARCELS_PRIVATE && c->context->pulls);
}

static hem_status look(const hemi_collective *c, uint32_t rank, seen *s) {
    const hemi_arena *arena = &c->context->world->root->arena;
    const hemi_post *post = hemi_context_post(c->context, rank, hemi_collective_step(c, 0));
    uint64_t where = hemi_load64_relaxed(&post->where);
    uint64_t bytes = hemi_load64_relaxed(&post->bytes);
    bool good = bytes >= table_bytes(c->job.size) &&
                (where == 0 ? bytes <= HEMI_POST_INLINE
                            : where <= arena->total_bytes && bytes <= arena->total_bytes - where);
    s->post = where == 0 ? post->payload : arena->base + where;
    return good && read_table(c, rank, bytes, s)
               ? HEM_OK
               : hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u posted something else",
                           hemi_call_name(c->op.call), rank);
}

hem_status hemi_parcels_look(const hemi_collective *c, uint32_t rank, uint64_t *bytes_p) {
    seen s;
    hem_status status = look(c, rank, &s);
    if (status == HEM_OK)
        *bytes_p = s.bytes;
    return status;
}

hem_status hemi_parcels_get(hemi_collective *c, hemi_parcels *p, uint32_t rank, void *to,
                            uint64_t bytes) {
    const hemi_arena *arena = &c->context->world->root->arena;
    seen s;
    hem_status status = look(c, rank, &s);
    if (status != HEM_OK || bytes == 0)
        return status;
    if (s.way == HEMI_PARCELS_MAILED) {
        hemi_mail_begin(&p->mail, c, false, rank, to, bytes);
        return HEM_OK;
    }
    hemi_found found = {.rank = rank, .address = s.base};
    size_t offset = s.start;
    if (s.way == HEMI_PARCELS_LIBRARY)
        found.data = arena->base + s.base;
    if (s.way == HEMI_PARCELS_POSTED) {
        found.data = s.post + table_bytes(c->job.size);
        offset = s.before;
    }
    return hemi_collective_copy(c, &found, offset, to, bytes);
}

bool hemi_parcels_all_posted(const hemi_collective *c, const hemi_parcels *p) {
    bool all = p->way == HEMI_PARCELS_POSTED;
    for (uint32_t r = 0; all && r < c->job.size; r++) {
        seen s;
        all = r == c->job.rank || (look(c, r, &s) == HEM_OK && s.way == HEMI_PARCELS_POSTED);
    }
    return all;
}
