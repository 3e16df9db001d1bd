/*
 * A rank dies while kernels of exchanges wait for it: those of its neighbours end with HEM_ERR_PEER,
 * others perhaps with HEM_ERR_REVOKED as it spreads; the exchange is broken, the device goes on, and
 * the survivors make a new exchange among themselves.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it
 * die by a signal: tests/script/device-halo-death.sh does that. HEM_TEST_VICTIM=n chooses it.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#include "halo_ring.h"

#include <signal.h>

static int die(void) {
    const char *manner = getenv("HEM_TEST_DIE");
    harness_sleep_ms(20);
    if (manner != NULL && strcmp(manner, "kill") == 0)
        raise(SIGKILL);
    harness_forget();
    return 0;
}

static bool is_neighbour(const ring *r, int peer) {
    return (r->me + 1) % r->size == peer || (peer + 1) % r->size == r->me;
}

/* The halos of a ring in which everybody has its own number everywhere; the first and the last point, if
 * runs go back and replace. */
static void check_halos(const ring *r, hem_exchange *x, uint64_t *memory) {
    const hem_exchange_how how = twin_run();
    const bool back = how.combine != 0;
    uint64_t cells[RING_CELLS + 2];
    for (size_t i = 0; i < RING_CELLS + 2; i++)
        cells[i] = (uint64_t)r->me;
    device_copy(memory, cells, sizeof cells);
    CHECK_OK(hem_exchange_start_on(x, &how, r->handle));
    CHECK_OK(hem_exchange_finish_on(x, r->handle));
    device_stream_sync(r->stream);
    CHECK_OK(hem_exchange_status(x));
    device_copy(cells, memory, sizeof cells);
    CHECK_EQ(cells[back ? 1 : 0], (uint64_t)((r->me + r->size - 1) % r->size));
    CHECK_EQ(cells[back ? RING_CELLS : RING_CELLS + 1], (uint64_t)((r->me + 1) % r->size));
}

static void check_shrunk(hem_world *world, uint64_t *memory) {
    hem_world *rest = NULL;
    CHECK_OK(hem_world_shrink(world, &rest));
    ring r = ring_make(rest);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    for (int i = 0; i < 5; i++)
        check_halos(&r, x, memory);
    CHECK_OK(hem_exchange_destroy(x));
    ring_free(&r);
    CHECK_OK(hem_world_close(rest));
}

int rank_main(hem_world *world) {
    const char *chosen = getenv("HEM_TEST_VICTIM");
    const hem_exchange_how how = twin_run();
    ring r = ring_make(world);
    int victim = chosen != NULL ? atoi(chosen) : r.size - 1;
    uint64_t *memory = (uint64_t *)device_alloc(2 * (RING_CELLS + 2) * sizeof *memory);
    hem_exchange *on_stream = ring_bind(&r, memory, 1, 0);
    hem_exchange *by_host = ring_bind(&r, memory + RING_CELLS + 2, 1, 0);
    for (int i = 0; i < 3; i++)
        check_halos(&r, on_stream, memory);
    CHECK_OK(hem_exchange_run(by_host, &how, LIMIT));
    CHECK_OK(hem_sync(world, LIMIT)); /* nobody is in that run any more */
    if (r.me == victim)
        return die();
    CHECK_OK(hem_exchange_start_on(on_stream, &how, r.handle));
    CHECK_OK(hem_exchange_finish_on(on_stream, r.handle));
    /* Those far away hear of it some runs later. */
    hem_status status = HEM_OK;
    while (status == HEM_OK)
        status = hem_exchange_run(by_host, &how, LIMIT);
    CHECK(status == HEM_ERR_PEER || status == HEM_ERR_REVOKED);
    while (hem_exchange_finish(on_stream, LIMIT) == HEM_OK)
        if (hem_exchange_start_on(on_stream, &how, r.handle) == HEM_OK &&
            hem_exchange_finish_on(on_stream, r.handle) != HEM_OK)
            break; /* it is broken by now */
    device_stream_sync(r.stream);
    status = hem_exchange_status(on_stream);
    CHECK(status == HEM_ERR_PEER || (status == HEM_ERR_REVOKED && r.size > 2));
    if (status == HEM_ERR_PEER)
        CHECK(is_neighbour(&r, victim));
    CHECK_STATUS(hem_exchange_start(by_host, NULL), HEM_ERR_REVOKED);
    (void)hem_exchange_destroy(on_stream);
    (void)hem_exchange_destroy(by_host);
    check_shrunk(world, memory);
    ring_free(&r);
    device_free(memory);
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", r.me);
        fflush(stdout);
    }
    return 0;
}
