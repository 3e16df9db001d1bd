/*
 * A graph with a short and a long message is replayed many times, ten thousand on a GPU, mixed with calls
 * outside of it and with other blocks. The long one lies inside of the window on both sides, on one, or on
 * none. Kernels change what is sent right before each send and right after it, and look at what has come
 * right after each receive: each message brings what the sender had at that time.
 *
 * hem-test: ranks=2 timeout=180
 */
#include "pipe_straight_kit.h"

#define WORDS 20000
#define ROOM  ((size_t)WORDS * 8 + 4096)

typedef struct step_args {
    uint64_t *words;
    uint64_t *state; /* errors, steps */
    uint64_t count;
    uint64_t keeps; /* not 0: what was sent is spoilt, else it is made again */
} step_args;

/* The sender's numbers change from replay to replay, and are no good between two sends. */
DEVICE_KERNEL(straight_next, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->state[1] + 1;
    for (uint64_t i = block.rank; i < args->count; i += block.size)
        args->words[i] = args->keeps != 0 ? 0 : step * (i + 1);
    hem_group_sync(block);
    if (block.rank == 0 && args->keeps != 0)
        args->state[1] = step;
}

/* One more has come: word i must be step x (i + 1). It is spoilt, too. */
DEVICE_KERNEL(straight_look, step_args) {
    hem_group block = hem_block();
    uint64_t step = args->state[1] + 1;
    for (uint64_t i = block.rank; i < args->count; i += block.size) {
        if (args->words[i] != step * (i + 1))
            hemd_add64_relaxed(args->state, 1);
        args->words[i] = 0;
    }
    hem_group_sync(block);
    if (block.rank == 0)
        args->state[1] = step;
}

static void one_step(straight_kit *it, step_args *out, step_args *in, const hem_pipe_how *how) {
    pipe_kit *kit = &it->kit;
    step_args spoil = *out;
    spoil.keeps = 1;
    device_launch(straight_next, kit->native, 1, device_wide_block(), out);
    pipe_kit_call(kit, 1 - kit->rank, out->words, out->count * 8, 1 - kit->rank, in->words,
                  in->count * 8, how);
    device_launch(straight_next, kit->native, 1, device_wide_block(), &spoil);
    device_launch(straight_look, kit->native, 1, device_wide_block(), in);
}

static step_args make_args(const straight_kit *it, enum straight_where where, bool receives,
                           uint64_t count, size_t at) {
    step_args args;
    args.words = (uint64_t *)(void *)(straight_place(it, where, receives, 0, 0) + at);
    args.state = (uint64_t *)device_alloc(16);
    args.count = count;
    args.keeps = 0;
    return args;
}

static void check_args(step_args *args, uint64_t steps) {
    uint64_t state[2] = {1, 0};
    device_copy(state, args->state, 16);
    CHECK_EQ(state[0], 0);
    CHECK_EQ(state[1], steps);
    device_free(args->state);
}

static void replay(straight_kit *it, enum straight_where send, enum straight_where recv,
                   uint64_t replays) {
    step_args brief_out = make_args(it, send, false, 100, ROOM - 2048);
    step_args brief_in = make_args(it, recv, true, 100, ROOM - 2048);
    step_args bulk_out = make_args(it, send, false, WORDS, 0);
    step_args bulk_in = make_args(it, recv, true, WORDS, 0);
    hem_pipe_how few = pipe_kit_how(1, 1 + (uint32_t)it->kit.rank, 1, 0);
    hem_pipe_how many = pipe_kit_how(2, 2, 2, 1000);
    uint64_t steps = 0;

    device_capture_begin(it->kit.native);
    one_step(it, &brief_out, &brief_in, &few);
    one_step(it, &bulk_out, &bulk_in, &many);
    device_graph graph = device_capture_end(it->kit.native);
    for (uint64_t i = 0; i < replays; i++, steps++) {
        device_graph_launch(graph, it->kit.native);
        if (i % 20 == 19)
            device_stream_sync(it->kit.native); /* which has a time limit, for busy machines */
        if (i % 10 != 9)
            continue;
        one_step(it, &bulk_out, &bulk_in, &few);
        one_step(it, &brief_out, &brief_in, &many);
        steps++;
    }
    device_stream_sync(it->kit.native);
    CHECK_OK(hem_pipe_status(it->kit.pipe));
    device_graph_destroy(graph);
    check_args(&brief_in, steps);
    check_args(&bulk_in, steps);
    check_args(&brief_out, steps);
    check_args(&bulk_out, steps);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(2, 4096, 2, 4096);
    straight_kit it = straight_open_in(world, &options, ROOM + 64, false);
    uint64_t replays = device_replays(800) / 4; /* of each of four */
    for (int send = 0; send <= STRAIGHT_OUTSIDE; send++)
        for (int recv = 0; recv <= STRAIGHT_OUTSIDE; recv++) {
            /* The ranks differ: what is inside for one direction is not for the other. */
            bool swap = it.kit.rank == 1;
            harness_step("places", (uint64_t)(2 * send + recv));
            replay(&it, (enum straight_where)(swap ? recv : send),
                   (enum straight_where)(swap ? send : recv), replays);
        }
    straight_close(&it, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
