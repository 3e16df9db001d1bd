/*
 * Every kind of collective on device buffers leaves what it leaves on host buffers, byte for byte: no,
 * one, few and thousands of elements, in place and not, at odd addresses, on a stream, started by the
 * host, and blocking, with whatever number of blocks each rank allows. So do those that only move elements of
 * any size that have no type.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=240 delayed=3 labels=legacy
 */
#include "coll_kit.h"

static const size_t sizes[] = {0, 1, 7, 100, 5001, 30000};

static bool combines(int kind) {
    return kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
           kind == HEM_REDUCE_SCATTERV;
}

static void one_case(coll_kit *kit, uint64_t seed, int kind, size_t s, int in_place) {
    uint64_t number = ((uint64_t)kind * 10 + s) * 2 + (uint64_t)in_place;
    harness_step("case", number);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)kit->rank);
    static const hem_dtype types[] = {HEM_F32, HEM_I16, HEM_F64, HEM_BF16, HEM_U8};
    hem_dtype dtype = types[harness_below(&rng, 5)];
    hem_reduction op =
        combines(kind) ? (harness_below(&rng, 3) == 0 ? HEM_MAX : HEM_SUM) : (hem_reduction)0;
    size_t count = sizes[s] / (kit->size > 4 && s > 4 ? 4 : 1);
    /* Aligned, by some elements, and on each rank as it comes. */
    size_t element = hem_dtype_size(dtype), shift = 0;
    size_t how = harness_below(&rng, 4);
    if (how == 1)
        shift = element * harness_below(&rng, 9);
    else if (how == 2)
        shift = element * harness_below(&own, 9);
    else if (how == 3)
        shift = harness_below(&own, 32);
    coll_kit_set(kit, (hem_coll_kind)kind, dtype, op, count, in_place != 0, shift, &rng, &own);
    kit->coll.blocks = harness_below(&own, 2) == 0 ? 0 : 1 + (uint32_t)harness_below(&own, 40);
    coll_kit_check(kit, s == 2);
}

/* Elements that are no words, and such as no type has. Each kind has few and many, of different ones. */
static void one_element(coll_kit *kit, uint64_t seed, int kind, size_t i) {
    static const size_t elements[] = {3, 12, 16};
    static const size_t counts[] = {90, 1700, 12000};
    uint64_t number = 1000 + (uint64_t)kind * 10 + i;
    harness_step("case", number);
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)kit->rank);
    bool in_place = harness_below(&rng, 3) == 0;
    size_t shift = harness_below(&rng, 2) * harness_below(&own, 32);
    kit->element = elements[i];
    coll_kit_set(kit, (hem_coll_kind)kind, (hem_dtype)0, (hem_reduction)0,
                 counts[(i + (size_t)kind) % 3], in_place, shift, &rng, &own);
    kit->coll.blocks = (uint32_t)harness_below(&rng, 4);
    coll_kit_check(kit, i == 1);
    kit->element = 0;
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    uint64_t seed = harness_seed(world);
    size_t count = harness_sanitized() ? 5 : sizeof sizes / sizeof sizes[0];
    for (int kind = HEM_BROADCAST; kind <= HEM_ALLTOALLV; kind++)
        for (size_t s = 0; s < count; s++)
            for (int in_place = 0; in_place < 2; in_place++)
                one_case(&kit, seed, kind, s, in_place);
    for (int kind = HEM_BROADCAST; kind <= HEM_ALLTOALLV; kind++)
        for (size_t i = 0; i < 3 && !combines(kind); i++)
            one_element(&kit, seed, kind, i);
    coll_kit_close(&kit);
    harness_close(world, HEM_OK);
    return 0;
}
