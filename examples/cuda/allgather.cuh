/*
 * All-gather written by hand, as a kernel. Every rank has a block of `count` numbers and wants the
 * blocks of all ranks, in rank order. What has to come after what is told in examples/allgather.c;
 * this is the same, by thread blocks:
 *
 *   1. Stage in. Copy one's numbers into the scratch, which lies in the window: peers can read it.
 *   2. Barrier FILLED: every scratch is full, and what is in it is visible.
 *   3. Read. Get the scratch of each peer, straight into its place in the result.
 *   4. Barrier READ: nobody reads any more, so that the next launch may write the scratch again.
 *
 * The thread blocks of a rank share the numbers. Each meets only the thread blocks of the same index
 * on the other ranks, at barriers of its own; so none of them waits for a neighbour on its own GPU,
 * and the grids of all ranks need not be synchronised as a whole.
 *
 * There is nothing to reset. How often a barrier was used stands in the memory of the window, so
 * the same launch, or a graph with it, can be repeated for ever.
 */
#ifndef EXAMPLES_CUDA_ALLGATHER_CUH
#define EXAMPLES_CUDA_ALLGATHER_CUH

#include <hem/device.cuh>

typedef struct allgather_args {
    hem_dev_window w;
    uint64_t scratch; /* where it is in the window, on all ranks */
    uint64_t count;
    const int64_t *mine;
    int64_t *out;
    uint64_t *failed; /* gets -status if something goes wrong */
} allgather_args;

/* The barriers of a thread block: FILLED and READ. */
enum {
    ALLGATHER_BARRIERS = 2
};

HEM_DEV hem_status allgather_read(const allgather_args *args, hem_group block, uint64_t begin,
                                  uint64_t end) {
    const int ranks = args->w.size;
    /* All start with themselves and go round, so that not all read from the same rank at once. */
    for (int step = 0; step < ranks; step++) {
        int peer = (args->w.rank + step) % ranks;
        hem_status status = hem_dev_get(
            args->w, block, peer, args->scratch + begin * sizeof(int64_t),
            args->out + (uint64_t)peer * args->count + begin, (end - begin) * sizeof(int64_t));
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

HEM_DEV void allgather_kernel(const allgather_args *args) {
    const uint32_t index = hem_block_index(), blocks = hem_block_count();
    const uint32_t filled = 2 * index, read = 2 * index + 1;
    const uint64_t begin = args->count * index / blocks, end = args->count * (index + 1) / blocks;
    hem_group block = hem_block();
    int64_t *scratch = (int64_t *)hem_dev_address(args->w, args->w.rank, args->scratch);

    for (uint64_t i = begin + block.rank; i < end; i += block.size)
        scratch[i] = args->mine[i];
    hem_status status = hem_dev_barrier(args->w, block, filled, HEM_FOREVER);
    if (status == HEM_OK)
        status = allgather_read(args, block, begin, end);
    if (status == HEM_OK)
        status = hem_dev_barrier(args->w, block, read, HEM_FOREVER);
    if (status != HEM_OK && block.rank == 0)
        *args->failed = (uint64_t) - (int)status;
}

#endif
