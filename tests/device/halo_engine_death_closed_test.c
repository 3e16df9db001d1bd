/*
 * A rank dies, and the others close the world with an exchange by copy engines open, one with its stream
 * waiting for the dead rank: nobody waits until a time limit for what the dead rank does not say any more.
 *
 * hem-test: ranks=2,3 modes=threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_ring.h"

#include <time.h>

/* Well below the time limits of set-up and of worlds, a minute. */
#define SOON_S 20

int rank_main(hem_world *world) {
    const hem_exchange_how how = twin_run();
    ring r = ring_make(world);
    uint64_t *memory = (uint64_t *)device_alloc((RING_CELLS + 2) * sizeof *memory);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    CHECK_OK(hem_exchange_run(x, &how, LIMIT));
    CHECK_OK(hem_sync(world, LIMIT));
    if (r.me == r.size - 1) {
        harness_sleep_ms(20);
        harness_forget();
        return 0;
    }
    hem_status status = hem_exchange_start_on(x, &how, r.handle);
    if (status == HEM_OK)
        status = hem_exchange_finish_on(x, r.handle);
    CHECK(status == HEM_OK || status == HEM_ERR_PEER || status == HEM_ERR_REVOKED);
    time_t begin = time(NULL);
    harness_close(world, HEM_ERR_PEER);
    device_stream_sync(r.stream);
    CHECK(time(NULL) - begin < SOON_S);
    CHECK_STATUS(hem_exchange_status(x), HEM_ERR_CLOSED);
    CHECK_OK(hem_exchange_destroy(x));
    ring_free(&r);
    device_free(memory);
    return 0;
}
