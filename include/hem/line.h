/*
 * Lines: ranks in a row that pass payloads left and right.
 *
 * The left neighbour of rank r is rank r - 1, the right one r + 1; at the ends of an open line there
 * is nobody, in a ring the ends are neighbours. In each round every rank gives at most one payload
 * to each side and gets what its neighbours gave. Payloads are opaque and of any size, different in
 * each direction and round. The number of rounds need not be known ahead. A round may start before
 * the neighbours have finished the last one; several lines of one world do not disturb each other.
 *
 * What came in a round travels with its completion: in the result of the blocking call, or with the
 * operation of the started one. Nothing of it is overwritten by later rounds.
 *
 * Data may be in device memory on either side, whatever it is on the other, once this rank's device is
 * open (hem_device_open, or any device object before); as long as it is not, addresses are taken for
 * the host's. Metadata is always in host memory. Streams say when memory may be touched: nothing here
 * blocks the host for them, and when a round is done, what came in it is there, for the host and for
 * what is put on any stream from then on.
 */
#ifndef HEM_LINE_H
#define HEM_LINE_H

#include <hem/op.h>
#include <hem/stream.h>
#include <hem/window.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hem_line hem_line;

/** What an allocator gives out. */
typedef struct hem_line_buffer {
    void *data;
    hem_memory_kind kind;
    /** If not NULL: earlier work on `data` is done when this event is; nothing is received into it
     *  before. */
    hem_event *ready;
    void *own; /**< anything; comes back in hem_delivery */
    /** If not NULL: the same for what is on this stream, of a device or of the host, when the allocator
     *  returns; so that memory can be allocated in the order of a stream. */
    hem_stream *stream;
} hem_line_buffer;

/**
 * Get memory for `bytes` bytes that come from `peer`, with the metadata that came with them.
 *
 * Called by whichever thread makes progress, without a lock; it must not wait. Anything but HEM_OK
 * refuses the payload: the round fails with HEM_ERR_MEMORY here and at the peer. So does memory of a
 * kind that it is not, and device memory where the rank's device is not open.
 */
typedef hem_status (*hem_line_alloc_fn)(void *arg, int peer, const void *meta, size_t meta_bytes,
                                        size_t bytes, hem_line_buffer *buffer_p);

/** Take back what hem_line_alloc_fn gave, for a round that failed or a result that was dropped. */
typedef void (*hem_line_free_fn)(void *arg, hem_line_buffer *buffer, size_t bytes);

/** Zero means default everywhere; set `struct_size` to sizeof(hem_line_options). */
typedef struct hem_line_options {
    size_t struct_size;
    bool ring; /**< the same on all ranks */
    /** Where data is received. Both or none. Default: what was in host memory where it came from comes
     *  into memory of malloc; what was in device memory, into device memory of the library, or of
     *  malloc as well if this rank's device is not open. hem_line_release frees it. */
    hem_line_alloc_fn alloc;
    hem_line_free_fn release;
    void *alloc_arg;
    int64_t timeout_ns; /**< of creation. Default: the world's */
} hem_line_options;

/**
 * Make a line of all ranks. Collective. @return HEM_OK or an error, the same on all ranks.
 *
 * If this rank's device is open, some MiB of host memory are pinned for it, which may wait for kernels
 * (docs/gpu.md). If it is opened later, the first round that needs them does so.
 */
HEM_API HEM_MUST_CHECK hem_status hem_line_create(hem_world *world, const hem_line_options *options,
                                                  hem_line **line_p);

/**
 * Give a line up. NULL is allowed. Rounds that are under way are cancelled; neighbours that wait for
 * them get HEM_ERR_REVOKED. Results that were handed out stay. Local; in any order on the ranks.
 */
HEM_API hem_status hem_line_destroy(hem_line *line);

/** What goes to one side. */
typedef struct hem_payload {
    const void *meta;
    size_t meta_bytes; /**< at most 1 MiB */
    const void *data;
    size_t data_bytes;
} hem_payload;

/** What came from one side. */
typedef struct hem_delivery {
    bool present; /**< false: the neighbour gave nothing, or there is none; not an empty payload */
    void *meta;
    size_t meta_bytes;
    hem_line_buffer buffer; /**< where data is; `data` is NULL if there are 0 bytes */
    size_t data_bytes;
} hem_delivery;

/** What a round gave. To be given back with hem_line_release. */
typedef struct hem_line_result {
    hem_delivery from_left;
    hem_delivery from_right;
    uint64_t round; /**< 1, 2, 3 ... */
    /** All ranks have said that they are done. True in the same round on every rank: the one in which
     *  the last rank said so, plus the number of ranks minus 1. */
    bool all_done;
} hem_line_result;

/** What this rank does in a round. Zero means nothing; set `struct_size`. */
typedef struct hem_line_round {
    size_t struct_size;
    const hem_payload *to_left; /**< NULL: nothing; not the same as 0 bytes */
    const hem_payload *to_right;
    bool done; /**< from now on; cannot be taken back */
    /** If not NULL, a stream of the device (hem_stream_cuda) or of the host: data of the payloads is
     *  ready when all that is on the stream now is done. What the library allocates of a device for
     *  this round is freed in the order of this stream, if it is one of the device: after what is on it
     *  when hem_line_release is called. The stream must stay until then. Not one that is captured. */
    hem_stream *stream;
} hem_line_round;

/**
 * Pass payloads and wait for those of the neighbours.
 *
 * `round` may be NULL: nothing to nobody. Returns when this rank's payloads have been taken and the
 * neighbours' have come. At the ends of an open line payloads outwards go nowhere. Local to the
 * neighbours: every rank calls it once per round.
 *
 * @return HEM_OK; HEM_ERR_MEMORY if an allocator refused, here or at a neighbour; HEM_ERR_PEER,
 *         HEM_ERR_TIMEOUT, HEM_ERR_REVOKED, HEM_ERR_ARG, HEM_ERR_CLOSED. After an error the line is
 *         broken: later rounds return HEM_ERR_REVOKED, here and at the neighbours.
 */
HEM_API HEM_MUST_CHECK hem_status hem_line_exchange(hem_line *line, const hem_line_round *round,
                                                    hem_line_result *result_p, int64_t timeout_ns);

/**
 * Start a round. Does not block, not for the stream of the round either. Payloads (not the structs)
 * must stay until it is done. Rounds that are started one after the other happen in that order.
 *
 * @return as hem_line_exchange, for what is found at once; HEM_ERR_UNSUPPORTED, HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_line_start(hem_line *line, const hem_line_round *round,
                                                 hem_op **op_p);

/**
 * Take the result of a started round that is done, once. Also from its callback.
 *
 * What is not taken goes with hem_op_free. Local. @return how the round ended; HEM_ERR_ARG if it is
 *         not done, not of a line, or was taken already.
 */
HEM_API HEM_MUST_CHECK hem_status hem_line_take(hem_op *op, hem_line_result *result_p);

/**
 * Free what came in a round. Buffers of the caller's allocator go back to it, unless `data` was set
 * to NULL, which keeps them. NULL and an empty result are allowed. Local; the line may be gone.
 *
 * Device memory of the library is freed in the order of the round's stream; without one, nothing uses
 * it any more. Kept, it is the caller's: for CUDA cudaFreeAsync frees it. What is neither released nor
 * kept when the line's world is closed is freed then.
 */
HEM_API void hem_line_release(hem_line_result *result);

/* Several hops at once: rows sorted over the ranks, of which each rank needs some before and after
 * its own. */

/** What a rank has and how far it must look. Zero means nothing; set `struct_size`. */
typedef struct hem_reach_options {
    size_t struct_size;
    uint64_t rows;    /**< of this rank; ranks' rows follow each other */
    size_t row_bytes; /**< of each row; the same on all ranks */
    /** By count: so many rows before the first own one, and after the last. */
    uint64_t back_rows;
    uint64_t ahead_rows;
    /** By key, if not NULL: `rows` keys, never falling, also from rank to rank. Then all rows with
     *  key >= first own key - back_key, and all with key <= last own key + ahead_key. All ranks
     *  with rows or none. */
    const int64_t *keys;
    int64_t back_key;
    int64_t ahead_key;
    int64_t timeout_ns; /**< of the set-up. Default: the world's */
} hem_reach_options;

typedef struct hem_reach hem_reach;

/**
 * Find out who needs which rows of whom, however many ranks away, in one collective.
 *
 * Collective. Keys are not kept. @return HEM_OK; HEM_ERR_ARG, HEM_ERR_RANGE if keys fall or counts
 *         overflow; HEM_ERR_MISMATCH; otherwise as hem_pattern_grid. The same on all ranks.
 */
HEM_API HEM_MUST_CHECK hem_status hem_reach_plan(hem_world *world, const hem_reach_options *options,
                                                 hem_reach **reach_p);

/** Rows that this rank gets: before and after its own. Less than asked for at the ends. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_reach_rows(const hem_reach *reach, uint64_t *before_p,
                                                 uint64_t *after_p);

/**
 * Fetch the rows: `before` and `after` get as many as hem_reach_rows says, in order. Any number of
 * times, with other data each time. All of it is in host memory. Collective. @return as hem_coll_run;
 *         HEM_ERR_UNSUPPORTED for device memory.
 */
HEM_API HEM_MUST_CHECK hem_status hem_reach_run(hem_reach *reach, const void *rows, void *before,
                                                void *after, int64_t timeout_ns);

/** Start it. Does not block. The buffers must stay until it is done. One at a time. */
HEM_API HEM_MUST_CHECK hem_status hem_reach_start(hem_reach *reach, const void *rows, void *before,
                                                  void *after, hem_op **op_p);

/** Free it. NULL is allowed. Local. */
HEM_API hem_status hem_reach_destroy(hem_reach *reach);

#ifdef __cplusplus
}
#endif
#endif
