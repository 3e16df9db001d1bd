/*
 * Thousands of windows can be made and destroyed, and failures to make one can be repeated, without
 * the process growing: no file, no mapping, no memory stays behind.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "harness.h"

struct holdings {
    int files;
    int mappings;
    long resident;
};

/* Of threads in one process one looks for all: looking itself takes a file. */
static struct holdings holdings_now(hem_world *world) {
    if (harness_threads() && hem_world_rank(world) != 0)
        return (struct holdings){0};
    return (struct holdings){harness_open_files(), harness_mappings(), harness_resident_kib()};
}

/* A window of random size, used a little. */
static void one(hem_world *world, harness_rng *shared) {
    size_t bytes = harness_below(shared, 8) ? harness_below(shared, 9000) : 1 << 20;
    hem_buffer buffers[2] = {{"first", HEM_F64, bytes / 64, 0}, {"second", HEM_I32, 3, 0}};
    hem_window_options options = {.struct_size = sizeof options, .bytes = bytes};
    hem_window *window;

    if (harness_below(shared, 2)) {
        options.bytes = 0;
        options.buffers = buffers;
        options.buffer_count = 2;
    }
    CHECK_OK(hem_window_create(world, &options, &window));
    CHECK_OK(hem_signal_all(window, 3, HEM_SIGNAL_ADD, 1));
    if (bytes >= 64 && harness_below(shared, 4) == 0) {
        CHECK_OK(hem_put(window, harness_right(world), 0, "abcdefg", 8));
        harness_barrier(window);
    }
    harness_destroy(window);
    if (harness_below(shared, 8) == 0) {
        options.bytes = (size_t)1 << 50;
        CHECK_STATUS(hem_window_create(world, &options, &window), HEM_ERR_MEMORY);
    }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    harness_rng shared = harness_rng_of(seed, 0, 0);
    int rounds = harness_rounds(3000 / hem_world_size(world));
    hem_window *gate = harness_window(world, 0);
    struct holdings before;
    struct holdings after;

    for (int round = 0; round < 200; round++)
        one(world, &shared);
    harness_barrier(gate);
    before = holdings_now(world);
    harness_barrier(gate);
    for (int round = 0; round < rounds; round++)
        one(world, &shared);
    harness_barrier(gate);
    after = holdings_now(world);
    harness_barrier(gate);
    CHECK(after.files <= before.files + 2);
    /* A sanitizer maps and keeps memory of its own. */
    if (!harness_sanitized()) {
        CHECK(after.mappings <= before.mappings + 16);
        CHECK(after.resident <= before.resident + 4096);
    }
    harness_destroy(gate);
    harness_close(world, HEM_OK);
    return 0;
}
