/*
 * A graph with several collectives, short and long ones, with one word for each thread and with several, in
 * place and not, is replayed a thousand times, ten thousand on a GPU, mixed with runs outside of it on the
 * same stream and runs that the host starts; each run takes what was there at that time.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=240
 */
#include "coll_steps.h"

#define PLANS 7

static step_plan make_deep(coll_kit *kit, hem_coll_kind kind) {
    bool combines = kind == HEM_ALLREDUCE;
    uint64_t count = coll_form_deep_words(kit->size, 1, combines);
    step_plan p = step_plan_make(kit->world, kind, count, false, 1);
    coll_form_check_deep(p.op, kit->size, combines);
    return p;
}

static void one_run(coll_kit *kit, step_plan *p, bool by_host) {
    if (!by_host) {
        step_plan_run(p, kit->native, kit->stream);
        return;
    }
    device_launch(coll_next, kit->native, 1, device_wide_block(), &p->args);
    device_stream_sync(kit->native);
    CHECK_OK(hem_op_start(p->op));
    CHECK_OK(hem_op_wait(p->op, LIMIT));
    device_launch(coll_look, kit->native, 1, device_wide_block(), &p->args);
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    step_plan plans[PLANS];
    plans[0] = step_plan_make(world, HEM_ALLREDUCE, 50, true, 0);
    plans[1] = step_plan_make(world, HEM_ALLREDUCE, 17000, false, 1);
    plans[2] = step_plan_make(world, HEM_ALLGATHER, 33, true, 0);
    plans[3] = step_plan_make(world, HEM_REDUCE_SCATTER, 700, true, 0);
    plans[4] = step_plan_make(world, HEM_ALLTOALL, 20, false, 0);
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
        step_plan_end(&plans[i], steps + more);
    coll_kit_close(&kit);
    harness_close(world, HEM_OK);
    return 0;
}
