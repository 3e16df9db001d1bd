/*
 * Copies in stream order, by a kernel.
 *
 * The copy engines of a GPU have few queues. A copy that waits there for a kernel of its own stream
 * holds up the copies of other ranks behind it, and the kernel may wait for one of those: where ranks
 * are threads of one process, that is a deadlock. Kernels have queues enough.
 */
#ifndef HEMI_DEVICE_KERNELS_COPY_H
#define HEMI_DEVICE_KERNELS_COPY_H

#include <hem/device/copy.h>

/** Pieces of one launch. */
#define HEMD_COPY_PIECES 16

typedef struct hemd_copy_piece {
    void *to;
    const void *from;
    uint64_t bytes;
} hemd_copy_piece;

typedef struct hemd_copy_args {
    uint64_t count;
    hemd_copy_piece pieces[HEMD_COPY_PIECES];
} hemd_copy_args;

/** Every block does its share of each piece. */
HEM_DEV void hemd_kernel_copy(const struct hemd_copy_args *args) {
    const uint64_t line = HEM_DEV_LINE;
    for (uint64_t i = 0; i < args->count; i++) {
        const hemd_copy_piece *piece = &args->pieces[i];
        uint64_t share = (piece->bytes / hem_block_count() + line) / line * line;
        uint64_t begin = share * hem_block_index();
        if (begin >= piece->bytes)
            continue;
        uint64_t left = piece->bytes - begin;
        hemd_copy_long(hem_block(), (unsigned char *)piece->to + begin,
                       (const unsigned char *)piece->from + begin, left < share ? left : share);
    }
}

#endif
