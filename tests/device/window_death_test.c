/*
 * A rank dies while kernels of the others wait for it: those waits end with HEM_ERR_PEER, and no other
 * does; what it had signalled counts, and what it had put can still be read by kernels; CPUs are
 * refused; the survivors go on, destroy the window, and make a new one among themselves.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it
 * die by a signal: tests/script/device-death.sh does that. HEM_TEST_VICTIM=n chooses it.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#include "window_kit.h"

#include <hem/device/barrier.h>
#include <signal.h>

#define WORDS 2000
#define CASES 6
#define MIXED 2 /* the last mixed barrier */

typedef struct wait_args {
    window_kit_wait wait;
    int32_t kind; /* enum kind */
} wait_args;

enum kind {
    WAIT_VICTIM,
    WAIT_SUM,
    WAIT_BARRIER,
    WAIT_MIXED,
    WAIT_LIVING,
    WAIT_HEARD
};

DEVICE_KERNEL(wait_one, wait_args) {
    hem_group block = hem_block();
    const bool meets = args->kind == WAIT_BARRIER || args->kind == WAIT_MIXED;
    hem_status status =
        meets ? hem_dev_barrier(args->wait.w, block, args->wait.id, args->wait.timeout_ns)
              : window_kit_wait_here(&args->wait, block);
    if (block.rank == 0)
        hemd_store64_relaxed(args->wait.status_p, (uint64_t)-status);
}

typedef struct read_args {
    hem_dev_window w;
    int32_t peer;
    uint64_t *sum_p;
} read_args;

DEVICE_KERNEL(read_all, read_args) {
    hem_group block = hem_block();
    const uint64_t *words = (const uint64_t *)hem_dev_address(args->w, args->peer, 0);
    for (uint64_t i = block.rank; i < WORDS; i += block.size)
        hemd_add64_relaxed(args->sum_p, words[i]);
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream streams[CASES];
    uint64_t *statuses; /* CASES of them, then a sum; in device memory */
    int rank;
    int size;
    int victim;
} test;

static uint64_t read_word(const uint64_t *word) {
    uint64_t value = 0;
    device_copy(&value, word, sizeof value);
    return value;
}

static void start(test *t, int kind, int peer, uint32_t id, uint64_t value) {
    wait_args args;
    uint64_t none = WINDOW_KIT_NONE;
    device_copy(t->statuses + kind, &none, sizeof none);
    args.wait.w = window_kit_dev(t->window);
    args.wait.peer = peer;
    args.wait.id = id;
    args.wait.value = value;
    args.wait.timeout_ns = HEM_FOREVER;
    args.wait.status_p = t->statuses + kind;
    args.kind = kind;
    device_launch(wait_one, t->streams[kind], 1, 1, &args);
}

static uint64_t outcome(test *t, int kind) {
    device_stream_sync(t->streams[kind]);
    return read_word(t->statuses + kind);
}

/* Another survivor, in a ring of them; oneself where there is no other. */
static int next_living(const test *t, int step) {
    int r = t->rank;
    do
        r = (r + t->size + step) % t->size;
    while (r == t->victim);
    return r;
}

/* Once. */
static void living_meet(test *t) {
    for (int r = 0; r < t->size; r++)
        if (r != t->victim)
            CHECK_OK(hem_signal(t->window, r, 14, HEM_SIGNAL_ADD, 1));
    for (int r = 0; r < t->size; r++)
        if (r != t->victim)
            CHECK_OK(hem_wait_signal_from(t->window, r, 14, HEM_GE, 1, LIMIT));
}

static int die(test *t) {
    const char *manner = getenv("HEM_TEST_DIE");
    harness_sleep_ms(20);
    for (int kind = 0; kind < CASES; kind++)
        device_stream_destroy(t->streams[kind]);
    device_free(t->statuses);
    if (manner != NULL && strcmp(manner, "kill") == 0)
        raise(SIGKILL);
    harness_forget();
    return 0;
}

static void check_waits(test *t) {
    CHECK_EQ(outcome(t, WAIT_VICTIM), (uint64_t)-HEM_ERR_PEER);
    CHECK_EQ(outcome(t, WAIT_SUM), (uint64_t)-HEM_ERR_PEER);
    CHECK_EQ(outcome(t, WAIT_BARRIER), (uint64_t)-HEM_ERR_PEER);
    CHECK_EQ(outcome(t, WAIT_MIXED), (uint64_t)-HEM_ERR_PEER);
    /* The kernel's entry stands, and the CPU waits no longer than it. */
    CHECK_STATUS(hem_barrier_wait(t->window, MIXED, LIMIT), HEM_ERR_PEER);
    CHECK_NAMES_RANK(t->victim);
    /* Nobody has told it yet, and the death is not its concern. */
    CHECK_EQ(read_word(t->statuses + WAIT_LIVING), WINDOW_KIT_NONE);
    living_meet(t);
    CHECK_OK(hem_signal(t->window, next_living(t, 1), 3, HEM_SIGNAL_ADD, 1));
    CHECK_EQ(outcome(t, WAIT_LIVING), 0);
    /* What the dead has signalled before counts. */
    start(t, WAIT_HEARD, t->victim, 0, 7);
    CHECK_EQ(outcome(t, WAIT_HEARD), 0);
    /* New waits find out, too. */
    start(t, WAIT_VICTIM, t->victim, 0, 8);
    CHECK_EQ(outcome(t, WAIT_VICTIM), (uint64_t)-HEM_ERR_PEER);
}

static void check_memory(test *t) {
    read_args args;
    uint64_t word = 1;
    args.w = window_kit_dev(t->window);
    args.peer = t->victim;
    args.sum_p = t->statuses + CASES;
    device_launch(read_all, t->streams[0], 1, 2, &args);
    device_stream_sync(t->streams[0]);
    CHECK_EQ(read_word(t->statuses + CASES), (uint64_t)WORDS * (WORDS - 1) / 2 + 9 * WORDS);
    CHECK_STATUS(hem_get(t->window, t->victim, 0, &word, 8), HEM_ERR_PEER);
    CHECK_STATUS(hem_put(t->window, t->victim, 0, &word, 8), HEM_ERR_PEER);
    CHECK_NAMES_RANK(t->victim);
    CHECK_STATUS(hem_signal(t->window, t->victim, 2, HEM_SIGNAL_ADD, 1), HEM_ERR_PEER);
    CHECK_STATUS(hem_wait_signal_from(t->window, t->victim, 12, HEM_GE, 1, LIMIT), HEM_ERR_PEER);
    CHECK_OK(hem_put(t->window, next_living(t, 1), 0, &word, 8));
    CHECK_OK(hem_signal(t->window, next_living(t, 1), 12, HEM_SIGNAL_ADD, 1));
    CHECK_OK(hem_wait_signal_from(t->window, next_living(t, -1), 12, HEM_GE, 1, LIMIT));
}

static void check_shrunk(test *t) {
    hem_world *rest = NULL;
    hem_window_options o = window_kit_options(64);
    CHECK_OK(hem_world_shrink(t->world, &rest));
    hem_window *window = window_kit_create(rest, &o);
    harness_barrier(window);
    CHECK_OK(hem_window_destroy(window));
    CHECK_OK(hem_world_close(rest));
}

static void prepare(test *t) {
    uint64_t words[WORDS];
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = i + 9;
    for (int kind = 0; kind < CASES; kind++)
        t->streams[kind] = device_stream_create();
    t->statuses = (uint64_t *)device_alloc((CASES + 1) * sizeof(uint64_t));
    hem_window_options o = window_kit_options(sizeof words);
    o.mixed_barriers = MIXED + 1;
    t->window = window_kit_create(t->world, &o);
    if (t->rank != t->victim)
        return;
    CHECK_OK(hem_put(t->window, t->rank, 0, words, sizeof words));
    CHECK_OK(hem_signal_all(t->window, 0, HEM_SIGNAL_SET, 7));
}

int rank_main(hem_world *world) {
    const char *victim = getenv("HEM_TEST_VICTIM");
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    t.victim = victim != NULL ? atoi(victim) : t.size - 1;
    prepare(&t);
    harness_barrier(t.window);
    if (t.rank == t.victim)
        return die(&t);
    start(&t, WAIT_VICTIM, t.victim, 0, 8);
    start(&t, WAIT_SUM, -1, 2, 100);
    start(&t, WAIT_BARRIER, 0, MIXED + 1, 0);
    start(&t, WAIT_MIXED, 0, MIXED, 0);
    start(&t, WAIT_LIVING, next_living(&t, -1), 3, 1);
    check_waits(&t);
    check_memory(&t);
    CHECK_STATUS(hem_window_destroy(t.window), HEM_ERR_PEER);
    check_shrunk(&t);
    for (int kind = 0; kind < CASES; kind++)
        device_stream_destroy(t.streams[kind]);
    device_free(t.statuses);
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", t.rank);
        fflush(stdout);
    }
    return 0;
}
