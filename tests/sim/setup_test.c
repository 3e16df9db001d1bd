/*
 * Collective set-up under a deterministic scheduler: windows are created and destroyed, worlds
 * split and closed in any order; all ranks agree, memory is clear when it is handed out, and errors
 * are the same everywhere.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void ring_once(hem_world *world, hem_window *window, uint32_t id) {
    uint64_t word = 77;
    const uint64_t *mine = hem_window_memory(window);
    SIM_EQ(mine[0], 0);
    /* Nobody puts before all have looked. */
    SIM_OK(hem_barrier(window, 3, HEM_FOREVER));
    SIM_OK(hem_put_signal(window, sim_right(world), 0, &word, sizeof word, id, 1));
    SIM_OK(hem_wait_signal_from(window, sim_left(world), id, HEM_EQ, 1, HEM_FOREVER));
    SIM_EQ(mine[0], 77);
}

/* Memory comes back from the heap used: it must be clear again, and so must the signals. */
static int windows(hem_world *world, void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        hem_window *first = sim_window(world, 64 + 4096 * (size_t)hem_world_rank(world));
        hem_window *second = sim_window(world, 64);
        ring_once(world, second, 2);
        SIM_OK(hem_window_destroy(i % 2 == 0 ? first : second));
        if (i % 2 == 0)
            memset(hem_window_memory(second), 0xff, 64);
        else
            ring_once(world, first, 2);
        SIM_OK(hem_window_destroy(i % 2 == 0 ? second : first));
    }
    SIM_OK(hem_world_close(world));
    return 0;
}

/* One rank asks for nonsense: nobody gets a window, everybody the same error, and life goes on. */
static int refused(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = NULL;
    for (int bad = 0; bad < hem_world_size(world); bad++) {
        hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
        if (bad == hem_world_rank(world))
            options.signals = 1u << 20;
        SIM_STATUS(hem_window_create(world, &options, &window), HEM_ERR_RANGE);
        options.signals = bad == hem_world_rank(world) ? 3 : 4;
        SIM_STATUS(hem_window_create(world, &options, &window), HEM_ERR_MISMATCH);
        SIM_CHECK(window == NULL);
    }
    window = sim_window(world, 64);
    ring_once(world, window, 0);
    SIM_OK(hem_world_close(world));
    SIM_OK(hem_window_destroy(window));
    return 0;
}

/* Worlds out of worlds, ordered backwards, that outlive the one they came from. */
static int splits(hem_world *world, void *unused) {
    (void)unused;
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_world *backwards = NULL;
    hem_world *half = NULL;
    hem_world *none = world;
    SIM_OK(hem_world_split(world, 7, -rank, &backwards));
    SIM_EQ(hem_world_rank(backwards), size - 1 - rank);
    SIM_OK(hem_world_split(world, rank % 2, 0, &half));
    SIM_EQ(hem_world_rank(half), rank / 2);
    SIM_OK(hem_world_split(world, HEM_NO_COLOUR, 0, &none));
    SIM_CHECK(none == NULL);
    if (sim_below(2) == 0)
        sim_note(sim_now());
    SIM_OK(hem_world_close(world));
    hem_window *window = sim_window(backwards, 64);
    hem_window *other = sim_window(half, 64);
    ring_once(backwards, window, 0);
    SIM_OK(hem_window_destroy(other));
    SIM_OK(hem_world_close(half));
    SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(backwards));
    return 0;
}

/* Different calls at the same time are an error on all, and no hang. */
static int mixed_up(hem_world *world, void *unused) {
    (void)unused;
    if (hem_world_rank(world) == 0) {
        hem_world *made = NULL;
        SIM_STATUS(hem_world_split(world, 0, 0, &made), HEM_ERR_MISMATCH);
    } else {
        const hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
        hem_window *window = NULL;
        SIM_STATUS(hem_window_create(world, &options, &window), HEM_ERR_MISMATCH);
    }
    SIM_OK(hem_world_close(world));
    return 0;
}

static void run(const char *name, hem_rank_fn fn, int ranks, uint64_t seeds) {
    const sim_program program = {.name = name, .fn = fn};
    sim_many(&program, ranks, seeds);
}

static void test_windows(void **unused) {
    (void)unused;
    run("windows", windows, 2, 200);
    run("windows", windows, 3, 100);
}

static void test_refused(void **unused) {
    (void)unused;
    run("refused windows", refused, 2, 100);
    run("refused windows", refused, 3, 100);
}

static void test_splits(void **unused) {
    (void)unused;
    run("splits", splits, 2, 100);
    run("splits", splits, 3, 200);
    run("splits", splits, 4, 50);
}

static void test_mixed_up(void **unused) {
    (void)unused;
    run("mixed-up calls", mixed_up, 2, 100);
    run("mixed-up calls", mixed_up, 3, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_mixed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
