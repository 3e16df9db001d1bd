/*
 * Either every rank has the result of a collective or every rank has an error: a rank comes about
 * when the others' time limit passes, and whatever happens, all that receive something agree. The
 * next collective works. A limit that passes ends the collective for those who have none, too.
 *
 * hem-test: ranks=2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "coll_buffers.h"

#include <time.h>

enum {
    MANY = 100
};

struct rank {
    hem_world *world;
    hem_window *ballot;
    uint64_t seed;
    int me;
    int size;
    int failures; /**< rounds that failed, so that a run shows both outcomes */
};

static void sleep_ns(int64_t ns) {
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    if (ns > 0)
        nanosleep(&t, NULL);
}

/* Everybody's answer, by another way than collectives. */
static void collect(struct rank *r, hem_status mine, hem_status *all) {
    uint64_t word = (uint64_t)(int64_t)mine;
    const uint64_t *words = hem_window_memory(r->ballot);

    for (int peer = 0; peer < r->size; peer++)
        CHECK_OK(hem_put(r->ballot, peer, (size_t)r->me * 8, &word, 8));
    harness_barrier(r->ballot);
    for (int peer = 0; peer < r->size; peer++)
        all[peer] = (hem_status)(int64_t)words[peer];
    harness_barrier(r->ballot);
}

static void check_agreement(struct rank *r, const coll_case *c, const hem_status *all) {
    int good = 0;
    int bad = 0;

    for (int rank = 0; rank < r->size; rank++) {
        if (all[rank] != HEM_OK && all[rank] != HEM_ERR_TIMEOUT && all[rank] != HEM_ERR_REVOKED)
            harness_fail(__FILE__, __LINE__, "%s: rank %d got %s", coll_kind_name(c->kind), rank,
                         hem_status_name(all[rank]));
        if (coll_only_gives(c, rank))
            continue;
        good += all[rank] == HEM_OK;
        bad += all[rank] != HEM_OK;
    }
    if (good && bad)
        harness_fail(__FILE__, __LINE__, "%s of %zu: %d ranks have the result and %d an error",
                     coll_kind_name(c->kind), c->count, good, bad);
    r->failures += bad > 0;
}

static coll_case some_case(struct rank *r, harness_rng *rng, uint64_t round) {
    static const hem_dtype types[] = {HEM_I8, HEM_I32, HEM_F64, HEM_BF16};
    static const size_t counts[] = {0, 1, 5, 100, 4000, 60000};
    coll_case c = {.kind = (hem_coll_kind)(1 + round % 14), .size = r->size};

    c.dtype = types[harness_below(rng, 4)];
    c.op = coll_combines(c.kind) ? HEM_SUM : (hem_reduction)0;
    c.root = coll_has_root(c.kind) ? (int)harness_below(rng, (size_t)r->size) : 0;
    c.count = counts[harness_below(rng, 6)];
    c.in_place = harness_below(rng, 2) || c.kind == HEM_BROADCAST;
    c.seed = harness_random(rng) / 16 * 16;
    return c;
}

static hem_status call(struct rank *r, const hem_coll *from, int64_t limit, bool started) {
    hem_coll coll = *from;
    hem_op *op = NULL;
    hem_status status;

    if (!started)
        return hem_coll_run(r->world, &coll, limit);
    coll.timeout_ns = limit;
    CHECK_OK(hem_coll_start(r->world, &coll, &op));
    status = hem_op_wait(op, LIMIT);
    CHECK_OK(hem_op_free(op));
    return status;
}

/* One rank comes when the limit of the others is just about to pass, or has just passed. */
static void late(struct rank *r, uint64_t round) {
    harness_rng shared = harness_rng_of(r->seed, round, 1);
    harness_rng own = harness_rng_of(r->seed, round, 50 + (uint64_t)r->me);
    coll_case c = some_case(r, &shared, round);
    coll_buffers b = coll_buffers_make(r->world, &c, (int)harness_below(&shared, 4), COLL_ANY);
    int who = (int)harness_below(&shared, (size_t)r->size);
    int64_t limit = HEM_MS(2) + (int64_t)harness_below(&shared, HEM_MS(4));
    int64_t shift = (int64_t)harness_below(&shared, HEM_MS(2)) - HEM_MS(1);
    hem_status all[COLL_RANKS];
    hem_status status;

    coll_buffers_fill(&b);
    harness_barrier(r->ballot);
    if (r->me == who)
        sleep_ns(limit + shift);
    else
        limit += (int64_t)harness_below(&own, HEM_US(500));
    status = call(r, &b.coll, limit, harness_below(&own, 2));
    if (status == HEM_OK)
        coll_buffers_check(&b);
    coll_buffers_free(&b);
    collect(r, status, all);
    check_agreement(r, &c, all);
    c.seed += 16;
    coll_run_checked(r->world, &c);
}

/* The limit of one rank counts for all: those who would wait for long are told. */
static void one_limit(struct rank *r, uint64_t round, hem_world *world) {
    struct rank inner = *r;
    coll_case c = {.kind = round % 2 ? HEM_ALLREDUCE : HEM_BARRIER,
                   .dtype = HEM_I64,
                   .op = round % 2 ? HEM_SUM : (hem_reduction)0,
                   .count = round % 4 == 3 ? 40000 : 4,
                   .size = r->size,
                   .seed = round * 16};
    int hasty = (int)(round / 2 % (uint64_t)r->size);
    int late = (hasty + 1) % r->size;
    coll_buffers b;
    hem_status all[COLL_RANKS];
    hem_status status;
    int64_t start;

    inner.world = world;
    b = coll_buffers_make(world, &c, COLL_PRIVATE, COLL_ODD);
    coll_buffers_fill(&b);
    harness_barrier(r->ballot);
    if (r->me == late)
        CHECK_OK(hem_barrier(r->ballot, 1, LIMIT));
    start = harness_now();
    status = call(&inner, &b.coll, r->me == hasty ? HEM_MS(5) : LIMIT, false);
    CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
    if (harness_now() - start > HEM_SEC(2) + harness_slack())
        harness_fail(__FILE__, __LINE__, "rank %d's limit was 5 ms, this rank ended after %lld ms",
                     hasty, (long long)(harness_now() - start) / 1000000);
    if (r->me != late)
        CHECK_OK(hem_barrier(r->ballot, 1, LIMIT));
    coll_buffers_free(&b);
    collect(r, status, all);
    check_agreement(r, &c, all);
    c.seed += 16;
    coll_run_checked(world, &c);
}

/* Also in a world that has never seen a collective. */
static void fresh(struct rank *r, uint64_t round) {
    hem_world *world = NULL;

    CHECK_OK(hem_world_split(r->world, 0, 0, &world));
    one_limit(r, round, world);
    CHECK_OK(hem_world_close(world));
}

/*
 * Many in flight that all fail, none is mixed up. If one rank has not come to the first of them, a
 * world can tell 64 apart; beyond that it is revoked as a whole.
 */
static void many_fail(struct rank *r, int many) {
    hem_world *world = NULL;
    int64_t given = 1;
    int64_t got[MANY];
    hem_coll coll = {.struct_size = sizeof coll,
                     .kind = HEM_ALLREDUCE,
                     .dtype = HEM_I64,
                     .op = HEM_SUM,
                     .send = &given,
                     .count = 1,
                     .timeout_ns = HEM_MS(3)};
    hem_op *ops[MANY] = {NULL};
    hem_status status = HEM_OK;
    bool last = r->me == r->size - 1;

    CHECK_OK(hem_world_split(r->world, 0, 0, &world));
    CHECK_OK(hem_sync(world, LIMIT));
    if (last)
        CHECK_OK(hem_barrier(r->ballot, 1, LIMIT));
    for (int i = 0; i < many && status == HEM_OK; i++) {
        coll.recv = &got[i];
        status = hem_coll_start(world, &coll, &ops[i]);
        CHECK(status == HEM_OK || (many > 64 && status == HEM_ERR_REVOKED));
    }
    for (int i = 0; i < many && ops[i]; i++) {
        harness_step("of many, number", (uint64_t)i);
        status = hem_op_wait(ops[i], LIMIT);
        CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
        CHECK_OK(hem_op_free(ops[i]));
    }
    if (!last)
        CHECK_OK(hem_barrier(r->ballot, 1, LIMIT));
    harness_barrier(r->ballot);
    status = hem_allreduce(world, &given, got, 1, HEM_I64, HEM_SUM, LIMIT);
    CHECK(status == HEM_OK ? got[0] == r->size : many > 64 && status == HEM_ERR_REVOKED);
    CHECK_OK(hem_world_close(world));
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    int rounds = harness_rounds(r.size > 2 * harness_cores() ? 140 : 280);

    r.seed = harness_seed(world);
    r.ballot = harness_window(world, 8 * (size_t)r.size);
    for (uint64_t round = 0; round < 8; round++) {
        harness_step("fresh world, round", round);
        fresh(&r, round);
        harness_step("one limit, round", round);
        one_limit(&r, round, world);
    }
    for (int round = 0; round < rounds; round++) {
        harness_step("late, round", (uint64_t)round);
        late(&r, (uint64_t)round);
    }
    many_fail(&r, 60);
    many_fail(&r, MANY);
    if (r.me == 0)
        printf("%d of %d rounds failed, as they may\n", r.failures, rounds + 16);
    harness_destroy(r.ballot);
    harness_close(world, HEM_OK);
    return 0;
}
