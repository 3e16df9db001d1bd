/*
 * A stencil in three dimensions: every cell becomes a sum of itself and its six neighbours. The box of
 * a rank has one more cell on each side, its halo, which an exchange fills.
 *
 * The cells inside of the box need no halo. Those of its surface do. So the box is done in two kernels:
 * the inside while the exchange is under way, then the surface.
 */
#ifndef EXAMPLES_CUDA_STENCIL_CUH
#define EXAMPLES_CUDA_STENCIL_CUH

#include <hem/device/group.h>

typedef struct stencil_args {
    const uint32_t *from;
    uint32_t *to;
    int64_t count[3]; /* of the rank's own cells; the last dimension is contiguous */
    int32_t surface;  /* 0: the inside, 1: the rest */
} stencil_args;

/* A piece of the box: cells `low` to before `high`. */
typedef struct stencil_piece {
    int64_t low[3];
    int64_t high[3];
} stencil_piece;

/* Where an own cell is, halo included. */
HEM_DEV int64_t stencil_index(const stencil_args *args, int64_t x, int64_t y, int64_t z) {
    return ((x + 1) * (args->count[1] + 2) + y + 1) * (args->count[2] + 2) + z + 1;
}

/* Whole numbers, so that the result has the same bits however the grid was cut. */
HEM_DEV uint32_t stencil_value(const uint32_t *at, int64_t row, int64_t plane) {
    return 3 * at[0] + at[-1] + 5 * at[1] + at[-row] + 7 * at[row] + at[-plane] + 11 * at[plane];
}

HEM_DEV void stencil_run_piece(const stencil_args *args, const stencil_piece *p) {
    hem_group block = hem_block();
    const int64_t row = args->count[2] + 2;
    const int64_t plane = row * (args->count[1] + 2);
    const int64_t ny = p->high[1] - p->low[1];
    const int64_t nz = p->high[2] - p->low[2];
    const int64_t cells = (p->high[0] - p->low[0]) * ny * nz;
    const int64_t stride = (int64_t)block.size * hem_block_count();

    for (int64_t i = (int64_t)block.size * hem_block_index() + block.rank; i < cells; i += stride) {
        int64_t at = stencil_index(args, p->low[0] + i / nz / ny, p->low[1] + i / nz % ny,
                                   p->low[2] + i % nz);
        args->to[at] = stencil_value(args->from + at, row, plane);
    }
}

/*
 * Pieces 0 to 5 are the surface: both ends of each dimension, of what the dimensions before have left.
 * Piece 6 is the inside.
 */
HEM_DEV stencil_piece stencil_piece_of(const stencil_args *args, int n) {
    stencil_piece p;
    for (int d = 0; d < 3; d++) {
        bool inner = d < n / 2;
        p.low[d] = inner ? 1 : 0;
        p.high[d] = args->count[d] - (inner ? 1 : 0);
        if (d == n / 2 && n % 2 == 0)
            p.high[d] = 1;
        if (d == n / 2 && n % 2 == 1) /* a box of one cell has one end */
            p.low[d] = args->count[d] > 1 ? args->count[d] - 1 : 1;
        if (p.high[d] < p.low[d])
            p.high[d] = p.low[d];
    }
    return p;
}

HEM_DEV void stencil_kernel(const stencil_args *args) {
    for (int n = args->surface ? 0 : 6; n < (args->surface ? 6 : 7); n++) {
        stencil_piece p = stencil_piece_of(args, n);
        stencil_run_piece(args, &p);
    }
}

#endif
