/*
 * What goes wrong on lines with device memory leaves nothing behind: as many allocations, mappings and
 * descriptors are there as before.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90 labels=standin
 */
#include "line_fail.h"

#include "device/standin/standin.h"

/* What the process has once all ranks of it are here, and their streams have come to an end. */
static void settle(hem_world *world, size_t held, int files) {
    int64_t until = harness_now() + LIMIT / 2;
    CHECK_OK(hem_sync(world, LIMIT));
    while (held != 0 && (hemi_standin_held() > held || harness_open_files() > files)) {
        if (harness_now() > until)
            harness_fail(__FILE__, __LINE__, "%zu pieces and %d files are held, not %zu and %d",
                         hemi_standin_held(), harness_open_files(), held, files);
        harness_sleep_ms(1);
    }
    CHECK_OK(hem_sync(world, LIMIT));
}

int rank_main(hem_world *world) {
    CHECK_OK(hem_device_open(world, NULL));
    /* What is pinned once stays so. */
    fail_all(world);
    settle(world, 0, 0);
    harness_sleep_ms(200);
    settle(world, 0, 0);
    size_t held = hemi_standin_held();
    int files = harness_open_files();
    settle(world, 0, 0);
    for (int i = 0; i < harness_rounds(3); i++) {
        fail_all(world);
        settle(world, held, files);
    }
    harness_close(world, HEM_OK);
    return 0;
}
