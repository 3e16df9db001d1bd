/*
 * A window: memory on every rank that peers put into, get from and signal.
 *
 * What a put guarantees, what a signal publishes and what flush means stands in
 * docs/memory-model.md. In one line: whoever sees a signal sees the bytes that were put before it.
 *
 * Every call on a window returns HEM_ERR_CLOSED after its world was closed, and every call that
 * reaches a peer or waits returns HEM_ERR_REVOKED after hem_world_revoke. The first use of a peer
 * can fail with HEM_ERR_MEMORY. Time limits are nanoseconds, or HEM_FOREVER. Waiting calls end
 * with HEM_ERR_PEER when a rank that they depend on is dead or has closed the world. Puts and
 * signals to a rank that has closed are not an error; nobody sees them.
 */
#ifndef HEM_WINDOW_H
#define HEM_WINDOW_H

#include <hem/memory.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hem_window hem_window;

/** Element types of named buffers. The number after the letter is the size in bits. */
typedef enum hem_dtype {
    HEM_BYTE = 1,
    HEM_I8,
    HEM_I16,
    HEM_I32,
    HEM_I64,
    HEM_U8,
    HEM_U16,
    HEM_U32,
    HEM_U64,
    HEM_F16,
    HEM_BF16,
    HEM_F32,
    HEM_F64,
    HEM_C64,
    HEM_C128,
    HEM_BOOL
} hem_dtype;

/** The size of an element in bytes, or 0 for a number that is no type. Local. */
HEM_API size_t hem_dtype_size(hem_dtype dtype);

/** A named piece of a window. `offset` is filled in by the library. */
typedef struct hem_buffer {
    const char *name;
    hem_dtype dtype;
    size_t count;
    size_t offset;
} hem_buffer;

/** Zero means default everywhere; set `struct_size` to sizeof(hem_window_options). */
typedef struct hem_window_options {
    size_t struct_size;
    /** Bytes on this rank; ranks may differ, 0 is allowed. With `buffers`, 0 means just enough. */
    size_t bytes;
    /** The caller's own memory of `bytes` bytes. Then there are no signals and no atomics. All
     *  ranks or none, so that a rank with 0 bytes passes some address, too. */
    void *memory;
    /** Named buffers, the same names and types in the same order on all ranks; counts may differ.
     *  Each starts at a multiple of `align`. */
    const hem_buffer *buffers;
    size_t buffer_count;
    /** Alignment of buffers, a power of two up to 4096. Default 64. */
    size_t align;
    /** Number of signal ids, barrier ids and counter ids; the same on all ranks. Defaults 16, 4, 4.
     *  At most 4096, 256 and 4096. */
    uint32_t signals;
    uint32_t barriers;
    uint32_t counters;
    /** Time limit of creation and destruction. Default: the world's. */
    int64_t timeout_ns;
    /** Where `bytes` are: in host memory, or on this rank's GPU (then see hem/cuda.h). The same on
     *  all ranks. Device memory of the caller's own, in `memory`, may carry signals. */
    hem_memory_kind kind;
    /** Of a window in device memory: ids below this are for kernels to wait for, the others for
     *  CPUs. Either may signal any id. Default: all but the last 4. At most `signals`. */
    uint32_t device_signals;
    /** Ranks whose memory kernels of this rank reach; NULL: all. Of a window in device memory. Those
     *  that cannot be mapped are reached through their hosts, by puts, signals and barriers. */
    const int *device_peers;
    size_t device_peer_count;
    /** Ranks that are to be reached through their hosts although they could be mapped. */
    const int *proxy_peers;
    size_t proxy_peer_count;
    /** How long at a time kernels' puts, signals, flushes and entries into barriers, which have no time limit
     *  of their own, wait where a rank is reached through its host, for room or for what is to be done there
     *  first. Default: for ever, until it is gone or the world revoked. */
    int64_t proxy_timeout_ns;
    /** Of a window in device memory: barrier ids below this are mixed. A rank enters those each time by its
     *  CPU or by a kernel, as it likes, and either may leave, of two ranks, too; the caller sees to it that the
     *  entries and waits of one rank follow each other. The other ids are two barriers each, one of CPUs and one of
     *  kernels. Default 0. At most `barriers`. */
    uint32_t mixed_barriers;
} hem_window_options;

/**
 * Create a window over all ranks of `world`.
 *
 * Memory is reserved and zeroed, so that a later put cannot fail for want of it. `options` is not
 * kept.
 *
 * Collective. @return HEM_OK; HEM_ERR_ARG, HEM_ERR_RANGE, HEM_ERR_MISMATCH, HEM_ERR_MEMORY,
 *         HEM_ERR_PEER, HEM_ERR_TIMEOUT, HEM_ERR_SYSTEM: the same on all ranks, naming the rank
 *         that is at fault.
 */
HEM_API HEM_MUST_CHECK hem_status hem_window_create(hem_world *world,
                                                    const hem_window_options *options,
                                                    hem_window **window_p);

/**
 * Destroy a window. NULL is allowed.
 *
 * Waits, up to the time limit, until every living rank has called it, then frees the memory. The
 * handle is gone whatever the status says; the memory goes with the world where not all came. After
 * its world was closed it is local and returns HEM_OK.
 *
 * Collective. @return HEM_OK, HEM_ERR_PEER if a rank died, HEM_ERR_REVOKED, HEM_ERR_TIMEOUT,
 *         HEM_ERR_MISMATCH if another rank destroyed another window.
 */
HEM_API hem_status hem_window_destroy(hem_window *window);

/** This rank's memory, or NULL after close. Local. From any thread. */
HEM_API void *hem_window_memory(const hem_window *window);

/** The bytes that `rank` has in the window, or 0 for a bad rank. Local. From any thread. */
HEM_API size_t hem_window_bytes(hem_window *window, int rank);

/**
 * Where byte `offset` of `peer`'s memory is mapped here, or NULL if it is not or does not exist.
 *
 * Loads and stores through it are the caller's to order: flush first what you put, signal after.
 * Valid until the window is destroyed or its world closed. Local. From any thread.
 */
HEM_API void *hem_window_peer_address(hem_window *window, int peer, size_t offset);

/**
 * The address here of what `local`, an address in this rank's own window memory, is in `peer`'s
 * window at the same offset. NULL if it is not mapped or outside. Local. From any thread.
 */
HEM_API void *hem_window_translate(hem_window *window, const void *local, int peer);

/** Find a named buffer of this rank. Local. @return HEM_OK, or HEM_ERR_RANGE if there is none. */
HEM_API HEM_MUST_CHECK hem_status hem_window_buffer(hem_window *window, const char *name,
                                                    hem_buffer *buffer_p);

/* Data. */

/**
 * Put `n` bytes at `offset` of `peer`'s window.
 *
 * Returns when `src` may be reused. The bytes are visible to `peer` when it sees a later strong
 * signal or barrier of this rank, and to everybody after hem_flush. Puts of one thread to the same
 * place of a peer happen in order.
 *
 * Local. From any thread. @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_PEER, HEM_ERR_SYSTEM;
 *         HEM_ERR_TIMEOUT if the peer is stopped in the middle of moving an earlier short payload
 *         to the same place.
 */
HEM_API HEM_MUST_CHECK hem_status hem_put(hem_window *window, int peer, size_t offset,
                                          const void *src, size_t n);

/**
 * Get `n` bytes from `offset` of `peer`'s window into `dst`. Returns when they are there.
 *
 * Sees every earlier put of this thread to the same place. Otherwise as hem_put.
 */
HEM_API HEM_MUST_CHECK hem_status hem_get(hem_window *window, int peer, size_t offset, void *dst,
                                          size_t n);

/**
 * Put the 64-bit `value` at `offset`, which must be a multiple of 8, in one piece: whoever loads
 * the word meanwhile, a kernel, too, sees the old or the new one; but for windows over managed memory, and over device
 * memory that does not begin at a multiple of 8. HEM_ERR_UNSUPPORTED over the caller's own host memory, and where a
 * GPU does not store words in the order of a stream; HEM_ERR_ARG if misaligned. As hem_put otherwise.
 */
HEM_API HEM_MUST_CHECK hem_status hem_put_value(hem_window *window, int peer, size_t offset,
                                                uint64_t value);

/**
 * Add to a 64-bit word of `peer`'s window, atomically for all ranks. `offset` is a multiple of 8.
 *
 * Acquires and releases what is in place; short payloads of hem_put_signal need hem_flush first.
 * `old_p` may be NULL. Local. From any thread.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_ARG if misaligned, HEM_ERR_UNSUPPORTED over the caller's
 *         own memory and in device memory (kernels have them there), HEM_ERR_PEER.
 */
HEM_API HEM_MUST_CHECK hem_status hem_fetch_add(hem_window *window, int peer, size_t offset,
                                                uint64_t add, uint64_t *old_p);

/** Store `desired` if the word equals `expected`; `old_p` gets what was there. As hem_fetch_add. */
HEM_API HEM_MUST_CHECK hem_status hem_compare_swap(hem_window *window, int peer, size_t offset,
                                                   uint64_t expected, uint64_t desired,
                                                   uint64_t *old_p);

/**
 * Start a put and add 1 to local counter `counter` when `src` may be reused.
 *
 * Does not block. Local. From any thread. @return as hem_put; HEM_ERR_RANGE for a bad counter. On
 *         an error the counter does not move.
 */
HEM_API HEM_MUST_CHECK hem_status hem_put_start(hem_window *window, int peer, size_t offset,
                                                const void *src, size_t n, uint32_t counter);

/** Start a get and add 1 to `counter` when `dst` is filled. As hem_put_start. */
HEM_API HEM_MUST_CHECK hem_status hem_get_start(hem_window *window, int peer, size_t offset,
                                                void *dst, size_t n, uint32_t counter);

/**
 * Make everything that this thread has put to `peer` visible to every rank.
 *
 * Returns when it is. Needed before telling a third rank of it; a strong signal to `peer` itself
 * needs no flush. Local. @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_PEER.
 */
HEM_API HEM_MUST_CHECK hem_status hem_flush(hem_window *window, int peer);

/** hem_flush for every peer. */
HEM_API HEM_MUST_CHECK hem_status hem_flush_all(hem_window *window);

/* Signals: one 64-bit slot per (peer, id) on every rank, written by that peer alone. */

typedef enum hem_signal_op {
    HEM_SIGNAL_SET = 1,  /**< the slot becomes the value */
    HEM_SIGNAL_ADD = 2,  /**< the value is added to the slot */
    HEM_SIGNAL_WEAK = 16 /**< or-ed in: publishes only the put it comes with, not earlier ones */
} hem_signal_op;

typedef enum hem_compare {
    HEM_EQ = 1,
    HEM_NE,
    HEM_GT,
    HEM_GE,
    HEM_LT,
    HEM_LE
} hem_compare;

/**
 * Put `n` bytes at `offset` of `peer`'s window, then add `value` to signal `id` there.
 *
 * Returns when `src` may be reused. Whoever sees the signal sees the bytes, and all that this
 * thread put to `peer` before. Up to 32 bytes travel in the signal's own cache line.
 * Local. Safe from several threads on distinct signals.
 *
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED over the caller's own memory, or
 *         HEM_ERR_PEER if `peer` is dead.
 */
HEM_API HEM_MUST_CHECK hem_status hem_put_signal(hem_window *window, int peer, size_t offset,
                                                 const void *src, size_t n, uint32_t id,
                                                 uint64_t value);

/** hem_put_signal with SET or ADD, weak or strong. @return also HEM_ERR_ARG for a bad `op`. */
HEM_API HEM_MUST_CHECK hem_status hem_put_signal_op(hem_window *window, int peer, size_t offset,
                                                    const void *src, size_t n, uint32_t id, int op,
                                                    uint64_t value);

/** hem_put_signal that adds 1 to local `counter` when `src` may be reused. Does not block. */
HEM_API HEM_MUST_CHECK hem_status hem_put_signal_start(hem_window *window, int peer, size_t offset,
                                                       const void *src, size_t n, uint32_t id,
                                                       uint64_t value, uint32_t counter);

/**
 * Set this rank's slot `id` at `peer`, or add to it. Publishes what was put to `peer` before.
 *
 * Does not block. Local. Safe from several threads on distinct signals.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_ARG, HEM_ERR_UNSUPPORTED, HEM_ERR_PEER.
 */
HEM_API HEM_MUST_CHECK hem_status hem_signal(hem_window *window, int peer, uint32_t id, int op,
                                             uint64_t value);

/** hem_signal to every rank but this one. Tries all, returns the first error. */
HEM_API HEM_MUST_CHECK hem_status hem_signal_all(hem_window *window, uint32_t id, int op,
                                                 uint64_t value);

/**
 * Wait until the sum of all ranks' slots `id`, one's own included, compares to `value`. Takes
 * time in the ranks that have used the window, not in all.
 *
 * Every put that came with or before the signals seen is visible afterwards.
 * Local. From several threads on distinct ids.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER if any rank of the world is dead or all others have
 *         closed it, HEM_ERR_REVOKED, HEM_ERR_RANGE, HEM_ERR_ARG, HEM_ERR_UNSUPPORTED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_wait_signal(hem_window *window, uint32_t id,
                                                  hem_compare compare, uint64_t value,
                                                  int64_t timeout_ns);

/** Wait for the slot of one peer; constant time. HEM_ERR_PEER only if that one is dead. */
HEM_API HEM_MUST_CHECK hem_status hem_wait_signal_from(hem_window *window, int peer, uint32_t id,
                                                       hem_compare compare, uint64_t value,
                                                       int64_t timeout_ns);

/** One of several things to wait for. */
typedef struct hem_signal_want {
    int peer;
    uint32_t id;
    hem_compare compare;
    uint64_t value;
} hem_signal_want;

/**
 * Wait until one of `count` wants holds; `which_p` says which, the first in the list if several do.
 *
 * HEM_ERR_PEER if none holds and any of their peers is dead; `which_p` then names that want.
 */
HEM_API HEM_MUST_CHECK hem_status hem_wait_signal_any(hem_window *window,
                                                      const hem_signal_want *wants, size_t count,
                                                      size_t *which_p, int64_t timeout_ns);

/** The test forms: do not block; `done_p` says whether it held. HEM_ERR_PEER as the waits. */
HEM_API HEM_MUST_CHECK hem_status hem_test_signal(hem_window *window, uint32_t id,
                                                  hem_compare compare, uint64_t value,
                                                  bool *done_p);
HEM_API HEM_MUST_CHECK hem_status hem_test_signal_from(hem_window *window, int peer, uint32_t id,
                                                       hem_compare compare, uint64_t value,
                                                       bool *done_p);
HEM_API HEM_MUST_CHECK hem_status hem_test_signal_any(hem_window *window,
                                                      const hem_signal_want *wants, size_t count,
                                                      size_t *which_p, bool *done_p);

/**
 * Read the sum, or one peer's slot. What came with the value read is visible. Does not wait for
 * signals. @return also HEM_ERR_TIMEOUT if the peer was stopped while it moved such a payload
 *         itself.
 */
HEM_API HEM_MUST_CHECK hem_status hem_read_signal(hem_window *window, uint32_t id,
                                                  uint64_t *value_p);
HEM_API HEM_MUST_CHECK hem_status hem_read_signal_from(hem_window *window, int peer, uint32_t id,
                                                       uint64_t *value_p);

/* Counters: local completion of the _start forms. */

/** Read, or wait until counter `counter` is at least `value`. Counters only grow. From any thread. */
HEM_API HEM_MUST_CHECK hem_status hem_read_counter(hem_window *window, uint32_t counter,
                                                   uint64_t *value_p);
HEM_API HEM_MUST_CHECK hem_status hem_wait_counter(hem_window *window, uint32_t counter,
                                                   uint64_t value, int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_test_counter(hem_window *window, uint32_t counter,
                                                   uint64_t value, bool *done_p);

/* Barriers: by id, reusable for ever, ids in any interleaving. */

/**
 * Wait until every rank has entered barrier `id` as often as this one.
 *
 * Everything any rank put to this one before it entered is visible afterwards. After a timeout the
 * arrival stands: hem_barrier_wait takes it up again.
 * Collective. From several threads on distinct ids.
 * Into mixed ids (hem_window_options.mixed_barriers) kernels may enter, and leave, instead. After an error of
 * the call that enters, whoever called goes on with it.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_RANGE; of mixed ids also
 *         HEM_ERR_UNSUPPORTED, HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_barrier(hem_window *window, uint32_t id, int64_t timeout_ns);

/**
 * The two halves, and the question. Each arrival is followed by one wait that succeeds, or by one
 * test that says done, which then stands for the wait.
 */
HEM_API HEM_MUST_CHECK hem_status hem_barrier_arrive(hem_window *window, uint32_t id);
HEM_API HEM_MUST_CHECK hem_status hem_barrier_wait(hem_window *window, uint32_t id,
                                                   int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_barrier_test(hem_window *window, uint32_t id, bool *done_p);

/** The same between this rank and `peer` alone; its ids are apart from those of hem_barrier. */
HEM_API HEM_MUST_CHECK hem_status hem_barrier_peer(hem_window *window, int peer, uint32_t id,
                                                   int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_barrier_peer_arrive(hem_window *window, int peer,
                                                          uint32_t id);
HEM_API HEM_MUST_CHECK hem_status hem_barrier_peer_wait(hem_window *window, int peer, uint32_t id,
                                                        int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_barrier_peer_test(hem_window *window, int peer, uint32_t id,
                                                        bool *done_p);

#ifdef __cplusplus
}
#endif
#endif
