/*
 * A stopped process is not dead: kernels of the others that wait for it do so past the time in which a
 * death is noticed, and go on when it goes on, on a window, a pipe, an exchange and a collective, be they
 * on streams or started by the host. A wait with a time limit says that its time is over, and can be
 * repeated. What kernels put to it meanwhile is there, through its host as well.
 *
 * On a GPU, what a stopped process has launched goes on. So it launches its part when it is awake again,
 * and no kernel that needs that part may have ended before.
 *
 * hem-test: ranks=2,3 modes=processes timeout=60
 */
#include "all_kit.h"
#include "proxy_kit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_MS  300
#define SHORT_NS HEM_MS(40)

enum {
    DIRECT,
    PROXIED,
    WINDOWS
};

enum {
    ASKED,     /* signals: a kernel of another has put its word */
    ANSWERED,  /* a kernel of the one that was stopped has put its own */
    READY = 12 /* a CPU has seen that no wait with a time limit was told of an answer */
};

enum {
    SHORT,
    ASK,
    ANSWER,
    RESULTS /* words that a window's kernels leave: -status */
};

typedef struct test {
    hem_world *world;
    all_kit all;
    hem_window *windows[WINDOWS];
    device_stream streams[WINDOWS];
    uint64_t *memory; /* of each window: what is put, then RESULTS words */
    uint64_t turn;    /* how often these windows were used */
    int64_t ended;    /* when the first thing that needs the stopped one had ended */
    int sleeper;
} test;

typedef struct talk_args {
    hem_dev_window w;
    uint64_t *memory;
    uint64_t step;
    int64_t timeout_ns;
    int32_t sleeper;
} talk_args;

HEM_DEV uint64_t word_of(int rank, uint64_t step) {
    return step * 1000u + (uint64_t)rank;
}

HEM_DEV void leave(const talk_args *args, int which, hem_status status) {
    if (hem_block().rank == 0)
        hemd_store64_relaxed(args->memory + 1 + which, (uint64_t)-status);
}

HEM_DEV hem_status look(const talk_args *args, int from) {
    const uint64_t *word =
        (const uint64_t *)hem_dev_address(args->w, args->w.rank, 8u * (uint64_t)from);
    return *word == word_of(from, args->step) ? HEM_OK : HEM_ERR_MISMATCH;
}

HEM_DEV hem_status put_word(const talk_args *args, int peer, uint32_t id) {
    hem_group block = hem_block();
    if (block.rank == 0)
        *args->memory = word_of(args->w.rank, args->step);
    hem_group_sync(block);
    return hem_dev_put_signal(args->w, block, peer, 8u * (uint64_t)args->w.rank, args->memory, 8,
                              id, 1);
}

DEVICE_KERNEL(wait_briefly, talk_args) {
    leave(args, SHORT,
          hem_dev_wait_signal_from(args->w, hem_block(), args->sleeper, ANSWERED, HEM_GE,
                                   args->step, args->timeout_ns));
}

DEVICE_KERNEL(ask, talk_args) {
    hem_group block = hem_block();
    hem_status status = put_word(args, args->sleeper, ASKED);
    if (status == HEM_OK)
        status = hem_dev_flush(args->w, block, args->sleeper);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(args->w, block, args->sleeper, ANSWERED, HEM_GE,
                                          args->step, args->timeout_ns);
    if (status == HEM_OK)
        status = look(args, args->sleeper);
    leave(args, ASK, status);
}

DEVICE_KERNEL(answer, talk_args) {
    hem_group block = hem_block();
    hem_status status = HEM_OK;
    for (int peer = 0; peer < args->w.size && status == HEM_OK; peer++) {
        if (peer == args->w.rank)
            continue;
        status = hem_dev_wait_signal_from(args->w, block, peer, ASKED, HEM_GE, args->step,
                                          args->timeout_ns);
        if (status == HEM_OK)
            status = look(args, peer);
        if (status == HEM_OK)
            status = put_word(args, peer, ANSWERED);
    }
    leave(args, ANSWER, status);
}

/* A child wakes it up again. It touches nothing: the parent may have CUDA open. */
static void stop_for(int ms) {
    pid_t rank = getpid();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep((useconds_t)ms * 1000);
        kill(rank, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    CHECK(waitpid(child, NULL, 0) == child);
}

static void launch(test *t, int which, int window) {
    talk_args args;
    args.w = window_kit_dev(t->windows[window]);
    args.memory = t->memory + (size_t)window * 16;
    args.step = t->turn;
    args.timeout_ns = which == SHORT ? SHORT_NS : HEM_FOREVER;
    args.sleeper = t->sleeper;
    if (which == SHORT)
        device_launch(wait_briefly, t->streams[window], 1, 1, &args);
    else if (which == ASK)
        device_launch(ask, t->streams[window], 1, 2, &args);
    else
        device_launch(answer, t->streams[window], 1, 2, &args);
}

static void expect(test *t, int which, int window, hem_status want) {
    uint64_t status = WINDOW_KIT_NONE;
    device_stream_sync(t->streams[window]);
    device_copy(&status, t->memory + (size_t)window * 16 + 1 + which, sizeof status);
    CHECK_EQ(status, (uint64_t)-want);
}

/* Something that needs the stopped one has ended. */
static void note_end(test *t) {
    int64_t now = harness_now();
    t->ended = now < t->ended ? now : t->ended;
}

static bool by_host(int part, uint64_t step) {
    return part >= ALL_HALO && step % 2 == 0;
}

/* Waits of the CPU with a time limit, for what kernels do. */
static void host_waits_briefly(test *t) {
    all_kit *all = &t->all;
    for (int part = ALL_HALO; part < ALL_PARTS; part++) {
        uint64_t count = part == ALL_HALO ? RING_CELLS : ALL_SHORT;
        all_launch(all, part, true, all->out[part] + (part == ALL_HALO), count,
                   (uint64_t)all->rank + 1);
        device_stream_sync(all->native[part]);
    }
    CHECK_OK(hem_exchange_start(all->exchange, NULL));
    CHECK_OK(hem_op_start(all->ops[1]));
    CHECK_STATUS(hem_exchange_finish(all->exchange, SHORT_NS), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_wait(all->ops[1], SHORT_NS), HEM_ERR_TIMEOUT);
}

static void host_waits(test *t) {
    all_kit *all = &t->all;
    uint64_t size = (uint64_t)all->size;
    CHECK_OK(hem_exchange_finish(all->exchange, LIMIT));
    note_end(t);
    CHECK_OK(hem_op_wait(all->ops[1], LIMIT));
    note_end(t);
    all_launch_look_halo(all);
    all_launch(all, ALL_COLL, false, all->in[ALL_COLL], ALL_SHORT, size * (size + 1) / 2);
}

static void be_awake(test *t, uint64_t step) {
    for (int part = 0; part < ALL_PARTS; part++)
        if (!by_host(part, step))
            all_step(&t->all, part, true);
    for (int w = 0; w < WINDOWS; w++) {
        launch(t, SHORT, w);
        expect(t, SHORT, w, HEM_ERR_TIMEOUT);
        launch(t, ASK, w);
    }
    if (step % 2 == 0)
        host_waits_briefly(t);
    CHECK_EQ(hem_world_alive(t->world, t->sleeper), 1);
    CHECK_OK(hem_signal(t->windows[DIRECT], t->sleeper, READY, HEM_SIGNAL_ADD, 1));
    if (step % 2 == 0)
        host_waits(t);
    for (int w = 0; w < WINDOWS; w++) {
        expect(t, ASK, w, HEM_OK);
        note_end(t);
    }
    for (int part = 0; part < ALL_PARTS; part++) {
        device_stream_sync(t->all.native[part]);
        note_end(t);
    }
}

static int64_t be_stopped(test *t) {
    stop_for(STOP_MS);
    int64_t awake = harness_now();
    for (int peer = 0; peer < t->all.size; peer++)
        if (peer != t->all.rank)
            CHECK_OK(hem_wait_signal_from(t->windows[DIRECT], peer, READY, HEM_GE, t->turn, LIMIT));
    for (int part = 0; part < ALL_PARTS; part++)
        all_step(&t->all, part, true);
    for (int w = 0; w < WINDOWS; w++)
        launch(t, ANSWER, w);
    for (int w = 0; w < WINDOWS; w++)
        expect(t, ANSWER, w, HEM_OK);
    return awake;
}

static void one_stop(test *t, uint64_t step) {
    int64_t awake = 0;
    t->ended = INT64_MAX;
    CHECK_OK(hem_sync(t->world, LIMIT));
    if (t->all.rank == t->sleeper)
        awake = be_stopped(t);
    else
        be_awake(t, step);
    all_check(&t->all, step);
    CHECK_OK(hem_broadcast(t->world, &awake, 1, HEM_I64, t->sleeper, LIMIT));
    CHECK(t->ended >= awake);
    for (int peer = 0; peer < t->all.size; peer++)
        CHECK_EQ(hem_world_alive(t->world, peer), 1);
}

int rank_main(hem_world *world) {
    test t;
    uint64_t step = 0;
    hem_window_options options = window_kit_options(64);
    memset(&t, 0, sizeof t);
    t.world = world;
    t.all = all_open(world, true);
    t.memory = (uint64_t *)device_alloc(WINDOWS * 16 * 8);
    for (int i = 0; i < WINDOWS; i++)
        t.streams[i] = device_stream_create();
    for (int i = 0; i < 2; i++) {
        t.sleeper = i == 0 ? hem_world_size(world) - 1 : 0;
        t.windows[DIRECT] = window_kit_create(world, &options);
        t.windows[PROXIED] = proxy_kit_create(world, 64, PROXY_KIT_ALL);
        for (t.turn = 1; t.turn <= 2; t.turn++) {
            harness_step("stop", ++step);
            one_stop(&t, step);
        }
        CHECK_OK(hem_window_destroy(t.windows[PROXIED]));
        CHECK_OK(hem_window_destroy(t.windows[DIRECT]));
    }
    for (int i = 0; i < WINDOWS; i++)
        device_stream_destroy(t.streams[i]);
    device_free(t.memory);
    all_close(&t.all, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
