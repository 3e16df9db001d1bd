/*
 * What cannot be done with windows in device memory, and with arguments that make no sense, is refused
 * with a sentence, on all ranks alike where it is said at creation; and what was refused changes
 * nothing.
 *
 * hem-test: ranks=1,2,3 timeout=60
 */
#include "window_kit.h"

static void refuse(hem_world *world, const hem_window_options *options, hem_status want,
                   const char *sentence) {
    hem_window *window = NULL;
    CHECK_STATUS(hem_window_create(world, options, &window), want);
    CHECK_SENTENCE(sentence);
    CHECK(window == NULL);
}

static void check_options(hem_world *world) {
    int peers[2] = {0, hem_world_size(world)};
    char host[64] = {0};
    hem_window_options o = window_kit_options(64);
    o.kind = (hem_memory_kind)7;
    refuse(world, &o, HEM_ERR_ARG, "no kind");
    o = window_kit_options(64);
    o.kind = HEM_MEMORY_HOST;
    o.device_signals = 1;
    refuse(world, &o, HEM_ERR_ARG, "device_signals");
    o = window_kit_options(64);
    o.kind = HEM_MEMORY_HOST;
    o.device_peers = peers;
    refuse(world, &o, HEM_ERR_ARG, "device_peers");
    o = window_kit_options(64);
    o.kind = HEM_MEMORY_HOST;
    o.proxy_timeout_ns = 1;
    refuse(world, &o, HEM_ERR_ARG, "proxy_timeout_ns");
    o = window_kit_options(64);
    o.proxy_timeout_ns = -2;
    refuse(world, &o, HEM_ERR_ARG, "-2 is no time");
    o = window_kit_options(64);
    o.device_signals = 17;
    refuse(world, &o, HEM_ERR_RANGE, "17");
    o = window_kit_options(64);
    o.mixed_barriers = 5;
    refuse(world, &o, HEM_ERR_RANGE, "5 mixed_barriers");
    o = window_kit_options(64);
    o.kind = HEM_MEMORY_HOST;
    o.mixed_barriers = 1;
    refuse(world, &o, HEM_ERR_ARG, "mixed_barriers");
    o = window_kit_options(64);
    o.device_peers = peers;
    o.device_peer_count = 2;
    refuse(world, &o, HEM_ERR_RANGE, "device_peers");
    peers[1] = -1;
    refuse(world, &o, HEM_ERR_RANGE, "device_peers");
    o = window_kit_options(64);
    o.device_peer_count = 1;
    refuse(world, &o, HEM_ERR_ARG, "NULL");
    o = window_kit_options(SIZE_MAX);
    refuse(world, &o, HEM_ERR_MEMORY, "bytes");
    o = window_kit_options((size_t)1 << 55);
    refuse(world, &o, HEM_ERR_MEMORY, "");
    o = window_kit_options(64);
    o.memory = host;
    refuse(world, &o, HEM_ERR_ARG, "");
}

/* Ranks that do not agree. */
static void check_mismatch(hem_world *world) {
    hem_window_options o = window_kit_options(64);
    if (hem_world_size(world) == 1)
        return;
    int rank = hem_world_rank(world);
    if (rank == 1)
        o.kind = HEM_MEMORY_HOST;
    refuse(world, &o, HEM_ERR_MISMATCH, "");
    o = window_kit_options(64);
    o.device_signals = rank == 1 ? 3 : 4;
    refuse(world, &o, HEM_ERR_MISMATCH, "");
    o = window_kit_options(64);
    o.mixed_barriers = rank == 1 ? 3 : 4;
    refuse(world, &o, HEM_ERR_MISMATCH, "");
    o = window_kit_options(rank == 1 ? (size_t)1 << 55 : 64);
    refuse(world, &o, HEM_ERR_MEMORY, "");
    CHECK_NAMES_RANK(1);
    /* The default, and the same number said. */
    o = window_kit_options(64);
    o.device_signals = rank == 1 ? 12 : 0;
    hem_window *window = window_kit_create(world, &o);
    CHECK_OK(hem_window_destroy(window));
}

static void check_data_calls(hem_window *window, int peer) {
    uint64_t word = 5;
    uint64_t old = 77;
    CHECK_STATUS(hem_put(window, peer, 60, &word, 8), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put(window, peer, SIZE_MAX, &word, 8), HEM_ERR_RANGE);
    CHECK_STATUS(hem_get(window, peer, 65, &word, 0), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put(window, peer, 0, NULL, 8), HEM_ERR_ARG);
    CHECK_STATUS(hem_put(window, -1, 0, &word, 8), HEM_ERR_RANGE);
    CHECK_STATUS(hem_put_value(window, peer, 4, 3), HEM_ERR_ARG);
    CHECK_SENTENCE("multiple of 8");
    CHECK_STATUS(hem_put_value(window, peer, 64, 3), HEM_ERR_RANGE);
    CHECK_STATUS(hem_fetch_add(window, peer, 0, 3, &old), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("device memory");
    CHECK_STATUS(hem_compare_swap(window, peer, 0, 0, 3, &old), HEM_ERR_UNSUPPORTED);
    CHECK_EQ(old, 77);
    CHECK_OK(hem_get(window, peer, 0, &word, 8));
    CHECK_EQ(word, 0);
}

static void check_signal_calls(hem_window *window, int peer) {
    hem_signal_want wants[2] = {{peer, 13, HEM_GE, 1}, {peer, 3, HEM_GE, 1}};
    size_t which = 9;
    bool done = true;
    uint64_t value = 66;
    CHECK_STATUS(hem_signal(window, peer, 16, HEM_SIGNAL_ADD, 1), HEM_ERR_RANGE);
    CHECK_STATUS(hem_signal(window, peer, 1, 3, 1), HEM_ERR_ARG);
    CHECK_STATUS(hem_wait_signal_from(window, peer, 11, HEM_GE, 0, 0), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("from 12 on");
    CHECK_STATUS(hem_wait_signal(window, 0, HEM_GE, 0, 0), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_test_signal(window, 0, HEM_GE, 0, &done), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_test_signal_from(window, peer, 0, HEM_GE, 0, &done), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_read_signal(window, 0, &value), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_read_signal_from(window, peer, 0, &value), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_wait_signal_any(window, wants, 2, &which, 0), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_wait_signal_from(window, peer, 16, HEM_GE, 0, 0), HEM_ERR_RANGE);
    CHECK_EQ(which, 9);
    CHECK_EQ(value, 66);
    CHECK_OK(hem_wait_signal_from(window, peer, 12, HEM_EQ, 0, 0));
    CHECK_STATUS(hem_wait_signal_any(window, wants, 1, &which, HEM_MS(1)), HEM_ERR_TIMEOUT);
}

static void check_device_call(hem_world *world, hem_window *window) {
    hem_dev_window dev;
    memset(&dev, 0x5a, sizeof dev);
    hem_window *host = harness_window(world, 64);
    CHECK_STATUS(hem_window_device(host, &dev), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("HEM_MEMORY_DEVICE");
    CHECK_STATUS(hem_window_device(NULL, &dev), HEM_ERR_ARG);
    CHECK_STATUS(hem_window_device(window, NULL), HEM_ERR_ARG);
    CHECK_EQ(dev.rank, 0x5a5a5a5a);
    hem_dev_window again;
    CHECK_OK(hem_window_device(window, &dev));
    CHECK_OK(hem_window_device(window, &again));
    CHECK_EQ(memcmp(&dev, &again, sizeof dev), 0);
    harness_destroy(host);
}

int rank_main(hem_world *world) {
    check_options(world);
    check_mismatch(world);
    hem_window_options o = window_kit_options(64);
    hem_window *window = window_kit_create(world, &o);
    for (int r = 0; r < hem_world_size(world); r++) {
        check_data_calls(window, r);
        check_signal_calls(window, r);
    }
    check_device_call(world, window);
    harness_barrier(window);
    CHECK_OK(hem_window_destroy(window));
    CHECK_OK(hem_window_destroy(NULL));
    harness_close(world, HEM_OK);
    return 0;
}
