#include "core/stream_queue.h"

#include "base/testing.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(20)
#define ITEMS ((uint64_t)HEMI_STREAM_ITEMS)

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

static uint32_t pieces_of(const hem_stream *stream) {
    uint32_t count = 1;
    for (const hemi_stream_piece *p = stream->into->next; p != stream->into; p = p->next)
        count++;
    return count;
}

static hem_status count_up(hem_status status, void *arg, uint64_t number) {
    uint64_t *next = arg;
    return status == HEM_OK && (*next)++ == number ? HEM_OK : HEM_ERR_MISMATCH;
}

/* The queue takes as much as there is, and from then on allocates nothing. */
static int grow_and_reuse(hem_world *world, void *arg) {
    hem_stream *stream = NULL;
    uint64_t random = 42;
    uint64_t put = 0;
    uint64_t next = 0;
    (void)arg;
    RANK_CHECK(hem_stream_create(world, &stream) == HEM_OK);
    for (int round = 0; round < 3; round++) {
        uint32_t gate = 0;
        uint32_t before = pieces_of(stream);
        RANK_CHECK(hem_stream_call(stream, hold, &gate) == HEM_OK);
        for (uint64_t i = 0; i < 10 * ITEMS; i++)
            RANK_CHECK(hemi_stream_push(stream, count_up, &next, put++, NULL) == HEM_OK);
        let_go(&gate);
        RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK && next == put);
        RANK_CHECK(pieces_of(stream) >= 11 && pieces_of(stream) <= 13);
        RANK_CHECK(round < 2 || pieces_of(stream) == before);
    }
    uint32_t most = pieces_of(stream);
    for (int round = 0; round < 3000; round++) {
        uint64_t count = 1 + testing_random(&random) % (2 * ITEMS);
        for (uint64_t i = 0; i < count; i++)
            RANK_CHECK(hemi_stream_push(stream, count_up, &next, put++, NULL) == HEM_OK);
        RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK && next == put);
    }
    RANK_CHECK(pieces_of(stream) == most);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void queue_grows_and_is_reused(void **state) {
    (void)state;
    run(grow_and_reuse, NULL);
}

/* The thread is held at every place around the ends of pieces while much more is put behind it. */
static int hold_at_ends(hem_world *world, void *arg) {
    (void)arg;
    for (uint64_t held = 20; held<2 * ITEMS + 10; held += held % 127> 100 ? 1 : 9) {
        hem_stream *stream = NULL;
        uint32_t gate = 0;
        uint64_t next = 0;
        RANK_CHECK(hem_stream_create(world, &stream) == HEM_OK);
        for (uint64_t i = 0; i < held + 4 * ITEMS; i++) {
            if (i == held)
                RANK_CHECK(hem_stream_call(stream, hold, &gate) == HEM_OK);
            RANK_CHECK(hemi_stream_push(stream, count_up, &next, i, NULL) == HEM_OK);
            while (i + 1 == held && !hemi_queue_is_done(stream, held))
                sleep_us(10);
        }
        let_go(&gate);
        RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK);
        RANK_CHECK(next == held + 4 * ITEMS);
        RANK_CHECK(hem_stream_destroy(stream) == HEM_OK);
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void held_at_the_end_of_a_piece(void **state) {
    (void)state;
    run(hold_at_ends, NULL);
}

/* The thread sleeps at the end of a piece, and comes too late to see where it went on from there. */
static int sleep_at_ends(hem_world *world, void *arg) {
    (void)arg;
    for (uint64_t round = 0; round < 60; round++) {
        hem_stream *stream = NULL;
        uint64_t next = 0;
        uint64_t count = ITEMS - 1 + round % 3;
        RANK_CHECK(hem_stream_create(world, &stream) == HEM_OK);
        for (uint64_t i = 0; i < count; i++)
            RANK_CHECK(hemi_stream_push(stream, count_up, &next, i, NULL) == HEM_OK);
        RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK);
        while (hemi_load32_relaxed(&stream->asleep) == 0)
            sleep_us(50);
        for (uint64_t i = count; i < 6 * ITEMS; i++)
            RANK_CHECK(hemi_stream_push(stream, count_up, &next, i, NULL) == HEM_OK);
        RANK_CHECK(hem_stream_sync(stream, LIMIT) == HEM_OK && next == 6 * ITEMS);
        RANK_CHECK(hem_stream_destroy(stream) == HEM_OK);
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void asleep_at_the_end_of_a_piece(void **state) {
    (void)state;
    run(sleep_at_ends, NULL);
}

static hem_status add_up(hem_status status, void *arg, uint64_t number) {
    uint64_t *sum = arg;
    *sum += number;
    return status;
}

/* Threads that put work on a stream and wait for it, with all sleeping at every chance. */
typedef struct sleeper {
    hem_stream *stream;
    uint64_t seed;
    int rounds;
    int line; /* where it failed */
} sleeper;

static int sleeper_body(sleeper *s) {
    uint64_t sum = 0; /* plain: what the stream has done is visible after a sync */
    uint64_t put = 0;
    for (int i = 0; i < s->rounds; i++) {
        uint64_t dice = testing_random(&s->seed);
        for (uint64_t k = 0; k <= dice % 3; k++, put++)
            RANK_CHECK(hemi_stream_push(s->stream, add_up, &sum, 1, NULL) == HEM_OK);
        if (dice % 16 == 3)
            sleep_us((long)(dice >> 8 & 127));
        RANK_CHECK(hem_stream_sync(s->stream, LIMIT) == HEM_OK && sum == put);
        if (dice % 16 == 5)
            sleep_us((long)(dice >> 8 & 127));
    }
    return 0;
}

static void *sleeper_thread(void *arg) {
    sleeper *s = arg;
    s->line = sleeper_body(s);
    return NULL;
}

static int sleep_always(hem_world *world, void *arg) {
    sleeper s[3];
    pthread_t threads[3];
    hem_stream *stream = NULL;
    (void)arg;
    world->root->spin = 0;
    world->root->yield_ns = 0;
    RANK_CHECK(hem_stream_create(world, &stream) == HEM_OK);
    for (uint64_t i = 0; i < 3; i++) {
        s[i] = (sleeper){.stream = stream, .seed = i, .rounds = 4000};
        RANK_CHECK(pthread_create(&threads[i], NULL, sleeper_thread, &s[i]) == 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        RANK_CHECK(s[i].line == 0);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void no_wake_up_is_missed(void **state) {
    (void)state;
    run(sleep_always, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_grows_and_is_reused),
        cmocka_unit_test(held_at_the_end_of_a_piece),
        cmocka_unit_test(asleep_at_the_end_of_a_piece),
        cmocka_unit_test(no_wake_up_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
