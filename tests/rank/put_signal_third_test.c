/*
 * After a flush, what was put is visible to every rank, also if it travelled in a signal's cache
 * line that its receiver has not looked at: a third rank that is told of it reads it from the
 * receiver's window. So does the receiver itself, told by the third.
 *
 * hem-test: ranks=3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    PAYLOAD_ID = 2,
    TELL_ID = 5,
    RELAY_ID = 7
};

struct place {
    size_t offset;
    size_t n;
    uint64_t tag;
    bool all;
    bool look;
    uint64_t dice;
};

static struct place place_of(uint64_t seed, int sender, int round) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)sender, (uint64_t)round);
    struct place p;

    p.offset = harness_below(&rng, 200);
    p.n = 1 + harness_below(&rng, harness_below(&rng, 4) ? 32 : 50);
    p.tag = harness_random(&rng);
    p.all = harness_below(&rng, 2);
    p.look = harness_below(&rng, 2);
    p.dice = harness_random(&rng);
    return p;
}

/* Rank r puts to r + 1, tells r + 2, and r + 2 reads from r + 1, then tells r + 1. */
static void one_round(hem_world *world, hem_window *window, uint64_t seed, int round) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    int next = (rank + 1) % size;
    int before = (rank + size - 1) % size;
    int origin = (rank + size - 2) % size;
    uint64_t count = (uint64_t)round + 1;
    struct place p = place_of(seed, rank, round);
    uint8_t bytes[64];

    harness_fill(bytes, p.n, p.tag);
    CHECK_OK(hem_put_signal(window, next, p.offset, bytes, p.n, PAYLOAD_ID, 1));
    CHECK_OK(p.all ? hem_flush_all(window) : hem_flush(window, next));
    CHECK_OK(hem_signal(window, (rank + 2) % size, TELL_ID, HEM_SIGNAL_ADD, 1));

    harness_dither(p.dice);
    p = place_of(seed, before, round);
    if (p.look)
        CHECK_OK(hem_wait_signal_from(window, before, PAYLOAD_ID, HEM_GE, count, LIMIT));

    p = place_of(seed, origin, round);
    CHECK_OK(hem_wait_signal_from(window, origin, TELL_ID, HEM_GE, count, LIMIT));
    CHECK_OK(hem_get(window, before, p.offset, bytes, p.n));
    CHECK_FILLED(bytes, p.n, p.tag);
    CHECK_OK(hem_signal(window, before, RELAY_ID, HEM_SIGNAL_ADD, 1));

    p = place_of(seed, before, round);
    CHECK_OK(hem_wait_signal_from(window, next, RELAY_ID, HEM_GE, count, LIMIT));
    CHECK_FILLED((uint8_t *)hem_window_memory(window) + p.offset, p.n, p.tag);
    harness_barrier(window);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    hem_window *window = harness_window(world, 256);
    int rounds = harness_rounds(2000);

    for (int round = 0; round < rounds; round++)
        one_round(world, window, seed, round);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
