/*
 * Mixed barriers, which a rank enters each time by its CPU or by a kernel, and which either may leave.
 *
 * How this works. An entry is a number, the epoch, that a rank counts over all of its entries into an id, whoever
 * made them. Its CPU and its kernels write it into places of their own, since each word has one writer, and
 * who looks takes the later of the two. It does not know who will wait, so it writes where kernels look, in
 * device memory, and where CPUs look, in host memory:
 *
 *   at the target        in device memory           in host memory
 *   by kernels           slot.kernel                slot.kernel of the pinned block
 *   by the CPU           slot.cpu, by a copy        the arrival in the control block, with a wake
 *
 * A rank finds its own epoch at home in the same two places: it tells itself, too, of barriers of all, and of those
 * with one peer in slots beside that peer's. So the next entry counts on from the last one, whoever made it,
 * provided that the caller orders his rank's entries and waits of an id: a stream that he waits for, a
 * signal.
 *
 * Who sees a later epoch in one lane takes it for all earlier ones, also for those of the other lane, with all that
 * was put before them. So what a kernel has put must be in place before its entry is told to anybody. What is
 * stored is: a fence comes before. Orders to a peer's host are not: they wait in a ring, and those of the CPU in
 * another one. So an entry by a kernel begins with a wait until all that was ordered has been carried out, as the
 * CPU's orders always are. The order that tells the entry may be late: a later epoch stands for it. Who has
 * not been told in time is told by the wait that takes the entry up, and only who made the entry knows: so that
 * one goes on with it after an error.
 */
#ifndef HEM_DEVICE_MIXED_H
#define HEM_DEVICE_MIXED_H

#include <hem/device/proxy.h>

HEM_DEV bool hemd_is_mixed(hem_dev_window w, uint32_t id) {
    return id < w.mixed_barriers;
}

/** Which of the slots behind those of signals. */
HEM_DEV uint32_t hemd_mixed_at(hem_dev_window w, enum hemd_mixed kind, uint32_t id) {
    return (uint32_t)kind * w.mixed_barriers + id;
}

HEM_DEV uint64_t hemd_mixed_later(uint64_t one, uint64_t other) {
    return (int64_t)(one - other) >= 0 ? one : other;
}

HEM_DEV const hemd_slot *hemd_mixed_in(hem_dev_window w, int rank, enum hemd_mixed kind,
                                       uint32_t id) {
    return hemd_in(&w.peers[rank], w.device_signals + hemd_mixed_at(w, kind, id));
}

/** This rank's entries so far: by kernels that came before, and by its CPU. */
HEM_DEV uint64_t hemd_mixed_own(hem_dev_window w, int rank, enum hemd_mixed kind, uint32_t id) {
    const hemd_slot seen = hemd_slot_load(hemd_mixed_in(w, rank, kind, id));
    return hemd_mixed_later(seen.kernel, seen.cpu);
}

/** Whether the last entry is the CPU's. Then all have been told: its call has ended well. */
HEM_DEV bool hemd_mixed_is_cpus(hem_dev_window w, int rank, enum hemd_mixed kind, uint32_t id) {
    const hemd_slot seen = hemd_slot_load(hemd_mixed_in(w, rank, kind, id));
    return (int64_t)(seen.cpu - seen.kernel) > 0;
}

/** Write an epoch into slot `at` of a row in device memory and of the same row in host memory, after a fence. */
HEM_DEV void hemd_mixed_store(hem_dev_window w, const hemd_slot *row, const hemd_slot *host,
                              uint32_t at, uint64_t epoch) {
    const uint32_t host_at = HEMD_FIXED32(w.home->signals) - w.device_signals + at;
    hemd_store64_relaxed((uint64_t *)(uintptr_t)&row[w.device_signals + at].kernel, epoch);
    hemd_store64_relaxed((uint64_t *)(uintptr_t)&host[host_at].kernel, epoch);
}

/** Tell `rank`, which is mapped, or this one. */
HEM_DEV void hemd_mixed_tell(hem_dev_window w, int rank, enum hemd_mixed kind, uint32_t id,
                             uint64_t epoch) {
    const hemd_peer *peer = &w.peers[rank];
    hemd_mixed_store(w, HEMD_FIXED64(const hemd_slot *, peer->out),
                     HEMD_FIXED64(const hemd_slot *, peer->out_host), hemd_mixed_at(w, kind, id),
                     epoch);
}

/** Tell `rank`, which is reached through its host. Nobody needs to be told who is gone, and whether it had come is the
 *  wait's to find out. As hemd_proxy_tell. */
HEM_DEV hem_status hemd_mixed_order(hem_dev_window w, int rank, enum hemd_mixed kind, uint32_t id,
                                    uint64_t epoch, uint64_t until) {
    const uint32_t at = 2u * HEMD_FIXED32(w.home->barriers) + hemd_mixed_at(w, kind, id);
    return hemd_unless_gone(hemd_proxy_tell(w, rank, HEMD_ORDER_ARRIVE, at, epoch, until));
}

/** Tell all ranks of an entry, this one, too, each thread of the group its share of them; where that goes wrong this
 *  one at least, which counts it. After a barrier of the group. */
HEM_DEV_SLOW hem_status hemd_mixed_tell_all(hem_dev_window w, hem_group g, uint32_t id,
                                            uint64_t epoch, bool proxied, int64_t timeout_ns) {
    const uint64_t until = proxied ? hemd_until(w, timeout_ns) : HEMD_NEVER;
    hem_status status = proxied ? hemd_settle_all(w, g, until) : HEM_OK;
    hemd_fence(false);
    for (int rank = (int)g.rank; rank < w.size; rank += (int)g.size)
        if (rank == w.rank || (status == HEM_OK && !hemd_proxied(&w.peers[rank])))
            hemd_mixed_tell(w, rank, HEMD_MIXED_ALL, id, epoch);
    for (int rank = (int)g.rank; rank < w.size && status == HEM_OK; rank += (int)g.size)
        if (hemd_proxied(&w.peers[rank]))
            status = hemd_mixed_order(w, rank, HEMD_MIXED_ALL, id, epoch, until);
    return status;
}

/** Wait for `peer`, or HEMD_ANYBODY, until `rank` has entered as often as `want` says, by one thread. */
HEM_DEV hem_status hemd_mixed_wait(hem_dev_window w, int peer, int rank, enum hemd_mixed kind,
                                   hemd_want want, hemd_patience *patience) {
    const hemd_slot *slot = hemd_mixed_in(w, rank, kind, want.id);
    hem_status status = HEM_OK;
    for (;;) {
        const hemd_slot seen = hemd_slot_load(slot);
        const uint64_t epoch = hemd_mixed_later(seen.kernel, seen.cpu);
        if ((int64_t)(epoch - want.wanted) >= 0) {
            hemd_slot_acquire(slot, seen, hemd_near(&w.peers[rank]));
            return HEM_OK;
        }
        if (status != HEM_OK)
            return status;
        status = hemd_patience_poll(patience, w, peer, want, epoch);
    }
}

/** Tell `peer` of an entry into a barrier with it, by one thread, after a fence. */
HEM_DEV_SLOW hem_status hemd_mixed_tell_peer(hem_dev_window w, int peer, uint32_t id,
                                             uint64_t epoch, int64_t timeout_ns) {
    if (!hemd_proxied(&w.peers[peer])) {
        hemd_mixed_tell(w, peer, HEMD_MIXED_PAIR, id, epoch);
        return HEM_OK;
    }
    const uint64_t until = hemd_until(w, timeout_ns);
    hem_status status = hemd_ring_settle(w, peer, until);
    return status == HEM_OK ? hemd_mixed_order(w, peer, HEMD_MIXED_PAIR, id, epoch, until) : status;
}

/** Count an entry into a barrier with `peer` and tell it, by one thread. */
HEM_DEV_SLOW hem_status hemd_mixed_enter_peer(hem_dev_window w, int peer, uint32_t id,
                                              int64_t timeout_ns, uint64_t *epoch_p) {
    const hemd_peer *other = &w.peers[peer];
    const uint64_t epoch = hemd_mixed_own(w, peer, HEMD_MIXED_OWN, id) + 1u;
    hemd_fence(false);
    hemd_mixed_store(w, HEMD_FIXED64(const hemd_slot *, other->in),
                     HEMD_FIXED64(const hemd_slot *, other->in_host),
                     hemd_mixed_at(w, HEMD_MIXED_OWN, id), epoch);
    *epoch_p = epoch;
    return peer == w.rank ? HEM_OK : hemd_mixed_tell_peer(w, peer, id, epoch, timeout_ns);
}

/** An entry into a barrier with `peer` once more, by one thread: how often this rank has entered. Where the peer is
 *  reached through its host it may not have been told. */
HEM_DEV_SLOW hem_status hemd_mixed_again_peer(hem_dev_window w, int peer, uint32_t id,
                                              int64_t timeout_ns, uint64_t *epoch_p) {
    *epoch_p = hemd_mixed_own(w, peer, HEMD_MIXED_OWN, id);
    if (!hemd_proxied(&w.peers[peer]) || hemd_mixed_is_cpus(w, peer, HEMD_MIXED_OWN, id))
        return HEM_OK;
    return hemd_mixed_tell_peer(w, peer, id, *epoch_p, timeout_ns);
}

#endif
