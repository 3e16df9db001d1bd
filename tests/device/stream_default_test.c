/*
 * The streams that nobody makes. The default stream (NULL and cudaStreamLegacy) is refused, with a sentence, where
 * ranks are threads that share a GPU, or have not said yet which one is theirs; where they are processes, a
 * window's kernel, a pipe, an exchange and collectives on it are right. So they are on cudaStreamPerThread,
 * everywhere.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#include "all_kit.h"

#define GPUS 64

static const device_default legacies[] = {DEVICE_NULL, DEVICE_LEGACY};

static void refused(hem_world *world) {
    for (size_t i = 0; i < sizeof legacies / sizeof legacies[0]; i++) {
        hem_stream *stream = NULL;
        harness_step("refused", i);
        CHECK_STATUS(hem_stream_cuda(world, device_default_stream(legacies[i]), &stream),
                     HEM_ERR_UNSUPPORTED);
        CHECK_SENTENCE("default stream");
        CHECK(stream == NULL);
    }
}

/* The others may yet turn out to have the same GPU. */
static void check_early(hem_world *world) {
    if (hem_world_rank(world) == 0 && harness_threads() && hem_world_size(world) > 1)
        refused(world);
    CHECK_OK(hem_sync(world, LIMIT));
}

/* Open all devices. @return whether another rank of this process has the same one. */
static bool open_all(hem_world *world) {
    uint64_t users[GPUS] = {0};
    hem_device_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.struct_size = sizeof facts;
    CHECK_OK(hem_device_open(world, &facts));
    CHECK(facts.ordinal >= 0 && facts.ordinal < GPUS);
    users[facts.ordinal] = 1;
    CHECK_OK(hem_allreduce(world, users, users, GPUS, HEM_U64, HEM_SUM, LIMIT));
    return harness_threads() && users[facts.ordinal] > 1;
}

/* Everything on one of these streams, from step `*steps_p` on. */
static void check_on(all_kit *kit, device_default which, uint64_t *steps_p) {
    all_kit on = *kit;
    hem_stream *handle = NULL;
    harness_step("stream", (uint64_t)which);
    CHECK_OK(hem_stream_cuda(kit->world, device_default_stream(which), &handle));
    for (int part = 0; part < ALL_PARTS; part++) {
        on.native[part] = device_default_stream(which);
        on.stream[part] = handle;
    }
    for (int i = 0; i < harness_rounds(8); i++, ++*steps_p)
        for (int part = 0; part < ALL_PARTS; part++)
            all_step(&on, part, i % 2 == 0);
    all_check(&on, *steps_p);
    CHECK_OK(hem_stream_destroy(handle));
    /* What is on the next one is ordered after this, on all ranks. */
    CHECK_OK(hem_sync(kit->world, LIMIT));
}

int rank_main(hem_world *world) {
    uint64_t steps = 0;
    check_early(world);
    bool shared = open_all(world);
    if (shared)
        refused(world);
    all_kit kit = all_open(world, false);
    check_on(&kit, DEVICE_PER_THREAD, &steps);
    for (size_t i = 0; i < sizeof legacies / sizeof legacies[0] && !shared; i++)
        check_on(&kit, legacies[i], &steps);
    all_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
