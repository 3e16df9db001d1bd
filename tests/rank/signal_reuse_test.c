/*
 * A signal is good for ever: ten thousand uses of each of several ids, plain and with puts before
 * them, among all ranks. A wait never passes before its own signal came, so the bytes are always
 * those of this round.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    LONG = 72
};

/* The ring's left puts a long piece and signals; ids alternate; the ack goes back on another id. */
static void ring(hem_world *world, hem_window *window, int rounds) {
    int left = harness_left(world);
    int right = harness_right(world);
    uint8_t *mine = hem_window_memory(window);
    uint64_t uses[2] = {0};
    uint8_t bytes[LONG];
    uint32_t id;

    for (int round = 0; round < rounds; round++) {
        id = (uint32_t)(round * 7 / 5) % 2;
        uses[id]++;
        harness_fill(bytes, LONG, (uint64_t)round * 11 + (uint64_t)right);
        CHECK_OK(hem_put(window, right, id * LONG, bytes, LONG));
        CHECK_OK(hem_signal(window, right, id, HEM_SIGNAL_ADD, 1));
        CHECK_OK(hem_wait_signal_from(window, left, id, HEM_GE, uses[id], LIMIT));
        CHECK_FILLED(mine + id * LONG, LONG,
                     (uint64_t)round * 11 + (uint64_t)hem_world_rank(world));
        CHECK_OK(hem_signal(window, left, 2, HEM_SIGNAL_SET, (uint64_t)round + 1));
        CHECK_OK(hem_wait_signal_from(window, right, 2, HEM_EQ, (uint64_t)round + 1, LIMIT));
    }
}

/* All to all by sums: nobody gets ahead by more than one round. */
static void gather(hem_world *world, hem_window *window, int rounds) {
    uint64_t others = (uint64_t)hem_world_size(world) - 1;
    uint64_t value;

    for (int round = 1; round <= rounds; round++) {
        CHECK_OK(hem_signal_all(window, 4, HEM_SIGNAL_ADD, 1));
        CHECK_OK(hem_wait_signal(window, 4, HEM_GE, (uint64_t)round * others, LIMIT));
        CHECK_OK(hem_read_signal(window, 4, &value));
        CHECK(value >= (uint64_t)round * others && value <= (uint64_t)(round + 1) * others);
    }
    harness_barrier(window);
    CHECK_OK(hem_read_signal(window, 4, &value));
    CHECK_EQ(value, (uint64_t)rounds * others);
}

int rank_main(hem_world *world) {
    hem_window *window = harness_window(world, 2 * LONG);
    int rounds = harness_rounds(10000);

    ring(world, window, rounds);
    gather(world, window, hem_world_size(world) > 5 ? rounds / 4 : rounds);
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
