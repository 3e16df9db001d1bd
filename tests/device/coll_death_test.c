/*
 * A rank dies while kernels of the others wait for it in a collective, in units and between barriers,
 * and while their hosts do, in units of which a thread has several: all end with HEM_ERR_PEER, later runs
 * are refused, and the survivors go on among themselves.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it
 * die by a signal: tests/script/device-coll-death.sh does that.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#include "coll_kit.h"

#include <signal.h>

#define PLANS 4
#define WORDS 20000

static hem_op *plan_sum(hem_world *world, uint64_t *memory, size_t count) {
    hem_coll c = coll_kit_sum(memory, count);
    hem_op *op = NULL;
    CHECK_OK(hem_coll_plan(world, &c, &op));
    return op;
}

static int die(coll_kit *kits, uint64_t *memory) {
    CHECK_OK(hem_sync(kits[0].world, LIMIT));
    harness_sleep_ms(50);
    const char *manner = getenv("HEM_TEST_DIE");
    if (manner != NULL && strcmp(manner, "kill") == 0)
        (void)raise(SIGKILL);
    for (int i = 0; i < 2; i++)
        device_stream_destroy(kits[i].native);
    device_free(memory);
    harness_forget();
    return 0;
}

/* The first two on streams, the third by the host, the last when all is over. */
static void survive(coll_kit *kits, hem_op **ops) {
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_op_start_on(ops[i], kits[i].stream));
    CHECK_OK(hem_op_start(ops[2]));
    CHECK_OK(hem_sync(kits[0].world, LIMIT)); /* the victim dies only now */
    CHECK_STATUS(hem_op_wait(ops[2], LIMIT), HEM_ERR_PEER);
    for (int i = 0; i < 2; i++) {
        device_stream_sync(kits[i].native);
        CHECK_STATUS(hem_op_status(ops[i]), HEM_ERR_PEER);
        CHECK_STATUS(hem_op_start_on(ops[i], kits[i].stream), HEM_ERR_PEER);
    }
    CHECK_OK(hem_op_start(ops[0]));
    CHECK_STATUS(hem_op_wait(ops[0], LIMIT), HEM_ERR_PEER);
    /* Another survivor may have had its answer to this one by now. */
    hem_status status = hem_op_start_on(ops[3], kits[0].stream);
    CHECK(status == HEM_OK || status == HEM_ERR_PEER);
    device_stream_sync(kits[0].native);
    CHECK_STATUS(hem_op_status(ops[3]), HEM_ERR_PEER);
}

static void go_on(hem_world *world, device_stream native, uint64_t *memory) {
    hem_world *rest = NULL;
    hem_stream *stream = NULL;
    uint64_t own = 7, sum = 0;
    CHECK_OK(hem_world_shrink(world, &rest));
    CHECK_OK(hem_stream_cuda(rest, native, &stream));
    device_copy(memory, &own, sizeof own);
    hem_op *op = plan_sum(rest, memory, WORDS);
    CHECK_OK(hem_op_start_on(op, stream));
    device_stream_sync(native);
    CHECK_OK(hem_op_status(op));
    device_copy(&sum, memory, sizeof sum);
    CHECK_EQ(sum, 7 * (uint64_t)hem_world_size(rest));
    CHECK_OK(hem_op_free(op));
    CHECK_OK(hem_stream_destroy(stream));
    CHECK_OK(hem_world_close(rest));
}

int rank_main(hem_world *world) {
    const size_t counts[PLANS] = {
        10, WORDS, coll_form_deep_words(hem_world_size(world), DEVICE_FEW_BLOCKS, true), 100};
    uint64_t *memory = (uint64_t *)device_alloc(PLANS * WORDS * 8);
    coll_kit kits[2] = {coll_kit_open(world), coll_kit_open(world)};
    hem_op *ops[PLANS];
    for (int i = 0; i < PLANS; i++)
        ops[i] = plan_sum(world, memory + (size_t)i * WORDS, counts[i]);
    CHECK(coll_form_is_long(ops[1]));
    coll_form_check_deep(ops[2], kits[0].size, true);
    if (kits[0].rank == kits[0].size - 1)
        return die(kits, memory);
    survive(kits, ops);
    for (int i = 0; i < PLANS; i++)
        CHECK_OK(hem_op_free(ops[i]));
    go_on(world, kits[0].native, memory);
    for (int i = 0; i < 2; i++)
        coll_kit_close(&kits[i]);
    device_free(memory);
    if (getenv("HEM_TEST_DIE") != NULL)
        printf("survived %d\n", hem_world_rank(world));
    harness_close(world, HEM_ERR_PEER);
    return 0;
}
