/* Copying a few bytes without a call. */
#ifndef HEMI_BASE_COPY_H
#define HEMI_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * Copy 1 to 32 bytes. Two pieces that overlap in the middle cover every length, so that there is
 * neither a loop nor a call; the compiler turns each fixed-size memcpy into a load and a store.
 */
static inline void hemi_copy_short(void *to, const void *from, size_t n) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if (n == 8) {
        memcpy(t, f, 8);
    } else if (n >= 16) {
        unsigned char first[16];
        unsigned char last[16];
        memcpy(first, f, 16);
        memcpy(last, f + n - 16, 16);
        memcpy(t, first, 16);
        memcpy(t + n - 16, last, 16);
    } else if (n > 8) {
        uint64_t first;
        uint64_t last;
        memcpy(&first, f, 8);
        memcpy(&last, f + n - 8, 8);
        memcpy(t, &first, 8);
        memcpy(t + n - 8, &last, 8);
    } else if (n >= 4) {
        uint32_t first;
        uint32_t last;
        memcpy(&first, f, 4);
        memcpy(&last, f + n - 4, 4);
        memcpy(t, &first, 4);
        memcpy(t + n - 4, &last, 4);
    } else {
        t[0] = f[0];
        if (n > 1) {
            t[n - 1] = f[n - 1];
            t[n / 2] = f[n / 2];
        }
    }
}

/** Copy 0 to 40 bytes: what a cache line holds beside three words. */
static inline void hemi_copy_line(void *to, const void *from, size_t n) {
    if (n <= 32) {
        if (n != 0)
            hemi_copy_short(to, from, n);
        return;
    }
    memcpy(to, from, 32);
    memcpy((unsigned char *)to + n - 8, (const unsigned char *)from + n - 8, 8);
}

#endif
