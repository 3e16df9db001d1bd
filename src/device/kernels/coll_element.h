/*
 * Combining two elements, by the rules at the top of coll/reduce/reduce.h: the same bits as the
 * host's. Real and complex numbers are words of their bits.
 */
#ifndef HEMD_KERNELS_COLL_ELEMENT_H
#define HEMD_KERNELS_COLL_ELEMENT_H

#include "device/kernels/halo_combine.h"

#define HEMD_COLL_NAN32 0x7fc00000u
#define HEMD_COLL_NAN64 0x7ff8000000000000ull

/* Integers: sums and products wrap, and are taken in WIDE, which is not narrower than int. */
#define HEMD_COLL_INTEGER(BITS, TYPE, SIGNED, WIDE)                                                \
    HEM_DEV TYPE hemd_u##BITS##_sum(TYPE a, TYPE b) {                                              \
        return (TYPE)((WIDE)a + (WIDE)b);                                                          \
    }                                                                                              \
    HEM_DEV TYPE hemd_u##BITS##_prod(TYPE a, TYPE b) {                                             \
        return (TYPE)((WIDE)a * (WIDE)b);                                                          \
    }                                                                                              \
    HEM_DEV TYPE hemd_u##BITS##_min(TYPE a, TYPE b) {                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    HEM_DEV TYPE hemd_u##BITS##_max(TYPE a, TYPE b) {                                              \
        return b > a ? b : a;                                                                      \
    }                                                                                              \
    HEM_DEV TYPE hemd_i##BITS##_min(TYPE a, TYPE b) {                                              \
        return (SIGNED)b < (SIGNED)a ? b : a;                                                      \
    }                                                                                              \
    HEM_DEV TYPE hemd_i##BITS##_max(TYPE a, TYPE b) {                                              \
        return (SIGNED)b > (SIGNED)a ? b : a;                                                      \
    }                                                                                              \
    HEMD_COLL_LOGICAL(u##BITS, TYPE, hemd_not_zero, (TYPE))

/* TRUTH gives true or false of an element, VALUE an element of 1 or 0. */
#define HEMD_COLL_LOGICAL(NAME, TYPE, TRUTH, VALUE)                                                \
    HEM_DEV TYPE hemd_##NAME##_land(TYPE a, TYPE b) {                                              \
        return VALUE(TRUTH(a) && TRUTH(b) ? 1u : 0u);                                              \
    }                                                                                              \
    HEM_DEV TYPE hemd_##NAME##_lor(TYPE a, TYPE b) {                                               \
        return VALUE(TRUTH(a) || TRUTH(b) ? 1u : 0u);                                              \
    }                                                                                              \
    HEM_DEV TYPE hemd_##NAME##_lxor(TYPE a, TYPE b) {                                              \
        return VALUE(TRUTH(a) != TRUTH(b) ? 1u : 0u);                                              \
    }

HEM_DEV bool hemd_not_zero(uint64_t a) {
    return a != 0;
}

HEMD_COLL_INTEGER(8, uint8_t, int8_t, uint32_t)
HEMD_COLL_INTEGER(16, uint16_t, int16_t, uint32_t)
HEMD_COLL_INTEGER(32, uint32_t, int32_t, uint32_t)
HEMD_COLL_INTEGER(64, uint64_t, int64_t, uint64_t)

/* f32 and f64, as bits. No product is contracted with a sum. */
#if defined(__CUDACC__)
HEM_DEV float hemd_f32_times(float a, float b) {
    return __fmul_rn(a, b);
}

HEM_DEV double hemd_f64_times(double a, double b) {
    return __dmul_rn(a, b);
}

HEM_DEV float hemd_f32_plus(float a, float b) {
    return __fadd_rn(a, b);
}

HEM_DEV double hemd_f64_plus(double a, double b) {
    return __dadd_rn(a, b);
}
#else
HEM_DEV float hemd_f32_times(float a, float b) {
    return a * b;
}

HEM_DEV double hemd_f64_times(double a, double b) {
    return a * b;
}

HEM_DEV float hemd_f32_plus(float a, float b) {
    return a + b;
}

HEM_DEV double hemd_f64_plus(double a, double b) {
    return a + b;
}
#endif

#define HEMD_COLL_REAL(BITS, TYPE, WORD, NONE)                                                     \
    HEM_DEV WORD hemd_f##BITS##_sum(WORD a, WORD b) {                                              \
        return hemd_f##BITS##_bits(                                                                \
            hemd_f##BITS##_plus(hemd_f##BITS##_of(a), hemd_f##BITS##_of(b)));                      \
    }                                                                                              \
    HEM_DEV WORD hemd_f##BITS##_prod(WORD a, WORD b) {                                             \
        return hemd_f##BITS##_bits(                                                                \
            hemd_f##BITS##_times(hemd_f##BITS##_of(a), hemd_f##BITS##_of(b)));                     \
    }                                                                                              \
    HEM_DEV WORD hemd_f##BITS##_picked(WORD a, WORD b, bool second) {                              \
        TYPE x = hemd_f##BITS##_of(a), y = hemd_f##BITS##_of(b);                                   \
        return !(x == x) || !(y == y) ? (NONE) : (second ? b : a);                                 \
    }                                                                                              \
    HEM_DEV WORD hemd_f##BITS##_min(WORD a, WORD b) {                                              \
        return hemd_f##BITS##_picked(a, b, hemd_f##BITS##_of(b) < hemd_f##BITS##_of(a));           \
    }                                                                                              \
    HEM_DEV WORD hemd_f##BITS##_max(WORD a, WORD b) {                                              \
        return hemd_f##BITS##_picked(a, b, hemd_f##BITS##_of(b) > hemd_f##BITS##_of(a));           \
    }                                                                                              \
    HEM_DEV bool hemd_f##BITS##_true(WORD a) {                                                     \
        return !(hemd_f##BITS##_of(a) == (TYPE)0);                                                 \
    }                                                                                              \
    HEM_DEV WORD hemd_f##BITS##_real(uint32_t a) {                                                 \
        return hemd_f##BITS##_bits((TYPE)a);                                                       \
    }                                                                                              \
    /** That it is NaN does not get lost on the way, so this is for the end. */                    \
    HEM_DEV WORD hemd_f##BITS##_settled(WORD a) {                                                  \
        TYPE value = hemd_f##BITS##_of(a);                                                         \
        return value == value ? a : (NONE);                                                        \
    }                                                                                              \
    HEMD_COLL_LOGICAL(f##BITS, WORD, hemd_f##BITS##_true, hemd_f##BITS##_real)

HEMD_COLL_REAL(32, float, uint32_t, HEMD_COLL_NAN32)
HEMD_COLL_REAL(64, double, uint64_t, HEMD_COLL_NAN64)

/* The logical operations of f16 and bf16 need no conversion. */
HEM_DEV bool hemd_half_true(uint32_t a) {
    return (a & 0x7fffu) != 0;
}

HEM_DEV uint16_t hemd_f16_real(uint32_t a) {
    return (uint16_t)(a * 0x3c00u);
}

HEM_DEV uint16_t hemd_bf16_real(uint32_t a) {
    return (uint16_t)(a * 0x3f80u);
}

HEMD_COLL_LOGICAL(f16, uint16_t, hemd_half_true, hemd_f16_real)
HEMD_COLL_LOGICAL(bf16, uint16_t, hemd_half_true, hemd_bf16_real)

/* c64: the real part is the lower half of a word of 64 bits. */
HEM_DEV uint64_t hemd_c64_of(float re, float im) {
    return (uint64_t)hemd_f32_bits(im) << 32 | hemd_f32_bits(re);
}

HEM_DEV uint64_t hemd_c64_prod(uint64_t a, uint64_t b) {
    float ar = hemd_f32_of((uint32_t)a), ai = hemd_f32_of((uint32_t)(a >> 32));
    float br = hemd_f32_of((uint32_t)b), bi = hemd_f32_of((uint32_t)(b >> 32));
    return hemd_c64_of(hemd_f32_plus(hemd_f32_times(ar, br), hemd_f32_times(-ai, bi)),
                       hemd_f32_plus(hemd_f32_times(ar, bi), hemd_f32_times(ai, br)));
}

HEM_DEV bool hemd_c64_true(uint64_t a) {
    return hemd_f32_true((uint32_t)a) || hemd_f32_true((uint32_t)(a >> 32));
}

HEM_DEV uint64_t hemd_c64_real(uint32_t a) {
    return hemd_f32_real(a);
}

HEMD_COLL_LOGICAL(c64, uint64_t, hemd_c64_true, hemd_c64_real)

#endif
