/*
 * A rank dies while the others make a team for multicast with it, or while their kernels wait for it:
 * all end with HEM_ERR_PEER, and the survivors go on among themselves.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE says where it
 * dies by a signal: "kill" before its run, or in a step of making the team, 1 to 3:
 * tests/script/device-coll-multi-death.sh.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60 labels=standin
 */
#include "multi_kit.h"

#include "device/standin/standin.h"

#include <signal.h>

#define WORDS (MULTI_KIT_BYTES / 8)

static hem_status plan_sum(hem_world *world, uint64_t *memory, hem_op **op_p) {
    hem_coll c = coll_kit_sum(memory, WORDS);
    c.memory = HEM_MEMORY_DEVICE;
    return hem_coll_plan(world, &c, op_p);
}

static int die(coll_kit *kit, uint64_t *memory) {
    harness_sleep_ms(50);
    if (getenv("HEM_TEST_DIE") != NULL)
        (void)raise(SIGKILL);
    device_stream_destroy(kit->native);
    device_free(memory);
    harness_forget();
    return 0;
}

/* On a stream, then by the host, then when all is over. */
static void survive(coll_kit *kit, hem_op *op) {
    CHECK_OK(hem_op_start_on(op, kit->stream));
    device_stream_sync(kit->native);
    CHECK_STATUS(hem_op_status(op), HEM_ERR_PEER);
    CHECK_OK(hem_op_start(op));
    CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_PEER);
    CHECK_STATUS(hem_op_start_on(op, kit->stream), HEM_ERR_PEER);
    CHECK_OK(hem_op_free(op));
}

static void go_on(hem_world *world, device_stream native, uint64_t *memory) {
    hem_world *rest = NULL;
    hem_stream *stream = NULL;
    hem_op *op = NULL;
    uint64_t own[2] = {7, 0}, sum = 0;
    CHECK_OK(hem_world_shrink(world, &rest));
    CHECK_OK(hem_stream_cuda(rest, native, &stream));
    device_copy(memory + WORDS - 2, own, sizeof own);
    CHECK_OK(plan_sum(rest, memory, &op));
    CHECK_OK(hem_op_start_on(op, stream));
    device_stream_sync(native);
    CHECK_OK(hem_op_status(op));
    device_copy(&sum, memory + WORDS - 2, sizeof sum);
    CHECK_EQ(sum, 7 * (uint64_t)hem_world_size(rest));
    CHECK_OK(hem_op_free(op));
    CHECK_OK(hem_stream_destroy(stream));
    CHECK_OK(hem_world_close(rest));
}

int rank_main(hem_world *world) {
    const char *where = getenv("HEM_TEST_DIE");
    int step = where != NULL ? atoi(where) : 0;
    uint64_t *memory = (uint64_t *)device_alloc(WORDS * 8);
    coll_kit kit = coll_kit_open(world);
    hem_op *op = NULL;
    /* Only the first rank makes a team. */
    bool dies = kit.rank == (step == HEMI_STANDIN_TEAM_MAKE ? 0 : kit.size - 1);
    if (dies && step != 0)
        hemi_standin_team_refuse((hemi_standin_team_step)step, true);
    CHECK_STATUS(plan_sum(world, memory, &op), step == 0 ? HEM_OK : HEM_ERR_PEER);
    CHECK(step != 0 || hemi_standin_team_bound() > 0);
    if (dies)
        return die(&kit, memory);
    if (step == 0)
        survive(&kit, op);
    go_on(world, kit.native, memory);
    coll_kit_close(&kit);
    device_free(memory);
    if (where != NULL)
        printf("survived %d\n", hem_world_rank(world));
    harness_close(world, HEM_ERR_PEER);
    return 0;
}
