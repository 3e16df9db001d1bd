/* A lock among threads of one rank, for what is done rarely. */
#ifndef HEMI_BASE_LOCK_H
#define HEMI_BASE_LOCK_H

#include "base/atomic.h"
#include "base/platform.h"

/** Take it: 0 becomes 1. Yields while another thread has it. */
static inline void hemi_lock(const hemi_platform *platform, uint32_t *word) {
    uint32_t unlocked = 0;
    while (!hemi_cas32_acq_rel(word, &unlocked, 1)) {
        unlocked = 0;
        platform->yield(platform->ctx);
    }
}

/** Give it back. Pairs with the compare-and-swap in hemi_lock. */
static inline void hemi_unlock(uint32_t *word) {
    hemi_store32_release(word, 0);
}

#endif
