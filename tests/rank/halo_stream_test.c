/*
 * Exchanges on streams keep stream order. Nothing blocks the host while a stream is held; a slow
 * reader on the stream sees old halos until the finish; start and finish may be on different streams,
 * or the finish a plain one, which waits for all that was put on streams; an exchange that is started
 * again is queued behind itself; from a stream that is not ordered behind it that is an error, with an
 * event it works.
 *
 * hem-test: ranks=1,2,3,4,5 modes=processes,threads timeout=90
 */
#include "halo_kit.h"

#include <sched.h>
#include <stdatomic.h>

struct rank {
    hem_world *world;
    hem_window *window;
    int me;
    int size;
    uint64_t seed;
    halo_grid g;
    halo_case c;
    halo_set s;
    hem_exchange *exchange;
    hem_stream *a;
    hem_stream *b;
    atomic_bool open;    /**< lets held streams go on */
    atomic_int overdue;  /**< they waited so long that the host must have been blocked */
    atomic_int mistakes; /**< of functions on streams */
};

/* Functions on streams. They may not leave by a failed check, so they count. */

static void hold(hem_status status, void *arg) {
    struct rank *r = arg;
    int64_t limit = harness_now() + LIMIT / 2;

    if (status != HEM_OK)
        atomic_fetch_add(&r->mistakes, 1);
    while (!atomic_load(&r->open)) {
        if (harness_now() > limit) {
            atomic_fetch_add(&r->overdue, 1);
            return;
        }
        harness_sleep_ms(1);
    }
}

/* A round that a function on a stream is about. */
struct task {
    struct rank *r;
    uint64_t round;
    int nap_ms;
};

static bool as_image(const halo_set *s) {
    for (size_t i = 0; i < s->count; i++)
        if (memcmp(s->fields[i].base, s->fields[i].image, s->fields[i].size) != 0)
            return false;
    return true;
}

/* New values for owners; halos get new poison, so that an early write is noticed. */
static void fill(hem_status status, void *arg) {
    struct task *t = arg;

    if (status != HEM_OK)
        atomic_fetch_add(&t->r->mistakes, 1);
    halo_set_fill(&t->r->s, t->round);
}

/* Look at everything for a while: nothing may change. */
static void read_slowly(hem_status status, void *arg) {
    struct task *t = arg;
    int64_t until = harness_now() + HEM_MS(t->nap_ms);

    if (status != HEM_OK)
        atomic_fetch_add(&t->r->mistakes, 1);
    do {
        if (!as_image(&t->r->s))
            atomic_fetch_add(&t->r->mistakes, 1);
        harness_sleep_ms(1);
    } while (harness_now() < until);
}

/* The halos must be there, and nothing else. */
static void check(hem_status status, void *arg) {
    struct task *t = arg;

    halo_set_expect(&t->r->s, NULL, t->round);
    if (status != HEM_OK || !as_image(&t->r->s))
        atomic_fetch_add(&t->r->mistakes, 1);
}

#define CALL(stream, fn, task) CHECK_OK(hem_stream_call((stream), (fn), (task)))

static void settle(struct rank *r) {
    atomic_store(&r->open, true);
    CHECK_OK(hem_stream_sync(r->a, LIMIT));
    CHECK_OK(hem_stream_sync(r->b, LIMIT));
    CHECK_EQ(atomic_load(&r->overdue), 0);
    CHECK_EQ(atomic_load(&r->mistakes), 0);
    atomic_store(&r->open, false);
}

/* The rows of the design. */

static void host_returns(struct rank *r, uint64_t round) {
    struct task t = {r, round, 0};
    bool done = true;

    CALL(r->a, hold, r);
    CALL(r->a, fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
    CALL(r->a, check, &t);
    CHECK_OK(hem_stream_test(r->a, &done));
    CHECK(!done);
    settle(r);
}

static void slow_reader(struct rank *r, uint64_t round) {
    struct task t = {r, round, r->me % 2 ? 0 : 15};

    CALL(r->a, fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    CALL(r->a, read_slowly, &t);
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
    CALL(r->a, check, &t);
    settle(r);
}

/* With an event a reader on the first stream is ordered before the finish on the other. */
static void other_stream(struct rank *r, uint64_t round, bool reader) {
    struct task t = {r, round, r->me % 2 ? 1 : 8};
    hem_event *event = NULL;

    CHECK_OK(hem_event_create(r->world, &event));
    CALL(r->a, hold, r);
    CALL(r->a, fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    if (reader) {
        CALL(r->a, read_slowly, &t);
        CHECK_OK(hem_event_record(event, r->a));
        CHECK_OK(hem_stream_wait(r->b, event));
    }
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->b));
    CALL(r->b, check, &t);
    if (r->me % 2)
        harness_sleep_ms(5);
    settle(r);
    CHECK_OK(hem_event_destroy(event));
}

static void plain_finish(struct rank *r, uint64_t round) {
    struct task t = {r, round, 3};

    CALL(r->a, fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    CHECK_OK(hem_exchange_finish(r->exchange, LIMIT));
    halo_set_expect(&r->s, NULL, round);
    halo_set_check(&r->s);
    settle(r);
}

static void let_go(void *arg) {
    struct rank *r = arg;

    harness_sleep_ms(10);
    atomic_store(&r->open, true);
}

static void finish_waits(struct rank *r, uint64_t round) {
    struct task t = {r, round, 0};
    harness_thread thread;

    CALL(r->a, hold, r);
    CALL(r->a, fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    CALL(r->b, hold, r);
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->b));
    CHECK_STATUS(hem_exchange_finish(r->exchange, HEM_MS(3)), HEM_ERR_TIMEOUT);
    harness_start(&thread, let_go, r);
    CHECK_OK(hem_exchange_finish(r->exchange, LIMIT));
    CHECK(atomic_load(&r->open));
    halo_set_expect(&r->s, NULL, round);
    halo_set_check(&r->s);
    harness_join(&thread, 1);
    settle(r);
}

/* Many rounds in one go, the host far ahead; in every other one nobody asks for the finish. */
static void behind_itself(struct rank *r, uint64_t round) {
    enum {
        TIMES = 20
    };
    struct task t[TIMES];

    CALL(r->a, hold, r);
    for (int i = 0; i < TIMES; i++) {
        bool finish = i % 4 != 1;

        t[i] = (struct task){r, round * 100 + (uint64_t)i, i == 7 ? 4 : 0};
        if (i % 4 != 2)
            CALL(r->a, fill, &t[i]);
        CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
        if (!finish)
            continue;
        CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
        if (i % 4 == 2)
            t[i].round--;
        CALL(r->a, check, &t[i]);
    }
    settle(r);
}

/* A run that nobody finishes is finished by the next start, though that one moves other fields. */
static void part_behind_part(struct rank *r, uint64_t round) {
    struct task t = {r, round, 2};
    hem_exchange_how how = {.struct_size = sizeof how, .fields = 1};

    CALL(r->a, hold, r);
    CALL(r->a, fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, &how, r->a));
    CALL(r->a, read_slowly, &t);
    how.fields = 2;
    CHECK_OK(hem_exchange_start_on(r->exchange, &how, r->a));
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
    CALL(r->a, check, &t);
    settle(r);
}

/* A plain start, and its finish on a stream. */
static void plain_start(struct rank *r, uint64_t round) {
    struct task t = {r, round, 0};

    fill(HEM_OK, &t);
    CHECK_OK(hem_exchange_start(r->exchange, NULL));
    CALL(r->a, hold, r);
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
    CALL(r->a, check, &t);
    settle(r);
}

static void unordered(struct rank *r, uint64_t round) {
    struct task t[2] = {{r, round * 2, 0}, {r, round * 2 + 1, 0}};
    hem_event *event = NULL;

    CHECK_OK(hem_event_create(r->world, &event));
    CALL(r->a, hold, r);
    CALL(r->a, fill, &t[0]);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    CHECK_STATUS(hem_exchange_start_on(r->exchange, NULL, r->b), HEM_ERR_ARG);
    if (round % 2)
        CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
    CHECK_STATUS(hem_exchange_start_on(r->exchange, NULL, r->b), HEM_ERR_ARG);
    CHECK_STATUS(hem_exchange_start(r->exchange, NULL), HEM_ERR_ARG);
    if (round % 2)
        CALL(r->a, check, &t[0]);
    CHECK_OK(hem_event_record(event, r->a));
    CHECK_OK(hem_stream_wait(r->b, event));
    CHECK_OK(hem_event_destroy(event));
    if (round % 2)
        CALL(r->b, fill, &t[1]);
    else
        t[1].round = t[0].round;
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->b));
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->b));
    CALL(r->b, check, &t[1]);
    settle(r);
    /* What is known to be done needs no event. */
    CALL(r->a, fill, &t[0]);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, r->a));
    CHECK_OK(hem_exchange_finish_on(r->exchange, r->a));
    CALL(r->a, check, &t[0]);
    settle(r);
}

/* Some ranks use streams, others do not. */
static void mixed_company(struct rank *r, uint64_t round) {
    struct task t = {r, round, 0};

    if ((r->me + (int)round) % 2) {
        slow_reader(r, round);
        return;
    }
    fill(HEM_OK, &t);
    CHECK_OK(hem_exchange_run(r->exchange, NULL, LIMIT));
    check(HEM_OK, &t);
    CHECK_EQ(atomic_load(&r->mistakes), 0);
}

static void wrong_calls(struct rank *r) {
    hem_exchange_how how = {.struct_size = sizeof how, .combine = 77};

    CHECK_STATUS(hem_exchange_start_on(r->exchange, &how, r->a), HEM_ERR_ARG);
    CHECK_STATUS(hem_exchange_start_on(r->exchange, NULL, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_exchange_finish_on(r->exchange, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_exchange_start_on(NULL, NULL, r->a), HEM_ERR_ARG);
}

/* Nothing is asked for, everything is given up; the run happens all the same. */
static void dropped(struct rank *r, uint64_t round) {
    struct task t = {r, round, 0};
    hem_stream *streams[2] = {NULL, NULL};

    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_stream_create(r->world, &streams[i]));
    CALL(streams[0], fill, &t);
    CHECK_OK(hem_exchange_start_on(r->exchange, NULL, streams[0]));
    CHECK_OK(hem_exchange_finish_on(r->exchange, streams[1]));
    CHECK_OK(hem_exchange_destroy(r->exchange));
    CHECK_OK(hem_stream_destroy(streams[0]));
    CHECK_OK(hem_stream_destroy(streams[1]));
    check(HEM_OK, &t);
    CHECK_EQ(atomic_load(&r->mistakes), 0);
}

static void make(struct rank *r, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, 0);
    harness_rng own = harness_rng_of(r->seed, number, 1 + (uint64_t)r->me);
    hem_pattern *pattern;

    r->g =
        halo_grid_random(1 + (int)harness_below(&rng, 3), 20, 3 * (size_t)r->size, r->size, &rng);
    r->c = halo_grid_case(&r->g, r->size);
    pattern = halo_grid_pattern(r->world, &r->g, &r->c);
    r->s = (halo_set){.world = r->world};
    for (int i = 0; i < 2; i++) {
        halo_spec spec = halo_spec_random(&rng, 3);

        halo_set_add(&r->s, pattern, &r->c, &spec, (int)harness_below(&own, HALO_LAYOUTS),
                     HALO_MIXED, &own);
    }
    r->exchange = halo_set_exchange(&r->s);
    hem_pattern_destroy(pattern);
}

static void all_rows(struct rank *r, uint64_t number) {
    make(r, number);
    CHECK_STATUS(hem_exchange_finish_on(r->exchange, r->a), HEM_ERR_ARG);
    wrong_calls(r);
    host_returns(r, 1);
    slow_reader(r, 2);
    other_stream(r, 3, false);
    other_stream(r, 30, true);
    plain_finish(r, 4);
    finish_waits(r, 5);
    behind_itself(r, 6);
    part_behind_part(r, 40);
    plain_start(r, 41);
    unordered(r, 7);
    unordered(r, 8);
    for (uint64_t i = 9; i < 15; i++)
        mixed_company(r, i);
    dropped(r, 20);
    halo_set_free(&r->s);
    halo_case_free(&r->c);
    halo_grid_free(&r->g);
}

int rank_main(hem_world *world) {
    struct rank *r = calloc(1, sizeof *r);

    CHECK(r != NULL);
    r->world = world;
    r->me = hem_world_rank(world);
    r->size = hem_world_size(world);
    r->seed = harness_seed(world);
    CHECK_OK(hem_stream_create(world, &r->a));
    CHECK_OK(hem_stream_create(world, &r->b));
    for (int i = 0; i < harness_rounds(16); i++) {
        harness_step("streams", (uint64_t)i);
        all_rows(r, (uint64_t)i);
    }
    CHECK_OK(hem_stream_destroy(r->a));
    CHECK_OK(hem_stream_destroy(r->b));
    free(r);
    harness_close(world, HEM_OK);
    return 0;
}
