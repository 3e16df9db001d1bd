#ifndef BENCH_GPU_H
#define BENCH_GPU_H

/*
 * What the parts of hem-bench-gpu share: the runner of the benchmarks gpu-*, one program for Hem, for
 * NCCL and for plain copies (--who), and hem-bench-nvshmem for NVSHMEM. Ranks are threads of one process, or with --processes those that
 * `hem run` has started. It prints lines as the other runners do, with two things more:
 *
 *   {"bench":"gpu-sendrecv","impl":"hem-both-8","ranks":2,"bytes":1048576,"us":9.25,"gbps":113.36,
 *    "line_ns":0,"blocks":8,"l2":1}
 *
 * `blocks` is the grid that was really launched, as the captured graph says. `l2` is 1 where all that
 * is read and written fits into the GPU's L2 cache, and 2 where it does not; with several GPUs their
 * caches together count.
 *
 * How it is measured. What is measured is captured `inner` times into one CUDA graph. A sample is: all
 * ranks meet on the host, replay, event, replay, event; the time between the two events counts, so
 * that the host's share of a launch is hidden behind the first replay. Of each sample the slowest
 * rank's time counts, and of the samples the median. Every configuration is run once before and once
 * after with fresh data and checked. Each has a time limit, after which the program ends with a
 * sentence.
 */

extern "C" {
#include "../hem/bench_kind.h"
#include "../hem/bench_sizes.h"
}

#include <hem/cuda.h>
#include <hem/hem.h>

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_who {
    GPU_HEM,
    GPU_RAW,
    GPU_NCCL,
    GPU_NVSHMEM /* in hem-bench-nvshmem only */
};

struct gpu_args {
    enum bench_kind kind;
    enum gpu_who who;
    int ranks;
    bool processes;
    struct hemt_sizes sizes;
    struct hemt_sizes blocks; /* the most blocks of a rank, one after the other */
};

/* One rank. */
struct gpu_rank {
    const struct gpu_args *args;
    hem_world *world;
    int rank;
    int ranks;
    size_t l2_bytes; /* of all GPUs that ranks are on */
    int processors;
    cudaStream_t stream;
    hem_stream *hem; /* the same for Hem; NULL for the others */
    unsigned *wrong; /* a word in device memory */
};

/* Each measurement ends within this. */
enum {
    GPU_LIMIT_S = 20
};
#define GPU_LIMIT_NS HEM_SEC(GPU_LIMIT_S)

/* Says what went wrong and ends the program: with 3, or with 77 for something that is not here. */
[[noreturn]] void gpu_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void gpu_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

void gpu_need_hem(hem_status status, const char *what, int line);
void gpu_need_cuda(cudaError_t error, const char *what, int line);
#define NEED_HEM(call)  gpu_need_hem((call), #call, __LINE__)
#define NEED_CUDA(call) gpu_need_cuda((call), #call, __LINE__)

/* What is measured from now on; it ends within GPU_LIMIT_S. */
void gpu_watch(const struct gpu_rank *rank, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* All ranks meet on the host. */
void gpu_meet(const struct gpu_rank *rank);

/* Each value becomes the largest of all ranks'. */
void gpu_max(const struct gpu_rank *rank, double *values, size_t count);

/* Device memory of this rank's own. Freed when no kernel runs on any rank. */
unsigned char *gpu_alloc(const struct gpu_rank *rank, size_t bytes);
void gpu_free(const struct gpu_rank *rank, void *memory);

/* Fill memory with bytes that follow from `seed`, and end the program if something else is there. */
void gpu_fill(struct gpu_rank *rank, void *memory, size_t bytes, uint32_t seed);
void gpu_check(struct gpu_rank *rank, const void *memory, size_t bytes, uint32_t seed);

/* Wait for this rank's stream, after which its kernels are done. */
void gpu_finish(const struct gpu_rank *rank);

/* Keep the GPU busy for a while: one that was idle has a low clock, which would make whatever is measured
 * first look slow. By all ranks. */
void gpu_warm(struct gpu_rank *rank);

struct gpu_result {
    double us;       /* of one call of the body, valid on all ranks */
    unsigned blocks; /* the largest grid in the graph; 0: there is no kernel in it */
};

/* Puts what is measured onto rank->stream, once. It may be NULL: this rank has nothing to do. */
typedef void (*gpu_body)(struct gpu_rank *rank, void *ctx);

struct gpu_result gpu_measure(struct gpu_rank *rank, gpu_body body, void *ctx, unsigned inner);

/* How often a body that moves so many bytes is captured. */
unsigned gpu_inner(size_t bytes);

/* What a line says besides the time. */
struct gpu_line {
    const char *way; /* what stands behind the library's name, such as "both" */
    unsigned cap;    /* blocks at most, a second part of the way; 0: none */
    size_t bytes;
    size_t moved;   /* what the rate counts; 0: bytes */
    size_t touched; /* different bytes in device memory that all ranks read or write */
};

void gpu_print(const struct gpu_rank *rank, const struct gpu_line *line, struct gpu_result result);

/* A sentence that stands below the table. */
void gpu_note(const struct gpu_rank *rank, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A plain copy by `blocks` blocks, 16 bytes at a time, on the rank's stream. */
void gpu_copy(const struct gpu_rank *rank, void *to, const void *from, size_t bytes,
              unsigned blocks);

/* The same, but what is loaded once is stored `copies` times, one copy behind the other. */
void gpu_spread(const struct gpu_rank *rank, void *to, const void *from, size_t bytes,
                unsigned copies, unsigned blocks);

/* The benchmarks. */
void gpu_signal(struct gpu_rank *rank);
void gpu_put(struct gpu_rank *rank);
void gpu_sendrecv(struct gpu_rank *rank);
void gpu_exchange(struct gpu_rank *rank);
void gpu_coll(struct gpu_rank *rank);

#endif
