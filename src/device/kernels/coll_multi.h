/*
 * The kernel of a collective whose ranks have memory under one multicast address (NVLS): loads that
 * the switch combines, stores that it gives to all.
 *
 * How this works. It is the form between barriers of coll.h, on memory that all ranks stage in: their
 * `own` of hemd_multi. The caller's buffers are copied there before the kernel and from there after
 * it, in the order of the stream. Block b of a rank meets blocks b of the others, does its share of
 * this rank's part, and meets them again:
 *
 *   all-reduce       part: a slice of the vector.   combined of all, stored to all
 *   reduce-scatter   part: this rank's elements.    combined of all, stored in `own`
 *   all-gather       part: what this rank sends.    loaded from `own`, stored to all
 *   broadcast        part: all of it, by the root.  loaded from `own`, stored to all
 *
 *   word                        written by                           read by
 *   own of a rank, its `send`   its copy before the kernel           all ranks, between the barriers
 *   a part, at all ranks        the rank whose part it is, between   each rank's copy after the kernel
 *
 * Parts share no vector of 16 bytes, and the thread that stores a vector is the only one that loads
 * it between the barriers, at whatever rank. Who has come to the first barrier has its copy in and
 * its copy out of the run before behind it, since its stream has come so far; so nothing is stored
 * where something is still to be read. Who leaves the second knows that all ranks' blocks b have done
 * their shares: when its kernel has ended, nobody loads or stores in its memory before it comes to
 * the first barrier of the next run.
 *
 * Order. The barriers release and acquire at the scope of the system. But `all` and `own` are two
 * virtual addresses of one memory, which counts as two proxies in PTX's memory model: what goes by one
 * is ordered with what goes by the other only if a fence.proxy.alias lies between them. Every thread
 * has one behind the first barrier (copies by `own`, of all ranks, then multimem) and one before the
 * second (multimem, then copies by `own`, of all ranks). In between a vector goes one way only, but
 * for the loads by `own` of what the same thread then stores, which are the same bytes.
 *
 * Sums of real numbers have the order of the switch, which is not said to be that of ranks, so their
 * last bits may be others than the host's. f16 and bf16 are kept in f32 there, too.
 */
#ifndef HEMD_KERNELS_COLL_MULTI_H
#define HEMD_KERNELS_COLL_MULTI_H

#include "device/kernels/coll.h"

/*
 * Vectors of what all have, one every `step` from `offset` on, as many as are `left` but at most
 * HEMD_COLL_DEEP: from the switch, or by the stand-in from each member in turn.
 */
#if defined(__CUDACC__)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HEMD_MULTI_ASM(PTX, TO, PLUS)                                                              \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." PTX " %0, [%1 + " #PLUS "];"             \
                 : TO                                                                              \
                 : "l"(from)                                                                       \
                 : "memory")
/* Four of 32 bits, two of 64, or a vector. */
#define HEMD_MULTI_FOUR(PTX)                                                                       \
    HEMD_MULTI_ASM(PTX, "=r"(v.x), 0);                                                             \
    HEMD_MULTI_ASM(PTX, "=r"(v.y), 4);                                                             \
    HEMD_MULTI_ASM(PTX, "=r"(v.z), 8);                                                             \
    HEMD_MULTI_ASM(PTX, "=r"(v.w), 12)
#define HEMD_MULTI_TWO(PTX)                                                                        \
    uint64_t low, high;                                                                            \
    HEMD_MULTI_ASM(PTX, "=l"(low), 0);                                                             \
    HEMD_MULTI_ASM(PTX, "=l"(high), 8);                                                            \
    v = hemd_vector_of(low, high)
#define HEMD_MULTI_ONE(PTX)                                                                        \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." PTX " {%0, %1, %2, %3}, [%4];"           \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                                      \
                 : "l"(from)                                                                       \
                 : "memory")
/* With the host's NaN. */
#define HEMD_MULTI_WHOLE(v) (v)
#define HEMD_MULTI_F16(v)   hemd_coll_close_f16(hemd_coll_open_f16(v))
#define HEMD_MULTI_BF16(v)  hemd_coll_close_bf16(hemd_coll_open_bf16(v))
#define HEMD_MULTI_F32(v)   hemd_coll_settle_f32(v)
#define HEMD_MULTI_F64(v)   hemd_coll_settle_f64(v)
/* All are under way before the first is looked at. */
#define HEMD_MULTI_CASE(TYPE, OP, LOADS, AS, PTX)                                                  \
    case HEMD_COLL_CODE(TYPE, OP):                                                                 \
        HEMD_UNROLL                                                                                \
        for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++) {                                            \
            const unsigned char *from = multi->all + offset + 16ull * k * step;                    \
            hemd_vector v = hemd_vector_of(0, 0);                                                  \
            if (k * step < left) {                                                                 \
                HEMD_MULTI_##LOADS(PTX);                                                           \
            }                                                                                      \
            some[k] = v;                                                                           \
        }                                                                                          \
        HEMD_UNROLL                                                                                \
        for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)                                              \
            some[k] = HEMD_MULTI_##AS(some[k]);                                                    \
        break;

HEM_DEV void hemd_multi_load_reduce(const hemd_multi *multi, uint32_t code, uint64_t offset,
                                    uint64_t step, uint64_t left, hemd_vector *some) {
    switch (code) {
        HEMD_COLL_MULTI_CODES(HEMD_MULTI_CASE)
    default:
        break;
    }
}

HEM_DEV void hemd_multi_store(const hemd_multi *multi, uint64_t offset, hemd_vector v) {
    asm volatile(
        "multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(multi->all + offset),
        "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
        : "memory");
}

HEM_DEV void hemd_multi_fence(void) {
    asm volatile("fence.proxy.alias;" ::: "memory");
}
#else
/* Not launched: the module says of such a GPU, or of such code, that it has no multicast. */
HEM_DEV void hemd_multi_load_reduce(const hemd_multi *multi, uint32_t code, uint64_t offset,
                                    uint64_t step, uint64_t left, hemd_vector *some) {
    (void)multi, (void)code, (void)offset, (void)step, (void)left;
    some[0] = hemd_vector_of(0, 0);
}

HEM_DEV void hemd_multi_store(const hemd_multi *multi, uint64_t offset, hemd_vector v) {
    (void)multi, (void)offset, (void)v;
}

HEM_DEV void hemd_multi_fence(void) {
}
#endif
#else
HEM_DEV void hemd_multi_load_reduce(const hemd_multi *multi, uint32_t code, uint64_t offset,
                                    uint64_t step, uint64_t left, hemd_vector *some) {
    for (uint32_t k = 0; k < HEMD_COLL_DEEP && k * step < left; k++) {
        const unsigned char *from = multi->all + offset + 16ull * k * step;
        hemd_coll_sum sum = hemd_coll_open(code, hemd_vector_load(from));
        for (uint64_t i = 1; i < multi->count; i++)
            sum = hemd_coll_more(code, sum, hemd_vector_load(from + i * multi->stride));
        some[k] = hemd_coll_close(code, sum);
    }
}

HEM_DEV void hemd_multi_store(const hemd_multi *multi, uint64_t offset, hemd_vector v) {
    for (uint64_t i = 0; i < multi->count; i++)
        hemd_vector_store(multi->all + i * multi->stride + offset, v);
}

HEM_DEV void hemd_multi_fence(void) {
}
#endif

/** This block's share of this rank's part, some vectors at a time. */
HEM_DEV void hemd_coll_multi_part(const hemd_coll_args *args) {
    hem_group block = hem_block();
    const hemd_multi *multi = &args->multi;
    const uint64_t step = block.size;
    const uint64_t end = args->vectors * (hem_block_index() + 1u) / hem_block_count();
    for (uint64_t i = args->vectors * hem_block_index() / hem_block_count() + block.rank; i < end;
         i += HEMD_COLL_DEEP * step) {
        const uint64_t offset = args->part_at + 16u * i;
        hemd_vector some[HEMD_COLL_DEEP];
        if (args->code != 0)
            hemd_multi_load_reduce(multi, args->code, offset, step, end - i, some);
        else
            hemd_coll_load_some(multi->own + offset, step, end - i, some);
        HEMD_UNROLL
        for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++) {
            if (k * step >= end - i)
                continue;
            if (args->to_count != 0)
                hemd_multi_store(multi, offset + 16ull * k * step, some[k]);
            else
                hemd_vector_store(multi->own + offset + 16ull * k * step, some[k]);
        }
    }
}

HEM_DEV hem_status hemd_coll_multi_between(const hemd_coll_args *args, hem_group block) {
    /* The leader's answer counts: another block may be about to fail. */
    const uint64_t failed = block.rank == 0 ? hemd_load64_relaxed(&args->state->failed) : 0;
    hem_status status = hem_group_agree(block, (hem_status)(-(int32_t)failed));
    if (status == HEM_OK)
        status = hemd_coll_meet(args, block);
    if (status != HEM_OK)
        return status;
    hemd_multi_fence();
    hemd_coll_multi_part(args);
    hemd_multi_fence();
    return hemd_coll_meet(args, block);
}

HEM_DEV void hemd_kernel_coll_multi(const struct hemd_coll_args *args) {
    hem_group block = hem_block();
    hem_status status = hemd_coll_multi_between(args, block);
    if (status != HEM_OK && block.rank == 0)
        hemd_coll_give_up(args, status);
}

#endif
