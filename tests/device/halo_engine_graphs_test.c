/*
 * A rank dies while graphs with runs by copy engines are on the streams of all ranks, also on its own: all
 * streams come to their end, the survivors hear of it, and the device goes on.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_ring.h"

/* Three runs. */
static device_graph capture(const ring *r, hem_exchange *x) {
    device_capture_begin(r->stream);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hem_exchange_start_on(x, NULL, r->handle));
        CHECK_OK(hem_exchange_finish_on(x, r->handle));
    }
    return device_capture_end(r->stream);
}

static void check_shrunk(hem_world *world, uint64_t *memory) {
    hem_world *rest = NULL;
    CHECK_OK(hem_world_shrink(world, &rest));
    ring r = ring_make(rest);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    device_graph graph = capture(&r, x);
    for (int i = 0; i < 5; i++)
        device_graph_launch(graph, r.stream);
    device_stream_sync(r.stream);
    CHECK_OK(hem_exchange_status(x));
    device_graph_destroy(graph);
    CHECK_OK(hem_exchange_destroy(x));
    ring_free(&r);
    CHECK_OK(hem_world_close(rest));
}

int rank_main(hem_world *world) {
    ring r = ring_make(world);
    int victim = r.size - 1;
    uint64_t *memory = (uint64_t *)device_alloc((RING_CELLS + 2) * sizeof *memory);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    device_graph graph = capture(&r, x);
    for (int i = 0; i < 4; i++)
        device_graph_launch(graph, r.stream);
    device_stream_sync(r.stream);
    CHECK_OK(hem_exchange_status(x));
    uint64_t one = 1;
    CHECK_OK(hem_allreduce(world, &one, &one, 1, HEM_U64, HEM_SUM, LIMIT));
    for (int i = 0; i < (r.me == victim ? 2 : 8); i++)
        device_graph_launch(graph, r.stream);
    if (r.me == victim) {
        device_graph_destroy(graph); /* what is under way goes on */
        harness_forget();
        return 0;
    }
    device_stream_sync(r.stream);
    hem_status status = hem_exchange_status(x);
    CHECK(status == HEM_ERR_PEER || (status == HEM_ERR_REVOKED && r.size > 2));
    device_graph_launch(graph, r.stream); /* it is over at once */
    device_stream_sync(r.stream);
    device_graph_destroy(graph);
    CHECK_OK(hem_exchange_destroy(x));
    check_shrunk(world, memory);
    ring_free(&r);
    device_free(memory);
    harness_close(world, HEM_ERR_PEER);
    return 0;
}
