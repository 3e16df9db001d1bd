/*
 * A kernel that exchanges its own edges, step after step, without returning to the host.
 *
 * A ring of cells is cut into pieces, one for each thread block of each rank. In a step every cell
 * becomes the sum of its neighbours and twice itself (modulo 2^64, so that the result is exact and
 * every wrong cell spreads). For its outermost cells a piece needs one cell of each neighbour, which
 * is a thread block of the same rank or of another; the code does not care which.
 *
 * An edge is 8 bytes, so it travels with its stamp (hem/device/stamped.h): one store there, and the
 * neighbour polls the place itself. The stamp is the number of the step. It goes on counting from
 * launch to launch, in device memory.
 *
 * Each edge has two places, used in turns. That is enough: who stores the edge of step k + 2 has
 * taken its neighbour's edge of step k + 1, and the neighbour sent that after it had taken the one
 * of step k, which was in the same place.
 */
#ifndef EXAMPLES_CUDA_EDGES_CUH
#define EXAMPLES_CUDA_EDGES_CUH

#include <hem/device.cuh>

typedef struct edges_args {
    hem_dev_window w;
    uint64_t places; /* in the window, EDGES_BYTES for each thread block */
    uint64_t count;  /* cells of a piece, at least 1 */
    uint64_t steps;
    uint64_t *cells[2]; /* of all pieces of this rank, now and next; the result is in the first if
                         * the number of steps is even */
    uint64_t *ghosts;   /* two per thread block: what came from the left and from the right */
    uint64_t *done;     /* one per thread block: steps so far, over all launches */
    uint64_t *failed;   /* gets -status if something goes wrong */
} edges_args;

/* Bytes of the window that a thread block needs. */
enum {
    EDGES_BYTES = 64
};

/* Where the edge that comes from the left (side 0) or right (1) of a thread block lands. */
HEM_DEV uint64_t edges_place(const edges_args *args, uint32_t block, uint32_t side, uint64_t step) {
    return args->places + EDGES_BYTES * (uint64_t)block + 32 * side + 16 * (step % 2);
}

/* The neighbour of this thread block on one side. */
HEM_DEV int edges_neighbour(const edges_args *args, uint32_t side, uint32_t *block_p) {
    const uint32_t index = hem_block_index(), blocks = hem_block_count();
    const int ranks = args->w.size, me = args->w.rank;
    if (side == 0) {
        *block_p = index == 0 ? blocks - 1 : index - 1;
        return index == 0 ? (me + ranks - 1) % ranks : me;
    }
    *block_p = index == blocks - 1 ? 0 : index + 1;
    return index == blocks - 1 ? (me + 1) % ranks : me;
}

/* One warp looks after each side, or one after both. */
HEM_DEV bool edges_mine(uint32_t side) {
    return hem_warp_index() == side % hem_warp_count();
}

HEM_DEV hem_status edges_send(const edges_args *args, const uint64_t *cells, uint64_t step) {
    hem_status status = HEM_OK;
    for (uint32_t side = 0; side < 2 && status == HEM_OK; side++) {
        uint32_t block;
        int peer = edges_neighbour(args, side, &block);
        /* What I send to the left comes from the right there. */
        if (edges_mine(side))
            status = hem_dev_put_stamped(args->w, hem_warp(), peer,
                                         edges_place(args, block, 1 - side, step),
                                         side == 0 ? &cells[0] : &cells[args->count - 1], 8, step);
    }
    return status;
}

HEM_DEV hem_status edges_take(const edges_args *args, uint64_t *ghosts, uint64_t step) {
    hem_status status = HEM_OK;
    for (uint32_t side = 0; side < 2 && status == HEM_OK; side++) {
        uint32_t block;
        int peer = edges_neighbour(args, side, &block);
        if (edges_mine(side))
            status = hem_dev_take_stamped(args->w, hem_warp(), peer,
                                          edges_place(args, hem_block_index(), side, step),
                                          &ghosts[side], 8, step, HEM_FOREVER);
    }
    return status;
}

HEM_DEV void edges_step(const edges_args *args, hem_group block, const uint64_t *now,
                        uint64_t *next, const uint64_t *ghosts) {
    const uint64_t last = args->count - 1;
    for (uint64_t i = block.rank; i <= last; i += block.size)
        next[i] =
            (i == 0 ? ghosts[0] : now[i - 1]) + 2 * now[i] + (i == last ? ghosts[1] : now[i + 1]);
}

HEM_DEV void edges_kernel(const edges_args *args) {
    const uint32_t index = hem_block_index();
    const uint64_t first = args->done[index] + 1;
    hem_group block = hem_block();
    uint64_t *ghosts = args->ghosts + 2 * (uint64_t)index;

    for (uint64_t step = first; step < first + args->steps; step++) {
        const uint64_t turn = (step - first) % 2;
        const uint64_t *now = args->cells[turn] + args->count * index;
        uint64_t *next = args->cells[1 - turn] + args->count * index;
        hem_status status = edges_send(args, now, step);
        if (status == HEM_OK)
            status = edges_take(args, ghosts, step);
        /* Everybody has the ghosts, or everybody stops. */
        if (hem_group_any(block, status != HEM_OK)) {
            if (status != HEM_OK)
                hemd_store64_relaxed(args->failed, (uint64_t) - (int)status);
            return;
        }
        edges_step(args, block, now, next, ghosts);
        hem_group_sync(block);
    }
    if (block.rank == 0)
        args->done[index] = first + args->steps - 1;
}

#endif
