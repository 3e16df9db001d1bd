/* The short way: whole messages of one slot, without a letter and without queueing. */
#ifndef HEMI_CHANNEL_DIRECT_H
#define HEMI_CHANNEL_DIRECT_H

#include "channel/lane.h"

/** The rest of hemi_direct_send and hemi_direct_take: messages of one chunk. */
bool hemi_direct_send_chunk(hemi_lane *lane, const void *data, size_t bytes);
bool hemi_direct_take_chunk(hemi_lane *lane, void *data, size_t room, size_t *bytes_p);

static inline bool hemi_direct_has_slot(hemi_tx *tx) {
    if (__builtin_expect(hemi_tx_has_slot(tx), 1))
        return true;
    /* Nonsense is left for the long way to find. */
    return hemi_tx_reload(tx) && hemi_tx_has_slot(tx);
}

/** Send at once if nothing is in the way. False: a letter is needed. Under the lock. */
static inline bool hemi_direct_send(hemi_lane *lane, const void *data, size_t bytes) {
    hemi_sending *tx = &lane->tx;
    if (!lane->open || tx->queue.head != NULL || tx->due != 0 || tx->broken ||
        hemi_load32_acquire(lane->closed) != 0 || !hemi_direct_has_slot(&tx->cursor))
        return false;
    if (__builtin_expect(bytes > HEMI_SLOT_BYTES, 0))
        return hemi_direct_send_chunk(lane, data, bytes);
    hemi_tx_inline(&tx->cursor, data, bytes);
    return true;
}

/** Claim the receiving direction for the calling thread, if it is free. Under the lock. */
static inline bool hemi_direct_claim(hemi_lane *lane) {
    if (lane->rx.queue.head != NULL || lane->rx.phase != HEMI_RX_IDLE || lane->rx.broken ||
        hemi_load32_acquire(&lane->rx.busy) != 0 || hemi_lane_open(lane) != HEM_OK)
        return false;
    hemi_store32_relaxed(&lane->rx.busy, 1);
    return true;
}

/** Give a claimed lane back. */
static inline void hemi_direct_release(hemi_lane *lane) {
    /* Pairs with the acquire in hemi_recv_step. Whoever queued up meanwhile may sleep. */
    hemi_store32_release(&lane->rx.busy, 0);
    hemi_wake(lane->world->root, lane->world->root->me);
}

/** Take the next slot, which is there, if it is a whole message and fits. The lane is claimed. */
static inline bool hemi_direct_take(hemi_lane *lane, void *data, size_t room, size_t *bytes_p) {
    hemi_rx *rx = &lane->rx.cursor;
    const hemi_slot *slot = hemi_rx_slot(rx);
    uint32_t length = hemi_load32_relaxed(&slot->length);
    if (hemi_load32_relaxed(&slot->kind) != (HEMI_SLOT_MESSAGE | HEMI_SLOT_LANES))
        return hemi_direct_take_chunk(lane, data, room, bytes_p);
    if (length > HEMI_SLOT_BYTES || length > room || hemi_load64_relaxed(&slot->bytes) != length)
        return false;
    hemi_copy_line(data, slot->payload, length);
    hemi_rx_credit(rx);
    *bytes_p = length;
    return true;
}

/**
 * Wait until the next slot is there, while everything else goes on. The lane is claimed.
 * @return as hemi_wait.
 */
hem_status hemi_direct_wait(hemi_lane *lane, uint32_t call, int64_t timeout_ns);

#endif
