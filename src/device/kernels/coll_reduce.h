/*
 * A slice of a reduction: what all ranks have of it is combined in the order of ranks, and written to
 * one or more places. A thread does the same elements of all, so that a place may be a source, too.
 *
 * The middle is done in vectors of 16 bytes, several at a time for sums of the usual types: loads of
 * the first two sources, then those of each further one, are under way before anything is combined.
 */
#ifndef HEMD_KERNELS_COLL_REDUCE_H
#define HEMD_KERNELS_COLL_REDUCE_H

#include "device/kernels/coll_vector.h"

#include <hem/device/reach.h>

/** Vectors that a thread has under way. */
#define HEMD_COLL_DEEP 4u

/** Where a source or a destination is, `offset` bytes behind the beginning of the slice. */
HEM_DEV const unsigned char *hemd_coll_from(const hemd_coll_args *args, uint64_t source,
                                            uint64_t offset) {
    const unsigned char *from = HEMD_FIXED64(const unsigned char *, args->sources[source]);
    HEMD_GLOBAL(from);
    return from + offset;
}

HEM_DEV unsigned char *hemd_coll_to(const hemd_coll_args *args, uint64_t to, uint64_t offset) {
    unsigned char *place = HEMD_FIXED64(unsigned char *, args->tos[to]);
    HEMD_GLOBAL(place);
    return place + offset;
}

/** Elements of up to 16 bytes that may lie anywhere; what is behind them is 0. */
HEM_DEV uint64_t hemd_coll_load_word(const unsigned char *from, uint32_t bytes) {
    const uint64_t place = (uint64_t)(uintptr_t)from;
    if (bytes == 8 && place % 8u == 0)
        return hemd_unit_get(from, 8);
    if (bytes == 4 && place % 4u == 0)
        return hemd_unit_get(from, 4);
    return hemd_word_get_odd(from, bytes);
}

HEM_DEV void hemd_coll_store_word(unsigned char *to, uint32_t bytes, uint64_t word) {
    const uint64_t place = (uint64_t)(uintptr_t)to;
    if (bytes == 8 && place % 8u == 0)
        hemd_unit_set(to, 8, word);
    else if (bytes == 4 && place % 4u == 0)
        hemd_unit_set(to, 4, word);
    else
        hemd_word_set_odd(to, bytes, word);
}

HEM_DEV hemd_vector hemd_coll_load_element(const unsigned char *from, uint32_t bytes) {
    if (bytes <= 8)
        return hemd_vector_of(hemd_coll_load_word(from, bytes), 0);
    return hemd_vector_of(hemd_coll_load_word(from, 8), hemd_coll_load_word(from + 8, bytes - 8));
}

HEM_DEV void hemd_coll_store_element(unsigned char *to, uint32_t bytes, hemd_vector v) {
    hemd_coll_store_word(to, bytes <= 8 ? bytes : 8, hemd_vector_low(v));
    if (bytes > 8)
        hemd_coll_store_word(to + 8, bytes - 8, hemd_vector_high(v));
}

/** One element by one thread. */
HEM_DEV_SLOW void hemd_coll_reduce_element(const hemd_coll_args *args, uint64_t offset) {
    const uint32_t bytes = args->element;
    hemd_coll_sum sum =
        hemd_coll_open(args->code, hemd_coll_load_element(hemd_coll_from(args, 0, offset), bytes));
    for (uint64_t s = 1; s < args->source_count; s++)
        sum = hemd_coll_more(args->code, sum,
                             hemd_coll_load_element(hemd_coll_from(args, s, offset), bytes));
    hemd_vector v = hemd_coll_close(args->code, sum);
    for (uint64_t d = 0; d < args->to_count; d++)
        hemd_coll_store_element(hemd_coll_to(args, d, offset), bytes, v);
}

/** What is before the first vector and behind the last, of all blocks together. */
HEM_DEV void hemd_coll_reduce_edges(const hemd_coll_args *args) {
    const uint64_t behind = args->head + 16u * args->vectors;
    const uint64_t before = args->head / args->element;
    const uint64_t count = before + (args->bytes - behind) / args->element;
    hem_group block = hem_block();
    for (uint64_t i = (uint64_t)hem_block_index() * block.size + block.rank; i < count;
         i += (uint64_t)hem_block_count() * block.size)
        hemd_coll_reduce_element(args, i < before ? i * args->element
                                                  : behind + (i - before) * args->element);
}

/** Any operation, a vector at a time. */
HEM_DEV void hemd_coll_reduce_any(const hemd_coll_args *args, uint64_t first, uint64_t end) {
    hem_group block = hem_block();
    for (uint64_t i = first + block.rank; i < end; i += block.size) {
        const uint64_t offset = args->head + 16u * i;
        hemd_vector v = hemd_vector_load(hemd_coll_from(args, 0, offset));
        hemd_coll_sum sum = hemd_coll_open(args->code, v);
        for (uint64_t s = 1; s < args->source_count; s++)
            sum =
                hemd_coll_more(args->code, sum, hemd_vector_load(hemd_coll_from(args, s, offset)));
        v = hemd_coll_close(args->code, sum);
        for (uint64_t d = 0; d < args->to_count; d++)
            hemd_vector_store(hemd_coll_to(args, d, offset), v);
    }
}

/** Load one source's vectors; who has nothing left loads nothing. */
HEM_DEV void hemd_coll_load_some(const unsigned char *from, uint64_t step, uint64_t left,
                                 hemd_vector *some) {
    HEMD_UNROLL
    for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)
        if (k * step < left)
            some[k] = hemd_vector_load(from + 16ull * k * step);
}

/* Sums of two sources or more, HEMD_COLL_DEEP vectors at a time. */
#define HEMD_COLL_SUMS(NAME, SUM, OPEN, MORE, CLOSE)                                               \
    HEM_DEV void hemd_coll_sums_##NAME(const hemd_coll_args *args, uint64_t first, uint64_t end) { \
        hem_group block = hem_block();                                                             \
        const uint64_t step = block.size;                                                          \
        for (uint64_t i = first + block.rank; i < end; i += HEMD_COLL_DEEP * step) {               \
            const uint64_t offset = args->head + 16u * i;                                          \
            hemd_vector here[HEMD_COLL_DEEP], next[HEMD_COLL_DEEP];                                \
            SUM sum[HEMD_COLL_DEEP];                                                               \
            hemd_coll_load_some(hemd_coll_from(args, 0, offset), step, end - i, here);             \
            hemd_coll_load_some(hemd_coll_from(args, 1, offset), step, end - i, next);             \
            HEMD_UNROLL                                                                            \
            for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)                                          \
                sum[k] = OPEN(here[k]);                                                            \
            for (uint64_t s = 2; s < args->source_count; s++) {                                    \
                hemd_coll_load_some(hemd_coll_from(args, s, offset), step, end - i, here);         \
                HEMD_UNROLL                                                                        \
                for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++) {                                    \
                    sum[k] = MORE(sum[k], next[k]);                                                \
                    next[k] = here[k];                                                             \
                }                                                                                  \
            }                                                                                      \
            HEMD_UNROLL                                                                            \
            for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)                                          \
                here[k] = CLOSE(MORE(sum[k], next[k]));                                            \
            for (uint64_t d = 0; d < args->to_count; d++) {                                        \
                unsigned char *to = hemd_coll_to(args, d, offset);                                 \
                HEMD_UNROLL                                                                        \
                for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)                                      \
                    if (k * step < end - i)                                                        \
                        hemd_vector_store(to + 16ull * k * step, here[k]);                         \
            }                                                                                      \
        }                                                                                          \
    }

#define HEMD_COLL_AS_IT_IS(a) (a)

#define HEMD_COLL_PLUS(NAME, EACH, F)                                                              \
    HEM_DEV hemd_vector hemd_coll_plus_##NAME(hemd_vector a, hemd_vector b) {                      \
        EACH(F);                                                                                   \
        return a;                                                                                  \
    }

HEMD_COLL_PLUS(u32, HEMD_COLL_EACH32, hemd_u32_sum)
HEMD_COLL_PLUS(u64, HEMD_COLL_EACH64, hemd_u64_sum)
HEMD_COLL_PLUS(f32, HEMD_COLL_EACH32, hemd_f32_sum)
HEMD_COLL_PLUS(f64, HEMD_COLL_EACH64, hemd_f64_sum)

HEM_DEV hemd_coll_sum hemd_coll_plus_wide(hemd_coll_sum sum, hemd_coll_sum more) {
    sum.low = hemd_coll_plus_f32(sum.low, more.low);
    sum.high = hemd_coll_plus_f32(sum.high, more.high);
    return sum;
}

#define HEMD_COLL_PLUS_F16(sum, v)  hemd_coll_plus_wide(sum, hemd_coll_open_f16(v))
#define HEMD_COLL_PLUS_BF16(sum, v) hemd_coll_plus_wide(sum, hemd_coll_open_bf16(v))

HEMD_COLL_SUMS(u32, hemd_vector, HEMD_COLL_AS_IT_IS, hemd_coll_plus_u32, HEMD_COLL_AS_IT_IS)
HEMD_COLL_SUMS(u64, hemd_vector, HEMD_COLL_AS_IT_IS, hemd_coll_plus_u64, HEMD_COLL_AS_IT_IS)
HEMD_COLL_SUMS(f32, hemd_vector, HEMD_COLL_AS_IT_IS, hemd_coll_plus_f32, hemd_coll_settle_f32)
HEMD_COLL_SUMS(f64, hemd_vector, HEMD_COLL_AS_IT_IS, hemd_coll_plus_f64, hemd_coll_settle_f64)
HEMD_COLL_SUMS(f16, hemd_coll_sum, hemd_coll_open_f16, HEMD_COLL_PLUS_F16, hemd_coll_close_f16)
HEMD_COLL_SUMS(bf16, hemd_coll_sum, hemd_coll_open_bf16, HEMD_COLL_PLUS_BF16, hemd_coll_close_bf16)

/** This block's share of the slice. */
HEM_DEV void hemd_coll_reduce(const hemd_coll_args *args) {
    const uint64_t first = args->vectors * hem_block_index() / hem_block_count();
    const uint64_t end = args->vectors * (hem_block_index() + 1u) / hem_block_count();
    uint32_t code = args->source_count >= 2 ? args->code : 0;
    if (code == HEMD_COLL_CODE(HEMD_COLL_F32, HEM_SUM))
        hemd_coll_sums_f32(args, first, end);
    else if (code == HEMD_COLL_CODE(HEMD_COLL_F64, HEM_SUM))
        hemd_coll_sums_f64(args, first, end);
    else if (code == HEMD_COLL_CODE(HEMD_COLL_F16, HEM_SUM))
        hemd_coll_sums_f16(args, first, end);
    else if (code == HEMD_COLL_CODE(HEMD_COLL_BF16, HEM_SUM))
        hemd_coll_sums_bf16(args, first, end);
    else if (code == HEMD_COLL_CODE(HEMD_COLL_U32, HEM_SUM))
        hemd_coll_sums_u32(args, first, end);
    else if (code == HEMD_COLL_CODE(HEMD_COLL_U64, HEM_SUM))
        hemd_coll_sums_u64(args, first, end);
    else
        hemd_coll_reduce_any(args, first, end);
    hemd_coll_reduce_edges(args);
}

#endif
