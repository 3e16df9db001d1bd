/*
 * Blocking collectives beside a progress thread, which may be the one that completes them: it does not
 * look at a collective that lies on its caller's stack after the caller has returned. Sanitizers see
 * that (AddressSanitizer with detect_stack_use_after_return=1).
 *
 * hem-test: ranks=2 timeout=60
 */
#include "harness.h"

int rank_main(hem_world *world) {
    int rounds = harness_rounds(5000);
    CHECK_OK(hem_progress_start(world));
    for (int i = 0; i < rounds; i++) {
        if (hem_world_rank(world) == i % 2)
            harness_dither((uint64_t)i * 2654435761u);
        CHECK_OK(hem_sync(world, LIMIT));
    }
    CHECK_OK(hem_progress_stop(world));
    harness_close(world, HEM_OK);
    return 0;
}
