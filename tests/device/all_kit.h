/*
 * Everything that a rank may have on a device at a time: a window, a pipe, an exchange and collectives,
 * in a ring of ranks, each with a stream of its own. A step of one of them moves numbers that depend on
 * how many steps there were, and the device itself checks what comes: a step that took the data of an
 * earlier or a later one, or of another rank, is seen.
 */
#ifndef HEM_TESTS_DEVICE_ALL_KIT_H
#define HEM_TESTS_DEVICE_ALL_KIT_H

/* A name that pipe.h has inside of functions is one of halo_ring.h's types. */
#include "pipe_kit.h"

#include "halo_ring.h"
#include "window_kit.h"

#include <hem/coll.h>
#include <hem/device/barrier.h>

enum {
    ALL_WINDOW,
    ALL_PIPE,
    ALL_HALO,
    ALL_COLL,
    ALL_PARTS
};

/** Whether messages of the pipe go straight: both buffers are in a window of it. */
#ifndef ALL_STRAIGHT
#define ALL_STRAIGHT 0
#endif

#define ALL_WORDS 700 /**< that a step of the window puts */
#define ALL_SHORT 60  /**< words of short messages and collectives */
#define ALL_LONG  17000

/** How far a part is, in device memory. */
typedef struct all_state {
    uint64_t step;
    uint64_t wrong;  /**< words that were not as they should be */
    uint64_t status; /**< -status of the window's first wait that failed */
    uint64_t spare[13];
} all_state;

typedef struct all_kit {
    hem_world *world;
    int rank;
    int size;
    int left;
    int right;
    device_stream native[ALL_PARTS];
    hem_stream *stream[ALL_PARTS];
    all_state *state; /**< ALL_PARTS of them, then room for what a step sends and gets */
    uint64_t *out[ALL_PARTS];
    uint64_t *in[ALL_PARTS];
    hem_window *window;
    hem_pipe *pipe;
    hem_window *room; /**< of the pipe's buffers, or NULL */
    hem_pattern *pattern;
    hem_exchange *exchange;
    hem_op *ops[2]; /**< a long one and a short one */
    bool blind;     /**< numbers stay as they are: after a failure others may be at them still */
} all_kit;

/** Words that are sent, or that have come. Word i of step s of rank r is (r + 1) s (i + 1). */
typedef struct all_args {
    all_state *state;
    uint64_t *words;
    uint64_t count;
    uint64_t factor;
} all_args;

DEVICE_KERNEL(all_next, all_args) {
    hem_group block = hem_block();
    uint64_t step = args->state->step + 1;
    for (uint64_t i = block.rank; i < args->count; i += block.size)
        args->words[i] = args->factor * step * (i + 1);
    hem_group_sync(block);
    if (block.rank == 0)
        args->state->step = step;
}

DEVICE_KERNEL(all_look, all_args) {
    hem_group block = hem_block();
    uint64_t step = args->state->step;
    for (uint64_t i = block.rank; i < args->count; i += block.size)
        if (args->words[i] != args->factor * step * (i + 1))
            hemd_add64_relaxed(&args->state->wrong, 1);
}

typedef struct all_halo_args {
    all_state *state;
    uint64_t *field;
    uint64_t left;
    uint64_t right;
} all_halo_args;

/** The halos are the last point of the left and the first of the right. */
DEVICE_KERNEL(all_look_halo, all_halo_args) {
    uint64_t step = args->state->step;
    if (hem_block().rank != 0)
        return;
    if (args->field[0] != args->left * step * RING_CELLS)
        hemd_add64_relaxed(&args->state->wrong, 1);
    if (args->field[RING_CELLS + 1] != args->right * step)
        hemd_add64_relaxed(&args->state->wrong, 1);
}

typedef struct all_window_args {
    hem_dev_window w;
    all_state *state;
    uint64_t *out;
    int32_t left;
    int32_t right;
    int64_t timeout_ns;
} all_window_args;

HEM_DEV uint64_t all_count_wrong(const uint64_t *words, hem_group g, uint64_t factor) {
    uint64_t wrong = 0;
    for (uint64_t i = g.rank; i < ALL_WORDS; i += g.size)
        wrong += words[i] != factor * (i + 1);
    return wrong;
}

/* Two halves of the window in turns: the right one has read what was put there two steps ago. */
HEM_DEV hem_status all_put_and_take(const all_window_args *args, hem_group g, uint64_t step) {
    hem_dev_window w = args->w;
    const uint64_t offset = step % 2 * ALL_WORDS * 8;
    hem_status status = HEM_OK;
    for (uint64_t i = g.rank; i < ALL_WORDS; i += g.size)
        args->out[i] = ((uint64_t)w.rank + 1) * step * (i + 1);
    hem_group_sync(g);
    if (step > 2)
        status = hem_dev_wait_signal_from(w, g, args->right, 1, HEM_GE, step - 2, args->timeout_ns);
    if (status == HEM_OK)
        status = hem_dev_put_signal(w, g, args->right, offset, args->out, ALL_WORDS * 8, 0, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(w, g, args->left, 0, HEM_GE, step, args->timeout_ns);
    if (status != HEM_OK)
        return status;
    const uint64_t *words = (const uint64_t *)hem_dev_address(w, w.rank, offset);
    uint64_t wrong = all_count_wrong(words, g, ((uint64_t)args->left + 1) * step);
    if (wrong != 0)
        hemd_add64_relaxed(&args->state->wrong, wrong);
    hem_group_sync(g);
    return hem_dev_signal(w, g, args->left, 1, HEM_SIGNAL_ADD, 1);
}

/* What has failed once stays as it is. */
DEVICE_KERNEL(all_window_step, all_window_args) {
    hem_group block = hem_block();
    uint64_t step = args->state->step + 1;
    bool failed = args->state->status != 0;
    hem_group_sync(block);
    if (failed)
        return;
    hem_status status = all_put_and_take(args, block, step);
    if (status == HEM_OK && step % 3 == 0)
        status = hem_dev_barrier(args->w, block, (uint32_t)(step % 2), args->timeout_ns);
    if (block.rank != 0)
        return;
    args->state->step = step;
    hemd_store64_relaxed(&args->state->status, (uint64_t)-status);
}

static inline hem_op *all_plan(all_kit *kit, uint64_t count) {
    hem_coll c;
    hem_op *op = NULL;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = kit->out[ALL_COLL];
    c.recv = kit->in[ALL_COLL];
    c.count = (size_t)count;
    c.blocks = DEVICE_FEW_BLOCKS;
    CHECK_OK(hem_coll_plan(kit->world, &c, &op));
    return op;
}

/* One allocation for all that the parts send and get. */
static inline void all_make_memory(all_kit *kit) {
    const size_t head = ALL_PARTS * sizeof(all_state) / 8;
    const size_t each = ALL_LONG + 16;
    kit->state = (all_state *)device_alloc((head + 2 * ALL_PARTS * each) * 8);
    for (int p = 0; p < ALL_PARTS; p++) {
        kit->out[p] = (uint64_t *)kit->state + head + (size_t)(2 * p) * each;
        kit->in[p] = kit->out[p] + each;
    }
}

static inline void all_make_pipe(all_kit *kit) {
    hem_pipe_options p = pipe_kit_options(1, 2048, 2, 1024);
    hem_window_options o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.kind = HEM_MEMORY_DEVICE;
    o.memory = kit->out[ALL_PIPE];
    o.bytes = (size_t)(kit->out[ALL_PIPE + 1] - kit->out[ALL_PIPE]) * 8;
    if (ALL_STRAIGHT)
        CHECK_OK(hem_window_create(kit->world, &o, &kit->room));
    p.window = kit->room;
    CHECK_OK(hem_pipe_create(kit->world, &p, &kit->pipe));
}

/** The first failure, if any. */
static inline hem_status all_destroy_pipe(all_kit *kit) {
    hem_status status = hem_pipe_destroy(kit->pipe);
    hem_status of_room = hem_window_destroy(kit->room);
    return status == HEM_OK ? of_room : status;
}

/** `streams`: one of its own for every part, or the first for all. */
static inline all_kit all_open(hem_world *world, bool streams) {
    all_kit kit;
    ring r = ring_make(world);
    hem_window_options o = window_kit_options(2 * ALL_WORDS * 8);
    memset(&kit, 0, sizeof kit);
    kit.world = world;
    kit.rank = r.me;
    kit.size = r.size;
    kit.left = harness_left(world);
    kit.right = harness_right(world);
    kit.pattern = r.pattern;
    kit.native[0] = r.stream;
    kit.stream[0] = r.handle;
    for (int i = 1; i < ALL_PARTS; i++) {
        kit.native[i] = streams ? device_stream_create() : kit.native[0];
        CHECK_OK(hem_stream_cuda(world, kit.native[i], &kit.stream[i]));
    }
    all_make_memory(&kit);
    kit.window = window_kit_create(world, &o);
    all_make_pipe(&kit);
    kit.exchange = ring_bind(&r, kit.out[ALL_HALO], 1, 0);
    kit.ops[0] = all_plan(&kit, ALL_LONG);
    kit.ops[1] = all_plan(&kit, ALL_SHORT);
    return kit;
}

/** Give all streams up, and wait for what is on them. */
static inline void all_close_streams(all_kit *kit) {
    for (int p = ALL_PARTS - 1; p >= 0; p--) {
        device_stream_sync(kit->native[p]);
        CHECK_OK(hem_stream_destroy(kit->stream[p]));
        if (p == 0 || kit->native[p] != kit->native[0])
            device_stream_destroy(kit->native[p]);
    }
}

/** What is left without streams. `want`: how giving up what is collective goes. */
static inline void all_close_parts(all_kit *kit, hem_status want) {
    CHECK_OK(hem_op_free(kit->ops[0]));
    CHECK_OK(hem_op_free(kit->ops[1]));
    hem_status status = hem_exchange_destroy(kit->exchange);
    CHECK(want != HEM_OK || status == HEM_OK);
    CHECK_OK(hem_pattern_destroy(kit->pattern));
    CHECK_STATUS(all_destroy_pipe(kit), want);
    CHECK_STATUS(hem_window_destroy(kit->window), want);
    device_free(kit->state);
}

static inline void all_close(all_kit *kit, hem_status want) {
    all_close_streams(kit);
    all_close_parts(kit, want);
}

static inline void all_launch(all_kit *kit, int part, bool next, uint64_t *words, uint64_t count,
                              uint64_t factor) {
    all_args args;
    args.state = kit->state + part;
    args.words = words;
    args.count = count;
    args.factor = factor;
    if (kit->blind)
        return;
    if (next)
        device_launch(all_next, kit->native[part], 1, 1, &args);
    else
        device_launch(all_look, kit->native[part], 1, 1, &args);
}

static inline void all_launch_look_halo(all_kit *kit) {
    all_halo_args args;
    if (kit->blind)
        return;
    args.state = kit->state + ALL_HALO;
    args.field = kit->out[ALL_HALO];
    args.left = (uint64_t)kit->left + 1;
    args.right = (uint64_t)kit->right + 1;
    device_launch(all_look_halo, kit->native[ALL_HALO], 1, 1, &args);
}

static inline void all_launch_window(all_kit *kit, int64_t timeout_ns) {
    all_window_args args;
    args.w = window_kit_dev(kit->window);
    args.state = kit->state + ALL_WINDOW;
    args.out = kit->out[ALL_WINDOW];
    args.left = kit->left;
    args.right = kit->right;
    args.timeout_ns = timeout_ns;
    device_launch(all_window_step, kit->native[ALL_WINDOW], 1, 2, &args);
}

static inline hem_status all_pipe_call(all_kit *kit, uint64_t count) {
    hem_pipe_half out = pipe_kit_half(kit->right, kit->out[ALL_PIPE], (size_t)count * 8);
    hem_pipe_half in = pipe_kit_half(kit->left, kit->in[ALL_PIPE], (size_t)count * 8);
    hem_pipe_how how = pipe_kit_how(1, 2, 1, 0);
    return hem_pipe_sendrecv(kit->pipe, &out, &in, &how, kit->stream[ALL_PIPE]);
}

static inline hem_status all_halo_call(all_kit *kit) {
    hem_status status = hem_exchange_start_on(kit->exchange, NULL, kit->stream[ALL_HALO]);
    return status == HEM_OK ? hem_exchange_finish_on(kit->exchange, kit->stream[ALL_HALO]) : status;
}

/** How many words a step has that is short or not. */
static inline uint64_t all_count(bool brief) {
    return brief ? ALL_SHORT : ALL_LONG;
}

/** Put one step of a part on its stream; what cannot be put there any more is told. */
static inline hem_status all_try_step(all_kit *kit, int part, bool brief) {
    uint64_t own = (uint64_t)kit->rank + 1, size = (uint64_t)kit->size;
    uint64_t count = all_count(brief);
    hem_status status = HEM_OK;
    if (part == ALL_WINDOW) {
        all_launch_window(kit, HEM_FOREVER);
        return HEM_OK;
    }
    if (part == ALL_HALO) {
        all_launch(kit, part, true, kit->out[part] + 1, RING_CELLS, own);
        status = all_halo_call(kit);
        all_launch_look_halo(kit);
        return status;
    }
    all_launch(kit, part, true, kit->out[part], count, own);
    if (part == ALL_PIPE)
        status = all_pipe_call(kit, count);
    else
        status = hem_op_start_on(kit->ops[brief], kit->stream[part]);
    all_launch(kit, part, false, kit->in[part], count,
               part == ALL_PIPE ? (uint64_t)kit->left + 1 : size * (size + 1) / 2);
    return status;
}

static inline void all_step(all_kit *kit, int part, bool brief) {
    CHECK_OK(all_try_step(kit, part, brief));
}

/** A step of the exchange or of a collective that the host starts and waits for. */
static inline void all_step_by_host(all_kit *kit, int part, bool brief) {
    uint64_t own = (uint64_t)kit->rank + 1, size = (uint64_t)kit->size;
    if (part == ALL_HALO) {
        all_launch(kit, part, true, kit->out[part] + 1, RING_CELLS, own);
        device_stream_sync(kit->native[part]);
        CHECK_OK(hem_exchange_run(kit->exchange, NULL, LIMIT));
        all_launch_look_halo(kit);
        return;
    }
    all_launch(kit, part, true, kit->out[part], all_count(brief), own);
    device_stream_sync(kit->native[part]);
    CHECK_OK(hem_op_start(kit->ops[brief]));
    CHECK_OK(hem_op_wait(kit->ops[brief], LIMIT));
    all_launch(kit, part, false, kit->in[part], all_count(brief), size * (size + 1) / 2);
}

static inline all_state all_read(all_kit *kit, int part) {
    all_state state;
    device_copy(&state, kit->state + part, sizeof state);
    return state;
}

/** How a part has fared so far. */
static inline hem_status all_status(all_kit *kit, int part) {
    if (part == ALL_WINDOW)
        return (hem_status) - (int)all_read(kit, part).status;
    if (part == ALL_PIPE)
        return hem_pipe_status(kit->pipe);
    if (part == ALL_HALO)
        return hem_exchange_status(kit->exchange);
    hem_status status = hem_op_status(kit->ops[0]);
    return status == HEM_OK ? hem_op_status(kit->ops[1]) : status;
}

/** All parts have done so many steps, and none was wrong. */
static inline void all_check(all_kit *kit, uint64_t steps) {
    for (int part = 0; part < ALL_PARTS; part++) {
        device_stream_sync(kit->native[part]);
        all_state state = all_read(kit, part);
        harness_step("part", (uint64_t)part);
        CHECK_EQ(all_status(kit, part), HEM_OK);
        CHECK_EQ(state.step, steps);
        CHECK_EQ(state.wrong, 0);
    }
}

#endif
