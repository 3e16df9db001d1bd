/*
 * Some ranks give an exchange by copy engines up, the others close the world with it open, one earlier than
 * the others: all hear that nobody writes to their memory any more, so that no close takes until a time limit.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_ring.h"

#include <time.h>

/* Well below the time limits of set-up and of worlds, a minute. */
#define SOON_S 20

static void one_case(hem_world *world, uint64_t *memory, int keeper, bool early) {
    const hem_exchange_how how = twin_run();
    hem_world *own = NULL;
    CHECK_OK(hem_world_split(world, 0, hem_world_rank(world), &own));
    ring r = ring_make(own);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    bool keeps = (r.me == keeper) == early;
    CHECK_OK(hem_exchange_run(x, &how, LIMIT));
    CHECK_OK(hem_sync(own, LIMIT));
    time_t begin = time(NULL);
    if (!keeps) {
        harness_sleep_ms(early ? 5 : 0);
        CHECK_OK(hem_exchange_destroy(x));
    }
    CHECK_OK(hem_world_close(own));
    CHECK(time(NULL) - begin < SOON_S);
    if (keeps)
        CHECK_OK(hem_exchange_destroy(x));
    ring_free(&r);
    CHECK_OK(hem_sync(world, LIMIT));
}

int rank_main(hem_world *world) {
    const int size = hem_world_size(world);
    uint64_t *memory = (uint64_t *)device_alloc((RING_CELLS + 2) * sizeof *memory);
    for (int i = 0; i < harness_rounds(4 * size); i++) {
        harness_step("case", (uint64_t)i);
        one_case(world, memory, i % size, i / size % 2 == 0);
    }
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
