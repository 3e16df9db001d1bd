/*
 * What copy engines leave in halos is what the host leaves, byte for byte: grids, meshes, cubed spheres,
 * lists, any type, layout and alignment, several fields and domains, all of them or some, some sides or
 * all. What they cannot do is refused on all ranks, with a reason, and then goes another way.
 *
 * hem-test: ranks=1,2,3,4,8 modes=processes,threads timeout=180
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_twin.h"

/* Whether engines do it. */
static bool check_way(const twin *t) {
    hem_exchange_facts facts;
    hem_exchange_how reverse;
    memset(&facts, 0, sizeof facts);
    memset(&reverse, 0, sizeof reverse);
    facts.struct_size = sizeof facts;
    reverse.struct_size = sizeof reverse;
    reverse.combine = HEM_COMBINE_REPLACE;
    CHECK_OK(hem_exchange_info(t->exchange, &facts));
    hem_status status = hem_exchange_start(t->exchange, &reverse);
    if (status == HEM_ERR_UNSUPPORTED) {
        CHECK_SENTENCE("copy engines");
        CHECK(facts.direct_bytes <= facts.recv_bytes);
        return true;
    }
    /* It was refused. */
    CHECK_OK(status);
    CHECK_OK(hem_exchange_finish(t->exchange, LIMIT));
    return false;
}

static void run(twin *t, const hem_exchange_how *how, uint64_t way, device_stream stream,
                hem_stream *handle) {
    if (way % 2 != 0 || !t->is_device) {
        CHECK_OK(hem_exchange_run(t->exchange, how, LIMIT));
        return;
    }
    CHECK_OK(hem_exchange_start_on(t->exchange, how, handle));
    CHECK_OK(hem_exchange_finish_on(t->exchange, handle));
    device_stream_sync(stream);
    CHECK_OK(hem_exchange_status(t->exchange));
}

static int one_case(hem_world *world, uint64_t seed, int number) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)number, 1);
    harness_rng own = harness_rng_of(seed, (uint64_t)number, 100 + (uint64_t)hem_world_rank(world));
    int kind = number % 4;
    twin_case c = twin_case_make(world, kind, &rng);
    device_stream stream = device_stream_create();
    hem_stream *handle = NULL;
    twin t;

    CHECK_OK(hem_stream_cuda(world, stream, &handle));
    memset(&t, 0, sizeof t);
    t.world = t.host.world = world;
    for (size_t f = 1 + harness_below(&rng, 4); f > 0; f--) {
        halo_spec spec = number % 3 == 0 ? twin_spec(&c, kind, &rng) : twin_plain_spec(&c, &rng);
        twin_add(&t, &c, &spec, &own);
    }
    int place = number % 5 == 0 ? (int)harness_below(&rng, TWIN_PLACES) : TWIN_DEVICE;
    twin_freeze(&t, &own);
    twin_bind(&t, place, &own);
    bool engines = check_way(&t);
    for (uint64_t round = 0; round < 4; round++) {
        hem_exchange_how how = twin_how((hem_combine)0, &rng);
        const hem_exchange_how *given = harness_below(&rng, 2) != 0 ? &how : NULL;
        twin_fill(&t, round);
        run(&t, given, harness_random(&rng), stream, handle);
        twin_check(&t, given);
    }
    twin_free(&t);
    CHECK_OK(hem_stream_destroy(handle));
    device_stream_destroy(stream);
    twin_case_free(&c);
    return engines;
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int engines = 0;
    int rounds = harness_rounds(30);
    CHECK_OK(hem_device_open(world, NULL));
    for (int i = 0; i < rounds; i++) {
        harness_step("case", (uint64_t)i);
        engines += one_case(world, seed, i);
    }
    CHECK(engines >= rounds / 3);
    harness_close(world, HEM_OK);
    return 0;
}
