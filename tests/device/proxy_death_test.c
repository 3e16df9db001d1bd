/*
 * A rank that is reached through its host dies while kernels put to it and wait for room, for a flush or
 * in a barrier: they end with HEM_ERR_PEER, a CPU does, too, and the ways to the living go on.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it
 * die by a signal: tests/script/device-death.sh does that.
 *
 * hem-test: ranks=2,3 modes=threads timeout=60
 */
#include "proxy_kit.h"

#include <hem/device/barrier.h>
#include <signal.h>

#define BYTES 100000u

enum {
    PUTS,
    FLUSH,
    BARRIER,
    CASES
};

typedef struct feed_args {
    hem_dev_window w;
    int32_t peer;
    int32_t kind;
    const unsigned char *source;
    uint64_t *status_p;
} feed_args;

/* As long as it goes well: the peer takes it all, until it is gone. */
DEVICE_KERNEL(feed, feed_args) {
    hem_group block = hem_block();
    hem_status status = HEM_OK;
    while (status == HEM_OK) {
        status = hem_dev_put(args->w, block, args->peer, 0, args->source, BYTES);
        if (status == HEM_OK && args->kind == FLUSH)
            status = hem_dev_flush(args->w, block, args->peer);
        if (status == HEM_OK && args->kind == BARRIER)
            status = hem_dev_barrier_peer(args->w, block, args->peer, 1, HEM_FOREVER);
    }
    if (block.rank == 0)
        hemd_store64_relaxed(args->status_p, (uint64_t)-status);
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream streams[CASES];
    unsigned char *source;
    uint64_t *statuses;
    int rank;
    int victim;
} test;

static void start(test *t, int kind, int peer) {
    feed_args args;
    args.w = window_kit_dev(t->window);
    args.peer = peer;
    args.kind = kind;
    args.source = t->source;
    args.status_p = t->statuses + kind;
    device_launch(feed, t->streams[kind], 1, 1, &args);
}

static void check_ended(test *t) {
    uint64_t statuses[CASES];
    for (int kind = 0; kind < CASES; kind++)
        device_stream_sync(t->streams[kind]);
    device_copy(statuses, t->statuses, sizeof statuses);
    for (int kind = 0; kind < CASES; kind++)
        CHECK_EQ(statuses[kind], (uint64_t)-HEM_ERR_PEER);
}

static int die(test *t) {
    const char *manner = getenv("HEM_TEST_DIE");
    harness_sleep_ms(30);
    for (int kind = 0; kind < CASES; kind++)
        device_stream_destroy(t->streams[kind]);
    device_free(t->source);
    device_free(t->statuses);
    if (manner != NULL && strcmp(manner, "kill") == 0)
        (void)raise(SIGKILL);
    harness_forget();
    return 0;
}

/* The survivors use each other's hosts as before. */
static void check_living(test *t) {
    uint64_t word = 77;
    for (int r = 0; r < t->victim; r++)
        CHECK_OK(hem_put_signal(t->window, r, 8, &word, 8, 13, 1));
    for (int r = 0; r < t->victim; r++)
        CHECK_OK(hem_wait_signal_from(t->window, r, 13, HEM_GE, 1, LIMIT));
    word = 0;
    CHECK_OK(hem_get(t->window, t->rank, 8, &word, 8));
    CHECK_EQ(word, 77);
}

int rank_main(hem_world *world) {
    test t;
    uint64_t word = 1;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.victim = hem_world_size(world) - 1;
    t.source = (unsigned char *)device_alloc(BYTES);
    t.statuses = (uint64_t *)device_alloc(CASES * sizeof(uint64_t));
    for (int kind = 0; kind < CASES; kind++)
        t.streams[kind] = device_stream_create();
    t.window = proxy_kit_create(world, BYTES, PROXY_KIT_ALL);
    harness_barrier(t.window);
    if (t.rank == t.victim)
        return die(&t);
    for (int kind = 0; kind < CASES; kind++)
        start(&t, kind, t.victim);
    check_ended(&t);
    CHECK_STATUS(hem_put(t.window, t.victim, 0, &word, 8), HEM_ERR_PEER);
    CHECK_STATUS(hem_signal(t.window, t.victim, 1, HEM_SIGNAL_ADD, 1), HEM_ERR_PEER);
    check_living(&t);
    CHECK_STATUS(hem_window_destroy(t.window), HEM_ERR_PEER);
    for (int kind = 0; kind < CASES; kind++)
        device_stream_destroy(t.streams[kind]);
    device_free(t.source);
    device_free(t.statuses);
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", t.rank);
        fflush(stdout);
    }
    return 0;
}
