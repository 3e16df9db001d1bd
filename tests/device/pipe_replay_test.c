/*
 * A graph with a short and a long message is replayed a thousand times, ten thousand on a GPU, mixed with
 * calls outside of it and with other blocks; each message brings what the sender had at that time.
 *
 * hem-test: ranks=2 timeout=180
 */
#include "pipe_kit.h"

#define WORDS 20000

typedef struct step_args {
    uint64_t *words;
    uint64_t *sums;
    uint64_t *step;
    uint64_t count;
} step_args;

/* The sender's numbers change from replay to replay. */
DEVICE_KERNEL(pipe_next, step_args) {
    hem_group block = hem_block();
    for (uint64_t i = block.rank; i < args->count; i += block.size)
        args->words[i] += i + 1;
}

/* One more has come: word i must be step x (i + 1). */
DEVICE_KERNEL(pipe_look, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->step[0] + 1;
    for (uint64_t i = block.rank; i < args->count; i += block.size)
        if (args->words[i] != step * (i + 1))
            hemd_add64_relaxed(args->sums, 1);
    hem_group_sync(block);
    if (block.rank == 0)
        args->step[0] = step;
}

/* What one step puts on the stream: `bytes` one way, and the same the other way. */
static void one_step(pipe_kit *kit, step_args *mine, step_args *theirs, const hem_pipe_how *how) {
    device_launch(pipe_next, kit->native, 1, device_wide_block(), mine);
    pipe_kit_call(kit, 1 - kit->rank, mine->words, mine->count * 8, 1 - kit->rank, theirs->words,
                  theirs->count * 8, how);
    device_launch(pipe_look, kit->native, 1, device_wide_block(), theirs);
}

static step_args make_args(uint64_t count) {
    step_args args;
    args.words = (uint64_t *)device_alloc((size_t)count * 8);
    args.sums = (uint64_t *)device_alloc(8);
    args.step = (uint64_t *)device_alloc(8);
    args.count = count;
    return args;
}

static void check_args(step_args *args, uint64_t steps) {
    uint64_t sum = 1, step = 0;
    device_copy(&sum, args->sums, 8);
    device_copy(&step, args->step, 8);
    CHECK_EQ(step, steps);
    CHECK_EQ(sum, 0);
    device_free(args->words);
    device_free(args->sums);
    device_free(args->step);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(2, 4096, 2, 4096);
    pipe_kit kit = pipe_kit_open(world, &options);
    step_args brief_out = make_args(100), brief_in = make_args(100);
    step_args bulk_out = make_args(WORDS), bulk_in = make_args(WORDS);
    hem_pipe_how few = pipe_kit_how(1, 1 + (uint32_t)kit.rank, 1, 0);
    hem_pipe_how many = pipe_kit_how(2, 2, 2, 1000);
    uint64_t replays = device_replays(1000), steps = 0;

    device_capture_begin(kit.native);
    one_step(&kit, &brief_out, &brief_in, &few);
    one_step(&kit, &bulk_out, &bulk_in, &many);
    device_graph graph = device_capture_end(kit.native);
    for (uint64_t i = 0; i < replays; i++, steps++) {
        device_graph_launch(graph, kit.native);
        if (i % 50 == 49)
            device_stream_sync(kit.native); /* the queues of a GPU are not for ever */
        if (i % 10 != 9)
            continue;
        one_step(&kit, &bulk_out, &bulk_in, &few);
        one_step(&kit, &brief_out, &brief_in, &many);
        steps++;
    }
    device_stream_sync(kit.native);
    CHECK_OK(hem_pipe_status(kit.pipe));
    check_args(&brief_in, steps);
    check_args(&bulk_in, steps);
    device_graph_destroy(graph);
    check_args(&brief_out, 0);
    check_args(&bulk_out, 0);
    pipe_kit_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
