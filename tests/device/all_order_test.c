/*
 * Stream order is the contract, for all that is put on streams. One rank's stream is held, before work
 * that still reads what the last message, collective or exchange brought: the others have long started
 * the next one, but nothing is written before the reader is done, and the host of the held rank never
 * waits. Handles of streams and patterns, options and plans' descriptions may go as soon as the call has
 * returned.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "all_kit.h"

typedef struct read_args {
    hem_dev_window w;
    const uint64_t *from;
    uint64_t *to;
    uint64_t count;
    uint64_t turn; /* 0: not held */
} read_args;

/* A reader that is held by a signal of its own CPU. */
DEVICE_KERNEL(read_late, read_args) {
    hem_group block = hem_block();
    hem_status status = HEM_OK;
    if (args->turn > 0)
        status = hem_dev_wait_signal_from(args->w, block, args->w.rank, 7, HEM_GE, args->turn,
                                          HEM_FOREVER);
    for (uint64_t i = block.rank; i < args->count && status == HEM_OK; i += block.size)
        args->to[i] = args->from[i];
}

/* Where what came of a part is, and how many words of it. */
static uint64_t *place(all_kit *kit, int part) {
    return part == ALL_HALO ? kit->out[part] : kit->in[part];
}

static uint64_t count_of(int part, bool brief) {
    return part == ALL_HALO ? RING_CELLS + 2 : all_count(brief);
}

static void put_reader(all_kit *kit, int part, bool brief, uint64_t turn, uint64_t *to) {
    read_args args;
    args.w = window_kit_dev(kit->window);
    args.from = place(kit, part);
    args.to = to;
    args.count = count_of(part, brief);
    args.turn = turn;
    device_launch(read_late, kit->native[part], 1, 1, &args);
}

/* What was read is of step `step`. */
static void check_read(all_kit *kit, int part, bool brief, uint64_t step, const uint64_t *from) {
    uint64_t count = count_of(part, brief), size = (uint64_t)kit->size;
    uint64_t *got = (uint64_t *)malloc((size_t)count * 8);
    CHECK(got != NULL);
    device_copy(got, from, (size_t)count * 8);
    if (part == ALL_HALO) {
        CHECK_EQ(got[0], ((uint64_t)kit->left + 1) * step * RING_CELLS);
        CHECK_EQ(got[RING_CELLS + 1], ((uint64_t)kit->right + 1) * step);
    }
    uint64_t factor = part == ALL_PIPE ? (uint64_t)kit->left + 1 : size * (size + 1) / 2;
    for (uint64_t i = 0; part != ALL_HALO && i < count; i++)
        CHECK_EQ(got[i], factor * step * (i + 1));
    free(got);
}

/* The stream of `holder` is held, those of the others are not. */
static void one_turn(all_kit *kit, int part, bool brief, int holder, uint64_t *turn, uint64_t *step,
                     uint64_t *copy) {
    bool held = kit->rank == holder;
    all_step(kit, part, brief);
    if (held)
        ++*turn;
    put_reader(kit, part, brief, held ? *turn : 0, copy);
    all_step(kit, part, brief);
    all_step(kit, part, brief);
    *step += 3;
    if (held) {
        /* All of it is on the stream, and nothing of it has happened. The others come to wait. */
        harness_sleep_ms(3);
        CHECK(!device_stream_done(kit->native[part]));
        CHECK_OK(hem_signal(kit->window, kit->rank, 7, HEM_SIGNAL_SET, *turn));
    }
    device_stream_sync(kit->native[part]);
    check_read(kit, part, brief, *step - 2, copy);
}

static void check_held(all_kit *kit, uint64_t *copy) {
    uint64_t turn = 0;
    for (int part = ALL_PIPE; part < ALL_PARTS; part++) {
        uint64_t step = 0;
        for (int i = 0; i < harness_rounds(12); i++) {
            harness_step("part", (uint64_t)part);
            one_turn(kit, part, i % 3 != 0, i % kit->size, &turn, &step, copy);
        }
        CHECK_EQ(all_read(kit, part).wrong, 0);
        CHECK_EQ(all_status(kit, part), HEM_OK);
    }
}

/* Handles go while what was started with them waits. */
static void check_dropped(hem_world *world, uint64_t *copy) {
    all_kit kit = all_open(world, true);
    CHECK_OK(hem_pattern_destroy(kit.pattern));
    for (int part = ALL_PIPE; part < ALL_PARTS; part++) {
        hem_stream *handle = NULL;
        put_reader(&kit, part, true, 1, copy + (size_t)(part - ALL_PIPE) * ALL_SHORT);
        all_step(&kit, part, true);
        all_step(&kit, part, false);
        CHECK_OK(hem_stream_destroy(kit.stream[part]));
        CHECK_OK(hem_stream_cuda(world, kit.native[part], &handle));
        kit.stream[part] = handle;
        CHECK(!device_stream_done(kit.native[part]));
    }
    CHECK_OK(hem_signal(kit.window, kit.rank, 7, HEM_SIGNAL_SET, 1));
    all_step(&kit, ALL_WINDOW, true);
    all_step(&kit, ALL_WINDOW, true);
    all_check(&kit, 2);
    kit.pattern = NULL;
    all_close(&kit, HEM_OK);
}

int rank_main(hem_world *world) {
    all_kit kit = all_open(world, true);
    uint64_t *copy = (uint64_t *)device_alloc(ALL_LONG * 8);
    check_held(&kit, copy);
    /* They are used again: twice as many are more than a GPU has queues. */
    all_close_streams(&kit);
    check_dropped(world, copy);
    device_free(copy);
    all_close_parts(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
