/*
 * Runs that cannot end: a time limit in the kernel, which the ranks that come later hear of; a rank
 * that frees what it has started; a world that is revoked, and one that is closed before the
 * operation is freed.
 *
 * hem-test: ranks=2,3,4 modes=processes,threads timeout=60
 */
#include "coll_kit.h"

/* Each form has its own kernel, or its own place to wait in one. */
enum {
    SHORT,
    DEEP, /* several words for each thread */
    LONG,
    FORMS
};

#define FEW  10
#define MANY 17000

static hem_op *plan_sum(hem_world *world, uint64_t *memory, int form, int64_t timeout_ns) {
    int size = hem_world_size(world);
    const size_t counts[FORMS] = {FEW, coll_form_deep_words(size, DEVICE_FEW_BLOCKS, true), MANY};
    hem_coll c = coll_kit_sum(memory, counts[form]);
    hem_op *op = NULL;
    c.timeout_ns = timeout_ns;
    CHECK_OK(hem_coll_plan(world, &c, &op));
    if (form == DEEP)
        coll_form_check_deep(op, size, true);
    CHECK_EQ(coll_form_is_long(op), form == LONG);
    return op;
}

/* All but the last rank come at once; that one hears why it is too late. */
static void late(coll_kit *kit, uint64_t *memory, int form) {
    int64_t begun = harness_now(); /* before any rank has planned it */
    hem_op *op = plan_sum(kit->world, memory, form, HEM_MS(80));
    bool last = kit->rank == kit->size - 1;
    if (!last) {
        CHECK_OK(hem_op_start_on(op, kit->stream));
        device_stream_sync(kit->native);
        CHECK_STATUS(hem_op_status(op), HEM_ERR_TIMEOUT);
        CHECK(harness_now() - begun >= HEM_MS(80));
    }
    CHECK_OK(hem_sync(kit->world, LIMIT));
    if (last)
        CHECK_STATUS(hem_op_start_on(op, kit->stream), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_status(op), HEM_ERR_TIMEOUT);
    CHECK_OK(hem_op_free(op));
}

/* It gives up, and so does who waits in a kernel for it. */
static void cancel(coll_kit *kit, uint64_t *memory, int form) {
    hem_op *op = plan_sum(kit->world, memory, form, 0);
    bool waits = kit->rank == 1 && kit->size > 2;
    if (kit->rank == 0)
        CHECK_OK(hem_op_start(op));
    else if (waits)
        CHECK_OK(hem_op_start_on(op, kit->stream));
    CHECK_OK(hem_sync(kit->world, LIMIT)); /* nobody hears of the end before it has begun */
    if (waits) {
        device_stream_sync(kit->native);
        CHECK_STATUS(hem_op_status(op), HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_op_free(op));
}

static void revoke(coll_kit *kit, uint64_t *memory) {
    hem_world *part = NULL;
    CHECK_OK(hem_world_split(kit->world, 0, kit->rank, &part));
    hem_op *ops[FORMS];
    for (int form = 0; form < FORMS; form++)
        ops[form] = plan_sum(part, memory + (size_t)form * MANY, form, 0);
    if (kit->rank == 0) {
        harness_sleep_ms(20);
        CHECK_OK(hem_world_revoke(part));
    } else {
        for (int i = 0; i < FORMS; i++)
            CHECK_OK(hem_op_start_on(ops[i], kit->stream));
        device_stream_sync(kit->native);
        for (int i = 0; i < FORMS; i++)
            CHECK_STATUS(hem_op_status(ops[i]), HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_sync(kit->world, LIMIT));
    CHECK_STATUS(hem_op_start_on(ops[0], kit->stream), HEM_ERR_REVOKED);
    for (int i = 1; i < FORMS; i++)
        (void)hem_op_free(ops[i]);
    (void)hem_world_close(part);
    CHECK_STATUS(hem_op_status(ops[0]), HEM_ERR_CLOSED);
    CHECK_OK(hem_op_free(ops[0]));
}

int rank_main(hem_world *world) {
    uint64_t *memory = (uint64_t *)device_alloc((size_t)FORMS * MANY * 8);
    coll_kit kit = coll_kit_open(world);
    for (int form = 0; form < FORMS; form++) {
        harness_step("form", (uint64_t)form);
        late(&kit, memory, form);
        cancel(&kit, memory, form);
    }
    revoke(&kit, memory);
    coll_kit_close(&kit);
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
