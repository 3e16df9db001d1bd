/*
 * Exchanges whose fields are in device memory do what those of the host do, byte for byte: grids,
 * meshes, cubed spheres and explicit lists, any type, layout and alignment, all or some fields and
 * sides, several domains and fields, some of them in host memory; started by the host and on streams of
 * the device.
 *
 * hem-test: ranks=1,2,3,4 modes=processes,threads timeout=180 delayed=3 labels=legacy
 */
#include "halo_twin.h"

static hem_stream *wrap(hem_world *world, device_stream stream) {
    hem_stream *handle = NULL;
    CHECK_OK(hem_stream_cuda(world, stream, &handle));
    return handle;
}

/* One run, in one of the ways. */
static void run(twin *t, const hem_exchange_how *how, uint64_t way, device_stream *streams,
                hem_stream **handles) {
    bool done = false;
    switch (way % (t->is_device ? 4 : 2)) {
    case 0:
        CHECK_OK(hem_exchange_run(t->exchange, how, LIMIT));
        break;
    case 1:
        CHECK_OK(hem_exchange_start(t->exchange, how));
        while (!done)
            CHECK_OK(hem_exchange_test(t->exchange, &done));
        break;
    case 2:
        CHECK_OK(hem_exchange_start_on(t->exchange, how, handles[0]));
        CHECK_OK(hem_exchange_finish_on(t->exchange, handles[0]));
        device_stream_sync(streams[0]);
        CHECK_OK(hem_exchange_status(t->exchange));
        break;
    default:
        CHECK_OK(hem_exchange_start_on(t->exchange, how, handles[0]));
        CHECK_OK(hem_exchange_finish_on(t->exchange, handles[1]));
        CHECK_OK(hem_exchange_finish(t->exchange, LIMIT));
        break;
    }
}

static void one_case(hem_world *world, uint64_t seed, int number) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)number, 1);
    harness_rng own = harness_rng_of(seed, (uint64_t)number, 100 + (uint64_t)hem_world_rank(world));
    int kind = number % 4;
    twin_case c = twin_case_make(world, kind, &rng);
    twin t;
    device_stream streams[2] = {device_stream_create(), device_stream_create()};
    hem_stream *handles[2] = {wrap(world, streams[0]), wrap(world, streams[1])};

    memset(&t, 0, sizeof t);
    t.world = t.host.world = world;
    for (size_t f = 1 + harness_below(&rng, 4); f > 0; f--) {
        halo_spec spec = twin_spec(&c, kind, &rng);
        twin_add(&t, &c, &spec, &own);
    }
    int place = (int)harness_below(&rng, TWIN_PLACES);
    twin_freeze(&t, &own);
    twin_bind(&t, place, &own);
    for (uint64_t round = 0; round < 6; round++) {
        hem_exchange_how how = twin_how((hem_combine)0, &rng);
        const hem_exchange_how *given = harness_below(&rng, 2) != 0 ? &how : NULL;
        twin_fill(&t, round);
        run(&t, given, harness_random(&rng), streams, handles);
        twin_check(&t, given);
    }
    twin_free(&t);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hem_stream_destroy(handles[i]));
        device_stream_destroy(streams[i]);
    }
    twin_case_free(&c);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    CHECK_OK(hem_device_open(world, NULL));
    for (int i = 0; i < harness_rounds(30); i++) {
        harness_step("case", (uint64_t)i);
        one_case(world, seed, i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
