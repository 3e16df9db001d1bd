/*
 * gpu-put: a kernel of rank 0 moves n bytes with so many blocks into memory of rank 1.
 *
 * hem     hem_dev_put by each block, of its share
 * raw     a plain copy kernel with as many blocks, between two buffers of one GPU
 * raw-engine  cudaMemcpyAsync between them
 */
#include "gpu.h"

#include <hem/device.cuh>

enum {
    PUT_THREADS = 1024
};

struct put {
    size_t bytes;
    unsigned blocks; /* 0: by cudaMemcpyAsync */
    hem_window *window;
    hem_dev_window w;
    unsigned char *source;
    unsigned char *target; /* where it arrives: rank 1's, or with raw rank 0's own */
};

static __global__ void __launch_bounds__(PUT_THREADS)
    put_kernel(hem_dev_window w, const unsigned char *source, uint64_t bytes, uint64_t share) {
    uint64_t from = share * hem_block_index();

    if (from >= bytes)
        return;
    uint64_t n = bytes - from < share ? bytes - from : share;
    if (hem_dev_put(w, hem_block(), 1, from, source + from, n) != HEM_OK)
        __trap();
}

/* Shares are whole lines, but for the last. Divided here: in the kernel that takes 0.3 us. */
static uint64_t share_of(const struct put *put) {
    uint64_t share = (put->bytes + put->blocks - 1) / put->blocks;
    return (share + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

static void body(struct gpu_rank *rank, void *ctx) {
    struct put *put = (struct put *)ctx;

    if (rank->rank != 0)
        return;
    if (rank->args->who == GPU_HEM)
        put_kernel<<<put->blocks, PUT_THREADS, 0, rank->stream>>>(put->w, put->source, put->bytes,
                                                                  share_of(put));
    else if (put->blocks > 0)
        gpu_copy(rank, put->target, put->source, put->bytes, put->blocks);
    else
        NEED_CUDA(cudaMemcpyAsync(put->target, put->source, put->bytes, cudaMemcpyDeviceToDevice,
                                  rank->stream));
    NEED_CUDA(cudaGetLastError());
}

static void verify(struct gpu_rank *rank, struct put *put, uint32_t seed) {
    bool here = rank->rank == (rank->args->who == GPU_HEM ? 1 : 0);

    if (here)
        gpu_fill(rank, put->target, put->bytes, ~seed);
    if (rank->rank == 0)
        gpu_fill(rank, put->source, put->bytes, seed);
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, put);
    gpu_finish(rank);
    gpu_meet(rank);
    if (here)
        gpu_check(rank, put->target, put->bytes, seed);
}

static void run_size(struct gpu_rank *rank, struct put *put) {
    struct gpu_line line = {put->blocks > 0 ? NULL : "engine", put->blocks, put->bytes, 0,
                            2 * put->bytes};

    gpu_watch(rank, "%u blocks, %zu bytes", put->blocks, put->bytes);
    verify(rank, put, 3);
    struct gpu_result result = gpu_measure(rank, body, put, gpu_inner(put->bytes));
    verify(rank, put, 4);
    gpu_print(rank, &line, result);
}

static void open_memory(struct gpu_rank *rank, struct put *put, size_t bytes) {
    hem_window_options options = {};

    put->source = gpu_alloc(rank, bytes);
    if (rank->args->who != GPU_HEM) {
        put->target = gpu_alloc(rank, bytes);
        return;
    }
    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    NEED_HEM(hem_window_create(rank->world, &options, &put->window));
    NEED_HEM(hem_window_device(put->window, &put->w));
    put->target = (unsigned char *)hem_window_memory(put->window);
}

static void close_memory(struct gpu_rank *rank, struct put *put) {
    gpu_meet(rank);
    if (put->window != NULL)
        NEED_HEM(hem_window_destroy(put->window));
    else
        gpu_free(rank, put->target);
    gpu_free(rank, put->source);
}

void gpu_put(struct gpu_rank *rank) {
    const struct gpu_args *args = rank->args;
    struct put put = {};
    size_t most = 0;

    if (rank->ranks != 2)
        gpu_die("gpu-put is measured with 2 ranks");
    for (size_t i = 0; i < args->sizes.count; i++)
        most = args->sizes.bytes[i] > most ? args->sizes.bytes[i] : most;
    open_memory(rank, &put, most);
    for (size_t i = 0; i < args->sizes.count; i++) {
        put.bytes = args->sizes.bytes[i];
        for (size_t b = 0; b < args->blocks.count; b++) {
            put.blocks = (unsigned)args->blocks.bytes[b];
            run_size(rank, &put);
        }
        put.blocks = 0;
        if (args->who == GPU_RAW)
            run_size(rank, &put);
    }
    close_memory(rank, &put);
}
