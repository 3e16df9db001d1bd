#ifndef HEMT_BENCH_SIZES_H
#define HEMT_BENCH_SIZES_H

#include <stdbool.h>
#include <stddef.h>

#define HEMT_SIZES_MAX 64

/* Message sizes in bytes, in the order in which they are measured. */
struct hemt_sizes {
    size_t bytes[HEMT_SIZES_MAX];
    size_t count;
};

/**
 * Read a list such as "8,4k,1M": numbers with an optional k, M or G (powers of 1024).
 *
 * Returns NULL, or a sentence that says what is wrong; `sizes_p` is written only on success.
 * Zero, an empty item, a doubled item, more than HEMT_SIZES_MAX items and sizes above 1 GiB are
 * refused.
 */
const char *hemt_sizes_parse(const char *text, struct hemt_sizes *sizes_p);

#define HEMT_RANKS_MAX 16

/* Numbers of ranks, in growing order. */
struct hemt_ranks {
    int ranks[HEMT_RANKS_MAX];
    size_t count;
};

/* Read a list such as "2,4,8": growing numbers from 2 to 4096. Returns whether it is one. */
bool hemt_ranks_parse(const char *text, struct hemt_ranks *ranks_p);

#endif
