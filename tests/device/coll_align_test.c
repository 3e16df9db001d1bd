/*
 * Collectives on device buffers of every alignment: sending and receiving ones that begin 0 to 15 bytes behind
 * a multiple of 16, each combination of both for those that combine or gather, each distance for all others;
 * ranks differ. They leave what they leave on host buffers, and nothing beside them is touched.
 *
 * hem-test: ranks=2,3 modes=threads timeout=180
 */
#include "coll_kit.h"

static bool combines(int kind) {
    return kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
           kind == HEM_REDUCE_SCATTERV;
}

/* Short ones, which go with stamps, and long ones, which are copied and combined in vectors, with what is
 * left at both ends. */
static void one_case(coll_kit *kit, uint64_t seed, int kind, size_t send, size_t recv, bool brief) {
    static const hem_dtype types[] = {HEM_U8, HEM_F32, HEM_I16, HEM_F64};
    uint64_t number = (((uint64_t)kind * 16 + send) * 16 + recv) * 2 + (brief ? 1 : 0);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)kit->rank);
    hem_dtype dtype = types[harness_below(&rng, 4)];
    size_t element = hem_dtype_size(dtype);
    size_t count = (brief ? 300 + harness_below(&rng, 900)
                          : (size_t)270000 / (size_t)kit->size + harness_below(&rng, 90)) /
                   element;
    hem_op *op = NULL;
    harness_step("case", number);
    /* Where it is for rank 0; the next rank is 5 bytes further. */
    send = (send + 5 * (size_t)kit->rank) % 16;
    recv = (recv + 5 * (size_t)kit->rank) % 16;
    kit->recv_shift = (recv + 16 - send) % 16;
    coll_kit_set(kit, (hem_coll_kind)kind, dtype, combines(kind) ? HEM_SUM : (hem_reduction)0,
                 count, false, send, &rng, &own);
    kit->coll.blocks = DEVICE_FEW_BLOCKS;
    hem_coll device = coll_kit_coll(kit, true);
    CHECK_EQ((uintptr_t)device.recv % 16, recv);
    CHECK_OK(hem_coll_plan(kit->world, &device, &op));
    coll_kit_run(kit, op, 0);
    CHECK_OK(hem_op_free(op));
    coll_kit_clear(kit);
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    uint64_t seed = harness_seed(world);
    size_t sparse =
        harness_sanitized() || !device_stands_in() ? 5 : 1; /* plans of a GPU take long */
    for (int kind = HEM_BROADCAST; kind <= HEM_ALLTOALLV; kind++) {
        bool all = kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER || kind == HEM_ALLGATHER;
        for (size_t i = 0; i < 16; i++) {
            for (size_t k = 0; k < 16 && all; k += sparse)
                one_case(&kit, seed, kind, i, (i + k) % 16, false);
            one_case(&kit, seed, kind, i, i * 3 % 16, false);
            one_case(&kit, seed, kind, i, i * 5 % 16, true);
        }
    }
    coll_kit_close(&kit);
    harness_close(world, HEM_OK);
    return 0;
}
