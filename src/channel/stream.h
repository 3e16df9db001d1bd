/*
 * Copying past the caches, and when.
 *
 * The receiver has read the lines that are written next, so it has them in its cache. Where two
 * cores share a cache, taking them back is cheap. Where they do not, each line costs a trip between
 * caches, twice: measured on two cores of one EPYC in turn near to and far from each other,
 * plain copies moved 6.3 and 1.4 GB/s each way, copies past the caches 4.5 and 4.5 GB/s. On a Xeon,
 * whose cores are all equally far, they moved 5.6 and 3.7: so what counts is the speed, measured.
 */
#ifndef HEMI_CHANNEL_STREAM_H
#define HEMI_CHANNEL_STREAM_H

#include "base/atomic.h"

#include <stddef.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/** Shorter copies are not worth a look at the clock. */
#define HEMI_STREAM_MIN 16384
/** A plain copy of fewer bytes per nanosecond is one between caches that are far apart. */
#define HEMI_STREAM_SPEED 3
/** The same of a copy that only reads from there. */
#define HEMI_PULL_SPEED 4

/** As memcpy. In order before the next release. */
static inline void hemi_copy_stream(void *to, const void *from, size_t n) {
    size_t done = 0;
#if defined(__SSE2__)
    size_t head = (size_t)(-(uintptr_t)to & (HEMI_LINE - 1));
    head = head < n ? head : n;
    memcpy(to, from, head);
    size_t lines = (n - head) / HEMI_LINE;
    done = head + lines * HEMI_LINE;
    __m128i *t = (void *)((unsigned char *)to + head);
    const __m128i *f = (const void *)((const unsigned char *)from + head);
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
    memcpy((unsigned char *)to + done, (const unsigned char *)from + done, n - done);
}

#endif
