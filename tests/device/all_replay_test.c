/*
 * Graphs with a step of a window, of a pipe, of an exchange and of collectives are replayed ten thousand
 * times on a GPU (less often on the stand-in), in turns and mixed with runs outside of them, on the
 * stream and by the host. In one graph all is on one stream, in the other each has its own. Every step
 * has what its peers had at that step. What an exchange has brought goes back to its owners and is added
 * there, of both sides in one graph and of one in the other, where the way of the exchange can do that.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=240
 */
#include "all_kit.h"

#define ROUND 20 /* replays without looking at the stream: the queues of a GPU are not for ever */

#define HAS_BACK (TWIN_WAY != HEM_EXCHANGE_ENGINES)

typedef struct back_args {
    all_state *state;
    uint64_t *field;
    uint64_t own;
    uint64_t first; /* how often the first point is there now */
} back_args;

/* The last point has come back from the right, the first one from the left if that was asked for. */
DEVICE_KERNEL(look_back, back_args) {
    uint64_t unit = args->own * args->state->step;
    if (hem_block().rank != 0)
        return;
    uint64_t wrong = args->field[1] != args->first * unit;
    wrong += args->field[2] != 2 * unit;
    wrong += args->field[RING_CELLS] != 2 * unit * RING_CELLS;
    if (wrong != 0)
        hemd_add64_relaxed(&args->state->wrong, wrong);
}

/* Both sides, or what is in the halos of the low side alone. */
static hem_exchange_how how_back(bool both) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = HEM_COMBINE_SUM;
    how.sides = both ? 0 : HEM_SIDE_LOW(0);
    return how;
}

/* Behind a step forward. */
static void step_back(all_kit *kit, bool both) {
    hem_exchange_how how = how_back(both);
    back_args args;
    args.state = kit->state + ALL_HALO;
    args.field = kit->out[ALL_HALO];
    args.own = (uint64_t)kit->rank + 1;
    args.first = both ? 2 : 1;
    CHECK_OK(hem_exchange_start_on(kit->exchange, &how, kit->stream[ALL_HALO]));
    CHECK_OK(hem_exchange_finish_on(kit->exchange, kit->stream[ALL_HALO]));
    device_launch(look_back, kit->native[ALL_HALO], 1, 1, &args);
}

static void step_all(all_kit *kit, bool brief) {
    for (int part = 0; part < ALL_PARTS; part++) {
        all_step(kit, part, brief);
        if (part == ALL_HALO && HAS_BACK)
            step_back(kit, brief);
    }
}

/* The first run with a `how` makes its tables, which a capture cannot. */
static void prepare(all_kit *kit) {
    for (int both = 0; both < 2 && HAS_BACK; both++) {
        hem_exchange_how how = how_back(both != 0);
        CHECK_OK(hem_exchange_prepare(kit->exchange, &how));
    }
}

static device_graph capture(all_kit *kit, bool brief) {
    device_capture_begin(kit->native[0]);
    for (int part = 1; part < ALL_PARTS; part++)
        if (kit->native[part] != kit->native[0])
            device_stream_order(kit->native[0], kit->native[part]);
    step_all(kit, brief);
    for (int part = 1; part < ALL_PARTS; part++)
        if (kit->native[part] != kit->native[0])
            device_stream_order(kit->native[part], kit->native[0]);
    return device_capture_end(kit->native[0]);
}

static void one_round(all_kit *kit, device_graph *graphs, harness_rng *rng) {
    for (int i = 0; i < ROUND; i++)
        device_graph_launch(graphs[harness_below(rng, 8) != 0], kit->native[0]);
    for (int part = 0; part < ALL_PARTS; part++)
        device_stream_sync(kit->native[part]);
    step_all(kit, true);
    step_all(kit, false);
    for (int part = 0; part < ALL_PARTS; part++)
        device_stream_sync(kit->native[part]);
    all_step_by_host(kit, ALL_HALO, true);
    all_step_by_host(kit, ALL_COLL, harness_below(rng, 2) != 0);
    all_step(kit, ALL_WINDOW, true);
    all_step(kit, ALL_PIPE, true);
    for (int part = 0; part < ALL_PARTS; part++)
        device_stream_sync(kit->native[part]);
}

static void replay(hem_world *world, harness_rng rng, bool streams, int replays) {
    all_kit kit = all_open(world, streams);
    prepare(&kit);
    device_graph graphs[2] = {capture(&kit, false), capture(&kit, true)};
    int rounds = (replays + ROUND - 1) / ROUND;
    for (int i = 0; i < rounds; i++) {
        harness_step("round", (uint64_t)i);
        one_round(&kit, graphs, &rng);
    }
    all_check(&kit, (uint64_t)rounds * (ROUND + 3));
    device_graph_destroy(graphs[0]);
    device_graph_destroy(graphs[1]);
    all_close(&kit, HEM_OK);
}

int rank_main(hem_world *world) {
    harness_rng rng = harness_rng_of(harness_seed(world), 1, 2);
    int replays = (int)device_replays(300);
    replay(world, rng, false, replays);
    /* The branches of a graph take queues of the GPU that nobody can choose: where ranks are threads of
     * one process, two of them may come to wait for each other in one queue. */
    if (device_stands_in() || !harness_threads())
        replay(world, rng, true, replays / 4);
    harness_close(world, HEM_OK);
    return 0;
}
