/*
 * Moves: a nest of loops that copies chunks from one place to another.
 *
 * Packing, unpacking and copying between fields are the same thing with other strides. Either side
 * may have a list of offsets. Everything is decided when moves are laid out; a run looks nothing
 * up.
 *
 * How this works: the innermost loop is the row, and one loop around it is run by the same kernel.
 * All other loops are around that. Where the loop that is best for reading is not the one that is
 * best for writing, the row is cut into blocks, so that few enough cache lines are in use that each
 * is fetched once: the loops from `outside` on are then run for each block.
 */
#ifndef HEMI_HALO_SHAPE_MOVES_H
#define HEMI_HALO_SHAPE_MOVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Loops, the row and the one around it included. */
#define HEMI_MOVES_LOOPS 10

typedef struct hemi_move_loop {
    uint64_t count;
    int64_t to;
    int64_t from;
} hemi_move_loop;

/** A contiguous piece of a field. */
typedef struct hemi_shape_run {
    int64_t offset;
    uint64_t bytes;
} hemi_shape_run;

/** Offsets of the steps of the row, on a side that has a list. At most one of them is not NULL. */
typedef struct hemi_move_list {
    const int32_t *near;
    const int64_t *far;
    const hemi_shape_run *runs; /**< the row is all runs, and the other side is contiguous */
} hemi_move_list;

typedef struct hemi_moves hemi_moves;

/** Runs `count` steps of the row from step `first` on, inside of the loop around it. Sides without
 *  a list are those of step `first` already. */
typedef void (*hemi_move_kernel)(const hemi_moves *moves, unsigned char *to,
                                 const unsigned char *from, uint64_t first, uint64_t count);

struct hemi_moves {
    hemi_move_kernel kernel;
    uint64_t chunk;
    uint64_t block; /**< steps of the row at a time */
    hemi_move_loop row;
    hemi_move_loop around;
    hemi_move_list to_list;
    hemi_move_list from_list;
    uint32_t loop_count;
    uint32_t outside; /**< how many of the loops are around the blocks; the others are inside */
    hemi_move_loop loops[HEMI_MOVES_LOOPS - 2];
};

/** What to lay out: the last loop is the innermost. */
typedef struct hemi_move_nest {
    uint64_t chunk;
    uint32_t loop_count;
    uint32_t list_at; /**< the loop that has lists, or loop_count. Runs are innermost. */
    /** Loops may be run in any order. Equal steps of a list stay in order in any case. */
    bool any_order;
    hemi_move_loop loops[HEMI_MOVES_LOOPS];
    hemi_move_list to_list;
    hemi_move_list from_list;
} hemi_move_nest;

void hemi_moves_lay_out(const hemi_move_nest *nest, hemi_moves *moves);

void hemi_moves_run(const hemi_moves *moves, void *to, const void *from);

/** The kernel for the chunk, the row and the lists of these moves. */
hemi_move_kernel hemi_move_kernel_of(const hemi_moves *moves);

#endif
