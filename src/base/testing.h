/* What unit tests share: checks inside of a rank's thread, and repeatable random numbers. */
#ifndef HEMI_BASE_TESTING_H
#define HEMI_BASE_TESTING_H

#include <hem/status.h>
#include <stdint.h>
#include <stdio.h>

/** Whether a sanitizer has taken over malloc and the address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESTING_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TESTING_SANITIZED 1
#endif
#endif
#ifndef TESTING_SANITIZED
#define TESTING_SANITIZED 0
#endif

/**
 * A check in a function that returns int and may run in any thread, where cmocka's own checks must
 * not jump out. The function returns the line; a rank that does so without closing its world counts
 * as dead, so that no other rank waits for it.
 */
#define RANK_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, \
                          #cond, hem_last_error());                                                \
            return __LINE__;                                                                       \
        }                                                                                          \
    } while (0)

/** The next number of a sequence that depends on `*state` alone (splitmix64). */
static inline uint64_t testing_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
