/*
 * Every data call with a bad window, rank, offset, length, alignment or pointer returns a status
 * and a sentence, writes nothing anywhere, leaves outputs alone, and harms nobody: the window works
 * as before.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <limits.h>

enum {
    BYTES = 256
};

#define ARG(call)   CHECK_STATUS(call, HEM_ERR_ARG)
#define RANGE(call) CHECK_STATUS(call, HEM_ERR_RANGE)

static void no_window(void) {
    uint64_t word = 9;
    hem_buffer buffer;

    ARG(hem_put(NULL, 0, 0, &word, 8));
    ARG(hem_get(NULL, 0, 0, &word, 8));
    ARG(hem_put_value(NULL, 0, 0, 1));
    ARG(hem_fetch_add(NULL, 0, 0, 1, &word));
    ARG(hem_compare_swap(NULL, 0, 0, 0, 1, &word));
    ARG(hem_put_start(NULL, 0, 0, &word, 8, 0));
    ARG(hem_get_start(NULL, 0, 0, &word, 8, 0));
    ARG(hem_flush(NULL, 0));
    ARG(hem_flush_all(NULL));
    ARG(hem_window_buffer(NULL, "a", &buffer));
    CHECK(hem_window_memory(NULL) == NULL);
    CHECK(hem_window_peer_address(NULL, 0, 0) == NULL);
    CHECK(hem_window_translate(NULL, &word, 0) == NULL);
    CHECK_EQ(hem_window_bytes(NULL, 0), 0);
    CHECK_EQ(word, 9);
}

static void bad_rank(hem_window *w, int rank) {
    uint64_t word = 9;

    RANGE(hem_put(w, rank, 0, &word, 8));
    RANGE(hem_put(w, rank, 0, NULL, 0));
    RANGE(hem_get(w, rank, 0, &word, 8));
    RANGE(hem_put_value(w, rank, 0, 1));
    RANGE(hem_fetch_add(w, rank, 0, 1, &word));
    RANGE(hem_compare_swap(w, rank, 0, 0, 1, &word));
    RANGE(hem_put_start(w, rank, 0, &word, 8, 0));
    RANGE(hem_get_start(w, rank, 0, &word, 8, 0));
    RANGE(hem_flush(w, rank));
    CHECK_EQ(hem_window_bytes(w, rank), 0);
    CHECK(hem_window_peer_address(w, rank, 0) == NULL);
    CHECK(hem_window_translate(w, hem_window_memory(w), rank) == NULL);
    CHECK_EQ(word, 9);
}

static void bad_place(hem_window *w, int peer, size_t offset, size_t n) {
    static const uint8_t source[16] = "0123456789abcdef";
    uint8_t bytes[16] = "0123456789abcdef";

    RANGE(hem_put(w, peer, offset, source, n));
    RANGE(hem_get(w, peer, offset, bytes, n));
    RANGE(hem_put_start(w, peer, offset, source, n, 0));
    RANGE(hem_get_start(w, peer, offset, bytes, n, 0));
    RANGE(hem_put_signal(w, peer, offset, source, n, 0, 1));
    RANGE(hem_put_signal_op(w, peer, offset, source, n, 0, HEM_SIGNAL_SET, 1));
    RANGE(hem_put_signal_start(w, peer, offset, source, n, 0, 1, 0));
    CHECK(memcmp(bytes, source, 16) == 0);
}

static void bad_places(hem_window *w, int peer) {
    static const size_t places[][2] = {
        {BYTES, 1},           {BYTES - 1, 2},       {BYTES + 1, 0},
        {0, BYTES + 1},       {SIZE_MAX, 1},        {SIZE_MAX, 0},
        {1, SIZE_MAX},        {SIZE_MAX, SIZE_MAX}, {SIZE_MAX - 7, 16},
        {8, SIZE_MAX - 7},    {SIZE_MAX / 2, 8},    {SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1},
        {(size_t)1 << 32, 8}, {8, (size_t)1 << 32}, {0, (size_t)1 << 63},
    };
    uint64_t word = 9;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        bad_place(w, peer, places[i][0], places[i][1]);
    RANGE(hem_put_value(w, peer, BYTES, 1));
    RANGE(hem_put_value(w, peer, SIZE_MAX - 7, 1));
    RANGE(hem_fetch_add(w, peer, BYTES, 1, &word));
    RANGE(hem_fetch_add(w, peer, SIZE_MAX - 7, 1, &word));
    RANGE(hem_compare_swap(w, peer, BYTES, 0, 1, &word));
    RANGE(hem_compare_swap(w, peer, (size_t)1 << 63, 0, 1, &word));
    CHECK_EQ(word, 9);
}

static void misaligned(hem_window *w, int peer) {
    uint64_t word = 9;

    for (size_t offset = 1; offset < 8; offset++) {
        ARG(hem_put_value(w, peer, 16 + offset, 1));
        ARG(hem_fetch_add(w, peer, 16 + offset, 1, &word));
        ARG(hem_compare_swap(w, peer, 16 + offset, 0, 1, &word));
    }
    CHECK_EQ(word, 9);
}

static void no_bytes(hem_window *w, int peer) {
    ARG(hem_put(w, peer, 0, NULL, 1));
    ARG(hem_get(w, peer, 0, NULL, 1));
    ARG(hem_put_start(w, peer, 0, NULL, 40, 0));
    ARG(hem_get_start(w, peer, 0, NULL, 40, 0));
    ARG(hem_put_signal(w, peer, 0, NULL, 1, 0, 1));
    ARG(hem_put_signal(w, peer, 0, NULL, 100, 0, 1));
    ARG(hem_put_signal_op(w, peer, 0, NULL, 8, 0, HEM_SIGNAL_ADD, 1));
    ARG(hem_put_signal_start(w, peer, 0, NULL, 8, 0, 1, 0));
    CHECK_OK(hem_put(w, peer, BYTES, NULL, 0));
    CHECK_OK(hem_get(w, peer, BYTES, NULL, 0));
    CHECK_OK(hem_put_start(w, peer, 0, NULL, 0, 1));
}

/* After all that, memory, signals and counters are as they were. */
static void nothing_happened(hem_world *world, hem_window *w) {
    uint64_t value = 1;

    harness_barrier(w);
    CHECK_ALL(hem_window_memory(w), BYTES, 0xA5);
    CHECK_OK(hem_read_signal(w, 0, &value));
    CHECK_EQ(value, 0);
    CHECK_OK(hem_read_counter(w, 0, &value));
    CHECK_EQ(value, 0);
    harness_barrier(w);
    CHECK_OK(hem_put_signal(w, harness_right(world), 0, "fine", 4, 0, 1));
    CHECK_OK(hem_wait_signal(w, 0, HEM_EQ, 1, LIMIT));
    CHECK(memcmp(hem_window_memory(w), "fine", 4) == 0);
    harness_barrier(w);
}

int rank_main(hem_world *world) {
    int size = hem_world_size(world);
    hem_window *w = harness_window(world, BYTES);

    memset(hem_window_memory(w), 0xA5, BYTES);
    harness_barrier(w);
    no_window();
    bad_rank(w, -1);
    bad_rank(w, size);
    bad_rank(w, INT_MAX);
    bad_rank(w, INT_MIN);
    for (int peer = 0; peer < size; peer++) {
        bad_places(w, peer);
        misaligned(w, peer);
        no_bytes(w, peer);
    }
    nothing_happened(world, w);
    harness_destroy(w);
    harness_close(world, HEM_OK);
    return 0;
}
