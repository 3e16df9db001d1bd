/* Sixteen lanes with AVX-512. */
#ifndef HEMI_COLL_REDUCE_LANES_AVX512_H
#define HEMI_COLL_REDUCE_LANES_AVX512_H

#include <immintrin.h>

#define LANES 16

typedef __m512 lanes;

static inline lanes lanes_load_f32(const unsigned char *from) {
    return _mm512_loadu_ps(from);
}

static inline void lanes_store_f32(unsigned char *to, lanes a) {
    _mm512_storeu_ps(to, a);
}

/* The one NaN for any NaN, so that its payload does not depend on the order of operands. */
static inline lanes lanes_settle(lanes a) {
    return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q),
                              _mm512_set1_ps(__builtin_nanf("")));
}

static inline lanes lanes_load_f16(const unsigned char *from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(const void *)from));
}

static inline void lanes_store_f16(unsigned char *to, lanes a) {
    _mm256_storeu_si256((__m256i_u *)(void *)to,
                        _mm512_cvtps_ph(lanes_settle(a), _MM_FROUND_TO_NEAREST_INT));
}

static inline lanes lanes_load_bf16(const unsigned char *from) {
    __m256i half = _mm256_loadu_si256((const __m256i_u *)(const void *)from);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* Not vcvtneps2bf16, which takes subnormal numbers for zero. */
static inline void lanes_store_bf16(unsigned char *to, lanes a) {
    __m512i bits = _mm512_castps_si512(lanes_settle(a));
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);

    _mm256_storeu_si256((__m256i_u *)(void *)to, _mm512_cvtepi32_epi16(rounded));
}

/* The first of equal values; NaN if one is. The instruction gives its second operand then. */
static inline lanes lanes_min(lanes a, lanes b) {
    return _mm512_mask_mov_ps(_mm512_min_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
}

static inline lanes lanes_max(lanes a, lanes b) {
    return _mm512_mask_mov_ps(_mm512_max_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
}

#endif
