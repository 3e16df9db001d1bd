/*
 * Reaching a rank through its host: for ranks whose device memory is not mapped here.
 *
 * Who cannot map a peer's memory gives it orders instead, in rings of its own: one that its kernels
 * fill (hem/device/proxy.h) and one that its CPU does. All rings of a rank in a window lie in one piece
 * of its pinned memory, behind a table that says which pair of rings is whose. A peer that finds itself in that
 * table carries the orders out, by the thread that does the rank's chores (device/chores.c).
 *
 *   table         by its owner, before the step of agreement that tells where it is
 *   orders, turn  by the owner's kernels, or its CPU under the lock of the peer's reach
 *   taken, failed by the peer's thread alone
 *
 * Signals that come this way change the words that a kernel of the owner, or its CPU, would change by
 * itself if it could, and nobody else changes those: the thread keeps the sums.
 */
#ifndef HEMI_WINDOW_PROXY_H
#define HEMI_WINDOW_PROXY_H

#include "window/device.h"

/** Rings to one peer. */
enum hemi_proxy_lane {
    HEMI_PROXY_KERNELS = 0,
    HEMI_PROXY_CPU,
    HEMI_PROXY_LANES
};

/** Orders of one rank that this one carries out. */
typedef struct hemi_proxy_in {
    uint32_t rank;
    hemd_ring *rings; /**< by lane; that rank's memory */
    uint64_t next[HEMI_PROXY_LANES];
    bool failed[HEMI_PROXY_LANES];
    bool sent;                          /**< something that was not waited for yet */
    uint64_t *values[HEMI_PROXY_LANES]; /**< what its signals are by now, by id */
} hemi_proxy_in;

/** All that this rank carries out for one window. */
typedef struct hemi_proxy {
    hemi_chore chore;
    hem_window *window;
    uint32_t count;
    hemi_proxy_in in[];
} hemi_proxy;

/** Make rings to all peers that are to be reached this way. Set-up. */
hem_status hemi_proxy_allocate(hem_window *window);

/** A rank has said where its rings are; it is checked. */
hem_status hemi_proxy_hear(hem_window *window, uint32_t rank, const hemi_pinned *rings);

/** From now on carry out what was heard of. Set-up. */
hem_status hemi_proxy_serve(hem_window *window);

/** Not any more. Unless `closed`, all that was ordered is done first. May be called again. */
void hemi_proxy_end(hem_window *window, bool closed);

/** Take the orders that are there, from each ring. @return whether there was any. proxy_serve.c */
bool hemi_proxy_work(hemi_chore *chore);

/* The CPU's orders: proxy_post.c. Done when they return. */

/** @return HEM_OK, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_TIMEOUT, HEM_ERR_SYSTEM. */
hem_status hemi_proxy_put(hemi_device_reach *reach, uint64_t offset, const void *src, size_t n);

/** Set this CPU's word of signal `id`, one that kernels wait for. As hemi_proxy_put. */
hem_status hemi_proxy_signal(hemi_device_reach *reach, uint32_t id, uint64_t value);

/** Set this CPU's word of an arrival, numbered as for HEMD_ORDER_ARRIVE, at a mixed barrier. As
 *  hemi_proxy_put. */
hem_status hemi_proxy_arrive(hemi_device_reach *reach, uint32_t id, uint64_t epoch);

#endif
