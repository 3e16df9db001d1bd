/*
 * Sleeping and waking under a deterministic scheduler, with nothing but signals: every wait sleeps
 * at once, and a wake-up that is missed is a deadlock. With membarrier, without, and with one that
 * fails now and then, as the seed says.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define ROUNDS 12

static void finish(hem_world *world, hem_window *window) {
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
}

static int ring(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        if (hem_world_rank(world) != 0)
            SIM_OK(hem_wait_signal_from(window, sim_left(world), 0, HEM_GE, i, HEM_FOREVER));
        SIM_OK(hem_signal(window, sim_right(world), 0, HEM_SIGNAL_ADD, 1));
        if (hem_world_rank(world) == 0)
            SIM_OK(hem_wait_signal_from(window, sim_left(world), 0, HEM_EQ, i, HEM_FOREVER));
    }
    finish(world, window);
    return 0;
}

/* All signal rank 0, which wants the sum, and then lets them go on. */
static int crowd(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    uint64_t others = (uint64_t)hem_world_size(world) - 1;
    for (uint64_t i = 1; i <= ROUNDS / 2; i++) {
        if (hem_world_rank(world) == 0) {
            SIM_OK(hem_wait_signal(window, 0, HEM_EQ, i * others, HEM_FOREVER));
            SIM_OK(hem_signal_all(window, 1, HEM_SIGNAL_SET, i));
        } else {
            SIM_OK(hem_signal(window, 0, 0, HEM_SIGNAL_ADD, 1));
            SIM_OK(hem_wait_signal_from(window, 0, 1, HEM_EQ, i, HEM_FOREVER));
        }
    }
    finish(world, window);
    return 0;
}

/* Rank 0 takes whichever signal comes, and nothing is lost or seen twice. */
static void take_any(hem_window *window, int others) {
    hem_signal_want wants[SIM_RANKS_MAX];
    for (int peer = 0; peer < others; peer++)
        wants[peer] = (hem_signal_want){peer + 1, 0, HEM_GE, 1};
    for (int left = others * ROUNDS / 2; left > 0; left--) {
        size_t which = SIM_RANKS_MAX;
        SIM_OK(hem_wait_signal_any(window, wants, (size_t)others, &which, HEM_FOREVER));
        SIM_CHECK(which < (size_t)others);
        sim_note(which);
        wants[which].value++;
    }
    for (int peer = 0; peer < others; peer++)
        SIM_EQ(wants[peer].value, ROUNDS / 2 + 1);
}

static int any(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    if (hem_world_rank(world) == 0)
        take_any(window, hem_world_size(world) - 1);
    for (int i = 0; hem_world_rank(world) != 0 && i < ROUNDS / 2; i++)
        SIM_OK(hem_signal(window, 0, 0, HEM_SIGNAL_ADD, 1));
    finish(world, window);
    return 0;
}

/* Counters: completion is local, and the wait for it still goes through the same door. */
static int counters(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    for (uint64_t i = 1; i <= ROUNDS / 2; i++) {
        SIM_OK(hem_put_signal_start(window, sim_right(world), 8, &i, sizeof i, 0, 1, 1));
        SIM_OK(hem_wait_counter(window, 1, i, HEM_FOREVER));
        SIM_OK(hem_wait_signal_from(window, sim_left(world), 0, HEM_GE, i, HEM_FOREVER));
    }
    finish(world, window);
    return 0;
}

static void run(const char *name, hem_rank_fn fn, int ranks, uint64_t seeds) {
    const sim_program program = {.name = name, .fn = fn};
    sim_many(&program, ranks, seeds);
}

static void test_ring(void **unused) {
    (void)unused;
    run("ring", ring, 2, 600);
    run("ring", ring, 3, 200);
    run("ring", ring, 5, 50);
}

static void test_crowd(void **unused) {
    (void)unused;
    run("crowd", crowd, 3, 200);
    run("crowd", crowd, 4, 100);
}

static void test_any(void **unused) {
    (void)unused;
    run("any", any, 3, 200);
}

static void test_counters(void **unused) {
    (void)unused;
    run("counters", counters, 2, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
