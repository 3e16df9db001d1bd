/*
 * Declared peers: kernels and CPUs reach the memory of ranks that were named and of no other, whatever
 * those named; what needs no device memory of the peer works with everybody.
 *
 * hem-test: ranks=1,3,5,8 timeout=60
 */
#include "window_kit.h"

typedef struct try_args {
    hem_dev_window w;
    uint64_t *status_p; /* two per rank: -status of a put and of a signal */
} try_args;

DEVICE_KERNEL(try_all, try_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    for (int r = 0; r < w.size; r++) {
        uint64_t value = 500 + (uint64_t)w.rank;
        hem_status put = hem_dev_put(w, block, r, 8 * (uint64_t)w.rank, &value, 8);
        hem_status told = hem_dev_signal(w, block, r, 12, HEM_SIGNAL_ADD, 1);
        if (block.rank == 0) {
            args->status_p[2 * r] = (uint64_t)-put;
            args->status_p[2 * r + 1] = (uint64_t)-told;
        }
    }
}

static void check_kernel(hem_window *window, const bool *reached, int size) {
    try_args args;
    uint64_t statuses[32];
    device_stream stream = device_stream_create();
    CHECK(size <= 16);
    args.w = window_kit_dev(window);
    args.status_p = (uint64_t *)device_alloc(sizeof statuses);
    device_launch(try_all, stream, 1, 1, &args);
    device_stream_sync(stream);
    device_copy(statuses, args.status_p, sizeof statuses);
    for (int r = 0; r < size; r++) {
        CHECK_EQ(statuses[2 * r], reached[r] ? 0 : (uint64_t)-HEM_ERR_UNSUPPORTED);
        CHECK_EQ(statuses[2 * r + 1], reached[r] ? 0 : (uint64_t)-HEM_ERR_UNSUPPORTED);
    }
    device_free(args.status_p);
    device_stream_destroy(stream);
}

static void check_cpu(hem_window *window, const bool *reached, int size, int rank) {
    uint64_t word = 0;
    for (int r = 0; r < size; r++) {
        hem_status want = reached[r] ? HEM_OK : HEM_ERR_UNSUPPORTED;
        CHECK_STATUS(hem_get(window, r, 8 * (size_t)rank, &word, 8), want);
        CHECK_STATUS(hem_put(window, r, 8 * (size_t)rank, &word, 8), want);
        if (!reached[r])
            CHECK_SENTENCE("device_peers");
        CHECK_STATUS(hem_signal(window, r, 2, HEM_SIGNAL_ADD, 1), want);
        /* The CPU's lane of a CPU's signal is in host memory. */
        CHECK_OK(hem_signal(window, r, 13, HEM_SIGNAL_ADD, 1));
        CHECK((hem_window_peer_address(window, r, 0) != NULL) == reached[r]);
        CHECK_EQ(hem_window_bytes(window, r), 8 * (size_t)size);
        if (reached[r])
            CHECK_EQ(word, 500 + (uint64_t)rank);
    }
}

/* How many name `rank`, itself included. */
static uint64_t named_by(int rank, int size, bool ring) {
    if (!ring || size == 1)
        return 1;
    (void)rank;
    return size == 2 ? 2 : 3;
}

/* Each names its two neighbours, or nobody. */
static void check_one(hem_world *world, bool ring) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    /* Twice the same, and oneself, does no harm. */
    int peers[4] = {harness_left(world), harness_right(world), harness_left(world), rank};
    bool reached[16] = {false};
    hem_window_options o = window_kit_options(8 * (size_t)size);
    o.device_peers = peers;
    o.device_peer_count = ring ? 4 : 0;
    reached[rank] = true;
    if (ring)
        reached[peers[0]] = reached[peers[1]] = true;
    hem_window *window = window_kit_create(world, &o);
    check_kernel(window, reached, size);
    check_cpu(window, reached, size, rank);
    CHECK_OK(hem_wait_signal(window, 12, HEM_EQ, named_by(rank, size, ring), LIMIT));
    CHECK_OK(hem_wait_signal(window, 13, HEM_EQ, (uint64_t)size, LIMIT));
    harness_barrier(window);
    CHECK_OK(hem_window_destroy(window));
}

/* Only one side names the other. */
static void check_lopsided(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    int zero = 0;
    uint64_t word = 900 + (uint64_t)rank;
    hem_window_options o = window_kit_options(8 * (size_t)size);
    o.device_peers = &zero;
    o.device_peer_count = rank == 0 ? 0 : 1;
    hem_window *window = window_kit_create(world, &o);
    CHECK_OK(hem_put_signal(window, 0, 8 * (size_t)rank, &word, 8, 12, 1));
    if (rank == 0) {
        CHECK_OK(hem_wait_signal(window, 12, HEM_EQ, (uint64_t)size, LIMIT));
        for (int r = 0; r < size; r++) {
            CHECK_OK(hem_get(window, 0, 8 * (size_t)r, &word, 8));
            CHECK_EQ(word, 900 + (uint64_t)r);
        }
        if (size > 1)
            CHECK_STATUS(hem_put(window, 1, 0, &word, 8), HEM_ERR_UNSUPPORTED);
    }
    harness_barrier(window);
    CHECK_OK(hem_window_destroy(window));
}

int rank_main(hem_world *world) {
    check_one(world, true);
    check_one(world, false);
    check_lopsided(world);
    harness_close(world, HEM_OK);
    return 0;
}
