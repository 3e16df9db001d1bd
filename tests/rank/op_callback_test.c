/*
 * Callbacks of operations come once per completion, also where the operation was done already; they
 * may start operations, themselves or others, and free their own. The world's descriptor tells that
 * something got done.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <poll.h>
#include <sched.h>

enum {
    CHAIN = 50
};

#define ARG(call) CHECK_STATUS(call, HEM_ERR_ARG)

struct rank {
    hem_world *world;
    int me;
    int size;
};

/* A sum of one number per rank: everybody gives `given`. */
struct sum {
    int64_t given;
    int64_t got;
};

static hem_coll describe(struct sum *sum, int64_t given) {
    *sum = (struct sum){given, -1};
    return (hem_coll){.struct_size = sizeof(hem_coll),
                      .kind = HEM_ALLREDUCE,
                      .dtype = HEM_I64,
                      .op = HEM_SUM,
                      .send = &sum->given,
                      .recv = &sum->got,
                      .count = 1};
}

static hem_op *plan(struct rank *r, struct sum *sum, int64_t given) {
    hem_coll coll = describe(sum, given);
    hem_op *op = NULL;

    CHECK_OK(hem_coll_plan(r->world, &coll, &op));
    CHECK(op != NULL);
    return op;
}

static hem_op *start(struct rank *r, struct sum *sum, int64_t given) {
    hem_coll coll = describe(sum, given);
    hem_op *op = NULL;

    CHECK_OK(hem_coll_start(r->world, &coll, &op));
    CHECK(op != NULL);
    return op;
}

static void works(struct rank *r) {
    struct sum sum = {3, 0};

    CHECK_OK(hem_allreduce(r->world, &sum.given, &sum.got, 1, HEM_I64, HEM_SUM, LIMIT));
    CHECK_EQ(sum.got, 3 * r->size);
}

struct calls {
    struct rank *rank;
    int count;
    hem_status status;
    struct sum sum;
    hem_op *op;
    hem_op *other;
};

static void count_call(hem_op *op, hem_status status, void *arg) {
    struct calls *calls = arg;

    calls->count++;
    calls->status = status;
    calls->op = op;
}

static void callbacks(struct rank *r) {
    struct calls calls = {.rank = r};
    hem_op *op = plan(r, &calls.sum, 1);

    CHECK_OK(hem_op_on_done(op, count_call, &calls));
    CHECK_EQ(calls.count, 0);
    for (int round = 1; round <= 5; round++) {
        CHECK_OK(hem_op_start(op));
        CHECK_OK(hem_op_wait(op, LIMIT));
        CHECK_EQ(calls.count, round);
        CHECK(calls.op == op && calls.status == HEM_OK);
    }
    CHECK_OK(hem_op_on_done(op, NULL, NULL));
    CHECK_OK(hem_op_start(op));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_EQ(calls.count, 5);
    CHECK_OK(hem_op_on_done(op, count_call, &calls));
    CHECK_EQ(calls.count, 6);
    CHECK_OK(hem_op_free(op));
    ARG(hem_op_on_done(NULL, count_call, &calls));
    CHECK_EQ(calls.count, 6);
}

/* Frees itself and starts the next, as long as there is one. */
static void next_link(hem_op *op, hem_status status, void *arg) {
    struct calls *calls = arg;

    calls->count++;
    calls->status = status;
    hem_op_free(op);
    calls->op = NULL;
    if (status != HEM_OK || calls->count == CHAIN)
        return;
    calls->op = start(calls->rank, &calls->sum, calls->count);
    CHECK_OK(hem_op_on_done(calls->op, next_link, calls));
}

static void chain(struct rank *r) {
    struct calls calls = {.rank = r};
    int64_t limit = harness_now() + LIMIT;

    calls.op = start(r, &calls.sum, 0);
    CHECK_OK(hem_op_on_done(calls.op, next_link, &calls));
    while (calls.count < CHAIN) {
        CHECK(harness_now() < limit);
        CHECK_OK(hem_progress(r->world));
        sched_yield();
    }
    CHECK_EQ(calls.status, HEM_OK);
    CHECK_EQ(calls.sum.got, (CHAIN - 1) * r->size);
}

static void start_other_twice(hem_op *op, hem_status status, void *arg) {
    struct calls *calls = arg;

    (void)op;
    calls->count++;
    calls->status = status;
    CHECK_OK(hem_op_start(calls->other));
    /* Alone, it is done at once, and its own callback waits for this one to end. */
    if (calls->rank->size == 1)
        CHECK_OK(hem_op_start(calls->other));
}

/* A callback that starts another persistent operation again before that one's callback came. */
static void restart_in_callback(struct rank *r) {
    struct calls first = {.rank = r};
    struct calls second = {.rank = r};
    hem_op *op = plan(r, &first.sum, 1);
    int64_t limit = harness_now() + HEM_SEC(5);
    int want = r->size == 1 ? 2 : 1;

    first.other = plan(r, &second.sum, 2);
    CHECK_OK(hem_op_on_done(op, start_other_twice, &first));
    CHECK_OK(hem_op_on_done(first.other, count_call, &second));
    CHECK_OK(hem_op_start(op));
    CHECK_OK(hem_op_wait(op, LIMIT));
    while (second.count < want && harness_now() < limit) {
        CHECK_OK(hem_progress(r->world));
        sched_yield();
    }
    CHECK_EQ(first.count, 1);
    CHECK_EQ(second.count, want);
    CHECK_OK(hem_op_free(op));
    CHECK_OK(hem_op_free(first.other));
    works(r);
}

/* The descriptor tells, with a progress thread that does the work. */
static void by_descriptor(struct rank *r) {
    struct sum sum;
    struct pollfd wait = {.events = POLLIN};
    uint64_t count = 0;
    hem_op *op;
    bool done = false;

    CHECK_OK(hem_world_event_fd(r->world, &wait.fd));
    CHECK_OK(hem_world_event_read(r->world, &count));
    CHECK_EQ(poll(&wait, 1, 0), 0);
    CHECK_OK(hem_progress_start(r->world));
    op = start(r, &sum, 5);
    CHECK_EQ(poll(&wait, 1, 20000), 1);
    CHECK_OK(hem_world_event_read(r->world, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(poll(&wait, 1, 0), 0);
    CHECK_OK(hem_op_test(op, &done));
    CHECK(done && sum.got == 5 * r->size);
    CHECK_OK(hem_progress_stop(r->world));
    CHECK_OK(hem_op_free(op));
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    int rounds = harness_rounds(10);

    for (int round = 0; round < rounds; round++) {
        harness_step("round", (uint64_t)round);
        callbacks(&r);
        chain(&r);
        restart_in_callback(&r);
        by_descriptor(&r);
    }
    harness_close(world, HEM_OK);
    return 0;
}
