/*
 * The board: where each rank posts its contribution to a step, for its peers to read in place.
 *
 * Step i of collective k of a world has the number k << 24 | i + 1, the same on all ranks, whatever became
 * of the collectives before. It uses line and stage (k + i) % HEMI_BOARD of every rank's hub. Who writes
 * what, in which order:
 *
 *   owner   data into its stage (or nowhere, if the caller's buffer is library memory); where, bytes,
 *           payload; release stamp = the step's number; wake the others.
 *   reader  acquire stamp; it is that number if the owner has posted. Reads the data in place.
 *   reader  release done = the number of the step up to which it has finished all, in its own hub; a
 *           collective that is over, or given up, counts with all steps that it could have.
 *   owner   writes a line again only when every rank's done has reached the stamp in it (acquire).
 *
 * So a line or stage is never written while somebody may still read it, and stamps only grow. Nobody
 * ever writes into a peer's memory. A rank that waits for others to be done is not woken each time, but
 * when they have finished a step whose place in its collective is a multiple of half a board, a
 * collective of several steps, or one whose number is such a multiple. It is enough: what it waits for
 * lies a board back, it has posted all since, and so the next such step or collective can be finished
 * without it.
 */
#ifndef HEMI_COLL_BOARD_H
#define HEMI_COLL_BOARD_H

#include "base/atomic.h"

#include <stdint.h>

/** Bits of a step's number that count inside of a collective. */
#define HEMI_STEP_BITS 24
#define HEMI_STEPS_MAX ((1ull << HEMI_STEP_BITS) - 2)

/** The number of step `i` of collective `k`. */
static inline uint64_t hemi_step_number(uint64_t k, uint64_t i) {
    return k << HEMI_STEP_BITS | (i + 1);
}

/** As a `done`: `finished` steps of collective `k`, and all before it. */
static inline uint64_t hemi_step_done(uint64_t k, uint64_t finished) {
    return k << HEMI_STEP_BITS | finished;
}

/** As a `done`: all that collective `k` could have. */
static inline uint64_t hemi_step_over(uint64_t k) {
    return k << HEMI_STEP_BITS | ((1ull << HEMI_STEP_BITS) - 1);
}

/** The line and stage that a step uses, before the remainder by the size of the board. */
static inline uint64_t hemi_step_line(uint64_t number) {
    return (number >> HEMI_STEP_BITS) + (number & ((1ull << HEMI_STEP_BITS) - 1)) - 1;
}

/** What fits into a post itself. */
#define HEMI_POST_INLINE 40

typedef struct hemi_post {
    uint64_t stamp;
    uint64_t where; /**< 0: in the payload; else an offset in the arena */
    uint64_t bytes;
    uint8_t payload[HEMI_POST_INLINE];
} __attribute__((aligned(HEMI_LINE))) hemi_post;

/** Posts are so many lines apart: processors fetch lines in pairs, and would fetch the next post away
 *  from its owner, who is about to write it. */
#define HEMI_POST_STRIDE 2

_Static_assert(sizeof(hemi_post) == HEMI_LINE, "a post is one cache line");

/** Owner: publish. `where` and the data that it names are written before. */
static inline void hemi_post_release(hemi_post *post, uint64_t step, uint64_t where,
                                     uint64_t bytes) {
    hemi_store64_relaxed(&post->where, where);
    hemi_store64_relaxed(&post->bytes, bytes);
    /* Pairs with the acquire in hemi_post_is. */
    hemi_store64_release(&post->stamp, step);
}

/** Reader: has the owner posted this step? */
static inline bool hemi_post_is(const hemi_post *post, uint64_t step) {
    return hemi_load64_acquire(&post->stamp) == step;
}

#endif
