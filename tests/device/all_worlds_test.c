/*
 * Worlds of halves of the ranks, in another order of them, and of all, are there at the same time with a
 * window, a pipe, an exchange and collectives on the device each, and are used in turns: the same ids,
 * lanes and runs of different worlds know nothing of each other. A rank that comes late to the making of
 * a window finds what others have put and signalled by then. One world may be revoked and closed while
 * kernels in the others wait.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=120
 */
#include "all_kit.h"

enum {
    WHOLE,
    HALF,
    TURNED, /* all ranks, the last first */
    ALONE,
    WORLDS
};

static hem_world *split(hem_world *world, int which) {
    int rank = hem_world_rank(world);
    hem_world *part = NULL;
    int colour = which == HALF ? rank % 2 : which == ALONE ? rank : 0;
    CHECK_OK(hem_world_split(world, colour, which == TURNED ? -rank : rank, &part));
    return part;
}

/* Steps of all worlds among each other. Worlds share ranks but no streams, so that their order may
 * differ between ranks. */
static void use(all_kit *kits, const bool *there, harness_rng *rng, uint64_t steps) {
    uint64_t left[WORLDS];
    uint64_t most = 0;
    for (int i = 0; i < WORLDS; i++) {
        left[i] = there[i] ? steps : 0;
        most += left[i];
    }
    for (; most > 0; most--) {
        int i = (int)harness_below(rng, WORLDS);
        while (left[i] == 0)
            i = (i + 1) % WORLDS;
        for (int part = 0; part < ALL_PARTS; part++)
            all_step(&kits[i], part, left[i] % 4 != 0);
        left[i]--;
    }
}

typedef struct first_args {
    hem_dev_window w;
    uint64_t *wrong;
} first_args;

/* At once after the making: each tells each, by data and signals, and nothing is lost. */
DEVICE_KERNEL(first_words, first_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint64_t mine = (uint64_t)w.rank + 100;
    hem_status status = HEM_OK;
    for (int r = 0; r < w.size && status == HEM_OK; r++)
        status = hem_dev_put_signal(w, block, r, 8 * (uint64_t)w.rank, &mine, 8, 2, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal(w, block, 2, HEM_GE, (uint64_t)w.size, HEM_FOREVER);
    const uint64_t *words = (const uint64_t *)hem_dev_address(w, w.rank, 0);
    for (uint64_t r = block.rank; r < (uint64_t)w.size; r += block.size)
        if (words[r] != r + 100)
            hemd_add64_relaxed(args->wrong, 1);
    if (block.rank == 0 && status != HEM_OK)
        hemd_add64_relaxed(args->wrong, 1000);
}

/* One rank comes late to each, another one each time. */
static void check_late(hem_world *world, uint64_t *wrong) {
    device_stream stream = device_stream_create();
    int size = hem_world_size(world);
    for (int i = 0; i < harness_rounds(8); i++) {
        hem_window_options o = window_kit_options(8 * (size_t)size);
        first_args args;
        uint64_t count = 1;
        if (hem_world_rank(world) == i % size)
            harness_sleep_ms(5);
        hem_window *window = window_kit_create(world, &o);
        args.w = window_kit_dev(window);
        args.wrong = wrong;
        device_launch(first_words, stream, 1, 1, &args);
        device_stream_sync(stream);
        device_copy(&count, wrong, sizeof count);
        CHECK_EQ(count, 0);
        CHECK_OK(hem_window_destroy(window));
    }
    device_stream_destroy(stream);
}

/* The turned world goes, with kernels of it that wait, while those of the others go on. */
static void check_revoked(all_kit *kits, const bool *there, harness_rng *rng) {
    all_kit *gone = &kits[TURNED];
    gone->blind = true;
    /* So many that every rank comes to wait for rank 0, also those who have others between them. */
    for (int i = 0; gone->rank != 0 && i < gone->size + 2; i++)
        for (int part = 0; part < ALL_PARTS; part++)
            all_step(gone, part, true);
    use(kits, there, rng, 3);
    CHECK_OK(hem_barrier(kits[WHOLE].window, 0, LIMIT));
    if (gone->rank == 0)
        CHECK_OK(hem_world_revoke(gone->world));
    use(kits, there, rng, 3);
    for (int part = 0; part < ALL_PARTS; part++) {
        device_stream_sync(gone->native[part]);
        harness_step("revoked", (uint64_t)part);
        if (gone->rank != 0)
            CHECK_EQ(all_status(gone, part), HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_barrier(kits[WHOLE].window, 0, LIMIT));
}

/* What is in a revoked world is given up by closing it. */
static void close_revoked(all_kit *kit) {
    all_close_streams(kit);
    (void)hem_exchange_destroy(kit->exchange);
    hem_status status = hem_world_close(kit->world);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
    CHECK_OK(hem_op_free(kit->ops[0]));
    CHECK_OK(hem_op_free(kit->ops[1]));
    CHECK_OK(hem_pattern_destroy(kit->pattern));
    CHECK_OK(all_destroy_pipe(kit));
    CHECK_OK(hem_window_destroy(kit->window));
    device_free(kit->state);
}

int rank_main(hem_world *world) {
    harness_rng rng = harness_rng_of(harness_seed(world), 1, (uint64_t)hem_world_rank(world));
    uint64_t *wrong = (uint64_t *)device_alloc(8);
    uint64_t steps = (uint64_t)harness_rounds(12);
    hem_world *worlds[WORLDS];
    all_kit kits[WORLDS];
    bool there[WORLDS] = {true, true, true, true};
    for (int i = 0; i < WORLDS; i++) {
        worlds[i] = split(world, i);
        kits[i] = all_open(worlds[i], false);
    }
    use(kits, there, &rng, steps);
    check_late(world, wrong);
    for (int i = 0; i < WORLDS; i++)
        all_check(&kits[i], steps);
    there[TURNED] = false;
    check_revoked(kits, there, &rng);
    close_revoked(&kits[TURNED]);
    use(kits, there, &rng, steps);
    for (int i = 0; i < WORLDS; i++)
        if (there[i]) {
            all_check(&kits[i], 2 * steps + 6);
            all_close(&kits[i], HEM_OK);
            CHECK_OK(hem_world_close(worlds[i]));
        }
    device_free(wrong);
    harness_close(world, HEM_OK);
    return 0;
}
