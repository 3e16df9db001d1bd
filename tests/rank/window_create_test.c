/*
 * A new window is zeroed, its signals, counters and barriers too, also when its memory was used
 * before, and also when one rank comes late: whoever is back from creation may put and signal at
 * once, and nothing of it is lost. The largest and smallest numbers of ids work.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

static void check_fresh(hem_world *world, hem_window *window, size_t bytes) {
    uint64_t value = 1;
    bool done = true;

    CHECK_ALL(hem_window_memory(window), bytes, 0);
    CHECK_EQ((uintptr_t)hem_window_memory(window) % 64, 0);
    for (uint32_t id = 0; id < 4; id++) {
        CHECK_OK(hem_read_counter(window, id, &value));
        CHECK_EQ(value, 0);
    }
    for (int peer = 0; peer < hem_world_size(world); peer++) {
        CHECK_EQ(hem_window_bytes(window, peer), bytes);
        CHECK_OK(hem_test_signal_from(window, peer, 9, HEM_NE, 0, &done));
        CHECK(!done);
    }
}

/* Leaves no word of the window as it was. */
static void make_dirty(hem_world *world, hem_window *window, size_t bytes) {
    uint8_t byte = 0xff;
    size_t mine = (size_t)hem_world_rank(world);

    memset(hem_window_memory(window), 0xff, bytes);
    harness_barrier(window);
    for (int peer = 0; peer < hem_world_size(world); peer++) {
        for (uint32_t id = 0; id < 16; id++)
            CHECK_OK(hem_put_signal(window, peer, mine, &byte, 1, id, UINT64_MAX / 3));
        CHECK_OK(hem_put_start(window, peer, mine, &byte, 1, 0));
    }
    CHECK_OK(hem_barrier(window, 3, LIMIT));
    CHECK_OK(hem_barrier(window, 2, LIMIT));
    CHECK_OK(hem_barrier(window, 3, LIMIT));
}

static void recycled(hem_world *world, int rounds) {
    hem_window *window;
    size_t bytes;

    for (int round = 0; round < rounds; round++) {
        bytes = (size_t)(round % 3) * 5000;
        window = harness_window(world, bytes + 64);
        check_fresh(world, window, bytes + 64);
        CHECK_OK(hem_barrier(window, 1, LIMIT));
        make_dirty(world, window, bytes + 64);
        harness_destroy(window);
    }
}

/* A rank that is late to create, and late to look, loses nothing that the fast ones sent. */
static void late(hem_world *world, uint64_t seed, int rounds) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    uint64_t word;
    hem_window *window;

    for (int round = 0; round < rounds; round++) {
        harness_rng rng = harness_rng_of(seed, (uint64_t)rank, (uint64_t)round);

        if (harness_below(&rng, 3) == 0)
            harness_sleep_ms((int)harness_below(&rng, 4));
        window = harness_window(world, 64 * 16);
        for (int peer = 0; peer < size; peer++) {
            word = (uint64_t)(round * 100 + rank);
            CHECK_OK(hem_put_signal(window, peer, (size_t)rank * 64, &word, 8, 0, 1));
            CHECK_OK(hem_signal(window, peer, 1, HEM_SIGNAL_ADD, 5));
        }
        if (harness_below(&rng, 3) == 0)
            harness_sleep_ms((int)harness_below(&rng, 3));
        CHECK_OK(hem_wait_signal(window, 1, HEM_EQ, 5 * (uint64_t)size, LIMIT));
        for (int peer = 0; peer < size; peer++) {
            memcpy(&word, (char *)hem_window_memory(window) + (size_t)peer * 64, 8);
            CHECK_EQ(word, round * 100 + peer);
        }
        harness_destroy(window);
    }
}

static void extreme_ids(hem_world *world) {
    hem_window *window = harness_window_ids(world, 8, 4096, 256, 4096);
    int right = harness_right(world);
    uint8_t byte = 1;

    for (uint32_t id = 0; id < 4096; id += 13)
        CHECK_OK(hem_signal(window, right, id, HEM_SIGNAL_SET, id + 1));
    CHECK_OK(hem_signal(window, right, 4095, HEM_SIGNAL_SET, 4096));
    CHECK_STATUS(hem_signal(window, right, 4096, HEM_SIGNAL_SET, 1), HEM_ERR_RANGE);
    for (uint32_t id = 0; id < 256; id += 51)
        CHECK_OK(hem_barrier(window, id, LIMIT));
    CHECK_STATUS(hem_barrier(window, 256, LIMIT), HEM_ERR_RANGE);
    for (uint32_t id = 0; id < 4096; id += 13)
        CHECK_OK(hem_wait_signal_from(window, harness_left(world), id, HEM_EQ, id + 1, LIMIT));
    CHECK_OK(hem_wait_signal(window, 4095, HEM_EQ, 4096, LIMIT));
    CHECK_OK(hem_put_start(window, right, 0, &byte, 1, 4095));
    CHECK_OK(hem_wait_counter(window, 4095, 1, LIMIT));
    CHECK_STATUS(hem_wait_counter(window, 4096, 1, LIMIT), HEM_ERR_RANGE);
    harness_destroy(window);

    window = harness_window_ids(world, 0, 1, 1, 1);
    CHECK_STATUS(hem_signal(window, right, 1, HEM_SIGNAL_SET, 1), HEM_ERR_RANGE);
    CHECK_STATUS(hem_barrier(window, 1, LIMIT), HEM_ERR_RANGE);
    CHECK_OK(hem_signal(window, right, 0, HEM_SIGNAL_SET, 1));
    CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, 1, LIMIT));
    harness_barrier(window);
    harness_destroy(window);
}

/* Windows live side by side and are destroyed in another order than they were made. */
static void several(hem_world *world) {
    enum {
        N = 12
    };
    hem_window *windows[N];
    uint64_t word;

    for (int i = 0; i < N; i++)
        windows[i] = harness_window(world, 16 + (size_t)i * 1000);
    for (int i = 0; i < N; i++) {
        word = (uint64_t)i + 1;
        CHECK_OK(hem_put_signal(windows[i], harness_right(world), 8, &word, 8, 0, word));
    }
    for (int i = 0; i < N; i++) {
        int k = (i * 5) % N;

        CHECK_OK(hem_wait_signal(windows[k], 0, HEM_EQ, (uint64_t)k + 1, LIMIT));
        memcpy(&word, (char *)hem_window_memory(windows[k]) + 8, 8);
        CHECK_EQ(word, k + 1);
        harness_destroy(windows[k]);
    }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int size = hem_world_size(world);

    recycled(world, harness_rounds(400 / size));
    late(world, seed, harness_rounds(60));
    extreme_ids(world);
    several(world);
    harness_close(world, HEM_OK);
    return 0;
}
