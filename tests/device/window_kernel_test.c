/*
 * What kernels put into and get from windows of real ranks: every length around a border, at every
 * alignment of both sides, by threads, warps and blocks, to every rank; nothing beside it is touched, and
 * what does not fit is refused. Many payloads that nobody looks at before the last; several blocks at
 * once on signals of their own; after a flush a third rank finds what was put to another.
 *
 * hem-test: ranks=1,2,4,5,8 timeout=120 labels=legacy
 */
#include "window_kit.h"

#define PART  9000 /* bytes of a window that belong to one source */
#define BURST 300
#define GUARD 32

typedef struct move_args {
    hem_dev_window w;
    int32_t peer;
    uint32_t scope;
    uint64_t offset;
    unsigned char *from;
    unsigned char *back;
    uint64_t bytes;
    uint64_t *status_p; /* how many calls did not say what they should */
} move_args;

/* There and back again, and what is too long by one byte goes nowhere. */
DEVICE_KERNEL(move, move_args) {
    hem_dev_window w = args->w;
    hem_group g = args->scope == 0 ? hem_thread() : args->scope == 1 ? hem_warp() : hem_block();
    if (args->scope != 2 && hem_block().rank >= g.size)
        return;
    uint64_t end = w.peers[args->peer].bytes;
    uint64_t wrong = 0;
    wrong += hem_dev_put(w, g, args->peer, args->offset, args->from, args->bytes) != HEM_OK;
    wrong += hem_dev_get(w, g, args->peer, args->offset, args->back, args->bytes) != HEM_OK;
    wrong += hem_dev_put(w, g, args->peer, end - args->bytes + 1, args->from, args->bytes) !=
             HEM_ERR_RANGE;
    wrong += hem_dev_get(w, g, args->peer, end + 1, args->back, args->bytes) != HEM_ERR_RANGE;
    wrong += hem_dev_put(w, g, w.size, 0, args->from, args->bytes) != HEM_ERR_RANGE;
    if (g.rank == 0 && wrong != 0)
        hemd_add64_relaxed(args->status_p, wrong);
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream stream;
    unsigned char *device; /* GUARD, what is sent, GUARD, what came back, GUARD; then a word */
    uint64_t *wrong;
    unsigned char *model;
    unsigned char *host;
    int rank;
    int size;
} test;

static void check_move(test *t, int peer, size_t bytes, size_t skew, uint64_t tag) {
    move_args args;
    unsigned char *from = t->device + GUARD + tag % 16;
    unsigned char *back = t->device + PART + 2 * GUARD + skew;
    size_t at = tag * 5 % 16;
    memset(t->host, 0, PART + 2 * GUARD);
    device_copy(back - GUARD, t->host, bytes + 2 * GUARD);
    harness_fill(t->model + at, bytes, tag);
    device_copy(from, t->model + at, bytes);
    args.w = window_kit_dev(t->window);
    args.peer = peer;
    args.scope = (uint32_t)tag % 3;
    args.offset = (uint64_t)t->rank * PART + at;
    args.from = from;
    args.back = back;
    args.bytes = bytes;
    args.status_p = t->wrong;
    device_launch(move, t->stream, 1, args.scope == 2 ? 3 : 1, &args);
    device_stream_sync(t->stream);
    device_copy(t->host, back - GUARD, bytes + 2 * GUARD);
    CHECK_ALL(t->host, GUARD, 0);
    CHECK_FILLED(t->host + GUARD, bytes, tag);
    CHECK_ALL(t->host + GUARD + bytes, GUARD, 0);
}

static void check_peer(test *t, int peer) {
    static const size_t sizes[] = {0,  1,  2,  3,   7,   8,   9,   15,   16,   17,   31,
                                   32, 33, 63, 127, 128, 129, 255, 2047, 4096, 4097, 8200};
    uint64_t tag = 1 + 100 * (uint64_t)peer, wrong = 1;
    size_t step = harness_sanitized() ? 7 : t->size > 2 ? 3 : 1;
    memset(t->model, 0, PART);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t skew = s % step; skew < 16; skew += step, tag++)
            check_move(t, peer, sizes[s], skew, tag);
    CHECK_OK(hem_get(t->window, peer, (size_t)t->rank * PART, t->host, PART));
    CHECK_EQ(memcmp(t->host, t->model, PART), 0);
    device_copy(&wrong, t->wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
}

typedef struct burst_args {
    hem_dev_window w;
    uint64_t *wrong;
    uint64_t first; /* what the signals had before */
    uint64_t base;
} burst_args;

/* Each block sends its own words on its own signal to everybody, then looks once. */
DEVICE_KERNEL(burst, burst_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    const uint64_t b = hem_block_index();
    hem_status status = HEM_OK;
    for (uint64_t i = 0; i < BURST && status == HEM_OK; i++)
        for (int r = 0; r < w.size && status == HEM_OK; r++) {
            uint64_t word = args->base + i + 1000 * (uint64_t)w.rank + 100000 * b;
            uint64_t at = (uint64_t)w.rank * PART + (3 * i + b) * 8;
            status = hem_dev_put_signal(w, block, r, at, &word, 8, (uint32_t)b, 1);
        }
    if (status == HEM_OK)
        status = hem_dev_wait_signal(w, block, (uint32_t)b, HEM_GE,
                                     args->first + BURST * (uint64_t)w.size, HEM_FOREVER);
    for (uint64_t r = 0; r < (uint64_t)w.size; r++) {
        const uint64_t *words = (const uint64_t *)hem_dev_address(w, w.rank, r * PART);
        for (uint64_t i = block.rank; i < BURST; i += block.size)
            if (words[3 * i + b] != args->base + i + 1000 * r + 100000 * b)
                hemd_add64_relaxed(args->wrong, 1);
    }
    if (block.rank == 0 && status != HEM_OK)
        hemd_add64_relaxed(args->wrong, 1000000);
}

static void check_burst(test *t) {
    for (uint64_t round = 0; round < 4; round++) {
        burst_args args;
        uint64_t wrong = 1;
        harness_barrier(t->window);
        args.w = window_kit_dev(t->window);
        args.wrong = t->wrong;
        args.first = round * BURST * (uint64_t)t->size;
        args.base = 7777777 * (round + 1);
        device_launch(burst, t->stream, 3, 2, &args);
        device_stream_sync(t->stream);
        device_copy(&wrong, t->wrong, sizeof wrong);
        CHECK_EQ(wrong, 0);
    }
}

typedef struct third_args {
    hem_dev_window w;
    uint64_t *wrong;
    uint64_t round;
} third_args;

/* Rank r puts to r + 1, flushes, and tells r + 2, which gets it from r + 1; then all meet. */
DEVICE_KERNEL(third, third_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    const int next = (w.rank + 1) % w.size, last = (w.rank + 2) % w.size;
    const int from = (w.rank + w.size - 2) % w.size, at = (from + 1) % w.size;
    uint64_t word = args->round * 100 + (uint64_t)w.rank;
    hem_status status = hem_dev_put(w, block, next, 16, &word, 8);
    if (status == HEM_OK)
        status = hem_dev_flush(w, block, next);
    if (status == HEM_OK)
        status = hem_dev_signal(w, block, last, 5, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(w, block, from, 5, HEM_GE, args->round, HEM_FOREVER);
    const uint64_t *there = (const uint64_t *)hem_dev_address(w, at, 16);
    if (block.rank == 0 &&
        (status != HEM_OK || hemd_load64_relaxed(there) != args->round * 100 + (uint64_t)from))
        hemd_add64_relaxed(args->wrong, 1);
}

static void check_third(test *t) {
    harness_barrier(t->window);
    for (uint64_t round = 1; round <= (uint64_t)harness_rounds(100); round++) {
        third_args args;
        args.w = window_kit_dev(t->window);
        args.wrong = t->wrong;
        args.round = round;
        device_launch(third, t->stream, 1, 2, &args);
        device_stream_sync(t->stream);
        harness_barrier(t->window);
    }
    uint64_t wrong = 1;
    device_copy(&wrong, t->wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
}

int rank_main(hem_world *world) {
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    hem_window_options o = window_kit_options(PART * (size_t)t.size);
    t.window = window_kit_create(world, &o);
    t.stream = device_stream_create();
    t.device = (unsigned char *)device_alloc(2 * PART + 4 * GUARD);
    t.wrong = (uint64_t *)device_alloc(8);
    t.model = (unsigned char *)calloc(1, PART + 2 * GUARD);
    t.host = (unsigned char *)calloc(1, PART + 2 * GUARD);
    CHECK(t.model != NULL && t.host != NULL);
    for (int r = 0; r < t.size; r++)
        check_peer(&t, (t.rank + r) % t.size);
    check_burst(&t);
    check_third(&t);
    harness_barrier(t.window);
    CHECK_OK(hem_window_destroy(t.window));
    device_stream_destroy(t.stream);
    device_free(t.device);
    device_free(t.wrong);
    free(t.model);
    free(t.host);
    harness_close(world, HEM_OK);
    return 0;
}
