/*
 * Combining two values, as bits, by the rules at the top of coll/reduce/reduce.h: the same bits as
 * the host's.
 */
#ifndef HEMD_KERNELS_HALO_COMBINE_H
#define HEMD_KERNELS_HALO_COMBINE_H

#include "device/kernels/halo_table.h"

#if defined(__CUDACC__)

HEM_DEV uint32_t hemd_f32_bits(float value) {
    return __float_as_uint(value);
}

HEM_DEV float hemd_f32_of(uint32_t bits) {
    return __uint_as_float(bits);
}

HEM_DEV uint64_t hemd_f64_bits(double value) {
    return (uint64_t)__double_as_longlong(value);
}

HEM_DEV double hemd_f64_of(uint64_t bits) {
    return __longlong_as_double((long long)bits);
}

#else

HEM_DEV uint32_t hemd_f32_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

HEM_DEV float hemd_f32_of(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

HEM_DEV uint64_t hemd_f64_bits(double value) {
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

HEM_DEV double hemd_f64_of(uint64_t bits) {
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

#endif

/** The value without its sign, or with the other one, as `change` says. */
HEM_DEV uint64_t hemd_halo_changed(uint64_t value, uint32_t unit, uint32_t change) {
    if (change == HEMD_HALO_MINUS)
        return 0 - value;
    return change == HEMD_HALO_SIGN ? value ^ 1ull << (8 * unit - 1) : value;
}

HEM_DEV uint32_t hemd_f32_combined(uint32_t op, uint32_t a_bits, uint32_t b_bits) {
    float a = hemd_f32_of(a_bits);
    float b = hemd_f32_of(b_bits);
    uint32_t bits = a_bits;
    bool none = !(a == a) || !(b == b);
    if (op == HEMD_HALO_SUM) {
        float sum = a + b;
        bits = hemd_f32_bits(sum);
        none = !(sum == sum);
    } else if (op == HEMD_HALO_MIN ? b < a : b > a) {
        bits = b_bits;
    }
    return none ? 0x7fc00000u : bits;
}

HEM_DEV uint64_t hemd_f64_combined(uint32_t op, uint64_t a_bits, uint64_t b_bits) {
    double a = hemd_f64_of(a_bits);
    double b = hemd_f64_of(b_bits);
    uint64_t bits = a_bits;
    bool none = !(a == a) || !(b == b);
    if (op == HEMD_HALO_SUM) {
        double sum = a + b;
        bits = hemd_f64_bits(sum);
        none = !(sum == sum);
    } else if (op == HEMD_HALO_MIN ? b < a : b > a) {
        bits = b_bits;
    }
    return none ? 0x7ff8000000000000ull : bits;
}

/* f16 and bf16: exact to f32; back to nearest, ties to even, as coll/reduce/half.h does. */

HEM_DEV uint32_t hemd_f16_wide(uint32_t half) {
    uint32_t exponent = half & 0x7c00u;
    uint32_t shifted = (half & 0x7fffu) << 13;
    uint32_t magnitude = shifted + (112u << 23);
    if (exponent == 0)
        magnitude = hemd_f32_bits((float)(int32_t)(half & 0x3ffu) * (1.0f / 16777216.0f));
    else if (exponent == 0x7c00u)
        magnitude = shifted + (224u << 23);
    return magnitude | (half & 0x8000u) << 16;
}

HEM_DEV uint32_t hemd_f16_narrow(uint32_t bits) {
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u)
        return 0x7e00u;
    if (magnitude >= 0x47800000u)
        return sign | 0x7c00u;
    if (magnitude < 0x38800000u)
        return sign | (hemd_f32_bits(hemd_f32_of(magnitude) + 0.5f) - (126u << 23));
    return sign | (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
}

HEM_DEV uint32_t hemd_bf16_narrow(uint32_t bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0u;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/** Signed integers, given with their sign extended; sums are the unsigned ones. */
HEM_DEV uint64_t hemd_signed_combined(uint32_t op, int64_t a, int64_t b) {
    if (op == HEMD_HALO_SUM)
        return (uint64_t)a + (uint64_t)b;
    return (uint64_t)((op == HEMD_HALO_MIN ? b < a : b > a) ? b : a);
}

HEM_DEV uint64_t hemd_unsigned_combined(uint32_t op, uint64_t a, uint64_t b) {
    if (op == HEMD_HALO_SUM)
        return a + b;
    return (op == HEMD_HALO_MIN ? b < a : b > a) ? b : a;
}

/** a op b, of the type `kind`. What is above the width of the type is of no account. */
HEM_DEV uint64_t hemd_halo_combined(uint32_t kind, uint32_t op, uint64_t a, uint64_t b) {
    if (op == HEMD_HALO_REPLACE)
        return b;
    switch (kind) {
    case HEMD_HALO_I8:
        return hemd_signed_combined(op, (int8_t)a, (int8_t)b);
    case HEMD_HALO_I16:
        return hemd_signed_combined(op, (int16_t)a, (int16_t)b);
    case HEMD_HALO_I32:
        return hemd_signed_combined(op, (int32_t)a, (int32_t)b);
    case HEMD_HALO_I64:
        return hemd_signed_combined(op, (int64_t)a, (int64_t)b);
    case HEMD_HALO_F16:
        return hemd_f16_narrow(
            hemd_f32_combined(op, hemd_f16_wide((uint16_t)a), hemd_f16_wide((uint16_t)b)));
    case HEMD_HALO_BF16:
        return hemd_bf16_narrow(
            hemd_f32_combined(op, (uint32_t)(uint16_t)a << 16, (uint32_t)(uint16_t)b << 16));
    case HEMD_HALO_F32:
        return hemd_f32_combined(op, (uint32_t)a, (uint32_t)b);
    case HEMD_HALO_F64:
        return hemd_f64_combined(op, a, b);
    case HEMD_HALO_BOOL:
        return op == HEMD_HALO_MIN ? (uint64_t)(((uint8_t)a != 0) & ((uint8_t)b != 0))
                                   : (uint64_t)(((uint8_t)a != 0) | ((uint8_t)b != 0));
    case HEMD_HALO_U8:
        return hemd_unsigned_combined(op, (uint8_t)a, (uint8_t)b);
    case HEMD_HALO_U16:
        return hemd_unsigned_combined(op, (uint16_t)a, (uint16_t)b);
    case HEMD_HALO_U32:
        return hemd_unsigned_combined(op, (uint32_t)a, (uint32_t)b);
    default:
        return hemd_unsigned_combined(op, a, b);
    }
}

#endif
