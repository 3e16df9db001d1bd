/*
 * The end of a window that kernels wait on: revoking the world ends the waits with HEM_ERR_REVOKED, and
 * closing it with the window open ends them with HEM_ERR_CLOSED. Host calls say the same, and the
 * handle can still be destroyed. A rank that closes earlier than others ends what waits for it.
 *
 * hem-test: ranks=1,2,4,5,8 timeout=60
 */
#include "window_kit.h"

typedef struct test {
    hem_world *world; /* open all the time */
    device_stream stream;
    uint64_t *status;
    int rank;
    int size;
} test;

DEVICE_KERNEL(wait_one, window_kit_wait) {
    hem_status status = window_kit_wait_here(args, hem_block());
    if (hem_block().rank == 0)
        hemd_store64_relaxed(args->status_p, (uint64_t)-status);
}

static void start(test *t, hem_window *window, int peer, uint64_t value) {
    window_kit_wait args;
    uint64_t none = WINDOW_KIT_NONE;
    device_copy(t->status, &none, sizeof none);
    args.w = window_kit_dev(window);
    args.peer = peer;
    args.id = 1;
    args.value = value;
    args.timeout_ns = HEM_FOREVER;
    args.status_p = t->status;
    device_launch(wait_one, t->stream, 1, 2, &args);
}

static uint64_t outcome(test *t) {
    uint64_t value = 0;
    device_stream_sync(t->stream);
    device_copy(&value, t->status, sizeof value);
    return value;
}

static hem_window *make(hem_world *world) {
    hem_window_options o = window_kit_options(4096);
    hem_window *window = window_kit_create(world, &o);
    harness_barrier(window);
    return window;
}

static void check_revoked(test *t) {
    hem_world *world = NULL;
    uint64_t word = 1;
    CHECK_OK(hem_world_split(t->world, 0, t->rank, &world));
    hem_window *window = make(world);
    harness_step("revoke", 0);
    start(t, window, t->size - 1, 1);
    harness_barrier(window);
    harness_sleep_ms(5);
    if (t->rank == 0)
        CHECK_OK(hem_world_revoke(world));
    CHECK_EQ(outcome(t), (uint64_t)-HEM_ERR_REVOKED);
    CHECK_STATUS(hem_put(window, 0, 0, &word, 8), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_signal(window, 0, 0, HEM_SIGNAL_ADD, 1), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_wait_signal_from(window, 0, 12, HEM_GE, 1, LIMIT), HEM_ERR_REVOKED);
    hem_dev_window dev;
    CHECK_OK(hem_window_device(window, &dev));
    /* Good where all came, all the same; others may have closed meanwhile. */
    hem_status status = hem_window_destroy(window);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED || status == HEM_ERR_PEER);
    CHECK_OK(hem_world_close(world));
}

static void check_closed(test *t) {
    hem_world *world = NULL;
    uint64_t word = 1;
    CHECK_OK(hem_world_split(t->world, 0, t->rank, &world));
    hem_window *window = make(world);
    harness_step("close", 0);
    /* For oneself: nothing but one's own closing can end it. */
    start(t, window, t->rank, 1);
    harness_sleep_ms(5);
    CHECK_OK(hem_world_close(world));
    CHECK_EQ(outcome(t), (uint64_t)-HEM_ERR_CLOSED);
    hem_dev_window dev;
    CHECK_STATUS(hem_window_device(window, &dev), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_put(window, 0, 0, &word, 8), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_signal(window, 0, 0, HEM_SIGNAL_ADD, 1), HEM_ERR_CLOSED);
    CHECK(hem_window_memory(window) == NULL);
    CHECK(hem_window_peer_address(window, t->rank, 0) == NULL);
    CHECK_OK(hem_window_destroy(window));
}

/* One rank closes first; what the others wait for can no longer come. */
static void check_left(test *t, int first) {
    hem_world *world = NULL;
    if (t->size == 1)
        return;
    CHECK_OK(hem_world_split(t->world, 0, t->rank, &world));
    hem_window *window = make(world);
    harness_step("left", (uint64_t)first);
    if (t->rank == first) {
        for (int r = 0; r < t->size; r++)
            CHECK_OK(hem_signal(window, r, 1, HEM_SIGNAL_ADD, 3));
        CHECK_OK(hem_world_close(world));
        CHECK_OK(hem_window_destroy(window));
        return;
    }
    start(t, window, first, 3);
    CHECK_EQ(outcome(t), 0);
    start(t, window, first, 4);
    CHECK_EQ(outcome(t), (uint64_t)-HEM_ERR_PEER);
    /* What was signalled before it left is still seen. */
    start(t, window, first, 3);
    CHECK_EQ(outcome(t), 0);
    CHECK_OK(hem_world_close(world));
    CHECK_OK(hem_window_destroy(window));
}

int rank_main(hem_world *world) {
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    t.stream = device_stream_create();
    t.status = (uint64_t *)device_alloc(sizeof *t.status);
    for (int i = 0; i < 3; i++) {
        check_revoked(&t);
        check_closed(&t);
        check_left(&t, 0);
        check_left(&t, t.size - 1);
    }
    /* Left open to the very end, with nothing waiting. */
    hem_window *window = make(world);
    device_stream_destroy(t.stream);
    device_free(t.status);
    harness_close(world, HEM_OK);
    CHECK_OK(hem_window_destroy(window));
    return 0;
}
