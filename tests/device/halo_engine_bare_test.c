/*
 * Copy engines need memory operations of streams: where the device of one rank lacks them, an exchange by
 * copy engines is refused on all ranks when it is made, not in a run. Other ways work there. Nor can its CPU put a word
 * in one piece, which it says.
 *
 * hem-test: ranks=1,2,3 modes=processes labels=standin timeout=60
 */
#include "halo_ring.h"
#include "window_kit.h"

#include "device/standin/standin.h"

static void check_value(hem_world *world) {
    const bool bare = hem_world_rank(world) == hem_world_size(world) - 1;
    hem_window_options options = window_kit_options(64);
    hem_window *window = window_kit_create(world, &options);
    CHECK_STATUS(hem_put_value(window, 0, 8, 5), bare ? HEM_ERR_UNSUPPORTED : HEM_OK);
    if (bare)
        CHECK_SENTENCE("does not store words");
    CHECK_OK(hem_window_destroy(window));
}

int rank_main(hem_world *world) {
    hem_exchange *x = NULL;
    hemi_standin_no_words(hem_world_rank(world) == hem_world_size(world) - 1);
    ring r = ring_make(world);
    uint64_t *memory = (uint64_t *)device_alloc((RING_CELLS + 2) * sizeof *memory);
    CHECK_STATUS(ring_try(&r, memory, 1, HEM_EXCHANGE_ENGINES, &x), HEM_ERR_UNSUPPORTED);
    if (r.me == r.size - 1)
        CHECK_SENTENCE("memory operations");
    CHECK(x == NULL);
    CHECK_OK(ring_try(&r, memory, 1, HEM_EXCHANGE_DIRECT, &x));
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    CHECK_OK(hem_exchange_destroy(x));
    device_free(memory);
    ring_free(&r);
    check_value(world);
    harness_close(world, HEM_OK);
    return 0;
}
