/* How a warp does a tile: copies of units, and cells of a reverse run. */
#ifndef HEMD_KERNELS_HALO_MOVE_H
#define HEMD_KERNELS_HALO_MOVE_H

#include "device/kernels/halo_combine.h"
#include "device/kernels/halo_table.h"

#include <hem/device/group.h>

#if defined(__CUDACC__)
#define HEMD_UNROLL _Pragma("unroll")
typedef ulonglong2 hemd_bytes16;
typedef uint64_t hemd_bytes8;
typedef uint32_t hemd_bytes4;
typedef uint16_t hemd_bytes2;
typedef uint8_t hemd_bytes1;
#else
#define HEMD_UNROLL
typedef struct hemd_bytes16 {
    uint64_t x;
    uint64_t y;
} __attribute__((aligned(16), may_alias)) hemd_bytes16;
typedef uint64_t __attribute__((may_alias)) hemd_bytes8;
typedef uint32_t __attribute__((may_alias)) hemd_bytes4;
typedef uint16_t __attribute__((may_alias)) hemd_bytes2;
typedef uint8_t hemd_bytes1;
#endif

/** Where unit i is, for sides that are walked in registers. */
HEM_DEV unsigned char *hemd_halo_at_few(const hemd_halo_side *side, uint32_t i) {
    unsigned char *at = side->base;
    HEMD_UNROLL
    for (uint32_t k = 0; k < HEMD_HALO_FEW; k++) {
        if (k < side->axis_count) {
            uint32_t rest = hemd_halo_divide(i, side->axes[k].magic, side->axes[k].shift);
            uint32_t step = i - rest * (uint32_t)side->axes[k].count;
            at += k == side->list_at ? hemd_halo_listed(side, step)
                                     : (int64_t)step * side->axes[k].stride;
            i = rest;
        }
    }
    return at;
}

/* Loads are issued before any store, so that their latencies overlap. Who has nothing left loads
 * the last unit once more. */
#define HEMD_HALO_MOVE(WIDTH)                                                                      \
    HEM_DEV void hemd_halo_move##WIDTH(hem_group group, const hemd_halo_side *from,                \
                                       const hemd_halo_side *to, uint32_t first, uint32_t end) {   \
        for (uint32_t i = first + group.rank; i < end; i += 4 * group.size) {                      \
            hemd_bytes##WIDTH unit[4];                                                             \
            HEMD_UNROLL                                                                            \
            for (uint32_t j = 0; j < 4; j++) {                                                     \
                uint32_t n = i + j * group.size;                                                   \
                unit[j] = *(const hemd_bytes##WIDTH *)(const void *)hemd_halo_at_few(              \
                    from, n < end ? n : end - 1);                                                  \
            }                                                                                      \
            HEMD_UNROLL                                                                            \
            for (uint32_t j = 0; j < 4; j++) {                                                     \
                uint32_t n = i + j * group.size;                                                   \
                if (n < end)                                                                       \
                    *(hemd_bytes##WIDTH *)(void *)hemd_halo_at_few(to, n) = unit[j];               \
            }                                                                                      \
        }                                                                                          \
    }

HEMD_HALO_MOVE(1)
HEMD_HALO_MOVE(2)
HEMD_HALO_MOVE(4)
HEMD_HALO_MOVE(8)
HEMD_HALO_MOVE(16)

HEM_DEV uint64_t hemd_halo_load_piece(const unsigned char *at, uint32_t width) {
    switch (width) {
    case 8:
        return *(const hemd_bytes8 *)(const void *)at;
    case 4:
        return *(const hemd_bytes4 *)(const void *)at;
    case 2:
        return *(const hemd_bytes2 *)(const void *)at;
    default:
        return *at;
    }
}

HEM_DEV void hemd_halo_store_piece(unsigned char *at, uint32_t width, uint64_t value) {
    switch (width) {
    case 8:
        *(hemd_bytes8 *)(void *)at = value;
        break;
    case 4:
        *(hemd_bytes4 *)(void *)at = (uint32_t)value;
        break;
    case 2:
        *(hemd_bytes2 *)(void *)at = (uint16_t)value;
        break;
    default:
        *at = (uint8_t)value;
        break;
    }
}

/** A unit of at most 8 bytes, in pieces of `width` bytes. */
HEM_DEV uint64_t hemd_halo_load(const unsigned char *at, uint32_t unit, uint32_t width) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < unit; i += width)
        value |= hemd_halo_load_piece(at + i, width) << 8 * i;
    return value;
}

HEM_DEV void hemd_halo_store(unsigned char *at, uint32_t unit, uint32_t width, uint64_t value) {
    for (uint32_t i = 0; i < unit; i += width)
        hemd_halo_store_piece(at + i, width, value >> 8 * i);
}

/** One unit of any part. Those of 16 bytes do not fit into a word: they are as aligned as they are
 *  wide, and stay as they are. */
HEM_DEV void hemd_halo_move_unit(const hemd_halo_part *part, const unsigned char *from,
                                 unsigned char *to) {
    if (part->unit == 16) {
        *(hemd_bytes16 *)(void *)to = *(const hemd_bytes16 *)(const void *)from;
        return;
    }
    uint64_t value = hemd_halo_load(from, part->unit, part->width);
    value = hemd_halo_changed(value, part->unit, part->change);
    hemd_halo_store(to, part->unit, part->width, value);
}

/** Any part: many axes, odd addresses, signs that change, more units than 31 bits count. */
HEM_DEV_SLOW void hemd_halo_move_any(hem_group group, const hemd_halo_part *part, uint64_t first,
                                     uint64_t end, unsigned char *message) {
    const unsigned char *from = part->from.is_message ? message : part->from.base;
    unsigned char *to = part->to.is_message ? message : part->to.base;
    for (uint64_t i = first + group.rank; i < end; i += group.size)
        hemd_halo_move_unit(part, from + hemd_halo_offset(&part->from, i),
                            to + hemd_halo_offset(&part->to, i));
}

/** A tile of a part. `message` is where the message of the tile's lane is. */
HEM_DEV void hemd_halo_copy(hem_group group, const hemd_halo_part *part, uint64_t first,
                            unsigned char *message) {
    uint64_t end = first + part->tile;
    end = end < part->total ? end : part->total;
    message += part->message;
    if (!part->few) {
        hemd_halo_move_any(group, part, first, end, message);
        return;
    }
    hemd_halo_side from = part->from;
    hemd_halo_side to = part->to;
    if (from.is_message)
        from.base = message;
    if (to.is_message)
        to.base = message;
    if (part->unit == 16)
        hemd_halo_move16(group, &from, &to, (uint32_t)first, (uint32_t)end);
    else if (part->unit == 8)
        hemd_halo_move8(group, &from, &to, (uint32_t)first, (uint32_t)end);
    else if (part->unit == 4)
        hemd_halo_move4(group, &from, &to, (uint32_t)first, (uint32_t)end);
    else if (part->unit == 2)
        hemd_halo_move2(group, &from, &to, (uint32_t)first, (uint32_t)end);
    else
        hemd_halo_move1(group, &from, &to, (uint32_t)first, (uint32_t)end);
}

/** A tile of cells: whatever comes back to each of them, in order, by one thread. */
HEM_DEV void hemd_halo_gather(hem_group group, const hemd_halo_group *cells,
                              const hemd_halo_source *sources, uint64_t first, uint64_t run) {
    uint64_t end = first + cells->tile;
    end = end < cells->total ? end : cells->total;
    uint32_t unit = cells->unit;
    uint32_t width = cells->width;
    for (uint64_t i = first + group.rank; i < end; i += group.size) {
        unsigned char *at = cells->cells[i].at;
        uint64_t last = cells->cells[i + 1].first;
        uint64_t value = cells->op != HEMD_HALO_REPLACE ? hemd_halo_load(at, unit, width) : 0;
        for (uint64_t k = cells->cells[i].first; k < last; k++) {
            uint64_t from = cells->froms[k];
            const hemd_halo_source *source = &sources[from >> HEMD_HALO_FROM_SHIFT];
            uint64_t come = hemd_halo_load(source->base + (run % 2) * source->turn +
                                               (from & HEMD_HALO_FROM_PLACE),
                                           unit, width);
            if ((from & HEMD_HALO_FROM_SIGN) != 0)
                come = hemd_halo_changed(come, unit, cells->change);
            value = hemd_halo_combined(cells->kind, cells->op, value, come);
        }
        hemd_halo_store(at, unit, width, value);
    }
}

#endif
