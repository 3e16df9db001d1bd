/*
 * Typed loops over steps of a field. They follow the rules at the top of coll/reduce/reduce.h, so
 * that an element becomes the same bits here and in the kernels there.
 */
#include "coll/reduce/half.h"
#include "halo/shape_combine.h"

/* A type as it lies in buffers of any alignment. */
#define BUFFER(NAME, TYPE) typedef TYPE NAME __attribute__((aligned(1), may_alias));
BUFFER(i8, int8_t)
BUFFER(i16, int16_t)
BUFFER(i32, int32_t)
BUFFER(i64, int64_t)
BUFFER(u8, uint8_t)
BUFFER(u16, uint16_t)
BUFFER(u32, uint32_t)
BUFFER(u64, uint64_t)
BUFFER(f32, float)
BUFFER(f64, double)

/* Where step i of the row is. */
static inline unsigned char *step_at(unsigned char *field, const hemi_combine_row *row,
                                     uint64_t i) {
    if (row->near != NULL)
        return field + row->near[i];
    return field + (row->far != NULL ? row->far[i] : (int64_t)i * row->stride);
}

/* A type cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

/* Loops over a function NAME of two values. The common steps of one unit have loops of their own.
 * */
#define LOOPS(NAME, TYPE)                                                                          \
    static void NAME##_near(unsigned char *field, const TYPE *from, const hemi_combine_row *row) { \
        for (uint64_t i = 0; i < row->count; i++) {                                                \
            TYPE *f = (TYPE *)(field + row->near[i]);                                              \
            *f = NAME(*f, from[i]);                                                                \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_strided(unsigned char *field, const TYPE *from,                             \
                               const hemi_combine_row *row) {                                      \
        for (uint64_t i = 0; i < row->count; i++, field += row->stride)                            \
            *(TYPE *)field = NAME(*(TYPE *)field, from[i]);                                        \
    }                                                                                              \
    static void NAME##_run(unsigned char *field, const unsigned char *in,                          \
                           const hemi_combine_row *row) {                                          \
        const TYPE *from = (const TYPE *)in;                                                       \
        uint64_t units = row->units;                                                               \
        if (units == 1 && row->near != NULL) {                                                     \
            NAME##_near(field, from, row);                                                         \
            return;                                                                                \
        }                                                                                          \
        if (units == 1 && row->far == NULL) {                                                      \
            NAME##_strided(field, from, row);                                                      \
            return;                                                                                \
        }                                                                                          \
        for (uint64_t i = 0; i < row->count; i++) {                                                \
            TYPE *f = (TYPE *)step_at(field, row, i);                                              \
            for (uint64_t u = 0; u < units; u++, from++)                                           \
                f[u] = NAME(f[u], *from);                                                          \
        }                                                                                          \
    }                                                                                              \
    static const hemi_combine_loop NAME##_loop = {NAME##_run, sizeof(TYPE)};

/* An operation: RESULT in terms of the values a and b. */
#define OPERATION(NAME, TYPE, VALUE, RESULT)                                                       \
    static inline VALUE NAME(VALUE a, VALUE b) {                                                   \
        return (VALUE)(RESULT);                                                                    \
    }                                                                                              \
    LOOPS(NAME, TYPE)

/* Sums wrap; those of signed types are the same bits. */
#define INTEGER(TYPE, VALUE)                                                                       \
    OPERATION(TYPE##_min, TYPE, VALUE, b < a ? b : a)                                              \
    OPERATION(TYPE##_max, TYPE, VALUE, b > a ? b : a)

INTEGER(i8, int8_t)
INTEGER(i16, int16_t)
INTEGER(i32, int32_t)
INTEGER(i64, int64_t)
INTEGER(u8, uint8_t)
INTEGER(u16, uint16_t)
INTEGER(u32, uint32_t)
INTEGER(u64, uint64_t)
OPERATION(u8_sum, u8, uint8_t, (uint32_t)a + b)
OPERATION(u16_sum, u16, uint16_t, (uint32_t)a + b)
OPERATION(u32_sum, u32, uint32_t, a + b)
OPERATION(u64_sum, u64, uint64_t, a + b)
OPERATION(bool_or, u8, uint8_t, (a != 0) | (b != 0))
OPERATION(bool_and, u8, uint8_t, (a != 0) & (b != 0))

/* A result that is NaN is the one quiet NaN without sign and payload. */
#define FLOATING(TYPE, VALUE, NOT_A_NUMBER)                                                        \
    static inline VALUE TYPE##_settle(VALUE a) {                                                   \
        return a != a ? (NOT_A_NUMBER) : a;                                                        \
    }                                                                                              \
    static inline VALUE TYPE##_pick(int second, int unordered, VALUE a, VALUE b) {                 \
        VALUE picked = second ? b : a;                                                             \
        return unordered ? (NOT_A_NUMBER) : picked;                                                \
    }                                                                                              \
    OPERATION(TYPE##_sum, TYPE, VALUE, TYPE##_settle(a + b))                                       \
    OPERATION(TYPE##_min, TYPE, VALUE, TYPE##_pick(b < a, __builtin_isunordered(a, b), a, b))      \
    OPERATION(TYPE##_max, TYPE, VALUE, TYPE##_pick(b > a, __builtin_isunordered(a, b), a, b))

FLOATING(f32, float, __builtin_nanf(""))
FLOATING(f64, double, __builtin_nan(""))

/* f16 and bf16 are combined in f32 and rounded once. */
#define HALF(NAME)                                                                                 \
    OPERATION(NAME##_sum, u16, uint16_t,                                                           \
              hemi_f32_to_##NAME(f32_sum(hemi_##NAME##_to_f32(a), hemi_##NAME##_to_f32(b))))       \
    OPERATION(NAME##_min, u16, uint16_t,                                                           \
              hemi_f32_to_##NAME(f32_min(hemi_##NAME##_to_f32(a), hemi_##NAME##_to_f32(b))))       \
    OPERATION(NAME##_max, u16, uint16_t,                                                           \
              hemi_f32_to_##NAME(f32_max(hemi_##NAME##_to_f32(a), hemi_##NAME##_to_f32(b))))

HALF(f16)
HALF(bf16)

#define ROW(SUM, OF)                                                                               \
    { [HEM_SUM] = &SUM##_sum_loop, [HEM_MIN] = &OF##_min_loop, [HEM_MAX] = &OF##_max_loop }

static const hemi_combine_loop *const loops[HEM_BOOL + 1][HEM_MAX + 1] = {
    [HEM_I8] = ROW(u8, i8),
    [HEM_I16] = ROW(u16, i16),
    [HEM_I32] = ROW(u32, i32),
    [HEM_I64] = ROW(u64, i64),
    [HEM_U8] = ROW(u8, u8),
    [HEM_U16] = ROW(u16, u16),
    [HEM_U32] = ROW(u32, u32),
    [HEM_U64] = ROW(u64, u64),
    [HEM_F16] = ROW(f16, f16),
    [HEM_BF16] = ROW(bf16, bf16),
    [HEM_F32] = ROW(f32, f32),
    [HEM_F64] = ROW(f64, f64),
    [HEM_C64] = {[HEM_SUM] = &f32_sum_loop},
    [HEM_C128] = {[HEM_SUM] = &f64_sum_loop},
    [HEM_BOOL] = {[HEM_SUM] = &bool_or_loop, [HEM_MIN] = &bool_and_loop, [HEM_MAX] = &bool_or_loop},
};

const hemi_combine_loop *hemi_combine_loop_of(hem_dtype dtype, hem_reduction op) {
    if (dtype < HEM_BYTE || dtype > HEM_BOOL || op < HEM_SUM || op > HEM_MAX)
        return NULL;
    return loops[dtype][op];
}

/* Negating: of numbers the sign, whatever it is the sign of. */
#define NEGATION(NAME, TYPE, RESULT)                                                               \
    static void NAME##_run(unsigned char *field, uint64_t units) {                                 \
        TYPE *f = (TYPE *)field;                                                                   \
        for (uint64_t u = 0; u < units; u++)                                                       \
            f[u] = (TYPE)(RESULT);                                                                 \
    }                                                                                              \
    static const hemi_negate_loop NAME##_loop = {NAME##_run, sizeof(TYPE)};

NEGATION(minus_8, u8, 0u - f[u])
NEGATION(minus_16, u16, 0u - f[u])
NEGATION(minus_32, u32, 0u - f[u])
NEGATION(minus_64, u64, 0u - f[u])
NEGATION(sign_16, u16, f[u] ^ 0x8000u)
NEGATION(sign_32, u32, f[u] ^ 0x80000000u)
NEGATION(sign_64, u64, f[u] ^ 0x8000000000000000u)

static const hemi_negate_loop *const negations[HEM_BOOL + 1] = {
    [HEM_I8] = &minus_8_loop,   [HEM_I16] = &minus_16_loop, [HEM_I32] = &minus_32_loop,
    [HEM_I64] = &minus_64_loop, [HEM_F16] = &sign_16_loop,  [HEM_BF16] = &sign_16_loop,
    [HEM_F32] = &sign_32_loop,  [HEM_F64] = &sign_64_loop,  [HEM_C64] = &sign_32_loop,
    [HEM_C128] = &sign_64_loop,
};

const hemi_negate_loop *hemi_negate_loop_of(hem_dtype dtype) {
    return dtype < HEM_BYTE || dtype > HEM_BOOL ? NULL : negations[dtype];
}

/* NOLINTEND(bugprone-macro-parentheses) */
