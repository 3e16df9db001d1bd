/*
 * A window in device memory is zeroed before anybody can reach it, also where its memory was used before: data
 * and stamps in it, signals of kernels and of CPUs, arrivals and epochs of barriers, counters. All of that
 * is made dirty, word by word and by calls, the window is given up and made again with the same length or
 * another one. In every second round nobody looks: each rank puts and signals as soon as it is back from
 * creation, and nothing of it is lost to a late zero.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=90
 */
#include "window_kit.h"

#include <hem/device/barrier.h>
#include <hem/device/stamped.h>

#define SIGNALS  9
#define BARRIERS 3
#define COUNTERS 5
#define DIRT     0xdeadbeef00000000ull
#define RANKS    8 /* at most: each has its places in the shortest window */

typedef struct fresh_args {
    hem_dev_window w;
    uint64_t *found; /* words that are not zero, then calls that went wrong */
} fresh_args;

HEM_DEV void count_words(const fresh_args *args, const uint64_t *words, uint64_t n) {
    uint64_t dirty = 0;
    for (uint64_t i = hem_block().rank; i < n; i += hem_block().size)
        dirty += words[i] != 0;
    if (dirty != 0)
        hemd_add64_relaxed(args->found, dirty);
}

/* What is here, of all that others may write, and what this rank's own kernels count. */
DEVICE_KERNEL(look, fresh_args) {
    hem_dev_window w = args->w;
    const uint32_t ids = w.home->device_signals;
    count_words(args, (const uint64_t *)hem_dev_address(w, w.rank, 0), w.peers[w.rank].bytes / 8);
    for (int r = 0; r < w.size; r++) {
        count_words(args, (const uint64_t *)w.peers[r].in, 2 * ids);
        count_words(args, (const uint64_t *)w.peers[r].in_host, 2 * (w.home->signals - ids));
        count_words(args, w.peers[r].in_arrivals, 2 * w.home->barriers);
        count_words(args, w.peers[r].pair_epochs, w.home->barriers);
    }
    count_words(args, w.home->epochs, w.home->barriers);
    count_words(args, w.home->counters, w.home->counter_count);
}

HEM_DEV void spoil(uint64_t *words, uint64_t n) {
    for (uint64_t i = hem_block().rank; i < n; i += hem_block().size)
        words[i] = DIRT + i;
}

/* By calls first, which the words that are spoilt then would confuse. */
DEVICE_KERNEL(use_all, fresh_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint64_t word = DIRT;
    uint64_t wrong = 0;
    for (int r = 0; r < w.size; r++) {
        for (uint32_t id = 0; id < w.home->signals; id++)
            wrong += hem_dev_signal(w, block, r, id, HEM_SIGNAL_SET, DIRT) != HEM_OK;
        wrong += hem_dev_put_stamped(w, block, r, 16 * (uint64_t)w.rank, &word, 8, DIRT) != HEM_OK;
        wrong += hem_dev_put_start(w, block, r, 16 * RANKS + 8 * (uint64_t)w.rank, &word, 8,
                                   COUNTERS - 1) != HEM_OK;
        wrong += hem_dev_barrier_peer(w, block, r, 1, HEM_FOREVER) != HEM_OK;
    }
    wrong += hem_dev_barrier(w, block, 2, HEM_FOREVER) != HEM_OK;
    if (block.rank == 0 && wrong != 0)
        hemd_add64_relaxed(args->found + 1, wrong);
}

/* Each rank the words that it writes. */
DEVICE_KERNEL(spoil_all, fresh_args) {
    hem_dev_window w = args->w;
    const uint32_t ids = w.home->device_signals;
    spoil((uint64_t *)hem_dev_address(w, w.rank, 0), w.peers[w.rank].bytes / 8);
    for (int r = 0; r < w.size; r++) {
        spoil((uint64_t *)w.peers[r].out, 2 * ids);
        spoil((uint64_t *)w.peers[r].out_host, 2 * (w.home->signals - ids));
        spoil(w.peers[r].out_arrivals, 2 * w.home->barriers);
        spoil(w.peers[r].pair_epochs, w.home->barriers);
    }
    spoil(w.home->epochs, w.home->barriers);
    spoil(w.home->counters, w.home->counter_count);
}

/* At once: a word and a signal to everybody, who finds all of them and no more. */
DEVICE_KERNEL(at_once, fresh_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    const uint64_t size = (uint64_t)w.size;
    uint64_t word = 1 + (uint64_t)w.rank, wrong = 0, sum = 0;
    for (int i = 0; i < w.size; i++) {
        const int r = (w.rank + i) % w.size;
        wrong += hem_dev_put_signal(w, block, r, 8 * (uint64_t)w.rank, &word, 8, 0, 1) != HEM_OK;
    }
    wrong += hem_dev_wait_signal(w, block, 0, HEM_GE, size, HEM_FOREVER) != HEM_OK;
    wrong += hem_dev_read_signal(w, 0, &sum) != HEM_OK || sum != size;
    const uint64_t *words = (const uint64_t *)hem_dev_address(w, w.rank, 0);
    for (uint64_t r = 0; r < size; r++)
        wrong += words[r] != r + 1;
    wrong += hem_dev_barrier(w, block, 0, HEM_FOREVER) != HEM_OK;
    if (block.rank == 0 && wrong != 0)
        hemd_add64_relaxed(args->found + 1, wrong);
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream stream;
    uint64_t *found;
    int rank;
    int size;
} test;

static void finish(test *t) {
    uint64_t found[2] = {1, 1};
    device_stream_sync(t->stream);
    device_copy(found, t->found, sizeof found);
    CHECK_EQ(found[0], 0);
    CHECK_EQ(found[1], 0);
    harness_barrier(t->window);
}

/* The CPU's side: what it waits for, and its own counters. */
static void check_cpu(test *t) {
    uint64_t value = 1;
    for (uint32_t id = SIGNALS - 4; id < SIGNALS; id++) {
        CHECK_OK(hem_read_signal(t->window, id, &value));
        CHECK_EQ(value, 0);
    }
    for (uint32_t id = 0; id < COUNTERS; id++) {
        CHECK_OK(hem_read_counter(t->window, id, &value));
        CHECK_EQ(value, 0);
    }
}

static void use_by_cpu(test *t) {
    uint64_t word = DIRT;
    for (int r = 0; r < t->size; r++) {
        for (uint32_t id = 0; id < SIGNALS; id++)
            CHECK_OK(hem_signal(t->window, r, id, HEM_SIGNAL_ADD, DIRT));
        CHECK_OK(hem_put_start(t->window, r, 24 * RANKS + 8 * (size_t)t->rank, &word, 8, 0));
    }
    CHECK_OK(hem_wait_counter(t->window, 0, (uint64_t)t->size, LIMIT));
    CHECK_OK(hem_barrier(t->window, BARRIERS - 1, LIMIT));
}

static void one_round(test *t, int round) {
    static const size_t sizes[] = {4096, 4096, 1000000, 4096, 32 * RANKS, 1000000, 1000000};
    hem_window_options o = window_kit_options(sizes[round % 7]);
    fresh_args args;
    harness_step("round", (uint64_t)round);
    o.signals = SIGNALS;
    o.barriers = BARRIERS;
    o.counters = COUNTERS;
    if ((round + t->rank) % 3 == 0)
        harness_sleep_ms(1);
    t->window = window_kit_create(t->world, &o);
    args.w = window_kit_dev(t->window);
    args.found = t->found;
    if (round % 2 == 0) {
        device_launch(look, t->stream, 1, 2, &args);
        check_cpu(t);
    } else {
        device_launch(at_once, t->stream, 1, 2, &args);
    }
    finish(t);
    device_launch(use_all, t->stream, 1, 2, &args);
    use_by_cpu(t);
    finish(t);
    device_launch(spoil_all, t->stream, 1, 2, &args);
    finish(t);
    CHECK_OK(hem_window_destroy(t->window));
}

int rank_main(hem_world *world) {
    test t;
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    t.stream = device_stream_create();
    t.found = (uint64_t *)device_alloc(16);
    for (int round = 0; round < harness_rounds(28); round++)
        one_round(&t, round);
    device_stream_destroy(t.stream);
    device_free(t.found);
    harness_close(world, HEM_OK);
    return 0;
}
