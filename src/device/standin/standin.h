/*
 * A device that is none: libhem_standin.so, where host threads stand in for a GPU.
 *
 * It is a device module like libhem_cuda.so, so that everything above the module is tested without a
 * GPU, and it exports what CUDA's runtime gives a program: memory, streams, kernels, graphs. Tests
 * link it for that, and the library opens the same copy at run time.
 *
 * How this works. Device memory is a memfd that is mapped in every process that reaches it. A stream
 * is a thread that takes items off a queue. A kernel is a grid of host threads, one per warp, which
 * all run at the same time and belong to their stream, so that nothing but what a program orders is
 * ordered: a lock that streams share would hide races from ThreadSanitizer. A stream that is being
 * captured records its items in a graph instead of doing them; a graph does them in the order in
 * which they were put, whatever streams they were put on.
 */
#ifndef HEMI_DEVICE_STANDIN_STANDIN_H
#define HEMI_DEVICE_STANDIN_STANDIN_H

#include <hem/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*hemi_standin_kernel)(const void *args);
typedef struct hemi_standin_stream hemi_standin_stream;
typedef struct hemi_standin_graph hemi_standin_graph;

/** Zeroed device memory, or NULL. Freed memory faults. */
HEM_API void *hemi_standin_alloc(size_t bytes);
HEM_API void hemi_standin_free(void *address);
/** Other processes cannot map the allocation at `address` from now on, as that of a plain pool. */
HEM_API void hemi_standin_hide(const void *address);
/** Between host and device, either way, at once. Aligned words are copied whole. */
HEM_API void hemi_standin_copy(void *to, const void *from, size_t bytes);

/** Allocations, mapped memory of peers and mapped host memory that this process has. */
HEM_API size_t hemi_standin_held(void);

/** Whether unpinning host memory waits until no kernel of the process runs, with everybody else kept
 *  off the device meanwhile, as on a GPU. Not at first. */
HEM_API void hemi_standin_unpin_waits(bool on);

/** Whether devices that are opened from now on have streams that cannot store and await words. Not at
 *  first. */
HEM_API void hemi_standin_no_words(bool on);

/** Steps of a team (multicast), which HEM_CUDA_MULTICAST turns on here as on a GPU. */
typedef enum hemi_standin_team_step {
    HEMI_STANDIN_TEAM_MAKE = 1,
    HEMI_STANDIN_TEAM_JOIN,
    HEMI_STANDIN_TEAM_BIND
} hemi_standin_team_step;

/** Whoever in this process comes to this step next fails in it, once; or `dies`, by SIGKILL. */
HEM_API void hemi_standin_team_refuse(hemi_standin_team_step step, bool dies);
/** How many members have been bound in this process. */
HEM_API uint64_t hemi_standin_team_bound(void);

/** A stream; NULL stands for the default stream. @return HEM_OK, HEM_ERR_MEMORY, HEM_ERR_SYSTEM. */
HEM_API hem_status hemi_standin_stream_create(hemi_standin_stream **stream_p);
/** Does not wait: what is on the stream is still done. */
HEM_API void hemi_standin_stream_destroy(hemi_standin_stream *stream);
/** Streams that there are in this process, the library's and the program's. */
HEM_API size_t hemi_standin_streams(void);
/** Wait until all that is on it now is done. HEM_ERR_UNSUPPORTED while it is captured. */
HEM_API hem_status hemi_standin_stream_sync(hemi_standin_stream *stream);
/** HEM_OK if all is done, HEM_ERR_TIMEOUT if not, HEM_ERR_SYSTEM if a launch failed. */
HEM_API hem_status hemi_standin_stream_query(hemi_standin_stream *stream);

/** The same that the module does for the library; see device.h. None of them waits. */
HEM_API hem_status hemi_standin_launch(hemi_standin_stream *stream, hemi_standin_kernel kernel,
                                       uint32_t blocks, uint32_t warps, const void *args,
                                       size_t bytes);
HEM_API hem_status hemi_standin_stream_copy(hemi_standin_stream *stream, void *to, const void *from,
                                            size_t bytes);
HEM_API hem_status hemi_standin_stream_order(hemi_standin_stream *before,
                                             hemi_standin_stream *after);

/** From now on what is put on the stream, and on streams ordered after it, goes into a graph. */
HEM_API hem_status hemi_standin_capture_begin(hemi_standin_stream *stream);
/** The graph is the caller's. HEM_ERR_ARG if another stream's work was not ordered back. */
HEM_API hem_status hemi_standin_capture_end(hemi_standin_stream *stream,
                                            hemi_standin_graph **graph_p);
/** How many kernels one replay of it launches. */
HEM_API size_t hemi_standin_graph_kernels(const hemi_standin_graph *graph);
HEM_API hem_status hemi_standin_graph_launch(hemi_standin_graph *graph,
                                             hemi_standin_stream *stream);
/** Launches that are on streams still take place. NULL is allowed. */
HEM_API void hemi_standin_graph_destroy(hemi_standin_graph *graph);

/** Stop a random warp now and then, anywhere, for up to `most_us`. 0 ends that. */
HEM_API hem_status hemi_standin_delay(uint32_t most_us);
/** How often a warp was stopped. */
HEM_API uint64_t hemi_standin_delays(void);

#ifdef __cplusplus
}
#endif
#endif
