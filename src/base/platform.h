/*
 * The platform table: everything that makes a rank depend on real time or on the scheduler.
 *
 * A world carries a pointer to one. The real one stands in platform.c; a simulation brings its own
 * and thereby decides when time passes, who runs and who sleeps.
 */
#ifndef HEMI_BASE_PLATFORM_H
#define HEMI_BASE_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hemi_platform {
    void *ctx;
    /** Nanoseconds of a clock that only grows and is the same for all processes of the machine. */
    uint64_t (*now)(void *ctx);
    /** Sleep while *word == expected, at most `limit_ns` (negative: for ever). May return early. */
    void (*park)(void *ctx, uint32_t *word, uint32_t expected, int64_t limit_ns);
    /** Wake everybody who is parked on `word`, in any process. */
    void (*wake)(void *ctx, uint32_t *word);
    /** Let another thread have the core. */
    void (*yield)(void *ctx);
    /** Sleep for `ns` nanoseconds, for waits that nobody can end with a wake. */
    void (*nap)(void *ctx, int64_t ns);
    /** A full memory fence on every running thread of every registered process. False if refused. */
    bool (*membarrier)(void *ctx);
    /** Make this process one that membarrier reaches. False if refused. */
    bool (*membarrier_register)(void *ctx);
    /** 64 random bits. */
    uint64_t (*random)(void *ctx);
} hemi_platform;

/** The operating system's. */
const hemi_platform *hemi_platform_real(void);

#endif
