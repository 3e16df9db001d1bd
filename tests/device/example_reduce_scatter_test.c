/*
 * The example kernel of a reduce-scatter: launched again and again without waiting for the stream in
 * between, so that only its own barriers keep one launch from the next; sums in rank order.
 *
 * hem-test: ranks=1,2,4,8 timeout=120 delayed=2,4
 */
#include "../../examples/cuda/reduce_scatter.cuh"
#include "example_kit.h"

enum {
    COUNT = 301,
    BLOCKS = 2,
    WARPS = 2,
    BATCH = 5
};

DEVICE_KERNEL(begin, reduce_scatter_args) {
    reduce_scatter_begin_kernel(args);
}

DEVICE_KERNEL(scatter, reduce_scatter_args) {
    reduce_scatter_kernel(args);
}

/* No two orders of adding these give the same. */
static double number(int rank, uint64_t i, int round) {
    return (double)(i + 1) / (double)(3 + rank) + (rank % 2 ? 1e9 : 1e-9) * (double)(round + 1);
}

static void look(const example *e, const double *device, int round) {
    double out[COUNT];
    device_copy(out, device, sizeof out);
    for (uint64_t i = 0; i < COUNT; i++) {
        double want = 0;
        for (int rank = 0; rank < e->ranks; rank++)
            want += number(rank, (uint64_t)e->rank * COUNT + i, round);
        CHECK(out[i] == want);
    }
}

static void fill(const example *e, double *device, int round) {
    const uint64_t all = (uint64_t)e->ranks * COUNT;
    double *numbers = (double *)malloc(all * sizeof *numbers);
    CHECK(numbers != NULL);
    for (uint64_t i = 0; i < all; i++)
        numbers[i] = number(e->rank, i, round);
    device_copy(device, numbers, all * sizeof *numbers);
    free(numbers);
}

static void run_batch(example *e, const reduce_scatter_args *args, double *const *mine,
                      double *const *out, int round) {
    for (int k = 0; k < BATCH; k++)
        fill(e, mine[k], round + k);
    for (int k = 0; k < BATCH; k++) {
        reduce_scatter_args one = *args;
        one.mine = mine[k];
        one.out = out[k];
        device_launch(scatter, e->stream, BLOCKS, WARPS, &one);
    }
    example_finish(e);
    for (int k = 0; k < BATCH; k++)
        look(e, out[k], round + k);
}

int rank_main(hem_world *world) {
    const size_t all = (size_t)hem_world_size(world) * COUNT * sizeof(double);
    const int rounds = harness_rounds(100);
    double *mine[BATCH], *out[BATCH];
    example e;
    reduce_scatter_args args;
    example_open(&e, world, all, REDUCE_SCATTER_BARRIERS * BLOCKS);
    for (int k = 0; k < BATCH; k++) {
        mine[k] = (double *)device_alloc(all);
        out[k] = (double *)device_alloc(COUNT * sizeof(double));
    }
    args.w = e.dev;
    args.scratch = 0;
    args.count = COUNT;
    args.mine = mine[0];
    args.out = out[0];
    args.failed = e.failed;
    example_ready(&e);
    device_launch(begin, e.stream, BLOCKS, WARPS, &args);
    for (int round = 0; round < rounds; round += BATCH) {
        harness_step("launches from", (uint64_t)round);
        run_batch(&e, &args, mine, out, round);
    }
    example_ready(&e);
    for (int k = 0; k < BATCH; k++) {
        device_free(mine[k]);
        device_free(out[k]);
    }
    example_close(&e, world);
    return 0;
}
