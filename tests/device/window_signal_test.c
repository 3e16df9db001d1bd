/*
 * Signals between CPUs and kernels on one window: a CPU tells a kernel and a kernel tells a CPU, with
 * data; what either of a rank signals on one id is added up; SET sets one's own part only; every way of
 * seeing a signal sees both; and a CPU that has gone to sleep learns of a kernel's signal. All of it
 * with peers that are mapped, and with peers that are reached through their hosts.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=120
 */
#include "window_kit.h"

#define WORDS  300
#define ROUNDS 60
/* Ids below are for kernels. */
#define DEVICE_IDS 6
#define SIGNALS    10

/* Rank r writes area r of its right neighbour: first what the CPU puts, then what the kernel does. */
typedef struct area {
    uint64_t cpu[WORDS];
    uint64_t kernel[WORDS];
} area;

typedef struct relay_args {
    hem_dev_window w;
    uint64_t *source; /* of this rank, in device memory */
    uint64_t *errors;
    int32_t left;
    int32_t right;
    uint64_t rounds;
} relay_args;

/*
 * Each round: wait for the CPU of the left neighbour, check what it put, answer to that CPU, and tell
 * the CPU of the right neighbour, with data, when that has read the data of the round before.
 */
DEVICE_KERNEL(relay, relay_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    const area *mine =
        (const area *)hem_dev_address(w, w.rank, (uint64_t)args->left * sizeof(area));
    for (uint64_t round = 1; round <= args->rounds; round++) {
        hem_status status =
            hem_dev_wait_signal_from(w, block, args->left, 2, HEM_GE, round, HEM_FOREVER);
        if (status == HEM_OK)
            status =
                hem_dev_wait_signal_from(w, block, args->right, 1, HEM_GE, round - 1, HEM_FOREVER);
        if (status != HEM_OK) {
            if (block.rank == 0)
                hemd_add64_relaxed(args->errors, 1000000);
            return;
        }
        for (uint64_t i = block.rank; i < WORDS; i += block.size) {
            if (mine->cpu[i] != round * 1000 + i)
                hemd_add64_relaxed(args->errors, 1);
            args->source[i] = round * 7000 + i;
        }
        hem_group_sync(block);
        status =
            hem_dev_put_signal(w, block, args->right, (uint64_t)w.rank * sizeof(area) + WORDS * 8,
                               args->source, WORDS * 8, DEVICE_IDS + 1, 1);
        if (status == HEM_OK)
            status = hem_dev_signal(w, block, args->left, DEVICE_IDS + 2, HEM_SIGNAL_SET, round);
        if (status != HEM_OK && block.rank == 0)
            hemd_add64_relaxed(args->errors, 1000);
    }
}

typedef struct add_args {
    hem_dev_window w;
    int32_t peer;
    uint32_t id;
    int32_t op;
    uint64_t value;
    uint64_t *status_p;
} add_args;

DEVICE_KERNEL(add, add_args) {
    hem_status status =
        args->peer < 0
            ? hem_dev_signal_all(args->w, hem_block(), args->id, args->op, args->value)
            : hem_dev_signal(args->w, hem_block(), args->peer, args->id, args->op, args->value);
    if (hem_block().rank == 0)
        *args->status_p = (uint64_t)-status;
}

DEVICE_KERNEL(wait_for, window_kit_wait) {
    hem_status status = window_kit_wait_here(args, hem_block());
    if (hem_block().rank == 0)
        hemd_store64_relaxed(args->status_p, (uint64_t)-status);
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream stream;
    uint64_t *device; /* WORDS of source, then errors, then a status */
    int rank;
    int size;
    int left;
    int right;
} test;

static uint64_t read_word(const uint64_t *word) {
    uint64_t value = 0;
    device_copy(&value, word, sizeof value);
    return value;
}

static void cpu_round(test *t, uint64_t round, int way) {
    uint64_t words[WORDS];
    uint64_t seen[WORDS];
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = round * 1000 + i;
    CHECK_OK(hem_put_signal(t->window, t->right, (size_t)t->rank * sizeof(area), words,
                            sizeof words, 2, 1));
    /* The kernel of the left neighbour has written into this rank's memory. */
    harness_see(t->window, way, t->left, DEVICE_IDS + 1, round);
    CHECK_OK(
        hem_get(t->window, t->rank, (size_t)t->left * sizeof(area) + WORDS * 8, seen, sizeof seen));
    for (uint64_t i = 0; i < WORDS; i++)
        CHECK_EQ(seen[i], round * 7000 + i);
    /* Nobody is a round ahead: the kernel of the right neighbour has seen this round. */
    CHECK_OK(hem_wait_signal_from(t->window, t->right, DEVICE_IDS + 2, HEM_GE, round, LIMIT));
    /* The kernel of the left neighbour may write the area again. */
    CHECK_OK(hem_signal(t->window, t->left, 1, HEM_SIGNAL_ADD, 1));
}

static void check_relay(test *t) {
    relay_args args;
    uint64_t rounds = (uint64_t)harness_rounds(ROUNDS);
    harness_step("relay", rounds);
    args.w = window_kit_dev(t->window);
    args.source = t->device;
    args.errors = t->device + WORDS;
    args.left = t->left;
    args.right = t->right;
    args.rounds = rounds;
    device_launch(relay, t->stream, 1, 2, &args);
    for (uint64_t round = 1; round <= rounds; round++)
        cpu_round(t, round, (int)(round % HARNESS_SEE_WAYS));
    device_stream_sync(t->stream);
    CHECK_EQ(read_word(t->device + WORDS), 0);
    harness_barrier(t->window);
}

static void run_add(test *t, int peer, uint32_t id, int op, uint64_t value) {
    add_args args;
    args.w = window_kit_dev(t->window);
    args.peer = peer;
    args.id = id;
    args.op = op;
    args.value = value;
    args.status_p = t->device + WORDS + 1;
    device_launch(add, t->stream, 1, 1, &args);
    device_stream_sync(t->stream);
    CHECK_EQ(read_word(args.status_p), 0);
}

static uint64_t run_wait(test *t, int peer, uint32_t id, uint64_t value, int64_t timeout_ns) {
    window_kit_wait args;
    args.w = window_kit_dev(t->window);
    args.peer = peer;
    args.id = id;
    args.value = value;
    args.timeout_ns = timeout_ns;
    args.status_p = t->device + WORDS + 1;
    device_launch(wait_for, t->stream, 1, 1, &args);
    device_stream_sync(t->stream);
    return read_word(args.status_p);
}

/* The CPU and the kernel of each rank have a part each in what its neighbour's kernel waits for. */
static void check_parts_for_kernels(test *t) {
    harness_step("parts for kernels", 0);
    uint32_t id = 3;
    CHECK_OK(hem_signal(t->window, t->right, id, HEM_SIGNAL_ADD, 5));
    CHECK_OK(hem_signal(t->window, t->right, id, HEM_SIGNAL_ADD, 6));
    run_add(t, t->right, id, HEM_SIGNAL_ADD, 100);
    CHECK_EQ(run_wait(t, t->left, id, 111, LIMIT), 0);
    harness_barrier(t->window);
    CHECK_EQ(run_wait(t, t->left, id, 112, HEM_MS(2)), (uint64_t)-HEM_ERR_TIMEOUT);
    harness_barrier(t->window);
    CHECK_OK(hem_signal(t->window, t->right, id, HEM_SIGNAL_SET, 1000));
    CHECK_EQ(run_wait(t, t->left, id, 1100, LIMIT), 0);
    harness_barrier(t->window);
    run_add(t, t->right, id, HEM_SIGNAL_SET, 3);
    CHECK_OK(hem_signal(t->window, t->right, id, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1000));
    CHECK_EQ(run_wait(t, t->left, id, 2003, LIMIT), 0);
    harness_barrier(t->window);
    CHECK_EQ(run_wait(t, t->left, id, 2004, 0), (uint64_t)-HEM_ERR_TIMEOUT);
    harness_barrier(t->window);
}

static void check_parts_for_cpus(test *t) {
    harness_step("parts for CPUs", 0);
    uint32_t id = DEVICE_IDS;
    uint64_t value = 0;
    bool done = true;
    CHECK_OK(hem_signal(t->window, t->right, id, HEM_SIGNAL_ADD, 5));
    run_add(t, t->right, id, HEM_SIGNAL_ADD, 100);
    CHECK_OK(hem_wait_signal_from(t->window, t->left, id, HEM_EQ, 105, LIMIT));
    harness_barrier(t->window);
    run_add(t, t->right, id, HEM_SIGNAL_SET, 7);
    CHECK_OK(hem_wait_signal_from(t->window, t->left, id, HEM_EQ, 12, LIMIT));
    CHECK_OK(hem_read_signal_from(t->window, t->left, id, &value));
    CHECK_EQ(value, 12);
    CHECK_OK(hem_test_signal_from(t->window, t->left, id, HEM_GT, 12, &done));
    CHECK(!done);
    CHECK_STATUS(hem_wait_signal_from(t->window, t->left, id, HEM_GE, 13, HEM_MS(3)),
                 HEM_ERR_TIMEOUT);
    CHECK_SENTENCE("is 12");
    harness_barrier(t->window);
}

/* Kernels of all ranks to all ranks' CPUs and kernels, added up over the ranks. */
static void check_sums(test *t) {
    harness_step("sums", 0);
    uint64_t others = (uint64_t)t->size - 1;
    uint64_t value = 0;
    run_add(t, -1, DEVICE_IDS, HEM_SIGNAL_ADD, 1000);
    CHECK_OK(hem_signal_all(t->window, DEVICE_IDS, HEM_SIGNAL_ADD, 20));
    CHECK_OK(hem_wait_signal(t->window, DEVICE_IDS, HEM_GE, 12 + 1020 * others, LIMIT));
    run_add(t, -1, 4, HEM_SIGNAL_ADD, 3);
    CHECK_OK(hem_signal_all(t->window, 4, HEM_SIGNAL_ADD, 2));
    CHECK_OK(hem_signal(t->window, t->rank, 4, HEM_SIGNAL_ADD, 50));
    CHECK_EQ(run_wait(t, -1, 4, 50 + 5 * others, LIMIT), 0);
    harness_barrier(t->window);
    CHECK_OK(hem_read_signal(t->window, DEVICE_IDS, &value));
    CHECK_EQ(value, 12 + 1020 * others);
    harness_barrier(t->window);
}

/* Long enough for the CPU to sleep: nothing but the kernel's word tells it. */
static void check_asleep(test *t) {
    harness_step("asleep", 0);
    uint64_t before = 0;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hem_read_signal_from(t->window, t->rank, DEVICE_IDS + 1, &before));
        device_stream other = device_stream_create();
        window_kit_wait wait;
        wait.w = window_kit_dev(t->window);
        wait.peer = t->rank;
        wait.id = 5;
        wait.value = 1000000;
        wait.timeout_ns = HEM_MS(60);
        wait.status_p = t->device + WORDS + 2;
        device_launch(wait_for, other, 1, 1, &wait);
        device_stream_order(other, t->stream);
        add_args args;
        args.w = wait.w;
        args.peer = t->rank;
        args.id = DEVICE_IDS + 1;
        args.op = HEM_SIGNAL_ADD;
        args.value = 1;
        args.status_p = t->device + WORDS + 1;
        device_launch(add, t->stream, 1, 1, &args);
        CHECK_OK(
            hem_wait_signal_from(t->window, t->rank, DEVICE_IDS + 1, HEM_GE, before + 1, LIMIT));
        device_stream_sync(t->stream);
        device_stream_sync(other);
        CHECK_EQ(read_word(t->device + WORDS + 2), (uint64_t)-HEM_ERR_TIMEOUT);
        device_stream_destroy(other);
    }
    harness_barrier(t->window);
}

static void check_all(test *t, bool proxied) {
    int peers[64];
    hem_window_options options = window_kit_options((size_t)t->size * sizeof(area));
    options.signals = SIGNALS;
    options.device_signals = DEVICE_IDS;
    options.proxy_peers = peers;
    for (int r = 0; proxied && r < t->size; r++)
        if (r != t->rank)
            peers[options.proxy_peer_count++] = r;
    harness_step(proxied ? "through hosts" : "mapped", 0);
    t->device = (uint64_t *)device_alloc((WORDS + 3) * sizeof(uint64_t));
    t->window = window_kit_create(t->world, &options);
    check_relay(t);
    check_parts_for_kernels(t);
    check_parts_for_cpus(t);
    check_sums(t);
    check_asleep(t);
    CHECK_OK(hem_window_destroy(t->window));
    device_free(t->device);
}

int rank_main(hem_world *world) {
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    t.left = harness_left(world);
    t.right = harness_right(world);
    t.stream = device_stream_create();
    check_all(&t, false);
    if (t.size > 1)
        check_all(&t, true);
    device_stream_destroy(t.stream);
    harness_close(world, HEM_OK);
    return 0;
}
