/*
 * Much in one piece: a put and a get by many blocks, a message through small slots and in small chunks,
 * both ways at once, an all-reduce and an all-gather of 1 GiB on a GPU, at even and odd addresses; a few
 * MiB on the stand-in, which copies no faster than a core does. Every byte is checked by the device.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=180 delayed=2
 */
#include "pipe_kit.h"
#include "window_kit.h"

#include <hem/coll.h>

typedef struct test {
    hem_world *world;
    device_stream stream;
    hem_stream *handle;
    uint64_t *wrong;
    unsigned char *from;
    unsigned char *to;
    uint64_t bytes;
    int rank;
    int other;
} test;

typedef struct bytes_args {
    unsigned char *bytes;
    uint64_t count;
    uint64_t tag;
    uint64_t *wrong; /* NULL: write them */
} bytes_args;

/* Tag 0 is nothing but zeros. */
HEM_DEV unsigned char byte_of(uint64_t tag, uint64_t i) {
    return tag == 0
               ? 0
               : (unsigned char)((i * 0x9e3779b97f4a7c15ull + tag * 0xbf58476d1ce4e5b9ull) >> 56);
}

DEVICE_KERNEL(all_bytes, bytes_args) {
    const uint64_t step = (uint64_t)hem_block().size * hem_block_count();
    uint64_t wrong = 0;
    for (uint64_t i = hem_block_index() * (uint64_t)hem_block().size + hem_block().rank;
         i < args->count; i += step) {
        if (args->wrong == NULL)
            args->bytes[i] = byte_of(args->tag, i);
        else
            wrong += args->bytes[i] != byte_of(args->tag, i);
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

static void run_bytes(test *t, unsigned char *bytes, uint64_t count, uint64_t tag, bool check) {
    bytes_args args;
    args.bytes = bytes;
    args.count = count;
    args.tag = tag;
    args.wrong = check ? t->wrong : NULL;
    device_launch(all_bytes, t->stream, device_stands_in() ? 2 : 64, device_stands_in() ? 1 : 8,
                  &args);
}

static void expect(test *t, unsigned char *bytes, uint64_t count, uint64_t tag, const char *what) {
    uint64_t wrong = 1;
    run_bytes(t, bytes, count, tag, true);
    device_stream_sync(t->stream);
    device_copy(&wrong, t->wrong, sizeof wrong);
    if (wrong != 0)
        harness_fail(__FILE__, __LINE__, "%s: %llu bytes are wrong", what,
                     (unsigned long long)wrong);
}

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

static void run_slices(test *t, hem_window *window, unsigned char *data, uint64_t odd, bool gets) {
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

static void run_meet(test *t, hem_window *window, uint64_t turn) {
    slice_args args;
    memset(&args, 0, sizeof args);
    args.w = window_kit_dev(window);
    args.count = turn;
    args.wrong = t->wrong;
    args.peer = t->other;
    device_launch(meet, t->stream, 1, 1, &args);
}

static void check_window(test *t) {
    hem_window_options o = window_kit_options((size_t)t->bytes + 16);
    hem_window *window = window_kit_create(t->world, &o);
    unsigned char *own = (unsigned char *)hem_window_memory(window);
    uint64_t turn = 0;
    for (uint64_t odd = 0; odd < 14; odd += 13) {
        uint64_t tag = 10 + odd * 4;
        run_bytes(t, t->from + odd / 2, t->bytes, tag + (uint64_t)t->rank, false);
        run_slices(t, window, t->from + odd / 2, odd, false);
        run_meet(t, window, ++turn);
        expect(t, own + odd, t->bytes, tag + (uint64_t)t->other, "put");
        run_meet(t, window, ++turn);
        run_slices(t, window, t->to + odd, odd, true);
        expect(t, t->to + odd, t->bytes, tag + (uint64_t)t->rank, "get");
        run_meet(t, window, ++turn);
        device_stream_sync(t->stream);
    }
    CHECK_OK(hem_window_destroy(window));
}

/* Both ways at once, in chunks that are as small as it gets or as the library chooses them. */
static void check_pipe(test *t) {
    hem_pipe_options o = pipe_kit_options(device_stands_in() ? 1 : 16, 1024, 2, 0);
    pipe_kit kit;
    memset(&kit, 0, sizeof kit);
    kit.stream = t->handle;
    kit.native = t->stream;
    CHECK_OK(hem_pipe_create(t->world, &o, &kit.pipe));
    for (uint64_t odd = 0; odd < 3; odd++) {
        hem_pipe_how how = pipe_kit_how(0, odd == 1 ? 2 : 0, odd == 1 ? 2 : 0, odd == 2 ? 0 : 256);
        uint64_t tag = 100 + odd * 4;
        run_bytes(t, t->from + odd, t->bytes, tag + (uint64_t)t->rank, false);
        pipe_kit_call(&kit, t->other, t->from + odd, (size_t)t->bytes, t->other, t->to + 5 * odd,
                      (size_t)t->bytes, &how);
        expect(t, t->to + 5 * odd, t->bytes, tag + (uint64_t)t->other, "message");
        CHECK_OK(hem_pipe_status(kit.pipe));
    }
    CHECK_OK(hem_pipe_destroy(kit.pipe));
}

static void run_coll(test *t, hem_coll_kind kind, void *send, void *recv, size_t count) {
    hem_coll c;
    hem_op *op = NULL;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = kind;
    c.dtype = HEM_U8;
    c.op = kind == HEM_ALLREDUCE ? HEM_BXOR : (hem_reduction)0;
    c.send = send;
    c.recv = recv;
    c.count = count;
    CHECK_OK(hem_coll_plan(t->world, &c, &op));
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_op_start_on(op, t->handle));
    device_stream_sync(t->stream);
    CHECK_OK(hem_op_status(op));
    CHECK_OK(hem_op_free(op));
}

/* An all-gather of halves; then what rank 0 has is combined with the zeros of rank 1. */
static void check_colls(test *t) {
    const uint64_t half = t->bytes / 2 - 3;
    run_bytes(t, t->from + 3, half, 200 + (uint64_t)t->rank, false);
    run_coll(t, HEM_ALLGATHER, t->from + 3, t->to + 1, (size_t)half);
    expect(t, t->to + 1, half, 200, "block of rank 0");
    expect(t, t->to + 1 + half, half, 201, "block of rank 1");
    run_bytes(t, t->from, t->bytes, t->rank == 0 ? 300 : 0, false);
    run_coll(t, HEM_ALLREDUCE, t->from, t->to, (size_t)t->bytes);
    expect(t, t->to, t->bytes, 300, "all-reduce");
}

int rank_main(hem_world *world) {
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.other = 1 - t.rank;
    t.bytes =
        device_stands_in() ? (harness_sanitized() ? 300001 : 3 * 1024 * 1024 + 7) : 1ull << 30;
    t.stream = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, t.stream, &t.handle));
    t.wrong = (uint64_t *)device_alloc(8);
    t.from = (unsigned char *)device_alloc((size_t)t.bytes + 64);
    t.to = (unsigned char *)device_alloc((size_t)t.bytes + 64);
    harness_step("window", 0);
    check_window(&t);
    harness_step("pipe", 0);
    check_pipe(&t);
    harness_step("collectives", 0);
    check_colls(&t);
    CHECK_OK(hem_stream_destroy(t.handle));
    device_stream_destroy(t.stream);
    device_free(t.from);
    device_free(t.to);
    device_free(t.wrong);
    harness_close(world, HEM_OK);
    return 0;
}
