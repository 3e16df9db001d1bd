/* Data in and out of windows: put, get, atomics, flush. */
#include "window/device.h"

#include <string.h>

static hem_status prepare(hem_window *window, int rank, size_t offset, const void *here, size_t n,
                          const char *call, hemi_peer **peer_p) {
    hem_status status = hemi_peer_reach(window, rank, call, peer_p);
    if (status == HEM_OK)
        status = hemi_peer_range(*peer_p, offset, here, n, call);
    if (status == HEM_OK)
        status = hemi_peer_settle(window, *peer_p, offset, n);
    return status;
}

hem_status hem_put(hem_window *window, int peer, size_t offset, const void *src, size_t n) {
    hemi_peer *p = NULL;
    hem_status status = prepare(window, peer, offset, src, n, "hem_put", &p);
    return status == HEM_OK ? hemi_region_put(&p->data, offset, src, n) : status;
}

hem_status hem_get(hem_window *window, int peer, size_t offset, void *dst, size_t n) {
    hemi_peer *p = NULL;
    hem_status status = prepare(window, peer, offset, dst, n, "hem_get", &p);
    return status == HEM_OK ? hemi_region_get(&p->data, offset, dst, n) : status;
}

static hem_status prepare_word(hem_window *window, int peer, size_t offset, const char *call,
                               hemi_peer **peer_p) {
    hem_status status = prepare(window, peer, offset, window, sizeof(uint64_t), call, peer_p);
    if (status == HEM_OK && offset % sizeof(uint64_t) != 0)
        return hemi_fail(HEM_ERR_ARG, "%s: offset %zu is not a multiple of 8", call, offset);
    return status;
}

/* A 64-bit word of a peer that is mapped, for atomics. */
static hem_status word_of(hem_window *window, int peer, size_t offset, const char *call,
                          uint64_t **word_p) {
    hemi_peer *p = NULL;
    hem_status status = prepare_word(window, peer, offset, call, &p);
    if (status != HEM_OK)
        return status;
    if (window->device != NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: a CPU cannot do that to a word in device memory; kernels can", call);
    if ((p->data.route & HEM_ROUTE_ATOMIC) == 0)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: a window over the caller's own memory carries no atomics", call);
    *word_p = (uint64_t *)(void *)(p->data.mapped + offset);
    return HEM_OK;
}

/* Copies to devices store a word in one piece, after all that was copied before. */
static hem_status copy_value(hem_window *window, int peer, size_t offset, uint64_t value) {
    hemi_peer *p = NULL;
    hem_status status = prepare_word(window, peer, offset, "hem_put_value", &p);
    if (status == HEM_OK && window->device->device->facts.words == 0)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "hem_put_value: this GPU does not store words in the order of a stream");
    return status == HEM_OK ? hemi_region_put(&p->data, offset, &value, sizeof value) : status;
}

hem_status hem_put_value(hem_window *window, int peer, size_t offset, uint64_t value) {
    uint64_t *word = NULL;
    if (window != NULL && window->device != NULL)
        return copy_value(window, peer, offset, value);
    hem_status status = word_of(window, peer, offset, "hem_put_value", &word);
    if (status == HEM_OK)
        /* Released, so that whoever polls the word itself with an acquire sees earlier puts. */
        hemi_store64_release(word, value);
    return status;
}

hem_status hem_fetch_add(hem_window *window, int peer, size_t offset, uint64_t add,
                         uint64_t *old_p) {
    uint64_t *word = NULL;
    hem_status status = word_of(window, peer, offset, "hem_fetch_add", &word);
    if (status != HEM_OK)
        return status;
    uint64_t old = hemi_add64_acq_rel(word, add);
    if (old_p != NULL)
        *old_p = old;
    return HEM_OK;
}

hem_status hem_compare_swap(hem_window *window, int peer, size_t offset, uint64_t expected,
                            uint64_t desired, uint64_t *old_p) {
    uint64_t *word = NULL;
    hem_status status = word_of(window, peer, offset, "hem_compare_swap", &word);
    if (status != HEM_OK)
        return status;
    hemi_cas64_acq_rel(word, &expected, desired);
    if (old_p != NULL)
        *old_p = expected;
    return HEM_OK;
}

hem_status hem_flush(hem_window *window, int peer) {
    hemi_peer *p = NULL;
    hem_status status = hemi_peer_reach(window, peer, "hem_flush", &p);
    if (status == HEM_OK)
        status = hemi_peer_settle_all(window, p);
    /* A peer that polls memory without a signal must not see a later store of ours first; and what
     * we read afterwards must not have been read before. */
    hemi_fence_seq_cst();
    return status;
}

hem_status hem_flush_all(hem_window *window) {
    hem_status status = hemi_window_check(window, "hem_flush_all");
    if (status == HEM_OK)
        status = hemi_window_check_revoked(window, "hem_flush_all");
    if (status != HEM_OK)
        return status;
    for (uint32_t r = 0; r < window->size; r++) {
        hemi_peer *p = __atomic_load_n(&window->peers[r], __ATOMIC_ACQUIRE);
        if (p == NULL)
            continue; /* never used: nothing to flush */
        hem_status one = hem_flush(window, (int)r);
        if (status == HEM_OK)
            status = one;
    }
    return status;
}
