/*
 * Code that is loaded when it is first launched must not wait for a kernel that waits for it: the library's
 * kernels are all loaded when the device is opened. On a GPU the program is told to load late
 * (CUDA_MODULE_LOADING=LAZY), and each of the library's kernels is launched for the first time by one rank
 * while a kernel of another rank already waits for it: messages, with a window and without, collectives,
 * staged ones, those with several words for each thread, exchanges forwards, backwards and straight into
 * halos. Those with multicast need several GPUs. On the stand-in, where nothing is loaded, the order of
 * things is what is tested.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "all_kit.h"
#include "coll_form.h"

#ifdef __CUDACC__
/* Before the harness chooses, which does so without a priority. */
__attribute__((constructor(101))) static void load_late(void) {
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
}
#endif

enum {
    PIPE,
    HALO,
    COLL,
    STRAIGHT,
    STAGED,
    REVERSE,
    DIRECT,
    DEEP,
    KINDS
};

/* Which stream of all_kit.h each has. */
static const int parts[KINDS] = {ALL_PIPE, ALL_HALO, ALL_COLL, ALL_PIPE,
                                 ALL_COLL, ALL_HALO, ALL_HALO, ALL_COLL};

typedef struct test {
    all_kit kit;
    hem_window *window; /* two buffers of ALL_LONG words */
    hem_pipe *straight;
    hem_op *staged[2];
    hem_op *deep;
    hem_exchange *direct;
} test;

static hem_op *plan_sum(test *t, uint64_t *out, uint64_t *in, uint64_t count) {
    hem_coll c;
    hem_op *op = NULL;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = out;
    c.recv = in;
    c.count = (size_t)count;
    c.blocks = DEVICE_FEW_BLOCKS;
    CHECK_OK(hem_coll_plan(t->kit.world, &c, &op));
    return op;
}

/* Buffers in the memory of the right neighbour, which peers cannot map from here: copied there and back. */
static hem_op *plan_staged(test *t, uint64_t count) {
    uint64_t *out = (uint64_t *)hem_window_peer_address(t->window, t->kit.right, 0);
    CHECK(out != NULL);
    return plan_sum(t, out, out + ALL_LONG, count);
}

static hem_op *plan_deep(test *t) {
    size_t count = coll_form_deep_words(t->kit.size, DEVICE_FEW_BLOCKS, true);
    hem_op *op = plan_sum(t, t->kit.out[ALL_COLL], t->kit.in[ALL_COLL], count);
    coll_form_check_deep(op, t->kit.size, true);
    return op;
}

static hem_exchange *bind_direct(test *t) {
    hem_exchange_options options;
    hem_binding binding;
    hem_exchange *exchange = NULL;
    memset(&binding, 0, sizeof binding);
    binding.pattern = t->kit.pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = t->kit.in[ALL_HALO];
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.way = HEM_EXCHANGE_DIRECT;
    CHECK_OK(hem_exchange_create(t->kit.world, &options, &exchange));
    return exchange;
}

static test open_test(hem_world *world) {
    test t;
    hem_window_options w = window_kit_options(2 * ALL_LONG * 8);
    hem_pipe_options p = pipe_kit_options(1, 2048, 2, 1024);
    memset(&t, 0, sizeof t);
    t.kit = all_open(world, true);
    t.window = window_kit_create(world, &w);
    p.window = t.window;
    CHECK_OK(hem_pipe_create(world, &p, &t.straight));
    t.staged[0] = plan_staged(&t, ALL_LONG);
    t.staged[1] = plan_staged(&t, ALL_SHORT);
    t.deep = plan_deep(&t);
    t.direct = bind_direct(&t);
    return t;
}

static void close_test(test *t) {
    CHECK_OK(hem_exchange_destroy(t->direct));
    CHECK_OK(hem_op_free(t->staged[0]));
    CHECK_OK(hem_op_free(t->staged[1]));
    CHECK_OK(hem_op_free(t->deep));
    CHECK_OK(hem_pipe_destroy(t->straight));
    CHECK_OK(hem_window_destroy(t->window));
    all_close(&t->kit, HEM_OK);
}

static hem_status call_straight(test *t, uint64_t count) {
    uint64_t *memory = (uint64_t *)hem_window_memory(t->window);
    hem_pipe_half out = pipe_kit_half(t->kit.right, memory, (size_t)count * 8);
    hem_pipe_half in = pipe_kit_half(t->kit.left, memory + ALL_LONG, (size_t)count * 8);
    hem_pipe_how how = pipe_kit_how(1, 2, 1, 0);
    return hem_pipe_sendrecv(t->straight, &out, &in, &how, t->kit.stream[ALL_PIPE]);
}

static hem_status call_exchange(test *t, hem_exchange *exchange, bool backwards) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = backwards ? HEM_COMBINE_SUM : (hem_combine)0;
    hem_status status = hem_exchange_start_on(exchange, &how, t->kit.stream[ALL_HALO]);
    return status == HEM_OK ? hem_exchange_finish_on(exchange, t->kit.stream[ALL_HALO]) : status;
}

static hem_status call(test *t, int kind, bool brief) {
    switch (kind) {
    case PIPE:
        return all_pipe_call(&t->kit, all_count(brief));
    case STRAIGHT:
        return call_straight(t, all_count(brief));
    case COLL:
        return hem_op_start_on(t->kit.ops[brief], t->kit.stream[ALL_COLL]);
    case STAGED:
        return hem_op_start_on(t->staged[brief], t->kit.stream[ALL_COLL]);
    case DEEP:
        return hem_op_start_on(t->deep, t->kit.stream[ALL_COLL]);
    default:
        return call_exchange(t, kind == DIRECT ? t->direct : t->kit.exchange, kind == REVERSE);
    }
}

static hem_status status_of(test *t, int kind) {
    if (kind == STRAIGHT)
        return hem_pipe_status(t->straight);
    if (kind == STAGED)
        return hem_op_status(t->staged[0]);
    if (kind == DEEP)
        return hem_op_status(t->deep);
    if (kind == DIRECT)
        return hem_exchange_status(t->direct);
    return all_status(&t->kit, parts[kind]);
}

/* The k-th rank starts when all before it wait. No kernel of the test itself is launched before the last
 * has come: those would be loaded late. */
static void in_turn(test *t, int kind, bool brief) {
    device_stream stream = t->kit.native[parts[kind]];
    for (int turn = 0; turn < t->kit.size; turn++) {
        if (t->kit.rank == turn) {
            CHECK_OK(call(t, kind, brief));
            harness_sleep_ms(5);
            if (turn == 0) /* it waits for the last one, of whatever kind it is */
                CHECK(!device_stream_done(stream));
        }
        CHECK_OK(hem_barrier(t->kit.window, 0, LIMIT));
    }
    device_stream_sync(stream);
    CHECK_EQ(status_of(t, kind), HEM_OK);
}

int rank_main(hem_world *world) {
    test t = open_test(world);
    all_kit *kit = &t.kit;
    for (int kind = 0; kind < KINDS; kind++) {
        harness_step("kind", (uint64_t)kind);
        in_turn(&t, kind, true);
        in_turn(&t, kind, false);
    }
    CHECK_OK(hem_exchange_run(kit->exchange, NULL, LIMIT));
    /* Now those of the test, first by one rank after the other. */
    for (int turn = 0; turn < kit->size; turn++) {
        if (kit->rank == turn) {
            all_launch(kit, ALL_PIPE, true, kit->out[ALL_PIPE], ALL_SHORT, 1);
            device_stream_sync(kit->native[ALL_PIPE]);
        }
        CHECK_OK(hem_barrier(kit->window, 0, LIMIT));
    }
    close_test(&t);
    harness_close(world, HEM_OK);
    return 0;
}
