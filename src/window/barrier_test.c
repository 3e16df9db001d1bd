/* Barriers that somebody leaves for good, of as many ranks as one round serves, and of more. */
#include "window/window.h"

#include "base/testing.h"

#include <hem/hem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT  HEM_SEC(20)
#define RANKS  (HEMI_BARRIER_FLAT + 7)
#define ROUNDS 20

static hem_window *open_window(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 8};
    hem_window *window = NULL;
    return hem_window_create(world, &options, &window) == HEM_OK ? window : NULL;
}

static void run(int ranks, hem_rank_fn fn) {
    uint32_t count = 0;
    hem_status status = hem_world_threads(ranks, fn, &count, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

/*
 * Everybody has entered, so that the barrier succeeds for all, also for those that find others gone
 * when they look. Ranks leave by closing the world, which closes the window with it.
 */
static int enter_and_close(hem_world *world, void *arg) {
    hem_window *window = open_window(world);
    (void)arg;
    RANK_CHECK(window != NULL);
    hem_status status = hem_barrier(window, 0, LIMIT);
    hem_status closed = hem_world_close(world);
    RANK_CHECK(hem_window_destroy(window) == HEM_OK);
    RANK_CHECK(status == HEM_OK);
    RANK_CHECK(closed == HEM_OK);
    return 0;
}

static void who_leaves_behind_a_flat_barrier_disturbs_nobody(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        run(5, enter_and_close);
}

static void who_leaves_behind_a_barrier_in_rounds_disturbs_nobody(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        run(RANKS, enter_and_close);
}

static void meet(const hem_world *world, uint32_t *count) {
    hemi_add32_acq_rel(count, 1);
    while (hemi_load32_acquire(count) < world->size)
        world->root->platform->yield(world->root->platform->ctx);
}

/* And yet a rank that leaves without having entered is told to all. */
static int enter_without_one(hem_world *world, void *arg) {
    hem_window *window = open_window(world);
    RANK_CHECK(window != NULL);
    RANK_CHECK(hem_barrier(window, 0, LIMIT) == HEM_OK);
    meet(world, arg);
    if (hem_world_rank(world) == 3)
        return 0;
    RANK_CHECK(hem_barrier(window, 0, LIMIT) == HEM_ERR_PEER);
    RANK_CHECK(strstr(hem_last_error(), "rank 3") != NULL);
    RANK_CHECK(hem_window_destroy(window) == HEM_ERR_PEER);
    RANK_CHECK(hem_world_close(world) == HEM_ERR_PEER);
    return 0;
}

static void who_does_not_enter_is_missed(void **state) {
    (void)state;
    run(5, enter_without_one);
    run(RANKS, enter_without_one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_behind_a_flat_barrier_disturbs_nobody),
        cmocka_unit_test(who_leaves_behind_a_barrier_in_rounds_disturbs_nobody),
        cmocka_unit_test(who_does_not_enter_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
