/*
 * Much in one piece: a put and a get by many blocks, a message through small slots and in small chunks,
 * both ways at once, the same into and out of a window, an all-reduce and an all-gather of 1 GiB on a GPU, at even and odd addresses; a few
 * MiB on the stand-in, which copies no faster than a core does. Every byte is checked by the device.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=180 delayed=2
 */
#include "huge_kit.h"

typedef struct slice_args {
    hem_dev_window w;
    unsigned char *data;
    uint64_t offset;
    uint64_t count;
    uint64_t *wrong;
    int32_t peer;
    int32_t gets;
} slice_args;

/* Each block takes a part, whose borders lie anywhere. */
DEVICE_KERNEL(slices, slice_args) {
    hem_group block = hem_block();
    const uint64_t n = hem_block_count(), b = hem_block_index();
    const uint64_t first = args->count / n * b,
                   end = b + 1 == n ? args->count : args->count / n * (b + 1);
    hem_status status = args->gets != 0
                            ? hem_dev_get(args->w, block, args->peer, args->offset + first,
                                          args->data + first, end - first)
                            : hem_dev_put(args->w, block, args->peer, args->offset + first,
                                          args->data + first, end - first);
    if (block.rank == 0 && status != HEM_OK)
        hemd_add64_relaxed(args->wrong, 1);
}

/* After all of the puts of the launch before, and until the other's have come. */
DEVICE_KERNEL(meet, slice_args) {
    hem_group block = hem_block();
    hem_status status = hem_dev_signal(args->w, block, args->peer, 0, HEM_SIGNAL_ADD, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(args->w, block, args->peer, 0, HEM_GE, args->count,
                                          HEM_FOREVER);
    if (block.rank == 0 && status != HEM_OK)
        hemd_add64_relaxed(args->wrong, 1000);
}

static void run_slices(huge *t, hem_window *window, unsigned char *data, uint64_t odd, bool gets) {
    slice_args args;
    args.w = window_kit_dev(window);
    args.data = data;
    args.offset = odd;
    args.count = t->bytes;
    args.wrong = t->wrong;
    args.peer = t->other;
    args.gets = gets;
    device_launch(slices, t->stream, device_stands_in() ? 3 : 48, device_stands_in() ? 1 : 16,
                  &args);
}

static void run_meet(huge *t, hem_window *window, uint64_t turn) {
    slice_args args;
    memset(&args, 0, sizeof args);
    args.w = window_kit_dev(window);
    args.count = turn;
    args.wrong = t->wrong;
    args.peer = t->other;
    device_launch(meet, t->stream, 1, 1, &args);
}

static void check_window(huge *t) {
    hem_window_options o = window_kit_options((size_t)t->bytes + 16);
    hem_window *window = window_kit_create(t->world, &o);
    unsigned char *own = (unsigned char *)hem_window_memory(window);
    uint64_t turn = 0;
    for (uint64_t odd = 0; odd < 14; odd += 13) {
        uint64_t tag = 10 + odd * 4;
        huge_run(t, t->from + odd / 2, t->bytes, tag + (uint64_t)t->rank, false);
        run_slices(t, window, t->from + odd / 2, odd, false);
        run_meet(t, window, ++turn);
        huge_expect(t, own + odd, t->bytes, tag + (uint64_t)t->other, "put");
        run_meet(t, window, ++turn);
        run_slices(t, window, t->to + odd, odd, true);
        huge_expect(t, t->to + odd, t->bytes, tag + (uint64_t)t->rank, "get");
        run_meet(t, window, ++turn);
        device_stream_sync(t->stream);
    }
    CHECK_OK(hem_window_destroy(window));
}

/* Both ways at once, in chunks that are as small as it gets or as the library chooses them. */
static void check_pipe(huge *t) {
    hem_pipe_options o = pipe_kit_options(device_stands_in() ? 1 : 16, 1024, 2, 0);
    pipe_kit kit;
    memset(&kit, 0, sizeof kit);
    kit.stream = t->handle;
    kit.native = t->stream;
    CHECK_OK(hem_pipe_create(t->world, &o, &kit.pipe));
    for (uint64_t odd = 0; odd < 3; odd++) {
        hem_pipe_how how = pipe_kit_how(0, odd == 1 ? 2 : 0, odd == 1 ? 2 : 0, odd == 2 ? 0 : 256);
        uint64_t tag = 100 + odd * 4;
        huge_run(t, t->from + odd, t->bytes, tag + (uint64_t)t->rank, false);
        pipe_kit_call(&kit, t->other, t->from + odd, (size_t)t->bytes, t->other, t->to + 5 * odd,
                      (size_t)t->bytes, &how);
        huge_expect(t, t->to + 5 * odd, t->bytes, tag + (uint64_t)t->other, "message");
        CHECK_OK(hem_pipe_status(kit.pipe));
    }
    CHECK_OK(hem_pipe_destroy(kit.pipe));
}

/* Copied once: by both sides, by the sender, by the receiver; in the smallest chunks, odd to each other. */
static void check_straight(huge *t) {
    const size_t room = (size_t)(t->bytes + 255) / 128 * 128;
    hem_window_options w = window_kit_options(2 * room);
    hem_window *window = window_kit_create(t->world, &w);
    unsigned char *inside = (unsigned char *)hem_window_memory(window);
    hem_pipe_options o = pipe_kit_options(device_stands_in() ? 1 : 16, 1024, 2, 0);
    pipe_kit kit;
    o.window = window;
    memset(&kit, 0, sizeof kit);
    kit.stream = t->handle;
    kit.native = t->stream;
    CHECK_OK(hem_pipe_create(t->world, &o, &kit.pipe));
    for (uint64_t i = 0; i < 4; i++) {
        hem_pipe_how how = pipe_kit_how(0, i == 1 ? 2 : 0, i == 1 ? 2 : 0, i == 3 ? 0 : 128);
        unsigned char *from = (i == 1 ? t->from : inside) + i;
        unsigned char *to = (i == 2 ? t->to : inside + room) + 5 * i;
        uint64_t tag = 150 + i * 4;
        huge_run(t, from, t->bytes, tag + (uint64_t)t->rank, false);
        pipe_kit_call(&kit, t->other, from, (size_t)t->bytes, t->other, to, (size_t)t->bytes, &how);
        huge_expect(t, to, t->bytes, tag + (uint64_t)t->other, "straight message");
        CHECK_OK(hem_pipe_status(kit.pipe));
    }
    CHECK_OK(hem_pipe_destroy(kit.pipe));
    CHECK_OK(hem_window_destroy(window));
}

/* An all-gather of halves; then what rank 0 has is combined with the zeros of rank 1. */
static void check_colls(huge *t) {
    const uint64_t half = t->bytes / 2 - 3;
    huge_run(t, t->from + 3, half, 200 + (uint64_t)t->rank, false);
    huge_coll(t, HEM_ALLGATHER, HEM_U8, (hem_reduction)0, t->from + 3, t->to + 1, (size_t)half);
    huge_expect(t, t->to + 1, half, 200, "block of rank 0");
    huge_expect(t, t->to + 1 + half, half, 201, "block of rank 1");
    huge_run(t, t->from, t->bytes, t->rank == 0 ? 300 : 0, false);
    huge_coll(t, HEM_ALLREDUCE, HEM_U8, HEM_BXOR, t->from, t->to, (size_t)t->bytes);
    huge_expect(t, t->to, t->bytes, 300, "all-reduce");
}

int rank_main(hem_world *world) {
    huge t = huge_open(world, 1ull << 30);
    harness_step("window", 0);
    check_window(&t);
    harness_step("pipe", 0);
    check_pipe(&t);
    harness_step("straight", 0);
    check_straight(&t);
    harness_step("collectives", 0);
    check_colls(&t);
    huge_close(&t);
    harness_close(world, HEM_OK);
    return 0;
}
