/*
 * Buffers that peers cannot map are staged: here each rank's are in the device memory of its right
 * neighbour, which is not its own to show. Every kind leaves what it leaves on host buffers.
 *
 * hem-test: ranks=2,3,4 modes=processes,threads timeout=120
 */
#include "coll_kit.h"

#define ROOM (4u << 20)

static void one_case(coll_kit *kit, uint64_t seed, int kind, int in_place) {
    uint64_t number = (uint64_t)kind * 2 + (uint64_t)in_place;
    harness_step("case", number);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)kit->rank);
    bool combines = kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
                    kind == HEM_REDUCE_SCATTERV;
    coll_kit_set(kit, (hem_coll_kind)kind, HEM_F32, combines ? HEM_SUM : (hem_reduction)0, 20001,
                 in_place != 0, 4 * harness_below(&own, 4), &rng, &own);
    kit->coll.blocks = DEVICE_FEW_BLOCKS;
    coll_kit_check(kit, false);
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    uint64_t seed = harness_seed(world);
    hem_window_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bytes = ROOM;
    options.kind = HEM_MEMORY_DEVICE;
    hem_window *window = NULL;
    CHECK_OK(hem_window_create(world, &options, &window));
    kit.arena = (unsigned char *)hem_window_peer_address(window, harness_right(world), 0);
    kit.arena_bytes = ROOM;
    CHECK(kit.arena != NULL);
    for (int kind = HEM_BROADCAST; kind <= HEM_ALLTOALLV; kind++)
        for (int in_place = 0; in_place < 2; in_place++)
            one_case(&kit, seed, kind, in_place);
    coll_kit_close(&kit);
    CHECK_OK(hem_window_destroy(window));
    harness_close(world, HEM_OK);
    return 0;
}
