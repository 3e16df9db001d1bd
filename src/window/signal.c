/* Sending signals, with data or alone. */
#include "window/device.h"

#include <string.h>

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

/* What a signal must tell the peer to look at: see `look` in window/line.h. */
static uint64_t look_of(hemi_peer *peer, uint32_t id, int op) {
    /* A weak signal promises nothing, but takes back nothing that an earlier one has promised. */
    if ((op & HEM_SIGNAL_WEAK) != 0)
        return peer->shadows[id].look;
    uint64_t own = id < HEMI_INLINE_IDS ? 1ull << id : 0;
    bool others = (hemi_load64_relaxed(&peer->sent_inline) & ~own) != 0;
    return others ? hemi_peer_unsettled(peer, id) : 0;
}

/* Whether the bytes can go in the line: then nothing else of ours is on its way to their place. */
static hem_status may_ride(hem_window *window, hemi_peer *peer, size_t offset, size_t n,
                           uint32_t id, bool *ride_p) {
    *ride_p = false;
    /* To oneself there is no line to save, and nobody else to deliver. Nobody delivers into device
     * memory either. */
    if (n == 0 || n > HEMI_INLINE_MAX || id >= HEMI_INLINE_IDS || peer->rank == window->rank ||
        window->device != NULL)
        return HEM_OK;
    uint64_t others = hemi_load64_relaxed(&peer->sent_inline) & ~(1ull << id);
    hem_status status = others == 0 ? HEM_OK : hemi_peer_settle(window, peer, offset, n);
    if (status == HEM_OK)
        *ride_p = hemi_line_free(&peer->shadows[id], &peer->in[id], &peer->out_claims[id]);
    return status;
}

static hem_status put_first(hem_window *window, hemi_peer *peer, size_t offset, const void *src,
                            size_t n) {
    if (n == 0)
        return HEM_OK;
    hem_status status = hemi_peer_settle(window, peer, offset, n);
    return status == HEM_OK ? hemi_region_put(&peer->data, offset, src, n) : status;
}

/* Put the bytes, in the line where they are short and it is free, otherwise in place; then signal. */
static hem_status carry(hem_window *window, hemi_peer *peer, size_t offset, const void *src,
                        size_t n, uint32_t id, int op, uint64_t value) {
    bool ride = false;
    hem_status status = may_ride(window, peer, offset, n, id, &ride);
    if (status == HEM_OK && !ride)
        status = put_first(window, peer, offset, src, n);
    if (status != HEM_OK)
        return status;
    if (__builtin_expect(id < window->device_signals, 0))
        return hemi_device_signal(window, peer, id, op, value);
    hemi_shadow *shadow = &peer->shadows[id];
    uint32_t done = hemi_load32_acquire(&peer->in_claims[id].done);
    uint64_t look = look_of(peer, id, op);
    if ((op & HEM_SIGNAL_ADD) != 0)
        value += hemi_load64_relaxed(&shadow->value);
    if (ride) {
        mark_inline(peer, id);
        hemi_line_send(&peer->out[id], shadow, offset, src, n, done, look, value);
    } else {
        hemi_line_signal(&peer->out[id], shadow, done, look, value);
    }
    hemi_wake(window->root, peer->block);
    return HEM_OK;
}

static hem_status put_signal(hem_window *window, int rank, size_t offset, const void *src, size_t n,
                             uint32_t id, int op, uint64_t value, const char *call) {
    hemi_peer *peer = NULL;
    hem_status status = hemi_peer_reach(window, rank, call, &peer);
    if (status == HEM_OK)
        status = check_signal(window, id, op, call);
    if (status == HEM_OK)
        status = hemi_peer_range(peer, offset, src, n, call);
    return status == HEM_OK ? carry(window, peer, offset, src, n, id, op, value) : status;
}

/*
 * The common cases without a detour: a short payload, on the only id that carries payloads to this
 * peer, whose line is known to be free; or a long one, to a peer that gets no payloads in lines.
 * Everything else takes the way above.
 */
static inline bool put_signal_at_once(hem_window *window, int rank, size_t offset, const void *src,
                                      size_t n, uint32_t id, uint64_t value) {
    hemi_peer *peer = hemi_peer_ready(window, rank);
    if (peer == NULL || id >= window->signals || n > peer->data.bytes ||
        offset > peer->data.bytes - n || src == NULL)
        return false;
    uint64_t inlined = hemi_load64_relaxed(&peer->sent_inline);
    hemi_shadow *shadow = &peer->shadows[id];
    hemi_line *line = &peer->out[id];
    uint32_t done = hemi_load32_acquire(&peer->in_claims[id].done);
    value += hemi_load64_relaxed(&shadow->value);
    if (n - 1 < HEMI_INLINE_MAX) {
        if (id >= HEMI_INLINE_IDS || inlined != 1ull << id ||
            !hemi_line_known(shadow, &peer->in[id]))
            return false;
        hemi_line_send(line, shadow, offset, src, n, done, 0, value);
    } else {
        if (inlined != 0)
            return false;
        memcpy(peer->data.mapped + offset, src, n);
        hemi_line_signal(line, shadow, done, 0, value);
    }
    hemi_wake(window->root, peer->block);
    return true;
}

hem_status hem_put_signal(hem_window *window, int peer, size_t offset, const void *src, size_t n,
                          uint32_t id, uint64_t value) {
    if (__builtin_expect(put_signal_at_once(window, peer, offset, src, n, id, value), 1))
        return HEM_OK;
    return put_signal(window, peer, offset, src, n, id, HEM_SIGNAL_ADD, value, "hem_put_signal");
}

hem_status hem_put_signal_op(hem_window *window, int peer, size_t offset, const void *src, size_t n,
                             uint32_t id, int op, uint64_t value) {
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
