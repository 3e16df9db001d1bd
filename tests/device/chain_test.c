/*
 * Callbacks of operations on device memory start the next one: collectives and exchanges on one piece of
 * memory in a long chain, and collectives of the host among them, which are made in one callback and freed
 * in their own. Nobody waits in between, with a progress thread or without one. A callback may start its own
 * operation again, and another one; one that is under way is refused, and nothing is harmed by that; and it
 * may put a run on a stream.
 *
 * Operations on device memory are made before and freed behind, by all ranks together: not in callbacks.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=90
 */
#include "coll_kit.h"
#include "halo_ring.h"

#include <sched.h>

#define LINKS 50

/* What a link does, in memory that they share. None of them commutes with another one. */
enum {
    SUM_SHORT, /* of words from 0 on */
    SUM_LONG,  /* of words from LONG_AT on */
    EXCHANGE,  /* words 0 to RING_CELLS + 1 are a ring's field */
    SUM_HOST,  /* of one number, made here and freed in the callback */
    KINDS
};

#define SHORT_COUNT 13u
#define LONG_AT     10u
#define LONG_COUNT  9000u
#define WORDS       (LONG_AT + LONG_COUNT)

typedef struct test {
    hem_world *world;
    ring ring;
    uint64_t *memory;
    uint64_t *model; /* what all ranks have, one behind the other */
    hem_exchange *exchange;
    hem_op *ops[KINDS]; /* the last one: while it is under way */
    pthread_mutex_t lock;
    int kinds[LINKS];
    int length; /* links that are to be; 0: what was done before the chain is called back, too */
    int done;
    hem_status status; /* the first that was not good */
    int64_t given;     /* of a link of the host */
    int64_t got;
} test;

static uint64_t *of_rank(const test *t, int rank) {
    return t->model + (size_t)rank * WORDS;
}

/* The model. */

static void model_sum(const test *t, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        uint64_t sum = 0;
        for (int r = 0; r < t->ring.size; r++)
            sum += of_rank(t, r)[i];
        for (int r = 0; r < t->ring.size; r++)
            of_rank(t, r)[i] = sum;
    }
}

static void model_exchange(const test *t) {
    int size = t->ring.size;
    for (int r = 0; r < size; r++) {
        of_rank(t, r)[0] = of_rank(t, (r + size - 1) % size)[RING_CELLS];
        of_rank(t, r)[RING_CELLS + 1] = of_rank(t, (r + 1) % size)[1];
    }
}

static void model_run(const test *t, int kind) {
    if (kind == SUM_SHORT)
        model_sum(t, 0, SHORT_COUNT);
    else if (kind == SUM_LONG)
        model_sum(t, LONG_AT, LONG_COUNT);
    else if (kind == EXCHANGE)
        model_exchange(t);
}

static void fill(const test *t, uint64_t seed) {
    for (int r = 0; r < t->ring.size; r++) {
        harness_rng rng = harness_rng_of(seed, 1, (uint64_t)r);
        for (size_t i = 0; i < WORDS; i++)
            of_rank(t, r)[i] = harness_random(&rng);
    }
    device_copy(t->memory, of_rank(t, t->ring.me), WORDS * 8);
}

static void check(const test *t) {
    uint64_t *words = (uint64_t *)malloc(WORDS * 8);
    CHECK(words != NULL);
    device_copy(words, t->memory, WORDS * 8);
    for (size_t i = 0; i < WORDS; i++)
        if (words[i] != of_rank(t, t->ring.me)[i])
            harness_fail(__FILE__, __LINE__, "word %zu is %#llx, not %#llx", i,
                         (unsigned long long)words[i],
                         (unsigned long long)of_rank(t, t->ring.me)[i]);
    free(words);
}

/* Chains. Callbacks are of any thread: they take notes, and who waits looks at them. */

static void note(test *t, hem_status status) {
    pthread_mutex_lock(&t->lock);
    if (t->status == HEM_OK)
        t->status = status;
    pthread_mutex_unlock(&t->lock);
}

static void next_link(hem_op *op, hem_status status, void *arg);

static hem_status start_host(test *t, int link) {
    hem_coll c;
    memset(&c, 0, sizeof c);
    t->given = link;
    t->got = -1;
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_I64;
    c.op = HEM_SUM;
    c.send = &t->given;
    c.recv = &t->got;
    c.count = 1;
    hem_status status = hem_coll_start(t->world, &c, &t->ops[SUM_HOST]);
    return status == HEM_OK ? hem_op_on_done(t->ops[SUM_HOST], next_link, t) : status;
}

static hem_status start_link(test *t, int link) {
    int kind = t->kinds[link];
    if (kind == EXCHANGE)
        return hem_exchange_start(t->exchange, NULL);
    return kind == SUM_HOST ? start_host(t, link) : hem_op_start(t->ops[kind]);
}

/* One link is done: the next one is started, if there is one and all is well. */
static void next_link(hem_op *op, hem_status status, void *arg) {
    test *t = (test *)arg;
    if (t->length == 0)
        return;
    pthread_mutex_lock(&t->lock);
    int link = t->done;
    bool of_host = t->kinds[link] == SUM_HOST;
    pthread_mutex_unlock(&t->lock);
    if (status == HEM_OK && of_host && t->got != (int64_t)link * t->ring.size)
        status = HEM_ERR_MISMATCH;
    if (of_host)
        (void)hem_op_free(op);
    else if (op != t->ops[t->kinds[link]])
        status = HEM_ERR_MISMATCH;
    note(t, status);
    /* From here on the next one may be done, in another thread. */
    pthread_mutex_lock(&t->lock);
    t->done = link + 1;
    pthread_mutex_unlock(&t->lock);
    if (status == HEM_OK && link + 1 < t->length)
        note(t, start_link(t, link + 1));
}

static int links_done(test *t) {
    pthread_mutex_lock(&t->lock);
    hem_status status = t->status;
    int done = t->done;
    pthread_mutex_unlock(&t->lock);
    CHECK_EQ(status, HEM_OK);
    return done;
}

static void set_callbacks(test *t, hem_op_fn fn, void *arg) {
    for (int kind = 0; kind < SUM_HOST; kind++)
        CHECK_OK(hem_op_on_done(t->ops[kind], NULL, NULL));
    for (int kind = 0; kind < SUM_HOST && fn != NULL; kind++)
        CHECK_OK(hem_op_on_done(t->ops[kind], fn, arg));
}

static void chain(test *t, uint64_t seed, bool thread) {
    harness_rng rng = harness_rng_of(seed, 2, 0);
    int64_t limit = harness_now() + LIMIT;
    fill(t, seed);
    t->length = 0;
    set_callbacks(t, next_link, t);
    t->length = LINKS;
    t->done = 0;
    for (int i = 0; i < LINKS; i++) {
        t->kinds[i] = (int)harness_below(&rng, KINDS);
        model_run(t, t->kinds[i]);
    }
    if (thread)
        CHECK_OK(hem_progress_start(t->world));
    CHECK_OK(start_link(t, 0));
    while (links_done(t) < LINKS) {
        CHECK(harness_now() < limit);
        if (thread)
            harness_sleep_ms(1);
        else
            CHECK_OK(hem_progress(t->world));
        sched_yield();
    }
    if (thread)
        CHECK_OK(hem_progress_stop(t->world));
    check(t);
}

/* Starting again, in a callback. */

typedef struct again {
    test *t;
    int first; /* calls of the first and of the other one */
    int other;
    bool good;
} again;

static bool is_refused(hem_status status) {
    return status == HEM_ERR_ARG && strstr(hem_last_error(), "under way") != NULL;
}

/* The short one starts itself twice, then the long one and the exchange, which cannot be started twice. */
static void start_others(hem_op *op, hem_status status, void *arg) {
    again *a = (again *)arg;
    const test *t = a->t;
    if (op != t->ops[SUM_SHORT]) {
        a->other++;
        a->good = a->good && status == HEM_OK;
        return;
    }
    a->first++;
    a->good = a->good && status == HEM_OK;
    if (a->first < 3) {
        a->good = a->good && hem_op_start(op) == HEM_OK;
        a->good = a->good && is_refused(hem_op_start(op));
        return;
    }
    a->good = a->good && hem_op_start(t->ops[SUM_LONG]) == HEM_OK;
    a->good = a->good && is_refused(hem_op_start(t->ops[SUM_LONG]));
    a->good = a->good && is_refused(hem_op_start_on(t->ops[SUM_LONG], t->ring.handle));
}

static void restart(test *t, uint64_t seed) {
    again a = {t, 0, 0, true};
    int64_t limit = harness_now() + LIMIT;
    fill(t, seed);
    for (int i = 0; i < 3; i++)
        model_run(t, SUM_SHORT);
    model_run(t, SUM_LONG);
    set_callbacks(t, NULL, NULL);
    CHECK_OK(hem_op_start(t->ops[SUM_SHORT]));
    CHECK_OK(hem_op_on_done(t->ops[SUM_LONG], start_others, &a));
    a.other = 0; /* it may have been done before, and then called at once */
    CHECK_OK(hem_op_on_done(t->ops[SUM_SHORT], start_others, &a));
    while (a.other == 0) {
        CHECK(a.good && harness_now() < limit);
        CHECK_OK(hem_progress(t->world));
        sched_yield();
    }
    CHECK(a.good);
    CHECK_EQ(a.first, 3);
    CHECK_EQ(a.other, 1);
    set_callbacks(t, NULL, NULL);
    check(t);
}

/* A callback that puts the other ones on a stream. */
static void put_on_stream(hem_op *op, hem_status status, void *arg) {
    again *a = (again *)arg;
    const test *t = a->t;
    (void)op;
    a->first++;
    a->good = status == HEM_OK && hem_op_start_on(t->ops[SUM_LONG], t->ring.handle) == HEM_OK &&
              hem_exchange_start_on(t->exchange, NULL, t->ring.handle) == HEM_OK &&
              hem_exchange_finish_on(t->exchange, t->ring.handle) == HEM_OK &&
              hem_op_start_on(t->ops[SUM_LONG], t->ring.handle) == HEM_OK;
}

static void streams(test *t, uint64_t seed) {
    again a = {t, 0, 0, false};
    fill(t, seed);
    model_run(t, SUM_SHORT);
    model_run(t, SUM_LONG);
    model_run(t, EXCHANGE);
    model_run(t, SUM_LONG);
    set_callbacks(t, NULL, NULL);
    CHECK_OK(hem_op_start(t->ops[SUM_SHORT]));
    CHECK_OK(hem_op_on_done(t->ops[SUM_SHORT], put_on_stream, &a));
    CHECK_OK(hem_op_wait(t->ops[SUM_SHORT], LIMIT));
    while (a.first == 0)
        CHECK_OK(hem_progress(t->world));
    CHECK(a.first == 1 && a.good);
    device_stream_sync(t->ring.stream);
    CHECK_OK(hem_op_status(t->ops[SUM_LONG]));
    CHECK_OK(hem_exchange_status(t->exchange));
    set_callbacks(t, NULL, NULL);
    check(t);
}

static void make(test *t, hem_world *world) {
    memset(t, 0, sizeof *t);
    CHECK(pthread_mutex_init(&t->lock, NULL) == 0);
    t->world = world;
    t->ring = ring_make(world);
    t->memory = (uint64_t *)device_alloc(WORDS * 8);
    t->model = (uint64_t *)calloc((size_t)t->ring.size * WORDS, 8);
    CHECK(t->model != NULL);
    hem_coll brief = coll_kit_sum(t->memory, SHORT_COUNT);
    hem_coll lengthy = coll_kit_sum(t->memory + LONG_AT, LONG_COUNT);
    t->exchange = ring_bind(&t->ring, t->memory, 1, 0);
    CHECK_OK(hem_coll_plan(world, &brief, &t->ops[SUM_SHORT]));
    CHECK_OK(hem_coll_plan(world, &lengthy, &t->ops[SUM_LONG]));
    t->ops[EXCHANGE] = hem_exchange_op(t->exchange);
}

static void unmake(test *t) {
    CHECK_OK(hem_op_free(t->ops[SUM_LONG]));
    CHECK_OK(hem_op_free(t->ops[SUM_SHORT]));
    CHECK_OK(hem_exchange_destroy(t->exchange));
    device_free(t->memory);
    free(t->model);
    ring_free(&t->ring);
    pthread_mutex_destroy(&t->lock);
}

int rank_main(hem_world *world) {
    test t;
    uint64_t seed = harness_seed(world);
    make(&t, world);
    for (uint64_t round = 0; round < (uint64_t)harness_rounds(4); round++) {
        harness_step("chain", round);
        chain(&t, seed + round, round % 2 != 0);
        harness_step("restart", round);
        restart(&t, seed + round);
        harness_step("streams", round);
        streams(&t, seed + round);
    }
    unmake(&t);
    harness_close(world, HEM_OK);
    return 0;
}
