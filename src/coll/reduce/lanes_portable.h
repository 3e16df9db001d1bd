/* One lane in plain C; the compiler makes vectors of it as far as the processor has them. */
#ifndef HEMI_COLL_REDUCE_LANES_PORTABLE_H
#define HEMI_COLL_REDUCE_LANES_PORTABLE_H

#include "coll/reduce/half.h"

#define LANES 1

typedef float lanes;
typedef float lanes_f32 __attribute__((aligned(1), may_alias));
typedef uint16_t lanes_u16 __attribute__((aligned(1), may_alias));

static inline lanes lanes_load_f32(const unsigned char *from) {
    return *(const lanes_f32 *)(const void *)from;
}

static inline void lanes_store_f32(unsigned char *to, lanes a) {
    *(lanes_f32 *)(void *)to = a;
}

static inline lanes lanes_load_f16(const unsigned char *from) {
    return hemi_f16_to_f32(*(const lanes_u16 *)(const void *)from);
}

static inline void lanes_store_f16(unsigned char *to, lanes a) {
    *(lanes_u16 *)(void *)to = hemi_f32_to_f16(a);
}

static inline lanes lanes_load_bf16(const unsigned char *from) {
    return hemi_bf16_to_f32(*(const lanes_u16 *)(const void *)from);
}

static inline void lanes_store_bf16(unsigned char *to, lanes a) {
    *(lanes_u16 *)(void *)to = hemi_f32_to_bf16(a);
}

/* The first of equal values; NaN if one is. */
static inline lanes lanes_min(lanes a, lanes b) {
    int second = (b < a) | (b != b);
    return second ? b : a;
}

static inline lanes lanes_max(lanes a, lanes b) {
    int second = (b > a) | (b != b);
    return second ? b : a;
}

#endif
