/*
 * The scheduler itself: a run is a function of its seed, from the opening of the world to its
 * close, and it would notice a platform that loses wake-ups. This is the proof that the platform
 * table and the schedule points suffice: nothing else in the library depends on time or on other
 * threads.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* A bit of everything that waits. */
static int mixture(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 256);
    hem_world *half = NULL;
    for (uint64_t i = 1; i <= 3; i++) {
        SIM_OK(hem_put_signal(window, sim_right(world), 8, &i, sizeof i, 0, 1));
        SIM_OK(hem_wait_signal_from(window, sim_left(world), 0, HEM_GE, i, HEM_FOREVER));
        SIM_OK(hem_flush(window, sim_right(world)));
        SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
    }
    SIM_STATUS(hem_wait_signal(window, 1, HEM_GE, 1, HEM_US(100)), HEM_ERR_TIMEOUT);
    sim_note(sim_now());
    SIM_OK(hem_world_split(world, hem_world_rank(world) % 2, 0, &half));
    SIM_OK(hem_world_close(half));
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

static const sim_program program = {.name = "mixture", .fn = mixture};

static void test_same_seed_same_run(void **unused) {
    (void)unused;
    for (int ranks = 2; ranks <= 5; ranks++) {
        for (uint64_t seed = 1; seed <= sim_seeds(40); seed++) {
            sim_outcome first = sim_once(&program, ranks, seed, SIM_HONEST);
            sim_outcome again = sim_once(&program, ranks, seed, SIM_HONEST);
            assert_int_equal(first.status, HEM_OK);
            assert_int_equal(first.hash, again.hash);
            assert_int_equal(first.points, again.points);
            assert_int_equal(first.end_ns, again.end_ns);
        }
    }
}

/* Not even the addresses and numbers that another process has make a difference. */
static void test_same_in_another_process(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        sim_outcome here = sim_once(&program, 3, seed, SIM_HONEST);
        void *shift = malloc((size_t)seed << 20);
        sim_outcome there = {.status = HEM_OK};
        assert_int_equal(sim_apart(&program, 3, seed, SIM_HONEST, &there), 0);
        free(shift);
        assert_int_equal(here.hash, there.hash);
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_other_seed_other_run(void **unused) {
    (void)unused;
    enum {
        SEEDS = 100
    };
    uint64_t hashes[SEEDS];
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        hashes[seed] = sim_once(&program, 2, seed, SIM_HONEST).hash;
    qsort(hashes, SEEDS, sizeof hashes[0], by_value);
    for (int i = 1; i < SEEDS; i++)
        assert_int_not_equal(hashes[i - 1], hashes[i]);
}

/* Everything is scheduled from the start: ranks change places many times, and they do sleep. */
static void test_ranks_interleave(void **unused) {
    (void)unused;
    sim_outcome sum = {.status = HEM_OK};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sim_outcome one = sim_once(&program, 2, seed, SIM_HONEST);
        assert_true(one.switches > 20);
        sum.sleeps += one.sleeps;
    }
    assert_true(sum.sleeps > 100);
}

/* A token goes round: whoever misses its wake-up is never woken by anything else. */
static int token(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    for (uint64_t i = 1; i <= 8; i++) {
        if (hem_world_rank(world) != 0)
            SIM_OK(hem_wait_signal_from(window, sim_left(world), 0, HEM_GE, i, HEM_FOREVER));
        SIM_OK(hem_signal(window, sim_right(world), 0, HEM_SIGNAL_ADD, 1));
        if (hem_world_rank(world) == 0)
            SIM_OK(hem_wait_signal_from(window, sim_left(world), 0, HEM_GE, i, HEM_FOREVER));
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* The first seed under which a mutant deadlocks. The same seed must be fine without it. */
static void catch_mutant(sim_mutant mutant, const char *what) {
    const sim_program ring = {.name = "token", .fn = token};
    sim_outcome outcome = {.status = HEM_OK};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        int code = sim_apart(&ring, 3, seed, mutant, &outcome);
        if (code == 0)
            continue;
        assert_int_equal(code, SIM_EXIT_DEADLOCK);
        assert_int_equal(sim_apart(&ring, 3, seed, mutant, &outcome), SIM_EXIT_DEADLOCK);
        assert_int_equal(sim_apart(&ring, 3, seed, SIM_HONEST, &outcome), 0);
        print_message("%s: deadlock at seed %d\n", what, (int)seed);
        return;
    }
    fail_msg("%s was not noticed", what);
}

static void test_blind_park_is_caught(void **unused) {
    (void)unused;
    catch_mutant(SIM_PARK_BLIND, "a park that does not look at the word");
}

static void test_lost_wake_is_caught(void **unused) {
    (void)unused;
    catch_mutant(SIM_WAKE_LOST, "a wake that is lost");
}

/* A check that fails is seen from outside, too. */
static int wrong(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    bool done = false;
    SIM_OK(hem_test_signal(window, 0, HEM_GE, 1, &done));
    SIM_CHECK(done);
    return 0;
}

static void test_failure_is_seen(void **unused) {
    (void)unused;
    const sim_program bad = {.name = "wrong", .fn = wrong};
    sim_outcome outcome = {.status = HEM_OK};
    assert_int_equal(sim_apart(&bad, 2, 1, SIM_HONEST, &outcome), SIM_EXIT_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_run),   cmocka_unit_test(test_same_in_another_process),
        cmocka_unit_test(test_other_seed_other_run), cmocka_unit_test(test_ranks_interleave),
        cmocka_unit_test(test_blind_park_is_caught), cmocka_unit_test(test_lost_wake_is_caught),
        cmocka_unit_test(test_failure_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
