/*
 * Streams and graphs of the device: order on a stream, none between streams but what was asked for,
 * a host that never waits, and captured work that is done as often as it is launched, among other work.
 *
 * hem-test: ranks=1,3 timeout=90
 */
#include "device.h"

/* Device memory that the kernels here work on. */
typedef struct state {
    uint64_t value;
    uint64_t gate[16];
    uint64_t other[16];
    uint64_t errors[16];
} state;

typedef struct step_args {
    state *at;
    uint64_t number;
} step_args;

/* Order matters: the result differs for any other. */
DEVICE_KERNEL(step, step_args) {
    hem_group block = hem_block();
    if (block.rank == block.size - 1)
        args->at->value = args->at->value * 3 + args->number;
}

/* Wait for the gate to be at least `number`. */
DEVICE_KERNEL(wait_gate, step_args) {
    hem_group block = hem_block();
    if (block.rank == 0) {
        while (hemd_load64_relaxed(&args->at->gate[0]) < args->number)
            hemd_relax();
        hemd_acquire(&args->at->gate[0], true);
    }
    hem_group_sync(block);
    if (block.rank == block.size - 1)
        args->at->value += args->number;
}

DEVICE_KERNEL(open_gate, step_args) {
    if (hem_block().rank == 0)
        hemd_store64_release(&args->at->gate[0], args->number, true);
}

/* A piece of a graph: the second stream's half. */
DEVICE_KERNEL(step_other, step_args) {
    if (hem_block().rank == 0)
        args->at->other[0] = args->at->other[0] * 3 + args->number;
}

/* Both halves have been done equally often. */
DEVICE_KERNEL(compare, step_args) {
    if (hem_block().rank != 0)
        return;
    args->at->gate[0]++;
    args->at->errors[0] += args->at->value != args->at->other[0];
}

typedef struct host_args {
    const uint64_t *word; /* in host memory */
    state *at;
} host_args;

DEVICE_KERNEL(wait_host, host_args) {
    if (hem_block().rank != 0)
        return;
    while (hemd_load64_relaxed(args->word) == 0)
        hemd_relax();
    hemd_acquire(args->word, false);
    args->at->value = 77;
}

typedef struct test {
    state *device;
    state host;
    device_stream one;
    device_stream two;
    step_args args;
} test;

static void begin(test *t, const char *what) {
    harness_step(what, 0);
    memset(&t->host, 0, sizeof t->host);
    device_copy(t->device, &t->host, sizeof t->host);
    t->args.at = t->device;
    t->args.number = 1;
}

static void finish(test *t) {
    device_stream_sync(t->one);
    device_stream_sync(t->two);
    device_copy(&t->host, t->device, sizeof t->host);
    CHECK_EQ(t->host.errors[0], 0);
}

/* From the host, while kernels run. */
static void let_go(test *t, uint64_t number) {
    device_copy(&t->device->gate[0], &number, sizeof number);
}

static void check_order(test *t) {
    uint64_t want = 0;
    begin(t, "order on a stream");
    for (uint64_t i = 0; i < 200; i++) {
        t->args.number = i;
        device_launch(step, t->one, 1, 1 + (uint32_t)(i % 4), &t->args);
        want = want * 3 + i;
    }
    finish(t);
    CHECK_EQ(t->host.value, want);
}

/* A copy sees what was put before it, and not what was put after. */
static void check_copies(test *t) {
    uint64_t *copies = (uint64_t *)device_alloc(64 * sizeof *copies);
    uint64_t *back = (uint64_t *)calloc(64, sizeof *back);
    uint64_t want = 0;
    CHECK(back != NULL);
    begin(t, "copies");
    for (uint64_t i = 0; i < 64; i++) {
        t->args.number = i;
        device_launch(step, t->one, 1, 2, &t->args);
        device_stream_copy(t->one, &copies[i], &t->device->value, sizeof copies[i]);
    }
    finish(t);
    device_copy(back, copies, 64 * sizeof *back);
    for (uint64_t i = 0; i < 64; i++) {
        want = want * 3 + i;
        CHECK_EQ(back[i], want);
    }
    free(back);
    device_free(copies);
}

/* What is on a stream is held; the host and the other stream go on. */
static void check_held(test *t) {
    begin(t, "a stream that is held");
    t->args.number = 5;
    device_launch(wait_gate, t->one, 1, 2, &t->args);
    device_launch(step, t->one, 1, 2, &t->args);
    CHECK(!device_stream_done(t->one));
    device_launch(step_other, t->two, 1, 2, &t->args);
    device_stream_sync(t->two);
    CHECK(!device_stream_done(t->one));
    let_go(t, 5);
    finish(t);
    CHECK_EQ(t->host.value, 5 * 3 + 5);
    CHECK_EQ(t->host.other[0], 5);
}

/* Kernels of two streams run at the same time: one waits for the other. */
static void check_together(test *t) {
    begin(t, "two streams at a time");
    for (uint64_t i = 1; i <= 20; i++) {
        t->args.number = i;
        device_launch(wait_gate, t->one, 1, 3, &t->args);
        device_launch(open_gate, t->two, 1, 1, &t->args);
        device_stream_sync(t->one);
    }
    finish(t);
}

static void check_between(test *t) {
    begin(t, "order between streams");
    for (uint64_t i = 1; i <= 20; i++) {
        uint64_t before = t->host.value;
        t->args.number = i;
        device_launch(wait_gate, t->one, 1, 1, &t->args);
        device_stream_order(t->one, t->two);
        device_launch(step, t->two, 1, 1, &t->args);
        if (i % 4 == 0)
            harness_sleep_ms(1);
        CHECK(!device_stream_done(t->two));
        let_go(t, i);
        finish(t);
        CHECK_EQ(t->host.value, (before + i) * 3 + i);
    }
}

static void check_host_memory(test *t) {
    uint64_t *word = (uint64_t *)device_host_alloc(sizeof *word);
    host_args args = {word, t->device};
    begin(t, "host memory");
    device_launch(wait_host, t->one, 1, 1, &args);
    CHECK(!device_stream_done(t->one));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    finish(t);
    CHECK_EQ(t->host.value, 77);
    device_host_free(word);
}

/* Nothing is done while it is captured, then as often as it is launched. */
static void check_graph(test *t) {
    int rounds = harness_rounds(200);
    uint64_t want = 0;
    device_graph graph;
    begin(t, "graph");
    device_capture_begin(t->one);
    for (uint64_t i = 1; i <= 3; i++) {
        t->args.number = i;
        device_launch(step, t->one, 1, 2, &t->args);
    }
    device_stream_copy(t->one, &t->device->other[0], &t->device->value, sizeof(uint64_t));
    graph = device_capture_end(t->one);
    finish(t);
    CHECK_EQ(t->host.value, 0);
    for (int i = 0; i < rounds; i++) {
        device_graph_launch(graph, i % 3 ? t->one : t->two);
        for (uint64_t k = 1; k <= 3; k++)
            want = want * 3 + k;
        if (i % 3 == 0)
            device_stream_order(t->two, t->one);
        t->args.number = 9;
        device_launch(step, t->one, 1, 1, &t->args);
        want = want * 3 + 9;
        device_stream_order(t->one, t->two);
    }
    device_graph_destroy(graph);
    finish(t);
    CHECK_EQ(t->host.value, want);
    CHECK_EQ(t->host.other[0] * 3 + 9, want);
}

/* A capture that goes over to another stream and comes back. */
static void check_fork(test *t) {
    int rounds = harness_rounds(200);
    device_graph graph;
    begin(t, "graph of two streams");
    t->args.number = 7;
    device_capture_begin(t->one);
    device_stream_order(t->one, t->two);
    device_launch(step, t->one, 1, 2, &t->args);
    device_launch(step_other, t->two, 1, 3, &t->args);
    device_stream_order(t->two, t->one);
    device_launch(compare, t->one, 1, 2, &t->args);
    graph = device_capture_end(t->one);
    for (int i = 0; i < rounds; i++)
        device_graph_launch(graph, t->one);
    finish(t);
    CHECK_EQ(t->host.gate[0], rounds);
    device_graph_destroy(graph);
}

int rank_main(hem_world *world) {
    test *t = (test *)calloc(1, sizeof *t);
    CHECK(t != NULL);
    t->device = (state *)device_alloc(sizeof *t->device);
    t->one = device_stream_create();
    t->two = device_stream_create();

    check_order(t);
    check_copies(t);
    check_held(t);
    check_together(t);
    check_between(t);
    check_host_memory(t);
    check_graph(t);
    check_fork(t);

    device_stream_destroy(t->one);
    device_stream_destroy(t->two);
    device_free(t->device);
    free(t);
    harness_close(world, HEM_OK);
    return 0;
}
