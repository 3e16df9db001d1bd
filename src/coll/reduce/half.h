/* f16 and bf16 to f32 and back, one at a time, without branches so that loops can be vectorised. */
#ifndef HEMI_COLL_REDUCE_HALF_H
#define HEMI_COLL_REDUCE_HALF_H

#include <stdint.h>

static inline uint32_t hemi_f32_bits(float value) {
    union {
        float value;
        uint32_t bits;
    } u = {.value = value};
    return u.bits;
}

static inline float hemi_f32_of(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } u = {.bits = bits};
    return u.value;
}

/** Exact. Subnormals are converted from integers, so that no mode of the processor flushes them. */
static inline float hemi_f16_to_f32(uint16_t half) {
    uint32_t exponent = half & 0x7c00u;
    uint32_t shifted = (half & 0x7fffu) << 13;
    uint32_t subnormal = hemi_f32_bits((float)(int32_t)(half & 0x3ffu) * 0x1p-24f);
    uint32_t finite = exponent == 0 ? subnormal : shifted + (112u << 23);
    uint32_t magnitude = exponent == 0x7c00u ? shifted + (224u << 23) : finite;

    return hemi_f32_of(magnitude | (half & 0x8000u) << 16);
}

/** To nearest, ties to even, too large to infinity, any NaN to 0x7e00. */
static inline uint16_t hemi_f32_to_f16(float value) {
    uint32_t bits = hemi_f32_bits(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 16 & 0x8000u;
    /* Adding 0.5 leaves the bits of a subnormal f16, rounded, at the end of the fraction. */
    uint32_t subnormal = hemi_f32_bits(hemi_f32_of(magnitude) + 0.5f) - (126u << 23);
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    uint32_t ordered = sign | (magnitude >= 0x47800000u ? 0x7c00u : finite);

    return (uint16_t)(magnitude > 0x7f800000u ? 0x7e00u : ordered);
}

static inline float hemi_bf16_to_f32(uint16_t half) {
    return hemi_f32_of((uint32_t)half << 16);
}

/** To nearest, ties to even, too large to infinity, any NaN to 0x7fc0. */
static inline uint16_t hemi_f32_to_bf16(float value) {
    uint32_t bits = hemi_f32_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

#endif
