/*
 * The loops of the types that are combined in themselves: integers, f32, f64 and complex numbers.
 * Part of a set: included once by each set_*.c, and compiled with its options.
 */
#ifndef HEMI_COLL_REDUCE_LOOPS_H
#define HEMI_COLL_REDUCE_LOOPS_H

#include "coll/reduce/kernel.h"

/* `out` may be one of the inputs: then an iteration reads and writes the same element, but no
 * iteration depends on another. Compilers may rely on that instead of comparing the addresses. */
#if defined(__clang__)
#define LOOP_HINT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOP_HINT _Pragma("GCC ivdep")
#endif

/* A type of numbers, and how to read and write buffers of any alignment that hold it. */
#define NUMBER(NAME, TYPE)                                                                         \
    typedef TYPE NAME;                                                                             \
    typedef TYPE NAME##_buffer __attribute__((aligned(1), may_alias));                             \
    static inline NAME NAME##_load(const void *from, size_t i) {                                   \
        return ((const NAME##_buffer *)from)[i];                                                   \
    }                                                                                              \
    static inline void NAME##_store(void *to, size_t i, NAME a) {                                  \
        ((NAME##_buffer *)to)[i] = a;                                                              \
    }

#define COMPLEX_NUMBER(NAME, PART)                                                                 \
    typedef struct NAME NAME;                                                                      \
    struct NAME {                                                                                  \
        PART re;                                                                                   \
        PART im;                                                                                   \
    };                                                                                             \
    static inline NAME NAME##_load(const void *from, size_t i) {                                   \
        return (NAME){PART##_load(from, 2 * i), PART##_load(from, 2 * i + 1)};                     \
    }                                                                                              \
    static inline void NAME##_store(void *to, size_t i, NAME a) {                                  \
        PART##_store(to, 2 * i, a.re);                                                             \
        PART##_store(to, 2 * i + 1, a.im);                                                         \
    }

NUMBER(i8, int8_t)
NUMBER(i16, int16_t)
NUMBER(i32, int32_t)
NUMBER(i64, int64_t)
NUMBER(u8, uint8_t)
NUMBER(u16, uint16_t)
NUMBER(u32, uint32_t)
NUMBER(u64, uint64_t)
NUMBER(f32, float)
NUMBER(f64, double)
COMPLEX_NUMBER(c64, f32)
COMPLEX_NUMBER(c128, f64)

#define AS_IT_IS(A) (A)

/* The loops over a function NAME of two values. END is applied to what is stored. */
#define LOOPS(NAME, TYPE, END)                                                                     \
    static void NAME##_two(void *out, const void *const *in, size_t n) {                           \
        const void *a = in[0];                                                                     \
        const void *b = in[1];                                                                     \
        LOOP_HINT                                                                                  \
        for (size_t i = 0; i < n; i++)                                                             \
            TYPE##_store(out, i, END(NAME(TYPE##_load(a, i), TYPE##_load(b, i))));                 \
    }                                                                                              \
    static void NAME##_three(void *out, const void *const *in, size_t n) {                         \
        const void *a = in[0];                                                                     \
        const void *b = in[1];                                                                     \
        const void *c = in[2];                                                                     \
        LOOP_HINT                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                           \
            TYPE two = NAME(TYPE##_load(a, i), TYPE##_load(b, i));                                 \
            TYPE##_store(out, i, END(NAME(two, TYPE##_load(c, i))));                               \
        }                                                                                          \
    }

#define LOOP_OF_FIVE(NAME, TYPE, END)                                                              \
    static void NAME##_five(void *out, const void *const *in, size_t n) {                          \
        const void *a = in[0];                                                                     \
        const void *b = in[1];                                                                     \
        const void *c = in[2];                                                                     \
        const void *d = in[3];                                                                     \
        const void *e = in[4];                                                                     \
        LOOP_HINT                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                           \
            TYPE two = NAME(TYPE##_load(a, i), TYPE##_load(b, i));                                 \
            TYPE four = NAME(NAME(two, TYPE##_load(c, i)), TYPE##_load(d, i));                     \
            TYPE##_store(out, i, END(NAME(four, TYPE##_load(e, i))));                              \
        }                                                                                          \
    }

/* A kernel whose accumulators are of the type itself, so that the same loops do everything. */
#define SAME_LOOPS(LOOP, ONE, FIVE)                                                                \
    {                                                                                              \
        { NULL, ONE, LOOP##_two, LOOP##_three, NULL, FIVE }                                        \
    }
#define KERNEL(NAME, LOOP, ONE, FIVE, TYPE, UNITS)                                                 \
    static const hemi_reduce_kernel NAME##_kernel = {                                              \
        .direct = SAME_LOOPS(LOOP, ONE, FIVE),                                                     \
        .open = SAME_LOOPS(LOOP, NULL, FIVE),                                                      \
        .more = SAME_LOOPS(LOOP, NULL, FIVE),                                                      \
        .close = SAME_LOOPS(LOOP, NULL, FIVE),                                                     \
        .element = sizeof(TYPE),                                                                   \
        .accumulator = sizeof(TYPE),                                                               \
        .units = (UNITS),                                                                          \
    };

/* An operation: RESULT in terms of the values a and b. */
#define FUNCTION(NAME, TYPE, END, RESULT)                                                          \
    static inline TYPE NAME(TYPE a, TYPE b) {                                                      \
        return (TYPE)(RESULT);                                                                     \
    }                                                                                              \
    LOOPS(NAME, TYPE, END)
#define OPERATION_END(NAME, TYPE, END, RESULT)                                                     \
    FUNCTION(NAME, TYPE, END, RESULT)                                                              \
    KERNEL(NAME, NAME, NULL, NULL, TYPE, 1)
#define OPERATION(NAME, TYPE, RESULT) OPERATION_END(NAME, TYPE, AS_IT_IS, RESULT)

/* Sums are what people use: they have the long loop. */
#define SUM_OPERATION(TYPE, END, RESULT)                                                           \
    FUNCTION(TYPE##_sum, TYPE, END, RESULT)                                                        \
    LOOP_OF_FIVE(TYPE##_sum, TYPE, END)                                                            \
    KERNEL(TYPE##_sum, TYPE##_sum, NULL, TYPE##_sum_five, TYPE, 1)

/* The logical operations: of a single source, too, the result is 1 or 0. TRUTH gives 1 or 0 of a
 * value, and VALUE a value of 1 or 0. */
#define LOGICAL_OPERATION(NAME, TYPE, ONE, RESULT)                                                 \
    FUNCTION(NAME, TYPE, AS_IT_IS, RESULT)                                                         \
    KERNEL(NAME, NAME, ONE, NULL, TYPE, 1)
#define LOGICAL(NAME, TYPE, TRUTH, VALUE)                                                          \
    static void NAME##_truth(void *out, const void *const *in, size_t n) {                         \
        const void *a = in[0];                                                                     \
        LOOP_HINT                                                                                  \
        for (size_t i = 0; i < n; i++)                                                             \
            TYPE##_store(out, i, VALUE(TRUTH(TYPE##_load(a, i))));                                 \
    }                                                                                              \
    LOGICAL_OPERATION(NAME##_land, TYPE, NAME##_truth, VALUE(TRUTH(a) & TRUTH(b)))                 \
    LOGICAL_OPERATION(NAME##_lor, TYPE, NAME##_truth, VALUE(TRUTH(a) | TRUTH(b)))                  \
    LOGICAL_OPERATION(NAME##_lxor, TYPE, NAME##_truth, VALUE(TRUTH(a) ^ TRUTH(b)))

#define NOT_ZERO(A) ((A) != 0)

/* Integers. Sums and products are taken in WIDE, unsigned and not narrower than int, and wrap: so
 * they, as the operations on bits, are the same for signed types. */
#define UNSIGNED(TYPE, WIDE)                                                                       \
    SUM_OPERATION(TYPE, AS_IT_IS, (WIDE)a + (WIDE)b)                                               \
    OPERATION(TYPE##_prod, TYPE, (WIDE)a *(WIDE)b)                                                 \
    OPERATION(TYPE##_min, TYPE, b < a ? b : a)                                                     \
    OPERATION(TYPE##_max, TYPE, b > a ? b : a)                                                     \
    OPERATION(TYPE##_band, TYPE, a &b)                                                             \
    OPERATION(TYPE##_bor, TYPE, a | b)                                                             \
    OPERATION(TYPE##_bxor, TYPE, a ^ b)                                                            \
    LOGICAL(TYPE, TYPE, NOT_ZERO, (TYPE))

#define SIGNED(TYPE)                                                                               \
    OPERATION(TYPE##_min, TYPE, b < a ? b : a)                                                     \
    OPERATION(TYPE##_max, TYPE, b > a ? b : a)

UNSIGNED(u8, uint32_t)
UNSIGNED(u16, uint32_t)
UNSIGNED(u32, uint32_t)
UNSIGNED(u64, uint64_t)
SIGNED(i8)
SIGNED(i16)
SIGNED(i32)
SIGNED(i64)

/* f32 and f64. Of a sum or product only the end is settled: that it is NaN does not get lost. In
 * `pick` the comparisons come first, so that none depends on another. */
#define FLOATING(TYPE, NOT_A_NUMBER)                                                               \
    static inline TYPE TYPE##_settle(TYPE a) {                                                     \
        return a != a ? (TYPE)(NOT_A_NUMBER) : a;                                                  \
    }                                                                                              \
    static inline TYPE TYPE##_pick(int second, int unordered, TYPE a, TYPE b) {                    \
        TYPE picked = second ? b : a;                                                              \
        return unordered ? (TYPE)(NOT_A_NUMBER) : picked;                                          \
    }                                                                                              \
    SUM_OPERATION(TYPE, TYPE##_settle, a + b)                                                      \
    OPERATION_END(TYPE##_prod, TYPE, TYPE##_settle, a *b)                                          \
    OPERATION(TYPE##_min, TYPE, TYPE##_pick(b < a, __builtin_isunordered(a, b), a, b))             \
    OPERATION(TYPE##_max, TYPE, TYPE##_pick(b > a, __builtin_isunordered(a, b), a, b))             \
    LOGICAL(TYPE, TYPE, NOT_ZERO, (TYPE))

FLOATING(f32, __builtin_nanf(""))
FLOATING(f64, __builtin_nan(""))

/* Complex numbers. A sum is one of twice as many real numbers. A product is the plain formula: no
 * infinity is recovered from a NaN. It is written with two additions, which round the same, since
 * gcc 12 makes a fused multiplication of the alternating form, whatever -ffp-contract says. */
#define COMPLEX(TYPE, PART)                                                                        \
    static inline int TYPE##_nonzero(TYPE a) {                                                     \
        return (a.re != 0) | (a.im != 0);                                                          \
    }                                                                                              \
    static inline TYPE TYPE##_real(int a) {                                                        \
        return (TYPE){(PART)a, 0};                                                                 \
    }                                                                                              \
    static inline TYPE TYPE##_multiply(TYPE a, TYPE b) {                                           \
        return (TYPE){a.re * b.re + -a.im * b.im, a.re * b.im + a.im * b.re};                      \
    }                                                                                              \
    static inline TYPE TYPE##_settle(TYPE a) {                                                     \
        return (TYPE){PART##_settle(a.re), PART##_settle(a.im)};                                   \
    }                                                                                              \
    KERNEL(TYPE##_sum, PART##_sum, NULL, PART##_sum_five, TYPE, 2)                                 \
    OPERATION_END(TYPE##_prod, TYPE, TYPE##_settle, TYPE##_multiply(a, b))                         \
    LOGICAL(TYPE, TYPE, TYPE##_nonzero, TYPE##_real)

COMPLEX(c64, f32)
COMPLEX(c128, f64)

/* The logical operations of f16 and bf16 need no conversion. */
#define BUT_SIGN(A) (((A)&0x7fffu) != 0)
#define F16_ONE(A)  (uint16_t)(-(uint32_t)(A)&0x3c00u)
#define BF16_ONE(A) (uint16_t)(-(uint32_t)(A)&0x3f80u)

LOGICAL(f16, u16, BUT_SIGN, F16_ONE)
LOGICAL(bf16, u16, BUT_SIGN, BF16_ONE)

#endif
