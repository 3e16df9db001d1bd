/*
 * While a kernel waits, nothing that ranks of its process do may wait for the kernel: to unpin or to
 * free memory would, on a GPU. Rank 0 has a kernel that waits for a signal of rank 1's CPU; meanwhile all
 * make and give up windows, pipes, exchanges, collectives and worlds, and rank 1 signals at the end. Then
 * a rank dies that had all of that, while kernels of the others wait for signals of their own CPUs.
 *
 * hem-test: ranks=2,3 modes=threads timeout=60
 */
#include "halo_ring.h"
#include "window_kit.h"

#include <hem/coll.h>

#define ROUNDS 12

typedef struct test {
    hem_world *world;
    hem_window *window;
    ring ring;
    device_stream stream;
    uint64_t *status;
    uint64_t *memory; /* in device memory */
    int rank;
    int size;
} test;

DEVICE_KERNEL(wait_one, window_kit_wait) {
    hem_status status = window_kit_wait_here(args, hem_block());
    if (hem_block().rank == 0)
        hemd_store64_relaxed(args->status_p, (uint64_t)-status);
}

static void start(test *t, int peer, uint64_t value) {
    window_kit_wait args;
    uint64_t none = WINDOW_KIT_NONE;
    device_copy(t->status, &none, sizeof none);
    args.w = window_kit_dev(t->window);
    args.peer = peer;
    args.id = 1;
    args.value = value;
    args.timeout_ns = HEM_FOREVER;
    args.status_p = t->status;
    device_launch(wait_one, t->stream, 1, 1, &args);
}

static uint64_t look(const test *t) {
    uint64_t value = 0;
    device_copy(&value, t->status, sizeof value);
    return value;
}

static void use_windows(test *t, hem_world *world, int round) {
    hem_window_options o = window_kit_options((size_t)4096 << round);
    uint64_t word = 7;
    hem_window *window = window_kit_create(world, &o);
    CHECK_OK(hem_put(window, (t->rank + 1) % t->size, 8, &word, sizeof word));
    CHECK_OK(hem_signal(window, (t->rank + 1) % t->size, 12, HEM_SIGNAL_ADD, 1));
    CHECK_OK(hem_wait_signal(window, 12, HEM_GE, 1, LIMIT));
    CHECK_OK(hem_window_destroy(window));
    o = window_kit_options(64);
    o.memory = t->memory;
    window = window_kit_create(world, &o);
    CHECK_OK(hem_window_destroy(window));
}

static hem_op *plan(test *t, hem_world *world) {
    hem_coll coll;
    hem_op *op = NULL;
    memset(&coll, 0, sizeof coll);
    coll.struct_size = sizeof coll;
    coll.kind = HEM_ALLREDUCE;
    coll.send = t->memory;
    coll.recv = t->memory + 64;
    coll.count = 64;
    coll.dtype = HEM_U64;
    coll.op = HEM_SUM;
    CHECK_OK(hem_coll_plan(world, &coll, &op));
    return op;
}

static void use_others(test *t, hem_world *world) {
    hem_pipe_options options;
    hem_pipe *pipe = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.blocks = 1;
    CHECK_OK(hem_pipe_create(world, &options, &pipe));
    CHECK_OK(hem_pipe_destroy(pipe));
    hem_exchange *x = ring_bind(&t->ring, t->memory, 2, 0);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_op_free(plan(t, world)));
}

/* A world that goes with its window still there, on all ranks together. */
static void use_world(test *t) {
    hem_world *world = NULL;
    hem_window_options o = window_kit_options(128);
    CHECK_OK(hem_world_split(t->world, 0, t->rank, &world));
    hem_window *window = window_kit_create(world, &o);
    CHECK_OK(hem_world_close(world));
    CHECK_OK(hem_window_destroy(window));
}

static void check_calm(test *t) {
    if (t->rank == 0)
        start(t, 1, 1);
    harness_barrier(t->window);
    for (int round = 0; round < ROUNDS; round++) {
        harness_step("round", (uint64_t)round);
        use_windows(t, t->world, round);
        use_others(t, t->world);
        use_world(t);
        if (t->rank == 0)
            CHECK_EQ(look(t), WINDOW_KIT_NONE);
    }
    harness_barrier(t->window);
    if (t->rank == 1)
        CHECK_OK(hem_signal(t->window, 0, 1, HEM_SIGNAL_ADD, 1));
    if (t->rank == 0) {
        device_stream_sync(t->stream);
        CHECK_EQ(look(t), 0);
    }
    harness_barrier(t->window);
}

/* An exchange over host memory and device memory, a pipe and a plan, all left as they are. */
static int die(test *t, hem_exchange *x) {
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    device_stream_destroy(t->stream);
    harness_forget();
    return 0;
}

/* Of the host's memory one field is, of the device's the other. */
static hem_exchange *bind_mixed(test *t, uint64_t *host) {
    hem_binding bindings[2];
    memset(bindings, 0, sizeof bindings);
    for (int f = 0; f < 2; f++) {
        bindings[f].pattern = t->ring.pattern;
        bindings[f].field.struct_size = sizeof bindings[f].field;
        bindings[f].field.dtype = HEM_U64;
        bindings[f].field.memory = f == 0 ? host : t->memory;
    }
    return twin_create(t->world, bindings, 2, 0);
}

/* The death is known; what the dead leaves is being cleaned up, or would be if that did not wait. */
static void survive(test *t, hem_exchange *x) {
    hem_status status = HEM_OK;
    start(t, t->rank, 5);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    for (int i = 0; i < 10000 && status == HEM_OK; i++) {
        status = hem_signal(t->window, t->size - 1, 2, HEM_SIGNAL_ADD, 1);
        harness_sleep_ms(1);
    }
    CHECK_EQ(status, HEM_ERR_PEER);
    harness_sleep_ms(100);
    CHECK_EQ(look(t), WINDOW_KIT_NONE);
    CHECK_OK(hem_signal(t->window, t->rank, 1, HEM_SIGNAL_SET, 5));
    device_stream_sync(t->stream);
    CHECK_EQ(look(t), 0);
}

/* Destroying an exchange with host fields may wait for every kernel of the process, and hold up what
 * others do on the device: none of the survivors may still have one that waits. */
static void meet_survivors(test *t) {
    for (int r = 0; r < t->size - 1; r++)
        if (r != t->rank)
            CHECK_OK(hem_signal(t->window, r, 13, HEM_SIGNAL_ADD, 1));
    for (int r = 0; r < t->size - 1; r++)
        if (r != t->rank)
            CHECK_OK(hem_wait_signal_from(t->window, r, 13, HEM_GE, 1, LIMIT));
}

int rank_main(hem_world *world) {
    /* Longer than the rank that dies: what it has pinned is looked at by nobody, but must be there. */
    static uint64_t fields[8][RING_CELLS + 2];
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    t.stream = device_stream_create();
    t.status = (uint64_t *)device_alloc(sizeof(uint64_t));
    t.memory = (uint64_t *)device_alloc(8192);
    hem_window_options o = window_kit_options(4096);
    t.window = window_kit_create(world, &o);
    t.ring = ring_make(world);
    device_unpin_waits();
    harness_barrier(t.window);
    check_calm(&t);
    hem_exchange *x = bind_mixed(&t, fields[t.rank]);
    hem_op *op = plan(&t, world);
    harness_barrier(t.window);
    if (t.rank == t.size - 1)
        return die(&t, x);
    survive(&t, x);
    meet_survivors(&t);
    (void)hem_exchange_destroy(x);
    CHECK_OK(hem_op_free(op));
    CHECK_STATUS(hem_window_destroy(t.window), HEM_ERR_PEER);
    ring_free(&t.ring);
    device_stream_destroy(t.stream);
    device_free(t.memory);
    device_free(t.status);
    harness_close(world, HEM_ERR_PEER);
    return 0;
}
