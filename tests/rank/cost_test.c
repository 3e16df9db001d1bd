/*
 * What set-up costs: creating a window of 1 MiB, and the first use of a peer. Prints the medians; the
 * goal is 100 us each. Fails only at ten times that, since the machine may be busy.
 *
 * hem-test: ranks=2 modes=processes timeout=60
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 101
};

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double median_us(int64_t *times) {
    qsort(times, ROUNDS, sizeof *times, by_size);
    int64_t middle = times[ROUNDS / 2];

    return (double)middle / 1000.0;
}

int rank_main(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 1 << 20};
    int64_t create[ROUNDS];
    int64_t use[ROUNDS];
    uint64_t word = 1;

    for (int i = 0; i < ROUNDS; i++) {
        hem_window *window = NULL;
        int64_t start = harness_now();

        CHECK_OK(hem_window_create(world, &options, &window));
        create[i] = harness_now() - start;
        start = harness_now();
        CHECK_OK(hem_put_signal(window, harness_right(world), 0, &word, sizeof word, 0, 1));
        use[i] = harness_now() - start;
        CHECK_OK(hem_wait_signal_from(window, harness_left(world), 0, HEM_GE, 1, LIMIT));
        harness_destroy(window);
    }
    int64_t first = create[0];
    double create_us = median_us(create);
    double use_us = median_us(use);
    if (hem_world_rank(world) == 0)
        printf("window of 1 MiB: %.1f us (the first: %.1f us); first use of a peer: %.1f us\n",
               create_us, (double)first / 1000, use_us);
    CHECK(create_us < 1000 && use_us < 1000);
    CHECK_OK(hem_world_close(world));
    return 0;
}
