/*
 * Minimum and maximum with location, over pairs of 16 bytes. A pair is chosen as a whole: its
 * unused bytes come along, and a NaN keeps its bits.
 */
#include "coll/reduce/half.h"
#include "coll/reduce/kernel.h"

#include <string.h>

typedef struct pair {
    unsigned char value[8];
    int64_t location;
} pair;

static pair pair_load(const void *pairs, size_t i) {
    pair p;
    memcpy(&p, (const unsigned char *)pairs + i * sizeof p, sizeof p);
    return p;
}

static void pair_store(void *pairs, size_t i, pair p) {
    memcpy((unsigned char *)pairs + i * sizeof p, &p, sizeof p);
}

/* Which of two pairs stays. `b_wins` where the values differ and NaN is not among them. NaN wins
 * over every number; of equals the lower location, and then the earlier source. */
#define PICK(NAME, STORED, COMPARED, CONVERT, B_WINS)                                              \
    static inline pair NAME(pair a, pair b) {                                                      \
        STORED stored_a;                                                                           \
        STORED stored_b;                                                                           \
        memcpy(&stored_a, a.value, sizeof stored_a);                                               \
        memcpy(&stored_b, b.value, sizeof stored_b);                                               \
        COMPARED x = CONVERT(stored_a);                                                            \
        COMPARED y = CONVERT(stored_b);                                                            \
        bool x_none = IS_NAN(x);                                                                   \
        bool y_none = IS_NAN(y);                                                                   \
        bool equal = x_none ? y_none : x == y;                                                     \
        bool wins = equal ? b.location < a.location : y_none || (B_WINS);                          \
        return wins ? b : a;                                                                       \
    }                                                                                              \
    static void NAME##_two(void *out, const void *const *in, size_t n) {                           \
        for (size_t i = 0; i < n; i++)                                                             \
            pair_store(out, i, NAME(pair_load(in[0], i), pair_load(in[1], i)));                    \
    }                                                                                              \
    static void NAME##_three(void *out, const void *const *in, size_t n) {                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            pair two = NAME(pair_load(in[0], i), pair_load(in[1], i));                             \
            pair_store(out, i, NAME(two, pair_load(in[2], i)));                                    \
        }                                                                                          \
    }                                                                                              \
    static const hemi_reduce_kernel NAME##_kernel = {                                              \
        .direct = {{NULL, NULL, NAME##_two, NAME##_three}},                                        \
        .open = {{NULL, NULL, NAME##_two, NAME##_three}},                                          \
        .more = {{NULL, NULL, NAME##_two, NAME##_three}},                                          \
        .close = {{NULL, NULL, NAME##_two, NAME##_three}},                                         \
        .element = sizeof(pair),                                                                   \
        .accumulator = sizeof(pair),                                                               \
        .units = 1,                                                                                \
    };

#define IS_NAN(A) ((A) != (A))
#define SAME(A)   (A)
#define PICKS(NAME, STORED, COMPARED, CONVERT)                                                     \
    PICK(NAME##_min, STORED, COMPARED, CONVERT, y < x)                                             \
    PICK(NAME##_max, STORED, COMPARED, CONVERT, y > x)

PICKS(i8, int8_t, int8_t, SAME)
PICKS(i16, int16_t, int16_t, SAME)
PICKS(i32, int32_t, int32_t, SAME)
PICKS(i64, int64_t, int64_t, SAME)
PICKS(u8, uint8_t, uint8_t, SAME)
PICKS(u16, uint16_t, uint16_t, SAME)
PICKS(u32, uint32_t, uint32_t, SAME)
PICKS(u64, uint64_t, uint64_t, SAME)
PICKS(f16, uint16_t, float, hemi_f16_to_f32)
PICKS(bf16, uint16_t, float, hemi_bf16_to_f32)
PICKS(f32, float, float, SAME)
PICKS(f64, double, double, SAME)

#define ROW(NAME)                                                                                  \
    { &NAME##_min_kernel, &NAME##_max_kernel }

static const hemi_reduce_kernel *const kernels[HEM_BOOL + 1][2] = {
    [HEM_I8] = ROW(i8),   [HEM_I16] = ROW(i16), [HEM_I32] = ROW(i32),   [HEM_I64] = ROW(i64),
    [HEM_U8] = ROW(u8),   [HEM_U16] = ROW(u16), [HEM_U32] = ROW(u32),   [HEM_U64] = ROW(u64),
    [HEM_F16] = ROW(f16), [HEM_F32] = ROW(f32), [HEM_BF16] = ROW(bf16), [HEM_F64] = ROW(f64),
};

const hemi_reduce_kernel *hemi_reduce_pairs(hem_dtype dtype, hem_reduction op) {
    return kernels[dtype][op == HEM_MAXLOC];
}
