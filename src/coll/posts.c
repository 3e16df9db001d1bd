/* What collectives post, and how they get at what others have posted: coll/collective.h. */
#include "coll/sources.h"

#include <stdlib.h>

void hemi_collective_refer(const hemi_collective *c, uint64_t k, uint64_t where, uint64_t bytes) {
    hemi_post_release(hemi_collective_line(c, hemi_collective_step(c, k)),
                      hemi_collective_step(c, k), where, bytes);
    hemi_context_wake(c->context);
}

void hemi_collective_publish(const hemi_collective *c, uint64_t k, size_t bytes) {
    uint64_t where = 0;
    if (bytes > HEMI_POST_INLINE)
        where = hemi_context_offset(
            c->context, hemi_context_stage(c->context, hemi_collective_step(c, k)), bytes);
    hemi_collective_refer(c, k, where, bytes);
}

void hemi_collective_cut(hemi_collective *c, size_t bytes, size_t most, size_t staged) {
    c->closes = bytes >= HEMI_CLOSES_FROM;
    /* What is combined comes through scratch, in whole elements. */
    c->pulls =
        bytes >= HEMI_PULLS_FROM && c->context->pulls && c->job.element <= HEMI_SCRATCH_LEAST;
    c->width = c->pulls ? most : staged;
}

hem_status hemi_collective_need_copy(hemi_collective *c, size_t bytes) {
    if (!c->pulls || bytes == 0 || c->copy != NULL)
        return HEM_OK;
    c->copy = malloc(bytes);
    return c->copy != NULL ? HEM_OK
                           : hemi_fail(HEM_ERR_MEMORY, "%s: no memory for %zu bytes in place",
                                       hemi_call_name(c->op.call), bytes);
}

uint64_t hemi_collective_place(const hemi_collective *c, const void *data, size_t bytes,
                               uint64_t *flags_p) {
    *flags_p = 0;
    if (!c->closes || bytes <= HEMI_POST_INLINE)
        return 0;
    uint64_t where = hemi_context_offset(c->context, data, bytes);
    if (where != 0 || !c->pulls)
        return where;
    *flags_p = HEMI_POST_PRIVATE;
    return (uintptr_t)data;
}

void hemi_collective_post_data(const hemi_collective *c, uint64_t k, const void *data,
                               size_t bytes) {
    uint64_t flags = 0;
    uint64_t where = hemi_collective_place(c, data, bytes, &flags);
    if (where != 0) {
        hemi_collective_refer(c, k, where, bytes | flags);
        return;
    }
    if (bytes > 0)
        memcpy(hemi_collective_room(c, k, bytes), data, bytes);
    hemi_collective_publish(c, k, bytes);
}

hem_status hemi_collective_find(const hemi_collective *c, uint64_t k, uint32_t rank, size_t bytes,
                                size_t whole, hemi_found *found_p) {
    const hemi_arena *arena = &c->context->world->root->arena;
    const hemi_post *post = hemi_context_post(c->context, rank, hemi_collective_step(c, k));
    uint64_t where = hemi_load64_relaxed(&post->where);
    uint64_t said = hemi_load64_relaxed(&post->bytes);
    bool private = (said & HEMI_POST_PRIVATE) != 0;
    bool is_whole = (said & HEMI_POST_WHOLE) != 0;
    said &= ~(HEMI_POST_WHOLE | HEMI_POST_PRIVATE);
    size_t wanted = is_whole ? whole : bytes;
    bool inside =
        private ? c->pulls : where <= arena->total_bytes && wanted <= arena->total_bytes - where;
    if (said != wanted || (where == 0 && wanted > HEMI_POST_INLINE) || !inside)
        return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u has %llu bytes where rank %u expects %zu",
                         hemi_call_name(c->op.call), rank, (unsigned long long)said, c->job.rank,
                         wanted);
    found_p->rank = rank;
    found_p->whole = is_whole;
    found_p->address = where;
    found_p->data = private ? NULL : where == 0 ? post->payload : arena->base + where;
    return HEM_OK;
}

/* Read another process. One that is gone will be known to be dead soon: then the wait ends. */
static hem_status pull_from(hemi_collective *c, const hemi_found *found, size_t offset, void *to,
                            size_t n) {
    hem_status status = hemi_context_pull(c->context, found->rank, found->address + offset, to, n);
    if (__builtin_expect(status != HEM_ERR_PEER, 1))
        return status;
    c->lost = found->rank + 1;
    return HEMI_AGAIN;
}

hem_status hemi_collective_copy(hemi_collective *c, const hemi_found *found, size_t offset,
                                void *to, size_t n) {
    if (n == 0)
        return HEM_OK;
    if (found->data == NULL)
        return pull_from(c, found, offset, to, n);
    if (found->data + offset != to)
        memcpy(to, found->data + offset, n);
    return HEM_OK;
}

/* The bytes themselves, brought into scratch if they are in another process. */
static hem_status see(hemi_collective *c, const hemi_found *found, size_t offset, size_t n,
                      const void **source_p) {
    hemi_context *context = c->context;
    if (found->data != NULL) {
        *source_p = found->data + offset;
        return HEM_OK;
    }
    unsigned char *scratch = context->scratch + found->rank * context->scratch_bytes;
    *source_p = scratch;
    return pull_from(c, found, offset, scratch, n);
}

hem_status hemi_collective_combine(hemi_collective *c, const hemi_found *found,
                                   const size_t *offsets, void *out, size_t n) {
    const hemi_job *job = &c->job;
    const void **sources = hemi_sources(c);
    bool private = false;
    for (uint32_t r = 0; r < job->size; r++)
    private = private || found[r].data == NULL;
    hem_status status = private ? hemi_context_scratch(c->context) : HEM_OK;
    size_t block = private ? c->context->scratch_bytes / job->element * job->element : n;
    for (size_t at = 0; at < n && status == HEM_OK; at += block) {
        size_t bytes = n - at < block ? n - at : block;
        for (uint32_t r = 0; r < job->size && status == HEM_OK; r++)
            status = see(c, &found[r], offsets[r] + at, bytes, &sources[r]);
        if (status == HEM_OK)
            hemi_reduce(&job->reducer, (unsigned char *)out + at, sources, job->size,
                        bytes / job->element);
    }
    return status;
}
