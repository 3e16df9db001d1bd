/*
 * Windows from inside of kernels: put, get, signal, wait. Barriers are in barrier.h.
 *
 * A hem_dev_window comes from hem_window_device (hem/cuda.h) and is passed to kernels by value. The
 * calls are those of hem/window.h, with the same meaning, made by a group of threads: all threads
 * of it make the call with the same arguments and get the same status. Different groups may call at
 * the same time; on one signal of one peer many may ADD, but only one may SET.
 *
 * What orders what. Bytes that a group puts are seen by who sees a later strong signal of the same
 * group; those of other groups or blocks only if they were synchronised with this one before (by
 * __syncthreads, a cooperative grid's sync, an earlier launch on the stream). When a wait has ended,
 * all threads of the group see what came with the signal, by plain loads.
 *
 * A group that fills its source itself calls hem_group_sync before it puts: any thread may copy what
 * another one wrote.
 *
 * Waits take nanoseconds or HEM_FOREVER; 0 looks once. They end with HEM_ERR_PEER, HEM_ERR_REVOKED
 * or HEM_ERR_CLOSED when the host says so, unless what they wait for is there. Who has waited in
 * vain must not go on as if it had not. HEM_ERR_UNSUPPORTED: kernels here cannot reach that peer.
 *
 * A peer whose memory is not mapped is reached through its host (proxy.h): by puts, signals, flushes
 * and barriers, with the same order. They may wait for room then, until the peer's host has taken
 * what came before, and end as waits do, at hem_window_options.proxy_timeout_ns where they have no time
 * limit of their own: a put that ends so may have put a part, and has not changed its signal. Gets, atomics,
 * stamped puts and addresses of such a peer there are not.
 *
 * HEM_ERR_RANGE and HEM_ERR_ARG are found where HEM_DEV_CHECK is defined before this is included;
 * elsewhere a bad rank, id or offset is as bad as a bad pointer. Nobody reads sentences here.
 */
#ifndef HEM_DEVICE_WINDOW_H
#define HEM_DEVICE_WINDOW_H

#include <hem/device/copy.h>
#include <hem/device/group.h>
#include <hem/device/proxy.h>
#include <hem/device/reach.h>
#include <hem/device/wait.h>

/* Addresses: for kernels that load and store by themselves. */

/**
 * Where byte `offset` of `peer`'s memory is for this kernel, or NULL if it is not mapped.
 *
 * Loads and stores through it are ordered by signals, waits and barriers as puts are. By any thread.
 */
HEM_DEV void *hem_dev_address(hem_dev_window w, int peer, uint64_t offset) {
    return hemd_check_data(w, peer, offset, 0) == HEM_OK ? hemd_data(&w.peers[peer], offset) : NULL;
}

/**
 * What `local`, an address in this rank's window memory, is in `peer`'s at the same offset. NULL if
 * it is outside of either or not mapped. By any thread.
 */
HEM_DEV void *hem_dev_translate(hem_dev_window w, const void *local, int peer) {
    const hemd_peer *own = &w.peers[w.rank];
    uint64_t offset = (uint64_t)((uintptr_t)local - (uintptr_t)hemd_data(own, 0));
    if (!hemd_peer_exists(w, peer) || offset >= HEMD_FIXED64(uint64_t, own->bytes) ||
        offset >= HEMD_FIXED64(uint64_t, w.peers[peer].bytes))
        return NULL;
    return hem_dev_address(w, peer, offset);
}

/** What the host has raised: HEM_OK, or how waits for anybody would end. By any thread. */
HEM_DEV hem_status hem_dev_trouble(hem_dev_window w) {
    return hemd_trouble_of(w, HEMD_ANYBODY);
}

/* Data. */

/**
 * Put `n` bytes at `offset` of `peer`'s window.
 *
 * Returns when all threads of the group may change `src`. Any alignment; 16 is best. The bytes are
 * visible to `peer` when it sees a later strong signal or barrier of this group, and to everybody
 * after hem_dev_flush. One barrier of the group; hem_dev_put_signal has none more, and hemd_copy to
 * hem_dev_address has none.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED; through a proxy as a wait for `peer`.
 */
HEM_DEV hem_status hem_dev_put(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                               const void *src, uint64_t n) {
    hem_status status = hemd_check_place(w, peer, offset, n);
    if (status != HEM_OK)
        return status;
    if (!hemd_reached(&w.peers[peer]))
        return hemd_proxy_put(w, g, peer, offset, src, n, HEMD_ORDER_NOTHING, 0, 0);
    hemd_copy(g, hemd_data(&w.peers[peer], offset), src, n);
    hem_group_sync(g);
    return HEM_OK;
}

/**
 * Get `n` bytes from `offset` of `peer`'s window. Returns when they are in `dst` and all threads of
 * the group see them. Sees every earlier put of this group to the same place. As hem_dev_put.
 */
HEM_DEV hem_status hem_dev_get(hem_dev_window w, hem_group g, int peer, uint64_t offset, void *dst,
                               uint64_t n) {
    hem_status status = hemd_check_data(w, peer, offset, n);
    if (status != HEM_OK)
        return status;
    hemd_copy(g, dst, hemd_data(&w.peers[peer], offset), n);
    hem_group_sync(g);
    return HEM_OK;
}

/**
 * Make everything that this group has put to `peer` visible to every rank; returns when it is.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED; through a proxy as a wait for `peer`.
 */
HEM_DEV hem_status hem_dev_flush(hem_dev_window w, hem_group g, int peer) {
    hem_status status = hemd_check_place(w, peer, 0, 0);
    if (status != HEM_OK)
        return status;
    if (!hemd_reached(&w.peers[peer]))
        return hemd_proxy_flush(w, g, peer);
    hem_group_sync(g);
    if (g.rank == 0)
        hemd_fence(false);
    hem_group_sync(g);
    return HEM_OK;
}

/**
 * Put the 64-bit `value` at `offset`, a multiple of 8, in one piece. By one thread. As hem_dev_put.
 * @return also HEM_ERR_ARG if it is misaligned.
 */
HEM_DEV hem_status hem_dev_put_value(hem_dev_window w, int peer, uint64_t offset, uint64_t value) {
    hem_status status = hemd_check_aligned(offset);
    if (status == HEM_OK)
        status = hemd_check_place(w, peer, offset, 8);
    if (status != HEM_OK)
        return status;
    if (!hemd_reached(&w.peers[peer]))
        return hemd_proxy_put(w, hem_thread(), peer, offset, &value, 8, HEMD_ORDER_NOTHING, 0, 0);
    hemd_store64_relaxed((uint64_t *)(void *)hemd_data(&w.peers[peer], offset), value);
    return HEM_OK;
}

/**
 * Add to a 64-bit word of `peer`'s window, atomically for the kernels of all ranks. `offset` is a
 * multiple of 8. Acquires and releases. `old_p` may be NULL. By one thread.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_ARG, HEM_ERR_UNSUPPORTED.
 */
HEM_DEV hem_status hem_dev_fetch_add(hem_dev_window w, int peer, uint64_t offset, uint64_t add,
                                     uint64_t *old_p) {
    hem_status status = hemd_check_word(w, peer, offset);
    if (status != HEM_OK)
        return status;
    uint64_t old = hemd_fetch_add64((uint64_t *)(void *)hemd_data(&w.peers[peer], offset), add);
    if (old_p != NULL)
        *old_p = old;
    return HEM_OK;
}

/** Store `desired` if the word is `expected`; `old_p` gets what was there. As hem_dev_fetch_add. */
HEM_DEV hem_status hem_dev_compare_swap(hem_dev_window w, int peer, uint64_t offset,
                                        uint64_t expected, uint64_t desired, uint64_t *old_p) {
    hem_status status = hemd_check_word(w, peer, offset);
    if (status != HEM_OK)
        return status;
    uint64_t old = hemd_compare_swap64((uint64_t *)(void *)hemd_data(&w.peers[peer], offset),
                                       expected, desired);
    if (old_p != NULL)
        *old_p = old;
    return HEM_OK;
}

/* Signals: a slot per (peer, id). Ids below hem_window_options.device_signals are for kernels to
 * wait for, the others for CPUs; kernels and CPUs may signal both. */

/**
 * Set this rank's slot `id` at `peer`, or add to it: `op` as in hem/window.h.
 *
 * Publishes what this group put before, to whomever. With HEM_SIGNAL_WEAK it publishes nothing, and
 * is one store of one thread: no fence and no barrier. What the CPU of this rank signals on the same
 * id is kept apart and added up by the wait: SET sets the part of the kernels. Does not wait, but for
 * room through a proxy.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_ARG, HEM_ERR_UNSUPPORTED; through a proxy as a wait for `peer`.
 */
HEM_DEV hem_status hem_dev_signal(hem_dev_window w, hem_group g, int peer, uint32_t id, int op,
                                  uint64_t value) {
    hem_status status = hemd_check_signal(w, peer, id, op);
    if (status != HEM_OK)
        return status;
    uint64_t *word = hemd_out(w, &w.peers[peer], id);
    if (word == NULL)
        return hemd_proxy_put(w, g, peer, 0, NULL, 0, hemd_order_of(op), id, value);
    bool weak = (op & HEM_SIGNAL_WEAK) != 0;
    if (!weak)
        hem_group_sync(g);
    if (g.rank == 0 && weak)
        hemd_change(word, op, value, hemd_out_host(w, id));
    else if (g.rank == 0)
        hemd_change_release(word, op, value, hemd_out_near(w, &w.peers[peer], id),
                            hemd_out_host(w, id));
    return HEM_OK;
}

/** Whether kernels here lack a way to a rank that this thread of the group looks after. */
HEM_DEV bool hemd_lacks(hem_dev_window w, hem_group g) {
    bool lacks = false;
    for (uint32_t rank = g.rank; rank < (uint32_t)w.size; rank += g.size)
        lacks = lacks || HEMD_FIXED32(w.peers[rank].route) == HEMD_ROUTE_NONE;
    return lacks;
}

/** Whether no thread of the group looks after more than one other rank: then it releases each word by
 *  itself, and otherwise once for all of them. */
HEM_DEV bool hemd_one_each(hem_dev_window w, hem_group g) {
    return g.size >= (uint32_t)w.size || w.size <= 2;
}

/**
 * hem_dev_signal to every rank but this one; the threads of the group share them. Where one of them
 * cannot be reached, none is signalled. After an error of a wait for room, through a proxy, some have been.
 */
HEM_DEV hem_status hem_dev_signal_all(hem_dev_window w, hem_group g, uint32_t id, int op,
                                      uint64_t value) {
    if (!hemd_signal_exists(w, id))
        return HEM_ERR_RANGE;
    hem_status status = hemd_check_op(op);
    if (status != HEM_OK)
        return status;
    if (hem_group_any(g, hemd_lacks(w, g)))
        return HEM_ERR_UNSUPPORTED;
    const bool weak = (op & HEM_SIGNAL_WEAK) != 0, one = hemd_one_each(w, g);
    uint64_t until = 0;
    if (!weak && !one)
        hemd_fence(false);
    for (uint32_t rank = g.rank; rank < (uint32_t)w.size; rank += g.size) {
        uint64_t *word = hemd_out(w, &w.peers[rank], id);
        if ((int)rank == w.rank)
            continue;
        if (word == NULL) {
            until = until == 0 ? hemd_until(w, HEMD_PROXY_LIMIT) : until;
            status = hemd_proxy_also(status, w, (int)rank, hemd_order_of(op), id, value, until);
        } else if (weak || !one) {
            hemd_change(word, op, value, hemd_out_host(w, id));
        } else {
            hemd_change_release(word, op, value, hemd_out_near(w, &w.peers[rank], id),
                                hemd_out_host(w, id));
        }
    }
    return HEMD_FIXED32(w.home->proxied) == 0 ? HEM_OK : hemd_agree_all(g, status);
}

/**
 * Put `n` bytes at `offset` of `peer`'s window, then change signal `id` there.
 *
 * Returns when all threads of the group may change `src`. Whoever sees the signal sees the bytes, and
 * all that this group put before, weak or not. One barrier of the group and one release.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_ARG, HEM_ERR_UNSUPPORTED; through a proxy as a wait for `peer`.
 */
HEM_DEV hem_status hem_dev_put_signal_op(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                                         const void *src, uint64_t n, uint32_t id, int op,
                                         uint64_t value) {
    hem_status status = hemd_check_place(w, peer, offset, n);
    if (status == HEM_OK)
        status = hemd_check_signal(w, peer, id, op);
    if (status != HEM_OK)
        return status;
    if (!hemd_reached(&w.peers[peer]))
        return hemd_proxy_put(w, g, peer, offset, src, n, hemd_order_of(op), id, value);
    uint64_t *word = hemd_out(w, &w.peers[peer], id);
    bool near = hemd_out_near(w, &w.peers[peer], id);
    hemd_copy(g, hemd_data(&w.peers[peer], offset), src, n);
    hem_group_sync(g);
    if (g.rank == 0)
        hemd_change_release(word, op, value, near, hemd_out_host(w, id));
    return HEM_OK;
}

/** hem_dev_put_signal_op that adds. */
HEM_DEV hem_status hem_dev_put_signal(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                                      const void *src, uint64_t n, uint32_t id, uint64_t value) {
    return hem_dev_put_signal_op(w, g, peer, offset, src, n, id, HEM_SIGNAL_ADD, value);
}

HEM_DEV hem_status hemd_wait_from(hem_dev_window w, hem_group g, int peer, uint32_t id,
                                  hem_compare compare, uint64_t value, int64_t timeout_ns,
                                  bool weak) {
    if (!hemd_peer_exists(w, peer))
        return HEM_ERR_RANGE;
    hem_status status = hemd_check_look(w, id);
    if (status == HEM_OK)
        status = hemd_check_want(compare, timeout_ns);
    if (status == HEM_OK && HEMD_FIXED32(w.peers[peer].route) == HEMD_ROUTE_NONE)
        status = HEM_ERR_UNSUPPORTED;
    if (status != HEM_OK)
        return status;
    if (g.rank == 0)
        status = hemd_wait_slot(w, peer, id, compare, value, timeout_ns, weak);
    return hem_group_agree(g, status);
}

/**
 * Wait until the slot `id` of `peer` here compares to `value`.
 *
 * All threads of the group see what came with it.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER if `peer` is dead or has left, HEM_ERR_REVOKED,
 *         HEM_ERR_CLOSED, HEM_ERR_RANGE, HEM_ERR_ARG; HEM_ERR_UNSUPPORTED also for an id that CPUs
 *         wait for.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_wait_signal_from(hem_dev_window w, hem_group g, int peer,
                                                           uint32_t id, hem_compare compare,
                                                           uint64_t value, int64_t timeout_ns) {
    return hemd_wait_from(w, g, peer, id, compare, value, timeout_ns, false);
}

/**
 * The same for a signal that says all by itself: what else its sender stored need not be seen yet.
 * With HEM_SIGNAL_WEAK on the other side, one store and polling.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_wait_signal_weak(hem_dev_window w, hem_group g, int peer,
                                                           uint32_t id, hem_compare compare,
                                                           uint64_t value, int64_t timeout_ns) {
    return hemd_wait_from(w, g, peer, id, compare, value, timeout_ns, true);
}

/**
 * Wait until the sum of all ranks' slots `id`, one's own included, compares to `value`.
 *
 * HEM_ERR_PEER if any rank is dead or has left. Otherwise as hem_dev_wait_signal_from.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_wait_signal(hem_dev_window w, hem_group g, uint32_t id,
                                                      hem_compare compare, uint64_t value,
                                                      int64_t timeout_ns) {
    hem_status status = hemd_check_look(w, id);
    if (status == HEM_OK)
        status = hemd_check_want(compare, timeout_ns);
    if (status != HEM_OK)
        return status;
    if (g.rank == 0)
        status = hemd_wait_sum(w, id, compare, value, timeout_ns);
    return hem_group_agree(g, status);
}

/** Read the slot of one peer. What came with the value is visible to this thread. By one thread. */
HEM_DEV hem_status hem_dev_read_signal_from(hem_dev_window w, int peer, uint32_t id,
                                            uint64_t *value_p) {
    if (!hemd_peer_exists(w, peer))
        return HEM_ERR_RANGE;
    hem_status status = hemd_check_look(w, id);
    if (status != HEM_OK)
        return status;
    if (HEMD_FIXED32(w.peers[peer].route) == HEMD_ROUTE_NONE)
        return HEM_ERR_UNSUPPORTED;
    const hemd_slot *slot = hemd_in(&w.peers[peer], id);
    hemd_slot seen = hemd_slot_load(slot);
    hemd_slot_acquire(slot, seen, hemd_near(&w.peers[peer]));
    *value_p = seen.kernel + seen.cpu;
    return HEM_OK;
}

/** Read the sum of all slots. As hem_dev_read_signal_from. */
HEM_DEV hem_status hem_dev_read_signal(hem_dev_window w, uint32_t id, uint64_t *value_p) {
    hem_status status = hemd_check_look(w, id);
    if (status != HEM_OK)
        return status;
    bool near = true;
    *value_p = hemd_sum_slots(w, id, &near);
    hemd_slots_acquire(w, id, near);
    return HEM_OK;
}

/* Counters of this rank's kernels: local completion. The CPU's are others. */

/**
 * Put, and add 1 to local counter `counter` when `src` may be changed by whoever sees that.
 *
 * Returns when this group may change it. For other groups of this rank that wait to fill `src` again.
 * @return as hem_dev_put; HEM_ERR_RANGE for a bad counter.
 */
HEM_DEV hem_status hem_dev_put_start(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                                     const void *src, uint64_t n, uint32_t counter) {
    if (!hemd_counter_exists(w, counter))
        return HEM_ERR_RANGE;
    hem_status status = hem_dev_put(w, g, peer, offset, src, n);
    if (status == HEM_OK && g.rank == 0)
        hemd_add64_release(HEMD_FIXED64(uint64_t *, w.home->counters) + counter, 1, true);
    return status;
}

/** Read a counter. By one thread. @return HEM_OK, HEM_ERR_RANGE. */
HEM_DEV hem_status hem_dev_read_counter(hem_dev_window w, uint32_t counter, uint64_t *value_p) {
    if (!hemd_counter_exists(w, counter))
        return HEM_ERR_RANGE;
    const uint64_t *word = HEMD_FIXED64(uint64_t *, w.home->counters) + counter;
    uint64_t value = hemd_load64_relaxed(word);
    hemd_acquire(word, true);
    *value_p = value;
    return HEM_OK;
}

/**
 * Wait until a counter is at least `value`; counters only grow.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_REVOKED, HEM_ERR_CLOSED, HEM_ERR_RANGE, HEM_ERR_ARG.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_wait_counter(hem_dev_window w, hem_group g,
                                                       uint32_t counter, uint64_t value,
                                                       int64_t timeout_ns) {
    if (!hemd_counter_exists(w, counter))
        return HEM_ERR_RANGE;
    hem_status status = hemd_check_want(HEM_GE, timeout_ns);
    if (status != HEM_OK)
        return status;
    if (g.rank == 0) {
        const uint64_t *word = HEMD_FIXED64(uint64_t *, w.home->counters) + counter;
        hemd_patience patience = hemd_patience_begin(timeout_ns);
        status = hemd_wait_least(
            w, HEMD_NOBODY, word,
            hemd_want_of(HEMD_WHAT_COUNTER, HEMD_ANYBODY, counter, HEM_GE, value), true, &patience);
    }
    return hem_group_agree(g, status);
}

#endif
