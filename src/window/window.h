/* Inside of a window. */
#ifndef HEMI_WINDOW_WINDOW_H
#define HEMI_WINDOW_WINDOW_H

#include "core/wait.h"
#include "transport/transport.h"
#include "window/line.h"

#include <hem/device/reach.h>
#include <hem/window.h>

#define HEMI_WINDOW_MAGIC 0x776f646e69776d68u
/** Up to this many ranks a barrier is one exchange among all; beyond, groups of as many. */
#define HEMI_BARRIER_FLAT 16

/** This rank's own progress in a barrier. Epochs live in memory, not in handles. */
typedef struct hemi_barrier_state {
    uint64_t arrived; /**< how often this rank has entered */
    uint64_t passed;  /**< how often it has left */
    uint64_t told;    /**< how often it had entered and passed that on: in groups, or to kernels */
} hemi_barrier_state;

/** A peer's entry into a barrier, written by it alone: see `look` in window/line.h. */
typedef struct hemi_arrival {
    uint64_t epoch;
    uint64_t look;
} hemi_arrival;

/**
 * The start of a rank's control block in its part of the arena. What follows, in this order: the
 * barrier states and counters (own), the list of peers that have used this rank's rows, and one row
 * per rank. List and rows have no memory behind them until somebody uses them.
 */
typedef struct hemi_window_head {
    uint64_t magic;
    uint64_t id;
    hemi_name data;
    /** Length of the list. Counted up by a peer that adds itself. */
    uint32_t users __attribute__((aligned(HEMI_LINE)));
} __attribute__((aligned(HEMI_LINE))) hemi_window_head;

/** Offsets inside of a control block and a row; the same on all ranks. */
typedef struct hemi_window_layout {
    uint64_t states;
    uint64_t counters;
    uint64_t list; /**< starts on a page */
    uint64_t rows; /**< starts on a page */
    uint64_t row_bytes;
    uint64_t row_arrivals; /**< in a row: one per barrier id, then one per pair barrier id */
    uint64_t row_claims;   /**< in a row, owned by the target: claims, then pair states */
    uint64_t row_pairs;
    uint64_t tree;  /**< the words of large barriers; used at rank 0 only */
    uint64_t bytes; /**< of the whole control block */
} hemi_window_layout;

/** What a rank knows of a peer that it has used. */
typedef struct hemi_peer {
    uint32_t rank;
    hemi_rank_block *block; /**< its doorbell */
    hemi_region data;
    hemi_line *out; /**< this rank's lines at the peer */
    hemi_line *in;  /**< the peer's lines here */
    hemi_claim *out_claims;
    hemi_claim *in_claims;
    hemi_arrival *out_arrivals;
    hemi_arrival *in_arrivals;
    hemi_barrier_state *pairs; /**< this rank's own, one per barrier id */
    uint64_t sent_inline;      /**< ids that have ever carried a payload to the peer; atomic */
    hemi_shadow shadows[];
} hemi_peer;

struct hem_window {
    hemi_child child;
    hem_world *world; /**< NULL once it is closed */
    hemi_root *root;
    hemi_peer **peers;      /**< NULL where not used yet; set with release */
    uint32_t *controls;     /**< pages from the start of every rank's part to its control block */
    unsigned char *control; /**< this rank's own */
    unsigned char *memory;
    uint64_t bytes;
    uint64_t memory_offset; /**< 0: the caller's own memory */
    uint32_t rank;
    uint32_t size;
    uint32_t signals;
    uint32_t barriers;
    uint32_t mixed_barriers; /**< ids below are of CPUs and kernels together; 0 in host memory */
    uint32_t counters;
    uint32_t quick; /**< ranks that hemi_peer_ready serves: all, or none in device memory */
    bool own_memory;
    bool inner;     /**< of another object of the library, whose kernels load and store */
    bool named;     /**< the peers know where it is */
    bool destroyed; /**< by the caller; the world still keeps it */
    uint32_t lock; /**< among threads of this rank, for first uses and for finishing for the dead */
    uint64_t id;
    int64_t timeout_ns;
    hemi_window_layout layout;
    hem_buffer *buffers;
    size_t buffer_count;
    uint32_t device_signals; /**< ids below are for kernels to wait for; 0 in host memory */
    struct hemi_window_device *device; /**< NULL in host memory: window/device.h */
};

/** hem_window_create for whichever object `call` makes. */
hem_status hemi_window_create(hem_world *world, uint32_t call, const hem_window_options *options,
                              hem_window **window_p);

/** Compute the offsets. */
void hemi_window_lay_out(hemi_window_layout *layout, uint32_t ranks, uint32_t signals,
                         uint32_t barriers, uint32_t counters);

/** Copy and place named buffers. `*bytes` grows from 0 to what they need, or must hold them. */
hem_status hemi_buffers_place(const hem_window_options *options, hem_buffer **buffers_p,
                              uint64_t *bytes);
void hemi_buffers_free(hem_buffer *buffers, size_t count);

/** A number that is equal on two ranks if and only if (nearly) what must agree does. */
uint64_t hemi_window_fingerprint(const hem_window_options *options);

/** First use of a peer: reserve the rows, attach its memory. Takes a lock. */
hem_status hemi_peer_open(hem_window *window, uint32_t rank, hemi_peer **peer_p);

/** Where the control block of `rank` is in the arena. A part has fewer than 2^32 pages. */
static inline uint64_t hemi_window_control(const hem_window *window, uint32_t rank) {
    return hemi_arena_part(&window->root->arena, window->world->members[rank]) +
           (uint64_t)window->controls[rank] * HEMI_PAGE;
}

static inline void hemi_window_set_control(hem_window *window, uint32_t rank, uint64_t offset) {
    uint64_t part = hemi_arena_part(&window->root->arena, window->world->members[rank]);
    window->controls[rank] = (uint32_t)((offset - part) / HEMI_PAGE);
}

static inline hemi_barrier_state *hemi_window_states(const hem_window *window) {
    return (hemi_barrier_state *)(void *)(window->control + window->layout.states);
}

static inline uint64_t *hemi_window_counters(const hem_window *window) {
    return (uint64_t *)(void *)(window->control + window->layout.counters);
}

static inline hemi_window_head *hemi_window_own_head(const hem_window *window) {
    return (hemi_window_head *)(void *)window->control;
}

hem_status hemi_window_fail_rank(const hem_window *window, int rank, const char *call);
hem_status hemi_window_fail_range(const hemi_peer *peer, size_t offset, size_t n, const char *call);
hem_status hemi_window_fail_id(const hem_window *window, uint32_t id, uint32_t ids,
                               const char *what, const char *call);
hem_status hemi_window_fail_handle(const hem_window *window, const char *call);

/** Is this a window one can use? */
static inline hem_status hemi_window_check(const hem_window *window, const char *call) {
    if (__builtin_expect(window == NULL || window->world == NULL, 0))
        return hemi_window_fail_handle(window, call);
    return HEM_OK;
}

/** A world that was revoked before the call answers nothing else. */
static inline hem_status hemi_window_check_revoked(hem_window *window, const char *call) {
    return hemi_world_check_peer(window->world, window->rank, call);
}

/** Are `id` and `compare` something to wait for? */
hem_status hemi_window_check_want(const hem_window *window, uint32_t id, hem_compare compare,
                                  const char *call);

/** The answer of a test: what holds but is still being delivered does not hold yet. */
static inline hem_status hemi_tell_done(hem_status status, bool holds, bool *done_p) {
    if (holds && status == HEM_ERR_TIMEOUT) {
        *done_p = false;
        return HEM_OK;
    }
    if (status == HEM_OK)
        *done_p = holds;
    return status;
}

/** Find a peer, opening it on first use. Alive or not. */
static inline hem_status hemi_peer_find(hem_window *window, int rank, const char *call,
                                        hemi_peer **peer_p) {
    hem_status status = hemi_window_check(window, call);
    if (status != HEM_OK)
        return status;
    if (__builtin_expect(rank < 0 || (uint32_t)rank >= window->size, 0))
        return hemi_window_fail_rank(window, rank, call);
    /* Pairs with the release in hemi_peer_open. */
    hemi_peer *peer = __atomic_load_n(&window->peers[rank], __ATOMIC_ACQUIRE);
    if (__builtin_expect(peer == NULL, 0))
        return hemi_peer_open(window, (uint32_t)rank, peer_p);
    *peer_p = peer;
    return HEM_OK;
}

/**
 * The peer, if nothing at all stands in the way of using it: the window and the world are open, the
 * rank exists and was used before, nobody has died, and the memory is host memory. Otherwise NULL,
 * and the slow way finds out why.
 */
static inline hemi_peer *hemi_peer_ready(const hem_window *window, int rank) {
    if (__builtin_expect(window == NULL || window->world == NULL || (uint32_t)rank >= window->quick,
                         0))
        return NULL;
    const hem_world *world = window->world;
    uint32_t alarm = hemi_load32_acquire(&window->root->arena.head->alarm);
    if (__builtin_expect(alarm != hemi_load32_relaxed(&world->alarm_seen), 0))
        return NULL;
    return __atomic_load_n(&window->peers[rank], __ATOMIC_ACQUIRE);
}

/** Find a peer to do something to: it must be alive and the world not revoked. */
static inline hem_status hemi_peer_reach(hem_window *window, int rank, const char *call,
                                         hemi_peer **peer_p) {
    hem_status status = hemi_peer_find(window, rank, call, peer_p);
    if (status != HEM_OK)
        return status;
    return hemi_world_check_peer(window->world, (uint32_t)rank, call);
}

static inline hem_status hemi_peer_range(const hemi_peer *peer, size_t offset, const void *here,
                                         size_t n, const char *call) {
    if (__builtin_expect(
            n > peer->data.bytes || offset > peer->data.bytes - n || (here == NULL && n > 0), 0))
        return here == NULL && n > 0 ? hemi_fail(HEM_ERR_ARG, "%s: the buffer is NULL", call)
                                     : hemi_window_fail_range(peer, offset, n, call);
    return HEM_OK;
}

/** What kernels of `rank` have added to a signal that this CPU waits for. In device memory only. */
uint64_t hemi_device_seen(const hem_window *window, uint32_t rank, uint32_t id);

/** The slot of a peer: what its CPU has written, and what its kernels have. */
static inline uint64_t hemi_window_seen(const hem_window *window, const hemi_peer *peer,
                                        uint32_t id) {
    /* Pairs with the release in hemi_line_signal. */
    uint64_t seen = hemi_load64_acquire(&peer->in[id].value);
    if (__builtin_expect(window->device != NULL, 0))
        seen += hemi_device_seen(window, peer->rank, id);
    return seen;
}

/** The slow half of hemi_peer_settle. */
hem_status hemi_peer_settle_overlap(hem_window *window, hemi_peer *peer, size_t offset, size_t n);

/**
 * Before touching [offset, offset + n) of a peer directly: payloads of this rank that travel in a
 * signal's line and are for the same place must be in place first.
 */
static inline hem_status hemi_peer_settle(hem_window *window, hemi_peer *peer, size_t offset,
                                          size_t n) {
    if (__builtin_expect(hemi_load64_relaxed(&peer->sent_inline) == 0, 1))
        return HEM_OK;
    return hemi_peer_settle_overlap(window, peer, offset, n);
}

/** Put every payload of this rank that is on its way to `peer` in place. */
hem_status hemi_peer_settle_all(hem_window *window, hemi_peer *peer);

/** The ids whose payload may not be in place yet, as far as local memory tells; without `but`. */
uint64_t hemi_peer_unsettled(hemi_peer *peer, uint32_t but);

/**
 * Deliver what waits in line `id` of a peer, and what its `look` names.
 *
 * HEM_ERR_TIMEOUT if the peer is in the middle of moving it itself and does not get done within
 * `limit_ns`; HEM_ERR_MISMATCH if its place does not exist.
 */
hem_status hemi_peer_take(hem_window *window, hemi_peer *peer, uint32_t id, int64_t limit_ns);

/** The same for the ids of a `look` set. */
hem_status hemi_peer_take_set(hem_window *window, hemi_peer *peer, uint64_t look, int64_t limit_ns);

#endif
