/*
 * Kernels and peers that are reached through their hosts, beside others that are mapped: bytes of all
 * lengths and alignments come whole and before their signal, from many groups at a time and more than a
 * ring holds; barriers and signals to all count once; a flush is one; a counter says when a source may be
 * changed. One put is of 64 MiB on a GPU, of 1 MiB on the stand-in, many times what a ring holds.
 *
 * hem-test: ranks=2,3,5 timeout=120
 */
#include "proxy_kit.h"

#include <hem/device/barrier.h>
#include <hem/device/stamped.h>

#define BLOCKS 3
#define WARPS  2
#define ROUNDS 13
/* What one block of one rank may write. */
#define AREA 262144u

typedef struct mix_args {
    hem_dev_window w;
    unsigned char *source; /* AREA + 64 bytes per block */
    uint64_t *errors;
} mix_args;

/* Of a round: all kinds of lengths, some longer than one order, two of them longer than half a ring. */
HEM_DEV uint64_t mix_length(uint64_t round, uint32_t block) {
    const uint64_t lengths[ROUNDS] = {1,    0,    8,     100,    2047,   2048,  2049,
                                      4096, 5003, 65536, 131072, 131073, 200001};
    return lengths[(round + 5u * block) % ROUNDS];
}

HEM_DEV unsigned char mix_byte(int from, uint64_t round, uint32_t block, uint64_t i) {
    return (unsigned char)((uint64_t)from * 31u + round * 7u + block * 3u + i + (i >> 8u) * 5u);
}

HEM_DEV uint64_t mix_offset(int from, uint64_t round, uint32_t block) {
    return ((uint64_t)from * BLOCKS + block) * AREA + round % 17u;
}

/* By the whole block, or by its warps, a part each, and the block then signals. */
HEM_DEV hem_status mix_send(const mix_args *args, int peer, uint64_t round,
                            const unsigned char *src) {
    hem_group block = hem_block(), warp = hem_warp();
    uint32_t b = hem_block_index();
    uint64_t n = mix_length(round, b), at = mix_offset(args->w.rank, round, b);
    if (round % 3u != 0)
        return hem_dev_put_signal(args->w, block, peer, at, src, n, b, 1);
    uint64_t part = n / hem_warp_count(), first = hem_warp_index() * part;
    if (hem_warp_index() + 1u == hem_warp_count())
        part = n - first;
    hem_status status = hem_dev_put(args->w, warp, peer, at + first, src + first, part);
    if (hem_group_any(block, status != HEM_OK))
        return HEM_ERR_SYSTEM;
    return hem_dev_signal(args->w, block, peer, b, HEM_SIGNAL_ADD, 1);
}

HEM_DEV uint64_t mix_check(const mix_args *args, int from, uint64_t round) {
    hem_group block = hem_block();
    uint32_t b = hem_block_index();
    uint64_t bad = 0;
    const unsigned char *got =
        (const unsigned char *)hem_dev_address(args->w, args->w.rank, mix_offset(from, round, b));
    for (uint64_t i = block.rank; i < mix_length(round, b); i += block.size)
        bad += got[i] != mix_byte(from, round, b, i);
    return bad;
}

DEVICE_KERNEL(mix, mix_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint32_t b = hem_block_index();
    for (uint64_t round = 1; round <= 2 * ROUNDS; round++) {
        unsigned char *src = args->source + (uint64_t)b * (AREA + 64u) + round % 5u;
        for (uint64_t i = block.rank; i < mix_length(round, b); i += block.size)
            src[i] = mix_byte(w.rank, round, b, i);
        hem_group_sync(block);
        uint64_t bad = 0;
        for (int k = 1; k < w.size; k++)
            bad += 1000u * (mix_send(args, (w.rank + k) % w.size, round, src) != HEM_OK);
        for (int k = 1; k < w.size; k++) {
            int from = (w.rank + k) % w.size;
            bad += 1000u *
                   (hem_dev_wait_signal_from(w, block, from, b, HEM_EQ, round, LIMIT) != HEM_OK);
            bad += mix_check(args, from, round);
        }
        /* Nobody's area is written again before it was read. */
        bad += 1000u * (hem_dev_barrier(w, block, b, LIMIT) != HEM_OK);
        if (bad != 0)
            hemd_add64_relaxed(args->errors, bad);
    }
    if (b == 0 && hem_dev_signal_all(w, block, 5, HEM_SIGNAL_ADD, 3) != HEM_OK)
        hemd_add64_relaxed(args->errors, 1000);
    if (b == 0 &&
        hem_dev_wait_signal(w, block, 5, HEM_EQ, 3u * ((uint64_t)w.size - 1u), LIMIT) != HEM_OK)
        hemd_add64_relaxed(args->errors, 1000);
    for (int k = 1; b == 1 && k < w.size; k++) {
        /* Pairs in an order that has no cycle: by the sum of their ranks. */
        int peer = (2 * w.size + k - w.rank) % w.size;
        if (peer != w.rank && hem_dev_barrier_peer(w, block, peer, 2, LIMIT) != HEM_OK)
            hemd_add64_relaxed(args->errors, 1000);
    }
}

/* The kernels of all ranks have ended, and found nothing wrong. */
static void conclude(hem_window *window, device_stream stream, uint64_t *errors_there) {
    uint64_t errors = 0;
    device_stream_sync(stream);
    device_copy(&errors, errors_there, sizeof errors);
    CHECK_EQ(errors, 0);
    harness_barrier(window);
    CHECK_OK(hem_window_destroy(window));
    device_free(errors_there);
    device_stream_destroy(stream);
}

static void check_mix(hem_world *world, proxy_kit_who who) {
    mix_args args;
    device_stream stream = device_stream_create();
    hem_window *window =
        proxy_kit_create(world, (size_t)hem_world_size(world) * BLOCKS * AREA + 64, who);
    args.w = window_kit_dev(window);
    args.source = (unsigned char *)device_alloc(BLOCKS * (AREA + 64));
    args.errors = (uint64_t *)device_alloc(8);
    device_launch(mix, stream, BLOCKS, WARPS, &args);
    conclude(window, stream, args.errors);
    device_free(args.source);
}

typedef struct long_args {
    hem_dev_window w;
    unsigned char *source;
    uint64_t offset;
    uint64_t bytes;
    uint64_t *errors;
} long_args;

/* All to the right in one put, and what came from the left. */
DEVICE_KERNEL(put_long, long_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
    uint64_t bad = 0;
    for (uint64_t i = block.rank; i < args->bytes; i += block.size)
        args->source[i] = mix_byte(w.rank, i >> 16u, 0, i);
    hem_group_sync(block);
    if (hem_dev_put_signal(w, block, right, args->offset, args->source, args->bytes, 0, 1) !=
            HEM_OK ||
        hem_dev_wait_signal_from(w, block, left, 0, HEM_EQ, 1, LIMIT) != HEM_OK)
        bad = 1ull << 40u;
    const unsigned char *got = (const unsigned char *)hem_dev_address(w, w.rank, 0);
    for (uint64_t i = block.rank; i < args->bytes && bad == 0; i += block.size)
        bad += got[args->offset + i] != mix_byte(left, i >> 16u, 0, i);
    for (uint64_t i = block.rank; i < args->offset; i += block.size)
        bad += got[i] != 0 || got[args->offset + args->bytes + i] != 0;
    if (bad != 0)
        hemd_add64_relaxed(args->errors, bad);
}

static void check_long(hem_world *world) {
    long_args args;
    device_stream stream = device_stream_create();
    harness_step("one long put", 0);
    args.offset = 13;
    args.bytes = device_stands_in() ? (harness_sanitized() ? 1u << 19 : 1u << 20) : 64u << 20;
    args.bytes += 7;
    hem_window *window =
        proxy_kit_create(world, (size_t)(args.bytes + 2 * args.offset), PROXY_KIT_ALL);
    args.w = window_kit_dev(window);
    args.source = (unsigned char *)device_alloc((size_t)args.bytes);
    args.errors = (uint64_t *)device_alloc(8);
    device_launch(put_long, stream, 1, device_stands_in() ? WARPS : 16, &args);
    conclude(window, stream, args.errors);
    device_free(args.source);
}

#define TURNS 6
/* More than a ring holds: such a put waits for room, whatever the peer's host has taken before. */
#define TURN_MOST  (HEMD_RING_SLOTS * HEMD_RING_CHUNK + 70003u)
#define TURN_BYTES (TURN_MOST + 64ull) /* in the window */
/* Counters: puts that are done, and sources that are filled. */
#define PUT_DONE  3u
#define FILLED    1u
#define UNTOUCHED 2u

typedef struct count_args {
    hem_dev_window w; /* TURNS x TURN_BYTES */
    unsigned char *source;
    uint64_t *errors;
} count_args;

HEM_DEV uint64_t count_length(uint64_t turn) {
    return turn % 3u == 0 ? TURN_MOST : turn % 3u == 1 ? 40009u : 0u;
}

HEM_DEV uint64_t count_read(hem_dev_window w, uint32_t counter) {
    uint64_t value = ~0ull;
    return hem_dev_read_counter(w, counter, &value) == HEM_OK ? value : ~0ull;
}

/* Block 0 puts what block 1 has filled; a put of nothing to oneself counts for it. */
HEM_DEV uint64_t count_put(const count_args *args, hem_group block, int peer) {
    hem_dev_window w = args->w;
    uint64_t bad = 0;
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        bad += hem_dev_wait_counter(w, block, FILLED, turn + 1, LIMIT) != HEM_OK;
        bad += block.rank == 0 && count_read(w, PUT_DONE) != turn;
        bad += hem_dev_put_start(w, block, peer, turn * TURN_BYTES, args->source,
                                 count_length(turn), PUT_DONE) != HEM_OK;
    }
    /* What has put nothing has not been counted. */
    bad += hem_dev_put_start(w, block, peer, TURNS * TURN_BYTES, args->source, 1, PUT_DONE) !=
           HEM_ERR_RANGE;
    bad += hem_dev_put_start(w, block, peer, 0, args->source, 1, 4) != HEM_ERR_RANGE;
    bad += hem_dev_wait_counter(w, block, PUT_DONE, TURNS + 1, 0) != HEM_ERR_TIMEOUT;
    bad += block.rank == 0 && count_read(w, PUT_DONE) != TURNS;
    bad += block.rank == 0 && count_read(w, UNTOUCHED) != 0;
    return bad + (hem_dev_signal(w, block, peer, 0, HEM_SIGNAL_ADD, 1) != HEM_OK);
}

/* As soon as the counter allows it the source is filled anew, and at the end spoilt. */
HEM_DEV uint64_t count_fill(const count_args *args, hem_group block) {
    hem_dev_window w = args->w;
    uint64_t bad = 0;
    for (uint64_t turn = 0; turn <= TURNS; turn++) {
        bad += hem_dev_wait_counter(w, block, PUT_DONE, turn, LIMIT) != HEM_OK;
        for (uint64_t i = block.rank; i < TURN_MOST; i += block.size)
            args->source[i] = mix_byte(w.rank, turn, 1, i);
        hem_group_sync(block);
        if (turn < TURNS)
            bad += hem_dev_put_start(w, block, w.rank, 0, args->source, 0, FILLED) != HEM_OK;
    }
    return bad;
}

DEVICE_KERNEL(count, count_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
    uint64_t bad = hem_block_index() == 0 ? count_put(args, block, right) : count_fill(args, block);
    bad *= 1ull << 40u;
    if (hem_block_index() == 0 &&
        hem_dev_wait_signal_from(w, block, left, 0, HEM_EQ, 1, LIMIT) != HEM_OK)
        bad += 1ull << 40u;
    for (uint64_t turn = 0; turn < TURNS && hem_block_index() == 0; turn++) {
        const unsigned char *got =
            (const unsigned char *)hem_dev_address(w, w.rank, turn * TURN_BYTES);
        for (uint64_t i = block.rank; i < count_length(turn) + 64u; i += block.size)
            bad += got[i] != (i < count_length(turn) ? mix_byte(left, turn, 1, i) : 0);
    }
    if (bad != 0)
        hemd_add64_relaxed(args->errors, bad);
}

static void check_count(hem_world *world) {
    count_args args;
    device_stream stream = device_stream_create();
    hem_window_options options = window_kit_options((size_t)(TURNS * TURN_BYTES));
    harness_step("counters", 0);
    options.counters = 4;
    hem_window *window = proxy_kit_create_with(world, options, PROXY_KIT_ALL);
    args.w = window_kit_dev(window);
    args.source = (unsigned char *)device_alloc(TURN_MOST);
    args.errors = (uint64_t *)device_alloc(8);
    device_launch(count, stream, 2, WARPS, &args);
    conclude(window, stream, args.errors);
    device_free(args.source);
}

typedef struct flush_args {
    hem_dev_window w;
    uint64_t *errors;
} flush_args;

/* Rank 0 puts to the last rank through its host, flushes, and tells the others, which look there. */
DEVICE_KERNEL(flush, flush_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    int last = w.size - 1;
    for (uint64_t round = 1; round <= 50; round++) {
        hem_status status = HEM_OK;
        if (w.rank == 0) {
            if (block.rank == 0)
                status = hem_dev_put_value(w, last, 8, round);
            status = hem_group_agree(block, status);
            if (status == HEM_OK)
                status = hem_dev_flush(w, block, last);
            if (status == HEM_OK)
                status = hem_dev_signal_all(w, block, 3, HEM_SIGNAL_SET, round);
        } else {
            uint64_t seen = 0;
            status = hem_dev_wait_signal_from(w, block, 0, 3, HEM_GE, round, LIMIT);
            if (status == HEM_OK)
                status = hem_dev_get(w, hem_thread(), last, 8, &seen, 8);
            if (seen != round)
                hemd_add64_relaxed(args->errors, 1);
        }
        if (status == HEM_OK)
            status = hem_dev_barrier(w, block, 0, LIMIT);
        if (status != HEM_OK && block.rank == 0)
            hemd_add64_relaxed(args->errors, 1000);
    }
}

static void check_flush(hem_world *world) {
    flush_args args;
    device_stream stream = device_stream_create();
    hem_window *window = proxy_kit_create(world, 64, PROXY_KIT_OUT);
    args.w = window_kit_dev(window);
    args.errors = (uint64_t *)device_alloc(8);
    device_launch(flush, stream, 1, 1, &args);
    conclude(window, stream, args.errors);
}

typedef struct cannot_args {
    hem_dev_window w;
    uint64_t *errors;
} cannot_args;

/* What there is not through a host, and orders that no window has. */
DEVICE_KERNEL(cannot, cannot_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    int peer = (w.rank + 1) % w.size;
    uint64_t word = 0, bad = 0;
    bad += hem_dev_get(w, block, peer, 0, &word, 8) != HEM_ERR_UNSUPPORTED;
    bad += hem_dev_fetch_add(w, peer, 0, 1, &word) != HEM_ERR_UNSUPPORTED;
    bad += hem_dev_compare_swap(w, peer, 0, 0, 1, &word) != HEM_ERR_UNSUPPORTED;
    bad += hem_dev_put_stamped(w, block, peer, 0, &word, 8, 1) != HEM_ERR_UNSUPPORTED;
    bad += hem_dev_address(w, peer, 0) != NULL;
    bad += hem_dev_put(w, block, peer, 60, &word, 8) != HEM_ERR_RANGE;
    bad += hem_dev_put_value(w, peer, 4, 1) != HEM_ERR_ARG;
    bad += hem_dev_put(w, block, peer, 0, &word, 0) != HEM_OK;
    bad += hem_dev_flush(w, block, peer) != HEM_OK;
    /* Past the checks: the peer's host finds it, and says so for good. What was ordered before is done. */
    if (block.rank == 0) {
        bad += hemd_proxy_tell(w, peer, HEMD_ORDER_SET, 2, 1, HEMD_NEVER) != HEM_OK;
        const uint64_t good = hemd_load64_relaxed(&hemd_claims_of(w, peer)->claimed);
        bad += hemd_proxy_tell(w, peer, HEMD_ORDER_SET, 5000, 1, HEMD_NEVER) != HEM_OK;
        bad += hemd_ring_await(w, peer, good, HEMD_NEVER) != HEM_OK;
    }
    bad += hem_dev_flush(w, block, peer) != HEM_ERR_RANGE;
    hem_status status = HEM_OK;
    for (int i = 0; i < 1000 && status == HEM_OK; i++)
        status = hem_dev_put(w, block, peer, 0, &word, 8);
    bad += status != HEM_ERR_RANGE;
    if (bad != 0)
        hemd_add64_relaxed(args->errors, bad);
}

static void check_cannot(hem_world *world) {
    cannot_args args;
    int rank = hem_world_rank(world), right = harness_right(world);
    uint64_t word = 0;
    device_stream stream = device_stream_create();
    hem_window_options o = window_kit_options(64);
    hem_window *window = NULL;
    o.proxy_peers = &rank;
    o.proxy_peer_count = 1;
    CHECK_STATUS(hem_window_create(world, &o, &window), HEM_ERR_ARG);
    CHECK_SENTENCE("proxy_peers");
    o.proxy_peers = NULL;
    CHECK_STATUS(hem_window_create(world, &o, &window), HEM_ERR_ARG);
    window = proxy_kit_create(world, 64, PROXY_KIT_ALL);
    CHECK_STATUS(hem_get(window, right, 0, &word, 8), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("host");
    CHECK(hem_window_peer_address(window, right, 0) == NULL);
    args.w = window_kit_dev(window);
    args.errors = (uint64_t *)device_alloc(8);
    device_launch(cannot, stream, 1, 1, &args);
    conclude(window, stream, args.errors);
}

int rank_main(hem_world *world) {
    check_mix(world, PROXY_KIT_ODD);
    check_mix(world, PROXY_KIT_ALL);
    check_long(world);
    check_count(world);
    check_flush(world);
    check_cannot(world);
    harness_close(world, HEM_OK);
    return 0;
}
