#include "core/wait.h"

#include "base/testing.h"
#include "core/bootstrap/bootstrap.h"

#include <hem/window.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS         1000000ll
#define ROUNDS     (TESTING_SANITIZED ? 1000 : 5000)
#define SLEEPERS   8
#define MUCH_LATER HEM_SEC(30)

/* What two ranks share in these tests: a word in the part of each. */
static uint64_t *word_of(hem_world *world, int rank) {
    const hemi_arena *arena = &world->root->arena;
    /* Behind the book-keeping's first page, which is all that this little use of the heap needs. */
    return hemi_arena_at(arena, hemi_arena_part(arena, world->members[rank]) + 8ull * HEMI_PAGE);
}

typedef struct at_least {
    const uint64_t *word;
    uint64_t value;
    hem_status doom;
    unsigned polls;
} at_least;

static hem_status poll_word(void *arg) {
    at_least *a = arg;
    a->polls++;
    return hemi_load64_acquire(a->word) >= a->value ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed(void *arg) {
    return ((const at_least *)arg)->doom;
}

static void where(void *arg, hemi_flight_note *note) {
    const at_least *a = arg;
    note->peer = 1;
    note->word = a->word;
}

static hem_status wait_for(hem_world *world, at_least *a, int64_t timeout_ns) {
    hemi_wait_for wait = {.poll = poll_word,
                          .doomed = doomed,
                          .where = where,
                          .arg = a,
                          .note = {.call = HEMI_CALL_BARRIER, .peer = -1, .wanted = a->value}};
    return hemi_wait(world, &wait, timeout_ns);
}

/* Run `fn` on two ranks that sleep whenever they wait. */
static void run_sleepy(const hemi_platform *platform, int ranks, hem_rank_fn fn, void *arg) {
    hem_world_options options = {.struct_size = sizeof options, .timeout_ns = MUCH_LATER};
    setenv("HEM_SPIN", "0", 1);
    setenv("HEM_YIELD_US", "0", 1);
    hem_status status = hemi_threads_run(platform, ranks, fn, arg, &options);
    unsetenv("HEM_SPIN");
    unsetenv("HEM_YIELD_US");
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

static void until_asleep(hem_world *world, int rank, uint32_t count) {
    const hemi_platform *platform = world->root->platform;
    const hemi_rank_block *block = hemi_arena_rank(&world->root->arena, world->members[rank]);
    while (hemi_load32_acquire(&block->sleepers) < count)
        platform->yield(platform->ctx);
}

/* Nobody of this rank is left in the record or in the count of sleepers. */
static bool root_is_idle(const hem_world *world) {
    const hemi_root *root = world->root;
    hemi_flight copy;
    uint64_t seen = 0;
    bool idle = hemi_load32_acquire(&root->me->sleepers) == 0;
    for (uint32_t i = 0; i < HEMI_FLIGHTS; i++)
        idle = idle && !hemi_flight_read(&root->arena, root->rank, i, &copy, &seen);
    return idle;
}

/* Rank 1 answers only when rank 0 sleeps, or is about to: nobody polls its way out. */
static int wake_the_sleeper(hem_world *world, void *arg) {
    uint64_t *word = word_of(world, 0);
    uint64_t *answer = word_of(world, 1);
    (void)arg;
    for (uint64_t i = 1; i <= 300; i++) {
        if (hem_world_rank(world) == 0) {
            at_least a = {.word = word, .value = i};
            RANK_CHECK(wait_for(world, &a, MUCH_LATER) == HEM_OK);
            hemi_store64_release(answer, i);
        } else {
            until_asleep(world, 0, 1);
            hemi_store64_release(word, i);
            hemi_wake(world->root, hemi_arena_rank(&world->root->arena, world->members[0]));
            while (hemi_load64_acquire(answer) < i)
                world->root->platform->yield(NULL);
        }
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

/* Both wait and signal as fast as they can: the moments between looking and sleeping. */
static int ping_pong(hem_world *world, void *arg) {
    int me = hem_world_rank(world);
    (void)arg;
    for (uint64_t i = 1; i <= (uint64_t)ROUNDS; i++) {
        at_least a = {.word = word_of(world, me), .value = i};
        if (me == 1)
            RANK_CHECK(wait_for(world, &a, MUCH_LATER) == HEM_OK);
        hemi_store64_release(word_of(world, 1 - me), i);
        hemi_wake(world->root, hemi_arena_rank(&world->root->arena, world->members[1 - me]));
        if (me == 0)
            RANK_CHECK(wait_for(world, &a, MUCH_LATER) == HEM_OK);
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void a_sleeper_is_woken(void **state) {
    (void)state;
    run_sleepy(hemi_platform_real(), 2, wake_the_sleeper, NULL);
}

static void no_wake_up_is_lost(void **state) {
    (void)state;
    run_sleepy(hemi_platform_real(), 2, ping_pong, NULL);
}

static int close_only(hem_world *world, void *arg) {
    (void)arg;
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

/* A platform that counts, and may refuse membarrier. */
typedef struct counting {
    hemi_platform platform;
    uint32_t registered;
    uint32_t fenced;
    bool refuse;
} counting;

static bool count_register(void *ctx) {
    counting *c = ctx;
    hemi_add32_acq_rel(&c->registered, 1);
    return hemi_platform_real()->membarrier_register(NULL);
}

static bool count_fence(void *ctx) {
    counting *c = ctx;
    uint32_t before = hemi_add32_acq_rel(&c->fenced, 1);
    /* Good while the ranks open, which is when they find out whether it works. */
    return hemi_platform_real()->membarrier(NULL) && !(c->refuse && before >= 8);
}

static void count_with(counting *c) {
    c->platform = *hemi_platform_real();
    c->platform.ctx = c;
    c->platform.membarrier = count_fence;
    c->platform.membarrier_register = count_register;
}

static void fences_take_the_place_of_membarrier(void **state) {
    counting c = {.refuse = false};

    (void)state;
    count_with(&c);
    setenv("HEM_FENCE", "1", 1);
    run_sleepy(&c.platform, 2, wake_the_sleeper, NULL);
    run_sleepy(&c.platform, 2, ping_pong, NULL);
    unsetenv("HEM_FENCE");
}

/*
 * Membarrier reaches registered processes only. A sleeper that relies on it where signallers have
 * not registered can miss its wake-up, also while the world is being opened.
 */
static void nobody_relies_on_membarrier_without_registration(void **state) {
    counting c = {.refuse = false};

    (void)state;
    count_with(&c);
    setenv("HEM_FENCE", "1", 1);
    run_sleepy(&c.platform, 4, close_only, NULL);
    unsetenv("HEM_FENCE");
    if (c.registered == 0)
        assert_int_equal(c.fenced, 0);
}

/* Refused after it had been granted: sleepers nap instead, which is slow but ends. */
static void membarrier_that_fails_later_is_survived(void **state) {
    counting c = {.refuse = true};

    (void)state;
    count_with(&c);
    run_sleepy(&c.platform, 2, wake_the_sleeper, NULL);
    assert_true(c.fenced >= 8);
}

static int limits(hem_world *world, void *arg) {
    const hemi_platform *platform = world->root->platform;
    static const int64_t timeouts[] = {0, 1, 3 * MS, 20 * MS};
    (void)arg;
    for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
        at_least a = {.word = word_of(world, 0), .value = 1};
        uint64_t start = platform->now(platform->ctx);
        RANK_CHECK(wait_for(world, &a, timeouts[i]) == HEM_ERR_TIMEOUT);
        uint64_t took = platform->now(platform->ctx) - start;
        RANK_CHECK(took >= (uint64_t)timeouts[i]);
        RANK_CHECK(took < (uint64_t)MUCH_LATER / 2);
        RANK_CHECK(a.polls > 0);
    }
    /* So long that adding it to the time of day must not wrap. */
    hemi_store64_release(word_of(world, 0), 1);
    at_least a = {.word = word_of(world, 0), .value = 1};
    RANK_CHECK(wait_for(world, &a, INT64_MAX) == HEM_OK);
    RANK_CHECK(wait_for(world, &a, HEM_FOREVER) == HEM_OK);
    RANK_CHECK(root_is_idle(world));
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void a_wait_ends_with_its_limit(void **state) {
    (void)state;
    run_sleepy(hemi_platform_real(), 1, limits, NULL);
    assert_int_equal(hem_world_threads(1, limits, NULL, NULL), HEM_OK);
}

static int reasons(hem_world *world, void *arg) {
    at_least lost = {.word = word_of(world, 0), .value = 1, .doom = HEM_ERR_PEER};
    at_least found = {.word = word_of(world, 0), .value = 0, .doom = HEM_ERR_PEER};
    at_least open = {.word = word_of(world, 0), .value = 1};
    hemi_wait_for also = {.poll = poll_word, .arg = &open, .also_revoked = true};
    (void)arg;
    RANK_CHECK(wait_for(world, &lost, MUCH_LATER) == HEM_ERR_PEER);
    RANK_CHECK(wait_for(world, &found, 0) == HEM_OK);
    RANK_CHECK(hem_world_revoke(world) == HEM_OK);
    RANK_CHECK(wait_for(world, &open, MUCH_LATER) == HEM_ERR_REVOKED);
    RANK_CHECK(strstr(hem_last_error(), "hem_barrier") != NULL);
    RANK_CHECK(wait_for(world, &found, 0) == HEM_OK);
    RANK_CHECK(hemi_wait(world, &also, 3 * MS) == HEM_ERR_TIMEOUT);
    RANK_CHECK(root_is_idle(world));
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void what_holds_beats_every_reason_to_give_up(void **state) {
    (void)state;
    run_sleepy(hemi_platform_real(), 1, reasons, NULL);
    assert_int_equal(hem_world_threads(1, reasons, NULL, NULL), HEM_OK);
}

/* Rank 1 ends the wait of rank 0 by revoking, and reads its record before. */
static int watch_and_revoke(hem_world *world, void *arg) {
    uint64_t *word = word_of(world, 0);
    (void)arg;
    if (hem_world_rank(world) == 0) {
        at_least a = {.word = word, .value = 7};
        RANK_CHECK(wait_for(world, &a, MUCH_LATER) == HEM_ERR_REVOKED);
        RANK_CHECK(root_is_idle(world));
    } else {
        hemi_flight copy;
        uint64_t seen = 0;
        hemi_store64_release(word, 5);
        /* At first it may still be in the opening of the world. */
        while (!hemi_flight_read(&world->root->arena, world->members[0], 0, &copy, &seen) ||
               copy.call != HEMI_CALL_BARRIER || copy.word == 0)
            world->root->platform->yield(NULL);
        RANK_CHECK(copy.peer == 1 && copy.wanted == 7);
        RANK_CHECK(seen == 5);
        RANK_CHECK(hem_world_revoke(world) == HEM_OK);
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void others_see_the_wait_and_can_end_it(void **state) {
    (void)state;
    run_sleepy(hemi_platform_real(), 2, watch_and_revoke, NULL);
}

/* More threads of one rank than its flight record has room for. */
typedef struct sleeper {
    hem_world *world;
    at_least a;
    pthread_t thread;
    hem_status status;
} sleeper;

static void *sleep_in_thread(void *arg) {
    sleeper *s = arg;
    s->status = wait_for(s->world, &s->a, MUCH_LATER);
    return NULL;
}

static int sleep_together(hem_world *world) {
    sleeper sleepers[SLEEPERS];
    for (uint64_t i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (sleeper){world, {.word = word_of(world, 0), .value = i + 1}, 0, HEMI_AGAIN};
        RANK_CHECK(pthread_create(&sleepers[i].thread, NULL, sleep_in_thread, &sleepers[i]) == 0);
    }
    for (size_t i = 0; i < SLEEPERS; i++)
        RANK_CHECK(pthread_join(sleepers[i].thread, NULL) == 0);
    for (size_t i = 0; i < SLEEPERS; i++)
        RANK_CHECK(sleepers[i].status == HEM_OK);
    RANK_CHECK(root_is_idle(world));
    return 0;
}

static int many_threads(hem_world *world, void *arg) {
    (void)arg;
    if (hem_world_rank(world) == 0) {
        RANK_CHECK(sleep_together(world) == 0);
    } else {
        until_asleep(world, 0, SLEEPERS);
        for (uint64_t i = 1; i <= SLEEPERS; i++) {
            hemi_store64_release(word_of(world, 0), i);
            hemi_wake(world->root, hemi_arena_rank(&world->root->arena, world->members[0]));
        }
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void all_threads_of_a_rank_are_woken(void **state) {
    (void)state;
    run_sleepy(hemi_platform_real(), 2, many_threads, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeper_is_woken),
        cmocka_unit_test(no_wake_up_is_lost),
        cmocka_unit_test(fences_take_the_place_of_membarrier),
        cmocka_unit_test(nobody_relies_on_membarrier_without_registration),
        cmocka_unit_test(membarrier_that_fails_later_is_survived),
        cmocka_unit_test(a_wait_ends_with_its_limit),
        cmocka_unit_test(what_holds_beats_every_reason_to_give_up),
        cmocka_unit_test(others_see_the_wait_and_can_end_it),
        cmocka_unit_test(all_threads_of_a_rank_are_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
