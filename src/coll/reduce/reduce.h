/*
 * Combining the contributions of ranks, in the order of ranks.
 *
 * All combine n sources at once, so that f16 and bf16 are summed in f32 and rounded once, and so
 * that the order is the same whatever algorithm brought the data here.
 *
 * What the operations mean where it is not plain, the same bits on every processor:
 * - Sums and products of integers wrap. Those of f16 and bf16 are kept in f32 and rounded once.
 * - A result of f16, bf16, f32, f64 and complex arithmetic that is NaN is the quiet NaN without
 *   sign and payload. Products of complex numbers are the plain formula.
 * - Minimum and maximum are NaN if any source is. Of 0 and -0, which are equal, that of the lower
 *   source is taken.
 * - Logical operations take NaN for true. The result is 1 or 0, of a single source, too.
 * - Of HEM_BOOL any byte but 0 is true, and results are 1 or 0. Sum, maximum and the or of bits are
 *   the logical or; product, minimum and the and of bits are the logical and.
 * - HEM_BYTE has the operations on bits only, HEM_C64 and HEM_C128 sum, product and logical ones.
 * - HEM_MINLOC and HEM_MAXLOC are for integers and real numbers. A pair is taken as a whole. NaN
 *   wins over every number; of equals, NaNs among them, the lower location, then the lower
 *   source.
 * - A single source is copied as it is, but for the logical operations and HEM_BOOL.
 */
#ifndef HEMI_COLL_REDUCE_REDUCE_H
#define HEMI_COLL_REDUCE_REDUCE_H

#include <hem/coll.h>

#include <stddef.h>

/** Bytes that an element of HEM_USER may have: there must be room for one aside where `out` is a
 *  source that is not the first, and a run does not allocate. */
#define HEMI_REDUCE_USER_MAX 65536

struct hemi_reducer;

/**
 * out[i] = sources[0][i] op sources[1][i] op ... for `count` elements, in this order. `out` may be
 * one of the sources, the first or a later one, and overlaps them in no other way. Any alignment.
 * With no source nothing is done.
 */
typedef void (*hemi_reduce_run)(const struct hemi_reducer *reducer, void *out,
                                const void *const *sources, size_t source_count, size_t count);

/** A reduction that was looked up. Plain; copying it is fine. */
typedef struct hemi_reducer {
    hemi_reduce_run run;
    const void *kernel; /**< what `run` needs */
    size_t element;     /**< bytes of an element */
    hem_reduce_fn user;
    void *user_arg;
} hemi_reducer;

/**
 * Look up the best code for this processor. For HEM_USER, `user`, `user_arg` and `element`
 * are used.
 *
 * @return HEM_OK; HEM_ERR_ARG for no such type or operation, or a NULL function or element size 0;
 *         HEM_ERR_UNSUPPORTED if the type does not have the operation, naming both, or for elements
 *         larger than HEMI_REDUCE_USER_MAX.
 */
hem_status hemi_reducer_find(hem_dtype dtype, hem_reduction op, hem_reduce_fn user, void *user_arg,
                             size_t element, hemi_reducer *reducer_p);

/** The same for one of the sets of kernels: 0 portable, 1 AVX2, 2 AVX-512. For tests.
 *  HEM_ERR_UNSUPPORTED if this processor or build does not have the set. */
hem_status hemi_reducer_find_in(unsigned set, hem_dtype dtype, hem_reduction op,
                                hemi_reducer *reducer_p);

/** Names for people, such as "f64" and "sum". */
const char *hemi_dtype_name(hem_dtype dtype);
const char *hemi_reduction_name(hem_reduction op);

static inline void hemi_reduce(const hemi_reducer *reducer, void *out, const void *const *sources,
                               size_t source_count, size_t count) {
    reducer->run(reducer, out, sources, source_count, count);
}

#endif
