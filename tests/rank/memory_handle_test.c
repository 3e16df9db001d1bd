/*
 * A handle comes from a peer and is not trusted: with any bit flipped, any word replaced, or made
 * of nothing but noise, an import is refused or yields memory that can be read to its last byte. It
 * never faults.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    BYTES = 20000,
    WORDS = 6
};

struct tally {
    int refused;
    int taken;
};

/* Reads both ends and the middle, by call and directly. */
static void read_through(hem_memory *memory) {
    size_t size = hem_memory_size(memory);
    const volatile uint8_t *direct = hem_memory_address(memory);
    size_t places[] = {0, size / 2, size - 1};
    uint8_t byte;
    hem_status status;

    for (int i = 0; size > 0 && i < 3; i++) {
        status = hem_memory_read(memory, places[i], &byte, 1);
        if (direct && status == HEM_OK)
            (void)direct[places[i]];
    }
    status = hem_memory_read(memory, size, &byte, 1);
    CHECK_STATUS(status, HEM_ERR_RANGE);
}

static void try(hem_world *world, int peer, const hem_memory_handle *handle, struct tally *tally) {
    hem_memory *memory = NULL;
    hem_status status = hem_memory_import(world, peer, handle, &memory);

    if (status == HEM_OK) {
        read_through(memory);
        CHECK_OK(hem_memory_free(memory));
        tally->taken++;
    } else {
        CHECK(memory == NULL);
        CHECK(hem_last_error()[0]);
        tally->refused++;
    }
}

static uint64_t awkward(harness_rng *rng) {
    static const uint64_t values[] = {
        0, 1, 4096, INT64_MAX, UINT64_MAX, UINT64_MAX - 4095, 1ull << 32, 1ull << 47};
    size_t i = harness_below(rng, 12);

    return i < 8 ? values[i] : harness_random(rng) >> harness_below(rng, 64);
}

static void corrupt(hem_world *world, int peer, const hem_memory_handle *good, harness_rng *rng) {
    struct tally tally = {0};
    hem_memory_handle bad;

    for (size_t bit = 0; bit < WORDS * 64; bit++) {
        bad = *good;
        bad.words[bit / 64] ^= 1ull << bit % 64;
        try(world, peer, &bad, &tally);
    }
    for (int round = 0; round < harness_rounds(3000); round++) {
        bad = *good;
        for (size_t n = 1 + harness_below(rng, WORDS); n > 0; n--)
            bad.words[harness_below(rng, WORDS)] = awkward(rng);
        try(world, peer, &bad, &tally);
    }
    CHECK(tally.refused > 0);
    tally = (struct tally){0};
    try(world, peer, good, &tally);
    CHECK_EQ(tally.taken, 1);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rank = hem_world_rank(world);
    int right = harness_right(world);
    harness_rng rng = harness_rng_of(seed, (uint64_t)rank, 0);
    hem_window *window = harness_window(world, 2 * sizeof(hem_memory_handle));
    uint8_t *bytes = calloc(1, BYTES);
    hem_memory *own[2];
    hem_memory_handle handle;

    CHECK(bytes != NULL);
    CHECK_OK(hem_memory_alloc(world, BYTES, &own[0]));
    CHECK_OK(hem_memory_register(world, bytes, BYTES, &own[1]));
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(hem_memory_export(own[i], &handle));
        memcpy((hem_memory_handle *)hem_window_memory(window) + i, &handle, sizeof handle);
    }
    harness_barrier(window);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(hem_get(window, right, i * sizeof handle, &handle, sizeof handle));
        corrupt(world, right, &handle, &rng);
    }
    harness_barrier(window);
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_memory_free(own[i]));
    free(bytes);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
