/*
 * Copy engines need memory operations of streams: where the device of one rank lacks them, an exchange by
 * copy engines is refused on all ranks when it is made, not in a run. Other ways work there.
 *
 * hem-test: ranks=1,2,3 modes=processes labels=standin timeout=60
 */
#include "halo_ring.h"

#include "device/standin/standin.h"

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
    harness_close(world, HEM_OK);
    return 0;
}
