#ifndef BENCH_GPU_WINDOW_H
#define BENCH_GPU_WINDOW_H

/* Sendrecv written by hand on hem/device.cuh, into a buffer that lies in a window: one copy. */

#include "gpu.h"

#include <hem/device.cuh>

/* As many blocks as have signals of their own. */
enum {
    GPU_WINDOW_BLOCKS = 64
};

struct gpu_window {
    hem_window *window;
    hem_dev_window w;
    uint64_t *turns; /* how often each block has sent and received, in device memory */
};

/* With room for `bytes`. Collective. */
void gpu_window_open(struct gpu_rank *rank, size_t bytes, struct gpu_window *made_p);
void gpu_window_close(struct gpu_rank *rank, struct gpu_window *made);

/* Where messages arrive on this rank. */
unsigned char *gpu_window_memory(const struct gpu_window *made);

/* Between ranks 0 and 1, on the stream. */
void gpu_window_sendrecv(struct gpu_rank *rank, struct gpu_window *made, const void *data,
                         size_t bytes, unsigned blocks, bool sends, bool receives);

#endif
