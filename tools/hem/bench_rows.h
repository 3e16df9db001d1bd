#ifndef HEMT_BENCH_ROWS_H
#define HEMT_BENCH_ROWS_H

/* From measurements to the rows of the table by which collectives choose their algorithm. */

#include <stddef.h>
#include <stdint.h>

#define HEMT_ALGORITHMS_MAX 8

/* One size at one number of ranks: microseconds per algorithm, 0 where there is none. */
struct hemt_point {
    size_t bytes;
    double us[HEMT_ALGORITHMS_MAX];
};

/* From the size after the row before up to `bytes`, SIZE_MAX without end. */
struct hemt_row {
    size_t bytes;
    size_t algorithm;
};

/**
 * Choose the fastest at each size and join neighbours that chose alike.
 *
 * `points` are in the order of sizes. An algorithm that is less than 3 % faster than the one of the
 * size before does not take over. A border between two sizes lies at the power of two in the middle
 * between them; sizes at which nothing was measured go with their neighbours. Writes at most `count`
 * rows and returns their number; the last one has no end. 0 if nothing was measured at all.
 */
size_t hemt_rows_choose(const struct hemt_point *points, size_t count, struct hemt_row *rows_p);

#endif
