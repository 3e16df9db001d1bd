/*
 * main of the tests that have none of their own: `prog --threads N` runs N ranks as threads, `prog`
 * opens the world it finds.
 */
#include "harness.h"

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

static int fail(const char *what, hem_status status) {
    fprintf(stderr, "%s: %s: %s\n", what, hem_status_name(status), hem_last_error());
    return 1;
}

int main(int argc, char **argv) {
    hem_world *world;
    hem_status status;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
        hem_world_options options = {.struct_size = sizeof options};
        int ranks = atoi(argv[2]);

        /* A sanitizer leaves a terabyte or so of address space for all. */
        if (harness_sanitized() && ranks > 64)
            options.arena_bytes = 4ull << 30;
        harness_set_threads();
        status = hem_world_threads(ranks, thread_rank, NULL, &options);
        return status == HEM_OK ? 0 : fail("hem_world_threads", status);
    }
    status = hem_world_open(NULL, &world);
    if (status != HEM_OK)
        return fail("hem_world_open", status);
    return harness_run(world, rank_main);
}
