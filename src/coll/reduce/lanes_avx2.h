/* Eight lanes with AVX2 and F16C. */
#ifndef HEMI_COLL_REDUCE_LANES_AVX2_H
#define HEMI_COLL_REDUCE_LANES_AVX2_H

#include <immintrin.h>

#define LANES 8

typedef __m256 lanes;

static inline lanes lanes_load_f32(const unsigned char *from) {
    return _mm256_loadu_ps((const float *)(const void *)from);
}

static inline void lanes_store_f32(unsigned char *to, lanes a) {
    _mm256_storeu_ps((float *)(void *)to, a);
}

/* The one NaN for any NaN, so that its payload does not depend on the order of operands. */
static inline lanes lanes_settle(lanes a) {
    return _mm256_blendv_ps(a, _mm256_set1_ps(__builtin_nanf("")),
                            _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

static inline lanes lanes_load_f16(const unsigned char *from) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(const void *)from));
}

static inline void lanes_store_f16(unsigned char *to, lanes a) {
    _mm_storeu_si128((__m128i_u *)(void *)to,
                     _mm256_cvtps_ph(lanes_settle(a), _MM_FROUND_TO_NEAREST_INT));
}

static inline lanes lanes_load_bf16(const unsigned char *from) {
    __m128i half = _mm_loadu_si128((const __m128i_u *)(const void *)from);

    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

static inline void lanes_store_bf16(unsigned char *to, lanes a) {
    __m256i bits = _mm256_castps_si256(lanes_settle(a));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    __m256i packed = _mm256_packus_epi32(rounded, rounded);

    packed = _mm256_permute4x64_epi64(packed, 0x08);
    _mm_storeu_si128((__m128i_u *)(void *)to, _mm256_castsi256_si128(packed));
}

/* The first of equal values; NaN if one is. The instruction gives its second operand then. */
static inline lanes lanes_min(lanes a, lanes b) {
    return _mm256_blendv_ps(_mm256_min_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}

static inline lanes lanes_max(lanes a, lanes b) {
    return _mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}

#endif
