/*
 * A rank that gives up revokes the world: every wait of every rank ends at once with
 * HEM_ERR_REVOKED, every later call returns it, and a shrink then makes a new world of all, in
 * which everything works.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "waits.h"

enum {
    STAMP = 0
};

#define REVOKED(call) CHECK_STATUS(call, HEM_ERR_REVOKED)

static void later_data_calls(hem_window *w) {
    uint64_t word = 3;

    REVOKED(hem_put(w, 0, 0, &word, 8));
    REVOKED(hem_get(w, 0, 0, &word, 8));
    REVOKED(hem_put_value(w, 0, 0, 1));
    REVOKED(hem_fetch_add(w, 0, 0, 1, &word));
    REVOKED(hem_compare_swap(w, 0, 0, 0, 1, &word));
    REVOKED(hem_put_start(w, 0, 0, &word, 8, 0));
    REVOKED(hem_get_start(w, 0, 0, &word, 8, 0));
    REVOKED(hem_flush(w, 0));
    REVOKED(hem_flush_all(w));
    REVOKED(hem_put_signal(w, 0, 0, &word, 8, 0, 1));
    REVOKED(hem_put_signal_op(w, 0, 0, &word, 8, 0, HEM_SIGNAL_SET, 1));
    REVOKED(hem_put_signal_start(w, 0, 0, &word, 8, 0, 1, 0));
    REVOKED(hem_signal(w, 0, 0, HEM_SIGNAL_SET, 1));
    REVOKED(hem_signal_all(w, 0, HEM_SIGNAL_SET, 1));
    CHECK_EQ(word, 3);
}

/* Also where the condition holds already. */
static void later_waits(hem_window *w) {
    hem_signal_want want = {0, 9, HEM_EQ, 0};
    uint64_t value = 3;
    size_t which = 3;
    bool done = true;

    REVOKED(hem_wait_signal(w, 9, HEM_EQ, 0, LIMIT));
    REVOKED(hem_wait_signal_from(w, 0, 9, HEM_EQ, 0, LIMIT));
    REVOKED(hem_wait_signal_any(w, &want, 1, &which, LIMIT));
    REVOKED(hem_test_signal(w, 9, HEM_EQ, 0, &done));
    REVOKED(hem_test_signal_from(w, 0, 9, HEM_EQ, 0, &done));
    REVOKED(hem_test_signal_any(w, &want, 1, &which, &done));
    REVOKED(hem_read_signal(w, 9, &value));
    REVOKED(hem_read_signal_from(w, 0, 9, &value));
    REVOKED(hem_wait_counter(w, 0, 0, LIMIT));
    REVOKED(hem_barrier(w, 0, LIMIT));
    REVOKED(hem_barrier_arrive(w, 0));
    REVOKED(hem_barrier_wait(w, 0, LIMIT));
    REVOKED(hem_barrier_test(w, 0, &done));
    REVOKED(hem_barrier_peer_arrive(w, 0, 0));
    CHECK(value == 3 && which == 3 && done);
}

static void later_world_calls(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 8};
    hem_window *window = NULL;
    hem_world *part = NULL;

    REVOKED(hem_window_create(world, &options, &window));
    REVOKED(hem_world_split(world, 0, 0, &part));
    CHECK_OK(hem_world_revoke(world));
    CHECK(!window && !part);
}

static void shrunk_works(hem_world *world, int rank, int size) {
    hem_world *rest = NULL;
    hem_window *window;

    CHECK_OK(hem_world_shrink(world, &rest));
    CHECK_EQ(hem_world_size(rest), size);
    CHECK_EQ(hem_world_rank(rest), rank);
    window = harness_window(rest, 64);
    CHECK_OK(hem_put_signal(window, harness_right(rest), 0, "again", 5, 0, 1));
    CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, 1, LIMIT));
    CHECK(memcmp(hem_window_memory(window), "again", 5) == 0);
    harness_barrier(window);
    harness_destroy(window);
    CHECK_OK(hem_world_close(rest));
}

/* When rank 0 revoked, in nanoseconds; kept in a window of another world that stays in order. */
static void check_time(hem_window *clock) {
    uint64_t when = 0;
    int64_t took;

    CHECK_OK(hem_fetch_add(clock, 0, STAMP, 0, &when));
    took = harness_now() - (int64_t)when;
    if (took > HEM_MS(50) + harness_slack())
        harness_fail(__FILE__, __LINE__, "learnt of it after %lld us", (long long)took / 1000);
}

static void stamp(hem_window *clock) {
    uint64_t now = (uint64_t)harness_now();
    uint64_t old = 0;

    CHECK_OK(hem_fetch_add(clock, 0, STAMP, 0, &old));
    CHECK_OK(hem_fetch_add(clock, 0, STAMP, now - old, &old));
}

/* Rank 0 revokes while all others wait in `kind`. The rank after it is who they wait for. */
static void revoke_in(hem_world *world, hem_window *clock, enum wait_kind kind) {
    hem_world *copy = NULL;
    hem_window *window;
    hem_status status;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    window = harness_window(copy, 64);
    if (hem_world_rank(copy) == 0) {
        harness_sleep_ms(8);
        stamp(clock);
        CHECK_OK(hem_world_revoke(copy));
    } else {
        status = wait_for(kind, copy, window, 0);
        if (status != HEM_ERR_REVOKED && (kind != WAIT_DESTROY || status != HEM_OK))
            harness_fail(__FILE__, __LINE__, "%s gave %s: %s", wait_name(kind),
                         hem_status_name(status), hem_last_error());
        check_time(clock);
    }
    if (kind != WAIT_DESTROY) {
        later_data_calls(window);
        later_waits(window);
    }
    later_world_calls(copy);
    shrunk_works(copy, hem_world_rank(world), hem_world_size(world));
    CHECK_OK(hem_world_close(copy));
    if (kind != WAIT_DESTROY || hem_world_rank(world) == 0)
        CHECK_OK(hem_window_destroy(window));
}

int rank_main(hem_world *world) {
    hem_window *clock = harness_window(world, 64);

    for (int kind = 0; kind < WAIT_CLOSE; kind++) {
        revoke_in(world, clock, (enum wait_kind)kind);
        harness_barrier(clock);
    }
    harness_destroy(clock);
    harness_close(world, HEM_OK);
    return 0;
}
