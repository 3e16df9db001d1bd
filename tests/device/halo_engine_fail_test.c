/*
 * Streams that wait with memory operations for a neighbour that will not come are released: because it is
 * late, has given up or destroyed its exchange, or the world is revoked; also if many runs are on the
 * stream, eager ones and graphs. hem_exchange_status says why, before the stream gets on; other
 * exchanges go on. What copy engines cannot do is refused, on all ranks.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_ring.h"

typedef struct kit {
    ring r;
    uint64_t *memory;
    hem_exchange *other; /* which nothing happens to */
} kit;

static void meet(hem_world *world) {
    uint64_t one = 1;
    CHECK_OK(hem_allreduce(world, &one, &one, 1, HEM_U64, HEM_SUM, LIMIT));
}

static void check_other(kit *k) {
    CHECK_OK(hem_exchange_run(k->other, NULL, LIMIT));
}

static void put_runs(const kit *k, hem_exchange *x, int count) {
    hem_status status = HEM_OK;
    for (int i = 0; i < count && status == HEM_OK; i++) {
        status = hem_exchange_start_on(x, NULL, k->r.handle);
        if (status == HEM_OK)
            status = hem_exchange_finish_on(x, k->r.handle);
    }
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED); /* a neighbour was faster */
}

static void check_broken(const kit *k, hem_exchange *x, hem_status why) {
    device_stream_sync(k->r.stream);
    hem_status status = hem_exchange_status(x);
    CHECK(status == why || status == HEM_ERR_REVOKED);
    CHECK_STATUS(hem_exchange_start_on(x, NULL, k->r.handle), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_exchange_start(x, NULL), HEM_ERR_REVOKED);
}

/* The last rank does not run; the others have one run under way, or many. */
static void too_late(kit *k, int runs) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, HEM_SEC(1));
    bool late = k->r.me == k->r.size - 1;
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    meet(k->r.world);
    if (!late && runs == 0) {
        hem_status status = hem_exchange_run(x, NULL, LIMIT);
        CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
    } else if (!late) {
        put_runs(k, x, runs);
    }
    if (!late)
        check_broken(k, x, HEM_ERR_TIMEOUT);
    meet(k->r.world);
    CHECK_STATUS(hem_exchange_run(x, NULL, LIMIT), HEM_ERR_REVOKED);
    check_other(k);
    CHECK_OK(hem_exchange_destroy(x));
}

/* Graphs replay what they hold, whatever has happened. The last rank gives up in between. */
static void replayed(kit *k) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, HEM_SEC(1) / 5);
    bool late = k->r.me == k->r.size - 1;
    device_capture_begin(k->r.stream);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hem_exchange_start_on(x, NULL, k->r.handle));
        CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
    }
    device_graph graph = device_capture_end(k->r.stream);
    meet(k->r.world);
    for (int i = 0; i < 4; i++)
        device_graph_launch(graph, k->r.stream);
    if (!late)
        for (int i = 0; i < 20; i++)
            device_graph_launch(graph, k->r.stream);
    device_stream_sync(k->r.stream); /* they are released */
    meet(k->r.world);
    hem_status status = hem_exchange_status(x);
    CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
    device_graph_launch(graph, k->r.stream); /* nobody is there any more */
    device_stream_sync(k->r.stream);
    device_graph_destroy(graph);
    check_other(k);
    CHECK_OK(hem_exchange_destroy(x));
}

/* The last rank destroys its exchange while streams of the others wait for it. */
static void destroyed(kit *k, int runs) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, 0);
    bool leaves = k->r.me == k->r.size - 1;
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    if (leaves) {
        harness_sleep_ms(20);
    } else {
        put_runs(k, x, runs);
        hem_status status = hem_exchange_finish(x, LIMIT);
        CHECK(status == HEM_ERR_REVOKED);
        check_broken(k, x, HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_exchange_destroy(x));
    check_other(k);
}

/* One that leaves in order does not break what the others have still to do. */
static void in_order(kit *k) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, 0);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(hem_exchange_start_on(x, NULL, k->r.handle));
        if (i == 3 && k->r.me == 0)
            harness_sleep_ms(10); /* the others are done, and leave */
        CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
    }
    CHECK_OK(hem_exchange_finish(x, LIMIT));
    CHECK_OK(hem_exchange_status(x));
    CHECK_OK(hem_exchange_destroy(x));
}

/* A run that never ends is given up by its own rank. */
static void given_up(kit *k) {
    hem_exchange_options options;
    hem_binding binding;
    hem_exchange *x = NULL;
    memset(&options, 0, sizeof options);
    memset(&binding, 0, sizeof binding);
    binding.pattern = k->r.pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = k->memory;
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.way = HEM_EXCHANGE_ENGINES;
    options.setup_timeout_ns = HEM_SEC(1);
    CHECK_OK(hem_exchange_create(k->r.world, &options, &x));
    if (k->r.me == 0) {
        put_runs(k, x, 3);
        CHECK_STATUS(hem_exchange_finish(x, HEM_SEC(1) / 50), HEM_ERR_TIMEOUT);
        CHECK_EQ(hem_exchange_destroy(x), HEM_ERR_TIMEOUT);
        device_stream_sync(k->r.stream);
    }
    meet(k->r.world);
    if (k->r.me != 0)
        CHECK_OK(hem_exchange_destroy(x));
    check_other(k);
}

static hem_status create(const kit *k, hem_pattern *pattern, void *memory, int64_t stride,
                         hem_exchange **x) {
    hem_binding binding;
    hem_exchange_options options;
    memset(&binding, 0, sizeof binding);
    memset(&options, 0, sizeof options);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = stride != 0 ? HEM_U8 : HEM_U64;
    binding.field.memory = memory;
    if (stride != 0) {
        binding.field.stride[0] = stride;
        binding.field.stride[1] = 6;
        binding.field.stride[2] = 1;
    }
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.way = HEM_EXCHANGE_ENGINES;
    return hem_exchange_create(k->r.world, &options, x);
}

#define LAYERS 4100

/* Two rows of each layer go to a neighbour: one set of rows if they lie equally far apart, else many. */
static hem_pattern *layers_make(hem_world *world) {
    hem_grid_options options;
    hem_grid_domain domain;
    hem_pattern *pattern = NULL;
    memset(&options, 0, sizeof options);
    memset(&domain, 0, sizeof domain);
    domain.id = hem_world_rank(world);
    domain.box.start[2] = 4 * (int64_t)domain.id;
    domain.box.count[0] = LAYERS;
    domain.box.count[1] = 2;
    domain.box.count[2] = 4;
    options.struct_size = sizeof options;
    options.dims = 3;
    options.extent[0] = LAYERS;
    options.extent[1] = 2;
    options.extent[2] = 4 * (int64_t)hem_world_size(world);
    options.periodic[2] = true;
    options.halo_low[2] = options.halo_high[2] = 1;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    return pattern;
}

static void refusals(const kit *k) {
    uint64_t plain[RING_CELLS + 2];
    hem_exchange *x = NULL;
    hem_exchange_how how;
    memset(plain, 0, sizeof plain);
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = HEM_COMBINE_SUM;
    CHECK_STATUS(create(k, k->r.pattern, plain, 0, &x), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(create(k, k->r.pattern, k->r.me == 0 ? plain : k->memory, 0, &x),
                 HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("host memory");
    CHECK_OK(create(k, k->r.pattern, k->memory, 0, &x));
    CHECK_STATUS(hem_exchange_run(x, &how, LIMIT), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("copy engines");
    CHECK_STATUS(hem_exchange_start_on(x, &how, k->r.handle), HEM_ERR_UNSUPPORTED);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT)); /* nothing is broken by that */
    CHECK_OK(hem_exchange_destroy(x));
    hem_pattern *pattern = layers_make(k->r.world);
    unsigned char *memory = (unsigned char *)device_alloc((size_t)LAYERS * 13);
    CHECK_STATUS(create(k, pattern, memory, 13, &x), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("sets of rows");
    CHECK_OK(create(k, pattern, memory, 12, &x));
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(memory);
}

/* At the end, since nothing works after it. */
static void revoked(kit *k) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, 0);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    if (k->r.me == k->r.size - 1) {
        harness_sleep_ms(20);
        CHECK_OK(hem_world_revoke(k->r.world));
    } else {
        put_runs(k, x, 5);
        device_stream_sync(k->r.stream);
        CHECK_STATUS(hem_exchange_status(x), HEM_ERR_REVOKED);
    }
    (void)hem_exchange_destroy(x);
}

int rank_main(hem_world *world) {
    kit k;
    memset(&k, 0, sizeof k);
    CHECK_OK(hem_device_open(world, NULL));
    k.r = ring_make(world);
    k.memory = (uint64_t *)device_alloc(RING_MOST * (RING_CELLS + 2) * sizeof *k.memory);
    k.other = ring_bind(&k.r, k.memory + 4 * (RING_CELLS + 2), 1, 0);
    for (int i = 0; i < 3; i++) {
        const int runs[] = {0, 1, 12};
        harness_step("too late", (uint64_t)i);
        too_late(&k, runs[i]);
    }
    for (int i = 0; i < harness_rounds(4); i++) {
        harness_step("destroyed", (uint64_t)i);
        destroyed(&k, 1 + i % 3);
        harness_step("in order", (uint64_t)i);
        in_order(&k);
    }
    harness_step("replayed", 0);
    replayed(&k);
    harness_step("refusals", 0);
    refusals(&k);
    harness_step("given up", 0);
    given_up(&k);
    harness_step("revoked", 0);
    CHECK_OK(hem_exchange_destroy(k.other));
    meet(world);
    revoked(&k);
    ring_free(&k.r);
    device_free(k.memory);
    harness_close(world, HEM_OK);
    return 0;
}
