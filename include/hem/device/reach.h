/*
 * The tables of a window, as kernels read them: where a peer's words are, and which calls are good.
 *
 * Tables never change while a window exists. On the GPU they are read as constants, so that in a
 * loop the compiler keeps addresses in registers although there are fences in it.
 */
#ifndef HEM_DEVICE_REACH_H
#define HEM_DEVICE_REACH_H

#include <hem/device/types.h>
#include <hem/device/word.h>
#include <hem/window.h>

/* Ranks, ids and lengths are checked where HEM_DEV_CHECK is defined, and on host threads always. */
#if !defined(__CUDACC__) && !defined(HEM_DEV_CHECK)
#define HEM_DEV_CHECK 1
#endif

#if defined(__CUDACC__)
#define HEMD_FIXED32(field)       ((uint32_t)__ldg((const unsigned int *)&(field)))
#define HEMD_FIXED64(type, field) ((type)__ldg((const unsigned long long *)&(field)))
/** Tell the compiler that an address is none of shared or local memory. */
#define HEMD_GLOBAL(address) __builtin_assume(__isGlobal(address))
#else
#define HEMD_FIXED32(field)       (field)
#define HEMD_FIXED64(type, field) ((type)(field))
#define HEMD_GLOBAL(address)      ((void)(address))
#endif

/** Whether what a signal is compares to `value` as a wait wants it; of kernels and of CPUs. */
HEM_DEV bool hemd_holds(uint64_t seen, hem_compare compare, uint64_t value) {
    switch (compare) {
    case HEM_EQ:
        return seen == value;
    case HEM_NE:
        return seen != value;
    case HEM_GT:
        return seen > value;
    case HEM_GE:
        return seen >= value;
    case HEM_LT:
        return seen < value;
    case HEM_LE:
        return seen <= value;
    }
    return false;
}

HEM_DEV bool hemd_peer_exists(hem_dev_window w, int peer) {
#if defined(HEM_DEV_CHECK)
    return peer >= 0 && peer < w.size;
#else
    (void)w;
    (void)peer;
    return true;
#endif
}

/** How a hemd_peer begins. */
typedef struct hemd_head {
    uint32_t route;
    uint32_t near;
    unsigned char *data;
} hemd_head;

/** One load: with one for each field a put would wait for the memory twice before it begins. */
HEM_DEV hemd_head hemd_head_of(const hemd_peer *peer) {
    hemd_head head;
#if defined(__CUDACC__)
    const uint4 words = __ldg((const uint4 *)(const void *)peer);
    head.route = words.x;
    head.near = words.y;
    head.data = (unsigned char *)((uint64_t)words.w << 32 | words.z);
#else
    head.route = peer->route;
    head.near = peer->near;
    head.data = peer->data;
#endif
    return head;
}

HEM_DEV bool hemd_reached(const hemd_peer *peer) {
    uint32_t route = hemd_head_of(peer).route;
    return route == HEMD_ROUTE_DIRECT || route == HEMD_ROUTE_SELF;
}

/** Whether it is reached through the host thread of its own: proxy.h. */
HEM_DEV bool hemd_proxied(const hemd_peer *peer) {
    return HEMD_FIXED32(peer->route) == HEMD_ROUTE_PROXY;
}

HEM_DEV bool hemd_near(const hemd_peer *peer) {
    return hemd_head_of(peer).near != 0;
}

/** Whether a peer has `n` bytes at `offset`. */
HEM_DEV hem_status hemd_check_place(hem_dev_window w, int peer, uint64_t offset, uint64_t n) {
    if (!hemd_peer_exists(w, peer))
        return HEM_ERR_RANGE;
#if defined(HEM_DEV_CHECK)
    uint64_t bytes = HEMD_FIXED64(uint64_t, w.peers[peer].bytes);
    if (offset > bytes || n > bytes - offset)
        return HEM_ERR_RANGE;
#else
    (void)offset;
    (void)n;
#endif
    return HEM_OK;
}

/** Whether `n` bytes at `offset` of a peer can be used by loads and stores. */
HEM_DEV hem_status hemd_check_data(hem_dev_window w, int peer, uint64_t offset, uint64_t n) {
    hem_status status = hemd_check_place(w, peer, offset, n);
    if (status == HEM_OK && !hemd_reached(&w.peers[peer]))
        status = HEM_ERR_UNSUPPORTED;
    return status;
}

HEM_DEV hem_status hemd_check_aligned(uint64_t offset) {
#if defined(HEM_DEV_CHECK)
    if (offset % 8u != 0)
        return HEM_ERR_ARG;
#else
    (void)offset;
#endif
    return HEM_OK;
}

/** Whether the 64-bit word at `offset` of a peer can be used by loads and stores. */
HEM_DEV hem_status hemd_check_word(hem_dev_window w, int peer, uint64_t offset) {
    hem_status status = hemd_check_aligned(offset);
    return status == HEM_OK ? hemd_check_data(w, peer, offset, 8) : status;
}

HEM_DEV hem_status hemd_check_op(int op) {
#if defined(HEM_DEV_CHECK)
    int what = op & ~(int)HEM_SIGNAL_WEAK;
    if (what != HEM_SIGNAL_SET && what != HEM_SIGNAL_ADD)
        return HEM_ERR_ARG;
#else
    (void)op;
#endif
    return HEM_OK;
}

HEM_DEV bool hemd_signal_exists(hem_dev_window w, uint32_t id) {
#if defined(HEM_DEV_CHECK)
    return id < HEMD_FIXED32(w.home->signals);
#else
    (void)w;
    (void)id;
    return true;
#endif
}

HEM_DEV bool hemd_barrier_exists(hem_dev_window w, uint32_t id) {
#if defined(HEM_DEV_CHECK)
    return id < HEMD_FIXED32(w.home->barriers);
#else
    (void)w;
    (void)id;
    return true;
#endif
}

HEM_DEV bool hemd_counter_exists(hem_dev_window w, uint32_t counter) {
#if defined(HEM_DEV_CHECK)
    return counter < HEMD_FIXED32(w.home->counter_count);
#else
    (void)w;
    (void)counter;
    return true;
#endif
}

/** Whether signal `id` of `peer` exists; if kernels here reach it, hemd_out tells. */
HEM_DEV hem_status hemd_check_signal(hem_dev_window w, int peer, uint32_t id, int op) {
    if (!hemd_peer_exists(w, peer) || !hemd_signal_exists(w, id))
        return HEM_ERR_RANGE;
    return hemd_check_op(op);
}

/** Whether a kernel can look at signal `id`; CPUs wait for the higher ones. */
HEM_DEV hem_status hemd_check_look(hem_dev_window w, uint32_t id) {
    if (!hemd_signal_exists(w, id))
        return HEM_ERR_RANGE;
    return id < w.device_signals ? HEM_OK : HEM_ERR_UNSUPPORTED;
}

HEM_DEV hem_status hemd_check_want(hem_compare compare, int64_t timeout_ns) {
#if defined(HEM_DEV_CHECK)
    if (compare < HEM_EQ || compare > HEM_LE || timeout_ns < HEM_FOREVER)
        return HEM_ERR_ARG;
#else
    (void)compare;
    (void)timeout_ns;
#endif
    return HEM_OK;
}

HEM_DEV unsigned char *hemd_data(const hemd_peer *peer, uint64_t offset) {
    unsigned char *data = hemd_head_of(peer).data + offset;
    HEMD_GLOBAL(data);
    return data;
}

/**
 * Where this rank's kernels signal `id` at a peer, or NULL if they do not reach it. One load: what a
 * signal takes besides its store is seen in every round trip.
 */
HEM_DEV uint64_t *hemd_out(hem_dev_window w, const hemd_peer *peer, uint32_t id) {
    bool kernels = id < w.device_signals;
    hemd_slot *row = HEMD_FIXED64(hemd_slot *, *(kernels ? &peer->out : &peer->out_host));
    return row == NULL ? NULL : &row[kernels ? id : id - w.device_signals].kernel;
}

/** Whether CPUs wait for `id`. */
HEM_DEV bool hemd_out_host(hem_dev_window w, uint32_t id) {
    return id >= w.device_signals;
}

/** Whether who waits for `id` at a peer sees what is in the L2 cache of this GPU. A CPU does not. */
HEM_DEV bool hemd_out_near(hem_dev_window w, const hemd_peer *peer, uint32_t id) {
    return id < w.device_signals && hemd_near(peer);
}

HEM_DEV const hemd_slot *hemd_in(const hemd_peer *peer, uint32_t id) {
    return HEMD_FIXED64(const hemd_slot *, peer->in) + id;
}

/** Change a slot that this rank's kernels own; `host`: it is in host memory. */
HEM_DEV void hemd_change(uint64_t *word, int op, uint64_t value, bool host) {
    if ((op & HEM_SIGNAL_SET) != 0)
        hemd_store64_relaxed(word, value);
    else if (host)
        hemd_add64_host(word, value);
    else
        hemd_add64_relaxed(word, value);
}

/** The same after everything before. */
HEM_DEV void hemd_change_release(uint64_t *word, int op, uint64_t value, bool near, bool host) {
    if ((op & HEM_SIGNAL_SET) != 0) {
        hemd_store64_release(word, value, near);
    } else if (host) {
        hemd_fence(false);
        hemd_add64_host(word, value);
    } else {
        hemd_add64_release(word, value, near);
    }
}

/** Give an order whose bytes are there, by who claimed its slots. Its turn is filled in. */
HEM_DEV void hemd_ring_post(hemd_ring *queue, uint64_t first, const hemd_order *order) {
    hemd_order *at = &queue->orders[first % HEMD_RING_SLOTS];
    at->offset = order->offset;
    at->bytes = order->bytes;
    at->value = order->value;
    at->what = order->what;
    at->id = order->id;
    at->slots = order->slots;
    hemd_store64_release(&at->turn, first + 1u, false);
}

#endif
