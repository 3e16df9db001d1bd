/*
 * Lines with device memory on which something goes wrong: allocators that refuse, or give what cannot be
 * used; streams that are being captured; lines, rounds and worlds that are given up in the middle of
 * long payloads; results that nobody takes. All ranks hear of it, nobody hangs, and the next line is as
 * good as new. Rows of a reach in device memory are refused.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "line_fail.h"

static void check_reach(hem_world *world) {
    hem_reach_options options;
    hem_reach *reach = NULL;
    hem_op *op = NULL;
    uint64_t before = 0;
    uint64_t after = 0;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.rows = 4;
    options.row_bytes = 8;
    options.back_rows = 1;
    options.ahead_rows = 1;
    void *rows = device_alloc(32);
    CHECK_OK(hem_reach_plan(world, &options, &reach));
    CHECK_STATUS(hem_reach_run(reach, rows, &before, &after, LIMIT), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("device memory");
    CHECK_STATUS(hem_reach_start(reach, rows, &before, &after, &op), HEM_ERR_UNSUPPORTED);
    CHECK_OK(hem_reach_destroy(reach));
    device_free(rows);
}

int rank_main(hem_world *world) {
    CHECK_OK(hem_device_open(world, NULL));
    fail_all(world);
    check_reach(world);
    CHECK_OK(hem_progress_start(world));
    fail_all(world);
    CHECK_OK(hem_progress_stop(world));
    harness_close(world, HEM_OK);
    return 0;
}
