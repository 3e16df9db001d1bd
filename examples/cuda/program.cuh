/*
 * What the programs of this folder share: ranks, a GPU and a stream for each, memory, and what to do
 * when something fails.
 *
 * `NAME 4` runs four ranks as threads of one process; `hem run -n 4 NAME` runs them as processes.
 * They may share a GPU, and kernels that wait for each other then run there at the same time. Hence
 * the rules that all of these programs keep: every rank has a stream of its own that waits for no
 * other, kernels are loaded before the first of them waits, and whatever may stop the GPU (making
 * and freeing memory) happens before and after.
 */
#ifndef EXAMPLES_CUDA_PROGRAM_CUH
#define EXAMPLES_CUDA_PROGRAM_CUH

#include <cuda_runtime.h>
#include <hem/cuda.h>
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    hem_world *world;
    hem_window *window;
    hem_dev_window dev;
    cudaStream_t stream;
    uint64_t *failed; /* of the GPU: -status of a kernel that gave up */
    uint64_t *said;   /* the same, where the host reads it */
    int rank;
    int ranks;
};

static const char *program_name = "?";

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct program *p, hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "%s: rank %d: %s: %s\n", program_name, p->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

static void check(const struct program *p, cudaError_t error) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: rank %d: CUDA: %s\n", program_name, p->rank, cudaGetErrorString(error));
    exit(1);
}

/* Zeroed in the order of the stream, and given back when the program ends. */
static void *device_memory(const struct program *p, size_t bytes) {
    void *memory = NULL;
    check(p, cudaMalloc(&memory, bytes));
    check(p, cudaMemsetAsync(memory, 0, bytes, p->stream));
    return memory;
}

/* Of the host, for copies, and given back when the program ends. It is pinned: a copy to or from other
 * memory keeps CUDA busy until the kernels before it are done, and these may wait for a rank of the
 * same process that is about to launch its own. */
static void *host_memory(const struct program *p, size_t bytes) {
    void *memory = NULL;
    check(p, cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
    memset(memory, 0, bytes);
    return memory;
}

/* In the order of the stream; the host may not touch its memory before finish. */
static void copy(const struct program *p, void *to, const void *from, size_t bytes) {
    check(p, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, p->stream));
}

/* Wait for all that is on the stream, and for what its kernels have to say. */
static void finish(const struct program *p) {
    copy(p, p->said, p->failed, sizeof *p->said);
    check(p, cudaStreamSynchronize(p->stream));
    if (*p->said == 0)
        return;
    fprintf(stderr, "%s: rank %d: the kernel ended with %s\n", program_name, p->rank,
            hem_status_name((hem_status)(-(int)*p->said)));
    exit(1);
}

/* A kernel that is loaded by its first launch could wait for a GPU that waits for it. */
static void load_kernel(const struct program *p, const void *kernel) {
    cudaFuncAttributes attributes;
    check(p, cudaFuncGetAttributes(&attributes, kernel));
}

static void make_window(struct program *p, size_t bytes, uint32_t barriers) {
    hem_window_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    options.barriers = barriers;
    check(p, hem_window_create(p->world, &options, &p->window));
    check(p, hem_window_device(p->window, &p->dev));
}

/* All have made their memory and loaded their kernels; from here on kernels may wait. */
static void all_ready(const struct program *p) {
    check(p, cudaStreamSynchronize(p->stream));
    check(p, hem_barrier(p->window, 0, HEM_FOREVER));
}

/* This fails if a rank has given up, so what is printed behind it holds for all of them. */
static void drop_window(const struct program *p) {
    check(p, hem_window_destroy(p->window));
}

typedef void (*program_fn)(struct program *p);

static int run_rank(hem_world *world, void *arg) {
    struct program p;
    hem_stream *handle = NULL;
    int gpus = 0;
    memset(&p, 0, sizeof p);
    p.world = world;
    p.rank = hem_world_rank(world);
    p.ranks = hem_world_size(world);
    check(&p, cudaGetDeviceCount(&gpus));
    check(&p, cudaSetDevice(hem_world_local_rank(world) % gpus));
    check(&p, cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    /* Gives it a queue of its own: kernels on it wait for those of other ranks. */
    check(&p, hem_stream_cuda(world, p.stream, &handle));
    check(&p, hem_stream_destroy(handle));
    p.failed = (uint64_t *)device_memory(&p, sizeof *p.failed);
    p.said = (uint64_t *)host_memory(&p, sizeof *p.said);
    (*(program_fn *)arg)(&p);
    check(&p, hem_world_close(world));
    return 0;
}

/* Before there is a world, since a rank that leaves one is a death to the others. Tests take 77 for
 * "skipped". */
static void want_gpu(void) {
    int gpus = 0;
    cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error == cudaSuccess && gpus > 0)
        return;
    fprintf(stderr, "%s: skipped: no GPU here: %s\n", program_name, cudaGetErrorString(error));
    exit(77);
}

static int run_program(const char *name, int argc, char **argv, program_fn fn) {
    struct program nobody = {};
    nobody.rank = -1;
    program_name = name;
    /* Every stream of a process needs a way to the GPU of its own. Under MPS, processes have fewer. */
    if (getenv("HEM_RANK") == NULL)
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    want_gpu();
    if (argc > 1) {
        check(&nobody, hem_world_threads(atoi(argv[1]), run_rank, &fn, NULL));
        return 0;
    }
    hem_world *world = NULL;
    check(&nobody, hem_world_open(NULL, &world));
    if (hem_world_size(world) > 1)
        return run_rank(world, &fn);
    check(&nobody, hem_world_close(world));
    check(&nobody, hem_world_threads(2, run_rank, &fn, NULL));
    return 0;
}

#endif
