/*
 * Data that carries its own signal: the fastest way for up to some kilobytes, as no fence is in it.
 *
 * Each 8 bytes travel together with a 64-bit stamp, in one store of 16 bytes. Who takes them looks at
 * the place itself until it finds the stamp it wants; there is nothing else to wait for. So a place
 * in the window has twice the length of the data, begins at a multiple of 16, and both sides count:
 * every message to one place has another stamp than all before it. A place is used again when its
 * data are known to be taken, by a message that came back say, or by two places in turns.
 */
#ifndef HEM_DEVICE_STAMPED_H
#define HEM_DEVICE_STAMPED_H

#include <hem/device/window.h>

/** The bytes of the window that a message of `n` bytes needs. */
HEM_DEV uint64_t hem_dev_stamped_bytes(uint64_t n) {
    return (n + 7u) / 8u * 16u;
}

HEM_DEV hem_status hemd_check_stamped(hem_dev_window w, int peer, uint64_t offset, uint64_t n) {
#if defined(HEM_DEV_CHECK)
    if (offset % 16u != 0)
        return HEM_ERR_ARG;
    if (n > UINT64_MAX / 4u)
        return HEM_ERR_RANGE;
#endif
    return hemd_check_data(w, peer, offset, hem_dev_stamped_bytes(n));
}

/** By each thread: its units of a message, `most` at a time. `whole`: hemd_is_whole. Both are
 *  constants, and `most` is even where it is not whole. */
HEM_DEV void hemd_units_put(hemd_unit *units, hem_group g, const unsigned char *from, uint64_t n,
                            uint64_t stamp, bool whole, uint32_t most) {
    const uint64_t count = (n + 7u) / 8u;
    for (uint64_t first = g.rank; first < count; first += most * (uint64_t)g.size) {
        uint64_t word[4] = {0, 0, 0, 0};
        HEMD_UNROLL
        for (uint32_t k = 0; k < most && !whole; k += 2) {
            const hemd_words two = hemd_words_get_odd(from, n, 8u * (first + k * (uint64_t)g.size),
                                                      8u * (uint64_t)g.size);
            word[k] = two.word[0];
            word[k + 1] = two.word[1];
        }
        HEMD_UNROLL
        for (uint32_t k = 0; k < most && whole; k++)
            if (first + k * (uint64_t)g.size < count)
                word[k] = hemd_unit_get(from + 8u * (first + k * (uint64_t)g.size), 8);
        HEMD_UNROLL
        for (uint32_t k = 0; k < most; k++) {
            const uint64_t at = first + k * (uint64_t)g.size;
            if (at < count)
                hemd_unit_store(&units[at], word[k], stamp);
        }
    }
}

/** Out of line, so that whole words find short and straight code: in 8 bytes of a message that is a
 *  quarter of their time. */
HEM_DEV_SLOW void hemd_units_put_odd(hemd_unit *units, hem_group g, const unsigned char *from,
                                     uint64_t n, uint64_t stamp) {
    hemd_units_put(units, g, from, n, stamp, false, 4);
}

/**
 * Put `n` bytes into the place at `offset` of `peer`'s window, stamped with `stamp`.
 *
 * Returns when all threads of the group may change `src`. Orders nothing else. `stamp` is no stamp
 * that the place has had, and not 0. Fastest where `src` and `n` are multiples of 8. @return HEM_OK,
 *         HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED; HEM_ERR_ARG if `offset` is no multiple of 16.
 */
HEM_DEV hem_status hem_dev_put_stamped(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                                       const void *src, uint64_t n, uint64_t stamp) {
    hem_status status = hemd_check_stamped(w, peer, offset, n);
    if (status != HEM_OK)
        return status;
    hemd_unit *units = (hemd_unit *)(void *)hemd_data(&w.peers[peer], offset);
    const unsigned char *from = (const unsigned char *)src;
    if (!hemd_is_whole(src, n))
        hemd_units_put_odd(units, g, from, n, stamp);
    else if (n <= 8u * (uint64_t)g.size)
        hemd_units_put(units, g, from, n, stamp, true, 1);
    else if (n <= 16u * (uint64_t)g.size)
        hemd_units_put(units, g, from, n, stamp, true, 2);
    else
        hemd_units_put(units, g, from, n, stamp, true, 4);
    hem_group_sync(g);
    return HEM_OK;
}

/** Load up to `most` units of a message that are `size` apart. @return whether all have the stamp. */
HEM_DEV bool hemd_units_ready(const hemd_unit *units, uint64_t first, uint64_t size, uint64_t count,
                              uint64_t stamp, uint64_t *word_p, uint32_t most) {
    uint64_t seen[4];
    bool all = true;
    HEMD_UNROLL
    for (uint32_t k = 0; k < most; k++) {
        seen[k] = stamp;
        if (first + k * size < count)
            seen[k] = hemd_unit_load(&units[first + k * size], &word_p[k]);
    }
    HEMD_UNROLL
    for (uint32_t k = 0; k < most; k++)
        all = all && seen[k] == stamp;
    return all;
}

/** By each thread: wait for its units of a message and take them. As hemd_units_put. */
HEM_DEV hem_status hemd_units_take(hem_dev_window w, hem_group g, int peer, const hemd_unit *units,
                                   unsigned char *to, uint64_t n, uint64_t stamp,
                                   int64_t timeout_ns, bool whole, uint32_t most) {
    const uint64_t count = (n + 7u) / 8u;
    hem_status status = HEM_OK;
    hemd_patience patience = hemd_patience_begin(timeout_ns);
    for (uint64_t first = g.rank; first < count; first += most * (uint64_t)g.size) {
        uint64_t word[4] = {0, 0, 0, 0};
        while (!hemd_units_ready(units, first, g.size, count, stamp, word, most)) {
            if (status != HEM_OK)
                return status;
            status = hemd_patience_poll(&patience, w, peer,
                                        hemd_want_of(HEMD_WHAT_STAMPED, peer, 0, HEM_EQ, stamp), 0);
        }
        status = HEM_OK;
        HEMD_UNROLL
        for (uint32_t k = 0; k < most; k++) {
            const uint64_t at = first + k * (uint64_t)g.size;
            if (at < count && whole)
                hemd_unit_set(to + 8u * at, 8, word[k]);
            else if (at < count)
                hemd_word_set(to + 8u * at, n - 8u * at, word[k]);
        }
    }
    return status;
}

HEM_DEV_SLOW hem_status hemd_units_take_odd(hem_dev_window w, hem_group g, int peer,
                                            const hemd_unit *units, unsigned char *to, uint64_t n,
                                            uint64_t stamp, int64_t timeout_ns) {
    return hemd_units_take(w, g, peer, units, to, n, stamp, timeout_ns, false, 4);
}

/**
 * Take the `n` bytes that `peer` put, stamped with `stamp`, into the place at `offset` of this rank's
 * window; wait for them.
 *
 * Returns when all of them are in `dst`, which the whole group sees. After an error part of them may
 * be. Fastest where `dst` and `n` are multiples of 8. @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER,
 *         HEM_ERR_REVOKED, HEM_ERR_CLOSED; HEM_ERR_RANGE, HEM_ERR_ARG.
 */
HEM_DEV HEM_MUST_CHECK hem_status hem_dev_take_stamped(hem_dev_window w, hem_group g, int peer,
                                                       uint64_t offset, void *dst, uint64_t n,
                                                       uint64_t stamp, int64_t timeout_ns) {
    hem_status status = hemd_check_stamped(w, w.rank, offset, n);
    if (status == HEM_OK)
        status = hemd_peer_exists(w, peer) ? hemd_check_want(HEM_EQ, timeout_ns) : HEM_ERR_RANGE;
    if (status != HEM_OK)
        return status;
    const hemd_unit *units = (const hemd_unit *)(void *)hemd_data(&w.peers[w.rank], offset);
    unsigned char *to = (unsigned char *)dst;
    if (!hemd_is_whole(dst, n))
        status = hemd_units_take_odd(w, g, peer, units, to, n, stamp, timeout_ns);
    else if (n <= 8u * (uint64_t)g.size)
        status = hemd_units_take(w, g, peer, units, to, n, stamp, timeout_ns, true, 1);
    else if (n <= 16u * (uint64_t)g.size)
        status = hemd_units_take(w, g, peer, units, to, n, stamp, timeout_ns, true, 2);
    else
        status = hemd_units_take(w, g, peer, units, to, n, stamp, timeout_ns, true, 4);
    return hemd_agree_all(g, status);
}

#endif
