/*
 * What a set of kernels offers to the code that walks over the sources.
 *
 * How this works: a kernel is one operation on one type, as loops over two, three and, for sums,
 * five inputs. As many sources as that are combined in one pass. More are combined block by block,
 * so that what is not finished stays in the first-level cache: `open` takes the first sources,
 * `more` takes further ones, and `close` takes the last ones and writes the result. In between,
 * values lie in accumulators: f32 for f16 and bf16, and the type itself otherwise. Results are
 * written only in the last pass over a block, each element after all of its sources were read,
 * hence `out` may be any source.
 *
 * The loops are compiled several times from the same source (set_*.c). The sets give the same bits:
 * every element is computed by the same operations in the same order, without contraction, and a
 * result that is NaN is always the one quiet NaN without sign and payload, since which of two NaNs
 * the processor passes on depends on how the compiler ordered the operands.
 */
#ifndef HEMI_COLL_REDUCE_KERNEL_H
#define HEMI_COLL_REDUCE_KERNEL_H

#include "coll/reduce/reduce.h"

#include <stdint.h>

/** Bytes of accumulators in a block. A prototype with eight sources of f32 was mostly fastest with
 *  4 of 4 to 64 KiB, on Zen 4, vectors of 64 KiB and 1 MiB; beyond, noise hid any difference. */
#define HEMI_REDUCE_BLOCK 4096

/** The most inputs of a loop. */
#define HEMI_REDUCE_WIDEST 5

/** Combine `n` units of each of the inputs, whose number is the loop's. Any alignment. `out` may be
 *  any of the inputs that have the type of `out`. */
typedef void (*hemi_reduce_loop)(void *out, const void *const *in, size_t n);

/** Loops by the number of their inputs, NULL where there is none. All have 3, all but `open` and
 *  `more` have 2. */
typedef struct hemi_reduce_loops {
    hemi_reduce_loop of[HEMI_REDUCE_WIDEST + 1];
} hemi_reduce_loops;

typedef struct hemi_reduce_kernel {
    hemi_reduce_loops direct; /**< the result from sources; of[1] NULL: the bytes are copied */
    hemi_reduce_loops open;   /**< accumulators from sources */
    hemi_reduce_loops more;   /**< accumulators from accumulators, in[0], and sources */
    hemi_reduce_loops close;  /**< the result from accumulators, in[0], and sources */
    uint32_t element;         /**< bytes */
    uint32_t accumulator;     /**< bytes of the accumulator of an element */
    uint32_t units;           /**< units of an element, as the loops count */
} hemi_reduce_kernel;

/** NULL where a type does not have the operation. Operations with location are not in here. */
typedef struct hemi_reduce_set {
    const hemi_reduce_kernel *kernels[HEM_BOOL + 1][HEM_BXOR + 1];
} hemi_reduce_set;

extern const hemi_reduce_set hemi_reduce_portable;
#if defined(__x86_64__)
extern const hemi_reduce_set hemi_reduce_avx2;
extern const hemi_reduce_set hemi_reduce_avx512;
#endif

/** The kernel over pairs for HEM_MINLOC or HEM_MAXLOC, the same in all sets, or NULL. */
const hemi_reduce_kernel *hemi_reduce_pairs(hem_dtype dtype, hem_reduction op);

/** A hemi_reduce_run over the kernel of the reducer. */
void hemi_reduce_run_kernel(const hemi_reducer *reducer, void *out, const void *const *sources,
                            size_t source_count, size_t count);

/** A hemi_reduce_run over the function of the caller. */
void hemi_reduce_run_user(const hemi_reducer *reducer, void *out, const void *const *sources,
                          size_t source_count, size_t count);

#endif
