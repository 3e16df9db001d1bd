/*
 * What is put on a stream is done in order while the caller goes on, also while the stream is held;
 * an event that is recorded again or destroyed does not move those who wait already; waits end with
 * their time limit; a function that would wait for itself is told; closing the world does what is
 * left, and handles outlive it.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum {
    MANY = 1000
};

#define ARG(call)    CHECK_STATUS(call, HEM_ERR_ARG)
#define CLOSED(call) CHECK_STATUS(call, HEM_ERR_CLOSED)

/* What functions on streams write; several may share one. */
struct log {
    atomic_int calls;
    atomic_int bad; /* out of order, or with a bad status */
};

/* One call: its number among those that share a log. */
struct entry {
    struct log *log;
    int number;
};

static void note(hem_status status, void *arg) {
    struct entry *e = arg;

    if (status != HEM_OK || atomic_fetch_add(&e->log->calls, 1) != e->number)
        atomic_fetch_add(&e->log->bad, 1);
}

/* A function that holds its stream until it is let go. */
struct gate {
    atomic_int begun;
    atomic_int open;
};

static void hold(hem_status status, void *arg) {
    struct gate *g = arg;
    int64_t limit = harness_now() + LIMIT;

    (void)status;
    atomic_store(&g->begun, 1);
    while (!atomic_load(&g->open) && harness_now() < limit)
        sched_yield();
}

static hem_stream *stream_of(hem_world *world) {
    hem_stream *stream = NULL;

    CHECK_OK(hem_stream_create(world, &stream));
    return stream;
}

static hem_event *event_of(hem_world *world) {
    hem_event *event = NULL;

    CHECK_OK(hem_event_create(world, &event));
    return event;
}

static bool is_idle(hem_stream *stream) {
    bool done = false;

    CHECK_OK(hem_stream_test(stream, &done));
    return done;
}

static bool is_done(hem_event *event) {
    bool done = false;

    CHECK_OK(hem_event_test(event, &done));
    return done;
}

/* Nothing that is put on a held stream waits for it. */
static void held(hem_world *world) {
    static _Thread_local struct entry entries[MANY];
    hem_stream *stream = stream_of(world);
    hem_stream *second = stream_of(world);
    hem_event *event = event_of(world);
    struct gate gate = {0};
    struct log log = {0};
    int64_t start = harness_now();

    CHECK(is_idle(stream));
    CHECK_OK(hem_stream_call(stream, hold, &gate));
    for (int i = 0; i < MANY; i++) {
        entries[i] = (struct entry){&log, i};
        CHECK_OK(hem_stream_call(i % 100 < 99 ? stream : second, note, &entries[i]));
        if (i % 100 == 98) {
            CHECK_OK(hem_event_record(event, stream));
            CHECK_OK(hem_stream_wait(second, event));
        } else if (i % 100 == 99) {
            CHECK_OK(hem_event_record(event, second));
            CHECK_OK(hem_stream_wait(stream, event));
        }
    }
    CHECK(harness_now() - start < HEM_MS(100) + harness_slack());
    CHECK(!is_idle(stream) && !is_idle(second) && !is_done(event));
    start = harness_now();
    CHECK_STATUS(hem_stream_sync(second, HEM_MS(5)), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_event_sync(event, HEM_MS(5)), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_stream_sync(stream, 0), HEM_ERR_TIMEOUT);
    CHECK(harness_now() - start >= HEM_MS(10));
    CHECK(harness_now() - start < HEM_MS(10) + harness_slack());
    CHECK_EQ(log.calls, 0);
    atomic_store(&gate.open, 1);
    CHECK_OK(hem_event_sync(event, LIMIT));
    CHECK_EQ(log.calls, MANY);
    CHECK_EQ(log.bad, 0);
    CHECK_OK(hem_stream_sync(stream, LIMIT));
    CHECK_OK(hem_stream_sync(second, LIMIT));
    CHECK(is_idle(stream) && is_idle(second) && is_done(event));
    CHECK_OK(hem_event_destroy(event));
    CHECK_OK(hem_stream_destroy(second));
    CHECK_OK(hem_stream_destroy(stream));
}

static int64_t thread_time(void) {
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct nap {
    int64_t used; /* by the stream's thread when the function began */
};

static void nap(hem_status status, void *arg) {
    struct nap *n = arg;

    (void)status;
    n->used = thread_time();
    harness_sleep_ms(150);
}

/* Neither who waits for a stream, nor a stream that waits for another or for work, burns a core. */
static void waits_sleep(hem_world *world) {
    hem_stream *streams[2] = {stream_of(world), stream_of(world)};
    hem_event *event = event_of(world);
    struct nap naps[3] = {{0}, {0}, {0}};
    int64_t start = thread_time();

    CHECK_OK(hem_stream_call(streams[1], nap, &naps[0]));
    CHECK_OK(hem_stream_call(streams[0], nap, &naps[1]));
    CHECK_OK(hem_stream_call(streams[0], nap, &naps[1]));
    CHECK_OK(hem_event_record(event, streams[0]));
    CHECK_OK(hem_stream_wait(streams[1], event));
    CHECK_OK(hem_stream_call(streams[1], nap, &naps[2]));
    CHECK_OK(hem_event_sync(event, LIMIT));
    CHECK_OK(hem_stream_sync(streams[1], LIMIT));
    CHECK(thread_time() - start < HEM_MS(60));
    CHECK(naps[2].used - naps[0].used < HEM_MS(60));
    harness_sleep_ms(100);
    start = naps[2].used;
    CHECK_OK(hem_stream_call(streams[1], nap, &naps[2]));
    CHECK_OK(hem_event_destroy(event));
    CHECK_OK(hem_stream_destroy(streams[0]));
    CHECK_OK(hem_stream_destroy(streams[1]));
    CHECK(naps[2].used - start < HEM_MS(60));
}

/* An event is a value: what is waited for is what it was then. */
static void recorded_again(hem_world *world) {
    hem_stream *first = stream_of(world);
    hem_stream *other = stream_of(world);
    hem_stream *waiter = stream_of(world);
    hem_event *event = event_of(world);
    struct gate gates[2] = {{0}, {0}};
    struct log log = {0};
    struct entry entry = {&log, 0};

    CHECK(is_done(event));
    CHECK_OK(hem_event_sync(event, 0));
    CHECK_OK(hem_stream_wait(waiter, event));
    CHECK_OK(hem_stream_sync(waiter, LIMIT));
    CHECK_OK(hem_stream_call(first, hold, &gates[0]));
    CHECK_OK(hem_stream_call(other, hold, &gates[1]));
    CHECK_OK(hem_event_record(event, first));
    CHECK_OK(hem_stream_wait(waiter, event));
    CHECK_OK(hem_stream_call(waiter, note, &entry));
    CHECK_OK(hem_event_record(event, other));
    harness_sleep_ms(2);
    CHECK_EQ(log.calls, 0);
    atomic_store(&gates[0].open, 1);
    CHECK_OK(hem_stream_sync(waiter, LIMIT));
    CHECK_EQ(log.calls, 1);
    CHECK(!is_done(event));
    /* Now it waits for the second, whose event is destroyed. */
    CHECK_OK(hem_stream_wait(waiter, event));
    CHECK_OK(hem_event_destroy(event));
    entry.number = 1;
    CHECK_OK(hem_stream_call(waiter, note, &entry));
    harness_sleep_ms(2);
    CHECK_EQ(log.calls, 1);
    atomic_store(&gates[1].open, 1);
    /* A stream that is waited for may be destroyed, too. */
    CHECK_OK(hem_stream_destroy(other));
    CHECK_OK(hem_stream_destroy(first));
    CHECK_OK(hem_stream_destroy(waiter));
    CHECK_EQ(log.calls, 2);
    CHECK_EQ(log.bad, 0);
}

struct inside {
    hem_world *world;
    hem_stream *own;
    hem_stream *other;
    hem_event *event;
    struct gate gate;
    struct log log;
    struct entry entries[2];
    hem_status got[8];
};

static void from_inside(hem_status status, void *arg) {
    struct inside *in = arg;

    hold(status, &in->gate);
    in->got[0] = hem_stream_sync(in->own, LIMIT);
    in->got[1] = hem_event_sync(in->event, LIMIT);
    in->got[2] = hem_stream_destroy(in->own);
    in->got[3] = hem_stream_destroy(in->other);
    in->got[4] = hem_world_close(in->world);
    in->got[5] = hem_stream_call(in->own, note, &in->entries[1]);
    in->got[6] = hem_stream_call(in->other, note, &in->entries[0]);
    in->got[7] = hem_stream_sync(in->other, LIMIT);
}

/* A function may use streams, but not wait for itself. */
static void self_wait(hem_world *world) {
    struct inside in = {.world = world, .own = stream_of(world), .other = stream_of(world)};

    in.event = event_of(world);
    for (int i = 0; i < 2; i++)
        in.entries[i] = (struct entry){&in.log, i};
    CHECK_OK(hem_stream_call(in.own, from_inside, &in));
    CHECK_OK(hem_event_record(in.event, in.own));
    atomic_store(&in.gate.open, 1);
    CHECK_OK(hem_event_sync(in.event, LIMIT));
    CHECK_OK(hem_stream_sync(in.own, LIMIT));
    for (int i = 0; i < 8; i++) {
        harness_step("call from inside", (uint64_t)i);
        CHECK_EQ(in.got[i], i < 5 ? HEM_ERR_ARG : HEM_OK);
    }
    harness_step(NULL, 0);
    CHECK_EQ(in.log.calls, 2);
    CHECK_EQ(in.log.bad, 0);
    CHECK_OK(hem_event_destroy(in.event));
    CHECK_OK(hem_stream_destroy(in.other));
    CHECK_OK(hem_stream_destroy(in.own));
}

struct talk {
    hem_world *world;
    uint64_t mine;
    uint64_t got;
    hem_status status;
};

static void exchange(hem_status status, void *arg) {
    struct talk *t = arg;

    (void)status;
    hem_message send = {.peer = harness_right(t->world), .data = &t->mine, .bytes = 8};
    hem_message recv = {.peer = harness_left(t->world), .data = &t->got, .bytes = 8};
    t->status = hem_sendrecv(t->world, 1, &send, &recv, LIMIT);
}

/* Functions wait for other ranks, whose streams do the same. */
static void talks(hem_world *world) {
    hem_stream *stream = stream_of(world);
    struct talk all[20];
    uint64_t left = (uint64_t)harness_left(world);

    for (uint64_t i = 0; i < 20; i++) {
        all[i] = (struct talk){.world = world, .mine = 100 * i + (uint64_t)hem_world_rank(world)};
        CHECK_OK(hem_stream_call(stream, exchange, &all[i]));
        if (i % 5 == 4)
            harness_sleep_ms(1);
    }
    CHECK_OK(hem_stream_sync(stream, LIMIT));
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_EQ(all[i].status, HEM_OK);
        CHECK_EQ(all[i].got, 100 * i + left);
    }
    CHECK_OK(hem_stream_destroy(stream));
}

static void bad_arguments(hem_world *world) {
    hem_stream *stream = stream_of(world);
    hem_event *event = event_of(world);
    bool done = false;

    ARG(hem_stream_create(NULL, &stream));
    ARG(hem_stream_create(world, NULL));
    ARG(hem_event_create(NULL, &event));
    ARG(hem_event_create(world, NULL));
    ARG(hem_stream_call(NULL, note, NULL));
    ARG(hem_stream_call(stream, NULL, NULL));
    ARG(hem_stream_sync(NULL, LIMIT));
    ARG(hem_stream_sync(stream, -5));
    ARG(hem_stream_test(NULL, &done));
    ARG(hem_stream_test(stream, NULL));
    ARG(hem_event_record(NULL, stream));
    ARG(hem_event_record(event, NULL));
    ARG(hem_stream_wait(NULL, event));
    ARG(hem_stream_wait(stream, NULL));
    ARG(hem_event_test(NULL, &done));
    ARG(hem_event_test(event, NULL));
    ARG(hem_event_sync(NULL, LIMIT));
    ARG(hem_event_sync(event, -5));
    CHECK_OK(hem_stream_destroy(NULL));
    CHECK_OK(hem_event_destroy(NULL));
    CHECK_OK(hem_event_destroy(event));
    CHECK_OK(hem_stream_destroy(stream));
}

static void slow(hem_status status, void *arg) {
    harness_sleep_ms(1);
    note(status, arg);
}

/* What is left on streams is done before the world goes; it can still talk. */
static void closed(hem_world *world) {
    hem_world *copy = NULL;
    struct log log = {0};
    struct entry entries[10];
    bool done = false;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_stream *streams[2] = {stream_of(copy), stream_of(copy)};
    hem_event *event = event_of(copy);
    struct talk talk = {.world = copy, .mine = 5};
    for (int i = 0; i < 10; i++) {
        entries[i] = (struct entry){&log, i};
        CHECK_OK(hem_stream_call(streams[i % 2], slow, &entries[i]));
        CHECK_OK(hem_event_record(event, streams[i % 2]));
        CHECK_OK(hem_stream_wait(streams[1 - i % 2], event));
    }
    CHECK_OK(hem_stream_call(streams[0], exchange, &talk));
    CHECK_OK(hem_world_close(copy));
    CHECK_EQ(log.calls, 10);
    CHECK_EQ(log.bad, 0);
    CHECK_EQ(talk.status, HEM_OK);
    CHECK_EQ(talk.got, 5);
    CLOSED(hem_stream_call(streams[0], slow, &entries[0]));
    CLOSED(hem_stream_sync(streams[0], LIMIT));
    CLOSED(hem_stream_test(streams[0], &done));
    CLOSED(hem_event_record(event, streams[0]));
    CLOSED(hem_stream_wait(streams[1], event));
    CLOSED(hem_event_sync(event, LIMIT));
    CLOSED(hem_event_test(event, &done));
    CHECK_OK(hem_stream_destroy(streams[0]));
    CHECK_OK(hem_event_destroy(event));
    CHECK_OK(hem_stream_destroy(streams[1]));
}

int rank_main(hem_world *world) {
    bad_arguments(world);
    waits_sleep(world);
    for (int i = 0; i < harness_rounds(10); i++) {
        held(world);
        recorded_again(world);
        self_wait(world);
        talks(world);
        closed(world);
    }
    harness_close(world, HEM_OK);
    return 0;
}
