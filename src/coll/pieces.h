/*
 * Cutting data into steps.
 *
 * In step k of an algorithm, bytes [k * width, (k + 1) * width) of each block travel, as far as the
 * block has them. All of it is computed alike on all ranks.
 */
#ifndef HEMI_COLL_PIECES_H
#define HEMI_COLL_PIECES_H

#include "coll/collective.h"

/** How many steps blocks of up to `bytes` bytes take; at least 1. */
static inline uint64_t hemi_pieces(size_t bytes, size_t width) {
    return bytes <= width ? 1 : (bytes + width - 1) / width;
}

/** The length of piece k of a block of `bytes` bytes. */
static inline size_t hemi_piece(size_t bytes, size_t width, uint64_t k) {
    size_t start = (size_t)k * width;
    if (start >= bytes)
        return 0;
    return bytes - start < width ? bytes - start : width;
}

/** Copy unless there is nothing to do. */
static inline void hemi_move(void *to, const void *from, size_t bytes) {
    if (bytes > 0 && to != from)
        memcpy(to, from, bytes);
}

/** The bytes of rank r's block of `recv` (of `send` in scatters) in any kind. */
static inline size_t hemi_block_bytes(const hemi_job *job, uint32_t r) {
    return (job->counts != NULL ? job->counts[r] : job->count) * job->element;
}

/** Where it starts. */
static inline size_t hemi_block_start(const hemi_job *job, uint32_t r) {
    return (job->displs != NULL ? job->displs[r] : (size_t)r * job->count) * job->element;
}

/** The longest block. */
static inline size_t hemi_block_most(const hemi_job *job) {
    size_t most = job->counts != NULL ? 0 : job->count;
    for (uint32_t r = 0; job->counts != NULL && r < job->size; r++)
        if (job->counts[r] > most)
            most = job->counts[r];
    return most * job->element;
}

#endif
