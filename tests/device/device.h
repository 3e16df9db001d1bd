/*
 * What every device test stands on, beside the harness of the multi-rank tests: kernels, streams,
 * memory and graphs under names that mean CUDA's runtime where nvcc compiles the test, and the
 * stand-in device (src/device/standin) where it is compiled as C.
 *
 * A test is C that is also C++: it casts what malloc gives, and has no designated initialisers in
 * another order than the fields, and no compound literals. A kernel has one argument, a struct that
 * is passed by value:
 *
 *     typedef struct fill_args { uint32_t *words; uint32_t value; } fill_args;
 *     DEVICE_KERNEL(fill, fill_args) {
 *         hem_group block = hem_block();
 *         for (uint32_t i = block.rank; i < 100; i += block.size)
 *             args->words[i] = args->value;
 *     }
 *     ...
 *     device_launch(fill, stream, 1, 4, &mine);   // 1 block of 4 warps
 *
 * What fails ends the test with the harness's CHECKs. HEM_DEVICE_DELAY_US=n stops random warps of the
 * stand-in for up to n microseconds now and then; on a GPU that is built in (HEM_DEV_TEST_DELAY).
 */
#ifndef HEM_TESTS_DEVICE_DEVICE_H
#define HEM_TESTS_DEVICE_DEVICE_H

/* The harness is C. Its system headers come first, since they may not be read as such by C++. */
#include <hem/hem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "../rank/harness.h"
#ifdef __cplusplus
}
#endif

#include <hem/cuda.h>
#include <hem/device/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device is chosen before the test's rank_main is called. */
#define rank_main device_rank_main
int device_rank_main(hem_world *world);

/** Whether kernels are host threads. */
bool device_stands_in(void);

/** Let the stand-in be as hard as a GPU: what unpins host memory waits until no kernel of the process
 *  runs, and no call that uses the device comes through meanwhile. */
void device_unpin_waits(void);

/** A stream that waits for no other: a cudaStream_t, for hem_stream_cuda. */
typedef void *device_stream;

device_stream device_stream_create(void);
/** The streams that nobody makes: NULL, cudaStreamLegacy and cudaStreamPerThread. They are not destroyed. On the
 *  stand-in the second is the first, and the last one that a thread keeps. */
typedef enum device_default {
    DEVICE_NULL,
    DEVICE_LEGACY,
    DEVICE_PER_THREAD
} device_default;

device_stream device_default_stream(device_default which);
/** Wait for all that is on it; a test fails if that takes longer than LIMIT. */
void device_stream_sync(device_stream stream);
bool device_stream_done(device_stream stream);
void device_stream_destroy(device_stream stream);
/** Streams that there are in this process, the library's as well; 0 where that cannot be counted. */
size_t device_streams(void);
/** `after` goes on when all that is on `before` now is done. */
void device_stream_order(device_stream before, device_stream after);
/** Copy in stream order. */
void device_stream_copy(device_stream stream, void *to, const void *from, size_t bytes);

/** hem_coll.blocks of collectives that are to be long: with so few a GPU does not take 10,000 words in units. */
#define DEVICE_FEW_BLOCKS 3

/** Zeroed device memory, aligned to 256 bytes or more. Freeing waits for no kernel. */
void *device_alloc(size_t bytes);
void device_free(void *address);
/** The same out of a pool whose memory other processes can map. */
void *device_pool_alloc(size_t bytes);
void device_pool_free(void *address);
/** The same that other processes cannot map: cudaMallocAsync from the default pool. */
void *device_hidden_alloc(size_t bytes);
void device_hidden_free(void *address);
/** The same that the program maps by itself, with a descriptor as type of handle (cuMemCreate, cuMemMap).
 *  Kept until the process ends: unmapping may wait for kernels. */
void *device_vmm_alloc(size_t bytes);
/** Where two such mappings meet that are side by side, of at least `each` bytes on both sides. Other processes
 *  cannot map a piece that has some of both. */
void *device_vmm_seam(size_t each);
/** Zeroed host memory that kernels reach at the same address. */
void *device_host_alloc(size_t bytes);
void device_host_free(void *address);
/** Copy between host and device at once; not behind kernels that run. */
void device_copy(void *to, const void *from, size_t bytes);

typedef void *device_graph;

void device_capture_begin(device_stream stream);
device_graph device_capture_end(device_stream stream);
/** The same, and how many kernels one replay launches. */
device_graph device_capture_end_counted(device_stream stream, size_t *kernels_p);
void device_graph_launch(device_graph graph, device_stream stream);
void device_graph_destroy(device_graph graph);

/** Replays of a test: ten thousand on a GPU; on the stand-in `n`, and under a sanitizer fewer. */
static inline uint64_t device_replays(int n) {
    bool many = !device_stands_in() && !harness_sanitized();
    return many ? 10000 : (uint64_t)harness_rounds(n);
}

/** Warps of a block that looks at thousands of words. Those of the stand-in are threads of the host. */
static inline uint32_t device_wide_block(void) {
    return device_stands_in() ? 1 : 16;
}

#if defined(__CUDACC__)

/** A function of kernels and of the host. */
#define DEVICE_BOTH static __host__ __device__ inline

#define DEVICE_KERNEL(name, type)                                                                  \
    static __device__ void name##_body(const type *args);                                          \
    static __global__ void name(const __grid_constant__ type args) {                               \
        name##_body(&args);                                                                        \
    }                                                                                              \
    static __device__ void name##_body(const type *args)

typedef const void *device_kernel;
/** Launch `blocks` of `warps` warps each. `args` is copied. */
#define device_launch(name, stream, blocks, warps, args)                                           \
    device_launch_kernel((const void *)(name), (stream), (blocks), (warps), (args), sizeof *(args))

#else

#define DEVICE_BOTH static inline

#define DEVICE_KERNEL(name, type)                                                                  \
    static void name##_body(const type *args);                                                     \
    static void name(const void *args) {                                                           \
        name##_body((const type *)args);                                                           \
    }                                                                                              \
    static void name##_body(const type *args)

typedef void (*device_kernel)(const void *args);
#define device_launch(name, stream, blocks, warps, args)                                           \
    device_launch_kernel((name), (stream), (blocks), (warps), (args), sizeof *(args))

#endif

void device_launch_kernel(device_kernel kernel, device_stream stream, uint32_t blocks,
                          uint32_t warps, const void *args, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
