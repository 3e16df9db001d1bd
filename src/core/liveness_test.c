#include "core/liveness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PART  (16ull << 20)
#define RANKS 8
#define RACES 64 /* one for each rank of a larger arena */

static const hemi_platform *platform;
static hemi_arena arena;

static int make_arena(uint32_t kind, uint32_t ranks) {
    hemi_arena_plan plan = {.ranks = ranks, .kind = kind, .part_bytes = PART};
    platform = hemi_platform_real();
    return hemi_arena_make(&plan, platform, &arena) == HEM_OK ? 0 : -1;
}

static int set_up(void **state) {
    (void)state;
    return make_arena(HEMI_KIND_LAUNCHED, RANKS);
}

static int set_up_threads(void **state) {
    (void)state;
    return make_arena(HEMI_KIND_THREADS, RANKS);
}

static int set_up_races(void **state) {
    (void)state;
    return make_arena(HEMI_KIND_CALLBACK, RACES);
}

static int tear_down(void **state) {
    (void)state;
    hemi_arena_unmap(&arena);
    return 0;
}

static void expect_description(uint32_t rank, const char *want) {
    char text[96];
    hemi_liveness_describe(&arena, rank, text, sizeof text);
    assert_string_equal(text, want);
}

static void new_and_living_ranks_may_come(void **state) {
    (void)state;
    assert_true(hemi_liveness_may_come(&arena, 0));
    expect_description(0, "has not opened its world yet");
    hemi_arena_rank(&arena, 0)->state = HEMI_STATE_ALIVE;
    assert_true(hemi_liveness_may_come(&arena, 0));
    expect_description(0, "is alive");
}

static void an_end_is_final_and_the_first_word_counts(void **state) {
    uint64_t before = platform->now(platform->ctx);

    (void)state;
    hemi_arena_rank(&arena, 2)->state = HEMI_STATE_ALIVE;
    assert_true(hemi_liveness_ended(&arena, platform, 2, 3));
    assert_false(hemi_liveness_may_come(&arena, 2));
    assert_int_equal(hemi_arena_rank(&arena, 2)->state, HEMI_STATE_DEAD);
    assert_true(hemi_arena_rank(&arena, 2)->death_ns >= before);
    assert_false(hemi_liveness_ended(&arena, platform, 2, 137));
    assert_false(hemi_liveness_ended(&arena, platform, 2, 0));
    expect_description(2, "exited with code 3");
    /* Also one that never came. */
    assert_true(hemi_liveness_ended(&arena, platform, 3, 0));
    assert_int_equal(hemi_arena_rank(&arena, 3)->state, HEMI_STATE_EXITED);
    assert_false(hemi_liveness_may_come(&arena, 3));
    expect_description(3, "has exited");
    assert_true(hemi_liveness_may_come(&arena, 1));
}

static void how_it_ended_is_said_in_words(void **state) {
    static const int codes[] = {137, 139, 128 + 64, 128, 129 + 64, 255, 1, -1};
    static const char *const words[] = {
        "killed by signal 9 (Killed)", "killed by signal 11 (Segmentation fault)",
        "killed by signal 64",         "exited with code 128",
        "exited with code 193",        "exited with code 255",
        "exited with code 1",          "exited with code -1"};
    char text[96];

    (void)state;
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_true(hemi_liveness_ended(&arena, platform, r, codes[r]));
        hemi_liveness_describe(&arena, r, text, sizeof text);
        assert_non_null(strstr(text, words[r]));
    }
    hemi_liveness_describe(&arena, 0, text, 4);
    assert_int_equal(strlen(text), 3);
}

static void a_thread_has_no_exit_code(void **state) {
    (void)state;
    assert_true(hemi_liveness_ended(&arena, platform, 0, 255));
    expect_description(0, "returned without closing its world");
}

static void everybody_hears_the_alarm(void **state) {
    uint32_t bells[RANKS];
    uint32_t alarm = arena.head->alarm;

    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        bells[r] = hemi_arena_rank(&arena, r)->doorbell;
    hemi_liveness_alarm(&arena, platform);
    assert_int_equal(arena.head->alarm, alarm + 1);
    assert_true(hemi_liveness_ended(&arena, platform, 5, 1));
    assert_int_equal(arena.head->alarm, alarm + 2);
    assert_false(hemi_liveness_ended(&arena, platform, 5, 1)); /* no news, no alarm */
    assert_int_equal(arena.head->alarm, alarm + 2);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(hemi_arena_rank(&arena, r)->doorbell, bells[r] + 2);
}

static void *sleep_on_bell(void *arg) {
    hemi_rank_block *block = arg;
    uint32_t bell = hemi_load32_acquire(&block->doorbell);
    hemi_add32_acq_rel(&block->sleepers, 1);
    while (hemi_load32_acquire(&block->doorbell) == bell)
        platform->park(platform->ctx, &block->doorbell, bell, -1);
    return NULL;
}

static void the_alarm_wakes_sleepers(void **state) {
    pthread_t threads[RANKS];

    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(
            pthread_create(&threads[r], NULL, sleep_on_bell, hemi_arena_rank(&arena, r)), 0);
    for (uint32_t r = 0; r < RANKS; r++)
        while (hemi_load32_acquire(&hemi_arena_rank(&arena, r)->sleepers) == 0)
            platform->yield(platform->ctx);
    hemi_liveness_alarm(&arena, platform);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(pthread_join(threads[r], NULL), 0);
}

/* Asking for the time gives the other one its chance in the middle of a declaration. */
static uint64_t slow_now(void *ctx) {
    platform->yield(ctx);
    return platform->now(ctx);
}

static void meet(uint32_t *count, uint32_t want) {
    hemi_add32_acq_rel(count, 1);
    while (hemi_load32_acquire(count) < want)
        platform->yield(platform->ctx);
}

/* Two that find a rank dead at the same moment: rank 0 handing out the arena, and a monitor. */
typedef struct declarer {
    uint32_t *round;
    int code;
    bool first[RACES];
} declarer;

static void *declare(void *arg) {
    declarer *d = arg;
    hemi_platform slow = *platform;
    slow.now = slow_now;
    for (uint32_t i = 0; i < RACES; i++) {
        meet(d->round, 2 * (i + 1));
        d->first[i] = hemi_liveness_ended(&arena, &slow, i, d->code);
    }
    return NULL;
}

static void only_one_of_two_is_the_first(void **state) {
    uint32_t round = 0;
    static declarer one;
    static declarer two;
    pthread_t thread;

    (void)state;
    one = (declarer){.round = &round, .code = 1};
    two = (declarer){.round = &round, .code = 2};
    assert_int_equal(pthread_create(&thread, NULL, declare, &two), 0);
    declare(&one);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (uint32_t i = 0; i < RACES; i++) {
        assert_int_equal(one.first[i] + two.first[i], 1);
        assert_int_equal(hemi_arena_rank(&arena, i)->exit_code, one.first[i] ? 1 : 2);
    }
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(new_and_living_ranks_may_come),
        FRESH(an_end_is_final_and_the_first_word_counts),
        FRESH(how_it_ended_is_said_in_words),
        cmocka_unit_test_setup_teardown(a_thread_has_no_exit_code, set_up_threads, tear_down),
        FRESH(everybody_hears_the_alarm),
        FRESH(the_alarm_wakes_sleepers),
        cmocka_unit_test_setup_teardown(only_one_of_two_is_the_first, set_up_races, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
