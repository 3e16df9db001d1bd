/*
 * Windows in device memory are made and destroyed a thousand times, with the library's memory and with
 * the caller's own, used each time: no descriptor, no mapping and no memory is left behind, and none
 * sees what an earlier one held.
 *
 * hem-test: ranks=1,2,3,5 timeout=240
 */
#include "window_kit.h"

typedef struct use_args {
    hem_dev_window w;
    int32_t right;
    int32_t left;
    uint64_t *errors;
} use_args;

/* Everything is zero at first; then each leaves something in its neighbour. */
DEVICE_KERNEL(use, use_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint64_t value = 1;
    hem_status status = hem_dev_read_signal_from(w, args->left, 1, &value);
    if (block.rank == 0 && (status != HEM_OK || value > 1))
        hemd_add64_relaxed(args->errors, 1);
    status = hem_dev_signal(w, block, args->right, 1, HEM_SIGNAL_ADD, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(w, block, args->left, 1, HEM_EQ, 1, HEM_FOREVER);
    if (status == HEM_OK)
        status = hem_dev_signal(w, block, args->left, 13, HEM_SIGNAL_ADD, 1);
    if (block.rank == 0 && status != HEM_OK)
        hemd_add64_relaxed(args->errors, 1000);
}

typedef struct test {
    hem_world *world;
    hem_window *gate;
    device_stream stream;
    uint64_t *errors;
    unsigned char *own;
    int left;
    int right;
} test;

static void run_use(test *t, hem_window *window) {
    use_args args;
    args.w = window_kit_dev(window);
    args.left = t->left;
    args.right = t->right;
    args.errors = t->errors;
    device_launch(use, t->stream, 1, 1, &args);
    CHECK_OK(hem_wait_signal_from(window, t->right, 13, HEM_EQ, 1, LIMIT));
    device_stream_sync(t->stream);
}

static void once(test *t, int i) {
    uint64_t word = 0;
    size_t bytes = 8 * (size_t)(1 + i % 50);
    hem_window_options o = window_kit_options(i % 3 == 2 ? bytes * 30000 : bytes);
    if (i % 5 == 4) {
        o = window_kit_options(bytes);
        o.memory = t->own + 64 * (size_t)(i % 7);
    }
    hem_window *window = window_kit_create(t->world, &o);
    if (o.memory == NULL) {
        CHECK_OK(hem_get(window, t->right, o.bytes - 8, &word, 8));
        CHECK_EQ(word, 0);
        harness_barrier(window);
    }
    word = UINT64_MAX;
    CHECK_OK(hem_put(window, t->right, o.bytes - 8, &word, 8));
    if (i % 4 == 0)
        run_use(t, window);
    CHECK_OK(hem_window_destroy(window));
}

typedef struct held {
    int files;
    int mappings;
    long resident;
} held;

/* What this process has, while no rank of it does anything. Counting opens a file, so one counts. */
static held look(test *t) {
    held now;
    memset(&now, 0, sizeof now);
    harness_barrier(t->gate);
    if (harness_threads() && hem_world_rank(t->world) != 0) {
        harness_barrier(t->gate);
        return now;
    }
    now.files = harness_open_files();
    now.mappings = harness_mappings();
    now.resident = harness_resident_kib();
    harness_barrier(t->gate);
    return now;
}

int rank_main(hem_world *world) {
    test t;
    int rounds = harness_rounds(1000);
    uint64_t word = 1;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.left = harness_left(world);
    t.right = harness_right(world);
    t.stream = device_stream_create();
    t.errors = (uint64_t *)device_alloc(sizeof *t.errors);
    t.own = (unsigned char *)device_alloc(8192);
    t.gate = harness_window(world, 64);
    /* Until what the launcher has reserved of the arena was used up once: small pieces of it are taken
     * one after the other, before any is used again. */
    for (int i = 0; i < 600; i++)
        once(&t, i);
    held before = look(&t);
    for (int i = 0; i < rounds; i++) {
        harness_step("window", (uint64_t)i);
        once(&t, i);
    }
    held after = look(&t);
    CHECK_EQ(after.files, before.files);
    /* Neighbouring mappings are joined or not as they come to lie. */
    CHECK(after.mappings <= before.mappings + 8);
    if (!harness_sanitized())
        CHECK(after.resident <= before.resident + 4096);
    device_copy(&word, t.errors, sizeof word);
    CHECK_EQ(word, 0);
    harness_destroy(t.gate);
    device_free(t.own);
    device_free(t.errors);
    device_stream_destroy(t.stream);
    harness_close(world, HEM_OK);
    return 0;
}
