/*
 * Much in one piece, by every kind of collective that huge_test.c and huge_sums_test.c have not, or not with
 * so much: 1 GiB in all on a GPU, in equal and in unequal blocks, at odd addresses, once each in stream
 * order. Some 300 KiB on the stand-in. Every byte is checked by the device.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=120
 */
#include "huge_kit.h"

typedef struct pair_args {
    const unsigned char *bytes;
    uint64_t count;
    uint64_t first; /* number of the first byte */
    uint64_t tag;   /* rank 0's; rank 1 has the next one */
    uint64_t *wrong;
} pair_args;

/* Sums of what both ranks have. */
DEVICE_KERNEL(pairs, pair_args) {
    const uint64_t step = (uint64_t)hem_block().size * hem_block_count();
    uint64_t wrong = 0;
    for (uint64_t i = hem_block_index() * (uint64_t)hem_block().size + hem_block().rank;
         i < args->count; i += step) {
        const uint64_t n = args->first + i;
        wrong += args->bytes[i] !=
                 (unsigned char)(huge_byte(args->tag, n) + huge_byte(args->tag + 1, n));
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

static void expect_sums(huge *t, const unsigned char *bytes, uint64_t first, uint64_t count,
                        uint64_t tag, const char *what) {
    pair_args args;
    args.bytes = bytes;
    args.count = count;
    args.first = first;
    args.tag = tag;
    args.wrong = t->wrong;
    device_launch(pairs, t->stream, huge_blocks(), huge_warps(), &args);
    huge_check(t, what);
}

/* The bytes of both ranks, in the order of ranks, each as its tag says. */
static void expect_blocks(huge *t, unsigned char *bytes, const size_t *counts, uint64_t tag,
                          const char *what) {
    huge_expect(t, bytes, counts[0], tag, what);
    huge_expect(t, bytes + counts[0], counts[1], tag + 1, what);
}

static hem_coll describe(hem_coll_kind kind, unsigned char *send, unsigned char *recv,
                         size_t count) {
    hem_coll c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = kind;
    c.dtype = HEM_U8;
    c.send = send;
    c.recv = recv;
    c.count = count;
    return c;
}

static void run(huge *t, const hem_coll *c) {
    hem_op *op = NULL;
    harness_step("kind", (uint64_t)c->kind);
    CHECK_OK(hem_coll_plan(t->world, c, &op));
    CHECK_OK(hem_op_start_on(op, t->handle));
    device_stream_sync(t->stream);
    CHECK_OK(hem_op_status(op));
    CHECK_OK(hem_op_free(op));
}

static uint64_t with_rank(const huge *t, uint64_t tag) {
    return tag + (uint64_t)t->rank;
}

static void check_broadcast(huge *t) {
    hem_coll c = describe(HEM_BROADCAST, NULL, t->to + 1, (size_t)t->bytes);
    c.root = 1;
    huge_run(t, t->to + 1, t->bytes, with_rank(t, 10), false);
    run(t, &c);
    huge_expect(t, t->to + 1, t->bytes, 11, "broadcast");
}

/* The other one's memory stays as it was. */
static void check_reduce(huge *t) {
    hem_coll c = describe(HEM_REDUCE, t->from + 3, t->to, (size_t)t->bytes);
    c.op = HEM_SUM;
    huge_run(t, t->from + 3, t->bytes, with_rank(t, 20), false);
    huge_run(t, t->to, t->bytes, 25, false);
    run(t, &c);
    if (t->rank == 0)
        expect_sums(t, t->to, 0, t->bytes, 20, "reduce");
    else
        huge_expect(t, t->to, t->bytes, 25, "memory that reduce has no use for");
}

/* Equal blocks, then those of `counts`. */
static void check_reduce_scatter(huge *t, const size_t *counts) {
    const size_t half = (size_t)t->bytes / 2;
    hem_coll c = describe(HEM_REDUCE_SCATTER, t->from, t->to + 1, half);
    c.op = HEM_SUM;
    huge_run(t, t->from, t->bytes, with_rank(t, 30), false);
    run(t, &c);
    expect_sums(t, t->to + 1, half * (uint64_t)t->rank, half, 30, "reduce-scatter");
    c = describe(HEM_REDUCE_SCATTERV, t->from, t->to + 1, 0);
    c.op = HEM_SUM;
    c.counts = counts;
    huge_run(t, t->from, t->bytes, with_rank(t, 40), false);
    run(t, &c);
    expect_sums(t, t->to + 1, t->rank == 0 ? 0 : counts[0], counts[t->rank], 40,
                "reduce-scatter of unequal blocks");
}

static void check_allgather(huge *t, const size_t *halves, const size_t *counts) {
    hem_coll c = describe(HEM_ALLGATHER, t->from + 5, t->to + 1, halves[0]);
    huge_run(t, t->from + 5, halves[0], with_rank(t, 50), false);
    run(t, &c);
    expect_blocks(t, t->to + 1, halves, 50, "all-gather");
    c = describe(HEM_ALLGATHERV, t->from + 5, t->to + 1, 0);
    c.counts = counts;
    huge_run(t, t->from + 5, counts[t->rank], with_rank(t, 60), false);
    run(t, &c);
    expect_blocks(t, t->to + 1, counts, 60, "all-gather of unequal blocks");
}

static void check_gather(huge *t, const size_t *halves, const size_t *counts) {
    hem_coll c = describe(HEM_GATHER, t->from + 1, t->to + 3, halves[0]);
    c.root = 1;
    huge_run(t, t->from + 1, halves[0], with_rank(t, 70), false);
    run(t, &c);
    if (t->rank == 1)
        expect_blocks(t, t->to + 3, halves, 70, "gather");
    c = describe(HEM_GATHERV, t->from + 1, t->to + 3, counts[t->rank]);
    c.counts = counts;
    huge_run(t, t->from + 1, counts[t->rank], with_rank(t, 80), false);
    run(t, &c);
    if (t->rank == 0)
        expect_blocks(t, t->to + 3, counts, 80, "gather of unequal blocks");
}

static void fill_blocks(huge *t, unsigned char *bytes, const size_t *counts, uint64_t tag) {
    huge_run(t, bytes, counts[0], tag, false);
    huge_run(t, bytes + counts[0], counts[1], tag + 1, false);
}

static void check_scatter(huge *t, const size_t *halves, const size_t *counts) {
    hem_coll c = describe(HEM_SCATTER, t->from + 7, t->to, halves[0]);
    fill_blocks(t, t->from + 7, halves, t->rank == 0 ? 90 : 95);
    run(t, &c);
    huge_expect(t, t->to, halves[0], with_rank(t, 90), "scatter");
    c = describe(HEM_SCATTERV, t->from + 7, t->to, counts[t->rank]);
    c.root = 1;
    c.counts = counts;
    fill_blocks(t, t->from + 7, counts, t->rank == 1 ? 100 : 105);
    run(t, &c);
    huge_expect(t, t->to, counts[t->rank], with_rank(t, 100), "scatter of unequal blocks");
}

/* Rank r has tags 110 + 2 r and the next one, for rank 0 and rank 1. */
static void check_alltoall(huge *t, const size_t *halves, const size_t *counts) {
    const uint64_t sent = 110 + 2 * (uint64_t)t->rank;
    hem_coll c = describe(HEM_ALLTOALL, t->from + 1, t->to + 5, halves[0]);
    fill_blocks(t, t->from + 1, halves, sent);
    run(t, &c);
    huge_expect(t, t->to + 5, halves[0], with_rank(t, 110), "all-to-all from rank 0");
    huge_expect(t, t->to + 5 + halves[0], halves[1], with_rank(t, 112), "all-to-all from rank 1");
    /* One length stays here, the other one goes and comes: what is sent and what is received are alike. */
    const size_t mine[2] = {counts[t->rank], counts[t->other]};
    c = describe(HEM_ALLTOALLV, t->from + 1, t->to + 5, 0);
    c.send_counts = mine;
    c.counts = mine;
    fill_blocks(t, t->from + 1, mine, sent + 10);
    run(t, &c);
    huge_expect(t, t->to + 5, mine[0], with_rank(t, 120), "unequal all-to-all from rank 0");
    huge_expect(t, t->to + 5 + mine[0], mine[1], with_rank(t, 122),
                "unequal all-to-all from rank 1");
}

int rank_main(hem_world *world) {
    huge t = huge_open(world, 1ull << 30);
    if (device_stands_in()) /* there are many kinds; still too much for the form for short vectors */
        t.bytes = 300000;
    const size_t all = (size_t)t.bytes;
    const size_t halves[2] = {all / 2, all / 2};
    const size_t counts[2] = {all / 3 + 1, all - all / 3 - 1};
    check_broadcast(&t);
    check_reduce(&t);
    check_reduce_scatter(&t, counts);
    check_allgather(&t, halves, counts);
    check_gather(&t, halves, counts);
    check_scatter(&t, halves, counts);
    check_alltoall(&t, halves, counts);
    huge_close(&t);
    harness_close(world, HEM_OK);
    return 0;
}
