/*
 * Copying into a ring past the caches.
 *
 * The receiver has just read the lines of the ring that are written next, so it has them in its cache.
 * Where two cores share a cache, taking them back is cheap. Where they do not, each line costs a trip
 * between caches, twice: measured on two cores of one EPYC in turn near to and far from each other,
 * plain copies moved 6.3 and 1.4 GB/s each way, copies past the caches 4.5 and 4.5 GB/s.
 */
#ifndef HEMI_CHANNEL_STREAM_H
#define HEMI_CHANNEL_STREAM_H

#include "base/atomic.h"

#include <stddef.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/** As memcpy; `to` is at the start of a line. In order before the next release. */
static inline void hemi_copy_stream(void *to, const void *from, size_t n) {
    size_t lines = 0;
#if defined(__SSE2__)
    lines = n / HEMI_LINE;
    __m128i *t = to;
    const __m128i *f = from;
    for (size_t i = 0; i < lines; i++, t += 4, f += 4) {
        __m128i a = _mm_loadu_si128(f);
        __m128i b = _mm_loadu_si128(f + 1);
        __m128i c = _mm_loadu_si128(f + 2);
        __m128i d = _mm_loadu_si128(f + 3);
        _mm_stream_si128(t, a);
        _mm_stream_si128(t + 1, b);
        _mm_stream_si128(t + 2, c);
        _mm_stream_si128(t + 3, d);
    }
    _mm_sfence();
#endif
    size_t done = lines * HEMI_LINE;
    memcpy((unsigned char *)to + done, (const unsigned char *)from + done, n - done);
}

#endif
