/*
 * No wake-up is ever missed. Here nobody spins and nobody yields, so that every wait goes to sleep
 * and every signal has to wake somebody: words go back and forth, barriers follow each other, and
 * several threads of a rank sleep at once, with the sleeper's fence and with the signaller's.
 *
 * hem-test: ranks=2,3,4,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    THREADS = 2
};

struct sleeper {
    hem_window *window;
    uint32_t id;
    int left;
    int right;
    uint64_t rounds;
};

/* A ring in which each rank waits before it sends, but for rank 0: one is awake at a time. */
static void pass_on(void *arg) {
    struct sleeper *s = arg;

    for (uint64_t round = 1; round <= s->rounds; round++) {
        if (s->right == 1)
            CHECK_OK(hem_put_signal(s->window, s->right, s->id * 8, &round, 8, s->id, 1));
        CHECK_OK(hem_wait_signal_from(s->window, s->left, s->id, HEM_GE, round, LIMIT));
        if (s->right != 1)
            CHECK_OK(hem_put_signal(s->window, s->right, s->id * 8, &round, 8, s->id, 1));
    }
}

static int play(hem_world *world) {
    hem_window *window = harness_window(world, 64);
    struct sleeper sleepers[THREADS];
    harness_thread threads[THREADS];
    int rounds = harness_rounds(6000 / hem_world_size(world));

    for (uint32_t i = 0; i < THREADS; i++) {
        sleepers[i] = (struct sleeper){window, i, harness_left(world), harness_right(world),
                                       (uint64_t)rounds};
        harness_start(&threads[i], pass_on, &sleepers[i]);
    }
    harness_join(threads, THREADS);
    for (int round = 0; round < rounds; round++)
        CHECK_OK(hem_barrier(window, (uint32_t)round % 3, LIMIT));
    for (uint64_t round = 1; round <= (uint64_t)rounds; round++) {
        CHECK_OK(hem_signal_all(window, 5, HEM_SIGNAL_ADD, 1));
        CHECK_OK(hem_wait_signal(window, 5, HEM_GE, round * (uint64_t)(hem_world_size(world) - 1),
                                 LIMIT));
    }
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, play);
}

int main(int argc, char **argv) {
    static const char *const fences[] = {"0", "1"};
    hem_world *world = NULL;

    setenv("HEM_SPIN", "0", 1);
    setenv("HEM_YIELD_US", "0", 1);
    for (int i = 0; i < 2; i++) {
        setenv("HEM_FENCE", fences[i], 1);
        if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
            harness_set_threads();
            CHECK_OK(hem_world_threads(atoi(argv[2]), thread_rank, NULL, NULL));
            continue;
        }
        CHECK_OK(hem_world_open(NULL, &world));
        if (harness_run(world, play) != 0)
            return 1;
    }
    return 0;
}
