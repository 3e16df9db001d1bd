/*
 * GPUs, from the host: windows in device memory, CUDA streams, messages between buffers of GPUs.
 *
 * What is on a GPU is done by a module, libhem_cuda.so, that is opened when a rank first needs it;
 * programs that use this header link libhem.so only, and include nothing of CUDA's. A rank's GPU is
 * the one that is current for the thread that makes its first device object. Ranks may share a GPU:
 * as threads of one process, or as processes (under MPS, or their kernels take turns).
 *
 * What kernels call is in hem/device.cuh.
 */
#ifndef HEM_CUDA_H
#define HEM_CUDA_H

#include <hem/device/types.h>
#include <hem/exchange.h>
#include <hem/stream.h>
#include <hem/window.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a rank's GPU is; set `struct_size` before the call. */
typedef struct hem_device_facts {
    size_t struct_size;
    char name[64];
    int ordinal;         /**< as CUDA counts */
    unsigned processors; /**< SMs */
    size_t l2_bytes;
    unsigned capability; /**< such as 90 */
} hem_device_facts;

/**
 * Open this rank's GPU now, and load the library's kernels, so that no later call does.
 *
 * `facts_p` may be NULL. Local. @return HEM_OK; HEM_ERR_UNSUPPORTED if there is no module or no GPU,
 *         saying which; HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_device_open(hem_world *world, hem_device_facts *facts_p);

/**
 * Use a stream of CUDA's where Hem wants a hem_stream.
 *
 * `stream` is a cudaStream_t (or CUstream). It is not owned: it must outlive what is put on it, and
 * hem_stream_destroy only frees the handle. Capturing it into a graph captures what Hem puts on it.
 * Functions, events and syncs of hem/stream.h are for host streams: here they are
 * HEM_ERR_UNSUPPORTED, since CUDA's own do that.
 *
 * The legacy default stream (NULL) is refused with HEM_ERR_UNSUPPORTED where ranks are threads and another
 * one has the same GPU, or may have it, since it has not opened its own (hem_device_open): it would
 * wait for the kernels of that rank, which wait for it. There an empty kernel is put on any other one, unless it is being captured, so that it has a queue of the GPU of its own: make a handle
 * once for each stream, before kernels are launched on it. Local.
 * @return HEM_OK, HEM_ERR_ARG, HEM_ERR_UNSUPPORTED, HEM_ERR_MEMORY, HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_stream_cuda(hem_world *world, void *stream,
                                                  hem_stream **stream_p);

/**
 * What kernels need of a window in device memory (hem_window_options.kind), to be passed by value.
 *
 * The same each time; valid until the window is destroyed. Local. From any thread.
 * @return HEM_OK; HEM_ERR_UNSUPPORTED for a window in host memory; HEM_ERR_CLOSED, HEM_ERR_ARG.
 */
HEM_API HEM_MUST_CHECK hem_status hem_window_device(hem_window *window, hem_dev_window *dev_p);

/* Pipes: messages from GPU buffer to GPU buffer, in stream order. */

typedef struct hem_pipe hem_pipe;

/**
 * Zero means default everywhere; set `struct_size` to sizeof(hem_pipe_options). The same on all
 * ranks, but for `peers`.
 */
typedef struct hem_pipe_options {
    size_t struct_size;
    /** Whom this rank sends to or receives from. Both sides name each other. NULL: everybody. */
    const int *peers;
    size_t peer_count;
    /** The most blocks that a call may use: 1 to 64. Default 16, and no more than a quarter of what fits
     *  on the GPU, divided by the ranks of the world on it. Who asks for more, here or for a call, gets up
     *  to all that fits, and sees to it that all pipes, exchanges and collectives that are under way at
     *  the same time find room: kernels that wait for one that finds none wait for ever. */
    uint32_t blocks;
    /** Staging of each lane (a group of warps of a block): slots of slot_bytes, a multiple of 128
     *  from 1 KiB to 1 MiB, and how many, 1 to 64. With one, sender and receiver take turns.
     *  Defaults 32 KiB and 4. */
    size_t slot_bytes;
    uint32_t slots;
    /** Messages up to this length go with their stamps, without fences: at most 1 MiB. Default 32 KiB with one
     *  block, 64 KiB with more. */
    size_t short_bytes;
    int64_t timeout_ns; /**< of creation. Default: the world's */
    /**
     * A window in device memory of the same world, in which buffers of messages may lie; it outlives
     * the pipe. Messages above short_bytes are then copied once where a buffer lies wholly in this
     * rank's memory of it: by the sender if the receiver's does, by the receiver if the sender's does,
     * half by each if both do. Nobody touches a buffer before the call that names it. In such a
     * pipe a send of more than short_bytes waits for its receive to begin, and nothing that was
     * sent is held in between. All peers of the pipe are device_peers in the window. NULL: none.
     */
    hem_window *window;
} hem_pipe_options;

/**
 * Make a pipe between all ranks of `world`: staging in device memory for every pair of peers.
 *
 * Nothing is left for first uses: a send to a peer that was named works although it has not
 * received yet. Collective. @return HEM_OK; HEM_ERR_ARG or HEM_ERR_RANGE, saying what is allowed;
 *         HEM_ERR_MISMATCH if only one side named the other; HEM_ERR_MEMORY, HEM_ERR_UNSUPPORTED,
 *         HEM_ERR_PEER, HEM_ERR_TIMEOUT. On all ranks the same.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pipe_create(hem_world *world, const hem_pipe_options *options,
                                                  hem_pipe **pipe_p);

/** How one call goes. Zero means default; set `struct_size`. Sides need not agree on anything here. */
typedef struct hem_pipe_how {
    size_t struct_size;
    uint32_t blocks; /**< at most hem_pipe_options.blocks. Default: by the length */
    /** Warps of each role in a block: 1 to 16. Default: by the length. In a pipe with a window, a call
     *  with both halves takes 8 at most. */
    uint32_t warps;
    size_t chunk_bytes; /**< what is published at once, at most slot_bytes. Default: slot_bytes */
    int64_t timeout_ns; /**< of the waits in the kernel. Default: none */
    /** Warps that work on one lane together, a divisor of `warps`. Default 1. */
    uint32_t team;
} hem_pipe_how;

/** One half of hem_pipe_sendrecv. A negative peer means that there is no such half. */
typedef struct hem_pipe_half {
    int peer;     /**< may be this rank */
    void *data;   /**< device memory; is only read where it is sent */
    size_t bytes; /**< both sides name the same length */
} hem_pipe_half;

/**
 * Send one message and receive another in stream order, at the same time, in one kernel.
 *
 * The peers may differ; either half may be NULL. Messages from one rank to another arrive in the
 * order of their calls. `data` may be reused by what follows on the stream. The host does not wait;
 * calls on one pipe are put on streams that are ordered after each other. In a capture the call is
 * recorded and each replay is one more message.
 *
 * What fails later ends the kernel: hem_pipe_status tells. A length that differs between the sides
 * is HEM_ERR_MISMATCH there. After that, peers may still read and write buffers in the pipe's window
 * until hem_pipe_destroy has returned. Local. `how` may be NULL.
 * @return HEM_OK; HEM_ERR_ARG, also for a peer that was not named when the pipe was made;
 *         HEM_ERR_RANGE, saying what is allowed; HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_CLOSED,
 *         HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pipe_sendrecv(hem_pipe *pipe, const hem_pipe_half *send,
                                                    const hem_pipe_half *recv,
                                                    const hem_pipe_how *how, hem_stream *stream);

/**
 * How the calls that have run so far ended: the first error sticks, and later calls do nothing.
 *
 * Does not block. Local. @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED,
 *         HEM_ERR_MISMATCH.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pipe_status(const hem_pipe *pipe);

/** What kernels need of a pipe to send and receive by themselves: hem/device/pipe.h. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_pipe_device(hem_pipe *pipe, hem_dev_pipe *dev_p);

/** Give a pipe up; nothing of it is on a stream any more. NULL is allowed. Collective. */
HEM_API hem_status hem_pipe_destroy(hem_pipe *pipe);

#ifdef __cplusplus
}
#endif
#endif
