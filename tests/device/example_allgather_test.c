/*
 * The example kernel of an all-gather: launched again and again, also in a graph, lengths that do not
 * divide well.
 *
 * hem-test: ranks=1,2,4,8 timeout=120 delayed=2,4
 */
#include "../../examples/cuda/allgather.cuh"
#include "example_kit.h"

enum {
    MOST = 701,
    BLOCKS = 2,
    WARPS = 2
};

DEVICE_KERNEL(gather, allgather_args) {
    allgather_kernel(args);
}

static int64_t number(int rank, uint64_t i, int round) {
    return rank * 100000 + (int64_t)i + (int64_t)round * 10000000;
}

static void look(const example *e, const allgather_args *args, int round) {
    size_t bytes = (size_t)e->ranks * args->count * sizeof(int64_t);
    int64_t *out = (int64_t *)malloc(bytes + 1);
    CHECK(out != NULL);
    device_copy(out, args->out, bytes);
    for (int rank = 0; rank < e->ranks; rank++)
        for (uint64_t i = 0; i < args->count; i++)
            CHECK_EQ(out[(uint64_t)rank * args->count + i], number(rank, i, round));
    free(out);
}

static void fill(const example *e, int64_t *mine, uint64_t count, int round) {
    int64_t numbers[MOST];
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = number(e->rank, i, round);
    device_copy(mine, numbers, count * sizeof *mine);
}

int rank_main(hem_world *world) {
    static const uint64_t counts[] = {MOST, 1, 0, 128};
    const int rounds = harness_rounds(30);
    example e;
    allgather_args args;
    example_open(&e, world, MOST * sizeof(int64_t), ALLGATHER_BARRIERS * BLOCKS);
    int64_t *mine = (int64_t *)device_alloc(MOST * sizeof *mine);
    args.w = e.dev;
    args.scratch = 0;
    args.mine = mine;
    args.out = (int64_t *)device_alloc((size_t)e.ranks * MOST * sizeof *args.out);
    args.failed = e.failed;
    example_ready(&e);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        args.count = counts[k];
        device_capture_begin(e.stream);
        device_launch(gather, e.stream, BLOCKS, WARPS, &args);
        device_graph graph = device_capture_end(e.stream);
        for (int round = 0; round < rounds; round++) {
            harness_step("a round", (uint64_t)round);
            fill(&e, mine, args.count, round);
            if (round % 2 == 0)
                device_launch(gather, e.stream, BLOCKS, WARPS, &args);
            else
                device_graph_launch(graph, e.stream);
            example_finish(&e);
            look(&e, &args, round);
        }
        device_graph_destroy(graph);
    }
    example_ready(&e);
    device_free(mine);
    device_free(args.out);
    example_close(&e, world);
    return 0;
}
