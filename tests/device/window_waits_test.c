/*
 * Every wait of a kernel on a window, between real ranks: one after the other it runs into its time limit,
 * not before it and not much after; a limit of 0 looks once. Then all kinds wait at the same time on
 * streams of their own, and the world is revoked: all end with HEM_ERR_REVOKED. The same when it is closed
 * under them: HEM_ERR_CLOSED. Nothing of it stays: in another world they pass. By threads, warps, several
 * warps of a block and blocks: limits of every kind by each of them, the others by turns.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "group_kit.h"
#include "window_kit.h"

#include <hem/device/barrier.h>

enum {
    FROM,
    SUM,
    WEAK,
    BARRIER,
    HALVES,
    PAIR,
    COUNTER,
    KINDS
};

typedef struct any_args {
    hem_dev_window w;
    int32_t kind;
    int32_t peer;
    uint32_t scope;
    int64_t timeout_ns;
    uint64_t *status_p;
} any_args;

HEM_DEV hem_status wait_any_kind(const any_args *args, hem_group g) {
    hem_dev_window w = args->w;
    hem_status status = HEM_OK;
    switch (args->kind) {
    case FROM:
        return hem_dev_wait_signal_from(w, g, args->peer, 0, HEM_GE, 1, args->timeout_ns);
    case SUM:
        return hem_dev_wait_signal(w, g, 1, HEM_GE, 1, args->timeout_ns);
    case WEAK:
        return hem_dev_wait_signal_weak(w, g, args->peer, 2, HEM_GE, 1, args->timeout_ns);
    case BARRIER:
        return hem_dev_barrier(w, g, 0, args->timeout_ns);
    case HALVES:
        status = hem_dev_barrier_arrive(w, g, 1);
        return status == HEM_OK ? hem_dev_barrier_wait(w, g, 1, args->timeout_ns) : status;
    case PAIR:
        return hem_dev_barrier_peer(w, g, args->peer, 0, args->timeout_ns);
    default:
        return hem_dev_wait_counter(w, g, 0, 1, args->timeout_ns);
    }
}

DEVICE_KERNEL(wait_kind, any_args) {
    hem_group g = group_kit_of(args->scope);
    if (!group_kit_takes_part(args->scope))
        return;
    hem_status status = wait_any_kind(args, g);
    if (g.rank == 0)
        hemd_store64_relaxed(args->status_p, (uint64_t)-status);
}

typedef struct tell_args {
    hem_dev_window w;
    int32_t peer;
} tell_args;

/* What the kinds that are no barriers wait for. */
DEVICE_KERNEL(tell_peer, tell_args) {
    hem_group block = hem_block();
    uint64_t nothing = 0;
    (void)hem_dev_signal(args->w, block, args->peer, 0, HEM_SIGNAL_ADD, 1);
    (void)hem_dev_signal(args->w, block, args->peer, 1, HEM_SIGNAL_ADD, 1);
    (void)hem_dev_signal(args->w, block, args->peer, 2, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1);
    (void)hem_dev_put_start(args->w, block, args->peer, 0, &nothing, 8, 0);
}

typedef struct test {
    hem_world *top;
    hem_world *world;
    hem_window *window;
    device_stream streams[KINDS];
    uint64_t *statuses;
    int rank;
    int peer;      /* the one next to it in a pair, or oneself */
    uint32_t turn; /* which group waits first */
} test;

static void make(test *t) {
    hem_window_options o = window_kit_options(64);
    CHECK_OK(hem_world_split(t->top, 0, t->rank, &t->world));
    t->window = window_kit_create(t->world, &o);
}

static void start(test *t, int kind, int64_t timeout_ns) {
    any_args args;
    uint64_t none = WINDOW_KIT_NONE;
    device_copy(t->statuses + kind, &none, sizeof none);
    args.w = window_kit_dev(t->window);
    args.kind = kind;
    args.peer = t->peer;
    args.scope = ((uint32_t)kind + t->turn) % GROUP_KITS;
    args.timeout_ns = timeout_ns;
    args.status_p = t->statuses + kind;
    device_launch(wait_kind, t->streams[kind], 1,
                  args.scope < GROUP_KIT_WARPS ? 1 : GROUP_KIT_WIDTH, &args);
}

static void expect(test *t, int kind, hem_status want) {
    uint64_t status = 0;
    harness_step("kind", (uint64_t)kind);
    device_stream_sync(t->streams[kind]);
    device_copy(&status, t->statuses + kind, sizeof status);
    CHECK_EQ(status, (uint64_t)-want);
}

/* A pair of oneself is no wait. */
static bool waits(const test *t, int kind) {
    return kind != PAIR || t->peer != t->rank;
}

/* Only rank 0 waits: nobody tells it anything, and barriers keep its arrival. */
static void check_limits(test *t) {
    static const int64_t limits[2] = {0, HEM_MS(10)};
    make(t);
    for (int i = 0; t->rank == 0 && i < 2 * GROUP_KITS * KINDS; i++) {
        int64_t limit = limits[i / KINDS % 2], begun = harness_now();
        t->turn = (uint32_t)(i / KINDS / 2);
        start(t, i % KINDS, limit);
        expect(t, i % KINDS, HEM_ERR_TIMEOUT);
        CHECK(harness_now() - begun >= limit);
        CHECK(harness_now() - begun < limit + HEM_SEC(2) + 5 * harness_slack());
    }
    CHECK_OK(hem_sync(t->top, LIMIT));
    CHECK_OK(hem_window_destroy(t->window));
    CHECK_OK(hem_world_close(t->world));
}

/* All wait for what does not come: rank 0 is not there. */
static void start_all(test *t) {
    t->turn++;
    for (int kind = 0; t->rank != 0 && kind < KINDS; kind++)
        if (waits(t, kind) && (kind != PAIR || t->peer == 0))
            start(t, kind, HEM_FOREVER);
    CHECK_OK(hem_sync(t->top, LIMIT));
    harness_sleep_ms(5);
    for (int kind = 0; t->rank != 0 && kind < KINDS; kind++)
        CHECK(device_stream_done(t->streams[kind]) == (kind == PAIR && t->peer != 0));
}

static void expect_all(test *t, hem_status want) {
    for (int kind = 0; t->rank != 0 && kind < KINDS; kind++)
        if (waits(t, kind) && (kind != PAIR || t->peer == 0))
            expect(t, kind, want);
}

static void check_revoked(test *t) {
    make(t);
    start_all(t);
    CHECK_OK(hem_sync(t->top, LIMIT));
    if (t->rank == 0)
        CHECK_OK(hem_world_revoke(t->world));
    expect_all(t, HEM_ERR_REVOKED);
    CHECK_OK(hem_sync(t->top, LIMIT));
    (void)hem_window_destroy(t->window);
    (void)hem_world_close(t->world);
}

static void check_closed(test *t) {
    make(t);
    start_all(t);
    CHECK_OK(hem_sync(t->top, LIMIT));
    /* Everybody leaves at once: a peer that has left may be heard of first. */
    hem_status status = hem_world_close(t->world);
    CHECK(status == HEM_OK);
    for (int kind = 0; t->rank != 0 && kind < KINDS; kind++) {
        uint64_t ended = 0;
        if (!waits(t, kind) || (kind == PAIR && t->peer != 0))
            continue;
        harness_step("closed", (uint64_t)kind);
        device_stream_sync(t->streams[kind]);
        device_copy(&ended, t->statuses + kind, sizeof ended);
        CHECK(ended == (uint64_t)-HEM_ERR_CLOSED || ended == (uint64_t)-HEM_ERR_PEER);
    }
    CHECK_OK(hem_window_destroy(t->window));
}

/* And when it does come, all pass. */
static void check_passes(test *t) {
    tell_args args;
    make(t);
    t->turn++;
    for (int kind = 0; kind < KINDS; kind++)
        if (waits(t, kind))
            start(t, kind, LIMIT);
    args.w = window_kit_dev(t->window);
    args.peer = t->peer;
    device_stream stream = device_stream_create();
    device_launch(tell_peer, stream, 1, 1, &args);
    for (int kind = 0; kind < KINDS; kind++)
        if (waits(t, kind))
            expect(t, kind, HEM_OK);
    device_stream_sync(stream);
    device_stream_destroy(stream);
    CHECK_OK(hem_window_destroy(t->window));
    CHECK_OK(hem_world_close(t->world));
}

int rank_main(hem_world *world) {
    test t;
    memset(&t, 0, sizeof t);
    t.top = world;
    t.rank = hem_world_rank(world);
    t.peer = (t.rank ^ 1) < hem_world_size(world) ? t.rank ^ 1 : t.rank;
    t.statuses = (uint64_t *)device_alloc(KINDS * 8);
    CHECK_OK(hem_device_open(world, NULL));
    for (int kind = 0; kind < KINDS; kind++)
        t.streams[kind] = device_stream_create();
    check_limits(&t);
    check_passes(&t);
    check_revoked(&t);
    check_passes(&t);
    check_closed(&t);
    check_passes(&t);
    for (int kind = 0; kind < KINDS; kind++)
        device_stream_destroy(t.streams[kind]);
    device_free(t.statuses);
    harness_close(world, HEM_OK);
    return 0;
}
