/*
 * Collectives: what all ranks of a world do together.
 *
 * Every rank calls the same collectives of a world in the same order, with arguments that agree.
 * Counts are elements of `dtype`; they may be 0, and buffers may have any alignment. Results are
 * the same bits on every rank and in every run with as many ranks: contributions are combined in the
 * order of ranks. Sums of f16 and bf16 are kept in f32 until the end.
 *
 * Each collective has three forms. hem_allreduce and its like block. hem_coll_start starts the same
 * thing, described by a hem_coll, and gives an operation to wait for. hem_coll_plan makes an
 * operation that hem_op_start runs any number of times without allocating. Several may be in flight
 * on one world. Buffers are the library's from the start until the operation is done.
 *
 * `send` and `recv` may be the same address: then it works in place. They must not overlap
 * otherwise. Peers read library memory (a window or hem_memory_alloc) in place, and private memory,
 * too, where the system lets them (process_vm_readv); otherwise it is staged.
 *
 * Either every rank has the result or every rank has an error: if one rank's time limit passes, or a
 * rank dies, the collective fails for all. The next collective of the world works again, unless
 * somebody died; hem_world_shrink gives a world of those who live.
 *
 * With HEM_CHECK=1 in the environment of all ranks, every collective first compares what the ranks
 * called and returns HEM_ERR_MISMATCH on every rank, saying who called what; the world works on.
 * Without it, ranks that disagree get HEM_ERR_MISMATCH or run into the time limit, and so may all
 * later collectives of the world; two reductions over as many bytes are not told apart. All calls are
 * safe from any thread, if all ranks agree on the order.
 *
 * Buffers may be device memory (hem/cuda.h), on all ranks and all of them: a kernel does the
 * collective then, with the same bits as a result. A plan is what this is made for: hem_op_start_on puts it on a
 * CUDA stream. Making and freeing such an operation is collective, and takes much longer than running
 * it; hem_coll_run, hem_coll_start and the calls by name make and free one each time. Device memory is
 * recognised; where no device has been opened (hem_device_open), plans and starts find that out by
 * themselves, but the blocking calls do not. Ranks that disagree on where buffers are get
 * HEM_ERR_MISMATCH or run into the time limit. HEM_USER is HEM_ERR_UNSUPPORTED. Each rank hears for
 * itself how a run ended: one that failed for some may have succeeded for others, for which the next
 * one fails.
 */
#ifndef HEM_COLL_H
#define HEM_COLL_H

#include <hem/op.h>
#include <hem/stream.h>
#include <hem/window.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How two elements become one. */
typedef enum hem_reduction {
    HEM_SUM = 1,
    HEM_PROD,
    HEM_MIN,
    HEM_MAX,
    HEM_LAND, /**< logical: the result is 1 or 0 in the type */
    HEM_LOR,
    HEM_LXOR,
    HEM_BAND, /**< of the bits of integers, HEM_BYTE and HEM_BOOL */
    HEM_BOR,
    HEM_BXOR,
    /** Over pairs of 16 bytes: the value of type `dtype` at byte 0, its location, an int64_t, at
     *  byte 8. Of equal values the lower location wins. */
    HEM_MINLOC,
    HEM_MAXLOC,
    HEM_USER /**< hem_coll.user */
} hem_reduction;

/**
 * A reduction of the caller's: `into[i] = into[i] op from[i]` for `count` elements. It must be
 * associative; `into` comes from lower ranks than `from`. It is called without locks that the
 * caller could know of, but must not call the library.
 */
typedef void (*hem_reduce_fn)(void *into, const void *from, size_t count, void *arg);

typedef enum hem_coll_kind {
    HEM_BARRIER = 1,
    HEM_BROADCAST,
    HEM_REDUCE,
    HEM_ALLREDUCE,
    HEM_ALLGATHER,
    HEM_ALLGATHERV,
    HEM_REDUCE_SCATTER,
    HEM_REDUCE_SCATTERV,
    HEM_GATHER,
    HEM_GATHERV,
    HEM_SCATTER,
    HEM_SCATTERV,
    HEM_ALLTOALL,
    HEM_ALLTOALLV
} hem_coll_kind;

/**
 * What to do. Zero means default or not used; set `struct_size` to sizeof(hem_coll).
 *
 * BROADCAST: everybody's buffer is `recv`; the root may name its source in `send` instead.
 * In the kinds ending in V, `counts[r]` elements belong to rank r, at element `displs[r]`; without
 * `displs` they follow each other. GATHERV and SCATTERV: `count` is this rank's own, `counts` and
 * `displs` are read at the root only. ALLTOALLV: `counts` and `displs` are of `recv`, `send_counts`
 * and `send_displs` of `send`. The arrays are copied.
 */
typedef struct hem_coll {
    size_t struct_size;
    hem_coll_kind kind;
    hem_dtype dtype;
    hem_reduction op;
    int root;
    const void *send;
    void *recv;
    size_t count;
    const size_t *counts;
    const size_t *displs;
    const size_t *send_counts;
    const size_t *send_displs;
    /** With HEM_USER: the function, its argument, and the size of an element, at most 64 KiB; `dtype`
     *  is not used. Movements, too, may give an element size, any one, instead of a dtype. */
    hem_reduce_fn user;
    void *user_arg;
    size_t element;
    /** Time limit from each start, after which it fails for all. 0: none. On device buffers it is
     *  one of each wait in the kernel. */
    int64_t timeout_ns;
    /** HEM_MEMORY_DEVICE: the others have device buffers, although this rank may have none to name, as
     *  in a barrier, or where its counts are 0. HEM_MEMORY_HOST: by what `send` and `recv` are. */
    hem_memory_kind memory;
    /** On device buffers: the most blocks that its kernels take, as others need the rest of the GPU;
     *  of what ranks say, the least. 0: as many as are worth it, at most 32. */
    uint32_t blocks;
} hem_coll;

/**
 * Do what `coll` says and wait for it. `timeout_ns` counts, not the one in `coll`.
 *
 * Collective. @return HEM_OK; HEM_ERR_ARG, HEM_ERR_RANGE, HEM_ERR_UNSUPPORTED for an operation that
 *         the type does not have; HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_MISMATCH,
 *         HEM_ERR_MEMORY. Bad arguments that a rank finds by itself are told to nobody: the others
 *         run into their time limit, unless HEM_CHECK=1.
 */
HEM_API HEM_MUST_CHECK hem_status hem_coll_run(hem_world *world, const hem_coll *coll,
                                               int64_t timeout_ns);

/**
 * Start it. Does not block. `op_p` is to be freed. Collective in order, but waits for nobody. On device
 * buffers it makes an operation first, as hem_coll_plan does: it waits for all ranks then, and is not for
 * callbacks.
 */
HEM_API HEM_MUST_CHECK hem_status hem_coll_start(hem_world *world, const hem_coll *coll,
                                                 hem_op **op_p);

/**
 * Make a persistent operation of it, for hem_op_start. Local: talks to nobody. On device buffers it is
 * collective, for hem_op_start_on, too, and its own time limit is the world's; so not in a callback.
 */
HEM_API HEM_MUST_CHECK hem_status hem_coll_plan(hem_world *world, const hem_coll *coll,
                                                hem_op **op_p);

/**
 * Put a run of a plan on device buffers on a CUDA stream (hem_stream_cuda).
 *
 * Only launches: it does not wait, allocate or talk to anybody, and may be captured into a graph, of
 * which each replay is one more run. Runs of one operation follow each other, be it by stream order,
 * and come in the same order as those of other operations on all ranks; all ranks start each of them.
 * What is in `send` when the stream comes to it is what is sent; what follows on the stream has the
 * result. A failure ends the kernel: hem_op_status tells. Nothing is on a stream any more when the
 * operation is freed, which is collective. Local.
 *
 * @return HEM_OK; HEM_ERR_UNSUPPORTED for any other operation; HEM_ERR_ARG for a host stream, or while
 *         hem_op_start has it under way; HEM_ERR_CLOSED, HEM_ERR_REVOKED, HEM_ERR_SYSTEM; how an
 *         earlier run failed.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_start_on(hem_op *op, hem_stream *stream);

/**
 * How the runs of an operation on device buffers have ended so far, on this rank or on another one
 * that has said so: the first error sticks, and later runs do nothing.
 *
 * Of other operations, how the last one ended, if it has. Does not block. Local.
 * @return HEM_OK, HEM_ERR_PEER, HEM_ERR_TIMEOUT, HEM_ERR_REVOKED; HEM_ERR_ARG, HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_status(hem_op *op);

/* The blocking forms by name. `timeout_ns` as everywhere: nanoseconds, or HEM_FOREVER. */

/** Wait until every rank has come. What a rank wrote before is visible to all after. */
HEM_API HEM_MUST_CHECK hem_status hem_sync(hem_world *world, int64_t timeout_ns);

/** `count` elements of the root's `data` to everybody's `data`. */
HEM_API HEM_MUST_CHECK hem_status hem_broadcast(hem_world *world, void *data, size_t count,
                                                hem_dtype dtype, int root, int64_t timeout_ns);

/** Combine everybody's `send` into the root's `recv`, which is not used elsewhere. */
HEM_API HEM_MUST_CHECK hem_status hem_reduce(hem_world *world, const void *send, void *recv,
                                             size_t count, hem_dtype dtype, hem_reduction op,
                                             int root, int64_t timeout_ns);

/** Combine everybody's `send` into everybody's `recv`. */
HEM_API HEM_MUST_CHECK hem_status hem_allreduce(hem_world *world, const void *send, void *recv,
                                                size_t count, hem_dtype dtype, hem_reduction op,
                                                int64_t timeout_ns);

/** Everybody's `count` elements, in rank order, to everybody. In place: `send` is the own block
 *  inside of `recv`. */
HEM_API HEM_MUST_CHECK hem_status hem_allgather(hem_world *world, const void *send, void *recv,
                                                size_t count, hem_dtype dtype, int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_allgatherv(hem_world *world, const void *send, void *recv,
                                                 const size_t *counts, const size_t *displs,
                                                 hem_dtype dtype, int64_t timeout_ns);

/** Combine everybody's `send`, of size x `count` elements, and give each rank its block. In place:
 *  `recv` equals `send`, and the result is at its start. */
HEM_API HEM_MUST_CHECK hem_status hem_reduce_scatter(hem_world *world, const void *send, void *recv,
                                                     size_t count, hem_dtype dtype,
                                                     hem_reduction op, int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_reduce_scatterv(hem_world *world, const void *send,
                                                      void *recv, const size_t *counts,
                                                      hem_dtype dtype, hem_reduction op,
                                                      int64_t timeout_ns);

/** Everybody's elements to the root. In place: the root's `send` is its block inside of `recv`. */
HEM_API HEM_MUST_CHECK hem_status hem_gather(hem_world *world, const void *send, void *recv,
                                             size_t count, hem_dtype dtype, int root,
                                             int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_gatherv(hem_world *world, const void *send, size_t count,
                                              void *recv, const size_t *counts,
                                              const size_t *displs, hem_dtype dtype, int root,
                                              int64_t timeout_ns);

/** The root's blocks, one to each rank. In place: the root's `recv` is its block inside of `send`. */
HEM_API HEM_MUST_CHECK hem_status hem_scatter(hem_world *world, const void *send, void *recv,
                                              size_t count, hem_dtype dtype, int root,
                                              int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_scatterv(hem_world *world, const void *send,
                                               const size_t *counts, const size_t *displs,
                                               void *recv, size_t count, hem_dtype dtype, int root,
                                               int64_t timeout_ns);

/** Block r of `send` goes to rank r, block r of `recv` comes from it. */
HEM_API HEM_MUST_CHECK hem_status hem_alltoall(hem_world *world, const void *send, void *recv,
                                               size_t count, hem_dtype dtype, int64_t timeout_ns);
HEM_API HEM_MUST_CHECK hem_status hem_alltoallv(hem_world *world, const void *send,
                                                const size_t *send_counts,
                                                const size_t *send_displs, void *recv,
                                                const size_t *recv_counts,
                                                const size_t *recv_displs, hem_dtype dtype,
                                                int64_t timeout_ns);

/* Sparse exchange: messages of any size to some ranks, where the receivers do not know of them. */

/** One message: to whom and what, or from whom and what. */
typedef struct hem_parcel {
    int peer;
    size_t bytes;
    const void *data;
} hem_parcel;

/** What came. Freed by hem_sparse_free. */
typedef struct hem_sparse_result {
    hem_parcel *parcels; /**< ordered by sender, and as they were sent by each */
    size_t count;
} hem_sparse_result;

/**
 * Send any number of messages to any ranks, oneself included, and receive whatever the others send
 * here.
 *
 * Returns when all of them have come: every rank takes part, if only with `count` 0. Messages may
 * be empty. Collective.
 *
 * @return HEM_OK, HEM_ERR_RANGE for a bad rank, HEM_ERR_ARG, HEM_ERR_MEMORY; HEM_ERR_UNSUPPORTED if the
 *         rank's device is open and a message is in device memory; otherwise as hem_coll_run.
 */
HEM_API HEM_MUST_CHECK hem_status hem_sparse(hem_world *world, const hem_parcel *parcels,
                                             size_t count, hem_sparse_result *result_p,
                                             int64_t timeout_ns);

/** Start it. `parcels` and what they point to must stay; `*result_p` is written when it is done. */
HEM_API HEM_MUST_CHECK hem_status hem_sparse_start(hem_world *world, const hem_parcel *parcels,
                                                   size_t count, hem_sparse_result *result_p,
                                                   hem_op **op_p);

/** Free what came. NULL and an empty result are allowed. Local. */
HEM_API void hem_sparse_free(hem_sparse_result *result);

#ifdef __cplusplus
}
#endif
#endif
