/* A small deflate (RFC 1951) in a zlib wrapper (RFC 1950). */
#ifndef HEAT_DEFLATE_H
#define HEAT_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

/* What `bytes` bytes can become at most. */
size_t deflate_bound(size_t bytes);

/* Compresses `data` into `out`, which has room for the bound. Returns the length. */
size_t deflate_zlib(const uint8_t *data, size_t bytes, uint8_t *out);

#endif
