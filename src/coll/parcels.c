#include "coll/parcels.h"

#include <stdlib.h>

static size_t table_bytes(const hemi_collective *c) {
    return c->job.size * sizeof(uint64_t);
}

bool hemi_parcels_can(const hemi_job *job, uint64_t stage_bytes) {
    return job->size * sizeof(uint64_t) <= stage_bytes;
}

hem_status hemi_parcels_make(const hemi_collective *c, hemi_parcels *p) {
    p->bytes = calloc(c->job.size, sizeof *p->bytes);
    if (p->bytes == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a table of %u ranks", c->job.size);
    return hemi_mail_make(&p->mail, 2 * c->job.size);
}

void hemi_parcels_free(hemi_parcels *p) {
    hemi_mail_free(&p->mail);
    free(p->bytes);
    p->bytes = NULL;
}

void hemi_parcels_count(const hemi_collective *c, hemi_parcels *p) {
    p->total = 0;
    for (uint32_t r = 0; r < c->job.size; r++)
        if (r != c->job.rank)
            p->total += p->bytes[r];
    p->fits = p->total <= c->context->stage_bytes - table_bytes(c);
}

static size_t posted_bytes(const hemi_collective *c, const hemi_parcels *p) {
    return table_bytes(c) + (p->fits ? (size_t)p->total : 0);
}

unsigned char *hemi_parcels_room(const hemi_collective *c, const hemi_parcels *p, uint32_t rank) {
    unsigned char *room = hemi_collective_room(c, 0, posted_bytes(c, p)) + table_bytes(c);
    for (uint32_t r = 0; r < rank; r++)
        room += r == c->job.rank ? 0 : p->bytes[r];
    return room;
}

void hemi_parcels_post(const hemi_collective *c, const hemi_parcels *p) {
    size_t bytes = posted_bytes(c, p);
    memcpy(hemi_collective_room(c, 0, bytes), p->bytes, table_bytes(c));
    hemi_collective_publish(c, 0, bytes);
}

/* A rank's post of the first step: its table, and whether the data is behind it. */
static hem_status read_table(const hemi_collective *c, uint32_t rank, const unsigned char **data_p,
                             bool *fits_p) {
    const hemi_arena *arena = &c->context->world->root->arena;
    const hemi_post *post = hemi_context_post(c->context, rank, hemi_collective_step(c, 0));
    uint64_t where = hemi_load64_relaxed(&post->where);
    uint64_t bytes = hemi_load64_relaxed(&post->bytes);
    uint64_t total = 0;
    bool good = bytes >= table_bytes(c) &&
                (where == 0 ? bytes <= HEMI_POST_INLINE
                            : where <= arena->total_bytes && bytes <= arena->total_bytes - where);
    if (good) {
        *data_p = where == 0 ? post->payload : arena->base + where;
        for (uint32_t r = 0; r < c->job.size; r++) {
            uint64_t n = 0;
            memcpy(&n, *data_p + r * sizeof n, sizeof n);
            good = good && n <= UINT64_MAX / 2 - total;
            total += r == rank || !good ? 0 : n;
        }
        *fits_p = bytes == table_bytes(c) + total;
        good = good && (*fits_p || bytes == table_bytes(c));
    }
    return good ? HEM_OK
                : hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u posted something else",
                            hemi_call_name(c->op.call), rank);
}

hem_status hemi_parcels_look(const hemi_collective *c, uint32_t rank, uint64_t *bytes_p,
                             const unsigned char **data_p) {
    const unsigned char *table = NULL;
    bool fits = false;
    hem_status status = read_table(c, rank, &table, &fits);
    if (status != HEM_OK)
        return status;
    size_t before = table_bytes(c);
    for (uint32_t r = 0; r < c->job.rank; r++) {
        uint64_t n = 0;
        memcpy(&n, table + r * sizeof n, sizeof n);
        before += r == rank ? 0 : (size_t)n;
    }
    memcpy(bytes_p, table + c->job.rank * sizeof(uint64_t), sizeof *bytes_p);
    *data_p = fits ? table + before : NULL;
    return HEM_OK;
}

bool hemi_parcels_all_fit(const hemi_collective *c, const hemi_parcels *p) {
    bool all = p->fits;
    for (uint32_t r = 0; all && r < c->job.size; r++) {
        const unsigned char *table = NULL;
        all = r == c->job.rank || (read_table(c, r, &table, &all) == HEM_OK && all);
    }
    return all;
}
