/*
 * Barriers between the kernels of all ranks, or of two: by id, reusable for ever, also across
 * launches and graph replays, ids in any interleaving.
 *
 * One group of each rank uses an id at a time. A kernel of several blocks gives each block an id of
 * its own, or meets with its other blocks first. The CPU's barriers of the same id are others, but for
 * mixed ids (hem_window_options.mixed_barriers): a rank enters those each time by a kernel or by its CPU, and
 * leaves by either; its entries and waits follow each other, which the caller sees to. Only after an error of
 * the call that enters whoever called goes on with it: a kernel by hem_dev_barrier_wait or hem_dev_barrier_peer_wait,
 * the CPU by hem_barrier_wait or hem_barrier_peer_wait.
 *
 * The threads of the group share the ranks: a warp meets 32 of them in the time of one.
 *
 * `timeout_ns` is that of the wait for the others. Telling a peer that is not mapped (hem_window_options.
 * proxy_peers) takes a slot of a ring that a thread of the host empties: where that is full, the wait for
 * it has the same limit, before the other. See proxy.h. What was ordered of such a peer before must have been carried
 * out before anybody is told of an entry into a barrier of all: a third rank might leave first, and put to the
 * same place or look there. The wait for that has the same limit, too.
 */
#ifndef HEM_DEVICE_BARRIER_H
#define HEM_DEVICE_BARRIER_H

#include <hem/device/mixed.h>
#include <hem/device/window.h>

/** Tell all mapped ranks that this one has entered `epoch`, each thread of the group its share of them. `one`:
 *  each has one at the most. */
HEM_DEV void hemd_barrier_tell(hem_dev_window w, hem_group g, uint32_t id, uint64_t epoch,
                               bool one) {
    for (uint32_t rank = g.rank; rank < (uint32_t)w.size; rank += g.size) {
        const hemd_peer *peer = &w.peers[rank];
        uint64_t *arrivals = HEMD_FIXED64(uint64_t *, peer->out_arrivals);
        if ((int)rank == w.rank || arrivals == NULL)
            continue;
        if (one)
            hemd_store64_release(arrivals + id, epoch, hemd_near(peer));
        else
            hemd_store64_relaxed(arrivals + id, epoch);
    }
}

/** What the group says of telling `epoch` where not all peers are mapped. If all is well the leader writes
 *  it down; else hem_dev_barrier_wait does it again, which does no harm to those that have heard it. */
HEM_DEV_SLOW hem_status hemd_barrier_told(hem_dev_window w, hem_group g, uint32_t id,
                                          uint64_t epoch, hem_status status) {
    status = hemd_agree_all(g, status);
    if (status == HEM_OK && g.rank == 0)
        hemd_store64_relaxed(HEMD_FIXED64(uint64_t *, w.peers[w.rank].pair_epochs) + id, epoch);
    return status;
}

/** Tell all ranks, of which some are not mapped, after a barrier of the group. Of two ranks there is no third one. */
HEM_DEV_SLOW hem_status hemd_barrier_order(hem_dev_window w, hem_group g, uint32_t id,
                                           uint64_t epoch, int64_t timeout_ns) {
    const uint64_t until = hemd_until(w, timeout_ns);
    hem_status status = w.size <= 2 ? HEM_OK : hemd_settle_all(w, g, until);
    if (status != HEM_OK)
        return status;
    hemd_fence(false);
    hemd_barrier_tell(w, g, id, epoch, false);
    for (uint32_t rank = g.rank; rank < (uint32_t)w.size; rank += g.size)
        if (hemd_proxied(&w.peers[rank]))
            status = hemd_proxy_also(status, w, (int)rank, HEMD_ORDER_ARRIVE, id, epoch, until);
    return hemd_barrier_told(w, g, id, epoch, status);
}

/**
 * Count this entry and tell all ranks of it. The epoch is loaded before the barrier of the group, in
 * which its latency hides, and stored behind it, when all have it.
 */
HEM_DEV hem_status hemd_barrier_enter(hem_dev_window w, hem_group g, uint32_t id,
                                      int64_t timeout_ns, uint64_t *epoch_p) {
    uint64_t *own = HEMD_FIXED64(uint64_t *, w.home->epochs) + id;
    const bool proxied = HEMD_FIXED32(w.home->proxied) != 0;
    const uint64_t epoch = hemd_load64_relaxed(own) + 1u;
    if (hem_group_any(g, hemd_lacks(w, g)))
        return HEM_ERR_UNSUPPORTED;
    if (g.rank == 0)
        hemd_store64_relaxed(own, epoch);
    *epoch_p = epoch;
    if (proxied)
        return hemd_barrier_order(w, g, id, epoch, timeout_ns);
    const bool one = hemd_one_each(w, g);
    if (!one)
        hemd_fence(false);
    hemd_barrier_tell(w, g, id, epoch, one);
    return HEM_OK;
}

/** The same of a mixed one. The entry is counted by telling oneself. The group's first barrier is there since
 *  the last entry may be by another group, or by the CPU, of which one thread of this one has heard. */
HEM_DEV_SLOW hem_status hemd_mixed_enter(hem_dev_window w, hem_group g, uint32_t id,
                                         int64_t timeout_ns, uint64_t *epoch_p) {
    hem_group_sync(g);
    const uint64_t epoch = hemd_mixed_own(w, w.rank, HEMD_MIXED_ALL, id) + 1u;
    if (hem_group_any(g, hemd_lacks(w, g)))
        return HEM_ERR_UNSUPPORTED;
    const bool proxied = HEMD_FIXED32(w.home->proxied) != 0;
    *epoch_p = epoch;
    hem_status status = hemd_mixed_tell_all(w, g, id, epoch, proxied, timeout_ns);
    return proxied ? hemd_barrier_told(w, g, id, epoch, status) : HEM_OK;
}

/** Enter a barrier of either kind. */
HEM_DEV hem_status hemd_enter(hem_dev_window w, hem_group g, uint32_t id, int64_t timeout_ns,
                              uint64_t *epoch_p) {
    if (!hemd_is_mixed(w, id))
        return hemd_barrier_enter(w, g, id, timeout_ns, epoch_p);
    uint64_t epoch = 0; /* of its own, so that the other one can stay in registers */
    hem_status status = hemd_mixed_enter(w, g, id, timeout_ns, &epoch);
    *epoch_p = epoch;
    return status;
}

/** An entry that was counted and may not have been told to everybody. */
HEM_DEV_SLOW hem_status hemd_barrier_again(hem_dev_window w, hem_group g, uint32_t id,
                                           uint64_t epoch, int64_t timeout_ns) {
    const uint64_t *told = HEMD_FIXED64(uint64_t *, w.peers[w.rank].pair_epochs) + id;
    if (!hem_group_any(g, hemd_load64_relaxed(told) != epoch))
        return HEM_OK;
    return hemd_barrier_order(w, g, id, epoch, timeout_ns);
}

/** The same of a mixed one. */
HEM_DEV_SLOW hem_status hemd_mixed_again(hem_dev_window w, hem_group g, uint32_t id, uint64_t epoch,
                                         int64_t timeout_ns) {
    const uint64_t *told = HEMD_FIXED64(uint64_t *, w.peers[w.rank].pair_epochs) + id;
    if (hem_group_any(g, hemd_mixed_is_cpus(w, w.rank, HEMD_MIXED_ALL, id)) ||
        !hem_group_any(g, hemd_load64_relaxed(told) != epoch))
        return HEM_OK;
    return hemd_barrier_told(w, g, id, epoch,
                             hemd_mixed_tell_all(w, g, id, epoch, true, timeout_ns));
}

/** Wait until all ranks have entered `epoch`. It cannot end well once any of them is gone. */
HEM_DEV hem_status hemd_barrier_leave(hem_dev_window w, hem_group g, uint32_t id, uint64_t epoch,
                                      int64_t timeout_ns) {
    hemd_patience patience = hemd_patience_begin(timeout_ns);
    hem_status status = HEM_OK;
    for (uint32_t rank = g.rank; rank < (uint32_t)w.size && status == HEM_OK; rank += g.size) {
        const hemd_peer *peer = &w.peers[rank];
        if ((int)rank != w.rank)
            status = hemd_wait_least(w, HEMD_ANYBODY,
                                     HEMD_FIXED64(const uint64_t *, peer->in_arrivals) + id,
                                     hemd_want_of(HEMD_WHAT_BARRIER, (int)rank, id, HEM_GE, epoch),
                                     hemd_near(peer), &patience);
    }
    return hemd_agree_all(g, status);
}

/** The same of a mixed one. */
HEM_DEV_SLOW hem_status hemd_mixed_leave(hem_dev_window w, hem_group g, uint32_t id, uint64_t epoch,
                                         int64_t timeout_ns) {
    hemd_patience patience = hemd_patience_begin(timeout_ns);
    hem_status status = HEM_OK;
    for (int rank = (int)g.rank; rank < w.size && status == HEM_OK; rank += (int)g.size)
        if (rank != w.rank)
            status = hemd_mixed_wait(w, HEMD_ANYBODY, rank, HEMD_MIXED_ALL,
                                     hemd_want_of(HEMD_WHAT_BARRIER, rank, id, HEM_GE, epoch),
                                     &patience);
    return hemd_agree_all(g, status);
}

/** Leave a barrier of either kind. */
HEM_DEV hem_status hemd_leave(hem_dev_window w, hem_group g, uint32_t id, uint64_t epoch,
                              int64_t timeout_ns) {
    return hemd_is_mixed(w, id) ? hemd_mixed_leave(w, g, id, epoch, timeout_ns)
                                : hemd_barrier_leave(w, g, id, epoch, timeout_ns);
}

/**
 * Wait until every rank's kernels have entered barrier `id` as often as this one's; every rank, if it is mixed.
 *
 * Everything that their groups put before they entered is visible to all threads of this group
 * afterwards. After an error the arrival stands: hem_dev_barrier_wait takes it up again.
 * Collective: one group of every rank.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER if any rank is dead or has left, HEM_ERR_REVOKED,
 *         HEM_ERR_CLOSED, HEM_ERR_RANGE, HEM_ERR_ARG; HEM_ERR_UNSUPPORTED if any rank cannot be
 *         reached.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_barrier(hem_dev_window w, hem_group g, uint32_t id,
                                                  int64_t timeout_ns) {
    if (!hemd_barrier_exists(w, id))
        return HEM_ERR_RANGE;
    uint64_t epoch = 0;
    hem_status status = hemd_check_want(HEM_GE, timeout_ns);
    if (status == HEM_OK)
        status = hemd_enter(w, g, id, timeout_ns, &epoch);
    return status == HEM_OK ? hemd_leave(w, g, id, epoch, timeout_ns) : status;
}

/**
 * The first half of hem_dev_barrier: enter, and wait for no rank to come. Work of one's own follows, then
 * hem_dev_barrier_wait. Each arrival is followed by one wait that succeeds, by the same group, in the
 * same launch or a later one. After HEM_ERR_TIMEOUT, which there is through a proxy only, the arrival
 * stands: the wait tells it to those who have not heard.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED; through a proxy as a wait for all ranks.
 */
HEM_DEV hem_status hem_dev_barrier_arrive(hem_dev_window w, hem_group g, uint32_t id) {
    uint64_t epoch;
    return hemd_barrier_exists(w, id) ? hemd_enter(w, g, id, HEMD_PROXY_LIMIT, &epoch)
                                      : HEM_ERR_RANGE;
}

/**
 * The second half: wait until all ranks have entered as often. After an error it may be called again,
 * for the same arrival. @return as hem_dev_barrier.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_barrier_wait(hem_dev_window w, hem_group g, uint32_t id,
                                                       int64_t timeout_ns) {
    if (!hemd_barrier_exists(w, id))
        return HEM_ERR_RANGE;
    hem_status status = hemd_check_want(HEM_GE, timeout_ns);
    if (status != HEM_OK)
        return status;
    hem_group_sync(g); /* the leader of the arrival has counted it */
    const bool mixed = hemd_is_mixed(w, id);
    const uint64_t epoch = mixed
                               ? hemd_mixed_own(w, w.rank, HEMD_MIXED_ALL, id)
                               : hemd_load64_relaxed(HEMD_FIXED64(uint64_t *, w.home->epochs) + id);
    if (HEMD_FIXED32(w.home->proxied) != 0)
        status = mixed ? hemd_mixed_again(w, g, id, epoch, timeout_ns)
                       : hemd_barrier_again(w, g, id, epoch, timeout_ns);
    return status == HEM_OK ? hemd_leave(w, g, id, epoch, timeout_ns) : status;
}

/* Barriers of two, by one thread of the group. */

/** Tell `peer` that this rank has entered a barrier with it. */
HEM_DEV hem_status hemd_pair_tell(hem_dev_window w, int peer, uint32_t id, uint64_t epoch,
                                  int64_t timeout_ns) {
    const hemd_peer *other = &w.peers[peer];
    const uint32_t at = HEMD_FIXED32(w.home->barriers) + id;
    uint64_t *arrivals = HEMD_FIXED64(uint64_t *, other->out_arrivals);
    if (arrivals == NULL)
        return hemd_proxy_tell(w, peer, HEMD_ORDER_ARRIVE, at, epoch, hemd_until(w, timeout_ns));
    hemd_store64_release(arrivals + at, epoch, hemd_near(other));
    return HEM_OK;
}

/** Wait until `peer` has entered `epoch`. */
HEM_DEV hem_status hemd_pair_leave(hem_dev_window w, int peer, uint32_t id, uint64_t epoch,
                                   hemd_patience *patience) {
    const hemd_peer *other = &w.peers[peer];
    const hemd_want want = hemd_want_of(HEMD_WHAT_BARRIER_PEER, peer, id, HEM_GE, epoch);
    if (peer == w.rank)
        return HEM_OK;
    if (hemd_is_mixed(w, id))
        return hemd_mixed_wait(w, peer, peer, HEMD_MIXED_PAIR, want, patience);
    const uint64_t *arrivals = HEMD_FIXED64(const uint64_t *, other->in_arrivals);
    return hemd_wait_least(w, peer, arrivals + HEMD_FIXED32(w.home->barriers) + id, want,
                           hemd_near(other), patience);
}

/** Count an entry and tell the peer. */
HEM_DEV hem_status hemd_pair_enter(hem_dev_window w, int peer, uint32_t id, int64_t timeout_ns,
                                   uint64_t *epoch_p) {
    if (hemd_is_mixed(w, id))
        return hemd_mixed_enter_peer(w, peer, id, timeout_ns, epoch_p);
    uint64_t *own = HEMD_FIXED64(uint64_t *, w.peers[peer].pair_epochs) + id;
    if (peer == w.rank)
        return HEM_OK;
    *epoch_p = hemd_load64_relaxed(own) + 1u;
    hemd_store64_relaxed(own, *epoch_p);
    return hemd_pair_tell(w, peer, id, *epoch_p, timeout_ns);
}

/** The last entry, of which a peer that is reached through its host may not have been told. */
HEM_DEV_SLOW hem_status hemd_pair_again(hem_dev_window w, int peer, uint32_t id, int64_t timeout_ns,
                                        uint64_t *epoch_p) {
    if (hemd_is_mixed(w, id))
        return hemd_mixed_again_peer(w, peer, id, timeout_ns, epoch_p);
    *epoch_p = hemd_load64_relaxed(HEMD_FIXED64(uint64_t *, w.peers[peer].pair_epochs) + id);
    return hemd_proxied(&w.peers[peer]) ? hemd_pair_tell(w, peer, id, *epoch_p, timeout_ns)
                                        : HEM_OK;
}

HEM_DEV hem_status hemd_pair_check(hem_dev_window w, int peer, uint32_t id, int64_t timeout_ns) {
    if (!hemd_peer_exists(w, peer) || !hemd_barrier_exists(w, id))
        return HEM_ERR_RANGE;
    hem_status status = hemd_check_want(HEM_GE, timeout_ns);
    if (status == HEM_OK && HEMD_FIXED32(w.peers[peer].route) == HEMD_ROUTE_NONE)
        return HEM_ERR_UNSUPPORTED;
    return status;
}

/** Wait in a barrier with `peer`, which this rank enters now or, `again`, has entered. By the whole group. */
HEM_DEV hem_status hemd_pair_meet(hem_dev_window w, hem_group g, int peer, uint32_t id,
                                  int64_t timeout_ns, bool again) {
    hem_status status = hemd_pair_check(w, peer, id, timeout_ns);
    if (status != HEM_OK)
        return status;
    hem_group_sync(g);
    if (g.rank == 0) {
        hemd_patience patience = hemd_patience_begin(timeout_ns);
        uint64_t epoch = 0;
        status = again ? hemd_pair_again(w, peer, id, timeout_ns, &epoch)
                       : hemd_pair_enter(w, peer, id, timeout_ns, &epoch);
        if (status == HEM_OK)
            status = hemd_pair_leave(w, peer, id, epoch, &patience);
    }
    return hem_group_agree(g, status);
}

/** hem_dev_barrier between this rank and `peer` alone; its ids are apart. After an error the arrival stands:
 *  hem_dev_barrier_peer_wait takes it up again. As hem_dev_barrier. */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_barrier_peer(hem_dev_window w, hem_group g, int peer,
                                                       uint32_t id, int64_t timeout_ns) {
    return hemd_pair_meet(w, g, peer, id, timeout_ns, false);
}

/** The first half of hem_dev_barrier_peer. As hem_dev_barrier_arrive. */
HEM_DEV hem_status hem_dev_barrier_peer_arrive(hem_dev_window w, hem_group g, int peer,
                                               uint32_t id) {
    hem_status status = hemd_pair_check(w, peer, id, 0);
    uint64_t epoch = 0;
    if (status != HEM_OK)
        return status;
    hem_group_sync(g);
    if (g.rank == 0)
        status = hemd_pair_enter(w, peer, id, HEMD_PROXY_LIMIT, &epoch);
    return hem_group_agree(g, status);
}

/** The second half. A peer that is reached through its host is told once more. As hem_dev_barrier_wait. */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_barrier_peer_wait(hem_dev_window w, hem_group g, int peer,
                                                            uint32_t id, int64_t timeout_ns) {
    return hemd_pair_meet(w, g, peer, id, timeout_ns, true);
}

#endif
