/*
 * Peers whose memory is not mapped: what a kernel wants done there is written as an order into a ring
 * in pinned host memory, and the peer's own host thread carries it out, in order.
 *
 * How this works. A group claims slots of the ring by one addition in its own rank's memory, waits
 * until those that had them before have been taken, stores its bytes into them, and releases `turn`
 * of the order, which lies in the first of them. The peer's thread acquires the orders whose turn it
 * is, copies the bytes of each into its window, then changes its signal, then releases `taken`.
 *
 *   word                written by                    order
 *   claimed             this rank's kernels, added    no more than that numbers are different
 *   order and bytes     who claimed the slot          after acquiring either taken >= claim - slots
 *   turn                the same                      release, after all bytes and fields
 *   taken               the peer's thread             release, after its loads and copies
 *   failed              the peer's thread             once, when it gives up
 *   looking             who takes it: 0 to 1, to 0    acquire; release, after the two that follow
 *   claims.taken        who has `looking`             release, after acquiring taken
 *   claims.failed       the same                      relaxed
 *
 * The ring lies across the bus, and where every group that waits looks at it all the time, they are in the way of the
 * very copies that they wait for (32 groups: 3 to 5 ms instead of 0.1). So one looks, for all, and the others look at
 * what it has seen, in device memory. Nobody waits for the one that looks: who finds `looking` taken looks at
 * claims.taken again, and takes it himself when it is free. It is held for two loads across the bus. What is stored
 * never falls: who takes `looking` acquires it from the one before, who has seen no later `taken`.
 *
 * Orders are carried out by their numbers, so what a group ordered first is done first, whoever else
 * claims in between. A claim by addition that is given up is never followed by another good one: its wait
 * for room ends badly only when the peer is gone, the world is revoked or closed, or the peer's thread has
 * failed, all of which stay. Where there is a time limit, that of a barrier or the window's
 * (hem_window_options.proxy_timeout_ns), slots are claimed by compare and swap instead, and only when all of
 * them are free: before that there is nothing to take back. Additions are fair, as a queue is, and so are
 * taken where there is no limit; with one, an order takes few slots, so that it does not wait for many to be
 * free at once while others take them one by one. The limit is that of each wait for room.
 */
#ifndef HEM_DEVICE_PROXY_H
#define HEM_DEVICE_PROXY_H

#include <hem/device/wait.h>

HEM_DEV hemd_claims *hemd_claims_of(hem_dev_window w, int peer) {
    return HEMD_FIXED64(hemd_claims *, w.peers[peer].claims);
}

/** Look at the ring for all that wait, unless somebody else does. */
HEM_DEV void hemd_ring_look(hem_dev_window w, int peer) {
    const hemd_ring *queue = HEMD_FIXED64(const hemd_ring *, w.peers[peer].ring);
    hemd_claims *claims = hemd_claims_of(w, peer);
    if (hemd_load64_relaxed(&claims->looking) != 0 ||
        hemd_compare_swap64(&claims->looking, 0, 1) != 0)
        return;
    const uint64_t taken = hemd_load64_relaxed(&queue->taken);
    if (taken != hemd_load64_relaxed(&claims->taken)) {
        hemd_acquire(&queue->taken, false);
        hemd_store64_release(&claims->taken, taken, true);
    } else {
        hemd_store64_relaxed(&claims->failed, hemd_load32_relaxed(&queue->failed));
    }
    hemd_store64_release(&claims->looking, 0, true);
}

/** Whether the orders in all slots below `least` have been carried out. `last`: who asks will not ask again, so it
 *  counts what there is and not what somebody has seen. */
HEM_DEV bool hemd_ring_is_past(hem_dev_window w, int peer, uint64_t least, bool last) {
    const hemd_ring *queue = HEMD_FIXED64(const hemd_ring *, w.peers[peer].ring);
    const hemd_claims *claims = hemd_claims_of(w, peer);
    if (last && (int64_t)(hemd_load64_relaxed(&queue->taken) - least) >= 0) {
        hemd_acquire(&queue->taken, false);
        return true;
    }
    if ((int64_t)(hemd_load64_relaxed(&claims->taken) - least) < 0) {
        hemd_ring_look(w, peer);
        if ((int64_t)(hemd_load64_relaxed(&claims->taken) - least) < 0)
            return false;
    }
    hemd_acquire(&claims->taken, true);
    return true;
}

/** After a look in vain for what the peer's thread has carried out. As hemd_patience_poll. */
HEM_DEV hem_status hemd_ring_poll(hemd_patience *patience, hem_dev_window w, int peer) {
    const hemd_ring *queue = HEMD_FIXED64(const hemd_ring *, w.peers[peer].ring);
    hem_status status =
        hemd_patience_poll(patience, w, peer, hemd_want_of(HEMD_WHAT_ROOM, peer, 0, HEM_GE, 0), 0);
    if (status == HEM_OK && patience->polls % HEMD_POLLS == 0 &&
        hemd_load64_relaxed(&hemd_claims_of(w, peer)->failed) != 0) {
        /* What it has carried out before counts: the last look comes after this. */
        status = (hem_status)(-(int32_t)hemd_load32_relaxed(&queue->failed));
        hemd_fence(false);
    }
    return status;
}

/** No time limit, as a time. */
#define HEMD_NEVER UINT64_MAX
/** Instead of a time limit: the window's, of calls that have none of their own. */
#define HEMD_PROXY_LIMIT INT64_MIN

/** The time at which a limit that begins now has passed. */
HEM_DEV uint64_t hemd_until(hem_dev_window w, int64_t timeout_ns) {
    if (timeout_ns == HEMD_PROXY_LIMIT)
        timeout_ns = HEMD_FIXED64(int64_t, w.home->proxy_limit_ns);
    return timeout_ns < 0 ? HEMD_NEVER : hemd_now_ns() + (uint64_t)timeout_ns;
}

/** How long it is until then. */
HEM_DEV hemd_patience hemd_patience_until(uint64_t until) {
    if (until == HEMD_NEVER)
        return hemd_patience_begin(-1);
    const uint64_t now = hemd_now_ns();
    return hemd_patience_begin(until > now ? (int64_t)(until - now) : 0);
}

/** Wait until the orders in all slots below `least` have been carried out, by one thread. */
HEM_DEV hem_status hemd_ring_await(hem_dev_window w, int peer, uint64_t least, uint64_t until) {
    hemd_patience patience = hemd_patience_until(until);
    hem_status status = HEM_OK;
    while (!hemd_ring_is_past(w, peer, least, status != HEM_OK)) {
        if (status != HEM_OK)
            return status;
        status = hemd_ring_poll(&patience, w, peer);
    }
    return HEM_OK;
}

/** Nobody needs to wait for who is gone. */
HEM_DEV hem_status hemd_unless_gone(hem_status status) {
    return status == HEM_ERR_PEER ? HEM_OK : status;
}

/** Wait until all that this rank's kernels have ordered of the host of `peer`, unless that is gone, has been carried
 *  out, by one thread. */
HEM_DEV hem_status hemd_ring_settle(hem_dev_window w, int peer, uint64_t until) {
    const uint64_t claimed = hemd_load64_relaxed(&hemd_claims_of(w, peer)->claimed);
    return hemd_unless_gone(hemd_ring_await(w, peer, claimed, until));
}

/** The same of all hosts, each thread of the group its share of them. */
HEM_DEV_SLOW hem_status hemd_settle_all(hem_dev_window w, hem_group g, uint64_t until) {
    hem_status status = HEM_OK;
    for (int rank = (int)g.rank; rank < w.size && status == HEM_OK; rank += (int)g.size)
        if (hemd_proxied(&w.peers[rank]))
            status = hemd_ring_settle(w, rank, until);
    return hemd_agree_all(g, status);
}

/** Take the next `count` slots of the ring if they are free, or become so before the time `until`, by one
 *  thread. */
HEM_DEV hem_status hemd_ring_claim(hem_dev_window w, int peer, uint32_t count, uint64_t until,
                                   uint64_t *first_p) {
    uint64_t *claimed = &hemd_claims_of(w, peer)->claimed;
    if (until == HEMD_NEVER) {
        *first_p = hemd_fetch_add64_near(claimed, count);
        return hemd_ring_await(w, peer, *first_p + count - HEMD_RING_SLOTS, until);
    }
    hemd_patience patience = hemd_patience_until(until);
    hem_status status = HEM_OK;
    for (;;) {
        const uint64_t first = hemd_load64_relaxed(claimed);
        if (hemd_ring_is_past(w, peer, first + count - HEMD_RING_SLOTS, status != HEM_OK)) {
            if (hemd_compare_swap64(claimed, first, first + count) != first)
                continue; /* another one has them */
            *first_p = first;
            return HEM_OK;
        }
        if (status != HEM_OK)
            return status;
        status = hemd_ring_poll(&patience, w, peer);
    }
}

/** Change a word of a peer after all that this thread has ordered before, by one thread. Where nothing is
 *  free by the time `until` nothing has been ordered: HEM_ERR_TIMEOUT. */
HEM_DEV_SLOW hem_status hemd_proxy_tell(hem_dev_window w, int peer, uint32_t what, uint32_t id,
                                        uint64_t value, uint64_t until) {
    uint64_t first = 0;
    hem_status status = hemd_ring_claim(w, peer, 1, until, &first);
    hemd_order order = {0, 0, 0, value, what, id, 1, {0, 0, 0, 0, 0}};
    if (status == HEM_OK)
        hemd_ring_post(HEMD_FIXED64(hemd_ring *, w.peers[peer].ring), first, &order);
    return status;
}

/** The same for one peer of several: `status` is how it went with those before. */
HEM_DEV hem_status hemd_proxy_also(hem_status status, hem_dev_window w, int peer, uint32_t what,
                                   uint32_t id, uint64_t value, uint64_t until) {
    hem_status here = hemd_proxy_tell(w, peer, what, id, value, until);
    return status == HEM_OK ? here : status;
}

/** Copy into the data of the slots from `slot` on, round the end. Kernels that never come here pay for
 *  it in registers: so there is one word under way. */
HEM_DEV void hemd_ring_fill(hem_group g, hemd_ring *queue, uint32_t slot, const unsigned char *src,
                            uint64_t n) {
    const uint32_t words = HEMD_RING_CHUNK / 8u;
    uint64_t *data = (uint64_t *)(void *)queue->data;
    HEMD_NO_UNROLL
    for (uint32_t i = g.rank; i < (uint32_t)((n + 7u) / 8u); i += g.size)
        data[(slot * words + i) % (HEMD_RING_SLOTS * words)] =
            hemd_word_get(src + 8u * (uint64_t)i, n - 8u * (uint64_t)i);
}

/**
 * Order `n` bytes to be put at `offset` of a peer, and then `what`. Returns when all threads of the
 * group may change `src`. At the window's limit parts of a long message may have been ordered, and `what` was
 * not. @return HEM_OK, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_CLOSED, HEM_ERR_TIMEOUT; how the peer's thread
 *         has failed; HEM_ERR_UNSUPPORTED if there is no such way either.
 */
HEM_DEV_SLOW hem_status hemd_proxy_put(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                                       const void *src, uint64_t n, uint32_t what, uint32_t id,
                                       uint64_t value) {
    hemd_ring *queue = HEMD_FIXED64(hemd_ring *, w.peers[peer].ring);
    const unsigned char *from = (const unsigned char *)src;
    const bool limited = HEMD_FIXED64(int64_t, w.home->proxy_limit_ns) >= 0;
    const uint64_t most =
        (uint64_t)(limited ? HEMD_RING_CLAIM_LIMITED : HEMD_RING_CLAIM) * HEMD_RING_CHUNK;
    if (!hemd_proxied(&w.peers[peer]))
        return HEM_ERR_UNSUPPORTED;
    hem_group_sync(g); /* claims that other threads of the group made before come first */
    for (bool last = n == 0 && what == HEMD_ORDER_NOTHING; !last;) {
        const uint64_t part = n < most ? n : most;
        const uint32_t count = part == 0 ? 1u : (uint32_t)((part - 1u) / HEMD_RING_CHUNK) + 1u;
        uint64_t first = 0;
        hem_status status = HEM_OK;
        if (g.rank == 0)
            status = hemd_ring_claim(w, peer, count, hemd_until(w, HEMD_PROXY_LIMIT), &first);
        status = hem_group_agree(g, status);
        if (status != HEM_OK)
            return status;
        uint32_t slot =
            hem_group_tell(g, (uint32_t)(first % HEMD_RING_SLOTS), part == 0 ? 0 : HEMD_RING_BITS);
        hemd_ring_fill(g, queue, slot, from, part);
        hem_group_sync(g);
        last = part == n;
        hemd_order order = {
            0,  offset, part,           value, last ? what : (uint32_t)HEMD_ORDER_NOTHING,
            id, count,  {0, 0, 0, 0, 0}};
        if (g.rank == 0)
            hemd_ring_post(queue, first, &order);
        from += part;
        offset += part;
        n -= part;
    }
    return HEM_OK;
}

/** The order that a signal is. */
HEM_DEV uint32_t hemd_order_of(int op) {
    return (op & HEM_SIGNAL_SET) != 0 ? (uint32_t)HEMD_ORDER_SET : (uint32_t)HEMD_ORDER_ADD;
}

/** Wait until all that this rank's kernels have ordered is done. As hemd_proxy_put. */
HEM_DEV_SLOW hem_status hemd_proxy_flush(hem_dev_window w, hem_group g, int peer) {
    hem_status status = HEM_OK;
    if (!hemd_proxied(&w.peers[peer]))
        return HEM_ERR_UNSUPPORTED;
    hem_group_sync(g);
    if (g.rank == 0) {
        const uint64_t claimed = hemd_load64_relaxed(&hemd_claims_of(w, peer)->claimed);
        status = hemd_ring_await(w, peer, claimed, hemd_until(w, HEMD_PROXY_LIMIT));
    }
    return hem_group_agree(g, status);
}

#endif
