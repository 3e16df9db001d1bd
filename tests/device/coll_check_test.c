/*
 * With HEM_CHECK=1, what tests/rank/coll_check_test.c promises of collectives on device buffers: ranks that call
 * different ones, or the same with different counts, types, operations or roots, or in another order, all get
 * HEM_ERR_MISMATCH at once, with a sentence that says who called what; and the next collective works. That is
 * found when an operation is made, so that starts and plans return it; and a rank whose arguments are refused
 * tells all others why, which get the same error.
 *
 * Ranks that disagree on whether buffers are on a device are left out: they may run into their time limit.
 *
 * hem-test: ranks=2,3,8 modes=processes,threads timeout=60
 */
#include "coll_kit.h"

#define MOST 20000 /* elements of a block */

__attribute__((constructor)) static void turn_on(void) {
    setenv("HEM_CHECK", "1", 1);
}

typedef struct test {
    coll_kit kit;
    double *in;
    double *out;
    size_t counts[COLL_KIT_RANKS];
    size_t other_counts[COLL_KIT_RANKS];
} test;

typedef struct call {
    hem_coll_kind kind;
    hem_dtype dtype;
    hem_reduction op;
    int root;
    size_t count; /* not of the kinds with V, whose counts are 2 each */
    bool other;   /* but 3 of rank 1 */
} call;

#define NONE ((hem_reduction)0)

/* What most call, what one calls, and what the sentence must tell. */
static const struct difference {
    call common;
    call odd;
    const char *says[2];
} differences[] = {
    {{HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 5, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 6, false},
     {"(5 of", "(6 of"}},
    {{HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 5, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, MOST, false},
     {"(5 of", "(20000 of"}},
    {{HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, MOST, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, MOST - 1, false},
     {"(20000 of", "(19999 of"}},
    {{HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 8, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 0, false},
     {"(8 of", "(0 of"}},
    {{HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 8, false},
     {HEM_ALLREDUCE, HEM_I64, HEM_SUM, 0, 8, false},
     {"f64", "i64"}},
    {{HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 8, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_MAX, 0, 8, false},
     {"sum", "max"}},
    {{HEM_BROADCAST, HEM_F64, NONE, 0, 8, false},
     {HEM_BROADCAST, HEM_F64, NONE, 1, 8, false},
     {"root 0", "root 1"}},
    {{HEM_REDUCE, HEM_F64, HEM_SUM, 1, 3000, false},
     {HEM_REDUCE, HEM_F64, HEM_SUM, 0, 3000, false},
     {"root 0", "root 1"}},
    {{HEM_ALLGATHER, HEM_F64, NONE, 0, 8, false},
     {HEM_ALLTOALL, HEM_F64, NONE, 0, 8, false},
     {"hem_allgather", "hem_alltoall"}},
    {{HEM_BARRIER, (hem_dtype)0, NONE, 0, 0, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 1, false},
     {"hem_sync", "hem_allreduce"}},
    {{HEM_BARRIER, (hem_dtype)0, NONE, 0, 0, false},
     {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, MOST, false},
     {"hem_sync", "hem_allreduce"}},
    {{HEM_REDUCE_SCATTER, HEM_F32, HEM_SUM, 0, 100, false},
     {HEM_REDUCE_SCATTER, HEM_F32, HEM_SUM, 0, 101, false},
     {"(100 of", "(101 of"}},
    {{HEM_ALLGATHERV, HEM_I8, NONE, 0, 0, false},
     {HEM_ALLGATHERV, HEM_I8, NONE, 0, 0, true},
     {"hem_allgatherv", "counts"}},
    {{HEM_GATHER, HEM_U16, NONE, 0, 9, false},
     {HEM_SCATTER, HEM_U16, NONE, 0, 9, false},
     {"hem_gather", "hem_scatter"}},
    {{HEM_ALLTOALLV, HEM_I8, NONE, 0, 0, false},
     {HEM_GATHERV, HEM_I8, NONE, 0, 2, false},
     {"hem_alltoallv", "hem_gatherv"}},
};

static hem_coll describe(const test *t, const call *from) {
    hem_coll c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = from->kind;
    c.dtype = from->dtype;
    c.op = from->op;
    c.root = from->root;
    c.count = from->count;
    c.send = t->in;
    c.recv = from->kind == HEM_BROADCAST ? t->in : t->out;
    c.memory = HEM_MEMORY_DEVICE;
    if (from->kind == HEM_ALLGATHERV || from->kind == HEM_ALLTOALLV || from->kind == HEM_GATHERV)
        c.counts = from->other ? t->other_counts : t->counts;
    if (from->kind == HEM_ALLTOALLV)
        c.send_counts = t->counts;
    return c;
}

/* In one of three forms, which must not go well. */
static hem_status try_call(test *t, const hem_coll *c, int form) {
    hem_op *op = NULL;
    hem_status status = HEM_OK;
    if (form == 0)
        return hem_coll_run(t->kit.world, c, LIMIT);
    if (form == 1)
        status = hem_coll_start(t->kit.world, c, &op);
    else
        status = hem_coll_plan(t->kit.world, c, &op);
    CHECK(status != HEM_OK && op == NULL);
    return status;
}

/* It came from the comparison, not from a time limit. */
static void check_mismatch(hem_status status, int odd, const char *const *says, int64_t start) {
    CHECK_STATUS(status, HEM_ERR_MISMATCH);
    CHECK_NAMES_RANK(odd);
    for (int i = 0; i < 2; i++)
        CHECK_SENTENCE(says[i]);
    CHECK(harness_now() - start < HEM_SEC(5));
}

/* One of each kind, on the device as on the host. Ranks may differ in what is their own. */
static void run_kind(test *t, hem_coll_kind kind, uint64_t seed) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)kind, 0);
    harness_rng own = harness_rng_of(seed, (uint64_t)kind, 1 + (uint64_t)t->kit.rank);
    bool combines = kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
                    kind == HEM_REDUCE_SCATTERV;
    coll_kit_set(&t->kit, kind, HEM_U16, combines ? HEM_BXOR : NONE, 50, false,
                 2 * harness_below(&own, 5), &rng, &own);
    t->kit.coll.blocks = (uint32_t)harness_below(&own, 4);
    coll_kit_check(&t->kit, true);
}

static void works(test *t, uint64_t seed) {
    run_kind(t, HEM_ALLREDUCE, seed);
    run_kind(t, HEM_ALLTOALLV, seed);
}

static void disagree(test *t, const struct difference *d, int odd, int form) {
    int64_t start = harness_now();
    hem_coll c = describe(t, t->kit.rank == odd ? &d->odd : &d->common);
    check_mismatch(try_call(t, &c, form), odd, d->says, start);
}

/* Two collectives the other way round: both fail, on every rank. */
static void disorder(test *t, int odd) {
    static const call calls[2] = {
        {HEM_BARRIER, (hem_dtype)0, NONE, 0, 0, false},
        {HEM_BROADCAST, HEM_F64, NONE, 0, 4000, false},
    };
    static const char *const says[2] = {"hem_sync", "hem_broadcast"};
    int64_t start = harness_now();
    for (int i = 0; i < 2; i++) {
        hem_coll c = describe(t, &calls[t->kit.rank == odd ? 1 - i : i]);
        check_mismatch(try_call(t, &c, i), odd, says, start);
    }
}

static void one_is_refused(test *t, int odd, int form) {
    static const call good = {HEM_ALLREDUCE, HEM_F64, HEM_SUM, 0, 5, false};
    int64_t start = harness_now();
    hem_coll c = describe(t, &good);
    if (t->kit.rank == odd)
        c.send = NULL;
    CHECK_STATUS(try_call(t, &c, form), HEM_ERR_ARG);
    CHECK_NAMES_RANK(odd);
    CHECK(harness_now() - start < HEM_SEC(5));
}

/* What may differ does: nobody complains. */
static void agree(test *t, uint64_t seed) {
    static const call meeting = {HEM_BARRIER, (hem_dtype)0, NONE, 0, 0, false};
    hem_coll c = describe(t, &meeting);
    CHECK_OK(hem_coll_run(t->kit.world, &c, LIMIT));
    for (int kind = HEM_BROADCAST; kind <= HEM_ALLTOALLV; kind++) {
        harness_step("kind", (uint64_t)kind);
        run_kind(t, (hem_coll_kind)kind, seed);
    }
}

static void check_differences(test *t, int last) {
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        for (int odd = 0; odd <= last; odd += last) {
            harness_step("difference", i);
            disagree(t, &differences[i], odd, (int)(i + (size_t)odd) % 3);
            if (i % 8 == 0)
                works(t, i);
        }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    test t;
    memset(&t, 0, sizeof t);
    t.kit = coll_kit_open(world);
    const int last = t.kit.size - 1;
    const size_t room = MOST * sizeof(double) * (size_t)t.kit.size;
    t.in = (double *)device_alloc(room);
    t.out = (double *)device_alloc(room);
    for (size_t i = 0; i < COLL_KIT_RANKS; i++) {
        t.counts[i] = 2;
        t.other_counts[i] = i == 1 ? 3 : 2;
    }
    agree(&t, seed);
    check_differences(&t, last);
    for (int odd = 0; odd <= last; odd += last) {
        harness_step("disorder", (uint64_t)odd);
        disorder(&t, odd);
        works(&t, 77);
        for (int form = 0; form < 3; form++) {
            harness_step("refused", (uint64_t)form);
            one_is_refused(&t, odd, form);
        }
        works(&t, 78);
    }
    agree(&t, seed + 1);
    coll_kit_close(&t.kit);
    device_free(t.in);
    device_free(t.out);
    harness_close(world, HEM_OK);
    return 0;
}
