/*
 * A world can be closed with windows still open. Their handles stay valid: every call on them
 * returns HEM_ERR_CLOSED, or NULL where it returns an address, and destroying them works.
 *
 * hem-test: ranks=1,2,3,4,8 modes=processes,threads timeout=60
 */
#include "harness.h"

#define CLOSED(call) CHECK_STATUS(call, HEM_ERR_CLOSED)

static void data_calls(hem_window *w) {
    uint8_t bytes[8] = {0};
    uint64_t old = 5;
    hem_buffer buffer;

    CHECK(hem_window_memory(w) == NULL);
    CHECK(hem_window_peer_address(w, 0, 0) == NULL);
    CHECK(hem_window_translate(w, bytes, 0) == NULL);
    CLOSED(hem_window_buffer(w, "a", &buffer));
    CLOSED(hem_put(w, 0, 0, bytes, 8));
    CLOSED(hem_put(w, 0, 0, bytes, 0));
    CLOSED(hem_get(w, 0, 0, bytes, 8));
    CLOSED(hem_put_value(w, 0, 0, 1));
    CLOSED(hem_fetch_add(w, 0, 0, 1, &old));
    CLOSED(hem_compare_swap(w, 0, 0, 1, 2, &old));
    CLOSED(hem_put_start(w, 0, 0, bytes, 8, 0));
    CLOSED(hem_get_start(w, 0, 0, bytes, 8, 0));
    CLOSED(hem_flush(w, 0));
    CLOSED(hem_flush_all(w));
    CHECK_EQ(old, 5);
}

static void signal_calls(hem_window *w) {
    uint8_t bytes[8] = {0};
    hem_signal_want want = {0, 0, HEM_EQ, 0};
    size_t which = 7;
    uint64_t value = 7;
    bool done = true;

    CLOSED(hem_put_signal(w, 0, 0, bytes, 8, 0, 1));
    CLOSED(hem_put_signal_op(w, 0, 0, bytes, 8, 0, HEM_SIGNAL_SET, 1));
    CLOSED(hem_put_signal_start(w, 0, 0, bytes, 8, 0, 1, 0));
    CLOSED(hem_signal(w, 0, 0, HEM_SIGNAL_ADD, 1));
    CLOSED(hem_signal_all(w, 0, HEM_SIGNAL_ADD, 1));
    CLOSED(hem_wait_signal(w, 0, HEM_EQ, 0, HEM_FOREVER));
    CLOSED(hem_wait_signal_from(w, 0, 0, HEM_EQ, 0, HEM_FOREVER));
    CLOSED(hem_wait_signal_any(w, &want, 1, &which, HEM_FOREVER));
    CLOSED(hem_test_signal(w, 0, HEM_EQ, 0, &done));
    CLOSED(hem_test_signal_from(w, 0, 0, HEM_EQ, 0, &done));
    CLOSED(hem_test_signal_any(w, &want, 1, &which, &done));
    CLOSED(hem_read_signal(w, 0, &value));
    CLOSED(hem_read_signal_from(w, 0, 0, &value));
    CLOSED(hem_read_counter(w, 0, &value));
    CLOSED(hem_wait_counter(w, 0, 0, HEM_FOREVER));
    CLOSED(hem_test_counter(w, 0, 0, &done));
    CHECK(which == 7 && value == 7 && done);
}

static void barrier_calls(hem_window *w) {
    bool done = true;

    CLOSED(hem_barrier(w, 0, HEM_FOREVER));
    CLOSED(hem_barrier_arrive(w, 0));
    CLOSED(hem_barrier_wait(w, 0, HEM_FOREVER));
    CLOSED(hem_barrier_test(w, 0, &done));
    CLOSED(hem_barrier_peer(w, 0, 0, HEM_FOREVER));
    CLOSED(hem_barrier_peer_arrive(w, 0, 0));
    CLOSED(hem_barrier_peer_wait(w, 0, 0, HEM_FOREVER));
    CLOSED(hem_barrier_peer_test(w, 0, 0, &done));
    CHECK(done);
}

int rank_main(hem_world *world) {
    hem_buffer buffer = {"a", HEM_BYTE, 64, 0};
    hem_window_options options = {
        .struct_size = sizeof options, .buffers = &buffer, .buffer_count = 1};
    hem_window *windows[3];

    for (int i = 0; i < 3; i++)
        CHECK_OK(hem_window_create(world, &options, &windows[i]));
    CHECK_OK(hem_put_signal(windows[0], harness_right(world), 0, "x", 1, 0, 1));
    CHECK_OK(hem_barrier_arrive(windows[1], 1));
    harness_destroy(windows[2]);
    harness_close(world, HEM_OK);
    for (int i = 0; i < 2; i++) {
        data_calls(windows[i]);
        signal_calls(windows[i]);
        barrier_calls(windows[i]);
        CHECK_OK(hem_window_destroy(windows[i]));
    }
    CHECK_OK(hem_window_destroy(NULL));
    CHECK_OK(hem_world_close(NULL));
    return 0;
}
