/*
 * The example kernel that exchanges its own edges: a thousand steps in one launch, and more launches
 * behind it, against the ring computed in one piece; pieces of one cell; one and several warps.
 *
 * hem-test: ranks=1,2,4,8 timeout=180 delayed=2,4
 */
#include "../../examples/cuda/edges.cuh"
#include "example_kit.h"

enum {
    MOST = 70,
    BLOCKS = 2
};

DEVICE_KERNEL(steps, edges_args) {
    edges_kernel(args);
}

static uint64_t at_first(uint64_t cell) {
    return (cell + 1) * 0x9e3779b97f4a7c15u;
}

/* The whole ring in one piece. */
static uint64_t *compute(uint64_t cells, uint64_t count) {
    uint64_t *now = (uint64_t *)malloc(cells * sizeof *now);
    uint64_t *next = (uint64_t *)malloc(cells * sizeof *next);
    CHECK(now != NULL && next != NULL);
    for (uint64_t i = 0; i < cells; i++)
        now[i] = at_first(i);
    for (uint64_t step = 0; step < count; step++) {
        for (uint64_t i = 0; i < cells; i++)
            next[i] = now[(i + cells - 1) % cells] + 2 * now[i] + now[(i + 1) % cells];
        uint64_t *swap = now;
        now = next;
        next = swap;
    }
    free(next);
    return now;
}

/* `launches` of an even number of steps each. */
static void run_ring(example *e, edges_args *args, uint32_t warps, uint64_t launches) {
    const uint64_t here = args->count * BLOCKS, before = here * (uint64_t)e->rank;
    uint64_t mine[MOST * BLOCKS] = {0};
    uint64_t *want = compute(here * (uint64_t)e->ranks, launches * args->steps);
    for (uint64_t i = 0; i < here; i++)
        mine[i] = at_first(before + i);
    device_copy(args->cells[0], mine, here * sizeof *mine);
    for (uint64_t launch = 0; launch < launches; launch++)
        device_launch(steps, e->stream, BLOCKS, warps, args);
    example_finish(e);
    device_copy(mine, args->cells[0], here * sizeof *mine);
    for (uint64_t i = 0; i < here; i++)
        CHECK_EQ(mine[i], want[before + i]);
    free(want);
}

int rank_main(hem_world *world) {
    example e;
    edges_args args;
    example_open(&e, world, EDGES_BYTES * BLOCKS + 32, 1);
    args.w = e.dev;
    args.places = 32;
    args.cells[0] = (uint64_t *)device_alloc(MOST * BLOCKS * sizeof(uint64_t));
    args.cells[1] = (uint64_t *)device_alloc(MOST * BLOCKS * sizeof(uint64_t));
    args.ghosts = (uint64_t *)device_alloc(2 * BLOCKS * sizeof(uint64_t));
    args.done = (uint64_t *)device_alloc(BLOCKS * sizeof(uint64_t));
    args.failed = e.failed;
    example_ready(&e);
    harness_step("one launch", 1);
    args.count = MOST;
    args.steps = (uint64_t)harness_rounds(500) * 2;
    run_ring(&e, &args, 2, 1);
    harness_step("launches behind each other", 5);
    args.steps = 6;
    run_ring(&e, &args, 3, 5);
    harness_step("pieces of one cell, one warp", 10);
    args.count = 1;
    args.steps = 20;
    run_ring(&e, &args, 1, 10);
    example_ready(&e);
    device_free(args.cells[0]);
    device_free(args.cells[1]);
    device_free(args.ghosts);
    device_free(args.done);
    example_close(&e, world);
    return 0;
}
