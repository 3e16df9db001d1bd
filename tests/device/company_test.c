/*
 * Mixed company: of the ranks that take part in one run of an exchange or of a planned collective, some
 * start it by the host, others put it on a stream, others have it in a graph; start and finish of an
 * exchange may be by different ones. Who does what changes from run to run. Each run has what its peers
 * had at that run, many of them one behind the other; and exchanges of all kinds of fields, forward and
 * back, leave byte for byte what the host's do.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=120
 */
#include "all_kit.h"
#include "halo_twin.h"

#define ROUND 12 /* steps without looking at the streams: the queues of a GPU are not for ever */
#define HOWS  3  /* everything, a part, and back */

/* How a rank takes part in a run. */
enum {
    BY_HOST,
    BY_STREAM,
    BY_GRAPH,
    HOST_STARTS, /* from here on: exchanges only */
    HOST_FINISHES,
    WAYS
};

/* Everybody draws for everybody. */
static int way_of(const hem_world *world, int ways, harness_rng *rng) {
    int mine = 0;
    for (int r = 0; r < hem_world_size(world); r++) {
        int way = (int)harness_below(rng, (size_t)ways);
        mine = r == hem_world_rank(world) ? way : mine;
    }
    return mine;
}

/* A run that the host begins: what is on the stream comes before it. `finisher`: where it ends. */
static void begun_by_host(hem_exchange *x, const hem_exchange_how *how, device_stream native,
                          hem_stream *finisher) {
    device_stream_sync(native);
    if (finisher == NULL) {
        CHECK_OK(hem_exchange_run(x, how, LIMIT));
        return;
    }
    CHECK_OK(hem_exchange_start(x, how));
    CHECK_OK(hem_exchange_finish_on(x, finisher));
}

static void begun_on_stream(hem_exchange *x, const hem_exchange_how *how, hem_stream *starter,
                            hem_stream *finisher) {
    CHECK_OK(hem_exchange_start_on(x, how, starter));
    if (finisher == NULL)
        CHECK_OK(hem_exchange_finish(x, LIMIT));
    else
        CHECK_OK(hem_exchange_finish_on(x, finisher));
}

/* In one of the ways that are no graph. */
static void exchange(hem_exchange *x, const hem_exchange_how *how, int way, device_stream native,
                     hem_stream *handle) {
    if (way == BY_HOST || way == HOST_STARTS)
        begun_by_host(x, how, native, way == BY_HOST ? NULL : handle);
    else
        begun_on_stream(x, how, handle, way == BY_STREAM ? handle : NULL);
}

/* Many runs, checked by the device. */

static device_graph capture_step(all_kit *kit, int part, bool brief) {
    device_capture_begin(kit->native[part]);
    all_step(kit, part, brief);
    return device_capture_end(kit->native[part]);
}

static void halo_step(all_kit *kit, int way, device_graph graph) {
    if (way == BY_GRAPH) {
        device_graph_launch(graph, kit->native[ALL_HALO]);
        return;
    }
    all_launch(kit, ALL_HALO, true, kit->out[ALL_HALO] + 1, RING_CELLS, (uint64_t)kit->rank + 1);
    exchange(kit->exchange, NULL, way, kit->native[ALL_HALO], kit->stream[ALL_HALO]);
    all_launch_look_halo(kit);
    if (way == HOST_STARTS)
        CHECK_OK(hem_exchange_finish(kit->exchange, LIMIT));
}

static void coll_step(all_kit *kit, int way, bool brief, device_graph graph) {
    if (way == BY_GRAPH)
        device_graph_launch(graph, kit->native[ALL_COLL]);
    else if (way == BY_STREAM)
        all_step(kit, ALL_COLL, brief);
    else
        all_step_by_host(kit, ALL_COLL, brief);
}

static void check_part(all_kit *kit, int part, uint64_t steps) {
    device_stream_sync(kit->native[part]);
    all_state state = all_read(kit, part);
    CHECK_EQ(all_status(kit, part), HEM_OK);
    CHECK_EQ(state.step, steps);
    CHECK_EQ(state.wrong, 0);
}

static void many_runs(hem_world *world, uint64_t seed) {
    harness_rng rng = harness_rng_of(seed, 1, 0);
    harness_rng own = harness_rng_of(seed, 2, (uint64_t)hem_world_rank(world));
    all_kit kit = all_open(world, true);
    device_graph halo = capture_step(&kit, ALL_HALO, true);
    device_graph colls[2] = {capture_step(&kit, ALL_COLL, false),
                             capture_step(&kit, ALL_COLL, true)};
    uint64_t steps = 0;
    CHECK_OK(hem_sync(world, LIMIT)); /* graphs are made before kernels wait: docs/gpu.md */
    for (int round = 0; round < harness_rounds(16); round++) {
        harness_step("round", (uint64_t)round);
        for (int i = 0; i < ROUND; i++, steps++) {
            bool brief = harness_below(&rng, 4) != 0;
            halo_step(&kit, way_of(world, WAYS, &rng), halo);
            coll_step(&kit, way_of(world, HOST_STARTS, &rng), brief, colls[brief]);
            harness_dither(harness_random(&own));
        }
        check_part(&kit, ALL_HALO, steps);
        check_part(&kit, ALL_COLL, steps);
    }
    device_graph_destroy(halo);
    device_graph_destroy(colls[0]);
    device_graph_destroy(colls[1]);
    all_close(&kit, HEM_OK);
}

/* All kinds of fields, beside the host's exchange. */

typedef struct scene {
    twin t;
    device_stream native;
    hem_stream *handle;
    hem_exchange_how hows[HOWS];
    device_graph graphs[HOWS];
} scene;

static void add_fields(twin *t, const twin_case *c, harness_rng *rng, harness_rng *own) {
    static const hem_dtype types[4] = {HEM_F32, HEM_F64, HEM_I16, HEM_I64};
    for (size_t f = 1 + harness_below(rng, 3); f > 0; f--) {
        halo_spec spec = twin_plain_spec(c, rng);
        spec.dtype = types[harness_below(rng, 4)];
        spec.element = 0;
        twin_add(t, c, &spec, own);
    }
}

/* The first use of a `how` makes its tables, and is no part of a graph. */
static void capture_hows(scene *s) {
    for (int h = 0; h < HOWS; h++) {
        twin_fill(&s->t, 1000 + (uint64_t)h);
        CHECK_OK(hem_exchange_run(s->t.exchange, &s->hows[h], LIMIT));
        twin_check(&s->t, &s->hows[h]);
        device_capture_begin(s->native);
        begun_on_stream(s->t.exchange, &s->hows[h], s->handle, s->handle);
        s->graphs[h] = device_capture_end(s->native);
        CHECK_OK(hem_sync(s->t.world, LIMIT)); /* before anybody's kernels wait again */
    }
}

static void one_run(scene *s, uint64_t round, int h, int way) {
    twin_fill(&s->t, round);
    if (way == BY_GRAPH)
        device_graph_launch(s->graphs[h], s->native);
    else
        exchange(s->t.exchange, &s->hows[h], way, s->native, s->handle);
    device_stream_sync(s->native);
    if (way == HOST_STARTS)
        CHECK_OK(hem_exchange_finish(s->t.exchange, LIMIT));
    CHECK_OK(hem_exchange_status(s->t.exchange));
    twin_check(&s->t, &s->hows[h]);
}

static void one_case(hem_world *world, uint64_t seed, int number) {
    harness_rng rng = harness_rng_of(seed, 3, (uint64_t)number);
    harness_rng own = harness_rng_of(seed, 100 + (uint64_t)hem_world_rank(world), (uint64_t)number);
    twin_case c = twin_case_make(world, number % 4, &rng);
    scene s;
    memset(&s, 0, sizeof s);
    s.native = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, s.native, &s.handle));
    s.t.world = s.t.host.world = world;
    add_fields(&s.t, &c, &rng, &own);
    twin_freeze(&s.t, &own);
    twin_bind(&s.t, TWIN_DEVICE, &own);
    s.hows[0].struct_size = sizeof s.hows[0];
    s.hows[1] = twin_how((hem_combine)0, &rng);
    /* Copy engines combine nothing. */
    s.hows[2] = twin_how(TWIN_WAY == HEM_EXCHANGE_ENGINES ? (hem_combine)0 : HEM_COMBINE_SUM, &rng);
    if (s.t.is_device)
        capture_hows(&s);
    for (uint64_t round = 0; s.t.is_device && round < 12; round++) {
        int h = (int)harness_below(&rng, HOWS);
        one_run(&s, round, h, way_of(world, WAYS, &rng));
    }
    for (int h = 0; s.t.is_device && h < HOWS; h++)
        device_graph_destroy(s.graphs[h]);
    CHECK_OK(hem_stream_destroy(s.handle));
    device_stream_destroy(s.native);
    twin_free(&s.t);
    twin_case_free(&c);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    CHECK_OK(hem_device_open(world, NULL));
    many_runs(world, seed);
    for (int i = 0; i < harness_rounds(12); i++) {
        harness_step("case", (uint64_t)i);
        one_case(world, seed, i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
