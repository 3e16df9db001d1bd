/* The parts of the harness that use windows. */
#include "harness.h"

#include <sched.h>

hem_window *harness_window_ids(hem_world *world, size_t bytes, uint32_t signals, uint32_t barriers,
                               uint32_t counters) {
    hem_window_options options = {
        .struct_size = sizeof options,
        .bytes = bytes,
        .signals = signals,
        .barriers = barriers,
        .counters = counters,
    };
    hem_window *window = NULL;

    CHECK_OK(hem_window_create(world, &options, &window));
    CHECK(window != NULL);
    return window;
}

hem_window *harness_window(hem_world *world, size_t bytes) {
    return harness_window_ids(world, bytes, 0, 0, 0);
}

void harness_destroy(hem_window *window) {
    CHECK_OK(hem_window_destroy(window));
}

void harness_barrier(hem_window *window) {
    CHECK_OK(hem_barrier(window, 0, LIMIT));
}

void harness_same(hem_world *world, uint64_t value) {
    int size = hem_world_size(world);
    size_t place = (size_t)hem_world_rank(world) * sizeof value;
    hem_window *window = harness_window(world, (size_t)size * sizeof value);
    const uint64_t *all = hem_window_memory(window);

    for (int peer = 0; peer < size; peer++)
        CHECK_OK(hem_put(window, peer, place, &value, sizeof value));
    harness_barrier(window);
    for (int peer = 0; peer < size; peer++)
        if (all[peer] != value)
            harness_fail(__FILE__, __LINE__, "rank %d has %lld where this rank has %lld", peer,
                         (long long)all[peer], (long long)value);
    harness_destroy(window);
}

int harness_right(const hem_world *world) {
    return (hem_world_rank(world) + 1) % hem_world_size(world);
}

int harness_left(const hem_world *world) {
    return (hem_world_rank(world) + hem_world_size(world) - 1) % hem_world_size(world);
}

/* One look of the test and read forms. */
static bool look(hem_window *window, int way, const hem_signal_want *want) {
    bool done = false;
    uint64_t value = 0;
    size_t which = 99;

    if (way == HARNESS_TEST_FROM) {
        CHECK_OK(hem_test_signal_from(window, want->peer, want->id, HEM_GE, want->value, &done));
    } else if (way == HARNESS_TEST_ANY) {
        CHECK_OK(hem_test_signal_any(window, want, 1, &which, &done));
        CHECK(!done || which == 0);
    } else if (way == HARNESS_TEST_SUM) {
        CHECK_OK(hem_test_signal(window, want->id, HEM_GE, want->value, &done));
    } else if (way == HARNESS_READ_FROM) {
        CHECK_OK(hem_read_signal_from(window, want->peer, want->id, &value));
        done = value >= want->value;
    } else {
        CHECK_OK(hem_read_signal(window, want->id, &value));
        done = value >= want->value;
    }
    return done;
}

void harness_see(hem_window *window, int way, int peer, uint32_t id, uint64_t value) {
    hem_signal_want want = {peer, id, HEM_GE, value};
    int64_t limit = harness_now() + LIMIT;
    size_t which = 99;

    switch (way) {
    case HARNESS_FROM:
        CHECK_OK(hem_wait_signal_from(window, peer, id, HEM_GE, value, LIMIT));
        return;
    case HARNESS_SUM:
        CHECK_OK(hem_wait_signal(window, id, HEM_GE, value, LIMIT));
        return;
    case HARNESS_ANY:
        CHECK_OK(hem_wait_signal_any(window, &want, 1, &which, LIMIT));
        CHECK_EQ(which, 0);
        return;
    default:
        while (!look(window, way, &want)) {
            CHECK(harness_now() < limit);
            sched_yield();
        }
    }
}
