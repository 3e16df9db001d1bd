#ifndef BENCH_VECTOR_H
#define BENCH_VECTOR_H

/*
 * What is summed up in the benchmarks of reductions. Element i of iteration `seq` is a whole number
 * from 1 to 2^20 that depends on both, times a factor: rank + 1 where a rank fills in its part, and
 * the sum of those where the result is checked. So sums are exact in any order, and a part that is
 * missing, doubled, stale or misplaced is seen.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write elements `first` to `first + count - 1`. */
void bench_vector_fill(double *to, size_t count, size_t first, uint64_t seq, double factor);

/* Whether all of them are what they must be. */
bool bench_vector_check(const double *from, size_t count, size_t first, uint64_t seq,
                        double factor);

/* 1 + 2 + ... + ranks: the factor of the sum over all ranks. */
static inline double bench_vector_total(int ranks) {
    return (double)ranks * ((double)ranks + 1) / 2;
}

#endif
