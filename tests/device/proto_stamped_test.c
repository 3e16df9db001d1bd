/*
 * Data that carry their own stamps: every alignment and short length, by every kind of group, two
 * places in turns without any other signal; waits that run out of time or are ended by the host; weak
 * signals and weak waits.
 *
 * hem-test: ranks=1 timeout=120 delayed=1
 */
#include "proto.h"

enum {
    WARPS = 3,
    PLACE = 8192, /* of the first of two */
    ROOM = 4096
};

/* Two ranks send to each other at the same time, and look at what they got. */
DEVICE_KERNEL(swap, proto_args) {
    const int me = (int)hem_block_index();
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    unsigned char *src = args->ranks[me].data, *dst = src + ROOM;
    if (!proto_plays(args->scope))
        return;
    for (uint32_t round = 0; round < args->rounds; round++) {
        const uint64_t stamp = args->from + round, place = PLACE + round % 2 * ROOM;
        const uint32_t from = round % 16, to = round / 16 % 16;
        const uint32_t n = round % 29 == 28 ? ROOM / 2 - 32 : round * 7 % 150;
        for (uint32_t i = g.rank; i < n; i += g.size)
            src[from + i] = proto_byte(stamp + (uint64_t)me, i);
        hem_group_sync(g);
        hem_status status = hem_dev_put_stamped(w, g, 1 - me, place, src + from, n, stamp);
        proto_expect(args, me, status == HEM_OK);
        status = hem_dev_take_stamped(w, g, 1 - me, place, dst + to, n, stamp, args->timeout_ns);
        proto_expect(args, me, status == HEM_OK);
        for (uint32_t i = g.rank; i < 176 || i < n + 32; i += g.size) {
            bool inside = i >= to && i < to + n;
            unsigned char want = inside ? proto_byte(stamp + 1u - (uint64_t)me, i - to) : 0;
            proto_expect(args, me, dst[i] == want);
            dst[i] = 0;
        }
        hem_group_sync(g);
        /* An empty message holds nobody back, so places may be used again too early. */
        if (n == 0)
            proto_expect(args, me, hem_dev_barrier(w, g, 1, args->timeout_ns) == HEM_OK);
    }
}

DEVICE_KERNEL(take_once, proto_args) {
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, 0);
    if (!proto_plays(args->scope))
        return;
    hem_status status = hem_dev_take_stamped(w, g, 1, PLACE, args->ranks[0].words + 8, 800,
                                             args->from, args->timeout_ns);
    if (g.rank == 0)
        args->ranks[0].words[0] = (uint64_t) - (int)status;
}

/* There and back with nothing but the words. */
DEVICE_KERNEL(weakly, proto_args) {
    const int me = (int)hem_block_index();
    hem_group g = proto_group(args->scope);
    hem_dev_window w = proto_window(args, me);
    const int op = HEM_SIGNAL_SET | HEM_SIGNAL_WEAK;
    if (!proto_plays(args->scope))
        return;
    for (uint64_t round = args->from; round < args->from + args->rounds; round++) {
        if (me == 0)
            proto_expect(args, me, hem_dev_signal(w, g, 1, 5, op, round) == HEM_OK);
        hem_status status =
            hem_dev_wait_signal_weak(w, g, 1 - me, 5, HEM_GE, round, args->timeout_ns);
        proto_expect(args, me, status == HEM_OK);
        if (me == 1)
            proto_expect(args, me, hem_dev_signal(w, g, 0, 5, op, round) == HEM_OK);
    }
}

DEVICE_KERNEL(refused, proto_args) {
    hem_group g = hem_block();
    hem_dev_window w = proto_window(args, 0);
    unsigned char *p = args->ranks[0].data;
    const uint64_t half = PROTO_BYTES / 2, end = PROTO_BYTES - 16;
    proto_expect(args, 0, hem_dev_stamped_bytes(0) == 0 && hem_dev_stamped_bytes(9) == 32);
    proto_expect(args, 0, hem_dev_put_stamped(w, g, 1, 8, p, 8, 1) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_put_stamped(w, g, 1, end, p, 9, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_put_stamped(w, g, 1, 0, p, half + 1, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_put_stamped(w, g, 1, 0, p, ~(uint64_t)0, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_put_stamped(w, g, 2, 0, p, 8, 1) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_take_stamped(w, g, 2, 0, p, 8, 1, 0) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_take_stamped(w, g, 1, 4, p, 8, 1, 0) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_take_stamped(w, g, 1, 0, p, 8, 1, -3) == HEM_ERR_ARG);
    proto_expect(args, 0, hem_dev_take_stamped(w, g, 1, end, p, 9, 1, 0) == HEM_ERR_RANGE);
    proto_expect(args, 0, hem_dev_wait_signal_weak(w, g, 1, 9, HEM_GE, 1, 0) == HEM_ERR_TIMEOUT);
}

static void check_swaps(proto *p) {
    proto_args args = proto_begin(p, 512);
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("stamped, scope", scope);
        args.scope = scope;
        device_launch(swap, p->stream, 2, WARPS, &args);
        device_launch(weakly, p->stream, 2, WARPS, &args);
        proto_end(p);
        args.from += args.rounds;
    }
}

/* All but the last of the bytes are there: how does it end? */
static void check_endings(proto *p) {
    proto_args args = proto_begin(p, 0);
    hemd_unit units[100];
    args.from = 1u << 20;
    for (uint64_t i = 0; i < 100; i++) {
        units[i].data = i;
        units[i].stamp = i < 99 ? args.from : 7;
    }
    device_copy(p->ranks[0].data + PLACE, units, sizeof units);
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("the last unit is missing, scope", scope);
        args.scope = scope;
        args.timeout_ns = HEM_MS(10);
        device_launch(take_once, p->stream, 1, WARPS, &args);
        proto_end(p);
        CHECK_EQ(proto_word(p, 0, 0), (uint64_t) - (int)HEM_ERR_TIMEOUT);
        args.timeout_ns = HEM_FOREVER;
        device_launch(take_once, p->stream, 1, WARPS, &args);
        harness_sleep_ms(5);
        CHECK(!device_stream_done(p->stream));
        proto_raise(p, HEMD_TROUBLE_RANKS + 1, HEM_ERR_PEER);
        proto_raise(p, HEMD_TROUBLE_SOME, HEM_ERR_PEER);
        proto_end(p);
        CHECK_EQ(proto_word(p, 0, 0), (uint64_t) - (int)HEM_ERR_PEER);
        proto_raise(p, HEMD_TROUBLE_RANKS + 1, HEM_OK);
        proto_raise(p, HEMD_TROUBLE_SOME, HEM_OK);
    }
    units[99].stamp = args.from;
    device_copy(p->ranks[0].data + PLACE, units, sizeof units);
    proto_raise(p, HEMD_TROUBLE_ALL, HEM_ERR_REVOKED);
    device_launch(take_once, p->stream, 1, WARPS, &args);
    proto_end(p);
    CHECK_EQ(proto_word(p, 0, 0), 0);
    for (uint32_t i = 0; i < 100; i++)
        CHECK_EQ(proto_word(p, 0, 8 + i), i);
}

int rank_main(hem_world *world) {
    proto p;
    proto_open(&p, 2);
    check_swaps(&p);
    proto_args args = proto_begin(&p, 0);
    harness_step("what is refused", 0);
    device_launch(refused, p.stream, 1, WARPS, &args);
    proto_end(&p);
    check_endings(&p);
    proto_close(&p);
    harness_close(world, HEM_OK);
    return 0;
}
