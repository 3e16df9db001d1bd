/*
 * Barriers under a deterministic scheduler: used again and again, ids in turns, whole or as arrive
 * and wait. What was put before is there after, and nobody is ever more than one round ahead.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define ROUNDS 4
#define WORDS  16

/* Tell everybody which round this is: directly, or in a signal's line. */
static void tell(hem_window *window, const hem_world *world, uint64_t round) {
    size_t place = (size_t)hem_world_rank(world) * sizeof round;
    for (int peer = 0; peer < hem_world_size(world); peer++) {
        if (sim_below(2) == 0)
            SIM_OK(hem_put(window, peer, place, &round, sizeof round));
        else
            SIM_OK(hem_put_signal(window, peer, place, &round, sizeof round, 1, 1));
    }
}

static void pass(hem_window *window, uint32_t id) {
    if (sim_below(2) == 0) {
        SIM_OK(hem_barrier(window, id, HEM_FOREVER));
        return;
    }
    bool done = false;
    SIM_OK(hem_barrier_arrive(window, id));
    SIM_OK(hem_barrier_test(window, id, &done));
    if (!done)
        SIM_OK(hem_barrier_wait(window, id, HEM_FOREVER));
}

static int reuse(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, WORDS * sizeof(uint64_t));
    const uint64_t *words = hem_window_memory(window);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        tell(window, world, round);
        pass(window, (uint32_t)(round % 2));
        for (int peer = 0; peer < hem_world_size(world); peer++)
            SIM_EQ(words[peer], round);
        /* Nobody may write the next round before all have read this one. */
        pass(window, 2);
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* Without the second barrier, a peer may be one round ahead, and never two. */
static int ahead(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, WORDS * sizeof(uint64_t));
    uint64_t *words = hem_window_memory(window);
    size_t place = (size_t)hem_world_rank(world) * sizeof(uint64_t);
    for (uint64_t round = 1; round <= 2 * ROUNDS; round++) {
        for (int peer = 0; peer < hem_world_size(world); peer++)
            SIM_OK(hem_put_value(window, peer, place, round));
        SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
        for (int peer = 0; peer < hem_world_size(world); peer++) {
            uint64_t seen = __atomic_load_n(&words[peer], __ATOMIC_ACQUIRE);
            SIM_CHECK(seen == round || seen == round + 1);
        }
    }
    SIM_OK(hem_world_close(world));
    SIM_OK(hem_window_destroy(window));
    return 0;
}

/* Between two, in a ring, while the others have barriers of their own. */
static int pairs(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, WORDS * sizeof(uint64_t));
    const uint64_t *words = hem_window_memory(window);
    int left = sim_left(world);
    int right = sim_right(world);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        SIM_OK(hem_put_signal(window, right, 0, &round, sizeof round, 3, 1));
        SIM_OK(hem_barrier_peer_arrive(window, right, 1));
        if (left != right) {
            SIM_OK(hem_barrier_peer(window, left, 1, HEM_FOREVER));
            SIM_OK(hem_barrier_peer_wait(window, right, 1, HEM_FOREVER));
        } else {
            SIM_OK(hem_barrier_peer_wait(window, left, 1, HEM_FOREVER));
        }
        SIM_EQ(words[0], round);
        SIM_OK(hem_barrier(window, 1, HEM_FOREVER));
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

static void test_reuse(void **unused) {
    (void)unused;
    const sim_program program = {.name = "barrier reuse", .fn = reuse};
    sim_many(&program, 2, 400);
    sim_many(&program, 3, 300);
    sim_many(&program, 5, 40);
}

static void test_ahead(void **unused) {
    (void)unused;
    const sim_program program = {.name = "barrier ahead", .fn = ahead};
    sim_many(&program, 2, 200);
    sim_many(&program, 3, 200);
}

static void test_pairs(void **unused) {
    (void)unused;
    const sim_program program = {.name = "barrier of pairs", .fn = pairs};
    sim_many(&program, 2, 100);
    sim_many(&program, 3, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
