/*
 * Puts and gets of a CPU into device memory: every size and alignment, to every rank, the bytes beside
 * left alone; counters count them; a kernel sees what was put before it is started, and the CPU gets
 * what a kernel wrote. A kernel that runs sees words that are put in one piece, one after the other, and with each what
 * was put before it; also where hosts put them there.
 *
 * hem-test: ranks=1,2,4,5,8 timeout=120 labels=legacy
 */
#include "proxy_kit.h"

#define BYTES 70000

typedef struct flip_args {
    unsigned char *data;
    uint64_t n;
} flip_args;

DEVICE_KERNEL(flip, flip_args) {
    hem_group block = hem_block();
    for (uint64_t i = block.rank; i < args->n; i += block.size)
        args->data[i] = (unsigned char)~args->data[i];
}

typedef struct watch_args {
    const uint64_t *words; /* a number, and then the same twice in one word */
    uint64_t last;
    uint64_t *wrong;
} watch_args;

/* A word that has both its halves and only grows, and the number that was put before it. */
DEVICE_KERNEL(watch, watch_args) {
    if (hem_block().rank != 0)
        return;
    const uint64_t begun = hemd_now_ns();
    uint64_t before = 0;
    while (before < args->last && hemd_now_ns() - begun < 60000000000u) {
        const uint64_t word = hemd_load64_relaxed(&args->words[1]);
        const uint64_t half = word >> 32;
        hemd_acquire(&args->words[1], false);
        if (half != (word & UINT32_MAX) || half < before ||
            hemd_load64_relaxed(&args->words[0]) < half)
            hemd_add64_relaxed(args->wrong, 1);
        before = half;
        hemd_relax();
    }
    if (before < args->last)
        hemd_add64_relaxed(args->wrong, 1);
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    int rank;
    int size;
    unsigned char *model; /* what this rank's part of the target's memory holds */
    unsigned char *buffer;
    size_t part; /* bytes of a target that each rank writes */
} test;

/* [offset, offset + n) of this rank's part of `peer`. */
static void check_piece(test *t, int peer, size_t offset, size_t n, uint64_t tag) {
    size_t base = (size_t)t->rank * t->part;
    unsigned char *source = t->buffer + 64 + tag % 16;
    harness_fill(source, n, tag);
    memcpy(t->model + offset, source, n);
    CHECK_OK(hem_put(t->window, peer, base + offset, source, n));
    /* The source is free again at once. */
    memset(source, 0xee, n);
    unsigned char *back = t->buffer + BYTES + 128 + tag % 8;
    memset(back - 1, 0xaa, n + 2);
    CHECK_OK(hem_get(t->window, peer, base + offset, back, n));
    CHECK_FILLED(back, n, tag);
    CHECK_EQ(back[-1], 0xaa);
    CHECK_EQ(back[n], 0xaa);
}

static void check_whole(test *t, int peer) {
    unsigned char *back = t->buffer;
    CHECK_OK(hem_get(t->window, peer, (size_t)t->rank * t->part, back, t->part));
    CHECK_EQ(memcmp(back, t->model, t->part), 0);
}

static void check_sizes(test *t, int peer) {
    static const size_t sizes[] = {0,   1,   2,   3,    4,    5,    7,    8,    9,   15,
                                   16,  17,  31,  32,   33,   63,   64,   65,   127, 128,
                                   129, 255, 256, 1000, 4095, 4096, 4097, 16000};
    uint64_t tag = 1;
    memset(t->model, 0, t->part);
    CHECK_OK(hem_put(t->window, peer, (size_t)t->rank * t->part, t->model, t->part));
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t offset = 0; offset < 20; offset++, tag++)
            check_piece(t, peer, offset * 5 % 17, sizes[s], tag);
    check_whole(t, peer);
}

static void check_random(test *t, int peer, uint64_t seed) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)t->rank, (uint64_t)peer);
    int rounds = harness_rounds(200);
    for (int i = 0; i < rounds; i++) {
        size_t n = harness_below(&rng, t->part / 2);
        check_piece(t, peer, harness_below(&rng, t->part - n), n, harness_random(&rng));
    }
    check_whole(t, peer);
}

static void check_counters(test *t, int peer) {
    uint64_t before = 0;
    uint64_t word = 0x1234567890abcdef;
    uint64_t back = 0;
    size_t base = (size_t)t->rank * t->part;
    CHECK_OK(hem_read_counter(t->window, 1, &before));
    CHECK_OK(hem_put_start(t->window, peer, base + 8, &word, 8, 1));
    CHECK_OK(hem_wait_counter(t->window, 1, before + 1, LIMIT));
    CHECK_OK(hem_flush(t->window, peer));
    CHECK_OK(hem_flush_all(t->window));
    CHECK_OK(hem_get_start(t->window, peer, base + 8, &back, 8, 1));
    CHECK_OK(hem_wait_counter(t->window, 1, before + 2, LIMIT));
    CHECK_EQ(back, word);
    CHECK_STATUS(hem_put_start(t->window, peer, BYTES * (size_t)t->size, &word, 8, 1),
                 HEM_ERR_RANGE);
    CHECK_OK(hem_read_counter(t->window, 1, &back));
    CHECK_EQ(back, before + 2);
}

static void check_kernel(test *t) {
    flip_args args;
    device_stream stream = device_stream_create();
    unsigned char *own = (unsigned char *)hem_window_memory(t->window);
    harness_barrier(t->window);
    harness_fill(t->buffer, 5000, 77);
    CHECK_OK(hem_put(t->window, harness_right(t->world), 3, t->buffer, 5000));
    harness_barrier(t->window);
    args.data = own + 3;
    args.n = 5000;
    device_launch(flip, stream, 1, 2, &args);
    device_stream_sync(stream);
    harness_barrier(t->window);
    CHECK_OK(hem_get(t->window, harness_left(t->world), 3, t->buffer, 5000));
    for (size_t i = 0; i < 5000; i++)
        t->buffer[i] = (unsigned char)~t->buffer[i];
    CHECK_FILLED(t->buffer, 5000, 77);
    harness_barrier(t->window);
    device_stream_destroy(stream);
}

static void check_values(const test *t, hem_window *window) {
    const int right = harness_right(t->world);
    const uint64_t last = (uint64_t)harness_rounds(300);
    uint64_t wrong = 0;
    watch_args args;
    device_stream stream = device_stream_create();
    args.wrong = (uint64_t *)device_alloc(sizeof *args.wrong);
    harness_barrier(window);
    for (size_t word = 0; word < 2; word++)
        CHECK_OK(hem_put_value(window, right, 8 * word, 0));
    harness_barrier(window);
    args.words = (const uint64_t *)hem_window_memory(window);
    args.last = last;
    device_launch(watch, stream, 1, 1, &args);
    for (uint64_t i = 1; i <= last; i++) {
        CHECK_OK(hem_put_value(window, right, 0, i));
        CHECK_OK(hem_put_value(window, right, 8, i << 32 | i));
    }
    device_stream_sync(stream);
    device_copy(&wrong, args.wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
    harness_barrier(window);
    device_free(args.wrong);
    device_stream_destroy(stream);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    t.part = BYTES;
    t.model = (unsigned char *)calloc(1, BYTES);
    t.buffer = (unsigned char *)calloc(3, BYTES);
    CHECK(t.model != NULL && t.buffer != NULL);
    hem_window_options options = window_kit_options(BYTES * (size_t)t.size);
    t.window = window_kit_create(world, &options);
    for (int r = 0; r < t.size; r++) {
        int peer = (t.rank + r) % t.size;
        check_sizes(&t, peer);
        check_random(&t, peer, seed);
        check_counters(&t, peer);
    }
    check_kernel(&t);
    check_values(&t, t.window);
    CHECK_OK(hem_window_destroy(t.window));
    t.window = proxy_kit_create(world, 64, PROXY_KIT_ALL);
    check_values(&t, t.window);
    CHECK_OK(hem_window_destroy(t.window));
    free(t.buffer);
    free(t.model);
    harness_close(world, HEM_OK);
    return 0;
}
