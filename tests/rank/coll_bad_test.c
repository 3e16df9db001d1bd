/*
 * Collectives refuse what makes no sense, with the right status and a sentence, on the rank that
 * asks for it, without waiting for anybody and without harm: afterwards collectives work.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "coll_reference.h"

#include <limits.h>

#define ARG(call)         CHECK_STATUS(call, HEM_ERR_ARG)
#define RANGE(call)       CHECK_STATUS(call, HEM_ERR_RANGE)
#define UNSUPPORTED(call) CHECK_STATUS(call, HEM_ERR_UNSUPPORTED)

enum {
    KINDS = HEM_ALLTOALLV
};

struct rank {
    hem_world *world;
    int me;
    int size;
};

static double in[64];
static double out[64];
static size_t ones[COLL_RANKS];
static size_t places[COLL_RANKS];

/* A collective of each kind that would be right, with this rank as the root. */
static hem_coll good(const struct rank *r, int kind) {
    hem_coll c = {.struct_size = sizeof c,
                  .kind = (hem_coll_kind)kind,
                  .dtype = HEM_F64,
                  .root = r->me,
                  .send = in,
                  .recv = out,
                  .count = 1};

    if (coll_combines(c.kind))
        c.op = HEM_SUM;
    if (coll_is_vector(c.kind)) {
        c.counts = ones;
        c.displs = places;
    }
    if (c.kind == HEM_ALLTOALLV) {
        c.send_counts = ones;
        c.send_displs = places;
    }
    return c;
}

/* All three forms refuse it alike, at once. */
static void refused(const struct rank *r, const hem_coll *c, hem_status want, const char *what) {
    hem_op *op = NULL;
    hem_status got[3] = {hem_coll_run(r->world, c, HEM_MS(300)), hem_coll_start(r->world, c, &op),
                         HEM_OK};

    if (got[1] == HEM_OK)
        hem_op_free(op);
    op = NULL;
    got[2] = hem_coll_plan(r->world, c, &op);
    for (int i = 0; i < 3; i++)
        if (got[i] != want)
            harness_fail(__FILE__, __LINE__, "%s of %s (form %d): %s, not %s; last error: \"%s\"",
                         what, coll_kind_name(c->kind), i, hem_status_name(got[i]),
                         hem_status_name(want), hem_last_error());
    CHECK(op == NULL);
    CHECK(hem_last_error()[0]);
}

static void bad_buffers(const struct rank *r, int kind) {
    hem_coll c = good(r, kind);

    if (kind == HEM_BARRIER)
        return;
    c.send = NULL;
    if (kind == HEM_BROADCAST)
        c.recv = NULL;
    refused(r, &c, HEM_ERR_ARG, "no send buffer");
    c = good(r, kind);
    c.recv = NULL;
    if (kind == HEM_BROADCAST)
        c.send = NULL;
    refused(r, &c, HEM_ERR_ARG, "no receive buffer");
}

static void bad_numbers(const struct rank *r, int kind) {
    static const int types[] = {-1, HEM_BOOL + 1, INT_MAX};
    static const int ops[] = {-1, 0, HEM_USER + 1, INT_MAX};
    const int roots[] = {-1, r->size, INT_MAX, INT_MIN};
    hem_coll c = good(r, kind);

    for (int i = 0; i < 3 && kind != HEM_BARRIER; i++) {
        c.dtype = (hem_dtype)types[i];
        refused(r, &c, HEM_ERR_ARG, "bad type");
    }
    c = good(r, kind);
    c.dtype = (hem_dtype)0;
    if (kind != HEM_BARRIER)
        refused(r, &c, HEM_ERR_ARG, "no type and no element size");
    c = good(r, kind);
    for (int i = 0; i < 4 && coll_combines(c.kind); i++) {
        c.op = (hem_reduction)ops[i];
        refused(r, &c, HEM_ERR_ARG, "bad operation");
    }
    c = good(r, kind);
    for (int i = 0; i < 4 && coll_has_root(c.kind); i++) {
        c.root = roots[i];
        refused(r, &c, HEM_ERR_RANGE, "bad root");
    }
}

/* hem_coll_run has its own. */
static void bad_limit(const struct rank *r, int kind) {
    hem_coll c = good(r, kind);
    hem_op *op = NULL;

    c.timeout_ns = -2;
    ARG(hem_coll_start(r->world, &c, &op));
    ARG(hem_coll_plan(r->world, &c, &op));
    CHECK(op == NULL);
}

static void bad_user(const struct rank *r, int kind) {
    hem_coll c = good(r, kind);

    if (!coll_combines(c.kind))
        return;
    c.op = HEM_USER;
    c.element = 24;
    refused(r, &c, HEM_ERR_ARG, "user operation without a function");
    c.user = coll_user;
    c.element = 0;
    refused(r, &c, HEM_ERR_ARG, "user operation without an element size");
}

/* Sizes that do not fit into memory must not become small ones by overflow. */
static void bad_sizes(const struct rank *r, int kind) {
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX / 8 + 1, SIZE_MAX / 8 + 2, SIZE_MAX / 2 + 1};
    size_t many[COLL_RANKS];
    hem_coll c = good(r, kind);

    for (int i = 0; i < 4 && kind != HEM_BARRIER; i++) {
        if (!coll_is_vector(c.kind)) {
            c = good(r, kind);
            c.count = huge[i];
            refused(r, &c, HEM_ERR_RANGE, "huge count");
            continue;
        }
        memcpy(many, ones, sizeof many);
        many[r->size - 1] = huge[i];
        c = good(r, kind);
        c.counts = many;
        if (kind == HEM_SCATTERV || kind == HEM_GATHERV)
            c.count = many[r->me];
        refused(r, &c, HEM_ERR_RANGE, "huge counts");
        c = good(r, kind);
        c.displs = many;
        refused(r, &c, HEM_ERR_RANGE, "huge displs");
        if (kind != HEM_ALLTOALLV)
            continue;
        c = good(r, kind);
        c.send_counts = many;
        refused(r, &c, HEM_ERR_RANGE, "huge send counts");
        c = good(r, kind);
        c.send_displs = many;
        refused(r, &c, HEM_ERR_RANGE, "huge send displs");
    }
}

static void bad_arrays(const struct rank *r, int kind) {
    hem_coll c = good(r, kind);

    if (!coll_is_vector(c.kind))
        return;
    c.counts = NULL;
    refused(r, &c, HEM_ERR_ARG, "no counts");
    if (kind != HEM_ALLTOALLV)
        return;
    c = good(r, kind);
    c.send_counts = NULL;
    refused(r, &c, HEM_ERR_ARG, "no send counts");
}

/* Structs from the future. */
static void bad_structs(const struct rank *r, int kind) {
    struct {
        hem_coll known;
        uint64_t unknown[2];
    } c = {good(r, kind), {0, 1}};

    c.known.struct_size = sizeof c;
    refused(r, &c.known, HEM_ERR_ARG, "unknown tail");
    c.known.struct_size = 0;
    refused(r, &c.known, HEM_ERR_ARG, "no struct_size");
    c.known.struct_size = 4;
    refused(r, &c.known, HEM_ERR_ARG, "tiny struct_size");
}

static void unknown_kinds(const struct rank *r) {
    static const int kinds[] = {0, KINDS + 1, -1, INT_MAX, INT_MIN};
    hem_coll c = good(r, HEM_ALLREDUCE);
    hem_op *op = NULL;

    for (int i = 0; i < 5; i++) {
        c.kind = (hem_coll_kind)kinds[i];
        ARG(hem_coll_run(r->world, &c, 0));
        ARG(hem_coll_start(r->world, &c, &op));
        ARG(hem_coll_plan(r->world, &c, &op));
    }
    CHECK(op == NULL);
}

static void unsupported(const struct rank *r) {
    for (int dtype = HEM_BYTE; dtype <= HEM_BOOL; dtype++)
        for (int op = HEM_SUM; op < HEM_USER; op++) {
            hem_coll c = good(r, HEM_ALLREDUCE);

            c.dtype = (hem_dtype)dtype;
            c.op = (hem_reduction)op;
            if (coll_supported(c.dtype, c.op))
                continue;
            refused(r, &c, HEM_ERR_UNSUPPORTED, coll_type_name(c.dtype));
            c.kind = HEM_REDUCE;
            refused(r, &c, HEM_ERR_UNSUPPORTED, coll_op_name(c.op));
            c.count = 0;
            refused(r, &c, HEM_ERR_UNSUPPORTED, coll_op_name(c.op));
        }
    UNSUPPORTED(hem_allreduce(r->world, in, out, 1, HEM_F32, HEM_BXOR, LIMIT));
    UNSUPPORTED(hem_allreduce(r->world, in, out, 1, HEM_C64, HEM_MAX, LIMIT));
    UNSUPPORTED(hem_reduce(r->world, in, out, 1, HEM_C128, HEM_MINLOC, 0, LIMIT));
}

static void no_world_no_output(const struct rank *r) {
    hem_coll c = good(r, HEM_ALLREDUCE);
    hem_op *op = NULL;

    ARG(hem_coll_run(NULL, &c, 0));
    ARG(hem_coll_run(r->world, NULL, 0));
    ARG(hem_coll_run(r->world, &c, -2));
    ARG(hem_coll_start(NULL, &c, &op));
    ARG(hem_coll_start(r->world, NULL, &op));
    ARG(hem_coll_start(r->world, &c, NULL));
    ARG(hem_coll_plan(NULL, &c, &op));
    ARG(hem_coll_plan(r->world, NULL, &op));
    ARG(hem_coll_plan(r->world, &c, NULL));
    ARG(hem_sync(NULL, 0));
    ARG(hem_sync(r->world, -3));
    ARG(hem_broadcast(NULL, in, 1, HEM_F64, 0, 0));
    ARG(hem_broadcast(r->world, NULL, 1, HEM_F64, r->me, LIMIT));
    RANGE(hem_broadcast(r->world, in, 1, HEM_F64, r->size, LIMIT));
    ARG(hem_allreduce(r->world, in, NULL, 1, HEM_F64, HEM_SUM, LIMIT));
    ARG(hem_allreduce(r->world, in, out, 1, HEM_F64, HEM_USER, LIMIT));
    ARG(hem_allgatherv(r->world, in, out, NULL, NULL, HEM_F64, LIMIT));
    ARG(hem_reduce_scatterv(r->world, in, out, NULL, HEM_F64, HEM_SUM, LIMIT));
    ARG(hem_gatherv(r->world, in, 1, out, NULL, NULL, HEM_F64, r->me, LIMIT));
    ARG(hem_scatterv(r->world, in, NULL, NULL, out, 1, HEM_F64, r->me, LIMIT));
    ARG(hem_alltoallv(r->world, in, NULL, NULL, out, ones, NULL, HEM_F64, LIMIT));
    ARG(hem_alltoallv(r->world, in, ones, NULL, out, NULL, NULL, HEM_F64, LIMIT));
    CHECK(op == NULL);
}

/* What is not needed may be missing. */
static void spare(const struct rank *r) {
    hem_coll c = good(r, HEM_ALLREDUCE);
    size_t none[COLL_RANKS] = {0};
    double value = 1;
    double sum = 0;

    c.count = 0;
    c.send = NULL;
    c.recv = NULL;
    CHECK_OK(hem_coll_run(r->world, &c, LIMIT));
    CHECK_OK(hem_allgatherv(r->world, NULL, NULL, none, NULL, HEM_F64, LIMIT));
    CHECK_OK(hem_alltoallv(r->world, NULL, none, NULL, NULL, none, NULL, HEM_F64, LIMIT));
    CHECK_OK(hem_broadcast(r->world, NULL, 0, HEM_F64, 0, LIMIT));
    CHECK_OK(hem_reduce(r->world, &value, r->me ? NULL : &sum, 1, HEM_F64, HEM_SUM, 0, LIMIT));
    CHECK(r->me || sum == r->size);
    CHECK_OK(hem_gatherv(r->world, &value, 1, r->me ? NULL : out, r->me ? NULL : ones, NULL,
                         HEM_F64, 0, LIMIT));
    CHECK_OK(hem_scatterv(r->world, r->me ? NULL : in, r->me ? NULL : ones, NULL, &value, 1,
                          HEM_F64, 0, LIMIT));
    /* An older program's struct, and a newer one's that uses nothing new. */
    c = good(r, HEM_ALLREDUCE);
    c.send = &value;
    value = 2;
    c.recv = &sum;
    c.struct_size = offsetof(hem_coll, counts);
    CHECK_OK(hem_coll_run(r->world, &c, LIMIT));
    CHECK(sum == 2 * r->size);
}

static void revoked(const struct rank *r) {
    hem_world *part = NULL;
    hem_sparse_result got = {0};
    hem_coll c = good(r, HEM_ALLREDUCE);
    hem_op *planned = NULL;
    hem_op *op = NULL;

    CHECK_OK(hem_world_split(r->world, 0, 0, &part));
    CHECK_OK(hem_coll_plan(part, &c, &planned));
    CHECK_OK(hem_sync(part, LIMIT));
    CHECK_OK(hem_world_revoke(part));
    CHECK_STATUS(hem_coll_run(part, &c, LIMIT), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_coll_start(part, &c, &op), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_sync(part, LIMIT), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_sparse(part, NULL, 0, &got, LIMIT), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_op_start(planned), HEM_ERR_REVOKED);
    CHECK(op == NULL);
    CHECK_OK(hem_world_close(part));
    CHECK_STATUS(hem_op_start(planned), HEM_ERR_CLOSED);
    CHECK_OK(hem_op_free(planned));
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    if (r.me == 0 || !harness_threads())
        for (size_t i = 0; i < COLL_RANKS; i++) {
            places[i] = i;
            ones[i] = 1;
        }
    harness_same(world, 1);
    no_world_no_output(&r);
    unknown_kinds(&r);
    unsupported(&r);
    for (int kind = 1; kind <= KINDS; kind++) {
        bad_buffers(&r, kind);
        bad_numbers(&r, kind);
        bad_limit(&r, kind);
        bad_user(&r, kind);
        bad_sizes(&r, kind);
        bad_arrays(&r, kind);
        bad_structs(&r, kind);
    }
    harness_same(world, 2);
    for (int kind = 1; kind <= KINDS; kind++) {
        coll_case c = {.kind = (hem_coll_kind)kind, .dtype = HEM_F64, .count = 5, .size = r.size};

        if (coll_combines(c.kind))
            c.op = HEM_SUM;
        coll_run_checked(world, &c);
    }
    harness_same(world, 3);
    spare(&r);
    revoked(&r);
    harness_close(world, HEM_OK);
    return 0;
}
