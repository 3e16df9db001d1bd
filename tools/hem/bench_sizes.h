#ifndef HEMT_BENCH_SIZES_H
#define HEMT_BENCH_SIZES_H

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

#endif
