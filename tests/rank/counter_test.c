/*
 * The started forms of put, get and put_signal move their counter by exactly one each, when the
 * caller's memory is free again or filled, and not at all when they fail. Counters are local and
 * only grow; a large one can be waited for later.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    PIECE = 24,
    PIECES = 200,
    BIG = 1 << 20
};

static void check_counter(hem_window *window, uint32_t counter, uint64_t want) {
    uint64_t value = ~want;
    bool done = false;

    CHECK_OK(hem_wait_counter(window, counter, want, LIMIT));
    CHECK_OK(hem_wait_counter(window, counter, want, 0));
    CHECK_OK(hem_read_counter(window, counter, &value));
    CHECK_EQ(value, want);
    CHECK_OK(hem_test_counter(window, counter, want, &done));
    CHECK(done);
    CHECK_OK(hem_test_counter(window, counter, want + 1, &done));
    CHECK(!done);
    CHECK_STATUS(hem_wait_counter(window, counter, want + 1, HEM_US(50)), HEM_ERR_TIMEOUT);
}

/* Many small ones in flight at once, sources all distinct; each is checked at the receiver. */
static void many(hem_world *world, hem_window *window, uint64_t *counts) {
    static _Thread_local uint8_t out[PIECES][PIECE];
    uint64_t tag = (uint64_t)harness_left(world) * 7;
    uint8_t *mine = hem_window_memory(window);
    int right = harness_right(world);

    for (size_t i = 0; i < PIECES; i++) {
        harness_fill(out[i], PIECE, (uint64_t)hem_world_rank(world) * 7 + i);
        if (i % 2)
            CHECK_OK(hem_put_start(window, right, i * PIECE, out[i], PIECE, 0));
        else
            CHECK_OK(hem_put_signal_start(window, right, i * PIECE, out[i], PIECE, 0, 1, 1));
        counts[i % 2 ? 0 : 1]++;
    }
    check_counter(window, 0, counts[0]);
    check_counter(window, 1, counts[1]);
    memset(out, 0, sizeof out);
    CHECK_OK(hem_signal(window, right, 1, HEM_SIGNAL_ADD, 1));
    CHECK_OK(hem_wait_signal_from(window, harness_left(world), 1, HEM_GE, counts[1] / 100, LIMIT));
    for (size_t i = 0; i < PIECES; i++)
        CHECK_FILLED(mine + i * PIECE, PIECE, tag + i);
    harness_barrier(window);
}

static void big(hem_world *world, hem_window *window, uint64_t *counts) {
    int rank = hem_world_rank(world);
    int right = harness_right(world);
    uint8_t *buf = malloc(BIG);

    CHECK(buf != NULL);
    harness_fill(buf, BIG, (uint64_t)rank + 50);
    CHECK_OK(hem_put_start(window, right, 0, buf, BIG, 0));
    check_counter(window, 0, ++counts[0]);
    memset(buf, 0, BIG);
    CHECK_OK(hem_get_start(window, right, 0, buf, BIG, 2));
    check_counter(window, 2, ++counts[2]);
    CHECK_FILLED(buf, BIG, (uint64_t)rank + 50);
    CHECK_OK(hem_get_start(window, right, 0, buf, 0, 2));
    CHECK_OK(hem_put_start(window, right, 0, buf, 0, 2));
    counts[2] += 2;
    check_counter(window, 2, counts[2]);
    free(buf);
    harness_barrier(window);
}

static void failures(hem_world *world, hem_window *window, const uint64_t *counts) {
    int right = harness_right(world);
    uint8_t bytes[8] = {0};

    CHECK_STATUS(hem_put_start(window, right, BIG, bytes, 1, 0), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put_start(window, -1, 0, bytes, 1, 0), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put_start(window, right, 0, NULL, 1, 0), HEM_ERR_ARG);
    CHECK_STATUS(hem_put_start(window, right, 0, bytes, 1, 4), HEM_ERR_RANGE);
    CHECK_STATUS(hem_get_start(window, right, SIZE_MAX, bytes, 8, 2), HEM_ERR_RANGE);
    CHECK_STATUS(hem_get_start(window, right, 0, NULL, 8, 2), HEM_ERR_ARG);
    CHECK_STATUS(hem_put_signal_start(window, right, 0, bytes, 8, 16, 1, 1), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put_signal_start(window, right, BIG, bytes, 8, 0, 1, 1), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put_signal_start(window, right, 0, bytes, 8, 0, 1, 4), HEM_ERR_RANGE);
    for (uint32_t i = 0; i < 4; i++)
        check_counter(window, i, counts[i]);
}

int rank_main(hem_world *world) {
    hem_window *window = harness_window(world, BIG);
    uint64_t counts[4] = {0};

    for (int round = 0; round < 20; round++)
        many(world, window, counts);
    big(world, window, counts);
    failures(world, window, counts);
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
