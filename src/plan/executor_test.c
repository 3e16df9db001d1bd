/* The host executor over real channels, with ranks as threads. */
#include "plan/executor.h"

#include "base/testing.h"
#include "core/engine.h"

#include <hem/hem.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT_NS (20ull * 1000 * 1000 * 1000)

/* Allocations of this process while somebody counts. */
static uint32_t counting;
static uint32_t allocations;

#if !TESTING_SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

void *malloc(size_t bytes) {
    hemi_add32_acq_rel(&allocations, hemi_load32_acquire(&counting));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    hemi_add32_acq_rel(&allocations, hemi_load32_acquire(&counting));
    return __libc_calloc(count, bytes);
}
#endif

static void add_words(const void *arg, void *out, const void *const *sources, size_t source_count,
                      size_t count) {
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (size_t s = 0; s < source_count; s++)
            sum += ((const uint64_t *)sources[s])[i];
        ((uint64_t *)out)[i] = sum;
    }
}

/* Advance a run to its end. */
static hem_status drive(hem_world *world, hemi_run *run) {
    const hemi_platform *platform = world->root->platform;
    uint64_t end = platform->now(platform->ctx) + LIMIT_NS;
    for (;;) {
        hemi_engine_lock(world);
        hem_status status = hemi_run_advance(run);
        hemi_engine_unlock(world);
        if (status != HEMI_AGAIN)
            return status;
        if (platform->now(platform->ctx) > end)
            return HEM_ERR_TIMEOUT;
        hemi_engine_inspect(world);
        sched_yield();
    }
}

static void start(hem_world *world, hemi_run *run) {
    hemi_engine_lock(world);
    hemi_run_start(run);
    hemi_engine_unlock(world);
}

static void cancel(hem_world *world, hemi_run *run) {
    hemi_engine_lock(world);
    hemi_run_cancel(run);
    hemi_engine_unlock(world);
}

/*
 * Everybody gets, in `output`, the sum of its own `input` and that of the rank below, then a copy of
 * it from the rank below.
 */
static hem_status plan_neighbours(hemi_plan *plan, uint32_t rank, uint32_t size, size_t bytes) {
    uint32_t up = (rank + 1) % size;
    uint32_t down = (rank + size - 1) % size;
    hemi_place in = hemi_place_at(HEMI_INPUT, 0);
    hemi_place out = hemi_place_at(HEMI_OUTPUT, 0);
    hemi_place arrival = hemi_place_at(HEMI_SCRATCH, 0);
    hemi_plan_init(plan, rank, size);
    hemi_plan_combine_by(plan, sizeof(uint64_t), add_words, NULL, 0);
    hemi_plan_send(plan, up, in, bytes);
    hemi_plan_recv(plan, down, arrival, bytes);
    hemi_plan_round(plan);
    hemi_plan_reduce(plan, out, arrival, in, bytes);
    hemi_plan_round(plan);
    hemi_plan_send(plan, up, out, bytes);
    hemi_plan_recv(plan, down, hemi_place_add(out, bytes), bytes);
    return hemi_plan_finish(plan);
}

static uint64_t value(uint32_t rank, uint64_t run, uint64_t i) {
    return (uint64_t)rank * 1000003 + run * 10007 + i;
}

typedef struct neighbours {
    size_t words;
    uint64_t runs;
} neighbours;

static bool is_right(const uint64_t *out, uint32_t rank, uint32_t size, uint64_t run,
                     size_t words) {
    uint32_t down = (rank + size - 1) % size;
    uint32_t below = (down + size - 1) % size;
    for (size_t i = 0; i < words; i++)
        if (out[i] != value(rank, run, i) + value(down, run, i) ||
            out[words + i] != value(down, run, i) + value(below, run, i))
            return false;
    return true;
}

static int run_neighbours(hem_world *world, void *arg) {
    const neighbours *how = arg;
    uint32_t rank = world->rank;
    uint32_t size = world->size;
    uint64_t *in = calloc(how->words + 1, sizeof *in);
    uint64_t *out = calloc(2 * how->words + 1, sizeof *out);
    hemi_plan plan;
    hemi_run run;
    RANK_CHECK(plan_neighbours(&plan, rank, size, how->words * sizeof *in) == HEM_OK);
    RANK_CHECK(hemi_plan_check(&plan) == HEM_OK);
    RANK_CHECK(hemi_run_prepare(&run, world, &plan, in, out) == HEM_OK);
    for (uint64_t k = 0; k < how->runs; k++) {
        for (size_t i = 0; i < how->words; i++)
            in[i] = value(rank, k, i);
        start(world, &run);
        RANK_CHECK(drive(world, &run) == HEM_OK);
        RANK_CHECK(hemi_run_waits_for(&run) == -1);
        RANK_CHECK(is_right(out, rank, size, k, how->words));
        /* With messages no rank is 5 runs ahead of another, so all have been through one by now. */
        if (k == how->runs / 4 && how->words > 0)
            hemi_store32_release(&counting, 1);
    }
    hemi_store32_release(&counting, 0);
    hemi_run_free(&run);
    hemi_plan_free(&plan);
    free(in);
    free(out);
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void a_plan_runs_again_and_again(void **state) {
    (void)state;
    neighbours how[] = {{0, 20}, {1, 400}, {5, 400}, {6, 400}, {600, 200}, {40000, 20}};
    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++)
        for (int size = 2; size <= 5; size++) {
            allocations = 0;
            assert_int_equal(hem_world_threads(size, run_neighbours, &how[i], NULL), HEM_OK);
            assert_int_equal(allocations, 0);
        }
}

/* One message from rank 1 to rank 0, or what rank 0 takes for it. */
static hem_status plan_one(hemi_plan *plan, const hem_world *world, size_t bytes) {
    hemi_plan_init(plan, world->rank, world->size);
    if (world->rank == 0)
        hemi_plan_recv(plan, 1, hemi_place_at(HEMI_OUTPUT, 0), bytes);
    else if (world->rank == 1)
        hemi_plan_send(plan, 0, hemi_place_at(HEMI_INPUT, 0), bytes);
    return hemi_plan_finish(plan);
}

typedef struct lengths {
    size_t sent;
    size_t expected;
    hem_status sender;   /* how it ends there; HEM_OK: may end either way */
    hem_status receiver; /* and there */
} lengths;

static int run_lengths(hem_world *world, void *arg) {
    const lengths *how = arg;
    static const unsigned char in[1 << 18];
    unsigned char *out = calloc(1, 1 << 18);
    hemi_plan plan;
    hemi_run run;
    bool receives = world->rank == 0;
    RANK_CHECK(plan_one(&plan, world, receives ? how->expected : how->sent) == HEM_OK);
    RANK_CHECK(hemi_run_prepare(&run, world, &plan, in, out) == HEM_OK);
    start(world, &run);
    hem_status status = drive(world, &run);
    if (receives) {
        RANK_CHECK(status == how->receiver);
        RANK_CHECK(hem_last_error()[0] != '\0');
    } else {
        RANK_CHECK(status == HEM_OK || status == how->sender);
    }
    cancel(world, &run);
    cancel(world, &run);
    hemi_run_free(&run);
    hemi_plan_free(&plan);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    free(out);
    return 0;
}

static void other_lengths_than_planned_are_errors(void **state) {
    (void)state;
    lengths how[] = {
        {8, 12, HEM_OK, HEM_ERR_MISMATCH},
        {12, 8, HEM_ERR_RANGE, HEM_ERR_RANGE},
        {200000, 200001, HEM_OK, HEM_ERR_MISMATCH},
        {200001, 200000, HEM_ERR_RANGE, HEM_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++)
        assert_int_equal(hem_world_threads(2, run_lengths, &how[i], NULL), HEM_OK);
}

/* Rank 0 gives up before rank 1 sends: what comes later is not written to its buffer. */
static uint32_t given_up;

static int run_cancelled(hem_world *world, void *arg) {
    size_t bytes = *(size_t *)arg;
    unsigned char *data = calloc(1, bytes);
    hemi_plan plan;
    hemi_run run;
    RANK_CHECK(plan_one(&plan, world, bytes) == HEM_OK);
    RANK_CHECK(hemi_run_prepare(&run, world, &plan, data, data) == HEM_OK);
    if (world->rank == 0) {
        start(world, &run);
        hemi_engine_inspect(world);
        RANK_CHECK(hemi_run_waits_for(&run) == 1);
        cancel(world, &run);
        RANK_CHECK(hemi_run_waits_for(&run) == -1);
        RANK_CHECK(hemi_run_advance(&run) == HEM_ERR_REVOKED);
        memset(data, 7, bytes);
        hemi_store32_release(&given_up, 1);
        while (hemi_load32_acquire(&given_up) == 1)
            hemi_engine_inspect(world);
        for (size_t i = 0; i < bytes; i++)
            RANK_CHECK(data[i] == 7);
    } else {
        while (hemi_load32_acquire(&given_up) == 0)
            sched_yield();
        start(world, &run);
        for (int i = 0; i < 100; i++) {
            hemi_engine_inspect(world);
            sched_yield();
        }
        cancel(world, &run);
        hemi_store32_release(&given_up, 2);
    }
    hemi_run_free(&run);
    hemi_plan_free(&plan);
    free(data);
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void a_cancelled_run_touches_nothing(void **state) {
    (void)state;
    size_t sizes[] = {1, 40, 41, 5000, 100000, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        given_up = 0;
        assert_int_equal(hem_world_threads(2, run_cancelled, &sizes[i], NULL), HEM_OK);
    }
}

/* Cancelled anywhere in the middle of a large exchange, by everybody at another time. */
static int run_interrupted(hem_world *world, void *arg) {
    uint64_t random = *(uint64_t *)arg + world->rank;
    const size_t words = 30000;
    uint64_t *in = calloc(words, sizeof *in);
    uint64_t *out = calloc(2 * words, sizeof *out);
    hemi_plan plan;
    hemi_run run;
    RANK_CHECK(plan_neighbours(&plan, world->rank, world->size, words * sizeof *in) == HEM_OK);
    RANK_CHECK(hemi_run_prepare(&run, world, &plan, in, out) == HEM_OK);
    start(world, &run);
    hem_status status = HEMI_AGAIN;
    for (uint64_t left = testing_random(&random) % 200; left > 0 && status == HEMI_AGAIN; left--) {
        hemi_engine_inspect(world);
        hemi_engine_lock(world);
        status = hemi_run_advance(&run);
        hemi_engine_unlock(world);
        if (left % 16 == 0)
            sched_yield();
    }
    cancel(world, &run);
    /* Whoever writes to them now is seen by the address sanitizer, or crashes. */
    hemi_run_free(&run);
    hemi_plan_free(&plan);
    free(in);
    free(out);
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void runs_can_end_anywhere(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++)
        assert_int_equal(hem_world_threads(2 + (int)(seed % 3), run_interrupted, &seed, NULL),
                         HEM_OK);
}

/* After a run that rank 0 gave up, another channel knows nothing of what rank 1 had sent. */
static int run_elsewhere(hem_world *world, void *arg) {
    unsigned char data = world->rank == 0 ? 0 : 1;
    hemi_plan plan;
    hemi_run run;
    (void)arg;
    RANK_CHECK(plan_one(&plan, world, 1) == HEM_OK);
    RANK_CHECK(hemi_run_prepare(&run, world, &plan, &data, &data) == HEM_OK);
    start(world, &run);
    if (world->rank == 0) {
        cancel(world, &run);
        data = 0;
    } else {
        RANK_CHECK(drive(world, &run) == HEM_OK);
        data = 2;
    }
    hemi_engine_lock(world);
    hem_status status = hemi_run_use_channel(&run, HEMI_CHANNEL_OWN - 1);
    hemi_engine_unlock(world);
    RANK_CHECK(status == HEM_OK);
    start(world, &run);
    RANK_CHECK(drive(world, &run) == HEM_OK);
    RANK_CHECK(data == 2);
    hemi_run_free(&run);
    hemi_plan_free(&plan);
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void another_channel_starts_afresh(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(hem_world_threads(2, run_elsewhere, NULL, NULL), HEM_OK);
}

/* Rank 1 ends without a word. */
static int run_deserted(hem_world *world, void *arg) {
    hemi_plan plan;
    hemi_run run;
    unsigned char byte = 0;
    (void)arg;
    if (world->rank == 1)
        return 0;
    RANK_CHECK(plan_one(&plan, world, 1) == HEM_OK);
    RANK_CHECK(hemi_run_prepare(&run, world, &plan, &byte, &byte) == HEM_OK);
    start(world, &run);
    RANK_CHECK(drive(world, &run) == HEM_ERR_PEER);
    RANK_CHECK(strstr(hem_last_error(), "rank 1") != NULL);
    cancel(world, &run);
    hemi_run_free(&run);
    hemi_plan_free(&plan);
    /* Somebody did not come to close it: that is known already. */
    (void)hem_world_close(world);
    return 0;
}

static void a_dead_peer_ends_a_run(void **state) {
    (void)state;
    assert_int_equal(hem_world_threads(2, run_deserted, NULL, NULL), HEM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_runs_again_and_again),
        cmocka_unit_test(other_lengths_than_planned_are_errors),
        cmocka_unit_test(a_cancelled_run_touches_nothing),
        cmocka_unit_test(runs_can_end_anywhere),
        cmocka_unit_test(another_channel_starts_afresh),
        cmocka_unit_test(a_dead_peer_ends_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
