#include "base/platform.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stddef.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000

static uint64_t real_now(void *ctx) {
    (void)ctx;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static struct timespec to_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND};
}

static void real_park(void *ctx, uint32_t *word, uint32_t expected, int64_t limit_ns) {
    (void)ctx;
    struct timespec limit = to_timespec(limit_ns < 0 ? 0 : limit_ns);
    /* Not FUTEX_PRIVATE: the word lies in memory that other processes wake on. */
    syscall(SYS_futex, word, FUTEX_WAIT, expected, limit_ns < 0 ? NULL : &limit, NULL, 0);
}

static void real_wake(void *ctx, uint32_t *word) {
    (void)ctx;
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void real_yield(void *ctx) {
    (void)ctx;
    sched_yield();
}

static void real_nap(void *ctx, int64_t ns) {
    (void)ctx;
    struct timespec t = to_timespec(ns);
    nanosleep(&t, NULL);
}

static bool real_membarrier(void *ctx) {
    (void)ctx;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static bool real_membarrier_register(void *ctx) {
    (void)ctx;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static uint64_t real_random(void *ctx) {
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits)
        bits = real_now(ctx) * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
    return bits;
}

const hemi_platform *hemi_platform_real(void) {
    static const hemi_platform real = {
        .ctx = NULL,
        .now = real_now,
        .park = real_park,
        .wake = real_wake,
        .yield = real_yield,
        .nap = real_nap,
        .membarrier = real_membarrier,
        .membarrier_register = real_membarrier_register,
        .random = real_random,
    };
    return &real;
}
