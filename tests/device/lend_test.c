/*
 * Operations that the host starts have a stream while they are under way, and none while they are idle:
 * many that run one after another have one between them, many at a time have one each, in whatever
 * order the ranks start them. A run that fails gives its stream back when its kernels have ended.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "halo_ring.h"

#include <hem/coll.h>

#define OPS       6
#define EXCHANGES 4
#define ALL       (OPS + EXCHANGES)
#define COUNT     40

typedef struct test {
    hem_world *world;
    hem_window *gate;
    ring ring;
    size_t here;       /* ranks of this process */
    size_t before;     /* streams, without those of operations */
    uint64_t *memory;  /* of exchanges, then send and recv of each operation */
    uint64_t *buffers; /* there */
    hem_exchange *exchanges[EXCHANGES];
    hem_op *ops[OPS];
    uint64_t step;
} test;

/* While no rank starts or gives up anything. */
static size_t count(const test *t) {
    harness_barrier(t->gate);
    size_t streams = device_streams();
    harness_barrier(t->gate);
    return streams;
}

/* All ranks have had `each` streams at a time so far; on a GPU they are not counted. */
static void check_streams(const test *t, size_t each) {
    size_t now = count(t);
    if (device_stands_in())
        CHECK_EQ(now, t->before + t->here * each);
}

static uint64_t *send_of(const test *t, int o) {
    return t->buffers + (size_t)o * 2 * COUNT;
}

static uint64_t *field_of(const test *t, int e) {
    return t->memory + (size_t)e * (RING_CELLS + 2);
}

static hem_op *plan(const test *t, int o, int64_t timeout_ns) {
    hem_coll c;
    hem_op *op = NULL;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = send_of(t, o);
    c.recv = send_of(t, o) + COUNT;
    c.count = COUNT;
    c.timeout_ns = timeout_ns;
    CHECK_OK(hem_coll_plan(t->world, &c, &op));
    return op;
}

/* Number i, operations first. */
static uint64_t value_of(const test *t, int rank, int i) {
    return (t->step * ALL + (uint64_t)i) * 10 + (uint64_t)rank;
}

static void fill(test *t) {
    uint64_t words[COUNT];
    t->step++;
    for (int i = 0; i < ALL; i++) {
        for (int k = 0; k < COUNT; k++)
            words[k] = value_of(t, t->ring.me, i);
        if (i < OPS)
            device_copy(send_of(t, i), words, sizeof words);
        else
            device_copy(field_of(t, i - OPS), words, (RING_CELLS + 2) * sizeof words[0]);
    }
}

static void start(test *t, int i) {
    if (i < OPS)
        CHECK_OK(hem_op_start(t->ops[i]));
    else
        CHECK_OK(hem_exchange_start(t->exchanges[i - OPS], NULL));
}

static void finish(test *t, int i) {
    uint64_t words[COUNT], sum = 0;
    for (int r = 0; r < t->ring.size; r++)
        sum += value_of(t, r, i);
    if (i < OPS) {
        CHECK_OK(hem_op_wait(t->ops[i], LIMIT));
        device_copy(words, send_of(t, i) + COUNT, sizeof words);
        CHECK(words[0] == sum && words[COUNT - 1] == sum);
        return;
    }
    CHECK_OK(hem_exchange_finish(t->exchanges[i - OPS], LIMIT));
    device_copy(words, field_of(t, i - OPS), (RING_CELLS + 2) * sizeof words[0]);
    CHECK_EQ(words[0], value_of(t, harness_left(t->world), i));
    CHECK_EQ(words[RING_CELLS + 1], value_of(t, harness_right(t->world), i));
}

static void one_after_another(test *t) {
    for (int round = 0; round < 3; round++) {
        fill(t);
        for (int i = 0; i < ALL; i++) {
            start(t, i);
            finish(t, i);
        }
    }
}

/* Runs that are started on a stream of the caller's, and finished by the host. */
static void half_by_host(test *t, bool polls) {
    fill(t);
    for (int e = 0; e < EXCHANGES; e++) {
        bool done = !polls;
        CHECK_OK(hem_exchange_start_on(t->exchanges[e], NULL, t->ring.handle));
        for (int64_t until = harness_now() + LIMIT; !done;) {
            CHECK_OK(hem_exchange_test(t->exchanges[e], &done));
            CHECK(done || harness_now() < until);
        }
        if (polls)
            check_streams(t, 1);
        finish(t, OPS + e);
    }
    check_streams(t, 1);
}

/* The first rank comes last, so all of the others' are under way until then. A GPU has 32 queues for
 * a process, of which ranks need some more than for these. */
static void all_at_once(test *t) {
    bool first = t->ring.me == 0;
    int most = device_stands_in() || t->here == 1 ? ALL : 18 / t->ring.size;
    int low = most < ALL ? ALL - most : 0;
    most = ALL - low;
    fill(t);
    if (first)
        harness_barrier(t->gate);
    for (int k = 0; k < most; k++)
        start(t, low + (t->ring.me % 2 == 0 ? (k + 3) % most : most - 1 - k));
    if (!first)
        harness_barrier(t->gate);
    for (int i = low; i < ALL; i++)
        finish(t, i);
}

/* As many as there were at a time, of which nobody knows in the first rank. */
static size_t check_many(const test *t) {
    size_t now = count(t);
    if (!device_stands_in())
        return now;
    CHECK(now <= t->before + t->here * ALL);
    if (harness_threads())
        CHECK(now >= t->before + (t->here - 1) * ALL + 1);
    else
        CHECK(now >= t->before + (t->ring.me == 0 ? 1 : ALL));
    return now;
}

/* The others run out of time, one after another, and so are done with their streams. */
static void alone(test *t) {
    for (int i = 0; i < 3; i++) {
        hem_op *op = plan(t, 0, HEM_MS(20));
        if (t->ring.me != 0) {
            CHECK_OK(hem_op_start(op));
            CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_TIMEOUT);
        }
        check_streams(t, 1);
        CHECK_OK(hem_op_free(op));
    }
}

static void make(test *t, hem_world *world) {
    memset(t, 0, sizeof *t);
    t->world = world;
    t->gate = harness_window(world, 64);
    t->ring = ring_make(world);
    t->here = harness_threads() ? (size_t)t->ring.size : 1;
    t->memory = (uint64_t *)device_alloc((EXCHANGES * (RING_CELLS + 2) + OPS * 2 * COUNT) * 8);
    t->buffers = t->memory + EXCHANGES * (RING_CELLS + 2);
    for (int e = 0; e < EXCHANGES; e++)
        t->exchanges[e] = ring_bind(&t->ring, field_of(t, e), 1, 0);
    for (int o = 0; o < OPS; o++)
        t->ops[o] = plan(t, o, 0);
    t->before = count(t);
}

int rank_main(hem_world *world) {
    test t;
    make(&t, world);
    one_after_another(&t);
    check_streams(&t, 1);
    half_by_host(&t, false);
    half_by_host(&t, true);
    alone(&t);
    size_t many = 0;
    for (int i = 0; i < harness_rounds(10); i++) {
        harness_step("round", (uint64_t)i);
        all_at_once(&t);
        many = check_many(&t);
    }
    one_after_another(&t);
    for (int o = 0; o < OPS; o++)
        CHECK_OK(hem_op_free(t.ops[o]));
    for (int e = 0; e < EXCHANGES; e++)
        CHECK_OK(hem_exchange_destroy(t.exchanges[e]));
    CHECK_EQ(count(&t), many);
    harness_destroy(t.gate);
    ring_free(&t.ring);
    device_free(t.memory);
    harness_close(world, HEM_OK);
    return 0;
}
