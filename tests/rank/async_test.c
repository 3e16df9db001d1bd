/*
 * The progress thread moves started operations on without any call, pauses, resumes and stops;
 * callbacks are called once for each time that an operation gets done, may start new operations and
 * free their own; the event descriptor becomes readable and its count is right.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    BIG = 900000
};

struct rank {
    hem_world *world;
    hem_window *window;
    int me;
    int right;
    int left;
};

/* Wait for something that other threads do, without calling the library. */
#define AWAIT(cond)                                                                                \
    do {                                                                                           \
        int64_t limit_ = harness_now() + LIMIT;                                                    \
        while (!(cond)) {                                                                          \
            CHECK(harness_now() < limit_);                                                         \
            harness_sleep_ms(0);                                                                   \
            sched_yield();                                                                         \
        }                                                                                          \
    } while (0)

/* What callbacks write down. */
struct diary {
    atomic_int calls;
    atomic_int bad; /* with another status than wanted */
    hem_status want;
};

static void note(hem_op *op, hem_status status, void *arg) {
    struct diary *d = arg;

    if (!op || status != d->want)
        atomic_fetch_add(&d->bad, 1);
    atomic_fetch_add(&d->calls, 1);
}

/* Starting, pausing, resuming and stopping. */

static void wrong_order(struct rank *r) {
    CHECK_STATUS(hem_progress_pause(r->world), HEM_ERR_ARG);
    CHECK_STATUS(hem_progress_resume(r->world), HEM_ERR_ARG);
    CHECK_STATUS(hem_progress_stop(r->world), HEM_ERR_ARG);
    CHECK_OK(hem_progress_start(r->world));
    CHECK_STATUS(hem_progress_start(r->world), HEM_ERR_ARG);
    CHECK_OK(hem_progress_pause(r->world));
    CHECK_STATUS(hem_progress_start(r->world), HEM_ERR_ARG);
    CHECK_OK(hem_progress_resume(r->world));
    CHECK_OK(hem_progress_pause(r->world));
    CHECK_OK(hem_progress_stop(r->world));
    CHECK_STATUS(hem_progress_stop(r->world), HEM_ERR_ARG);
    for (int i = 0; i < harness_rounds(100); i++) {
        CHECK_OK(hem_progress_start(r->world));
        if (i % 3 == 0)
            CHECK_OK(hem_progress_pause(r->world));
        CHECK_OK(hem_progress_stop(r->world));
    }
}

/* Large messages move while the rank does nothing. */
static void without_calls(struct rank *r, uint64_t number) {
    struct diary d = {.want = HEM_OK};
    chan_buffer out = chan_make(BIG);
    chan_buffer in = chan_make(BIG);
    hem_op *ops[2] = {NULL, NULL};

    chan_load(&out, BIG, 3, chan_tag(r->me, r->right, 0, number));
    chan_place(&in, BIG, 4);
    CHECK_OK(hem_recv_start(r->world, r->left, 0, in.at, BIG, &ops[0]));
    CHECK_OK(hem_op_on_done(ops[0], note, &d));
    CHECK_OK(hem_send_start(r->world, r->right, 0, out.at, BIG, &ops[1]));
    CHECK_OK(hem_op_on_done(ops[1], note, &d));
    AWAIT(atomic_load(&d.calls) == 2);
    CHECK_EQ(d.bad, 0);
    CHECK_LOAD(&in, chan_tag(r->left, r->me, 0, number));
    CHECK_EQ(hem_op_bytes(ops[0]), BIG);
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
    chan_free(&in);
    chan_free(&out);
}

/* While it is paused nothing gets done; then it does. */
static void paused(struct rank *r) {
    struct diary d = {.want = HEM_OK};
    uint64_t word = 0;
    uint64_t mine = (uint64_t)r->me;
    hem_op *op = NULL;

    CHECK_OK(hem_progress_pause(r->world));
    CHECK_OK(hem_recv_start(r->world, r->left, 1, &word, 8, &op));
    CHECK_OK(hem_op_on_done(op, note, &d));
    harness_barrier(r->window);
    CHECK_OK(hem_send(r->world, r->right, 2, &mine, 8, LIMIT));
    CHECK_EQ(hem_op_bytes(op), 0);
    harness_barrier(r->window);
    CHECK_OK(hem_progress_resume(r->world));
    CHECK_OK(hem_send(r->world, r->right, 1, &mine, 8, LIMIT));
    AWAIT(atomic_load(&d.calls) == 1);
    CHECK_EQ(word, r->left);
    CHECK_OK(hem_recv(r->world, r->left, 2, &word, 8, NULL, LIMIT));
    CHECK_EQ(word, r->left);
    FREE_OP(op);
}

/* The thread stays out of the library while it is paused: what only it could do is not done. */
static void paused_means_paused(struct rank *r) {
    struct diary d = {.want = HEM_OK};
    uint64_t word = 0;
    uint64_t mine = 77;
    hem_op *op = NULL;

    CHECK_OK(hem_recv_start(r->world, r->left, 3, &word, 8, &op));
    CHECK_OK(hem_op_on_done(op, note, &d));
    CHECK_OK(hem_progress_pause(r->world));
    harness_barrier(r->window);
    CHECK_OK(hem_send(r->world, r->right, 3, &mine, 8, LIMIT));
    harness_barrier(r->window);
    if (r->right != r->me) {
        int before = atomic_load(&d.calls);

        harness_sleep_ms(10);
        CHECK_EQ(atomic_load(&d.calls), before);
    }
    CHECK_OK(hem_progress_resume(r->world));
    AWAIT(atomic_load(&d.calls) == 1);
    CHECK_EQ(word, 77);
    FREE_OP(op);
}

/* Callbacks that start new operations. */

struct chain {
    struct rank *r;
    uint64_t rounds;
    uint64_t sent;
    uint64_t received;
    atomic_bool sends_over;
    atomic_bool recvs_over;
    atomic_int failed;
    chan_buffer out;
    chan_buffer in;
    harness_rng out_rng;
    harness_rng in_rng;
};

static void next_send(struct chain *c);
static void next_recv(struct chain *c);

static void sent(hem_op *op, hem_status status, void *arg) {
    struct chain *c = arg;

    hem_op_free(op);
    if (status != HEM_OK)
        atomic_fetch_add(&c->failed, 1);
    if (status == HEM_OK && c->sent < c->rounds)
        next_send(c);
    else
        atomic_store(&c->sends_over, true);
}

static void received(hem_op *op, hem_status status, void *arg) {
    struct chain *c = arg;
    uint64_t tag = chan_tag(c->r->left, c->r->me, 4, c->received - 1);

    if (status == HEM_OK && hem_op_bytes(op) != c->in.bytes)
        status = HEM_ERR_MISMATCH;
    /* A check that fails may not jump out of a callback. */
    if (status == HEM_OK && c->in.bytes >= 8) {
        uint8_t want[8];

        chan_fill(want, 8, tag);
        if (memcmp(want, c->in.at, 8) != 0)
            status = HEM_ERR_MISMATCH;
    }
    hem_op_free(op);
    if (status != HEM_OK)
        atomic_fetch_add(&c->failed, 1);
    if (status == HEM_OK && c->received < c->rounds)
        next_recv(c);
    else
        atomic_store(&c->recvs_over, true);
}

static void start_failed(struct chain *c) {
    atomic_fetch_add(&c->failed, 1);
    atomic_store(&c->sends_over, true);
    atomic_store(&c->recvs_over, true);
}

static void next_send(struct chain *c) {
    size_t bytes = chan_random_bytes(&c->out_rng, 100000);
    hem_op *op = NULL;

    chan_load(&c->out, bytes, c->sent % 16, chan_tag(c->r->me, c->r->right, 4, c->sent));
    c->sent++;
    if (hem_send_start(c->r->world, c->r->right, 4, c->out.at, bytes, &op) != HEM_OK ||
        hem_op_on_done(op, sent, c) != HEM_OK)
        start_failed(c);
}

static void next_recv(struct chain *c) {
    size_t bytes = chan_random_bytes(&c->in_rng, 100000);
    hem_op *op = NULL;

    chan_place(&c->in, bytes, c->received % 16);
    c->received++;
    if (hem_recv_start(c->r->world, c->r->left, 4, c->in.at, bytes, &op) != HEM_OK ||
        hem_op_on_done(op, received, c) != HEM_OK)
        start_failed(c);
}

static bool chain_over(struct chain *c) {
    return atomic_load(&c->sends_over) && atomic_load(&c->recvs_over);
}

/* With `thread`, only the progress thread moves it; else this one does. */
static void chains(struct rank *r, bool thread, uint64_t seed, int rounds) {
    struct chain c = {
        .r = r,
        .rounds = (uint64_t)rounds,
        .out = chan_make(100000),
        .in = chan_make(100000),
        .out_rng = harness_rng_of(seed, (uint64_t)r->me, 1),
        .in_rng = harness_rng_of(seed, (uint64_t)r->left, 1),
    };
    int64_t limit = harness_now() + LIMIT;

    harness_step("chains", thread);
    next_recv(&c);
    next_send(&c);
    while (!chain_over(&c)) {
        CHECK(harness_now() < limit);
        if (thread)
            sched_yield();
        else
            CHECK_OK(hem_progress(r->world));
    }
    CHECK_EQ(c.failed, 0);
    CHECK_EQ(c.sent, rounds);
    CHECK_EQ(c.received, rounds);
    chan_free(&c.in);
    chan_free(&c.out);
}

/* Callbacks at odd times. */

static void free_own(hem_op *op, hem_status status, void *arg) {
    note(op, status, arg);
    hem_op_free(op);
}

static hem_op *self_send(struct rank *r, uint64_t *words) {
    hem_op *op = NULL;

    CHECK_OK(hem_recv_start(r->world, r->me, 5, &words[1], 8, &op));
    CHECK_OK(hem_send(r->world, r->me, 5, &words[0], 8, LIMIT));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_EQ(words[1], words[0]);
    return op;
}

static void late_and_removed(struct rank *r) {
    struct diary d = {.want = HEM_OK};
    struct diary none = {.want = HEM_OK};
    uint64_t words[2] = {4711, 0};
    hem_op *op = self_send(r, words);

    CHECK_OK(hem_op_on_done(op, note, &d));
    AWAIT(atomic_load(&d.calls) == 1);
    CHECK_OK(hem_op_on_done(op, NULL, NULL));
    CHECK_OK(hem_op_on_done(op, free_own, &d));
    AWAIT(atomic_load(&d.calls) == 2);
    CHECK_OK(hem_recv_start(r->world, r->me, 5, &words[1], 8, &op));
    CHECK_OK(hem_op_on_done(op, note, &none));
    CHECK_OK(hem_op_on_done(op, NULL, NULL));
    CHECK_OK(hem_send(r->world, r->me, 5, &words[0], 8, LIMIT));
    CHECK_OK(hem_op_wait(op, LIMIT));
    FREE_OP(op);
    CHECK_OK(hem_recv_start(r->world, r->me, 5, &words[1], 8, &op));
    CHECK_OK(hem_op_on_done(op, note, &none));
    FREE_OP(op);
    harness_sleep_ms(1);
    CHECK_EQ(none.calls, 0);
    CHECK_EQ(d.bad, 0);
}

/* A persistent operation's callback is called after each run, whoever starts the next one. */
static void each_run(struct rank *r, int rounds) {
    struct diary d = {.want = HEM_OK};
    uint64_t words[2] = {0, 0};
    hem_op *ops[2] = {NULL, NULL};

    CHECK_OK(hem_recv_plan(r->world, r->left, 6, &words[1], 8, &ops[0]));
    CHECK_OK(hem_send_plan(r->world, r->right, 6, &words[0], 8, &ops[1]));
    CHECK_OK(hem_op_on_done(ops[0], note, &d));
    CHECK_OK(hem_op_on_done(ops[1], note, &d));
    for (int i = 0; i < rounds; i++) {
        harness_step("run", (uint64_t)i);
        words[0] = (uint64_t)i;
        CHECK_OK(hem_op_start(ops[i % 2]));
        CHECK_OK(hem_op_start(ops[1 - i % 2]));
        CHECK_OK(hem_op_wait_all(ops, 2, LIMIT));
        CHECK_EQ(words[1], i);
    }
    AWAIT(atomic_load(&d.calls) >= 2 * rounds);
    harness_sleep_ms(1);
    CHECK_EQ(d.calls, 2 * rounds);
    CHECK_EQ(d.bad, 0);
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

struct again {
    atomic_int runs;
    int rounds;
    atomic_int failed;
};

static void start_again(hem_op *op, hem_status status, void *arg) {
    struct again *a = arg;

    if (status != HEM_OK)
        atomic_fetch_add(&a->failed, 1);
    if (atomic_fetch_add(&a->runs, 1) + 1 < a->rounds && hem_op_start(op) != HEM_OK)
        atomic_fetch_add(&a->failed, 1);
}

/* Started again by its own callback. */
static void by_itself(struct rank *r, bool thread, int rounds) {
    struct again all[2] = {{.rounds = rounds}, {.rounds = rounds}};
    uint8_t data[2][50] = {{0}};
    hem_op *ops[2] = {NULL, NULL};
    int64_t limit = harness_now() + LIMIT;

    CHECK_OK(hem_recv_plan(r->world, r->left, 7, data[0], 50, &ops[0]));
    CHECK_OK(hem_send_plan(r->world, r->right, 7, data[1], 50, &ops[1]));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hem_op_on_done(ops[i], start_again, &all[i]));
        CHECK_OK(hem_op_start(ops[i]));
    }
    while (atomic_load(&all[0].runs) < rounds || atomic_load(&all[1].runs) < rounds) {
        CHECK(harness_now() < limit);
        if (thread)
            sched_yield();
        else
            CHECK_OK(hem_progress(r->world));
    }
    CHECK(all[0].failed == 0 && all[1].failed == 0);
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    struct rank r = {
        .world = world,
        .window = harness_window(world, 64),
        .me = hem_world_rank(world),
        .right = harness_right(world),
        .left = harness_left(world),
    };

    wrong_order(&r);
    chains(&r, false, seed, harness_rounds(600));
    by_itself(&r, false, harness_rounds(2000));
    each_run(&r, harness_rounds(1000));
    late_and_removed(&r);
    CHECK_OK(hem_progress_start(world));
    for (uint64_t i = 0; i < 10; i++)
        without_calls(&r, i);
    paused(&r);
    paused_means_paused(&r);
    chains(&r, true, seed + 1, harness_rounds(600));
    by_itself(&r, true, harness_rounds(2000));
    each_run(&r, harness_rounds(4000));
    late_and_removed(&r);
    harness_barrier(r.window);
    harness_destroy(r.window);
    /* The thread is still there: closing stops it. */
    harness_close(world, HEM_OK);
    return 0;
}
