/*
 * Reductions of device buffers have the same bits as those of host buffers: all types with all
 * operations that they have, few elements and many, also not a number, infinities and zeros with a
 * sign, and pairs with locations; what the host does not have is HEM_ERR_UNSUPPORTED on all ranks.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=240 delayed=2
 */
#include "coll_kit.h"

static void one_case(coll_kit *kit, uint64_t seed, int dtype, int op, size_t count) {
    uint64_t number = ((uint64_t)dtype * 100 + (uint64_t)op) * 100000 + count;
    harness_step("case", number);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)kit->rank);
    hem_coll_kind kind = number % 3 == 0 ? HEM_REDUCE_SCATTER : HEM_ALLREDUCE;
    size_t shift = harness_below(&rng, 2) * hem_dtype_size((hem_dtype)dtype);
    coll_kit_set(kit, kind, (hem_dtype)dtype, (hem_reduction)op, count, harness_below(&rng, 2) != 0,
                 shift, &rng, &own);
    kit->coll.blocks = (uint32_t)harness_below(&rng, 2); /* one block: long on a GPU, too */
    hem_coll host = coll_kit_coll(kit, false), device = coll_kit_coll(kit, true);
    hem_op *ops[2] = {NULL, NULL};
    hem_status status = hem_coll_plan(kit->world, &host, &ops[0]);
    if (status != HEM_OK) {
        CHECK_STATUS(hem_coll_plan(kit->world, &device, &ops[1]), HEM_ERR_UNSUPPORTED);
        CHECK_OK(hem_op_free(ops[0]));
        coll_kit_clear(kit);
        return;
    }
    CHECK_OK(hem_op_free(ops[0]));
    coll_kit_check(kit, false);
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    uint64_t seed = harness_seed(world);
    for (int dtype = HEM_BYTE; dtype <= HEM_BOOL; dtype++)
        for (int op = HEM_SUM; op <= HEM_MAXLOC; op++) {
            one_case(&kit, seed, dtype, op, 33);
            one_case(&kit, seed, dtype, op, 9001);
        }
    coll_kit_close(&kit);
    harness_close(world, HEM_OK);
    return 0;
}
