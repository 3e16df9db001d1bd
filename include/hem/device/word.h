/*
 * Words that ranks share, as kernels see them: loads, stores, fences, the clock.
 *
 * The same names compile for CUDA and, where a host thread stands in for a thread of a block, as C
 * or C++. On the GPU everything here is at system scope, unless it says `near`: between threads of
 * one GPU, also of different processes, what has reached its L2 cache is seen, and fences at the
 * scope of the GPU are much cheaper. The memory order is in the name; polling is relaxed, with one
 * fence when the wait has ended.
 *
 * hemd_ names belong to Hem's own headers; kernels call what hem/device.cuh lists.
 */
#ifndef HEM_DEVICE_WORD_H
#define HEM_DEVICE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
/** Before every function of these headers. */
#define HEM_DEV      static __device__ __forceinline__
#define HEM_DEV_SLOW static __device__ __noinline__
#else
#define HEM_DEV      static inline
#define HEM_DEV_SLOW static inline
#endif

/** Words of different writers lie this far apart: a line of a GPU's L2 cache. */
#define HEM_DEV_LINE 128

#if defined(__CUDACC__)

HEM_DEV uint64_t hemd_load64_relaxed(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

HEM_DEV uint32_t hemd_load32_relaxed(const uint32_t *word) {
    uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

/** Four words, aligned to 16 bytes, that are loaded in one piece: across a bus once. */
typedef struct hemd_four {
    uint32_t word[4];
} hemd_four;

HEM_DEV hemd_four hemd_load_four_relaxed(const uint32_t *words) {
    hemd_four four;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four.word[0]), "=r"(four.word[1]), "=r"(four.word[2]), "=r"(four.word[3])
                 : "l"(words)
                 : "memory");
    return four;
}

HEM_DEV void hemd_store64_relaxed(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

HEM_DEV void hemd_store32_relaxed(uint32_t *word, uint32_t value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

/** Add without asking what was there: nothing comes back, so nothing is waited for. */
HEM_DEV void hemd_add64_relaxed(uint64_t *word, uint64_t value) {
    asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

/** Add to host memory. All who add to such a word are on this GPU, and a GPU promises no more there. */
HEM_DEV void hemd_add64_host(uint64_t *word, uint64_t value) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

/** Add and get what was there; acquires and releases. */
HEM_DEV uint64_t hemd_fetch_add64(uint64_t *word, uint64_t value) {
    uint64_t old;
    asm volatile("atom.acq_rel.sys.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

/** The same among the blocks of one GPU. */
HEM_DEV uint64_t hemd_fetch_add64_near(uint64_t *word, uint64_t value) {
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

/** Store `desired` if the word is `expected`. @return what was there. */
HEM_DEV uint64_t hemd_compare_swap64(uint64_t *word, uint64_t expected, uint64_t desired) {
    uint64_t old;
    asm volatile("atom.acq_rel.sys.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(word), "l"(expected), "l"(desired)
                 : "memory");
    return old;
}

/** The same of a word in host memory, that only this GPU's threads change. */
HEM_DEV uint32_t hemd_compare_swap32_host(uint32_t *word, uint32_t expected, uint32_t desired) {
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(word), "r"(expected), "r"(desired)
                 : "memory");
    return old;
}

/** Acquire and release: what this thread has seen and done comes before what it does after. */
HEM_DEV void hemd_fence(bool near) {
    if (near)
        asm volatile("fence.acq_rel.gpu;" : : : "memory");
    else
        asm volatile("fence.acq_rel.sys;" : : : "memory");
}

/** Two words that are stored and loaded in one piece: data together with the number it belongs to. */
typedef struct __align__(16) hemd_unit {
    uint64_t data;
    uint64_t stamp;
}
hemd_unit;

HEM_DEV void hemd_unit_store(hemd_unit *unit, uint64_t data, uint64_t stamp) {
    asm volatile("{ .reg .b128 q;\n\t"
                 "mov.b128 q, {%1, %2};\n\t"
                 "st.relaxed.sys.global.b128 [%0], q; }"
                 :
                 : "l"(unit), "l"(data), "l"(stamp)
                 : "memory");
}

/** @return the stamp; if it is the one that is waited for, *data_p is what was stored with it. */
HEM_DEV uint64_t hemd_unit_load(const hemd_unit *unit, uint64_t *data_p) {
    uint64_t data, stamp;
    asm volatile("{ .reg .b128 q;\n\t"
                 "ld.relaxed.sys.global.b128 q, [%2];\n\t"
                 "mov.b128 {%0, %1}, q; }"
                 : "=l"(data), "=l"(stamp)
                 : "l"(unit)
                 : "memory");
    *data_p = data;
    return stamp;
}

/** Nanoseconds of a clock that all threads share and that does not stand still. */
HEM_DEV uint64_t hemd_now_ns(void) {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

/** Between two looks at a word that has not changed. */
HEM_DEV void hemd_relax(void) {
}

#else

/*
 * ThreadSanitizer does not know fences. Under it a fence is remembered instead, and makes the stores release
 * that follow it, until the thread loads a word again; others are as relaxed as on a GPU, so that a fence that
 * is missing before a word shows. Units are stored and loaded with order here, so that one before a unit does
 * not. Where the fence of a wait is, host threads acquire the word itself, by hemd_acquire.
 */
#if defined(__SANITIZE_THREAD__)
#define HEMD_NO_FENCES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEMD_NO_FENCES 1
#endif
#endif

#if defined(HEMD_NO_FENCES)
static __thread bool hemd_fenced;
#define HEMD_FENCED()      hemd_fenced
#define HEMD_SET_FENCED(x) ((void)(hemd_fenced = (x)))
#else
#define HEMD_FENCED()      false
#define HEMD_SET_FENCED(x) ((void)(x))
#endif

HEM_DEV uint64_t hemd_load64_relaxed(const uint64_t *word) {
    HEMD_SET_FENCED(false);
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

HEM_DEV uint32_t hemd_load32_relaxed(const uint32_t *word) {
    HEMD_SET_FENCED(false);
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

typedef struct hemd_four {
    uint32_t word[4];
} hemd_four;

HEM_DEV hemd_four hemd_load_four_relaxed(const uint32_t *words) {
    hemd_four four;
    for (int k = 0; k < 4; k++)
        four.word[k] = hemd_load32_relaxed(words + k);
    return four;
}

HEM_DEV void hemd_store64_relaxed(uint64_t *word, uint64_t value) {
    if (HEMD_FENCED())
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

HEM_DEV void hemd_store32_relaxed(uint32_t *word, uint32_t value) {
    if (HEMD_FENCED())
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

HEM_DEV void hemd_add64_relaxed(uint64_t *word, uint64_t value) {
    if (HEMD_FENCED())
        __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

HEM_DEV void hemd_add64_host(uint64_t *word, uint64_t value) {
    hemd_add64_relaxed(word, value);
}

HEM_DEV uint64_t hemd_fetch_add64(uint64_t *word, uint64_t value) {
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

HEM_DEV uint64_t hemd_fetch_add64_near(uint64_t *word, uint64_t value) {
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

HEM_DEV uint64_t hemd_compare_swap64(uint64_t *word, uint64_t expected, uint64_t desired) {
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return expected;
}

HEM_DEV uint32_t hemd_compare_swap32_host(uint32_t *word, uint32_t expected, uint32_t desired) {
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return expected;
}

HEM_DEV void hemd_fence(bool near) {
    (void)near;
#if defined(HEMD_NO_FENCES)
    HEMD_SET_FENCED(true);
#else
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

typedef struct hemd_unit {
    uint64_t data;
    uint64_t stamp;
} __attribute__((aligned(16))) hemd_unit;

HEM_DEV void hemd_unit_store(hemd_unit *unit, uint64_t data, uint64_t stamp) {
    __atomic_store_n(&unit->data, data, __ATOMIC_RELAXED);
    __atomic_store_n(&unit->stamp, stamp, __ATOMIC_RELEASE);
}

HEM_DEV uint64_t hemd_unit_load(const hemd_unit *unit, uint64_t *data_p) {
    uint64_t stamp = __atomic_load_n(&unit->stamp, __ATOMIC_ACQUIRE);
    *data_p = __atomic_load_n(&unit->data, __ATOMIC_RELAXED);
    return stamp;
}

#if defined(__cplusplus)
extern "C" {
#endif
/** Of whoever starts the host threads: a clock in nanoseconds, and what a thread that waits does so
 *  that others can run. There are more of them than cores. */
extern uint64_t hem_host_now_ns(void);
extern void hem_host_relax(void);
#if defined(__cplusplus)
}
#endif

HEM_DEV uint64_t hemd_now_ns(void) {
    return hem_host_now_ns();
}

HEM_DEV void hemd_relax(void) {
    hem_host_relax();
}

#endif

/** A load that acquires, at the scope of the GPU if `near`. */
HEM_DEV uint64_t hemd_acquire64(const uint64_t *word, bool near) {
    uint64_t value;
#if defined(__CUDACC__)
    if (near)
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    else
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
#else
    (void)near;
    value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
    return value;
}

/**
 * A wait for `word` has ended: what was stored before it is seen from now on.
 *
 * The wait was of relaxed loads. On the GPU one that acquires is much cheaper than a fence, and so
 * is a store that releases: 0.25 us each between two ranks of an H200.
 */
HEM_DEV void hemd_acquire(const uint64_t *word, bool near) {
    (void)hemd_acquire64(word, near);
}

/** Everything before becomes visible before `value` does. */
HEM_DEV void hemd_store64_release(uint64_t *word, uint64_t value, bool near) {
#if defined(__CUDACC__)
    if (near)
        asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
    else
        asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
#else
    (void)near;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

HEM_DEV void hemd_add64_release(uint64_t *word, uint64_t value, bool near) {
#if defined(__CUDACC__)
    if (near)
        asm volatile("red.release.gpu.global.add.u64 [%0], %1;"
                     :
                     : "l"(word), "l"(value)
                     : "memory");
    else
        asm volatile("red.release.sys.global.add.u64 [%0], %1;"
                     :
                     : "l"(word), "l"(value)
                     : "memory");
#else
    (void)near;
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
#endif
}

#endif
