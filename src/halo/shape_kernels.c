/*
 * The innermost loops, written once over the size of a chunk and the kind of lists, and compiled
 * for each that is worth it.
 *
 * Measured on Zen 4: four steps at a time, loads before stores, take 0.45 ns per step of 8 bytes
 * from the first-level cache and are never slower than single steps. The gathers of AVX2 and
 * AVX-512 take 0.7 ns. Prefetching gains nothing at any distance, for strides and for lists: so
 * many loads are under way already.
 */
#include "base/copy.h"
#include "halo/shape_moves.h"

#define ALWAYS static inline __attribute__((always_inline))

/* Sizes of chunks that are not a constant. */
enum chunk_size {
    CHUNK_SHORT = 0,        /* up to 32 bytes */
    CHUNK_MIDDLE = 1 << 20, /* from 33 bytes on, by moves of 16 bytes */
    CHUNK_LONG              /* by memcpy */
};

/* From so many bytes on memcpy is as fast. For 40 bytes it takes 2.5 times as long, for 200 1.2. */
#define LONG_BYTES 512

/* Four steps at a time up to this size of a chunk: they fit into registers. */
#define UNROLL_BYTES 16

/* How the steps of a side are found. */
typedef enum side {
    SIDE_NEXT, /* contiguous */
    SIDE_STRIDE,
    SIDE_NEAR,
    SIDE_ANY /* by a stride or a list of any kind */
} side;

/* Copy 17 bytes or more; the last move overlaps the one before it. */
ALWAYS void copy_middle(unsigned char *to, const unsigned char *from, uint64_t bytes) {
    uint64_t i = 0;

    do {
        memcpy(to + i, from + i, 16);
        i += 16;
    } while (i + 16 < bytes);
    memcpy(to + bytes - 16, from + bytes - 16, 16);
}

/* Copy one chunk. `size` is a constant wherever this is used. */
ALWAYS void move(unsigned char *to, const unsigned char *from, uint64_t size, uint64_t bytes) {
    if (size == CHUNK_SHORT)
        hemi_copy_short(to, from, bytes);
    else if (size == CHUNK_MIDDLE)
        copy_middle(to, from, bytes);
    else if (size == CHUNK_LONG)
        memcpy(to, from, bytes);
    else
        memcpy(to, from, size);
}

/* One side of a row, at its first step. */
typedef struct steps {
    int64_t stride;
    const int32_t *near;
    const int64_t *far;
} steps;

/* Where step i is. `kind` and, for SIDE_NEXT, `size` are constants. */
ALWAYS int64_t offset(side kind, const steps *s, uint64_t i, uint64_t size) {
    if (kind == SIDE_NEXT)
        return (int64_t)(i * size);
    if (kind == SIDE_NEAR || (kind == SIDE_ANY && s->near != NULL))
        return s->near[i];
    if (kind == SIDE_ANY && s->far != NULL)
        return s->far[i];
    return (int64_t)i * s->stride;
}

/* Four steps. They are all loaded before any is stored; nothing is both. */
ALWAYS void move_four(unsigned char *to, const unsigned char *from, const steps *t, const steps *f,
                      side to_kind, side from_kind, uint64_t i, uint64_t size) {
    uint64_t bytes = size < UNROLL_BYTES ? size : UNROLL_BYTES;
    unsigned char a[UNROLL_BYTES];
    unsigned char b[UNROLL_BYTES];
    unsigned char c[UNROLL_BYTES];
    unsigned char d[UNROLL_BYTES];

    memcpy(a, from + offset(from_kind, f, i, size), bytes);
    memcpy(b, from + offset(from_kind, f, i + 1, size), bytes);
    memcpy(c, from + offset(from_kind, f, i + 2, size), bytes);
    memcpy(d, from + offset(from_kind, f, i + 3, size), bytes);
    memcpy(to + offset(to_kind, t, i, size), a, bytes);
    memcpy(to + offset(to_kind, t, i + 1, size), b, bytes);
    memcpy(to + offset(to_kind, t, i + 2, size), c, bytes);
    memcpy(to + offset(to_kind, t, i + 3, size), d, bytes);
}

ALWAYS void move_row(unsigned char *to, const unsigned char *from, const steps *t, const steps *f,
                     side to_kind, side from_kind, uint64_t count, uint64_t size, uint64_t bytes) {
    bool four = size != CHUNK_SHORT && size <= UNROLL_BYTES;
    uint64_t i = 0;

    for (; four && i + 4 <= count; i += 4)
        move_four(to, from, t, f, to_kind, from_kind, i, size);
    for (; i < count; i++)
        move(to + offset(to_kind, t, i, size), from + offset(from_kind, f, i, size), size, bytes);
}

/* The kernel itself: a row, and the loop around it. */
ALWAYS void run(const hemi_moves *m, unsigned char *to, const unsigned char *from, uint64_t first,
                uint64_t count, side to_kind, side from_kind, uint64_t size) {
    const hemi_move_list *tl = &m->to_list;
    const hemi_move_list *fl = &m->from_list;
    steps t = {m->row.to, tl->near != NULL ? tl->near + first : NULL,
               tl->far != NULL ? tl->far + first : NULL};
    steps f = {m->row.from, fl->near != NULL ? fl->near + first : NULL,
               fl->far != NULL ? fl->far + first : NULL};
    uint64_t bytes = m->chunk;

    for (uint64_t j = m->around.count; j > 0; j--) {
        move_row(to, from, &t, &f, to_kind, from_kind, count, size, bytes);
        to += m->around.to;
        from += m->around.from;
    }
}

#define KERNEL(NAME, TO, FROM, SIZE)                                                               \
    static void NAME(const hemi_moves *m, unsigned char *to, const unsigned char *from,            \
                     uint64_t first, uint64_t count) {                                             \
        run(m, to, from, first, count, TO, FROM, SIZE);                                            \
    }
/* Kernels by what the sides of a row are. */
typedef struct kernels {
    hemi_move_kernel strided;
    hemi_move_kernel pack;   /* to what is contiguous */
    hemi_move_kernel unpack; /* from what is contiguous */
    hemi_move_kernel gather; /* the same by a list */
    hemi_move_kernel scatter;
    hemi_move_kernel gather_apart; /* by a list to what is strided, and back */
    hemi_move_kernel scatter_apart;
    hemi_move_kernel listed; /* by two lists */
    hemi_move_kernel any;
} kernels;

/* NEXT is SIDE_NEXT for sizes that are constant, or SIDE_STRIDE. */
#define KERNELS(NAME, SIZE, NEXT)                                                                  \
    KERNEL(NAME##_strided, SIDE_STRIDE, SIDE_STRIDE, SIZE)                                         \
    KERNEL(NAME##_pack, NEXT, SIDE_STRIDE, SIZE)                                                   \
    KERNEL(NAME##_unpack, SIDE_STRIDE, NEXT, SIZE)                                                 \
    KERNEL(NAME##_gather, NEXT, SIDE_NEAR, SIZE)                                                   \
    KERNEL(NAME##_scatter, SIDE_NEAR, NEXT, SIZE)                                                  \
    KERNEL(NAME##_gather_apart, SIDE_STRIDE, SIDE_NEAR, SIZE)                                      \
    KERNEL(NAME##_scatter_apart, SIDE_NEAR, SIDE_STRIDE, SIZE)                                     \
    KERNEL(NAME##_listed, SIDE_NEAR, SIDE_NEAR, SIZE)                                              \
    KERNEL(NAME##_any, SIDE_ANY, SIDE_ANY, SIZE)                                                   \
    static const kernels NAME = {NAME##_strided,       NAME##_pack,    NAME##_unpack,              \
                                 NAME##_gather,        NAME##_scatter, NAME##_gather_apart,        \
                                 NAME##_scatter_apart, NAME##_listed,  NAME##_any};

KERNELS(of_1, 1, SIDE_NEXT)
KERNELS(of_2, 2, SIDE_NEXT)
KERNELS(of_4, 4, SIDE_NEXT)
KERNELS(of_8, 8, SIDE_NEXT)
KERNELS(of_12, 12, SIDE_NEXT)
KERNELS(of_16, 16, SIDE_NEXT)
KERNELS(of_24, 24, SIDE_NEXT)
KERNELS(of_32, 32, SIDE_NEXT)
KERNELS(of_short, CHUNK_SHORT, SIDE_STRIDE)
KERNELS(of_middle, CHUNK_MIDDLE, SIDE_STRIDE)
KERNELS(of_long, CHUNK_LONG, SIDE_STRIDE)

static const kernels *kernels_of(uint64_t chunk) {
    switch (chunk) {
    case 1:
        return &of_1;
    case 2:
        return &of_2;
    case 4:
        return &of_4;
    case 8:
        return &of_8;
    case 12:
        return &of_12;
    case 16:
        return &of_16;
    case 24:
        return &of_24;
    case 32:
        return &of_32;
    default:
        return chunk < 32 ? &of_short : (chunk < LONG_BYTES ? &of_middle : &of_long);
    }
}

/* Runs of different length, one after the other on the packed side. */

static inline void copy_run(unsigned char *to, const unsigned char *from, uint64_t bytes) {
    if (bytes > LONG_BYTES)
        memcpy(to, from, bytes);
    else if (bytes > 32)
        copy_middle(to, from, bytes);
    else
        hemi_copy_short(to, from, bytes);
}

static void pack_runs(const hemi_moves *m, unsigned char *to, const unsigned char *from,
                      uint64_t first, uint64_t count) {
    const hemi_shape_run *run = m->from_list.runs + first;

    for (; count > 0; count--, run++) {
        copy_run(to, from + run->offset, run->bytes);
        to += run->bytes;
    }
}

static void unpack_runs(const hemi_moves *m, unsigned char *to, const unsigned char *from,
                        uint64_t first, uint64_t count) {
    const hemi_shape_run *run = m->to_list.runs + first;

    for (; count > 0; count--, run++) {
        copy_run(to + run->offset, from, run->bytes);
        from += run->bytes;
    }
}

hemi_move_kernel hemi_move_kernel_of(const hemi_moves *m) {
    const kernels *k = kernels_of(m->chunk);
    const hemi_move_list *to = &m->to_list;
    const hemi_move_list *from = &m->from_list;
    bool to_next = m->row.to == (int64_t)m->chunk;
    bool from_next = m->row.from == (int64_t)m->chunk;

    if (to->runs != NULL || from->runs != NULL)
        return to->runs != NULL ? unpack_runs : pack_runs;
    if (to->far != NULL || from->far != NULL)
        return k->any;
    if (to->near != NULL && from->near != NULL)
        return k->listed;
    if (from->near != NULL)
        return to_next ? k->gather : k->gather_apart;
    if (to->near != NULL)
        return from_next ? k->scatter : k->scatter_apart;
    return to_next ? k->pack : (from_next ? k->unpack : k->strided);
}
