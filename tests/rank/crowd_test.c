/*
 * More ranks than cores work well: barriers, a ring of signals and pairs keep a pace that spinning
 * alone could not, because who waits makes room. The limits are far above what is measured, and far
 * below what a machine does whose waiters hold on to their cores until the scheduler takes them.
 *
 * hem-test: ranks=8,16 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    ROUNDS = 2000
};

static void check_pace(const char *what, int64_t start) {
    int64_t took = harness_now() - start;
    int64_t limit = HEM_SEC(harness_sanitized() ? 40 : 10);

    if (took > limit)
        harness_fail(__FILE__, __LINE__, "%d rounds of %s took %lld ms", ROUNDS, what,
                     (long long)took / 1000000);
}

static void barriers(hem_window *window) {
    int64_t start = harness_now();

    for (int round = 0; round < ROUNDS; round++)
        CHECK_OK(hem_barrier(window, 1, LIMIT));
    check_pace("barriers", start);
}

/* A token goes round; only one rank can work at a time and all others must stay out of its way. */
static void token(hem_world *world, hem_window *window) {
    int rank = hem_world_rank(world);
    int64_t start = harness_now();

    for (uint64_t lap = 1; lap <= ROUNDS / 4; lap++) {
        if (rank != 0)
            CHECK_OK(hem_wait_signal_from(window, rank - 1, 0, HEM_GE, lap, LIMIT));
        CHECK_OK(hem_put_signal(window, harness_right(world), 0, &lap, 8, 0, 1));
        if (rank == 0)
            CHECK_OK(hem_wait_signal_from(window, harness_left(world), 0, HEM_GE, lap, LIMIT));
    }
    check_pace("a token", start);
}

int rank_main(hem_world *world) {
    hem_window *window = harness_window(world, 64);

    barriers(window);
    token(world, window);
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
