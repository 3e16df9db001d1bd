/* Sending signals, with data or alone. */
#include "window/window.h"

static hem_status check_signal(const hem_window *window, uint32_t id, int op, const char *call) {
    if (__builtin_expect(id >= window->signals, 0))
        return hemi_window_fail_id(window, id, window->signals, "signal", call);
    int kind = op & ~HEM_SIGNAL_WEAK;
    if (__builtin_expect(kind != HEM_SIGNAL_SET && kind != HEM_SIGNAL_ADD, 0))
        return hemi_fail(HEM_ERR_ARG, "%s: op %d is neither SET nor ADD", call, op);
    return HEM_OK;
}

static void mark_inline(hemi_peer *peer, uint32_t id) {
    uint64_t bit = 1ull << id;
    if ((hemi_load64_relaxed(&peer->sent_inline) & bit) == 0)
        hemi_or64_relaxed(&peer->sent_inline, bit);
}

/* Store the slot and wake the peer. */
static inline void publish(hem_window *window, hemi_peer *peer, uint32_t id, int op,
                           uint64_t value) {
    hemi_shadow *shadow = &peer->shadows[id];
    /* A weak signal promises nothing, but takes back nothing that an earlier one has promised. */
    uint64_t look = shadow->look;
    if ((op & HEM_SIGNAL_WEAK) == 0) {
        uint64_t own = id < HEMI_INLINE_IDS ? 1ull << id : 0;
        bool others = (hemi_load64_relaxed(&peer->sent_inline) & ~own) != 0;
        look = __builtin_expect(others, 0) ? hemi_peer_unsettled(peer, id) : 0;
    }
    if ((op & HEM_SIGNAL_ADD) != 0)
        value += hemi_load64_relaxed(&shadow->value);
    uint32_t done = hemi_load32_relaxed(&peer->in_claims[id].done);
    hemi_line_signal(&peer->out[id], shadow, done, look, value);
    hemi_wake(window->root, peer->block);
}

/* Put the bytes: in the line where they are short and it is free, otherwise in place. */
static inline hem_status carry(hem_window *window, hemi_peer *peer, size_t offset,
                               const void *src, size_t n, uint32_t id) {
    if (n == 0)
        return HEM_OK;
    hem_status status = HEM_OK;
    /* To oneself there is no line to save, and nobody else to deliver. */
    if (n <= HEMI_INLINE_MAX && id < HEMI_INLINE_IDS && peer->rank != window->rank) {
        uint64_t others = hemi_load64_relaxed(&peer->sent_inline) & ~(1ull << id);
        if (__builtin_expect(others != 0, 0))
            status = hemi_peer_settle(window, peer, offset, n);
        hemi_shadow *shadow = &peer->shadows[id];
        if (status == HEM_OK &&
            hemi_line_free(shadow, &peer->in[id], &peer->out_claims[id])) {
            mark_inline(peer, id);
            hemi_line_load(&peer->out[id], shadow, offset, src, n);
            return HEM_OK;
        }
    }
    if (status == HEM_OK)
        status = hemi_peer_settle(window, peer, offset, n);
    return status == HEM_OK ? hemi_region_put(&peer->data, offset, src, n) : status;
}

static inline hem_status put_signal(hem_window *window, int rank, size_t offset, const void *src,
                                    size_t n, uint32_t id, int op, uint64_t value,
                                    const char *call) {
    hemi_peer *peer = NULL;
    hem_status status = hemi_peer_reach(window, rank, call, &peer);
    if (status == HEM_OK)
        status = check_signal(window, id, op, call);
    if (status == HEM_OK)
        status = hemi_peer_range(peer, offset, src, n, call);
    if (status == HEM_OK)
        status = carry(window, peer, offset, src, n, id);
    if (status == HEM_OK)
        publish(window, peer, id, op, value);
    return status;
}

hem_status hem_put_signal(hem_window *window, int peer, size_t offset, const void *src, size_t n,
                          uint32_t id, uint64_t value) {
    return put_signal(window, peer, offset, src, n, id, HEM_SIGNAL_ADD, value, "hem_put_signal");
}

hem_status hem_put_signal_op(hem_window *window, int peer, size_t offset, const void *src,
                             size_t n, uint32_t id, int op, uint64_t value) {
    return put_signal(window, peer, offset, src, n, id, op, value, "hem_put_signal_op");
}

hem_status hem_signal(hem_window *window, int peer, uint32_t id, int op, uint64_t value) {
    return put_signal(window, peer, 0, NULL, 0, id, op, value, "hem_signal");
}

hem_status hem_signal_all(hem_window *window, uint32_t id, int op, uint64_t value) {
    hem_status status = hemi_window_check(window, "hem_signal_all");
    if (status == HEM_OK)
        status = check_signal(window, id, op, "hem_signal_all");
    if (status == HEM_OK)
        status = hemi_window_check_revoked(window, "hem_signal_all");
    if (status != HEM_OK)
        return status;
    for (uint32_t r = 0; r < window->size; r++) {
        if (r == window->rank)
            continue;
        hem_status one = hem_signal(window, (int)r, id, op, value);
        if (status == HEM_OK)
            status = one;
    }
    return status;
}
