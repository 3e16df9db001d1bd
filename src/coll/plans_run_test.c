/*
 * hem-test: timeout=120 labels=soak
 *
 * The plans of all algorithms, run by the executor over real channels with ranks as threads, one
 * after the other on one world without a pause, with the library's own reductions. In place and not
 * take turns from one to the next; HEM_TEST_FULL=1 runs both of each.
 */
#include "base/env.h"
#include "coll/plans_testing.h"
#include "plan/executor.h"

#include <hem/hem.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TRIALS   1000
#define LIMIT_NS (60ull * 1000 * 1000 * 1000)

static const size_t counts[] = {0, 1, 3, 64, 1000, 12345};

typedef struct series {
    trial *trials[TRIALS];
    size_t count;
} series;

static void add_trial(series *all, const hemi_algorithm *algorithm, uint32_t size, size_t count,
                      int way) {
    trial *t = calloc(1, sizeof *t);
    assert_non_null(t);
    assert_true(all->count < TRIALS);
    t->algorithm = algorithm;
    t->size = size;
    t->in_place = way & 1;
    t->own_reducer = true;
    t->random = count + size;
    make_trial(t, count, (uint32_t)count % size, way & 2 ? FLOATS : MATRICES);
    for (uint32_t r = 0; r < size; r++)
        assert_int_equal(algorithm->plan(&t->jobs[r], &t->plans[r]), HEM_OK);
    all->trials[all->count++] = t;
}

static hem_status drive(hem_world *world, hemi_run *run) {
    const hemi_platform *platform = world->root->platform;
    uint64_t end = platform->now(platform->ctx) + LIMIT_NS;
    hem_status status = HEMI_AGAIN;
    hemi_engine_lock(world);
    hemi_run_start(run);
    hemi_engine_unlock(world);
    while (status == HEMI_AGAIN) {
        hemi_engine_inspect(world);
        hemi_engine_lock(world);
        status = hemi_run_advance(run);
        hemi_engine_unlock(world);
        if (status == HEMI_AGAIN)
            sched_yield();
        if (platform->now(platform->ctx) > end)
            return HEM_ERR_TIMEOUT;
    }
    return status;
}

static int run_series(hem_world *world, void *arg) {
    const series *all = arg;
    for (size_t i = 0; i < all->count; i++) {
        const trial *t = all->trials[i];
        const hemi_job *job = &t->jobs[world->rank];
        hemi_run run;
        RANK_CHECK(hemi_run_prepare(&run, world, &t->plans[world->rank], job->send, job->recv) ==
                   HEM_OK);
        RANK_CHECK(drive(world, &run) == HEM_OK);
        hemi_run_free(&run);
    }
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void run_size(uint32_t size, size_t first, size_t end) {
    series *all = calloc(1, sizeof *all);
    bool full = hemi_env_text("HEM_TEST_FULL") != NULL;
    size_t algorithm_count;
    const hemi_algorithm *algorithms = hemi_algorithms(&algorithm_count);
    assert_non_null(all);
    for (size_t c = first; c < end; c++)
        for (size_t a = 0; a < algorithm_count; a++)
            for (int way = suits(&algorithms[a], FLOATS) ? 3 : 1; way >= 0; way--)
                if (full || (size_t)way % 2 == (a + c + size) % 2)
                    add_trial(all, &algorithms[a], size, counts[c], way);
    assert_int_equal(hem_world_threads((int)size, run_series, all, NULL), HEM_OK);
    for (size_t i = 0; i < all->count; i++) {
        trial *t = all->trials[i];
        for (uint32_t r = 0; r < size; r++) {
            const char *what = judge(t, r);
            if (what != NULL)
                fail_msg("%s, kind %d, rank %u of %u, trial %zu: %s", t->algorithm->name,
                         (int)t->algorithm->kind, r, size, i, what);
        }
        free_trial(t);
        free(t);
    }
    free(all);
}

static void short_ones_give_the_reference(void **state) {
    (void)state;
    for (uint32_t size = 1; size <= 5; size++)
        run_size(size, 0, 4);
}

static void long_ones_give_the_reference(void **state) {
    (void)state;
    for (uint32_t size = 2; size <= 5; size++)
        run_size(size, 4, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ones_give_the_reference),
        cmocka_unit_test(long_ones_give_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
