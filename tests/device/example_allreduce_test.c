/*
 * The example kernel of an all-reduce: launches and replays of a graph mixed, many on the stream at
 * once, with lengths that leave ranks without a part; all ranks get the same bits.
 *
 * hem-test: ranks=1,2,4,8 timeout=120 delayed=2,4
 */
#include "../../examples/cuda/allreduce.cuh"
#include "example_kit.h"

enum {
    MOST = 503,
    BLOCKS = 2,
    WARPS = 2
};

DEVICE_KERNEL(reduce, allreduce_args) {
    allreduce_kernel(args);
}

/* No two orders of adding these give the same. */
static double number(int rank, uint64_t i, int round) {
    return (double)(i + 1) / (double)(3 + rank) + (rank % 2 ? 1e9 : 1e-9) * (double)(round + 1);
}

static void look(const example *e, const allreduce_args *args, int round) {
    double out[MOST];
    device_copy(out, args->out, args->count * sizeof *out);
    for (uint64_t i = 0; i < args->count; i++) {
        double want = 0;
        for (int rank = 0; rank < e->ranks; rank++)
            want += number(rank, i, round);
        CHECK(out[i] == want);
    }
}

static void fill(const example *e, double *mine, uint64_t count, int round) {
    double numbers[MOST];
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = number(e->rank, i, round);
    device_copy(mine, numbers, count * sizeof *mine);
}

static void run_rounds(example *e, const allreduce_args *args, double *mine, int rounds) {
    device_capture_begin(e->stream);
    device_launch(reduce, e->stream, BLOCKS, WARPS, args);
    device_graph graph = device_capture_end(e->stream);
    for (int round = 0; round < rounds; round++) {
        harness_step("a round", (uint64_t)round);
        fill(e, mine, args->count, round);
        /* Some more of the same, on top of each other. */
        for (int again = 0; again <= round % 3; again++)
            if ((round + again) % 2 == 0)
                device_launch(reduce, e->stream, BLOCKS, WARPS, args);
            else
                device_graph_launch(graph, e->stream);
        example_finish(e);
        look(e, args, round);
    }
    device_graph_destroy(graph);
}

int rank_main(hem_world *world) {
    static const uint64_t counts[] = {MOST, 3, 0, 64};
    example e;
    allreduce_args args;
    example_open(&e, world, 2 * MOST * sizeof(double), ALLREDUCE_BARRIERS * BLOCKS);
    double *mine = (double *)device_alloc(MOST * sizeof *mine);
    args.w = e.dev;
    args.scratch[0] = 0;
    args.scratch[1] = MOST * sizeof(double);
    args.mine = mine;
    args.out = (double *)device_alloc(MOST * sizeof *args.out);
    args.turns = (uint64_t *)device_alloc(BLOCKS * sizeof *args.turns);
    args.failed = e.failed;
    example_ready(&e);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        args.count = counts[k];
        run_rounds(&e, &args, mine, harness_rounds(30));
    }
    example_ready(&e);
    device_free(mine);
    device_free(args.out);
    device_free(args.turns);
    example_close(&e, world);
    return 0;
}
