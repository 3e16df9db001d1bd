/*
 * Collectives where multicast is on leave what they leave on host buffers: the kinds, types and
 * operations that have that way, in place and not, at odd addresses; and many runs one after the
 * other, eager and of a graph, without anybody waiting in between. Where ranks share a GPU, or it
 * has no multicast, the same is done in the ordinary ways.
 *
 * hem-test: ranks=2,3,4 modes=processes,threads timeout=180 delayed=3
 */
#include "multi_kit.h"

#define RUNS 20

typedef struct reduction {
    hem_dtype dtype;
    hem_reduction op;
} reduction;

static const reduction reductions[] = {{HEM_F16, HEM_SUM}, {HEM_BF16, HEM_SUM}, {HEM_F32, HEM_SUM},
                                       {HEM_F64, HEM_SUM}, {HEM_U32, HEM_SUM},  {HEM_I64, HEM_SUM},
                                       {HEM_U32, HEM_MIN}, {HEM_I32, HEM_MAX},  {HEM_U64, HEM_MAX},
                                       {HEM_I64, HEM_MIN}, {HEM_U8, HEM_BAND},  {HEM_I16, HEM_BOR},
                                       {HEM_U64, HEM_BXOR}};

static void try_reductions(coll_kit *kit, uint64_t seed) {
    static const hem_coll_kind kinds[3] = {HEM_ALLREDUCE, HEM_REDUCE_SCATTER, HEM_REDUCE_SCATTERV};
    size_t count = sizeof reductions / sizeof reductions[0];
    size_t cases = harness_sanitized() ? count : 3 * count;
    for (size_t i = 0; i < cases; i++) {
        const reduction *r = &reductions[i % count];
        hem_coll_kind kind = kinds[(i + i / count) % 3];
        harness_step("reduction", i);
        multi_kit_set(kit, kind, r->dtype, r->op, i % 2 != 0, hem_dtype_size(r->dtype) * (i % 5),
                      seed, i);
        coll_kit_check(kit, i == 0);
    }
}

static void try_copies(coll_kit *kit, uint64_t seed) {
    static const hem_coll_kind kinds[3] = {HEM_ALLGATHER, HEM_ALLGATHERV, HEM_BROADCAST};
    for (size_t i = 0; i < 9; i++) {
        harness_step("copy", i);
        multi_kit_set(kit, kinds[i % 3], HEM_I16, (hem_reduction)0, i % 2 != 0, i % 7, seed,
                      1000 + i);
        coll_kit_check(kit, false);
    }
}

/* Each run makes the sum of all ranks' of what the last one left. */
static void try_runs(coll_kit *kit) {
    size_t count = MULTI_KIT_BYTES / 8 + 3;
    uint64_t *host = (uint64_t *)malloc(8 * count);
    uint64_t *memory = (uint64_t *)device_alloc(8 * count);
    hem_op *op = NULL;
    hem_coll c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = c.recv = memory;
    c.count = count;
    CHECK(host != NULL);
    for (size_t i = 0; i < count; i++)
        host[i] = i * (uint64_t)(1 + kit->rank);
    device_copy(memory, host, 8 * count);
    CHECK_OK(hem_coll_plan(kit->world, &c, &op));
    device_capture_begin(kit->native);
    CHECK_OK(hem_op_start_on(op, kit->stream));
    device_graph graph = device_capture_end(kit->native);
    uint64_t factor = (uint64_t)kit->size * (uint64_t)(kit->size + 1) / 2;
    for (int run = 0; run < RUNS; run++) {
        if (run % 3 == 0)
            CHECK_OK(hem_op_start_on(op, kit->stream));
        else
            device_graph_launch(graph, kit->native);
        factor *= run == 0 ? 1 : (uint64_t)kit->size;
    }
    device_stream_sync(kit->native);
    CHECK_OK(hem_op_status(op));
    device_copy(host, memory, 8 * count);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(host[i], i * factor);
    device_graph_destroy(graph);
    CHECK_OK(hem_op_free(op));
    device_free(memory);
    free(host);
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    uint64_t seed = harness_seed(world);
    try_reductions(&kit, seed);
    try_copies(&kit, seed);
    try_runs(&kit);
    coll_kit_close(&kit);
    harness_close(world, HEM_OK);
    return 0;
}
