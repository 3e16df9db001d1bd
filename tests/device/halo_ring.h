/* Exchanges made by hand: a ring of ranks with a point of halo on both sides. */
#ifndef HEM_TESTS_DEVICE_HALO_RING_H
#define HEM_TESTS_DEVICE_HALO_RING_H

#include "device.h"

/** How values get into halos: tests that include another one ask for another way. */
#ifndef TWIN_WAY
#define TWIN_WAY HEM_EXCHANGE_STAGED
#endif

/** Whether runs go back, and how: the same. */
#ifndef TWIN_COMBINE
#define TWIN_COMBINE ((hem_combine)0)
#endif

static inline hem_exchange_how twin_run(void) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = TWIN_COMBINE;
    return how;
}

static inline hem_exchange *twin_create(hem_world *world, const hem_binding *bindings, size_t count,
                                        int64_t run_timeout_ns) {
    hem_exchange_options options;
    hem_exchange *exchange = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bindings = bindings;
    options.count = count;
    options.run_timeout_ns = run_timeout_ns;
    options.way = TWIN_WAY;
    hem_status status = hem_exchange_create(world, &options, &exchange);
    /* No field of any rank is in device memory, or not all are: there is no other way. */
    if (status == HEM_ERR_UNSUPPORTED && TWIN_WAY > HEM_EXCHANGE_BEST) {
        if (TWIN_WAY == HEM_EXCHANGE_DIRECT)
            CHECK_SENTENCE("no rank has a field in device memory");
        options.way = HEM_EXCHANGE_BEST;
        status = hem_exchange_create(world, &options, &exchange);
    }
    CHECK_OK(status);
    return exchange;
}

#define RING_CELLS 24
#define RING_MOST  8

/** A ring of ranks, each with RING_CELLS points and a halo of one point on both sides. */
typedef struct ring {
    hem_world *world;
    int me;
    int size;
    hem_pattern *pattern;
    device_stream stream;
    hem_stream *handle;
} ring;

static inline ring ring_make(hem_world *world) {
    ring r;
    hem_grid_options options;
    hem_grid_domain domain;
    memset(&r, 0, sizeof r);
    memset(&options, 0, sizeof options);
    memset(&domain, 0, sizeof domain);
    r.world = world;
    r.me = hem_world_rank(world);
    r.size = hem_world_size(world);
    domain.box.start[0] = (int64_t)RING_CELLS * r.me;
    domain.box.count[0] = RING_CELLS;
    domain.id = r.me;
    options.struct_size = sizeof options;
    options.dims = 1;
    options.extent[0] = (int64_t)RING_CELLS * r.size;
    options.periodic[0] = true;
    options.halo_low[0] = options.halo_high[0] = 1;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(world, &options, &r.pattern));
    r.stream = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, r.stream, &r.handle));
    return r;
}

static inline void ring_free(ring *r) {
    CHECK_OK(hem_stream_destroy(r->handle));
    device_stream_destroy(r->stream);
    CHECK_OK(hem_pattern_destroy(r->pattern));
}

/** Make an exchange of one field of 64-bit words, so many at each point, in a way that may be refused. */
static inline hem_status ring_try(const ring *r, uint64_t *memory, size_t components,
                                  hem_exchange_way way, hem_exchange **exchange_p) {
    hem_binding binding;
    hem_exchange_options options;
    memset(&binding, 0, sizeof binding);
    memset(&options, 0, sizeof options);
    binding.pattern = r->pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.components = components;
    binding.field.memory = memory;
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.way = way;
    return hem_exchange_create(r->world, &options, exchange_p);
}

/** `fields` fields of the ring, one after the other in device memory. */
static inline hem_exchange *ring_bind(const ring *r, uint64_t *memory, int fields,
                                      int64_t run_timeout_ns) {
    hem_binding bindings[RING_MOST];
    memset(bindings, 0, sizeof bindings);
    for (int f = 0; f < fields; f++) {
        bindings[f].pattern = r->pattern;
        bindings[f].field.struct_size = sizeof bindings[f].field;
        bindings[f].field.dtype = HEM_U64;
        bindings[f].field.memory = memory + (size_t)f * (RING_CELLS + 2);
    }
    return twin_create(r->world, bindings, (size_t)fields, run_timeout_ns);
}

#endif
