/* What the tests of collectives by multicast share: it is on, and numbers whose sums are exact. */
#ifndef HEM_TESTS_DEVICE_MULTI_KIT_H
#define HEM_TESTS_DEVICE_MULTI_KIT_H

#include "coll_kit.h"

/** Bytes to each rank that are too many for units. */
#define MULTI_KIT_BYTES 140000u

__attribute__((constructor)) static void multi_kit_turn_on(void) {
    setenv("HEM_CUDA_MULTICAST", "1", 1);
}

/** Small whole numbers: a switch adds in an order of its own. */
static inline void multi_kit_fill(coll_kit_buffer *b, hem_dtype dtype, harness_rng *rng) {
    static const uint16_t f16[4] = {0, 0x3c00, 0x4000, 0xc200};  /* 0, 1, 2, -3 */
    static const uint16_t bf16[4] = {0, 0x3f80, 0x4000, 0xc040}; /* the same */
    size_t element = hem_dtype_size(dtype);
    for (size_t at = b->shift; b->first != NULL && at + element <= b->bytes; at += element) {
        size_t number = harness_below(rng, 4);
        float f = (float)number - 2.0f;
        double g = 1000.0 * f;
        if (dtype == HEM_F16)
            memcpy(b->first + at, &f16[number], 2);
        else if (dtype == HEM_BF16)
            memcpy(b->first + at, &bf16[number], 2);
        else if (dtype == HEM_F32)
            memcpy(b->first + at, &f, sizeof f);
        else if (dtype == HEM_F64)
            memcpy(b->first + at, &g, sizeof g);
    }
}

/** As coll_kit_set, with so much that it is not done in units. */
static inline void multi_kit_set(coll_kit *kit, hem_coll_kind kind, hem_dtype dtype,
                                 hem_reduction op, bool in_place, size_t shift, uint64_t seed,
                                 uint64_t number) {
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)kit->rank);
    size_t count = MULTI_KIT_BYTES / hem_dtype_size(dtype) + harness_below(&rng, 9);
    coll_kit_set(kit, kind, dtype, op, count, in_place, shift, &rng, &own);
    kit->coll.blocks = DEVICE_FEW_BLOCKS;
    multi_kit_fill(&kit->send, dtype, &own);
    multi_kit_fill(&kit->recv, dtype, &own);
}

#endif
