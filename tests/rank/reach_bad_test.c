/*
 * What cannot be planned is an error on all ranks, naming the one at fault: keys that fall on a rank or
 * from one to the next, keys here and none there, rows of different width, sums that overflow, nonsense.
 * What goes wrong in a run ends it everywhere: a time limit, a handle that is freed, a plan that is
 * destroyed, a revoke; never a hang, buffers are the caller's again, and other plans go on.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "harness.h"

static hem_reach_options good(void) {
    return (hem_reach_options){.struct_size = sizeof(hem_reach_options),
                               .rows = 10,
                               .row_bytes = 8,
                               .back_rows = 15,
                               .ahead_rows = 15};
}

static void plans(hem_world *world) {
    int me = hem_world_rank(world);
    int64_t keys[10];
    hem_reach *reach = NULL;
    hem_reach_options o = good();
    uint64_t before;

    for (int i = 0; i < 10; i++)
        keys[i] = me * 100 + i;
    o.row_bytes = me == 1 ? 16 : 8;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_MISMATCH);
    CHECK_NAMES_RANK(1);
    o.row_bytes = 0;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_ARG);
    o = good();
    o.keys = me == 1 ? NULL : keys;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_MISMATCH);
    CHECK_NAMES_RANK(1);
    o.keys = keys;
    o.back_key = me == 1 ? -1 : 5;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_ARG);
    CHECK_NAMES_RANK(1);
    o.back_key = 5;
    if (me == 1)
        keys[4] = 0;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_RANGE);
    CHECK_NAMES_RANK(1);
    for (int i = 0; i < 10; i++)
        keys[i] = me == 1 ? -7 : me * 100 + i;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_RANGE);
    CHECK_NAMES_RANK(1);
    o = good();
    o.rows = me == 0 ? UINT64_MAX / 8 : 10;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_RANGE);
    o.rows = (uint64_t)PTRDIFF_MAX / 8 - 5;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_RANGE);
    o = good();
    o.struct_size = me == 1 ? 1 : sizeof o;
    CHECK_STATUS(hem_reach_plan(world, &o, &reach), HEM_ERR_ARG);
    CHECK(reach == NULL);
    CHECK_STATUS(hem_reach_rows(NULL, &before, &before), HEM_ERR_ARG);
    CHECK_OK(hem_reach_destroy(NULL));
}

typedef struct kit {
    hem_reach *reach;
    unsigned char *rows;
    unsigned char *before;
    unsigned char *after;
    size_t bytes;
} kit;

static void set_up(kit *k, hem_world *world, size_t row_bytes) {
    hem_reach_options o = good();
    uint64_t before;
    uint64_t after;

    o.row_bytes = row_bytes;
    CHECK_OK(hem_reach_plan(world, &o, &k->reach));
    CHECK_OK(hem_reach_rows(k->reach, &before, &after));
    k->bytes = 10 * row_bytes;
    k->rows = malloc(k->bytes);
    harness_fill(k->rows, k->bytes, (uint64_t)hem_world_rank(world));
    k->before = malloc(before * row_bytes + 1);
    k->after = malloc(after * row_bytes + 1);
}

static hem_status go(kit *k, int64_t timeout_ns) {
    return hem_reach_run(k->reach, k->rows, k->before, k->after, timeout_ns);
}

static void clean_up(kit *k) {
    CHECK_OK(hem_reach_destroy(k->reach));
    free(k->rows);
    free(k->before);
    free(k->after);
}

/* Rank 1 does not come until rank 0 has given up. */
static void given_up(hem_world *world, size_t row_bytes, int how) {
    int me = hem_world_rank(world);
    kit k;
    kit other;
    hem_op *op = NULL;
    hem_op *second = NULL;

    set_up(&k, world, row_bytes);
    set_up(&other, world, row_bytes);
    CHECK_OK(go(&k, LIMIT));
    CHECK_STATUS(hem_reach_run(k.reach, NULL, k.before, k.after, LIMIT), HEM_ERR_ARG);
    if (me == 0) {
        if (how == 0) {
            CHECK_STATUS(go(&k, HEM_MS(20)), HEM_ERR_TIMEOUT);
        } else {
            CHECK_OK(hem_reach_start(k.reach, k.rows, k.before, k.after, &op));
            CHECK_STATUS(hem_reach_start(k.reach, k.rows, k.before, k.after, &second), HEM_ERR_ARG);
            CHECK_STATUS(hem_op_wait(op, HEM_MS(5)), HEM_ERR_TIMEOUT);
        }
        if (how == 1)
            CHECK_OK(hem_op_free(op));
        if (how == 2) {
            CHECK_OK(hem_reach_destroy(k.reach));
            k.reach = NULL;
            CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_REVOKED);
            CHECK_OK(hem_op_free(op));
        } else {
            CHECK_STATUS(go(&k, LIMIT), HEM_ERR_REVOKED);
        }
        memset(k.rows, 0xdd, k.bytes);
        CHECK_OK(hem_send(world, 1, 0, NULL, 0, LIMIT));
    } else {
        hem_status status = HEM_OK;
        if (me == 1)
            CHECK_OK(hem_recv(world, 0, 0, NULL, 0, NULL, LIMIT));
        while (status == HEM_OK)
            status = go(&k, LIMIT);
        CHECK_EQ(status, HEM_ERR_REVOKED);
        CHECK_STATUS(go(&k, LIMIT), HEM_ERR_REVOKED);
    }
    CHECK_OK(go(&other, LIMIT));
    clean_up(&k);
    CHECK_OK(hem_world_size(world) < 2 ? HEM_OK : go(&other, LIMIT));
    clean_up(&other);
}

static void revoked(hem_world *world) {
    hem_world *copy = NULL;
    kit k;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    set_up(&k, copy, 8);
    CHECK_OK(go(&k, LIMIT));
    CHECK_OK(hem_sync(world, LIMIT));
    if (hem_world_rank(world) == 0) {
        harness_sleep_ms(5);
        CHECK_OK(hem_world_revoke(copy));
    } else {
        hem_status status = HEM_OK;
        while (status == HEM_OK) /* far away ranks need not wait for rank 0 */
            status = go(&k, LIMIT);
        CHECK_EQ(status, HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_sync(world, LIMIT));
    hem_status closed = hem_world_close(copy);
    CHECK(closed == HEM_OK || closed == HEM_ERR_REVOKED);
    CHECK_STATUS(go(&k, LIMIT), HEM_ERR_CLOSED);
    clean_up(&k);
}

int rank_main(hem_world *world) {
    static const size_t widths[] = {8, 500, 200000};

    plans(world);
    for (size_t i = 0; i < 3; i++)
        for (int how = 0; how < 3; how++) {
            harness_step("case", i * 3 + (size_t)how);
            given_up(world, widths[i], how);
        }
    revoked(world);
    harness_close(world, HEM_OK);
    return 0;
}
