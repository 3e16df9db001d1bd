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

HEM_DEV void hemd_word_set(unsigned char *to, uint64_t n, uint64_t value) {
    if (n >= 8u && (uintptr_t)to % 8u == 0) {
        hemd_unit_set(to, 8, value);
        return;
    }
    for (uint32_t k = 0; k < 8u && k < n; k++)
        to[k] = (unsigned char)(value >> 8u * k);
}

/**
 * Put `n` bytes into the place at `offset` of `peer`'s window, stamped with `stamp`.
 *
 * Returns when all threads of the group may change `src`. Orders nothing else. `stamp` is no stamp
 * that the place has had, and not 0. @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED; HEM_ERR_ARG
 *         if `offset` is no multiple of 16.
 */
HEM_DEV hem_status hem_dev_put_stamped(hem_dev_window w, hem_group g, int peer, uint64_t offset,
                                       const void *src, uint64_t n, uint64_t stamp) {
    hem_status status = hemd_check_stamped(w, peer, offset, n);
    if (status != HEM_OK)
        return status;
    hemd_unit *units = (hemd_unit *)(void *)hemd_data(&w.peers[peer], offset);
    const unsigned char *from = (const unsigned char *)src;
    const uint64_t count = (n + 7u) / 8u;
    for (uint64_t first = g.rank; first < count; first += 4u * (uint64_t)g.size) {
        uint64_t word[4];
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t at = first + k * (uint64_t)g.size;
            word[k] = at < count ? hemd_word_get(from + 8u * at, n - 8u * at) : 0;
        }
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t at = first + k * (uint64_t)g.size;
            if (at < count)
                hemd_unit_store(&units[at], word[k], stamp);
        }
    }
    hem_group_sync(g);
    return HEM_OK;
}

/** Load up to four units of a message that are `size` apart. @return whether all have the stamp. */
HEM_DEV bool hemd_units_ready(const hemd_unit *units, uint64_t first, uint64_t size, uint64_t count,
                              uint64_t stamp, uint64_t *word_p) {
    uint64_t seen[4];
    HEMD_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        seen[k] = stamp;
        if (first + k * size < count)
            seen[k] = hemd_unit_load(&units[first + k * size], &word_p[k]);
    }
    return seen[0] == stamp && seen[1] == stamp && seen[2] == stamp && seen[3] == stamp;
}

/**
 * Take the `n` bytes that `peer` put, stamped with `stamp`, into the place at `offset` of this rank's
 * window; wait for them.
 *
 * Returns when all of them are in `dst`, which the whole group sees. After an error part of them may
 * be. @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_CLOSED; HEM_ERR_RANGE,
 *         HEM_ERR_ARG.
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
    const uint64_t count = (n + 7u) / 8u;
    hemd_patience patience = hemd_patience_begin(timeout_ns);
    for (uint64_t first = g.rank; first < count && status == HEM_OK;) {
        uint64_t word[4] = {0, 0, 0, 0};
        while (!hemd_units_ready(units, first, g.size, count, stamp, word) && status == HEM_OK)
            status = hemd_patience_poll(&patience, w, peer);
        if (status != HEM_OK && !hemd_units_ready(units, first, g.size, count, stamp, word))
            break;
        status = HEM_OK;
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t at = first + k * (uint64_t)g.size;
            if (at < count)
                hemd_word_set((unsigned char *)dst + 8u * at, n - 8u * at, word[k]);
        }
        first += 4u * (uint64_t)g.size;
    }
    return hemd_agree_all(g, status);
}

#endif
