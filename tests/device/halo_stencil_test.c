/*
 * The stencil of examples/cuda: the inside of the box on one stream while the exchange is under way on
 * another, then the surface; two such steps in a graph, replayed. After all steps every cell is what
 * plain loops over the whole grid give.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=120
 */
#include "../../examples/cuda/stencil.cuh"
#include "halo_ring.h"

#define EXTENT 11

DEVICE_KERNEL(stencil, stencil_args) {
    stencil_kernel(args);
}

typedef struct stencil_kit {
    hem_world *world;
    hem_box box;
    hem_pattern *pattern;
    hem_exchange *exchange;
    device_stream stream;
    device_stream side;
    hem_stream *handle;
    uint32_t *fields[2];
    size_t cells;
} stencil_kit;

static void make_kit(stencil_kit *k) {
    const int64_t extent[3] = {EXTENT, EXTENT, EXTENT};
    hem_grid_cut cut;
    hem_grid_domain domain;
    hem_grid_options options;
    hem_binding bindings[2];
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    memset(bindings, 0, sizeof bindings);
    CHECK_OK(hem_grid_balance(3, extent, hem_world_size(k->world), &cut));
    CHECK_OK(hem_grid_part(&cut, hem_world_rank(k->world), &domain.box));
    domain.id = hem_world_rank(k->world);
    k->box = domain.box;
    k->cells = 1;
    options.struct_size = sizeof options;
    options.dims = 3;
    for (int d = 0; d < 3; d++) {
        options.extent[d] = EXTENT;
        options.periodic[d] = true;
        options.halo_low[d] = options.halo_high[d] = 1;
        k->cells *= (size_t)k->box.count[d] + 2;
    }
    options.faces_only = true;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(k->world, &options, &k->pattern));
    for (int f = 0; f < 2; f++) {
        k->fields[f] = (uint32_t *)device_alloc(k->cells * sizeof(uint32_t));
        bindings[f].pattern = k->pattern;
        bindings[f].field.struct_size = sizeof bindings[f].field;
        bindings[f].field.dtype = HEM_U32;
        bindings[f].field.memory = k->fields[f];
    }
    k->exchange = twin_create(k->world, bindings, 2, 0);
    k->stream = device_stream_create();
    k->side = device_stream_create();
    CHECK_OK(hem_stream_cuda(k->world, k->side, &k->handle));
}

static void launch(const stencil_kit *k, int from, int surface) {
    stencil_args args;
    args.from = k->fields[from];
    args.to = k->fields[1 - from];
    for (int d = 0; d < 3; d++)
        args.count[d] = k->box.count[d];
    args.surface = surface;
    device_launch(stencil, k->stream, 2, 2, &args);
}

static void step(const stencil_kit *k, int from) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.fields = (uint64_t)1 << from;
    device_stream_order(k->stream, k->side);
    CHECK_OK(hem_exchange_start_on(k->exchange, &how, k->handle));
    CHECK_OK(hem_exchange_finish_on(k->exchange, k->handle));
    launch(k, from, 0);
    device_stream_order(k->side, k->stream);
    launch(k, from, 1);
}

/* Cell x, y, z of the whole grid, which goes round. */
static size_t whole_at(int64_t x, int64_t y, int64_t z) {
    return (size_t)(((x + EXTENT) % EXTENT * EXTENT + (y + EXTENT) % EXTENT) * EXTENT +
                    (z + EXTENT) % EXTENT);
}

static void compute_whole(uint32_t *now, uint32_t *next) {
    for (int64_t x = 0; x < EXTENT; x++)
        for (int64_t y = 0; y < EXTENT; y++)
            for (int64_t z = 0; z < EXTENT; z++)
                next[whole_at(x, y, z)] =
                    3 * now[whole_at(x, y, z)] + now[whole_at(x, y, z - 1)] +
                    5 * now[whole_at(x, y, z + 1)] + now[whole_at(x, y - 1, z)] +
                    7 * now[whole_at(x, y + 1, z)] + now[whole_at(x - 1, y, z)] +
                    11 * now[whole_at(x + 1, y, z)];
}

/* Fill the own cells of field 0, or compare them. */
static void own_cells(const stencil_kit *k, const uint32_t *whole, bool fill) {
    uint32_t *cells = (uint32_t *)calloc(k->cells, sizeof *cells);
    const int64_t *n = k->box.count;
    if (!fill)
        device_copy(cells, k->fields[0], k->cells * sizeof *cells);
    for (int64_t x = 0; x < n[0]; x++)
        for (int64_t y = 0; y < n[1]; y++)
            for (int64_t z = 0; z < n[2]; z++) {
                uint32_t *cell = &cells[((x + 1) * (n[1] + 2) + y + 1) * (n[2] + 2) + z + 1];
                uint32_t value =
                    whole[whole_at(x + k->box.start[0], y + k->box.start[1], z + k->box.start[2])];
                if (fill)
                    *cell = value;
                else
                    CHECK_EQ(*cell, value);
            }
    if (fill)
        device_copy(k->fields[0], cells, k->cells * sizeof *cells);
    free(cells);
}

int rank_main(hem_world *world) {
    static const size_t all = EXTENT * EXTENT * EXTENT;
    uint32_t *whole = (uint32_t *)malloc(2 * all * sizeof *whole);
    stencil_kit k;
    memset(&k, 0, sizeof k);
    k.world = world;
    CHECK_OK(hem_device_open(world, NULL));
    make_kit(&k);
    for (size_t i = 0; i < all; i++)
        whole[i] = (uint32_t)i * 2654435761u;
    own_cells(&k, whole, true);
    step(&k, 0);
    step(&k, 1);
    device_stream_sync(k.stream);
    device_capture_begin(k.stream);
    step(&k, 0);
    step(&k, 1);
    device_graph graph = device_capture_end(k.stream);
    int replays = harness_rounds(50);
    for (int i = 0; i < replays; i++)
        device_graph_launch(graph, k.stream);
    device_stream_sync(k.stream);
    CHECK_OK(hem_exchange_status(k.exchange));
    for (int i = 0; i <= replays; i++) {
        compute_whole(whole, whole + all);
        compute_whole(whole + all, whole);
    }
    own_cells(&k, whole, false);
    device_graph_destroy(graph);
    CHECK_OK(hem_exchange_destroy(k.exchange));
    CHECK_OK(hem_pattern_destroy(k.pattern));
    CHECK_OK(hem_stream_destroy(k.handle));
    device_stream_destroy(k.side);
    device_stream_destroy(k.stream);
    for (int f = 0; f < 2; f++)
        device_free(k.fields[f]);
    free(whole);
    harness_close(world, HEM_OK);
    return 0;
}
