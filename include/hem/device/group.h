/*
 * Groups: the threads of a kernel that do something together.
 *
 * A thread alone, a warp, a block, or several warps of a block with a named barrier of their own, so
 * that one part of a block can send while another receives. Every call that takes a group is made by
 * all its threads with the same arguments, and returns the same status to all of them.
 *
 * Where host threads stand in for a GPU, each of them is a whole warp: a group's rank and size count
 * host threads then. Whoever starts them defines and fills in hem_host_here.
 */
#ifndef HEM_DEVICE_GROUP_H
#define HEM_DEVICE_GROUP_H

#include <hem/device/word.h>
#include <hem/status.h>

typedef enum hem_scope {
    HEM_SCOPE_THREAD = 0,
    HEM_SCOPE_WARP,
    HEM_SCOPE_WARPS,
    HEM_SCOPE_BLOCK
} hem_scope;

#if defined(__CUDACC__)

typedef struct hem_group {
    hem_scope scope;
    uint32_t rank; /**< of this thread in the group */
    uint32_t size;
    uint32_t barrier; /**< the named barrier of several warps, 1 to 15 */
} hem_group;

/** The calling thread alone. */
HEM_DEV hem_group hem_thread(void) {
    hem_group group = {HEM_SCOPE_THREAD, 0, 1, 0};
    return group;
}

/** The calling warp, all 32 threads of it. */
HEM_DEV hem_group hem_warp(void) {
    hem_group group = {HEM_SCOPE_WARP, threadIdx.x % 32u, 32, 0};
    return group;
}

/** The calling block. Blocks are one-dimensional, a multiple of 32 threads. */
HEM_DEV hem_group hem_block(void) {
    hem_group group = {HEM_SCOPE_BLOCK, threadIdx.x, blockDim.x, 0};
    return group;
}

/**
 * `count` warps of the block from `first` on. `barrier`, 1 to 15, is their own: no other group that
 * is active at the same time uses it, and __syncthreads uses 0.
 */
HEM_DEV hem_group hem_warps(uint32_t first, uint32_t count, uint32_t barrier) {
    hem_group group = {HEM_SCOPE_WARPS, threadIdx.x - 32u * first, 32u * count, barrier};
    return group;
}

/** Which block of the grid this is, from 0 on. */
HEM_DEV uint32_t hem_block_index(void) {
    return blockIdx.x;
}

/** The blocks of the grid. */
HEM_DEV uint32_t hem_block_count(void) {
    return gridDim.x;
}

/** Which warp of the block this is, from 0 on. */
HEM_DEV uint32_t hem_warp_index(void) {
    return threadIdx.x / 32u;
}

/** The warps of the block. */
HEM_DEV uint32_t hem_warp_count(void) {
    return blockDim.x / 32u;
}

#if defined(HEM_DEV_TEST_DELAY)
/**
 * Tests only: now and then a warp, or some of its threads, stands still for up to 8 us.
 *
 * What ptxas 13.0 does not see in a function of its own, this must not do. 32 bits of a clock go through a
 * uniform register, of which a warp has one set: a thread that had left a loop in which others of its warp
 * still waited took the loop's bound from them here. And after __nanosleep the warp does not meet again where
 * the caller's barriers take it for granted.
 */
HEM_DEV_SLOW void hemd_test_delay(void) {
    const uint64_t begun = hemd_now_ns();
    uint64_t mixed = begun + ((uint64_t)blockIdx.x << 20 ^ threadIdx.x / 32u << 12);
    mixed = (mixed ^ mixed >> 29) * 0x9e3779b97f4a7c15u;
    const uint32_t dice = (uint32_t)(mixed >> 32);
    if (dice % 64u > 1 || (dice % 64u == 1 && (dice >> threadIdx.x % 32u & 1u) == 0))
        return;
    while (hemd_now_ns() - begun < dice >> 19)
        continue;
}
#else
HEM_DEV void hemd_test_delay(void) {
}
#endif

/** Wait for all threads of the group; what each did before is seen by all after. */
HEM_DEV void hem_group_sync(hem_group group) {
    hemd_test_delay();
    if (group.scope == HEM_SCOPE_BLOCK)
        __syncthreads();
    else if (group.scope == HEM_SCOPE_WARPS)
        asm volatile("barrier.sync %0, %1;" : : "r"(group.barrier), "r"(group.size) : "memory");
    else if (group.scope == HEM_SCOPE_WARP)
        __syncwarp();
    hemd_test_delay();
}

HEM_DEV bool hemd_group_any(hem_group group, bool mine) {
    if (group.scope == HEM_SCOPE_BLOCK)
        return __syncthreads_or(mine) != 0;
    if (group.scope == HEM_SCOPE_WARPS) {
        uint32_t any;
        asm volatile("{ .reg .pred p, q;\n\t"
                     "setp.ne.u32 p, %3, 0;\n\t"
                     "barrier.red.or.pred q, %1, %2, p;\n\t"
                     "selp.u32 %0, 1, 0, q; }"
                     : "=r"(any)
                     : "r"(group.barrier), "r"(group.size), "r"((uint32_t)mine)
                     : "memory");
        return any != 0;
    }
    if (group.scope == HEM_SCOPE_WARP) {
        __syncwarp();
        return __any_sync(0xffffffffu, mine) != 0;
    }
    return mine;
}

/** hem_group_sync that also says whether any thread passed true. */
HEM_DEV bool hem_group_any(hem_group group, bool mine) {
    hemd_test_delay();
    bool any = hemd_group_any(group, mine);
    hemd_test_delay();
    return any;
}

#else

/** A barrier among host threads. All zero before its first use. */
typedef struct hem_host_barrier {
    uint32_t arrived;
    uint32_t passed; /**< how often all were there */
    uint32_t any[2]; /**< what hem_group_any gathers, by turns */
} hem_host_barrier;

/** What the host threads of one block share: barrier 0 is the block's, the others are named. */
typedef struct hem_host_block {
    hem_host_barrier barriers[16];
} hem_host_block;

/** Where a host thread is in its grid. */
typedef struct hem_host_place {
    hem_host_block *block;
    uint32_t warp;
    uint32_t warps; /**< of the block */
    uint32_t index; /**< of the block */
    uint32_t blocks;
} hem_host_place;

extern __thread hem_host_place hem_host_here;

typedef struct hem_group {
    hem_scope scope;
    uint32_t rank;
    uint32_t size;
    hem_host_barrier *barrier; /**< NULL: a thread alone, or a warp */
} hem_group;

HEM_DEV hem_group hem_thread(void) {
    hem_group group = {HEM_SCOPE_THREAD, 0, 1, NULL};
    return group;
}

HEM_DEV hem_group hem_warp(void) {
    hem_group group = {HEM_SCOPE_WARP, 0, 1, NULL};
    return group;
}

HEM_DEV hem_group hem_block(void) {
    hem_group group = {HEM_SCOPE_BLOCK, hem_host_here.warp, hem_host_here.warps,
                       &hem_host_here.block->barriers[0]};
    return group;
}

HEM_DEV hem_group hem_warps(uint32_t first, uint32_t count, uint32_t barrier) {
    hem_group group = {HEM_SCOPE_WARPS, hem_host_here.warp - first, count,
                       &hem_host_here.block->barriers[barrier]};
    return group;
}

HEM_DEV uint32_t hem_block_index(void) {
    return hem_host_here.index;
}

HEM_DEV uint32_t hem_block_count(void) {
    return hem_host_here.blocks;
}

HEM_DEV uint32_t hem_warp_index(void) {
    return hem_host_here.warp;
}

HEM_DEV uint32_t hem_warp_count(void) {
    return hem_host_here.warps;
}

/** hem_group_sync that also says whether any thread passed true. */
HEM_DEV bool hem_group_any(hem_group group, bool mine) {
    if (group.barrier == NULL || group.size == 1)
        return mine;
    hem_host_barrier *barrier = group.barrier;
    uint32_t turn = __atomic_load_n(&barrier->passed, __ATOMIC_ACQUIRE);
    uint32_t *any = &barrier->any[turn % 2];
    if (mine)
        __atomic_store_n(any, 1u, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&barrier->arrived, 1u, __ATOMIC_ACQ_REL) == group.size) {
        /* Nobody looks at the other turn's answer any more: all have come to this one. */
        __atomic_store_n(&barrier->any[(turn + 1) % 2], 0u, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier->arrived, 0u, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier->passed, turn + 1, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&barrier->passed, __ATOMIC_ACQUIRE) == turn)
            hemd_relax();
    }
    return __atomic_load_n(any, __ATOMIC_RELAXED) != 0;
}

HEM_DEV void hem_group_sync(hem_group group) {
    (void)hem_group_any(group, false);
}

#endif

/** Give the lowest `bits` bits of the leader's number to the whole group. A barrier for each. */
HEM_DEV uint32_t hem_group_tell(hem_group group, uint32_t leaders, uint32_t bits) {
    uint32_t all = 0;
    for (uint32_t bit = 0; bit < bits; bit++)
        all |= (uint32_t)hem_group_any(group, group.rank == 0 && (leaders >> bit & 1u) != 0) << bit;
    return all;
}

/**
 * Give the leader's status to the whole group, and wait for it. What the leader has acquired is seen
 * by all. One barrier if it is good.
 */
HEM_DEV hem_status hem_group_agree(hem_group group, hem_status leaders) {
    if (!hem_group_any(group, group.rank == 0 && leaders != HEM_OK))
        return HEM_OK;
    return (hem_status)(-(int32_t)hem_group_tell(group, (uint32_t)-leaders, 5));
}

#endif
