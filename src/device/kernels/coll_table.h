/*
 * The tables of a collective on device buffers: what the host writes once and the kernel of coll.h
 * reads. Who writes what while it runs is said there.
 */
#ifndef HEMD_KERNELS_COLL_TABLE_H
#define HEMD_KERNELS_COLL_TABLE_H

#include "device/kernels/multi_table.h"

#include <hem/device/types.h>
#include <hem/device/word.h>

/** The most blocks of a kernel: so many barriers and counts of runs there are. */
#define HEMD_COLL_BLOCKS 32u
/** Up to so many ranks the unit form has its table in the arguments, and need not load it first. */
#define HEMD_COLL_FEW 8u

/** Signal ids of the window: a rank that has given up says so to kernels and to CPUs. */
#define HEMD_COLL_GONE 0u
#define HEMD_COLL_SAID 1u

/** Types as kernels combine them. What two types of the host do alike has one name here. */
enum hemd_coll_type {
    HEMD_COLL_U8 = 1,
    HEMD_COLL_U16,
    HEMD_COLL_U32,
    HEMD_COLL_U64,
    HEMD_COLL_I8, /**< what compares only, as the other signed ones */
    HEMD_COLL_I16,
    HEMD_COLL_I32,
    HEMD_COLL_I64,
    HEMD_COLL_F16,
    HEMD_COLL_BF16,
    HEMD_COLL_F32,
    HEMD_COLL_F64,
    HEMD_COLL_C64, /**< but sums, which are those of twice as many f32 */
    HEMD_COLL_C128
};

/** A type and a hem_reduction up to HEM_MAXLOC. */
#define HEMD_COLL_CODE(type, op) ((uint32_t)(type) << 4 | (uint32_t)(op))
#define HEMD_COLL_OP(code)       ((code)&15u)
#define HEMD_COLL_TYPE(code)     ((code) >> 4)

/**
 * What multicast combines: CASE(type, operation, loads of a vector, what results are looked at as,
 * PTX's name of it). Not the smaller and larger of real numbers: PTX has none of f32 and f64, and
 * with a NaN among them those of f16 and bf16 are not the host's.
 */
#define HEMD_COLL_MULTI_CODES(CASE)                                                                \
    CASE(HEMD_COLL_F16, HEM_SUM, ONE, F16, "add.acc::f32.v4.f16x2")                                \
    CASE(HEMD_COLL_BF16, HEM_SUM, ONE, BF16, "add.acc::f32.v4.bf16x2")                             \
    CASE(HEMD_COLL_F32, HEM_SUM, ONE, F32, "add.v4.f32")                                           \
    CASE(HEMD_COLL_F64, HEM_SUM, TWO, F64, "add.f64")                                              \
    CASE(HEMD_COLL_U32, HEM_SUM, FOUR, WHOLE, "add.u32")                                           \
    CASE(HEMD_COLL_U32, HEM_MIN, FOUR, WHOLE, "min.u32")                                           \
    CASE(HEMD_COLL_U32, HEM_MAX, FOUR, WHOLE, "max.u32")                                           \
    CASE(HEMD_COLL_I32, HEM_MIN, FOUR, WHOLE, "min.s32")                                           \
    CASE(HEMD_COLL_I32, HEM_MAX, FOUR, WHOLE, "max.s32")                                           \
    CASE(HEMD_COLL_U64, HEM_SUM, TWO, WHOLE, "add.u64")                                            \
    CASE(HEMD_COLL_U64, HEM_MIN, TWO, WHOLE, "min.u64")                                            \
    CASE(HEMD_COLL_U64, HEM_MAX, TWO, WHOLE, "max.u64")                                            \
    CASE(HEMD_COLL_I64, HEM_MIN, TWO, WHOLE, "min.s64")                                            \
    CASE(HEMD_COLL_I64, HEM_MAX, TWO, WHOLE, "max.s64")                                            \
    CASE(HEMD_COLL_U8, HEM_BAND, FOUR, WHOLE, "and.b32")                                           \
    CASE(HEMD_COLL_U8, HEM_BOR, FOUR, WHOLE, "or.b32")                                             \
    CASE(HEMD_COLL_U8, HEM_BXOR, FOUR, WHOLE, "xor.b32")

enum hemd_coll_form {
    HEMD_COLL_MEET = 0, /**< one barrier and nothing else */
    HEMD_COLL_COPY,     /**< moves between two barriers */
    HEMD_COLL_REDUCE,   /**< a slice of all sources between two barriers */
    HEMD_COLL_UNITS,    /**< everything in units with stamps */
    HEMD_COLL_UNITS_REDUCE
};

/** How often a block has run the kernel, on a line of its own. */
typedef struct hemd_coll_runs {
    uint64_t count;
    uint64_t spare[15];
} hemd_coll_runs;

/** What this rank's kernels share. */
typedef struct hemd_coll_state {
    uint64_t failed; /**< -status of the first failure; later runs do nothing */
    uint64_t spare[15];
    uint64_t cancel; /**< the host's: -status with which waits are to end */
    uint64_t spare_too[15];
    hemd_coll_runs runs[HEMD_COLL_BLOCKS];
} hemd_coll_state;

/** Bytes from one place to one or more. */
typedef struct hemd_coll_move {
    const unsigned char *from;
    uint64_t bytes;
    uint32_t first_to; /**< in the list of destinations */
    uint32_t to_count;
    uint64_t even; /**< all are aligned alike, and to 16 */
} hemd_coll_move;

/** What goes to and comes from a rank in units. `bytes` may be 0: then there is one empty unit. */
typedef struct hemd_coll_post {
    const unsigned char *send;
    uint64_t send_bytes;
    unsigned char *recv; /**< of reductions not used */
    uint64_t recv_bytes;
    hemd_unit *out; /**< in its memory; this rank's second half follows `turn` units later */
    const hemd_unit *in;
} hemd_coll_post;

typedef struct hemd_coll_args {
    hem_dev_window window;
    hemd_coll_state *state;
    int64_t timeout_ns;
    uint32_t form;
    uint32_t code;    /**< of reductions */
    uint32_t element; /**< bytes */
    uint32_t spare;
    /* Copies. */
    const hemd_coll_move *moves;
    uint64_t move_count;
    unsigned char *const *tos; /**< destinations; of a reduction all of them */
    uint64_t to_count;
    /* Reductions: one source per rank, all from the first byte of the slice on. */
    const unsigned char *const *sources;
    uint64_t source_count;
    uint64_t bytes;   /**< of the slice */
    uint64_t head;    /**< bytes before the first vector */
    uint64_t vectors; /**< of 16 bytes; all sources and destinations are aligned there */
    /* Units. */
    const hemd_coll_post *posts; /**< one per rank, if they are more than a few */
    uint64_t words;              /**< the most of a pair, at least 1 */
    uint64_t turn;               /**< units of one half, of all ranks */
    uint64_t same;               /**< everybody is sent the same */
    unsigned char *recv;         /**< of a reduction */
    uint64_t recv_bytes;
    hemd_coll_post few[HEMD_COLL_FEW];
    /* Multicast, the kernel of coll_multi.h: `code`, 0 for a copy; `to_count`, not 0: to all. */
    hemd_multi multi;
    uint64_t part_at; /**< where this rank's part begins, of `vectors` */
} hemd_coll_args;

#endif
