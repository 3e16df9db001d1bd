/*
 * Put, get and put with a signal from kernels: every alignment of either side with lengths around
 * every border, by a thread, a warp, some warps and a block; nothing beside the bytes is touched;
 * addresses, counters, atomics, and what is checked.
 *
 * hem-test: ranks=1 timeout=120
 */
#include "proto.h"

enum {
    LENGTHS = 14,
    AT = 4096, /* of what is put */
    ROOM = 1024,
    WARPS = 3
};

HEM_DEV uint32_t length_of(uint32_t i, uint32_t dice) {
    const uint32_t odd = dice % 13;
    return i < 4 ? i : i < 9 ? (8u << (i - 4)) + odd : i == 9 ? 0 : 33u * i + odd;
}

/* Rank 0 puts, rank 1 looks at it and answers. */
HEM_DEV void check_landed(const proto_args *args, hem_group g, uint64_t tag, uint32_t align,
                          uint32_t n) {
    unsigned char *data = args->ranks[1].data + AT;
    for (uint32_t i = g.rank; i < ROOM; i += g.size) {
        bool inside = i >= align && i < align + n;
        unsigned char want = inside ? proto_byte(tag, i - align) : (unsigned char)0;
        if (data[i] != want)
            proto_expect(args, 1, false);
        data[i] = 0;
    }
}

HEM_DEV hem_status put_one(const proto_args *args, hem_dev_window w, hem_group g, uint32_t align,
                           const unsigned char *src, uint32_t n, uint64_t tag) {
    if (tag % 3 == 0)
        return hem_dev_put_signal(w, g, 1, AT + align, src, n, 2, 1);
    if (tag % 3 == 1)
        return hem_dev_put_signal_op(w, g, 1, AT + align, src, n, 2,
                                     HEM_SIGNAL_SET | HEM_SIGNAL_WEAK, tag);
    hem_status status = hem_dev_put(w, g, 1, AT + align, src, n);
    proto_expect(args, 0, status == HEM_OK);
    return hem_dev_signal(w, g, 1, 2, HEM_SIGNAL_ADD, 1);
}

HEM_DEV void put_round(const proto_args *args, hem_group g, uint64_t tag, uint32_t round,
                       uint32_t n) {
    const uint32_t to = round % 16, from = round / 16 % 16;
    unsigned char *src = args->ranks[0].data + from;
    for (uint32_t i = g.rank; i < n; i += g.size)
        src[i] = proto_byte(tag, i);
    hem_group_sync(g);
    hem_dev_window w = proto_window(args, 0);
    proto_expect(args, 0, put_one(args, w, g, to, src, n, tag) == HEM_OK);
    /* The source is free: what is written now must not arrive. */
    for (uint32_t i = g.rank; i < n; i += g.size)
        src[i] = 0xcc;
    proto_expect(args, 0,
                 hem_dev_wait_signal_from(w, g, 1, 3, HEM_GE, tag, args->timeout_ns) == HEM_OK);
}

DEVICE_KERNEL(put_all, proto_args) {
    hem_group g = proto_group(args->scope);
    if (!proto_plays(args->scope))
        return;
    hem_dev_window one = proto_window(args, 1);
    uint64_t tag = args->from;
    for (uint32_t round = 0; round < 256; round++)
        for (uint32_t i = 0; i < LENGTHS; i++, tag++) {
            uint32_t n = length_of(i, round);
            if (hem_block_index() == 0) {
                put_round(args, g, tag, round, n);
                continue;
            }
            proto_expect(args, 1,
                         hem_dev_wait_signal_from(one, g, 0, 2, HEM_EQ, tag, args->timeout_ns) ==
                             HEM_OK);
            check_landed(args, g, tag, round % 16, n);
            hem_dev_signal(one, g, 0, 3, HEM_SIGNAL_SET, tag);
        }
}

/* Rank 1 gets from rank 0's memory, whatever the alignment. */
DEVICE_KERNEL(get_all, proto_args) {
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, 1);
    unsigned char *dst = args->ranks[1].data + AT;
    unsigned char *far = args->ranks[0].data;
    if (!proto_plays(args->scope))
        return;
    for (uint32_t i = g.rank; i < ROOM; i += g.size)
        far[i] = proto_byte(args->from, i);
    hem_group_sync(g);
    for (uint32_t round = 0; round < 256; round++)
        for (uint32_t i = 0; i < LENGTHS; i++) {
            uint32_t n = length_of(i, round), to = round % 16, from = round / 16;
            proto_expect(args, 1, hem_dev_get(w, g, 0, from, dst + to, n) == HEM_OK);
            for (uint32_t k = g.rank; k < ROOM; k += g.size) {
                bool inside = k >= to && k < to + n;
                unsigned char want = inside ? proto_byte(args->from, k - to + from) : 0;
                proto_expect(args, 1, dst[k] == want);
                dst[k] = 0;
            }
            hem_group_sync(g);
        }
}

/* A long one, in the whole window but its first and last bytes. */
DEVICE_KERNEL(put_long, proto_args) {
    hem_group g = proto_group(args->scope);
    const uint64_t n = PROTO_BYTES / 2 - args->what;
    unsigned char *src = args->ranks[0].data;
    if (!proto_plays(args->scope))
        return;
    if (hem_block_index() == 0) {
        for (uint64_t i = g.rank; i < n; i += g.size)
            src[i] = proto_byte(args->from, i);
        hem_group_sync(g);
        hem_dev_window w = proto_window(args, 0);
        proto_expect(args, 0, hem_dev_put_signal(w, g, 1, PROTO_BYTES - n, src, n, 4, 1) == HEM_OK);
        return;
    }
    hem_dev_window w = proto_window(args, 1);
    hem_status status = hem_dev_wait_signal_from(w, g, 0, 4, HEM_GE, args->from, args->timeout_ns);
    proto_expect(args, 1, status == HEM_OK);
    for (uint64_t i = g.rank; i < n; i += g.size)
        if (args->ranks[1].data[PROTO_BYTES - n + i] != proto_byte(args->from, i))
            proto_expect(args, 1, false);
}

/* Blocks that fill one source in turn, when the counter says that it is free. */
DEVICE_KERNEL(counted, proto_args) {
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, 0);
    uint64_t *src = args->ranks[0].words;
    const uint32_t me = hem_block_index(), blocks = hem_block_count();
    if (!proto_plays(args->scope))
        return;
    for (uint64_t turn = me; turn < args->rounds; turn += blocks) {
        hem_status status = hem_dev_wait_counter(w, g, 1, args->from + turn, args->timeout_ns);
        proto_expect(args, 0, status == HEM_OK);
        for (uint32_t i = g.rank; i < 16; i += g.size)
            src[i] = turn * 100 + i;
        hem_group_sync(g);
        status = hem_dev_put_start(w, g, 1, (turn % 64) * 128, src, 128, 1);
        proto_expect(args, 0, status == HEM_OK);
    }
}

DEVICE_KERNEL(atomics, proto_args) {
    hem_group block = hem_block();
    for (uint32_t i = 0; i < args->rounds; i++) {
        hem_dev_window w = proto_window(args, (int)hem_block_index() % args->size);
        uint64_t old = 0, seen = 0;
        proto_expect(args, 0, hem_dev_fetch_add(w, 0, 64, 3, &old) == HEM_OK && old % 3 == 0);
        proto_expect(args, 0, hem_dev_fetch_add(w, 0, 72, 1, NULL) == HEM_OK);
        do {
            old = seen;
            proto_expect(args, 0, hem_dev_compare_swap(w, 0, 80, old, old + 2, &seen) == HEM_OK);
        } while (seen != old);
        if (block.rank == 0 && hem_block_index() == 0)
            proto_expect(args, 0, hem_dev_put_value(w, 0, 88, i + 1) == HEM_OK);
    }
}

HEM_DEV void check_addresses(const proto_args *args, hem_dev_window w) {
    unsigned char *own = args->ranks[0].data, *far = args->ranks[1].data;
    proto_expect(args, 0, hem_dev_address(w, 1, 5) == (void *)(far + 5));
    proto_expect(args, 0, hem_dev_address(w, 0, PROTO_BYTES) == (void *)(own + PROTO_BYTES));
    proto_expect(args, 0, hem_dev_translate(w, own + 77, 1) == (void *)(far + 77));
    proto_expect(args, 0, hem_dev_translate(w, own + PROTO_BYTES, 1) == NULL);
    proto_expect(args, 0, hem_dev_translate(w, own - 1, 1) == NULL);
    proto_expect(args, 0, hem_dev_translate(w, own, 2) == NULL);
    proto_expect(args, 0, hem_dev_address(w, 1, PROTO_BYTES + 1) == NULL);
}

/* Rank 2 cannot be reached here. Nothing that is refused changes anything. */
DEVICE_KERNEL(refused, proto_args) {
    hem_group g = hem_block();
    hem_dev_window w = proto_window(args, 0);
    unsigned char *src = args->ranks[0].data;
    uint64_t value;
    check_addresses(args, w);
    proto_expect(args, 0, hem_dev_put(w, g, 1, PROTO_BYTES - 7, src, 8) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_put(w, g, 1, ~(uint64_t)0, src, 8) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_put(w, g, 3, 0, src, 8) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_get(w, g, -1, 0, src, 8) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_get(w, g, 2, 0, src, 8) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_put(w, g, 2, 0, src, 8) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_flush(w, g, 2) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_flush(w, g, 1) == HEM_OK);
    proto_expect(args, 0, hem_dev_fetch_add(w, 1, 4, 1, NULL) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_fetch_add(w, 1, PROTO_BYTES, 1, NULL) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_compare_swap(w, 2, 0, 0, 1, NULL) == HEM_ERR_UNSUPPORTED);
    proto_expect(args, 0, hem_dev_put_value(w, 1, 12, 1) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_put_signal(w, g, 1, PROTO_BYTES, src, 1, 0, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0,
                 hem_dev_put_signal(w, g, 1, 0, src, 1, PROTO_SIGNALS, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_put_start(w, g, 1, 0, src, 1, PROTO_COUNTERS) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_read_counter(w, PROTO_COUNTERS, &value) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_wait_counter(w, g, PROTO_COUNTERS, 0, 0) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_wait_counter(w, g, 0, 1, -5) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_wait_counter(w, g, 0, 1, 0) == HEM_ERR_TIMEOUT);
    proto_expect(args, 0, hem_dev_read_counter(w, 0, &value) == HEM_OK && value == 0);
}

static void check_moves(proto *p) {
    proto_args args = proto_begin(p, 0);
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("put at every alignment, scope", scope);
        args.scope = scope;
        device_launch(put_all, p->stream, 2, WARPS, &args);
        proto_end(p);
        args.from += 256 * LENGTHS;
    }
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("get at every alignment, scope", scope);
        args.scope = scope;
        device_launch(get_all, p->stream, 1, WARPS, &args);
        proto_end(p);
    }
    for (args.from = 1; args.from <= 8; args.from++) {
        harness_step("a long put", args.from);
        args.scope = (uint32_t)(args.from % 4);
        args.what = (uint32_t)(args.from / 4 * 5);
        device_launch(put_long, p->stream, 2, WARPS, &args);
        proto_end(p);
    }
}

static void check_counted(proto *p) {
    proto_args args = proto_begin(p, (uint32_t)harness_rounds(400));
    uint64_t got[16];
    args.from = 0;
    harness_step("counters", args.rounds);
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        args.scope = scope;
        device_launch(counted, p->stream, 3, WARPS, &args);
        proto_end(p);
        for (uint64_t turn = args.rounds - 5; turn < args.rounds; turn++) {
            device_copy(got, p->ranks[1].data + turn % 64 * 128, sizeof got);
            for (uint64_t i = 0; i < 16; i++)
                CHECK_EQ(got[i], turn * 100 + i);
        }
        args.from += args.rounds;
    }
}

static void check_atomics(proto *p) {
    proto_args args = proto_begin(p, (uint32_t)harness_rounds(300));
    const uint64_t threads = 4 * WARPS * (device_stands_in() ? 1u : 32u);
    uint64_t got[4];
    memset(got, 0, sizeof got);
    device_copy(p->ranks[0].data + 64, got, sizeof got);
    harness_step("atomics", args.rounds);
    device_launch(atomics, p->stream, 4, WARPS, &args);
    proto_end(p);
    device_copy(got, p->ranks[0].data + 64, sizeof got);
    CHECK_EQ(got[0], 3 * threads * args.rounds);
    CHECK_EQ(got[1], threads * args.rounds);
    CHECK_EQ(got[2], 2 * threads * args.rounds);
    CHECK_EQ(got[3], args.rounds);
}

static void check_refused(void) {
    proto p;
    proto_open(&p, 3);
    proto_rank *shadow = proto_shadow(&p);
    proto_rank *after = (proto_rank *)calloc(3, sizeof *after);
    CHECK(after != NULL);
    shadow[0].peers[2].route = HEMD_ROUTE_NONE;
    proto_send(&p, shadow);
    proto_args args = proto_begin(&p, 0);
    harness_step("what is refused", 0);
    device_launch(refused, p.stream, 1, WARPS, &args);
    proto_end(&p);
    device_copy(after, p.ranks, 3 * sizeof *after);
    CHECK(memcmp((const void *)after, (const void *)shadow, 3 * sizeof *after) == 0);
    free(after);
    free(shadow);
    proto_close(&p);
}

int rank_main(hem_world *world) {
    proto p;
    proto_open(&p, 2);
    check_moves(&p);
    check_counted(&p);
    check_atomics(&p);
    proto_close(&p);
    check_refused();
    harness_close(world, HEM_OK);
    return 0;
}
