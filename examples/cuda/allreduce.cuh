/*
 * All-reduce written by hand, as a kernel. Every rank has `count` numbers and wants their sums over
 * all ranks. The work is shared: of the P ranks, rank d adds up the d-th part of the numbers. What
 * has to come after what is told in examples/allreduce.c; this is the same, by thread blocks:
 *
 *   1. Stage in. Copy one's numbers into the scratch, where peers can read them.
 *   2. Barrier FILLED: every scratch is full.
 *   3. Reduce. Rank d adds up part d of all scratches, which it reads in place, in rank order, and
 *      writes the sums over part d of its own scratch. Nobody else reads that before the barrier.
 *   4. Barrier REDUCED: every part is added up.
 *   5. Read. Get part d from the scratch of rank d, for each d.
 *
 * Two scratches are used in turns. To write one of them again a rank must have passed the barriers of
 * the launch in between, and each peer entered those after it had read all that it needed. So no
 * third barrier is needed. Whose turn it is stands in device memory and is counted by the kernel:
 * a number from the host would be the same in each replay of a graph.
 *
 * Thread block b of each rank works on its share of every part, and meets the thread blocks b of the
 * other ranks alone.
 */
#ifndef EXAMPLES_CUDA_ALLREDUCE_CUH
#define EXAMPLES_CUDA_ALLREDUCE_CUH

#include <hem/device.cuh>

typedef struct allreduce_args {
    hem_dev_window w;
    uint64_t scratch[2]; /* where they are in the window, on all ranks */
    uint64_t count;
    const double *mine;
    double *out;
    uint64_t *turns;  /* one per thread block, 0 at first */
    uint64_t *failed; /* gets -status if something goes wrong */
} allreduce_args;

/* The barriers of a thread block: FILLED and REDUCED. */
enum {
    ALLREDUCE_BARRIERS = 2
};

/* The share of this thread block in part `part`: it ends where that of the next one begins. */
HEM_DEV uint64_t allreduce_begin(const allreduce_args *args, int part, uint32_t block) {
    const uint64_t ranks = (uint64_t)args->w.size, blocks = hem_block_count();
    const uint64_t first = args->count * (uint64_t)part / ranks;
    const uint64_t last = args->count * ((uint64_t)part + 1) / ranks;
    return first + (last - first) * block / blocks;
}

HEM_DEV double *allreduce_scratch(const allreduce_args *args, uint64_t turn, int peer) {
    return (double *)hem_dev_address(args->w, peer, args->scratch[turn % 2]);
}

HEM_DEV void allreduce_stage(const allreduce_args *args, hem_group block, uint64_t turn) {
    double *scratch = allreduce_scratch(args, turn, args->w.rank);
    for (int part = 0; part < args->w.size; part++) {
        const uint64_t end = allreduce_begin(args, part, hem_block_index() + 1);
        uint64_t i = allreduce_begin(args, part, hem_block_index()) + block.rank;
        for (; i < end; i += block.size)
            scratch[i] = args->mine[i];
    }
}

HEM_DEV void allreduce_sum(const allreduce_args *args, hem_group block, uint64_t turn) {
    const uint64_t end = allreduce_begin(args, args->w.rank, hem_block_index() + 1);
    uint64_t i = allreduce_begin(args, args->w.rank, hem_block_index()) + block.rank;
    for (; i < end; i += block.size) {
        double sum = 0;
        for (int peer = 0; peer < args->w.size; peer++)
            sum += allreduce_scratch(args, turn, peer)[i];
        allreduce_scratch(args, turn, args->w.rank)[i] = sum;
    }
}

HEM_DEV hem_status allreduce_read(const allreduce_args *args, hem_group block, uint64_t turn) {
    for (int step = 0; step < args->w.size; step++) {
        int owner = (args->w.rank + step) % args->w.size;
        const uint64_t begin = allreduce_begin(args, owner, hem_block_index());
        const uint64_t end = allreduce_begin(args, owner, hem_block_index() + 1);
        hem_status status =
            hem_dev_get(args->w, block, owner, args->scratch[turn % 2] + begin * sizeof(double),
                        args->out + begin, (end - begin) * sizeof(double));
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

HEM_DEV void allreduce_kernel(const allreduce_args *args) {
    const uint32_t filled = 2 * hem_block_index(), reduced = filled + 1;
    const uint64_t turn = args->turns[hem_block_index()];
    hem_group block = hem_block();

    allreduce_stage(args, block, turn);
    hem_status status = hem_dev_barrier(args->w, block, filled, HEM_FOREVER);
    if (status == HEM_OK) {
        allreduce_sum(args, block, turn);
        status = hem_dev_barrier(args->w, block, reduced, HEM_FOREVER);
    }
    if (status == HEM_OK)
        status = allreduce_read(args, block, turn);
    /* All threads of the block have loaded the turn: they have met since. */
    if (block.rank == 0)
        args->turns[hem_block_index()] = turn + 1;
    if (status != HEM_OK && block.rank == 0)
        *args->failed = (uint64_t) - (int)status;
}

#endif
