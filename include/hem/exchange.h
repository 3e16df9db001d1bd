/*
 * Exchanges: patterns bound to fields, planned once and run for ever.
 *
 * A run moves the values of owners into halos (forward), or combines the values in halos back into
 * owners (reverse). However many fields there are, one message goes to each neighbour. Values are
 * packed straight into the neighbour's memory; where a field lies in library memory (a window or
 * hem_memory_alloc), or ranks are threads, large ones move once, from the owner's field to the halo.
 *
 * All ranks run the same exchanges with the same arguments, each exchange as often as the others.
 * Between start and finish of a forward run owners' points must not be written and halos not be read
 * or written; of a reverse run nothing may be touched. Different exchanges may be in flight at the
 * same time, also of the same pattern. Nothing is allocated, searched or locked in a run, but for the
 * lock of this rank's engine.
 *
 * A run that fails, because a neighbour died, the world was revoked or a time limit passed, breaks
 * its exchange: neighbours that are in a run get HEM_ERR_REVOKED, as does every later run, and so it
 * spreads. Other exchanges of the world are not concerned; hem_world_revoke ends all.
 *
 * Fields may be in device memory (hem/cuda.h), of some ranks or of all, beside fields of the host. If
 * one field of one rank is, kernels do the whole exchange: two for each run, whatever the number of
 * fields and neighbours. Everything here is the same then, but that the first run of each `how` makes
 * tables, and so allocates; that of everything, forward, is made with the exchange. In stream order
 * such an exchange goes on streams of the device: hem_stream_cuda.
 */
#ifndef HEM_EXCHANGE_H
#define HEM_EXCHANGE_H

#include <hem/coll.h>
#include <hem/pattern.h>
#include <hem/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hem_exchange hem_exchange;

enum {
    /** The field is only read: its halos are not filled, and a reverse run sends them but leaves the
     *  field as it is. Its memory may be read-only. */
    HEM_FIELD_READ_ONLY = 1,
    /** Two components are a vector: see hem_pattern_sphere. */
    HEM_FIELD_VECTOR = 2
};

/**
 * Values on the points of one domain, wherever they lie. Zero means default; set `struct_size`.
 *
 * A value is one element, or `levels` x `components` of them. Strides are bytes and positive. A grid
 * of n dimensions has n strides; a mesh has one, from point to point. All zero: elements are
 * contiguous, in C order (the last dimension next to each other), with levels, then components
 * innermost.
 */
typedef struct hem_field {
    size_t struct_size;
    /** The element of storage index 0 of every dimension, which on grids is the lowest halo point
     *  unless `origin` says otherwise; of level 0 and component 0. Device memory is recognised;
     *  such as the host can read, too, once the rank's device is open (hem_device_open). */
    void *memory;
    size_t bytes;    /**< of that memory, to be checked; 0: not known */
    hem_dtype dtype; /**< or 0, and `element` says how large an element is */
    size_t element;
    size_t domain; /**< which of this rank's domains of the pattern */
    int64_t stride[HEM_DIMS];
    /** Grids: the storage index of the first point that the domain owns. Used with `has_origin`,
     *  for arrays with more room around than the halo. */
    int64_t origin[HEM_DIMS];
    bool has_origin;
    size_t levels; /**< 0 means 1, as for components */
    size_t components;
    int64_t level_stride;
    int64_t component_stride;
    unsigned flags; /**< HEM_FIELD_ bits */
} hem_field;

/** One field of an exchange. */
typedef struct hem_binding {
    const hem_pattern *pattern;
    hem_field field;
    /** Which field this is, 1 to 64, the same on all ranks and domains. 0: counted, so that the k-th
     *  binding of a domain is field k of its pattern. Either all bindings of a pattern or none. */
    uint32_t number;
} hem_binding;

/**
 * How values get into halos in device memory, in forward runs. All give the same bytes. Halos in host
 * memory and reverse runs are always as with HEM_EXCHANGE_STAGED, where the way allows them.
 */
typedef enum hem_exchange_way {
    /** Through memory of the library: packed by the start, unpacked by the finish. A start waits for
     *  nobody, and halos stay as they are until the finish. The default. */
    HEM_EXCHANGE_STAGED = 0,
    /** As HEM_EXCHANGE_DIRECT where kernels of the owner can reach a halo and it has pieces of at
     *  least 32 bytes side by side; elsewhere staged. */
    HEM_EXCHANGE_BEST,
    /** Straight into the neighbours' halos: nothing is unpacked. A start gives this rank's halos free,
     *  and waits for the starts of its neighbours. So ranks that start several such exchanges on one
     *  stream do it in the same order, and what reads old halos comes before the start. */
    HEM_EXCHANGE_DIRECT,
    /** As HEM_EXCHANGE_DIRECT, by copies and memory operations of streams, which the GPUs must have: no
     *  kernel is launched. All fields are in device memory that neighbours reach, at most 4096 sets of
     *  rows are copied by a rank, and no vector changes its sign; else creation is refused. Reverse runs
     *  are HEM_ERR_UNSUPPORTED. What neighbours run is not compared, nor whether runs on different
     *  streams are ordered: see hem_exchange(3). */
    HEM_EXCHANGE_ENGINES
} hem_exchange_way;

/** Zero means default everywhere; set `struct_size` to sizeof(hem_exchange_options). */
typedef struct hem_exchange_options {
    size_t struct_size;
    const hem_binding
        *bindings; /**< each domain of each pattern that is bound has all its fields */
    size_t count;
    int64_t setup_timeout_ns; /**< Default: the world's */
    int64_t run_timeout_ns;   /**< of a run from its start. Default: none */
    /** The same on all ranks. Of a way that is asked for all fields in device memory must allow it. */
    hem_exchange_way way;
} hem_exchange_options;

/**
 * Plan an exchange. The options are not kept, the patterns may be destroyed; the fields' memory must
 * stay.
 *
 * Collective. @return HEM_OK; HEM_ERR_ARG, HEM_ERR_RANGE for a field that does not fit its domain;
 *         HEM_ERR_MISMATCH if ranks bind different fields, types or levels, or want another way;
 *         HEM_ERR_UNSUPPORTED if the way that was asked for is not possible; HEM_ERR_LIMIT;
 *         HEM_ERR_MEMORY, HEM_ERR_PEER, HEM_ERR_TIMEOUT, HEM_ERR_REVOKED. On all ranks the same.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_create(hem_world *world,
                                                      const hem_exchange_options *options,
                                                      hem_exchange **exchange_p);

/** What halo values do to the owner's in a reverse run. */
typedef enum hem_combine {
    HEM_COMBINE_SUM = 1,
    HEM_COMBINE_MIN,
    HEM_COMBINE_MAX,
    HEM_COMBINE_REPLACE /**< of several halos the one of the highest rank, then domain, wins */
} hem_combine;

/** Sides of grids, for hem_exchange_how. */
#define HEM_SIDE_LOW(dim)  (1u << (2 * (dim)))
#define HEM_SIDE_HIGH(dim) (2u << (2 * (dim)))

/** What one run does, the same on all ranks. Zero means default; set `struct_size`. */
typedef struct hem_exchange_how {
    size_t struct_size;
    /** 0: forward. Otherwise reverse: halo values are combined into the owners', in the order of
     *  ranks and domains, the owner's own first. Halos stay as they are. */
    hem_combine combine;
    uint64_t fields; /**< bit k - 1: field number k of every pattern. 0: all */
    /** Which halos, by side, HEM_SIDE_ bits; an edge or corner needs all of its sides. Halos of
     *  patterns other than grids have no sides and always take part. 0: all. */
    uint32_t sides;
} hem_exchange_how;

/**
 * Make what runs with `how` need, which the first one does otherwise: on a device its tables. It may allocate
 * device memory and wait for the device, and the runs after it do not; so the first one can be captured
 * into a graph. Of fields in host memory alone there is nothing to do.
 *
 * Local; neighbours need not do the same. @return as hem_exchange_start; HEM_ERR_MEMORY.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_prepare(hem_exchange *exchange,
                                                       const hem_exchange_how *how);

/**
 * Start a run. `how` may be NULL: forward, everything.
 *
 * Does not block. Local. @return HEM_OK; HEM_ERR_ARG if it is still under way or `how` is bad;
 *         HEM_ERR_UNSUPPORTED for a combination that a type does not have; HEM_ERR_REVOKED if it is
 *         broken; HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_start(hem_exchange *exchange,
                                                     const hem_exchange_how *how);

/** Make progress and say whether the run is done. Does not block. @return how it ended. */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_test(hem_exchange *exchange, bool *done_p);

/**
 * Wait until the run is done: halos are filled, owners' points may be written.
 *
 * Also waits for what is on streams: every hem_exchange_start_on and hem_exchange_finish_on before
 * this call. After HEM_ERR_TIMEOUT it is still under way. Local. Without a start it does nothing.
 * @return HEM_OK, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_MISMATCH if a neighbour runs something
 *         else, HEM_ERR_TIMEOUT; HEM_ERR_ARG, HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_finish(hem_exchange *exchange, int64_t timeout_ns);

/** Start and finish. */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_run(hem_exchange *exchange,
                                                   const hem_exchange_how *how, int64_t timeout_ns);

/**
 * The operation behind the exchange, for hem_op_wait_any, hem_op_on_done and such. It belongs to the
 * exchange: do not free or start it. Local.
 */
HEM_API hem_op *hem_exchange_op(hem_exchange *exchange);

/**
 * Start a run in stream order: after everything that is on the stream.
 *
 * Does not block. Halos are written when the stream of hem_exchange_finish_on gets there, or in
 * hem_exchange_finish, so that work before that may still read the old ones; but those in device
 * memory that values go straight into (hem_exchange_way) may be written as soon as the stream gets to
 * the start. A run that was started on a stream before and has not finished is finished first, if its
 * stream is ordered before this one; otherwise that is HEM_ERR_ARG. What fails later is the stream's
 * status. Local.
 *
 * On a stream of hem_stream_cuda, for exchanges with fields in device memory, this launches a kernel;
 * with HEM_EXCHANGE_ENGINES it puts copies and memory operations on the stream instead. It may be
 * captured into a graph, each replay of which is a run, also mixed with others. The caller orders the
 * streams of different runs, and keeps the stream until the run was finished, by whatever call, or its
 * finish was refused with HEM_ERR_REVOKED. The first run with a `how` makes its tables, too, and may
 * allocate device memory for them (everything, forward, has its own from the start). In a capture that is
 * HEM_ERR_ARG: call hem_exchange_prepare first. hem_exchange_status tells what fails later.
 *
 * @return as hem_exchange_start, and as hem_stream_call; HEM_ERR_UNSUPPORTED if the stream is a
 *         device's and the exchange is not.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_start_on(hem_exchange *exchange,
                                                        const hem_exchange_how *how,
                                                        hem_stream *stream);

/**
 * Finish a run in stream order: what is put on the stream from now on sees the halos.
 *
 * The stream may be another one than that of the start, which need not have happened yet; it waits
 * for that. The run may be one of hem_exchange_start, or finished on another stream already: this one
 * waits for it, too. Does not block. Local.
 *
 * On a stream of hem_stream_cuda: where the run was finished on another such stream, that one must still
 * be there, and this one waits for all that is on it. A start that is still to happen on a stream of the
 * host cannot be waited for: HEM_ERR_UNSUPPORTED. In a capture a run that is under way, and so is no part
 * of the graph, is HEM_ERR_ARG.
 *
 * @return as hem_stream_call; HEM_ERR_ARG if nothing was started; HEM_ERR_UNSUPPORTED as above.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_finish_on(hem_exchange *exchange,
                                                         hem_stream *stream);

/**
 * How the runs so far have gone: the first failure sticks, and breaks the exchange.
 *
 * For those who wait for a stream of the device rather than for the exchange: what is in graphs is
 * known to the stream only. Does not block. Local.
 * @return HEM_OK, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_MISMATCH, HEM_ERR_TIMEOUT if a run took
 *         longer than its time limit, HEM_ERR_SYSTEM if the device has failed; HEM_ERR_ARG if runs
 *         on streams of the device were not ordered, HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_status(const hem_exchange *exchange);

/** What an exchange amounts to on this rank; set `struct_size` before the call. */
typedef struct hem_exchange_facts {
    size_t struct_size;
    size_t neighbours;      /**< messages of a run */
    uint64_t send_bytes;    /**< of a forward run, packed or read in place */
    uint64_t recv_bytes;    /**< of a forward run */
    uint64_t direct_bytes;  /**< of those received, moved in one copy */
    uint64_t local_bytes;   /**< copied between domains of this rank */
    uint64_t landing_bytes; /**< library memory held for it */
} hem_exchange_facts;

/** Local. @return HEM_OK, HEM_ERR_ARG, HEM_ERR_CLOSED. */
HEM_API HEM_MUST_CHECK hem_status hem_exchange_info(const hem_exchange *exchange,
                                                    hem_exchange_facts *facts_p);

/**
 * Give an exchange up. NULL is allowed.
 *
 * Waits for a run that is under way, up to the time limit of its set-up, then breaks it. Graphs with
 * runs of it must not be replayed any more, and none may be under way. Its library
 * memory is freed once all neighbours have given theirs up, at the latest with the world. Ranks may
 * do this in any order. An exchange with fields in host memory among fields in device memory has shown
 * the host's to the GPU, and takes them away from it here, so that the caller may free them: CUDA waits
 * for that until no kernel of the process runs. With ranks that are threads of one process, no kernel
 * that waits for this rank may be running then. The fields of a rank that ends without closing its
 * world stay pinned until the others have closed theirs. Local. @return HEM_OK, or how the last run
 * failed if it was under way.
 */
HEM_API hem_status hem_exchange_destroy(hem_exchange *exchange);

#ifdef __cplusplus
}
#endif
#endif
