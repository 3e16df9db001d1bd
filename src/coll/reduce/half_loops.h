/*
 * The loops of f16 and bf16, which are combined in f32 and rounded once. Part of a set, which has
 * defined `lanes`, a value of LANES floats, and how to load, store and compare it (lanes_*.h).
 */
#ifndef HEMI_COLL_REDUCE_HALF_LOOPS_H
#define HEMI_COLL_REDUCE_HALF_LOOPS_H

#include "coll/reduce/loops.h"

#include <string.h>

enum {
    f16_bytes = 2,
    bf16_bytes = 2,
    f32_bytes = 4
};

/* Only single lanes are left to the compiler to make vectors of. */
#if LANES == 1
#define HALF_HINT LOOP_HINT
#else
#define HALF_HINT
#endif

static inline const unsigned char *half_at(const void *from, size_t bytes) {
    return (const unsigned char *)from + bytes;
}

/* What loops compute of the values at `in`, the first one of type FIRST and the others of HALF.
 * Macros, so that what a loop does not have is not even loaded. */
#define FIRST_AT(FIRST, i)           lanes_load_##FIRST(half_at(in[0], (i)*FIRST##_bytes))
#define HALF_AT(HALF, k, i)          lanes_load_##HALF(half_at(in[k], (i)*HALF##_bytes))
#define OF_TWO(OP, FIRST, HALF, i)   OP(FIRST_AT(FIRST, i), HALF_AT(HALF, 1, i))
#define OF_THREE(OP, FIRST, HALF, i) OP(OF_TWO(OP, FIRST, HALF, i), HALF_AT(HALF, 2, i))
#define OF_FIVE(OP, FIRST, HALF, i)                                                                \
    OP(OP(OF_THREE(OP, FIRST, HALF, i), HALF_AT(HALF, 3, i)), HALF_AT(HALF, 4, i))

/* A loop over COUNT inputs that stores OUT. What is left at the end goes through buffers, so that
 * it is computed by the same instructions. */
#define HALF_LOOP(NAME, COUNT, RESULT, OP, OUT, FIRST, HALF)                                       \
    static inline void NAME##_step(unsigned char *out, const void *const *in, size_t i) {          \
        lanes_store_##OUT(out + i * OUT##_bytes, RESULT(OP, FIRST, HALF, i));                      \
    }                                                                                              \
    static void NAME(void *out, const void *const *inputs, size_t n) {                             \
        const void *in[COUNT];                                                                     \
        size_t whole = n - n % LANES;                                                              \
        memcpy(in, inputs, sizeof in);                                                             \
        HALF_HINT                                                                                  \
        for (size_t i = 0; i < whole; i += LANES)                                                  \
            NAME##_step(out, in, i);                                                               \
        if (whole < n) {                                                                           \
            unsigned char rest[(COUNT) + 1][LANES * 4];                                            \
            half_rest(rest, in, COUNT, whole, n - whole, FIRST##_bytes);                           \
            NAME##_step(rest[COUNT], in, 0);                                                       \
            memcpy((unsigned char *)out + whole * OUT##_bytes, rest[COUNT],                        \
                   (n - whole) * OUT##_bytes);                                                     \
        }                                                                                          \
    }

/* Copy `n` values from the `from`-th on of each input to `rest`, filled up by zeros, and make that
 * the inputs. */
static inline void half_rest(unsigned char (*rest)[LANES * 4], const void **in, size_t count,
                             size_t from, size_t n, size_t first_bytes) {
    for (size_t k = 0; k < count; k++) {
        size_t bytes = k == 0 ? first_bytes : f16_bytes;
        memset(rest[k], 0, sizeof rest[k]);
        memcpy(rest[k], half_at(in[k], from * bytes), n * bytes);
        in[k] = rest[k];
    }
}

#define HALF_LOOPS(NAME, OP, HALF)                                                                 \
    HALF_LOOP(NAME##_two, 2, OF_TWO, OP, HALF, HALF, HALF)                                         \
    HALF_LOOP(NAME##_three, 3, OF_THREE, OP, HALF, HALF, HALF)                                     \
    HALF_LOOP(NAME##_open_three, 3, OF_THREE, OP, f32, HALF, HALF)                                 \
    HALF_LOOP(NAME##_more_three, 3, OF_THREE, OP, f32, f32, HALF)                                  \
    HALF_LOOP(NAME##_close_two, 2, OF_TWO, OP, HALF, f32, HALF)                                    \
    HALF_LOOP(NAME##_close_three, 3, OF_THREE, OP, HALF, f32, HALF)
#define HALF_LOOPS_OF_FIVE(NAME, OP, HALF)                                                         \
    HALF_LOOP(NAME##_five, 5, OF_FIVE, OP, HALF, HALF, HALF)                                       \
    HALF_LOOP(NAME##_open_five, 5, OF_FIVE, OP, f32, HALF, HALF)                                   \
    HALF_LOOP(NAME##_more_five, 5, OF_FIVE, OP, f32, f32, HALF)                                    \
    HALF_LOOP(NAME##_close_five, 5, OF_FIVE, OP, HALF, f32, HALF)

/* FIVE, OPEN_FIVE, MORE_FIVE and CLOSE_FIVE are the loops of five, or NULL. */
#define HALF_KERNEL(NAME, HALF, FIVE, OPEN_FIVE, MORE_FIVE, CLOSE_FIVE)                            \
    static const hemi_reduce_kernel NAME##_kernel = {                                              \
        .direct = {{NULL, NULL, NAME##_two, NAME##_three, NULL, FIVE}},                            \
        .open = {{NULL, NULL, NULL, NAME##_open_three, NULL, OPEN_FIVE}},                          \
        .more = {{NULL, NULL, NULL, NAME##_more_three, NULL, MORE_FIVE}},                          \
        .close = {{NULL, NULL, NAME##_close_two, NAME##_close_three, NULL, CLOSE_FIVE}},           \
        .element = HALF##_bytes,                                                                   \
        .accumulator = f32_bytes,                                                                  \
        .units = 1,                                                                                \
    };

#define HALF_OPERATION(NAME, OP, HALF)                                                             \
    HALF_LOOPS(NAME, OP, HALF)                                                                     \
    HALF_KERNEL(NAME, HALF, NULL, NULL, NULL, NULL)
#define HALF_SUM(NAME, HALF)                                                                       \
    HALF_LOOPS(NAME, LANES_SUM, HALF)                                                              \
    HALF_LOOPS_OF_FIVE(NAME, LANES_SUM, HALF)                                                      \
    HALF_KERNEL(NAME, HALF, NAME##_five, NAME##_open_five, NAME##_more_five, NAME##_close_five)

#define LANES_SUM(A, B)  ((A) + (B))
#define LANES_PROD(A, B) ((A) * (B))

#define HALF_TYPE(HALF)                                                                            \
    HALF_SUM(HALF##_sum, HALF)                                                                     \
    HALF_OPERATION(HALF##_prod, LANES_PROD, HALF)                                                  \
    HALF_OPERATION(HALF##_min, lanes_min, HALF)                                                    \
    HALF_OPERATION(HALF##_max, lanes_max, HALF)

HALF_TYPE(f16)
HALF_TYPE(bf16)

#endif
