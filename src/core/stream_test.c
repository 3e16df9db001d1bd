#include "core/stream_queue.h"

#include "base/testing.h"

#include <hem/channel.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(20)

static void run(hem_rank_fn fn, void *arg) {
    hem_status status = hem_world_threads(1, fn, arg, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

static void sleep_us(long us) {
    struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

/* A function that holds its stream until it is let go. */
static void hold(hem_status status, void *arg) {
    (void)status;
    for (int i = 0; i < 100000 && hemi_load32_acquire(arg) == 0; i++)
        sleep_us(100);
}

static void let_go(uint32_t *gate) {
    hemi_store32_release(gate, 1);
}

/* The status that a function was called with, and the sentence behind it. */
typedef struct told {
    hem_status status;
    char sentence[HEMI_ERROR_MAX];
} told;

static void tell(hem_status status, void *arg) {
    told *t = arg;
    t->status = status;
    hemi_error_save(t->sentence);
}

static hem_status fail_item(hem_status status, void *arg, uint64_t number) {
    (void)arg;
    if (status != HEM_OK)
        return status; /* as an exchange does that follows a failure */
    return number == 0 ? HEM_OK
                       : hemi_fail(HEM_ERR_PEER, "item %llu failed", (unsigned long long)number);
}

/* The first failure stays until somebody is told; then all is well again. */
static int keep_the_first(hem_world *world, void *arg) {
    hem_stream *stream = NULL;
    told got[3] = {{HEM_ERR_ARG, ""}, {HEM_ERR_ARG, ""}, {HEM_ERR_ARG, ""}};
    uint64_t position = 0;
    (void)arg;
    RANK_CHECK(hem_stream_create(world, &stream) == HEM_OK);
    RANK_CHECK(hemi_stream_push(stream, fail_item, NULL, 0, &position) == HEM_OK && position == 1);
    RANK_CHECK(hem_stream_call(stream, tell, &got[0]) == HEM_OK);
    for (uint64_t i = 7; i < 10; i++)
        RANK_CHECK(hemi_stream_push(stream, fail_item, NULL, i, &position) == HEM_OK &&
                   position == i - 4);
    RANK_CHECK(hem_stream_call(stream, tell, &got[1]) == HEM_OK);
    RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_ERR_PEER);
    RANK_CHECK(strcmp(hem_last_error(), "item 7 failed") == 0);
    RANK_CHECK(got[0].status == HEM_OK && got[1].status == HEM_ERR_PEER);
    RANK_CHECK(strcmp(got[1].sentence, "item 7 failed") == 0);
    RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK);
    RANK_CHECK(hem_stream_call(stream, tell, &got[2]) == HEM_OK);
    RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK && got[2].status == HEM_OK);
    /* A time limit does not count as being told; destroying does. */
    uint32_t gate = 0;
    RANK_CHECK(hemi_stream_push(stream, fail_item, NULL, 3, NULL) == HEM_OK);
    RANK_CHECK(hem_stream_call(stream, hold, &gate) == HEM_OK);
    RANK_CHECK(hem_stream_sync(stream, HEM_MS(2)) == HEM_ERR_TIMEOUT);
    let_go(&gate);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_ERR_PEER);
    RANK_CHECK(strcmp(hem_last_error(), "item 3 failed") == 0);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void first_failure_is_kept(void **state) {
    (void)state;
    run(keep_the_first, NULL);
}

/* A failure that nobody was told of is kept beyond the world. */
static int fail_then_close(hem_world *world, void *arg) {
    (void)arg;
    hem_stream *stream = NULL;
    RANK_CHECK(hem_stream_create(world, &stream) == HEM_OK);
    RANK_CHECK(hemi_stream_push(stream, fail_item, NULL, 5, NULL) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    RANK_CHECK(hemi_stream_world(stream) == NULL);
    RANK_CHECK(hemi_stream_push(stream, fail_item, NULL, 5, NULL) == HEM_ERR_CLOSED);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_ERR_PEER);
    RANK_CHECK(strcmp(hem_last_error(), "item 5 failed") == 0);
    return 0;
}

static void failure_outlives_the_world(void **state) {
    (void)state;
    run(fail_then_close, NULL);
}

/* Who follows whom: by events directly, through others, by having been seen; not by chance. */
static int follow(hem_world *world, void *arg) {
    hem_stream *s[4] = {NULL};
    hem_event *e[2] = {NULL};
    uint32_t gate = 0;
    uint64_t at[4] = {0};
    (void)arg;
    for (int i = 0; i < 4; i++)
        RANK_CHECK(hem_stream_create(world, &s[i]) == HEM_OK);
    for (int i = 0; i < 2; i++)
        RANK_CHECK(hem_event_create(world, &e[i]) == HEM_OK);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            RANK_CHECK(hemi_stream_id(s[i]) != hemi_stream_id(s[k]) && hemi_stream_id(s[i]) != 0);
    uint64_t id = hemi_stream_id(s[0]);
    RANK_CHECK(hem_stream_call(s[0], hold, &gate) == HEM_OK);
    RANK_CHECK(hemi_stream_push(s[0], fail_item, NULL, 0, &at[0]) == HEM_OK && at[0] == 2);
    RANK_CHECK(hem_event_record(e[0], s[0]) == HEM_OK);
    RANK_CHECK(hemi_stream_push(s[0], fail_item, NULL, 0, &at[1]) == HEM_OK);
    RANK_CHECK(hemi_stream_follows(s[0], id, at[1]) && !hemi_stream_follows(s[1], id, at[0]));
    RANK_CHECK(hem_stream_wait(s[1], e[0]) == HEM_OK);
    RANK_CHECK(hemi_stream_follows(s[1], id, at[0]) && !hemi_stream_follows(s[1], id, at[1]));
    RANK_CHECK(hem_event_record(e[1], s[1]) == HEM_OK);
    RANK_CHECK(hem_event_record(e[0], s[0]) == HEM_OK);
    RANK_CHECK(hem_stream_wait(s[2], e[1]) == HEM_OK);
    RANK_CHECK(hemi_stream_follows(s[2], id, at[0]) && !hemi_stream_follows(s[2], id, at[1]));
    RANK_CHECK(hemi_stream_follows(s[2], hemi_stream_id(s[1]), 1));
    RANK_CHECK(!hemi_stream_follows(s[3], id, at[0]));
    let_go(&gate);
    /* Done, but nobody has seen it: that would depend on who is faster. */
    while (!hemi_queue_is_done(s[0], at[1]))
        sleep_us(50);
    RANK_CHECK(!hemi_stream_follows(s[3], id, at[0]));
    RANK_CHECK(hem_event_sync(e[1], LIMIT) == HEM_OK);
    RANK_CHECK(hemi_stream_follows(s[3], id, at[0]) && !hemi_stream_follows(s[3], id, at[1]));
    RANK_CHECK(hem_stream_sync(s[0], LIMIT) == HEM_OK);
    RANK_CHECK(hemi_stream_follows(s[3], id, at[1]));
    RANK_CHECK(hemi_stream_push(s[0], fail_item, NULL, 0, &at[2]) == HEM_OK);
    RANK_CHECK(!hemi_stream_follows(s[3], id, at[2]));
    RANK_CHECK(hem_stream_destroy(s[0]) == HEM_OK);
    RANK_CHECK(hemi_stream_follows(s[3], id, at[2]));
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    for (int i = 1; i < 4; i++)
        RANK_CHECK(hem_stream_destroy(s[i]) == HEM_OK);
    for (int i = 0; i < 2; i++)
        RANK_CHECK(hem_event_destroy(e[i]) == HEM_OK);
    return 0;
}

static void what_follows_what(void **state) {
    (void)state;
    run(follow, NULL);
}

/* A stream that waits for many others that come and go does not remember them all. */
static int meet_many(hem_world *world, void *arg) {
    hem_stream *stays = NULL;
    hem_event *event = NULL;
    uint64_t position = 0;
    (void)arg;
    RANK_CHECK(hem_stream_create(world, &stays) == HEM_OK);
    RANK_CHECK(hem_event_create(world, &event) == HEM_OK);
    for (int i = 0; i < 100; i++) {
        hem_stream *goes = NULL;
        uint32_t gate = 0;
        RANK_CHECK(hem_stream_create(world, &goes) == HEM_OK);
        RANK_CHECK(hem_stream_call(goes, hold, &gate) == HEM_OK);
        RANK_CHECK(hem_event_record(event, goes) == HEM_OK);
        RANK_CHECK(hem_stream_wait(stays, event) == HEM_OK);
        RANK_CHECK(hemi_stream_push(stays, fail_item, NULL, 0, &position) == HEM_OK);
        uint64_t id = hemi_stream_id(goes);
        RANK_CHECK(hemi_stream_follows(stays, id, 1) && !hemi_stream_follows(stays, id, 2));
        let_go(&gate);
        RANK_CHECK(hem_stream_destroy(goes) == HEM_OK);
        RANK_CHECK(hemi_stream_follows(stays, id, 1));
    }
    RANK_CHECK(stays->clock.room <= 8);
    RANK_CHECK(hem_stream_sync(stays, LIMIT) == HEM_OK);
    RANK_CHECK(hem_event_destroy(event) == HEM_OK);
    RANK_CHECK(hem_stream_destroy(stays) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void clocks_forget(void **state) {
    (void)state;
    run(meet_many, NULL);
}

/* What happened to work of a rank that ended without closing. */
typedef struct left {
    uint32_t begun;
    uint32_t gate;
    uint32_t functions;
    uint32_t works; /* work of the library that was told of the end */
    int peer_line;
} left;

static void begin(hem_status status, void *arg) {
    left *l = arg;
    hemi_store32_release(&l->begun, 1);
    hold(status, &l->gate);
}

static void call_after(hem_status status, void *arg) {
    left *l = arg;
    (void)status;
    hemi_add32_relaxed(&l->functions, 1);
}

static hem_status work_after(hem_status status, void *arg, uint64_t number) {
    left *l = arg;
    (void)number;
    if (status != HEM_OK)
        hemi_add32_relaxed(&l->works, 1);
    return status;
}

static hem_status receive(hem_status status, void *arg, uint64_t number) {
    uint64_t value = 0;
    (void)status;
    (void)number;
    return hem_recv(arg, 1, 0, &value, sizeof value, NULL, HEM_FOREVER);
}

/* Rank 0 ends while one stream runs, others wait for it, and one waits for rank 1 for ever. */
static int end_without_closing(hem_world *world, void *arg) {
    left *l = arg;
    hem_stream *s[3] = {NULL};
    hem_event *event = NULL;
    if (hem_world_rank(world) == 1) {
        uint64_t value = 0;
        l->peer_line =
            hem_recv(world, 0, 0, &value, sizeof value, NULL, LIMIT) == HEM_ERR_PEER ? 0 : __LINE__;
        (void)hem_world_close(world);
        return 0;
    }
    for (int i = 0; i < 3; i++)
        RANK_CHECK(hem_stream_create(world, &s[i]) == HEM_OK);
    RANK_CHECK(hem_event_create(world, &event) == HEM_OK);
    RANK_CHECK(hem_stream_call(s[0], begin, l) == HEM_OK);
    RANK_CHECK(hem_event_record(event, s[0]) == HEM_OK);
    RANK_CHECK(hemi_stream_push(s[2], receive, world, 0, NULL) == HEM_OK);
    for (int i = 0; i < 3; i++) {
        RANK_CHECK(hem_stream_wait(s[i], event) == HEM_OK);
        RANK_CHECK(hem_stream_call(s[i], call_after, l) == HEM_OK);
        RANK_CHECK(hemi_stream_push(s[i], work_after, l, 0, NULL) == HEM_OK);
    }
    while (hemi_load32_acquire(&l->begun) == 0)
        sleep_us(50);
    return 0;
}

static void *open_later(void *arg) {
    left *l = arg;
    sleep_us(200000);
    sleep_us(200000);
    let_go(&l->gate);
    return NULL;
}

static void rank_ends_without_closing(void **state) {
    left l = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, open_later, &l), 0);
    hem_status status = hem_world_threads(2, end_without_closing, &l, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(status, HEM_OK);
    assert_int_equal(l.peer_line, 0);
    assert_int_equal(l.functions, 0);
    assert_int_equal(l.works, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_failure_is_kept),     cmocka_unit_test(failure_outlives_the_world),

        cmocka_unit_test(what_follows_what),         cmocka_unit_test(clocks_forget),

        cmocka_unit_test(rank_ends_without_closing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
