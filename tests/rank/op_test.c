/*
 * Operations in every state: idle, running and done. Waiting with a limit leaves an operation
 * running; freeing one in flight fails its collective on all ranks and nothing else; handles
 * outlive their world.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    OPS = 6
};

#define ARG(call) CHECK_STATUS(call, HEM_ERR_ARG)

struct rank {
    hem_world *world;
    hem_window *gate;
    int me;
    int size;
};

/* A sum of one number per rank: everybody gives `given`. */
struct sum {
    int64_t given;
    int64_t got;
};

static hem_coll describe(struct sum *sum, int64_t given) {
    *sum = (struct sum){given, -1};
    return (hem_coll){.struct_size = sizeof(hem_coll),
                      .kind = HEM_ALLREDUCE,
                      .dtype = HEM_I64,
                      .op = HEM_SUM,
                      .send = &sum->given,
                      .recv = &sum->got,
                      .count = 1};
}

static hem_op *plan(struct rank *r, struct sum *sum, int64_t given) {
    hem_coll coll = describe(sum, given);
    hem_op *op = NULL;

    CHECK_OK(hem_coll_plan(r->world, &coll, &op));
    CHECK(op != NULL);
    return op;
}

static hem_op *start(struct rank *r, struct sum *sum, int64_t given) {
    hem_coll coll = describe(sum, given);
    hem_op *op = NULL;

    CHECK_OK(hem_coll_start(r->world, &coll, &op));
    CHECK(op != NULL);
    return op;
}

/* A receive that nobody sends to yet. */
static hem_op *start_receive(struct rank *r, uint32_t channel, void *data, size_t room) {
    hem_op *op = NULL;

    CHECK_OK(hem_recv_start(r->world, harness_left(r->world), channel, data, room, &op));
    return op;
}

static void send(struct rank *r, uint32_t channel, const void *data, size_t bytes) {
    CHECK_OK(hem_send(r->world, harness_right(r->world), channel, data, bytes, LIMIT));
}

static void works(struct rank *r) {
    struct sum sum = {3, 0};

    CHECK_OK(hem_allreduce(r->world, &sum.given, &sum.got, 1, HEM_I64, HEM_SUM, LIMIT));
    CHECK_EQ(sum.got, 3 * r->size);
}

/* States. */

static void idle(struct rank *r) {
    struct sum sum;
    hem_op *op = plan(r, &sum, 1);
    size_t which = 9;
    bool done = true;

    ARG(hem_op_test(op, &done));
    ARG(hem_op_wait(op, 0));
    ARG(hem_op_wait_all(&op, 1, 0));
    ARG(hem_op_wait_any(&op, 1, &which, 0));
    CHECK(done && which == 9);
    CHECK_EQ(hem_op_bytes(op), 0);
    CHECK_OK(hem_op_free(op));
    op = plan(r, &sum, 2);
    for (int round = 1; round <= 20; round++) {
        sum.given = round;
        CHECK_OK(hem_op_start(op));
        CHECK_OK(hem_op_wait(op, LIMIT));
        CHECK_EQ(sum.got, round * r->size);
        CHECK_OK(hem_op_wait(op, 0));
        CHECK_OK(hem_op_test(op, &done));
        CHECK(done);
    }
    CHECK_OK(hem_op_free(op));
}

/* Rank 0 comes late on purpose: the others see the operation run. */
static void running(struct rank *r, bool persistent) {
    struct sum sum;
    hem_op *op;
    size_t which = 9;
    bool done = true;

    harness_barrier(r->gate);
    if (r->me == 0)
        CHECK_OK(hem_barrier(r->gate, 1, LIMIT));
    op = persistent ? plan(r, &sum, 4) : start(r, &sum, 4);
    if (persistent)
        CHECK_OK(hem_op_start(op));
    if (r->me != 0) {
        ARG(hem_op_start(op));
        CHECK_OK(hem_op_test(op, &done));
        CHECK(!done);
        for (int i = 0; i < 3; i++)
            CHECK_STATUS(hem_op_wait(op, HEM_US(300) * i), HEM_ERR_TIMEOUT);
        CHECK_STATUS(hem_op_wait_all(&op, 1, HEM_MS(1)), HEM_ERR_TIMEOUT);
        CHECK_STATUS(hem_op_wait_any(&op, 1, &which, HEM_MS(1)), HEM_ERR_TIMEOUT);
        ARG(hem_op_wait(op, -2));
        CHECK_EQ(which, 9);
        CHECK_EQ(sum.got, -1);
        CHECK_OK(hem_barrier(r->gate, 1, LIMIT));
    }
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_EQ(sum.got, 4 * r->size);
    if (!persistent)
        ARG(hem_op_start(op));
    CHECK_OK(hem_op_free(op));
}

static void lists(struct rank *r) {
    struct sum sums[OPS];
    hem_op *ops[OPS + 2] = {NULL};
    hem_op *none[3] = {NULL};
    char byte = 0;
    size_t which = 9;

    for (int i = 0; i < OPS; i++)
        ops[i + 1] = i == 2 ? NULL : start(r, &sums[i], i);
    CHECK_OK(hem_op_wait_all(ops, OPS + 2, LIMIT));
    for (int i = 0; i < OPS; i++)
        CHECK(i == 2 || sums[i].got == i * r->size);
    CHECK_OK(hem_op_wait_any(ops, OPS + 2, &which, 0));
    CHECK_EQ(which, 1);
    hem_op_free(ops[1]);
    ops[1] = start_receive(r, 3, &byte, 1);
    CHECK_OK(hem_op_wait_any(ops, OPS + 2, &which, 0));
    CHECK_EQ(which, 2);
    CHECK_STATUS(hem_op_wait_all(ops, OPS + 2, HEM_MS(1)), HEM_ERR_TIMEOUT);
    harness_barrier(r->gate);
    send(r, 3, "x", 1);
    CHECK_OK(hem_op_wait_all(ops, OPS + 2, LIMIT));
    CHECK(byte == 'x');
    CHECK_EQ(hem_op_bytes(ops[1]), 1);
    CHECK_OK(hem_op_wait_all(none, 3, LIMIT));
    CHECK_OK(hem_op_wait_all(NULL, 0, LIMIT));
    ARG(hem_op_wait_all(NULL, 1, LIMIT));
    ARG(hem_op_wait_any(none, 3, &which, LIMIT));
    ARG(hem_op_wait_any(ops, OPS + 2, NULL, LIMIT));
    for (int i = 0; i < OPS + 2; i++)
        CHECK_OK(hem_op_free(ops[i]));
}

/* Of several failures the first in the list counts, once all are done. */
static void failures(struct rank *r) {
    char small[4];
    char large[64];
    hem_op *ops[3] = {start_receive(r, 4, large, sizeof large), start_receive(r, 5, small, 3),
                      NULL};
    size_t which = 9;
    bool done = false;

    ops[2] = start_receive(r, 6, small, 2);
    harness_barrier(r->gate);
    for (uint32_t channel = 4; channel < 7; channel++)
        CHECK_OK(
            hem_send(r->world, harness_right(r->world), channel, "0123456789", channel + 4, LIMIT));
    CHECK_STATUS(hem_op_wait_all(ops, 3, LIMIT), HEM_ERR_RANGE);
    CHECK_SENTENCE("9");
    CHECK_SENTENCE("3");
    CHECK_OK(hem_op_wait(ops[0], 0));
    CHECK_EQ(hem_op_bytes(ops[0]), 8);
    CHECK_STATUS(hem_op_test(ops[2], &done), HEM_ERR_RANGE);
    CHECK(done);
    CHECK_SENTENCE("10");
    CHECK_STATUS(hem_op_wait_any(ops + 1, 2, &which, 0), HEM_ERR_RANGE);
    CHECK_EQ(which, 0);
    CHECK_STATUS(hem_op_wait(ops[1], 0), HEM_ERR_RANGE);
    CHECK_SENTENCE("9");
    for (int i = 0; i < 3; i++)
        CHECK_OK(hem_op_free(ops[i]));
}

/* Freeing. */

/* Rank 0 frees what the others wait for: they are told, and the next collective works. */
static void free_in_flight(struct rank *r, size_t count, bool persistent) {
    uint8_t *data = calloc(count, 1);
    hem_coll coll = {.struct_size = sizeof coll,
                     .kind = HEM_ALLREDUCE,
                     .dtype = HEM_U8,
                     .op = HEM_MAX,
                     .send = data,
                     .recv = data,
                     .count = count};
    hem_op *op = NULL;

    CHECK(data != NULL);
    if (r->me == r->size - 1 && r->size > 1) {
        /* Comes when rank 0 has gone already. */
        CHECK_OK(hem_barrier(r->gate, 2, LIMIT));
        CHECK_STATUS(hem_coll_run(r->world, &coll, LIMIT), HEM_ERR_REVOKED);
    } else {
        CHECK_OK(persistent ? hem_coll_plan(r->world, &coll, &op)
                            : hem_coll_start(r->world, &coll, &op));
        if (persistent)
            CHECK_OK(hem_op_start(op));
        CHECK_OK(hem_progress(r->world));
        if (r->me != 0) {
            CHECK_OK(hem_barrier(r->gate, 2, LIMIT));
            CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_REVOKED);
        }
        CHECK_OK(hem_op_free(op));
        if (r->me == 0)
            CHECK_OK(hem_barrier(r->gate, 2, LIMIT));
    }
    free(data);
    works(r);
}

static void free_receive(struct rank *r) {
    char byte = 'o';
    hem_op *op = start_receive(r, 7, &byte, 1);

    CHECK_OK(hem_op_free(op));
    harness_barrier(r->gate);
    send(r, 7, "n", 1);
    CHECK(byte == 'o');
    CHECK_OK(hem_recv(r->world, harness_left(r->world), 7, &byte, 1, NULL, LIMIT));
    CHECK(byte == 'n');
    CHECK_OK(hem_op_free(NULL));
}

/* Handles of each state live on after the world. */
static void after_close(struct rank *r) {
    struct rank part = *r;
    struct sum sums[3];
    char byte;
    hem_op *ops[4];
    bool done;

    CHECK_OK(hem_world_split(r->world, 0, 0, &part.world));
    ops[0] = plan(&part, &sums[0], 1);
    ops[1] = start(&part, &sums[1], 2);
    ops[2] = start(&part, &sums[2], 3);
    CHECK_OK(hem_op_wait(ops[2], LIMIT));
    ops[3] = start_receive(&part, 1, &byte, 1);
    CHECK_OK(hem_op_wait(ops[1], LIMIT));
    CHECK_OK(hem_world_close(part.world));
    for (int i = 0; i < 4; i++) {
        CHECK_STATUS(hem_op_test(ops[i], &done), HEM_ERR_CLOSED);
        CHECK_STATUS(hem_op_wait(ops[i], 0), HEM_ERR_CLOSED);
        CHECK_STATUS(hem_op_start(ops[i]), HEM_ERR_CLOSED);
        CHECK_STATUS(hem_op_on_done(ops[i], NULL, NULL), HEM_ERR_CLOSED);
        CHECK_OK(hem_op_free(ops[i]));
    }
}

static void no_op(void) {
    size_t which;
    bool done;

    ARG(hem_op_start(NULL));
    ARG(hem_op_test(NULL, &done));
    ARG(hem_op_wait(NULL, 0));
    ARG(hem_op_wait_any(NULL, 1, &which, 0));
    ARG(hem_progress(NULL));
    CHECK_EQ(hem_op_bytes(NULL), 0);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    int rounds = harness_rounds(10);

    r.gate = harness_window(world, 64);
    no_op();
    for (int round = 0; round < rounds; round++) {
        harness_step("round", (uint64_t)round);
        idle(&r);
        running(&r, false);
        running(&r, true);
        lists(&r);
        failures(&r);
        if (r.size > 1) {
            free_in_flight(&r, 8, round % 2);
            free_in_flight(&r, 300000, round % 2);
        }
        free_receive(&r);
        after_close(&r);
    }
    harness_destroy(r.gate);
    harness_close(world, HEM_OK);
    return 0;
}
