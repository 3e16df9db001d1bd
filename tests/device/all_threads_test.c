/*
 * Several threads of a rank, each with an object of its own: one drives kernels on a window, one a pipe,
 * one an exchange, one collectives, on streams of their own and by the host, while another one puts, gets
 * and signals with the CPU, and makes and closes worlds with windows in device memory.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=90
 */
#include "all_kit.h"

typedef struct worker {
    all_kit *kit;
    int part;
    uint64_t steps;
    hem_world *world; /* of its own */
    uint64_t seed;
} worker;

/* Whether a step is short is the same on all ranks. */
static bool is_brief(const worker *w, uint64_t step) {
    return (w->seed >> (step % 60)) % 4 != 0;
}

static void drive(void *arg) {
    const worker *w = (const worker *)arg;
    for (uint64_t i = 0; i < w->steps; i++) {
        bool by_host = (w->part == ALL_HALO || w->part == ALL_COLL) && i % 5 == 4;
        if (by_host)
            all_step_by_host(w->kit, w->part, is_brief(w, i));
        else
            all_step(w->kit, w->part, is_brief(w, i));
        if (i % 8 == 7)
            device_stream_sync(w->kit->native[w->part]);
    }
    device_stream_sync(w->kit->native[w->part]);
}

/* The CPU's side of a window, and windows that come and go. */
static void bustle(void *arg) {
    const worker *w = (const worker *)arg;
    int right = harness_right(w->world), left = harness_left(w->world);
    for (uint64_t i = 0; i < w->steps / 4 + 1; i++) {
        hem_window_options o = window_kit_options(512 * (size_t)(1 + i % 5));
        hem_window *window = window_kit_create(w->world, &o);
        uint64_t word = i * 10 + 1, seen = 0;
        CHECK_OK(hem_put_signal(window, right, 64, &word, 8, 13, 1));
        CHECK_OK(hem_wait_signal_from(window, left, 13, HEM_GE, 1, LIMIT));
        CHECK_OK(hem_get(window, hem_world_rank(w->world), 64, &seen, 8));
        CHECK_EQ(seen, word);
        CHECK_OK(hem_window_destroy(window));
    }
}

int rank_main(hem_world *world) {
    harness_rng rng = harness_rng_of(harness_seed(world), 1, 2);
    all_kit kit = all_open(world, true);
    harness_thread threads[ALL_PARTS + 1];
    worker workers[ALL_PARTS + 1];
    uint64_t steps = (uint64_t)harness_rounds(120);
    hem_world *apart = NULL;
    CHECK_OK(hem_world_split(world, 0, hem_world_rank(world), &apart));
    uint64_t seed = harness_random(&rng);
    for (int i = 0; i <= ALL_PARTS; i++) {
        workers[i].kit = &kit;
        workers[i].part = i;
        workers[i].steps = steps;
        workers[i].world = apart;
        workers[i].seed = seed;
        harness_start(&threads[i], i < ALL_PARTS ? drive : bustle, &workers[i]);
    }
    harness_join(threads, ALL_PARTS + 1);
    all_check(&kit, steps);
    CHECK_OK(hem_world_close(apart));
    all_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
