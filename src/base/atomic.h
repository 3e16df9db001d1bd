/*
 * Atomic operations with the memory order in the name.
 *
 * Words in shared memory are plain uint32_t and uint64_t, so that their layout is the same for
 * every compiler and, later, for device code; they are only ever touched through this file. Each
 * release names, where it is used, the acquire that it pairs with.
 *
 * In a simulation build (HEMI_SIM) every operation first calls the thread's hook: that is where a
 * scheduler switches ranks and where a test kills one.
 */
#ifndef HEMI_BASE_ATOMIC_H
#define HEMI_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#if defined(HEMI_SIM) && HEMI_SIM
#include "base/sim.h"
#define HEMI_POINT() hemi_sim_point()
#else
/** A place where another rank may run in between, or where a test may kill this one. */
#define HEMI_POINT() ((void)0)
#endif

#define HEMI_ATOMIC_OPS(bits)                                                                      \
    static inline uint##bits##_t hemi_load##bits##_relaxed(const uint##bits##_t *word) {           \
        HEMI_POINT();                                                                              \
        return __atomic_load_n(word, __ATOMIC_RELAXED);                                            \
    }                                                                                              \
    static inline uint##bits##_t hemi_load##bits##_acquire(const uint##bits##_t *word) {           \
        HEMI_POINT();                                                                              \
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                            \
    }                                                                                              \
    static inline void hemi_store##bits##_relaxed(uint##bits##_t *word, uint##bits##_t value) {    \
        HEMI_POINT();                                                                              \
        __atomic_store_n(word, value, __ATOMIC_RELAXED);                                           \
    }                                                                                              \
    static inline void hemi_store##bits##_release(uint##bits##_t *word, uint##bits##_t value) {    \
        HEMI_POINT();                                                                              \
        __atomic_store_n(word, value, __ATOMIC_RELEASE);                                           \
    }                                                                                              \
    static inline uint##bits##_t hemi_add##bits##_relaxed(uint##bits##_t *word,                    \
                                                          uint##bits##_t value) {                  \
        HEMI_POINT();                                                                              \
        return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);                                  \
    }                                                                                              \
    static inline uint##bits##_t hemi_add##bits##_acq_rel(uint##bits##_t *word,                    \
                                                          uint##bits##_t value) {                  \
        HEMI_POINT();                                                                              \
        return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);                                  \
    }                                                                                              \
    /* On x86 also a full fence; elsewhere hemi_fence_seq_cst makes it one. */                     \
    static inline uint##bits##_t hemi_add##bits##_seq_cst(uint##bits##_t *word,                    \
                                                          uint##bits##_t value) {                  \
        HEMI_POINT();                                                                              \
        return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);                                  \
    }                                                                                              \
    static inline uint##bits##_t hemi_or##bits##_relaxed(uint##bits##_t *word,                     \
                                                         uint##bits##_t value) {                   \
        HEMI_POINT();                                                                              \
        return __atomic_fetch_or(word, value, __ATOMIC_RELAXED);                                   \
    }                                                                                              \
    static inline uint##bits##_t hemi_and##bits##_relaxed(uint##bits##_t *word,                    \
                                                          uint##bits##_t value) {                  \
        HEMI_POINT();                                                                              \
        return __atomic_fetch_and(word, value, __ATOMIC_RELAXED);                                  \
    }                                                                                              \
    /* On failure, *expected becomes what was there. */                                            \
    static inline bool hemi_cas##bits##_acq_rel(uint##bits##_t *word, uint##bits##_t *expected,    \
                                                uint##bits##_t desired) {                          \
        HEMI_POINT();                                                                              \
        return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQ_REL,       \
                                           __ATOMIC_ACQUIRE);                                      \
    }

HEMI_ATOMIC_OPS(32)
HEMI_ATOMIC_OPS(64)

/**
 * Keep the compiler from moving a load above an earlier store. The processor may still do so; what
 * makes it safe is named where this is used.
 */
static inline void hemi_compiler_barrier(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** A full fence of the calling thread. */
static inline void hemi_fence_seq_cst(void) {
    HEMI_POINT();
#if defined(__SANITIZE_THREAD__)
    /* ThreadSanitizer does not know fences; a read-modify-write orders the same on x86. */
    uint32_t word = 0;
    __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/** Tell the processor that this is a spin loop. */
static inline void hemi_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/** Ask for a line that will be written soon, so that the store does not wait for it. */
static inline void hemi_prefetch_write(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/** Cache line size that layouts in shared memory assume. */
#define HEMI_LINE 64

#endif
