/*
 * A graph with several collectives, short and long ones, with one word for each thread and with several, in
 * place and not, is replayed a thousand times, ten thousand on a GPU, mixed with runs outside of it on the
 * same stream and runs that the host starts; each run takes what was there at that time.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=240
 */
#include "coll_kit.h"

#include <hem/device/word.h>

#define PLANS 7

/* One collective: what it takes changes from run to run, and the device checks what it leaves. */
typedef struct step_args {
    uint64_t *send;
    uint64_t *recv;
    uint64_t *step; /* runs so far, then how many words were wrong */
    uint64_t send_count;
    uint64_t recv_count;
    uint64_t factor; /* of word i: factor x step x (i + first + 1) */
    uint64_t own;    /* this rank's factor */
    uint64_t first;
    uint64_t
        block; /* not 0: recv consists of blocks of so many words, that of rank r with factor r + 1 */
} step_args;

DEVICE_KERNEL(coll_next, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->step[0] + 1;
    for (uint64_t i = block.rank; i < args->send_count; i += block.size)
        args->send[i] = step * args->own * (i + 1);
    hem_group_sync(block);
    if (block.rank == 0)
        args->step[0] = step;
}

DEVICE_KERNEL(coll_look, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->step[0];
    for (uint64_t i = block.rank; i < args->recv_count; i += block.size) {
        uint64_t factor = args->block != 0 ? i / args->block + 1 : args->factor;
        uint64_t at = args->block != 0 ? i % args->block + args->first : i + args->first;
        if (args->recv[i] != factor * step * (at + 1))
            hemd_add64_relaxed(args->step + 1, 1);
    }
}

typedef struct plan {
    step_args args;
    hem_op *op;
    uint64_t *memory;
} plan;

/* `blocks`: one makes it long on a GPU, too, or gives each thread several words. */
static plan make_plan(coll_kit *kit, hem_coll_kind kind, uint64_t count, bool in_place,
                      uint32_t blocks) {
    plan p;
    uint64_t size = (uint64_t)kit->size, rank = (uint64_t)kit->rank;
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
    CHECK_OK(hem_coll_plan(kit->world, &c, &p.op));
    return p;
}

static plan make_deep(coll_kit *kit, hem_coll_kind kind) {
    bool combines = kind == HEM_ALLREDUCE;
    plan p = make_plan(kit, kind, coll_form_deep_words(kit->size, 1, combines), false, 1);
    coll_form_check_deep(p.op, kit->size, combines);
    return p;
}

static void one_run(coll_kit *kit, plan *p, bool by_host) {
    device_launch(coll_next, kit->native, 1, device_wide_block(), &p->args);
    if (by_host) {
        device_stream_sync(kit->native);
        CHECK_OK(hem_op_start(p->op));
        CHECK_OK(hem_op_wait(p->op, LIMIT));
    } else {
        CHECK_OK(hem_op_start_on(p->op, kit->stream));
    }
    device_launch(coll_look, kit->native, 1, device_wide_block(), &p->args);
}

static void end_plan(plan *p, uint64_t steps) {
    uint64_t seen[2] = {0, 1};
    device_copy(seen, p->args.step, sizeof seen);
    CHECK_EQ(seen[0], steps);
    CHECK_EQ(seen[1], 0);
    CHECK_OK(hem_op_status(p->op));
    CHECK_OK(hem_op_free(p->op));
    device_free(p->memory);
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    plan plans[PLANS];
    plans[0] = make_plan(&kit, HEM_ALLREDUCE, 50, true, 0);
    plans[1] = make_plan(&kit, HEM_ALLREDUCE, 17000, false, 1);
    plans[2] = make_plan(&kit, HEM_ALLGATHER, 33, true, 0);
    plans[3] = make_plan(&kit, HEM_REDUCE_SCATTER, 700, true, 0);
    plans[4] = make_plan(&kit, HEM_ALLTOALL, 20, false, 0);
    plans[5] = make_deep(&kit, HEM_ALLREDUCE);
    plans[6] = make_deep(&kit, HEM_ALLTOALL);
    CHECK(coll_form_is_long(plans[1].op));
    uint64_t replays = device_replays(1000), steps = 0;

    device_capture_begin(kit.native);
    for (int i = 0; i < PLANS; i++)
        one_run(&kit, &plans[i], false);
    device_graph graph = device_capture_end(kit.native);
    for (uint64_t i = 0; i < replays; i++, steps++) {
        device_graph_launch(graph, kit.native);
        if (i % 20 == 19)
            device_stream_sync(kit.native); /* which has a time limit, for busy machines */
        if (i % 10 != 9)
            continue;
        for (int k = 0; k < PLANS; k++)
            one_run(&kit, &plans[k], i % 100 == 99);
        steps++;
    }
    /* Runs of one follow each other: a fast rank is a run ahead of a slow one. */
    uint64_t more = (uint64_t)harness_rounds(250);
    for (int i = 0; i < PLANS; i++) {
        for (uint64_t k = 0; k < more; k++)
            one_run(&kit, &plans[i], false);
        device_stream_sync(kit.native);
    }
    device_graph_destroy(graph);
    for (int i = 0; i < PLANS; i++)
        end_plan(&plans[i], steps + more);
    coll_kit_close(&kit);
    harness_close(world, HEM_OK);
    return 0;
}
