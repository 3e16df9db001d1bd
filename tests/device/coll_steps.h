/*
 * Collectives of words whose numbers depend on how often they have run, for tests that let them run on and on:
 * what a run takes is made by the device just before it, or by the host, and what it leaves is checked behind it,
 * so that a run that took the data of an earlier or a later one is seen.
 */
#ifndef HEM_TESTS_DEVICE_COLL_STEPS_H
#define HEM_TESTS_DEVICE_COLL_STEPS_H

#include "coll_kit.h"

#include <hem/device/word.h>

/** One collective: what it takes changes from run to run, and the device checks what it leaves. */
typedef struct step_args {
    uint64_t *send;
    uint64_t *recv;
    uint64_t *step; /**< runs so far, then how many words were wrong */
    uint64_t send_count;
    uint64_t recv_count;
    uint64_t factor; /**< of word i: factor x step x (i + first + 1) */
    uint64_t own;    /**< this rank's factor */
    uint64_t first;
    /** Not 0: recv consists of blocks of so many words, that of rank r with factor r + 1. */
    uint64_t block;
} step_args;

/** What `send` has at word i in a run. */
DEVICE_BOTH uint64_t step_sent(const step_args *args, uint64_t step, uint64_t i) {
    return step * args->own * (i + 1);
}

/** What `recv` has at word i after it. */
DEVICE_BOTH uint64_t step_wanted(const step_args *args, uint64_t step, uint64_t i) {
    uint64_t factor = args->block != 0 ? i / args->block + 1 : args->factor;
    uint64_t at = args->block != 0 ? i % args->block + args->first : i + args->first;
    return factor * step * (at + 1);
}

DEVICE_KERNEL(coll_next, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->step[0] + 1;
    for (uint64_t i = block.rank; i < args->send_count; i += block.size)
        args->send[i] = step_sent(args, step, i);
    hem_group_sync(block);
    if (block.rank == 0)
        args->step[0] = step;
}

DEVICE_KERNEL(coll_look, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->step[0];
    for (uint64_t i = block.rank; i < args->recv_count; i += block.size)
        if (args->recv[i] != step_wanted(args, step, i))
            hemd_add64_relaxed(args->step + 1, 1);
}

typedef struct step_plan {
    step_args args;
    hem_op *op;
    uint64_t *memory;
} step_plan;

/** `blocks`: one makes it long on a GPU, too, or gives each thread several words. Collective. */
static inline step_plan step_plan_make(hem_world *world, hem_coll_kind kind, uint64_t count,
                                       bool in_place, uint32_t blocks) {
    step_plan p;
    uint64_t size = (uint64_t)hem_world_size(world), rank = (uint64_t)hem_world_rank(world);
    hem_coll c;
    memset(&p, 0, sizeof p);
    memset(&c, 0, sizeof c);
    bool gathers = kind == HEM_ALLGATHER, all = kind == HEM_ALLREDUCE;
    p.memory = (uint64_t *)device_alloc((size_t)(2 * size * count + 16) * 8);
    p.args.step = p.memory;
    p.args.send = p.memory + 16;
    p.args.recv = in_place ? p.args.send : p.args.send + size * count;
    p.args.send_count = gathers || all ? count : size * count;
    p.args.recv_count = gathers || kind == HEM_ALLTOALL ? size * count : count;
    p.args.own = rank + 1;
    p.args.factor = size * (size + 1) / 2;
    p.args.first = gathers || all ? 0 : rank * count;
    p.args.block = gathers || kind == HEM_ALLTOALL ? count : 0;
    if (gathers && in_place)
        p.args.send = p.args.recv + rank * count;
    c.struct_size = sizeof c;
    c.kind = kind;
    c.dtype = HEM_U64;
    c.op = kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ? HEM_SUM : (hem_reduction)0;
    c.send = p.args.send;
    c.recv = p.args.recv;
    c.count = (size_t)count;
    c.blocks = blocks;
    CHECK_OK(hem_coll_plan(world, &c, &p.op));
    return p;
}

/** A run on a stream: `native`, of which `stream` is the handle. */
static inline void step_plan_run(step_plan *p, device_stream native, hem_stream *stream) {
    device_launch(coll_next, native, 1, device_wide_block(), &p->args);
    CHECK_OK(hem_op_start_on(p->op, stream));
    device_launch(coll_look, native, 1, device_wide_block(), &p->args);
}

/** There were so many runs, and none was wrong. Collective. */
static inline void step_plan_end(step_plan *p, uint64_t steps) {
    uint64_t seen[2] = {0, 1};
    device_copy(seen, p->args.step, sizeof seen);
    CHECK_EQ(seen[0], steps);
    CHECK_EQ(seen[1], 0);
    CHECK_OK(hem_op_status(p->op));
    CHECK_OK(hem_op_free(p->op));
    device_free(p->memory);
}

#endif
