/*
 * A stopped process is not dead: its peers wait for it, past the time in which a death is noticed,
 * and go on when it goes on. Puts to it work meanwhile.
 *
 * hem-test: ranks=2,4 modes=processes timeout=60
 */
#include "harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child of the rank to be stopped wakes it up again. */
static void stop_for(int ms) {
    pid_t rank = getpid();
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        harness_sleep_ms(ms);
        kill(rank, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    CHECK(waitpid(child, NULL, 0) == child);
}

static void one_stop(hem_world *world, hem_window *window, int sleeper, uint64_t round) {
    int64_t start = harness_now();
    uint64_t word = round;

    if (hem_world_rank(world) == sleeper) {
        stop_for(300);
        CHECK_OK(hem_signal_all(window, 1, HEM_SIGNAL_SET, round));
    } else {
        harness_sleep_ms(100);
        CHECK_EQ(hem_world_alive(world, sleeper), 1);
        CHECK_OK(hem_put_signal(window, sleeper, 8, &word, 8, 2, 1));
        CHECK_STATUS(hem_wait_signal_from(window, sleeper, 1, HEM_EQ, round, HEM_MS(60)),
                     HEM_ERR_TIMEOUT);
        CHECK_OK(hem_wait_signal_from(window, sleeper, 1, HEM_EQ, round, LIMIT));
        CHECK(harness_now() - start >= HEM_MS(250));
    }
    harness_barrier(window);
    for (int peer = 0; peer < hem_world_size(world); peer++)
        CHECK_EQ(hem_world_alive(world, peer), 1);
    harness_barrier(window);
}

int rank_main(hem_world *world) {
    hem_window *window = harness_window(world, 64);

    one_stop(world, window, hem_world_size(world) - 1, 1);
    one_stop(world, window, 0, 2);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
