/*
 * Exchanges and collectives on the device as operations of the host, several in flight at a time: waited
 * for one by one, all together, or whichever is first; tested; their callbacks come once for each run; the
 * world's descriptor counts them; a progress thread moves them on by itself. A wait whose time is over
 * leaves them under way. What was started in one order may be waited for in another.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=90
 */
#include "all_kit.h"

#include <poll.h>

#define FLIGHT 4 /* two exchanges and two collectives */

typedef struct test {
    hem_world *world;
    ring ring;
    uint64_t *memory;
    hem_exchange *exchanges[2];
    hem_op *ops[FLIGHT];
    uint64_t calls[FLIGHT]; /* under the lock */
    pthread_mutex_t lock;
    uint64_t runs;
} test;

static uint64_t *field(const test *t, int i) {
    return t->memory + (size_t)i * 64;
}

static hem_op *plan(test *t, int i, size_t count) {
    hem_coll c;
    hem_op *op = NULL;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = t->memory + 256 + (size_t)i * 2 * ALL_LONG;
    c.recv = t->memory + 256 + (size_t)i * 2 * ALL_LONG + ALL_LONG;
    c.count = count;
    c.blocks = DEVICE_FEW_BLOCKS;
    CHECK_OK(hem_coll_plan(t->world, &c, &op));
    return op;
}

/* New numbers for this run, everywhere. */
static void prepare(test *t) {
    uint64_t cells[RING_CELLS + 2];
    uint64_t own = ++t->runs * 100 + (uint64_t)t->ring.me;
    for (size_t i = 0; i < RING_CELLS + 2; i++)
        cells[i] = own;
    for (int i = 0; i < 2; i++) {
        device_copy(field(t, i), cells, sizeof cells);
        device_copy(t->memory + 256 + (size_t)i * 2 * ALL_LONG, &own, sizeof own);
    }
}

static void check(test *t) {
    uint64_t size = (uint64_t)t->ring.size, base = t->runs * 100;
    for (int i = 0; i < 2; i++) {
        uint64_t cells[RING_CELLS + 2], sum = 0;
        device_copy(cells, field(t, i), sizeof cells);
        CHECK_EQ(cells[0], base + (uint64_t)harness_left(t->world));
        CHECK_EQ(cells[RING_CELLS + 1], base + (uint64_t)harness_right(t->world));
        device_copy(&sum, t->memory + 256 + (size_t)i * 2 * ALL_LONG + ALL_LONG, sizeof sum);
        CHECK_EQ(sum, size * base + size * (size - 1) / 2);
    }
}

static void start(test *t, int i) {
    if (i < 2)
        CHECK_OK(hem_exchange_start(t->exchanges[i], NULL));
    else
        CHECK_OK(hem_op_start(t->ops[i]));
}

/* Collectives are started in one order everywhere; exchanges in any. */
static void start_all(test *t, uint64_t dice) {
    int first = (int)(dice % 2);
    start(t, first);
    start(t, 2);
    start(t, 1 - first);
    start(t, 3);
}

static void wait_in_turn(test *t, harness_rng *own) {
    size_t first = harness_below(own, FLIGHT);
    for (size_t i = 0; i < FLIGHT; i++)
        CHECK_OK(hem_op_wait(t->ops[(first + i) % FLIGHT], LIMIT));
}

static void wait_any(test *t) {
    hem_op *left[FLIGHT];
    memcpy(left, t->ops, sizeof left);
    for (size_t i = 0; i < FLIGHT; i++) {
        size_t which = FLIGHT;
        CHECK_OK(hem_op_wait_any(left, FLIGHT, &which, LIMIT));
        CHECK(which < FLIGHT && left[which] != NULL);
        left[which] = NULL;
    }
}

static void test_all(test *t) {
    int64_t until = harness_now() + LIMIT;
    for (size_t i = 0; i < FLIGHT;) {
        bool done = false;
        CHECK_OK(hem_op_test(t->ops[i], &done));
        i += done;
        CHECK(harness_now() < until);
    }
}

static void note(hem_op *op, hem_status status, void *arg) {
    test *t = (test *)arg;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < FLIGHT; i++)
        t->calls[i] += t->ops[i] == op && status == HEM_OK ? 1 : 0;
    pthread_mutex_unlock(&t->lock);
}

/* Nobody waits: the thread moves all on, the descriptor becomes readable, callbacks have come. */
static void by_events(test *t) {
    uint64_t seen = 0, got = 0;
    int fd = -1;
    CHECK_OK(hem_world_event_fd(t->world, &fd));
    CHECK_OK(hem_world_event_read(t->world, &got));
    start_all(t, 0);
    while (seen < FLIGHT) {
        struct pollfd entry = {fd, POLLIN, 0};
        CHECK(poll(&entry, 1, 40000) == 1);
        CHECK_OK(hem_world_event_read(t->world, &got));
        seen += got;
    }
    CHECK_EQ(seen, FLIGHT);
}

static void with_callbacks(test *t, int rounds) {
    for (int i = 0; i < FLIGHT; i++)
        CHECK_OK(hem_op_on_done(t->ops[i], note, t));
    memset(t->calls, 0, sizeof t->calls); /* those that were done already have called at once */
    CHECK_OK(hem_progress_start(t->world));
    for (int round = 0; round < rounds; round++) {
        harness_step("event", (uint64_t)round);
        prepare(t);
        by_events(t);
        check(t);
    }
    CHECK_OK(hem_progress_stop(t->world));
    for (int i = 0; i < FLIGHT; i++) {
        CHECK_EQ(t->calls[i], (uint64_t)rounds);
        CHECK_OK(hem_op_on_done(t->ops[i], NULL, NULL));
    }
}

/* Rank 0 comes late: whoever cannot wait for it goes on later. */
static void late(test *t) {
    hem_window *gate = harness_window(t->world, 8);
    prepare(t);
    if (t->ring.me == 0 && t->ring.size > 1) {
        harness_barrier(gate);
        start_all(t, 1);
    } else {
        start_all(t, 0);
        if (t->ring.size > 1)
            CHECK_STATUS(hem_op_wait(t->ops[2], HEM_MS(1)), HEM_ERR_TIMEOUT);
        harness_barrier(gate);
    }
    CHECK_OK(hem_op_wait_all(t->ops, FLIGHT, LIMIT));
    check(t);
    harness_destroy(gate);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    harness_rng own = harness_rng_of(seed, 1, (uint64_t)hem_world_rank(world));
    test t;
    memset(&t, 0, sizeof t);
    pthread_mutex_init(&t.lock, NULL);
    t.world = world;
    t.ring = ring_make(world);
    t.memory = (uint64_t *)device_alloc((256 + 4 * ALL_LONG) * 8);
    for (int i = 0; i < 2; i++) {
        t.exchanges[i] = ring_bind(&t.ring, field(&t, i), 1, 0);
        t.ops[i] = hem_exchange_op(t.exchanges[i]);
        t.ops[2 + i] = plan(&t, i, i == 0 ? 40 : ALL_LONG);
    }
    for (int round = 0; round < harness_rounds(40); round++) {
        harness_step("round", (uint64_t)round);
        prepare(&t);
        start_all(&t, harness_random(&own));
        if (round % 4 == 0)
            wait_in_turn(&t, &own);
        else if (round % 4 == 1)
            CHECK_OK(hem_op_wait_all(t.ops, FLIGHT, LIMIT));
        else if (round % 4 == 2)
            wait_any(&t);
        else
            test_all(&t);
        check(&t);
    }
    with_callbacks(&t, harness_rounds(20));
    late(&t);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hem_op_free(t.ops[2 + i]));
        CHECK_OK(hem_exchange_destroy(t.exchanges[i]));
    }
    ring_free(&t.ring);
    device_free(t.memory);
    pthread_mutex_destroy(&t.lock);
    harness_close(world, HEM_OK);
    return 0;
}
