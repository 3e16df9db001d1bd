#ifndef BENCH_GPU_ENGINES_H
#define BENCH_GPU_ENGINES_H

/* Sendrecv by the copy engines: an exchange (HEM_EXCHANGE_ENGINES) between two ranks, each of which owns
 * `bytes` points of one byte that are the other's halo. */

#include "gpu.h"

struct gpu_engines {
    size_t bytes;
    hem_window *window;
    hem_exchange *exchange;
};

/* Both ways, or from rank 0 to rank 1. Collective. */
void gpu_engines_open(struct gpu_rank *rank, size_t bytes, bool both, struct gpu_engines *made_p);
void gpu_engines_close(struct gpu_rank *rank, struct gpu_engines *made);

/* What this rank sends, and where it receives. */
unsigned char *gpu_engines_source(const struct gpu_engines *made);
unsigned char *gpu_engines_target(const struct gpu_rank *rank, const struct gpu_engines *made);

/* On the stream. */
void gpu_engines_sendrecv(struct gpu_rank *rank, struct gpu_engines *made);

#endif
