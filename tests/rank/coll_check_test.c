/*
 * With HEM_CHECK=1, ranks that call different collectives, or the same with different counts,
 * types, operations or roots, or in another order, all get HEM_ERR_MISMATCH at once, with a
 * sentence that says who called what; and the next collective works.
 *
 * hem-test: ranks=2,3,4,8 modes=processes,threads timeout=60
 */
#include "coll_reference.h"

enum {
    MOST = 200000
};

struct rank {
    hem_world *world;
    int me;
    int size;
    double *in;
    double *out;
};

static size_t counts[COLL_RANKS];
static size_t other_counts[COLL_RANKS];

/* One disagreement: what most call, what one calls, and what the sentence must tell. */
static const struct difference {
    hem_coll common;
    hem_coll odd;
    const char *says[2];
} differences[] = {
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 5},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 6},
     {"5", "6"}},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 5},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = MOST},
     {"5", "200000"}},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = MOST},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = MOST - 1},
     {"200000", "199999"}},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 8},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 0},
     {"8", "0"}},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 8},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_I64, .op = HEM_SUM, .count = 8},
     {"f64", "i64"}},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 8},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_MAX, .count = 8},
     {"sum", "max"}},
    {{.kind = HEM_BROADCAST, .dtype = HEM_F64, .root = 0, .count = 8},
     {.kind = HEM_BROADCAST, .dtype = HEM_F64, .root = 1, .count = 8},
     {"root 0", "root 1"}},
    {{.kind = HEM_REDUCE, .dtype = HEM_F64, .op = HEM_SUM, .root = 1, .count = 3000},
     {.kind = HEM_REDUCE, .dtype = HEM_F64, .op = HEM_SUM, .root = 0, .count = 3000},
     {"root 0", "root 1"}},
    {{.kind = HEM_ALLGATHER, .dtype = HEM_F64, .count = 8},
     {.kind = HEM_ALLTOALL, .dtype = HEM_F64, .count = 8},
     {"hem_allgather", "hem_alltoall"}},
    {{.kind = HEM_BARRIER},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 1},
     {"hem_sync", "hem_allreduce"}},
    {{.kind = HEM_BARRIER},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = MOST},
     {"hem_sync", "hem_allreduce"}},
    {{.kind = HEM_REDUCE_SCATTER, .dtype = HEM_F32, .op = HEM_SUM, .count = 100},
     {.kind = HEM_REDUCE_SCATTER, .dtype = HEM_F32, .op = HEM_SUM, .count = 101},
     {"100", "101"}},
    {{.kind = HEM_ALLGATHERV, .dtype = HEM_I8, .counts = counts},
     {.kind = HEM_ALLGATHERV, .dtype = HEM_I8, .counts = other_counts},
     {"hem_allgatherv", "counts"}},
    {{.kind = HEM_GATHER, .dtype = HEM_U16, .count = 9},
     {.kind = HEM_SCATTER, .dtype = HEM_U16, .count = 9},
     {"hem_gather", "hem_scatter"}},
    {{.kind = HEM_ALLTOALLV, .dtype = HEM_I8, .counts = counts, .send_counts = counts},
     {.kind = HEM_GATHERV, .dtype = HEM_I8, .count = 2, .counts = counts},
     {"hem_alltoallv", "hem_gatherv"}},
};

static hem_status call(struct rank *r, const hem_coll *from, int form) {
    hem_coll coll = *from;
    hem_op *op = NULL;
    hem_status status;

    coll.struct_size = sizeof coll;
    coll.send = r->in;
    coll.recv = coll.kind == HEM_BROADCAST ? r->in : r->out;
    if (form == 0)
        return hem_coll_run(r->world, &coll, LIMIT);
    if (form == 1) {
        CHECK_OK(hem_coll_start(r->world, &coll, &op));
    } else {
        CHECK_OK(hem_coll_plan(r->world, &coll, &op));
        CHECK_OK(hem_op_start(op));
    }
    status = hem_op_wait(op, LIMIT);
    CHECK_OK(hem_op_free(op));
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

static void works(struct rank *r, uint64_t seed) {
    coll_case c = {.kind = HEM_ALLREDUCE,
                   .dtype = HEM_I32,
                   .op = HEM_SUM,
                   .count = 100,
                   .size = r->size,
                   .seed = seed};

    coll_run_checked(r->world, &c);
    c.kind = HEM_ALLTOALLV;
    c.op = (hem_reduction)0;
    coll_run_checked(r->world, &c);
}

static void disagree(struct rank *r, const struct difference *d, int odd, int form) {
    int64_t start = harness_now();
    hem_status status = call(r, r->me == odd ? &d->odd : &d->common, form);

    check_mismatch(status, odd, d->says, start);
    works(r, (uint64_t)odd);
}

/* Two collectives the other way round: both fail, on every rank. */
static void disorder(struct rank *r, int odd) {
    static const hem_coll calls[2] = {
        {.kind = HEM_BARRIER},
        {.kind = HEM_BROADCAST, .dtype = HEM_F64, .count = 4000},
    };
    static const char *const says[2] = {"hem_sync", "hem_broadcast"};
    int64_t start = harness_now();

    for (int i = 0; i < 2; i++)
        check_mismatch(call(r, &calls[r->me == odd ? 1 - i : i], i), odd, says, start);
    works(r, 77);
}

/* A rank that is refused by itself has said nothing; with the check the others need not wait. */
static void one_is_refused(struct rank *r, int odd) {
    int64_t start = harness_now();

    if (r->me == odd) {
        CHECK_STATUS(hem_allreduce(r->world, NULL, r->out, 5, HEM_F64, HEM_SUM, LIMIT),
                     HEM_ERR_ARG);
    } else {
        CHECK_STATUS(hem_allreduce(r->world, r->in, r->out, 5, HEM_F64, HEM_SUM, LIMIT),
                     HEM_ERR_MISMATCH);
        CHECK_NAMES_RANK(odd);
        CHECK(harness_now() - start < HEM_SEC(5));
    }
    works(r, 78);
}

/* What may differ does: nobody complains. */
static void agree(struct rank *r) {
    for (int kind = HEM_BARRIER; kind <= HEM_ALLTOALLV; kind++) {
        coll_case c = {.kind = (hem_coll_kind)kind,
                       .dtype = HEM_U16,
                       .count = 50,
                       .gaps = kind % 2,
                       .root = coll_has_root((hem_coll_kind)kind) ? r->size - 1 : 0,
                       .size = r->size};

        if (coll_combines(c.kind))
            c.op = HEM_BXOR;
        coll_run_checked(r->world, &c);
    }
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    size_t room = MOST * sizeof(double) * (size_t)r.size;

    r.in = calloc(1, room);
    r.out = calloc(1, room);
    CHECK(r.in && r.out);
    agree(&r);
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        for (int odd = 0; odd < r.size; odd += r.size - 1) {
            harness_step("difference", i);
            disagree(&r, &differences[i], odd, (int)(i + (size_t)odd) % 3);
        }
    for (int odd = 0; odd < r.size; odd += r.size - 1) {
        disorder(&r, odd);
        one_is_refused(&r, odd);
    }
    agree(&r);
    free(r.in);
    free(r.out);
    harness_close(world, HEM_OK);
    return 0;
}

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

int main(int argc, char **argv) {
    hem_world *world = NULL;

    CHECK_EQ(setenv("HEM_CHECK", "1", 1), 0);
    for (size_t i = 0; i < COLL_RANKS; i++) {
        counts[i] = 2;
        other_counts[i] = i == 1 ? 3 : 2;
    }
    if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
        harness_set_threads();
        CHECK_OK(hem_world_threads(atoi(argv[2]), thread_rank, NULL, NULL));
        return 0;
    }
    CHECK_OK(hem_world_open(NULL, &world));
    return harness_run(world, rank_main);
}
