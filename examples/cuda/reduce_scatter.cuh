/*
 * Reduce-scatter written by hand, as a kernel. Every rank has P parts of `count` numbers, one for
 * each of the P ranks. Rank d wants the sum over all ranks of their part d. What has to come after
 * what is told in examples/reduce_scatter.c; this is the same, by thread blocks:
 *
 *   1. Stage in. Copy one's P parts into the scratch, where peers can read them.
 *   2. Barrier FILLED: every scratch is full, and what is in it is visible.
 *   3. Reduce. Load part d of one peer after the other, in place, and add up in registers. In rank
 *      order: so the sums are the same in every run.
 *
 * Before the next launch may stage in, all must have read what they need of this one. Nobody stands
 * still for that: a thread block *arrives* at barrier READ when it has read, and the next launch
 * *waits* there. In between the GPU does whatever else is on the stream. The arrival that the first
 * wait needs is made by a launch of its own, reduce_scatter_begin.
 *
 * Thread block b of each rank works on its share of every part, and meets the thread blocks b of the
 * other ranks alone.
 */
#ifndef EXAMPLES_CUDA_REDUCE_SCATTER_CUH
#define EXAMPLES_CUDA_REDUCE_SCATTER_CUH

#include <hem/device.cuh>

typedef struct reduce_scatter_args {
    hem_dev_window w;
    uint64_t scratch; /* where it is in the window, on all ranks */
    uint64_t count;   /* of a part */
    const double *mine;
    double *out;
    uint64_t *failed; /* gets -status if something goes wrong */
} reduce_scatter_args;

/* The barriers of a thread block: FILLED and READ. */
enum {
    REDUCE_SCATTER_BARRIERS = 2
};

HEM_DEV void reduce_scatter_report(const reduce_scatter_args *args, hem_group block,
                                   hem_status status) {
    if (status != HEM_OK && block.rank == 0)
        *args->failed = (uint64_t) - (int)status;
}

/* Nothing is to be read yet. */
HEM_DEV void reduce_scatter_begin_kernel(const reduce_scatter_args *args) {
    hem_group block = hem_block();
    reduce_scatter_report(args, block,
                          hem_dev_barrier_arrive(args->w, block, 2 * hem_block_index() + 1));
}

HEM_DEV void reduce_scatter_sum(const reduce_scatter_args *args, hem_group block, uint64_t begin,
                                uint64_t end) {
    const uint64_t part = args->scratch + (uint64_t)args->w.rank * args->count * sizeof(double);
    for (uint64_t i = begin + block.rank; i < end; i += block.size) {
        double sum = 0;
        for (int peer = 0; peer < args->w.size; peer++)
            sum += ((const double *)hem_dev_address(args->w, peer, part))[i];
        args->out[i] = sum;
    }
}

HEM_DEV void reduce_scatter_kernel(const reduce_scatter_args *args) {
    const uint32_t index = hem_block_index(), blocks = hem_block_count();
    const uint32_t filled = 2 * index, read = 2 * index + 1;
    const uint64_t begin = args->count * index / blocks, end = args->count * (index + 1) / blocks;
    hem_group block = hem_block();
    double *scratch = (double *)hem_dev_address(args->w, args->w.rank, args->scratch);

    hem_status status = hem_dev_barrier_wait(args->w, block, read, HEM_FOREVER); /* of the last */
    if (status == HEM_OK) {
        for (uint64_t part = 0; part < (uint64_t)args->w.size; part++)
            for (uint64_t i = begin + block.rank; i < end; i += block.size)
                scratch[part * args->count + i] = args->mine[part * args->count + i];
        status = hem_dev_barrier(args->w, block, filled, HEM_FOREVER);
    }
    if (status == HEM_OK) {
        reduce_scatter_sum(args, block, begin, end);
        status = hem_dev_barrier_arrive(args->w, block, read);
    }
    reduce_scatter_report(args, block, status);
}

#endif
