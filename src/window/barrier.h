/* What barriers of all ranks and of two share. */
#ifndef HEMI_WINDOW_BARRIER_H
#define HEMI_WINDOW_BARRIER_H

#include "window/device.h"
#include "window/mixed.h"

/** Whether barrier `id` can be used. @return HEM_OK, HEM_ERR_CLOSED, HEM_ERR_RANGE, HEM_ERR_REVOKED. */
hem_status hemi_barrier_check(hem_window *window, uint32_t id, const char *call);

/** HEM_ERR_ARG: a wait for a barrier that was not entered. */
hem_status hemi_barrier_fail(uint32_t id, const char *call);

/** Kernels ring no doorbell. */
static inline int64_t hemi_barrier_nap(const hem_window *window, uint32_t id) {
    return hemi_is_mixed(window, id) ? HEMI_DEVICE_NAP_NS : 0;
}

/** Write an epoch into a peer's memory and wake it. */
static inline void hemi_barrier_tell(hem_window *window, hemi_peer *peer, hemi_arrival *arrival,
                                     uint64_t epoch) {
    if (__builtin_expect(hemi_load64_relaxed(&peer->sent_inline) != 0, 0))
        hemi_store64_release(&arrival->look, hemi_peer_unsettled(peer, UINT32_MAX));
    /* Pairs with the acquire in hemi_barrier_heard. */
    hemi_store64_release(&arrival->epoch, epoch);
    hemi_wake(window->root, peer->block);
}

static inline bool hemi_barrier_heard(const hemi_arrival *arrival, uint64_t epoch) {
    return hemi_load64_acquire(&arrival->epoch) >= epoch;
}

#endif
