/*
 * Combining 16 bytes of elements at a time.
 *
 * How this works. An accumulator is opened with what the first rank has, more is combined into it,
 * and it is closed when all is. f16 and bf16 are f32 in between. Operations are written for one
 * element (coll_element.h), and lifted to words of 32 bits for those that are smaller. Which one it
 * is, is asked for each vector: only sums of the usual types have loops of their own
 * (coll_reduce.h).
 */
#ifndef HEMD_KERNELS_COLL_VECTOR_H
#define HEMD_KERNELS_COLL_VECTOR_H

#include "device/kernels/coll_pair.h"

#include <hem/coll.h>
#include <hem/device/copy.h>

/* Smaller elements, lifted to words of 32 bits. */
#define HEMD_COLL_LIFT(NAME, TYPE, BITS)                                                           \
    HEM_DEV uint32_t hemd_##NAME##_word(uint32_t a, uint32_t b) {                                  \
        uint32_t word = 0;                                                                         \
        HEMD_UNROLL                                                                                \
        for (uint32_t i = 0; i < 32; i += (BITS))                                                  \
            word |= (uint32_t)hemd_##NAME((TYPE)(a >> i), (TYPE)(b >> i)) << i;                    \
        return word;                                                                               \
    }
#define HEMD_COLL_LIFT_LOGICAL(NAME, TYPE, BITS)                                                   \
    HEMD_COLL_LIFT(NAME##_land, TYPE, BITS)                                                        \
    HEMD_COLL_LIFT(NAME##_lor, TYPE, BITS)                                                         \
    HEMD_COLL_LIFT(NAME##_lxor, TYPE, BITS)
#define HEMD_COLL_LIFT_INTEGER(TYPE, BITS)                                                         \
    HEMD_COLL_LIFT(u##BITS##_sum, TYPE, BITS)                                                      \
    HEMD_COLL_LIFT(u##BITS##_prod, TYPE, BITS)                                                     \
    HEMD_COLL_LIFT(u##BITS##_min, TYPE, BITS)                                                      \
    HEMD_COLL_LIFT(u##BITS##_max, TYPE, BITS)                                                      \
    HEMD_COLL_LIFT(i##BITS##_min, TYPE, BITS)                                                      \
    HEMD_COLL_LIFT(i##BITS##_max, TYPE, BITS)                                                      \
    HEMD_COLL_LIFT_LOGICAL(u##BITS, TYPE, BITS)

HEMD_COLL_LIFT_INTEGER(uint8_t, 8)
HEMD_COLL_LIFT_INTEGER(uint16_t, 16)
HEMD_COLL_LIFT_LOGICAL(f16, uint16_t, 16)
HEMD_COLL_LIFT_LOGICAL(bf16, uint16_t, 16)

/* Vectors. */

HEM_DEV uint64_t hemd_vector_low(hemd_vector v) {
    return (uint64_t)v.y << 32 | v.x;
}

HEM_DEV uint64_t hemd_vector_high(hemd_vector v) {
    return (uint64_t)v.w << 32 | v.z;
}

HEM_DEV hemd_vector hemd_vector_of(uint64_t low, uint64_t high) {
    hemd_vector v;
    v.x = (uint32_t)low;
    v.y = (uint32_t)(low >> 32);
    v.z = (uint32_t)high;
    v.w = (uint32_t)(high >> 32);
    return v;
}

HEM_DEV hemd_vector hemd_c128_prod(hemd_vector a, hemd_vector b) {
    double ar = hemd_f64_of(hemd_vector_low(a)), ai = hemd_f64_of(hemd_vector_high(a));
    double br = hemd_f64_of(hemd_vector_low(b)), bi = hemd_f64_of(hemd_vector_high(b));
    return hemd_vector_of(
        hemd_f64_bits(hemd_f64_plus(hemd_f64_times(ar, br), hemd_f64_times(-ai, bi))),
        hemd_f64_bits(hemd_f64_plus(hemd_f64_times(ar, bi), hemd_f64_times(ai, br))));
}

HEM_DEV bool hemd_c128_true(hemd_vector a) {
    return hemd_f64_true(hemd_vector_low(a)) || hemd_f64_true(hemd_vector_high(a));
}

HEM_DEV hemd_vector hemd_c128_real(uint32_t a) {
    return hemd_vector_of(hemd_f64_real(a), 0);
}

HEMD_COLL_LOGICAL(c128, hemd_vector, hemd_c128_true, hemd_c128_real)

/* F of each word of 32 or 64 bits of the vectors a and b, into a. */
#define HEMD_COLL_EACH32(F)                                                                        \
    a.x = F(a.x, b.x);                                                                             \
    a.y = F(a.y, b.y);                                                                             \
    a.z = F(a.z, b.z);                                                                             \
    a.w = F(a.w, b.w)
#define HEMD_COLL_EACH64(F)                                                                        \
    a = hemd_vector_of(F(hemd_vector_low(a), hemd_vector_low(b)),                                  \
                       F(hemd_vector_high(a), hemd_vector_high(b)))
#define HEMD_COLL_WHOLE(F) a = F(a, b)

#define HEMD_COLL_CASE(TYPE, OP, EACH, F)                                                          \
    case HEMD_COLL_CODE(TYPE, OP):                                                                 \
        EACH(F);                                                                                   \
        break;
#define HEMD_COLL_CASES_LOGICAL(TYPE, EACH, NAME, LIFTED)                                          \
    HEMD_COLL_CASE(TYPE, HEM_LAND, EACH, hemd_##NAME##_land##LIFTED)                               \
    HEMD_COLL_CASE(TYPE, HEM_LOR, EACH, hemd_##NAME##_lor##LIFTED)                                 \
    HEMD_COLL_CASE(TYPE, HEM_LXOR, EACH, hemd_##NAME##_lxor##LIFTED)
#define HEMD_COLL_CASES_INTEGER(UNSIGNED, SIGNED, EACH, BITS, LIFTED)                              \
    HEMD_COLL_CASE(UNSIGNED, HEM_SUM, EACH, hemd_u##BITS##_sum##LIFTED)                            \
    HEMD_COLL_CASE(UNSIGNED, HEM_PROD, EACH, hemd_u##BITS##_prod##LIFTED)                          \
    HEMD_COLL_CASE(UNSIGNED, HEM_MIN, EACH, hemd_u##BITS##_min##LIFTED)                            \
    HEMD_COLL_CASE(UNSIGNED, HEM_MAX, EACH, hemd_u##BITS##_max##LIFTED)                            \
    HEMD_COLL_CASE(SIGNED, HEM_MIN, EACH, hemd_i##BITS##_min##LIFTED)                              \
    HEMD_COLL_CASE(SIGNED, HEM_MAX, EACH, hemd_i##BITS##_max##LIFTED)                              \
    HEMD_COLL_CASES_LOGICAL(UNSIGNED, EACH, u##BITS, LIFTED)
#define HEMD_COLL_CASES_REAL(TYPE, EACH, BITS)                                                     \
    HEMD_COLL_CASE(TYPE, HEM_SUM, EACH, hemd_f##BITS##_sum)                                        \
    HEMD_COLL_CASE(TYPE, HEM_PROD, EACH, hemd_f##BITS##_prod)                                      \
    HEMD_COLL_CASE(TYPE, HEM_MIN, EACH, hemd_f##BITS##_min)                                        \
    HEMD_COLL_CASE(TYPE, HEM_MAX, EACH, hemd_f##BITS##_max)                                        \
    HEMD_COLL_CASES_LOGICAL(TYPE, EACH, f##BITS, )

/* The operations on bits do not know types; the host names them by that of bytes. */
#define HEMD_COLL_AND(a, b) ((a) & (b))
#define HEMD_COLL_OR(a, b)  ((a) | (b))
#define HEMD_COLL_XOR(a, b) ((a) ^ (b))

/** Of two pairs of a value and a location the one that stays, as a whole. */
HEM_DEV hemd_vector hemd_coll_pick(uint32_t code, hemd_vector a, hemd_vector b) {
    return hemd_pair_second_wins(HEMD_COLL_TYPE(code), HEMD_COLL_OP(code) == HEM_MAXLOC,
                                 hemd_vector_low(a), (int64_t)hemd_vector_high(a),
                                 hemd_vector_low(b), (int64_t)hemd_vector_high(b))
               ? b
               : a;
}

/** a op b, element by element. Arithmetic of f16 and bf16 is that of f32. */
HEM_DEV_SLOW hemd_vector hemd_coll_apply(uint32_t code, hemd_vector a, hemd_vector b) {
    switch (code) {
        HEMD_COLL_CASES_INTEGER(HEMD_COLL_U8, HEMD_COLL_I8, HEMD_COLL_EACH32, 8, _word)
        HEMD_COLL_CASES_INTEGER(HEMD_COLL_U16, HEMD_COLL_I16, HEMD_COLL_EACH32, 16, _word)
        HEMD_COLL_CASES_INTEGER(HEMD_COLL_U32, HEMD_COLL_I32, HEMD_COLL_EACH32, 32, )
        HEMD_COLL_CASES_INTEGER(HEMD_COLL_U64, HEMD_COLL_I64, HEMD_COLL_EACH64, 64, )
        HEMD_COLL_CASES_REAL(HEMD_COLL_F32, HEMD_COLL_EACH32, 32)
        HEMD_COLL_CASES_REAL(HEMD_COLL_F64, HEMD_COLL_EACH64, 64)
        HEMD_COLL_CASES_LOGICAL(HEMD_COLL_F16, HEMD_COLL_EACH32, f16, _word)
        HEMD_COLL_CASES_LOGICAL(HEMD_COLL_BF16, HEMD_COLL_EACH32, bf16, _word)
        HEMD_COLL_CASE(HEMD_COLL_C64, HEM_PROD, HEMD_COLL_EACH64, hemd_c64_prod)
        HEMD_COLL_CASES_LOGICAL(HEMD_COLL_C64, HEMD_COLL_EACH64, c64, )
        HEMD_COLL_CASE(HEMD_COLL_C128, HEM_PROD, HEMD_COLL_WHOLE, hemd_c128_prod)
        HEMD_COLL_CASES_LOGICAL(HEMD_COLL_C128, HEMD_COLL_WHOLE, c128, )
        HEMD_COLL_CASE(HEMD_COLL_U8, HEM_BAND, HEMD_COLL_EACH32, HEMD_COLL_AND)
        HEMD_COLL_CASE(HEMD_COLL_U8, HEM_BOR, HEMD_COLL_EACH32, HEMD_COLL_OR)
        HEMD_COLL_CASE(HEMD_COLL_U8, HEM_BXOR, HEMD_COLL_EACH32, HEMD_COLL_XOR)
    default:
        if (HEMD_COLL_OP(code) >= HEM_MINLOC)
            a = hemd_coll_pick(code, a, b);
        break;
    }
    return a;
}

/* f16 and bf16 to f32 and back, two to a word. The GPU has instructions for it, whose NaN is
 * another one. */

HEM_DEV uint32_t hemd_bf16_wide(uint32_t half) {
    return half << 16;
}

#if defined(__CUDACC__)
HEM_DEV uint32_t hemd_coll_wide_f16(uint32_t half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((uint16_t)half));
    return __float_as_uint(value);
}

HEM_DEV uint32_t hemd_coll_narrow_f16(uint32_t bits) {
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(__uint_as_float(bits)));
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7e00u : half;
}
#else
HEM_DEV uint32_t hemd_coll_wide_f16(uint32_t half) {
    return hemd_f16_wide(half);
}

HEM_DEV uint32_t hemd_coll_narrow_f16(uint32_t bits) {
    return hemd_f16_narrow(bits);
}
#endif

/** Elements on the way: of f16 and bf16 the first four and the others, as f32. */
typedef struct hemd_coll_sum {
    hemd_vector low;
    hemd_vector high; /**< of other types not used */
} hemd_coll_sum;

#define HEMD_COLL_HALVES(NAME, WIDE, NARROW)                                                       \
    HEM_DEV hemd_coll_sum hemd_coll_open_##NAME(hemd_vector v) {                                   \
        hemd_coll_sum sum;                                                                         \
        sum.low.x = WIDE(v.x & 0xffffu);                                                           \
        sum.low.y = WIDE(v.x >> 16);                                                               \
        sum.low.z = WIDE(v.y & 0xffffu);                                                           \
        sum.low.w = WIDE(v.y >> 16);                                                               \
        sum.high.x = WIDE(v.z & 0xffffu);                                                          \
        sum.high.y = WIDE(v.z >> 16);                                                              \
        sum.high.z = WIDE(v.w & 0xffffu);                                                          \
        sum.high.w = WIDE(v.w >> 16);                                                              \
        return sum;                                                                                \
    }                                                                                              \
    HEM_DEV hemd_vector hemd_coll_close_##NAME(hemd_coll_sum sum) {                                \
        hemd_vector v;                                                                             \
        v.x = NARROW(sum.low.x) | NARROW(sum.low.y) << 16;                                         \
        v.y = NARROW(sum.low.z) | NARROW(sum.low.w) << 16;                                         \
        v.z = NARROW(sum.high.x) | NARROW(sum.high.y) << 16;                                       \
        v.w = NARROW(sum.high.z) | NARROW(sum.high.w) << 16;                                       \
        return v;                                                                                  \
    }

HEMD_COLL_HALVES(f16, hemd_coll_wide_f16, hemd_coll_narrow_f16)
HEMD_COLL_HALVES(bf16, hemd_bf16_wide, hemd_bf16_narrow)

HEM_DEV hemd_vector hemd_coll_settle_f32(hemd_vector v) {
    v.x = hemd_f32_settled(v.x);
    v.y = hemd_f32_settled(v.y);
    v.z = hemd_f32_settled(v.z);
    v.w = hemd_f32_settled(v.w);
    return v;
}

HEM_DEV hemd_vector hemd_coll_settle_f64(hemd_vector v) {
    return hemd_vector_of(hemd_f64_settled(hemd_vector_low(v)),
                          hemd_f64_settled(hemd_vector_high(v)));
}

/** Whether elements are f32 on the way. */
HEM_DEV bool hemd_coll_is_half(uint32_t code) {
    const uint32_t type = HEMD_COLL_TYPE(code);
    return (type == HEMD_COLL_F16 || type == HEMD_COLL_BF16) && HEMD_COLL_OP(code) <= HEM_MAX;
}

HEM_DEV hemd_coll_sum hemd_coll_wide(uint32_t code, hemd_vector v) {
    return HEMD_COLL_TYPE(code) == HEMD_COLL_F16 ? hemd_coll_open_f16(v) : hemd_coll_open_bf16(v);
}

/** What the first rank has. A logical operation makes 1 or 0 of it. */
HEM_DEV_SLOW hemd_coll_sum hemd_coll_open(uint32_t code, hemd_vector v) {
    if (hemd_coll_is_half(code))
        return hemd_coll_wide(code, v);
    hemd_coll_sum sum;
    sum.low = v;
    sum.high = hemd_vector_of(0, 0);
    const uint32_t op = HEMD_COLL_OP(code);
    if (op == HEM_LAND || op == HEM_LOR || op == HEM_LXOR)
        sum.low = hemd_coll_apply(HEMD_COLL_CODE(HEMD_COLL_TYPE(code), HEM_LOR), v, sum.high);
    return sum;
}

/** What the next rank has. */
HEM_DEV_SLOW hemd_coll_sum hemd_coll_more(uint32_t code, hemd_coll_sum sum, hemd_vector v) {
    if (hemd_coll_is_half(code)) {
        const uint32_t real = HEMD_COLL_CODE(HEMD_COLL_F32, HEMD_COLL_OP(code));
        hemd_coll_sum wide = hemd_coll_wide(code, v);
        sum.low = hemd_coll_apply(real, sum.low, wide.low);
        sum.high = hemd_coll_apply(real, sum.high, wide.high);
    } else {
        sum.low = hemd_coll_apply(code, sum.low, v);
    }
    return sum;
}

/** The result. */
HEM_DEV_SLOW hemd_vector hemd_coll_close(uint32_t code, hemd_coll_sum sum) {
    const uint32_t type = HEMD_COLL_TYPE(code);
    if (HEMD_COLL_OP(code) > HEM_MAX)
        return sum.low;
    if (type == HEMD_COLL_F16)
        return hemd_coll_close_f16(sum);
    if (type == HEMD_COLL_BF16)
        return hemd_coll_close_bf16(sum);
    if (type == HEMD_COLL_F32 || type == HEMD_COLL_C64)
        return hemd_coll_settle_f32(sum.low);
    return type == HEMD_COLL_F64 || type == HEMD_COLL_C128 ? hemd_coll_settle_f64(sum.low)
                                                           : sum.low;
}

#endif
