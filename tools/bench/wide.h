#ifndef BENCH_WIDE_H
#define BENCH_WIDE_H

/*
 * A function that is compiled once more for wide registers, where the processor has them. The
 * clones are chosen by an ifunc, which sanitizers do not support.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#endif
