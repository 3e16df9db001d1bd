/*
 * Waiting: spin, yield, sleep; and waking those who sleep.
 *
 * Who writes what, and why no wake-up is missed. A sleeper of rank R reads R's doorbell, counts
 * itself in `sleepers`, makes every other running thread of the job pass a full fence (membarrier),
 * and only then looks at its condition once more before it parks on the doorbell value it read. A
 * signaller stores its word and then looks at `sleepers`, with no fence between. Either its store
 * had left the store buffer before the fence, then the sleeper's second look finds it; or its load
 * of `sleepers` comes after the fence, then it finds a sleeper, counts the doorbell up and wakes.
 * Between the second look and the parking, a doorbell that moved makes the park return at once.
 * Where membarrier is refused, every signaller fences instead. models/sleep.pml checks both.
 */
#ifndef HEMI_CORE_WAIT_H
#define HEMI_CORE_WAIT_H

#include "core/flight.h"
#include "core/world.h"

/** Not an error: the condition does not hold yet. */
#define HEMI_AGAIN ((hem_status)1)

typedef struct hemi_wait_for {
    /** HEM_OK: it holds. HEMI_AGAIN: not yet. Anything else ends the wait with it. */
    hem_status (*poll)(void *arg);
    /** HEM_OK, or why it can never hold: called only when poll said HEMI_AGAIN. May be NULL. */
    hem_status (*doomed)(void *arg);
    void *arg;
    /** Fill in which peer and word it waits for just now. Only before sleeping. May be NULL. */
    void (*where)(void *arg, hemi_flight_note *note);
    bool also_revoked; /**< go on waiting although the world is revoked */
    /** Not 0: a device may write the word, which wakes nobody; look again this often. */
    int64_t nap_ns;
    hemi_flight_note note;
} hemi_wait_for;

/**
 * Wait until the condition holds.
 *
 * Ends with HEM_OK, with what `poll` or `doomed` said, with HEM_ERR_REVOKED, or with HEM_ERR_TIMEOUT,
 * whose sentence is the caller's to record. A condition that holds beats every error.
 */
hem_status hemi_wait(hem_world *world, const hemi_wait_for *wait, int64_t timeout_ns);

/** The part of waking that is not inlined. */
void hemi_wake_sleepers(const hemi_root *root, hemi_rank_block *block);

/** Wake a rank whose word one has just stored, if it sleeps. */
static inline void hemi_wake(const hemi_root *root, hemi_rank_block *block) {
    if (__builtin_expect(root->fence, 0))
        hemi_fence_seq_cst();
    else
        hemi_compiler_barrier();
    if (__builtin_expect(hemi_load32_relaxed(&block->sleepers) != 0, 0))
        hemi_wake_sleepers(root, block);
}

#endif
