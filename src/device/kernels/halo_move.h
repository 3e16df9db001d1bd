/* How a warp does a tile: copies of units, and cells and stretches of a reverse run. */
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

/** Where unit i of a side is that is walked in registers. All loops are there for every side, without a
 *  branch: of those that it does not have every step is 0, since the last one that it has leaves no rest. */
HEM_DEV unsigned char *hemd_halo_at_few(const hemd_halo_side *side, uint32_t i) {
    unsigned char *at = side->base;
    uint32_t listed = 0;
    HEMD_UNROLL
    for (uint32_t k = 0; k < HEMD_HALO_FEW; k++) {
        bool last = k + 1 == HEMD_HALO_FEW;
        uint32_t rest = last ? 0 : hemd_halo_divide(i, side->axes[k].magic, side->axes[k].shift);
        uint32_t step = last ? i : i - rest * (uint32_t)side->axes[k].count;
        at += (int64_t)step * side->axes[k].stride;
        listed = k == side->list_at ? step : listed;
        i = rest;
    }
    return side->list_width != 0 ? at + hemd_halo_listed(side, listed) : at;
}

HEM_DEV unsigned char *hemd_halo_at(const hemd_halo_side *side, uint32_t i, uint32_t width,
                                    bool is_message) {
    return is_message ? side->base + (uint64_t)i * width : hemd_halo_at_few(side, i);
}

/* Loads are issued before any store, so that their latencies overlap. At the end, who has nothing left
 * loads the last unit once more. `deep`, at most 4, and `packs` and `unpacks` are known when this is
 * compiled. */
#define HEMD_HALO_MOVE(WIDTH)                                                                      \
    HEM_DEV void hemd_halo_move##WIDTH(hem_group group, const hemd_halo_side *from,                \
                                       const hemd_halo_side *to, uint32_t first, uint32_t end,     \
                                       uint32_t deep, bool packs, bool unpacks) {                  \
        hemd_bytes##WIDTH unit[4];                                                                 \
        uint32_t i = first + group.rank;                                                           \
        for (; i + (deep - 1) * group.size < end; i += deep * group.size) {                        \
            HEMD_UNROLL                                                                            \
            for (uint32_t j = 0; j < deep; j++)                                                    \
                unit[j] = *(const hemd_bytes##WIDTH *)(const void *)hemd_halo_at(                  \
                    from, i + j * group.size, WIDTH, unpacks);                                     \
            HEMD_UNROLL                                                                            \
            for (uint32_t j = 0; j < deep; j++)                                                    \
                *(hemd_bytes##WIDTH *)(void *)hemd_halo_at(to, i + j * group.size, WIDTH, packs) = \
                    unit[j];                                                                       \
        }                                                                                          \
        if (i >= end)                                                                              \
            return;                                                                                \
        HEMD_UNROLL                                                                                \
        for (uint32_t j = 0; j < deep; j++) {                                                      \
            uint32_t n = i + j * group.size;                                                       \
            unit[j] = *(const hemd_bytes##WIDTH *)(const void *)hemd_halo_at(                      \
                from, n < end ? n : end - 1, WIDTH, unpacks);                                      \
        }                                                                                          \
        HEMD_UNROLL                                                                                \
        for (uint32_t j = 0; j < deep; j++) {                                                      \
            uint32_t n = i + j * group.size;                                                       \
            if (n < end)                                                                           \
                *(hemd_bytes##WIDTH *)(void *)hemd_halo_at(to, n, WIDTH, packs) = unit[j];         \
        }                                                                                          \
    }

HEMD_HALO_MOVE(1)
HEMD_HALO_MOVE(2)
HEMD_HALO_MOVE(4)
HEMD_HALO_MOVE(8)
HEMD_HALO_MOVE(16)

/** Units of any width, which both sides have. */
HEM_DEV void hemd_halo_move(hem_group group, uint32_t unit, const hemd_halo_side *from,
                            const hemd_halo_side *to, uint32_t first, uint32_t end, uint32_t deep,
                            bool packs, bool unpacks) {
    if (unit == 16)
        hemd_halo_move16(group, from, to, first, end, deep, packs, unpacks);
    else if (unit == 8)
        hemd_halo_move8(group, from, to, first, end, deep, packs, unpacks);
    else if (unit == 4)
        hemd_halo_move4(group, from, to, first, end, deep, packs, unpacks);
    else if (unit == 2)
        hemd_halo_move2(group, from, to, first, end, deep, packs, unpacks);
    else
        hemd_halo_move1(group, from, to, first, end, deep, packs, unpacks);
}

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

/** A tile of a part. `message` is where the message of the tile's lane is. `across`: how many units of a
 *  thread are under way from field to field, which takes the most registers. */
HEM_DEV void hemd_halo_copy(hem_group group, const hemd_halo_part *part, uint64_t first,
                            unsigned char *message, uint32_t across) {
    uint64_t end = first + part->tile;
    end = end < part->total ? end : part->total;
    message += part->message;
    if (!part->few) {
        hemd_halo_move_any(group, part, first, end, message);
        return;
    }
    hemd_halo_side from = part->from;
    hemd_halo_side to = part->to;
    if (to.is_message) {
        to.base = message;
        hemd_halo_move(group, part->unit, &from, &to, (uint32_t)first, (uint32_t)end, 4, true,
                       false);
    } else if (from.is_message) {
        from.base = message;
        hemd_halo_move(group, part->unit, &from, &to, (uint32_t)first, (uint32_t)end, 4, false,
                       true);
    } else {
        hemd_halo_move(group, part->unit, &from, &to, (uint32_t)first, (uint32_t)end, across, false,
                       false);
    }
}

/**
 * Cells from `first` to `end`: whatever comes back to each of them, in order, by one thread. A cell takes four
 * loads of which each needs the one before, so that a thread has `deep` of them under way, at most 4. This
 * and the type are constants where the compiler is to know them.
 */
HEM_DEV void hemd_halo_gather_as(hem_group group, const hemd_halo_group *cells,
                                 const hemd_halo_source *sources, uint64_t first, uint64_t end,
                                 uint64_t run, uint32_t kind, uint32_t op, uint32_t unit,
                                 uint32_t width, uint32_t deep) {
    for (uint64_t i = first + group.rank; i < end; i += deep * (uint64_t)group.size) {
        unsigned char *at[4];
        uint64_t next[4], value[4], come[4];
        uint32_t left[4]; /* of what comes back */
        bool more = true;
        HEMD_UNROLL
        for (uint32_t j = 0; j < deep; j++) {
            uint64_t n = i + j * (uint64_t)group.size;
            const hemd_halo_cell *cell = &cells->cells[n < end ? n : end - 1];
            at[j] = cell[0].at;
            next[j] = cell[0].first;
            left[j] = n < end ? (uint32_t)(cell[1].first - next[j]) : 0;
        }
        HEMD_UNROLL
        for (uint32_t j = 0; j < deep; j++) {
            bool loads = op != HEMD_HALO_REPLACE && i + j * (uint64_t)group.size < end;
            value[j] = loads ? hemd_halo_load(at[j], unit, width) : 0;
        }
        while (more) {
            uint64_t from[4];
            more = false;
            HEMD_UNROLL
            for (uint32_t j = 0; j < deep; j++)
                from[j] = left[j] != 0 ? cells->froms[next[j]] : 0;
            HEMD_UNROLL
            for (uint32_t j = 0; j < deep; j++) {
                const hemd_halo_source *source = &sources[from[j] >> HEMD_HALO_FROM_SHIFT];
                if (left[j] != 0)
                    come[j] = hemd_halo_load(source->base + (run % 2) * source->turn +
                                                 (from[j] & HEMD_HALO_FROM_PLACE),
                                             unit, width);
            }
            HEMD_UNROLL
            for (uint32_t j = 0; j < deep; j++) {
                if (left[j] == 0)
                    continue;
                if ((from[j] & HEMD_HALO_FROM_SIGN) != 0)
                    come[j] = hemd_halo_changed(come[j], unit, cells->change);
                value[j] = hemd_halo_combined(kind, op, value[j], come[j]);
                next[j]++;
                more = --left[j] != 0 || more;
            }
        }
        HEMD_UNROLL
        for (uint32_t j = 0; j < deep; j++)
            if (i + j * (uint64_t)group.size < end)
                hemd_halo_store(at[j], unit, width, value[j]);
    }
}

/** Units of a stretch from `first` to `end`. All threads take the same loads of what comes back. */
HEM_DEV void hemd_halo_gather_along(hem_group group, const hemd_halo_group *cells,
                                    const hemd_halo_stretch *stretch,
                                    const hemd_halo_source *sources, uint64_t first, uint64_t end,
                                    uint64_t run, uint32_t kind, uint32_t op, uint32_t unit,
                                    uint32_t width, uint32_t deep) {
    for (uint64_t i = first + group.rank; i < end; i += deep * (uint64_t)group.size) {
        unsigned char *at = stretch->at + i * unit;
        const uint64_t step = (uint64_t)group.size * unit;
        const uint32_t mine = (uint32_t)((end - i + group.size - 1) / group.size);
        uint64_t value[4], come[4];
        HEMD_UNROLL
        for (uint32_t j = 0; j < deep; j++)
            value[j] = op != HEMD_HALO_REPLACE && j < mine
                           ? hemd_halo_load(at + j * step, unit, width)
                           : 0;
        for (uint64_t n = 0; n < stretch->count; n++) {
            const uint64_t from = cells->froms[stretch->first + n];
            const hemd_halo_source *source = &sources[from >> HEMD_HALO_FROM_SHIFT];
            const unsigned char *place =
                source->base + (run % 2) * source->turn + (from & HEMD_HALO_FROM_PLACE) + i * unit;
            HEMD_UNROLL
            for (uint32_t j = 0; j < deep; j++)
                come[j] = j < mine ? hemd_halo_load(place + j * step, unit, width) : 0;
            HEMD_UNROLL
            for (uint32_t j = 0; j < deep; j++) {
                if ((from & HEMD_HALO_FROM_SIGN) != 0)
                    come[j] = hemd_halo_changed(come[j], unit, cells->change);
                value[j] = hemd_halo_combined(kind, op, value[j], come[j]);
            }
        }
        HEMD_UNROLL
        for (uint32_t j = 0; j < deep; j++)
            if (j < mine)
                hemd_halo_store(at + j * step, unit, width, value[j]);
    }
}

/** A tile of a stretch. */
HEM_DEV void hemd_halo_gather_stretch(hem_group group, const hemd_halo_group *cells,
                                      const hemd_halo_stretch *stretch,
                                      const hemd_halo_source *sources, uint64_t first,
                                      uint64_t run) {
    uint64_t end = first + cells->tile;
    end = end < stretch->units ? end : stretch->units;
    bool sums = cells->op == HEMD_HALO_SUM && cells->width == cells->unit;
    if (sums && cells->kind == HEMD_HALO_F32)
        hemd_halo_gather_along(group, cells, stretch, sources, first, end, run, HEMD_HALO_F32,
                               HEMD_HALO_SUM, 4, 4, 4);
    else if (sums && cells->kind == HEMD_HALO_F64)
        hemd_halo_gather_along(group, cells, stretch, sources, first, end, run, HEMD_HALO_F64,
                               HEMD_HALO_SUM, 8, 8, 4);
    else
        hemd_halo_gather_along(group, cells, stretch, sources, first, end, run, cells->kind,
                               cells->op, cells->unit, cells->width, 2);
}

/** A tile of cells. Sums of floating-point numbers, which fields mostly are, have code of their own. */
HEM_DEV void hemd_halo_gather(hem_group group, const hemd_halo_group *cells,
                              const hemd_halo_source *sources, uint64_t first, uint64_t run) {
    uint64_t end = first + cells->tile;
    end = end < cells->total ? end : cells->total;
    bool sums = cells->op == HEMD_HALO_SUM && cells->width == cells->unit;
    if (sums && cells->kind == HEMD_HALO_F32)
        hemd_halo_gather_as(group, cells, sources, first, end, run, HEMD_HALO_F32, HEMD_HALO_SUM, 4,
                            4, 4);
    else if (sums && cells->kind == HEMD_HALO_F64)
        hemd_halo_gather_as(group, cells, sources, first, end, run, HEMD_HALO_F64, HEMD_HALO_SUM, 8,
                            8, 4);
    else
        hemd_halo_gather_as(group, cells, sources, first, end, run, cells->kind, cells->op,
                            cells->unit, cells->width, 2);
}

#endif
