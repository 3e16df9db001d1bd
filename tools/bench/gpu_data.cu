/* Data that is checked, and the plain copy: see gpu.h. */
#include "gpu.h"

enum {
    THREADS = 512,
    COPY_THREADS = 1024
};

static __device__ unsigned char byte_of(uint32_t seed, size_t i) {
    uint32_t x = (uint32_t)i * 2654435761u ^ (uint32_t)(i >> 32) ^ seed * 0x9e3779b9u;

    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    return (unsigned char)(x >> 21);
}

static __global__ void fill_kernel(unsigned char *memory, size_t bytes, uint32_t seed) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
         i += (size_t)gridDim.x * blockDim.x)
        memory[i] = byte_of(seed, i);
}

static __global__ void check_kernel(const unsigned char *memory, size_t bytes, uint32_t seed,
                                    unsigned *wrong) {
    unsigned mine = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
         i += (size_t)gridDim.x * blockDim.x)
        mine += memory[i] != byte_of(seed, i);
    if (mine > 0)
        atomicAdd(wrong, mine);
}

static unsigned blocks_for(const struct gpu_rank *rank, size_t bytes) {
    size_t blocks = (bytes + THREADS - 1) / THREADS;
    size_t most = (size_t)rank->processors * 2;

    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

void gpu_finish(const struct gpu_rank *rank) {
    NEED_CUDA(cudaStreamSynchronize(rank->stream));
}

unsigned char *gpu_alloc(const struct gpu_rank *rank, size_t bytes) {
    void *memory;

    (void)rank;
    NEED_CUDA(cudaMalloc(&memory, bytes < 256 ? 256 : bytes));
    return (unsigned char *)memory;
}

void gpu_free(const struct gpu_rank *rank, void *memory) {
    gpu_finish(rank);
    gpu_meet(rank);
    NEED_CUDA(cudaFree(memory));
}

void gpu_fill(struct gpu_rank *rank, void *memory, size_t bytes, uint32_t seed) {
    fill_kernel<<<blocks_for(rank, bytes), THREADS, 0, rank->stream>>>((unsigned char *)memory,
                                                                       bytes, seed);
    NEED_CUDA(cudaGetLastError());
}

void gpu_check(struct gpu_rank *rank, const void *memory, size_t bytes, uint32_t seed) {
    unsigned wrong = 0;

    NEED_CUDA(cudaMemsetAsync(rank->wrong, 0, sizeof(wrong), rank->stream));
    check_kernel<<<blocks_for(rank, bytes), THREADS, 0, rank->stream>>>(
        (const unsigned char *)memory, bytes, seed, rank->wrong);
    NEED_CUDA(cudaGetLastError());
    NEED_CUDA(
        cudaMemcpyAsync(&wrong, rank->wrong, sizeof(wrong), cudaMemcpyDeviceToHost, rank->stream));
    gpu_finish(rank);
    if (wrong > 0)
        gpu_die("rank %d: %u of %zu bytes are wrong", rank->rank, wrong, bytes);
}

/* Four loads of 16 bytes are in flight per thread, as in every careful copy. */
static __global__ void __launch_bounds__(COPY_THREADS)
    copy_kernel(uint4 *to, const uint4 *from, size_t count) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 a = from[i];
        uint4 b = from[i + stride];
        uint4 c = from[i + 2 * stride];
        uint4 d = from[i + 3 * stride];
        to[i] = a;
        to[i + stride] = b;
        to[i + 2 * stride] = c;
        to[i + 3 * stride] = d;
    }
    for (; i < count; i += stride)
        to[i] = from[i];
}

/* Each piece is loaded once and stored `copies` times, `count` pieces apart. */
static __global__ void __launch_bounds__(COPY_THREADS)
    spread_kernel(uint4 *to, const uint4 *from, size_t count, unsigned copies) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 a = from[i];
        uint4 b = from[i + stride];
        uint4 c = from[i + 2 * stride];
        uint4 d = from[i + 3 * stride];
        for (unsigned copy = 0; copy < copies; copy++) {
            uint4 *at = to + copy * count + i;
            at[0] = a;
            at[stride] = b;
            at[2 * stride] = c;
            at[3 * stride] = d;
        }
    }
    for (; i < count; i += stride) {
        uint4 a = from[i];
        for (unsigned copy = 0; copy < copies; copy++)
            to[copy * count + i] = a;
    }
}

static void check_whole(size_t bytes) {
    if (bytes % sizeof(uint4) != 0)
        gpu_die("sizes of plain copies are multiples of 16");
}

void gpu_spread(const struct gpu_rank *rank, void *to, const void *from, size_t bytes,
                unsigned copies, unsigned blocks) {
    check_whole(bytes);
    spread_kernel<<<blocks, COPY_THREADS, 0, rank->stream>>>((uint4 *)to, (const uint4 *)from,
                                                             bytes / sizeof(uint4), copies);
    NEED_CUDA(cudaGetLastError());
}

void gpu_copy(const struct gpu_rank *rank, void *to, const void *from, size_t bytes,
              unsigned blocks) {
    check_whole(bytes);
    copy_kernel<<<blocks, COPY_THREADS, 0, rank->stream>>>((uint4 *)to, (const uint4 *)from,
                                                           bytes / sizeof(uint4));
    NEED_CUDA(cudaGetLastError());
}
