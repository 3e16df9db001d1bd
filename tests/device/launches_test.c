/*
 * An exchange on a stream is two kernels, one for the start and one for the finish, whatever the number of
 * fields, of their types and of neighbours, and none if copy engines do it. They are counted in a graph, whose
 * replays then bring what they should.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=90
 */
#include "halo_ring.h"

#define FIELDS 16
#define POINTS (RING_CELLS + 2)

/* Every other field has another type. The numbers are such as both can hold. */
typedef struct fields {
    uint64_t whole[POINTS];
    float real[POINTS];
} fields;

static uint64_t value(int rank, int field, int cell, uint64_t seed) {
    return (uint64_t)((rank * RING_CELLS + cell) * 100 + field) + seed;
}

static hem_exchange *bind(const ring *r, fields *memory, int count, hem_exchange_way way) {
    hem_binding bindings[FIELDS];
    hem_exchange_options options;
    hem_exchange *x = NULL;
    memset(bindings, 0, sizeof bindings);
    memset(&options, 0, sizeof options);
    for (int f = 0; f < count; f++) {
        hem_field *field = &bindings[f].field;
        bindings[f].pattern = r->pattern;
        field->struct_size = sizeof *field;
        field->dtype = f % 2 == 0 ? HEM_U64 : HEM_F32;
        field->memory = f % 2 == 0 ? (void *)memory[f / 2].whole : (void *)memory[f / 2].real;
    }
    options.struct_size = sizeof options;
    options.bindings = bindings;
    options.count = (size_t)count;
    options.way = way;
    CHECK_OK(hem_exchange_create(r->world, &options, &x));
    return x;
}

static void set_fields(const ring *r, fields *memory, fields *host, uint64_t seed) {
    memset(host, 0, FIELDS / 2 * sizeof *host);
    for (int f = 0; f < FIELDS; f++)
        for (int c = 0; c < RING_CELLS; c++) {
            uint64_t number = value(r->me, f, c, seed);
            if (f % 2 == 0)
                host[f / 2].whole[c + 1] = number;
            else
                host[f / 2].real[c + 1] = (float)number;
        }
    device_copy(memory, host, FIELDS / 2 * sizeof *host);
}

static void check_point(const fields *host, int field, int point, uint64_t want) {
    const fields *pair = &host[field / 2];
    harness_step("point of field", (uint64_t)(point * 100 + field));
    CHECK_EQ(field % 2 == 0 ? pair->whole[point] : (uint64_t)pair->real[point], want);
}

static void check_fields(const ring *r, const fields *memory, fields *host, int count,
                         uint64_t seed) {
    int left = (r->me + r->size - 1) % r->size, right = (r->me + 1) % r->size;
    device_copy(host, memory, FIELDS / 2 * sizeof *host);
    for (int f = 0; f < FIELDS; f++) {
        bool in = f < count; /* what is no part of the exchange is as it was */
        check_point(host, f, 0, in ? value(left, f, RING_CELLS - 1, seed) : 0);
        check_point(host, f, RING_CELLS + 1, in ? value(right, f, 0, seed) : 0);
        for (int c = 0; c < RING_CELLS; c++)
            check_point(host, f, c + 1, value(r->me, f, c, seed));
    }
}

static void check_count(const ring *r, fields *memory, int count, hem_exchange_way way) {
    fields host[FIELDS / 2];
    size_t kernels = 99;
    hem_exchange *x = bind(r, memory, count, way);
    device_capture_begin(r->stream);
    CHECK_OK(hem_exchange_start_on(x, NULL, r->handle));
    CHECK_OK(hem_exchange_finish_on(x, r->handle));
    device_graph graph = device_capture_end_counted(r->stream, &kernels);
    CHECK_EQ(kernels, way == HEM_EXCHANGE_ENGINES ? 0 : 2);
    for (uint64_t seed = 1; seed <= 2; seed++) {
        set_fields(r, memory, host, seed);
        CHECK_OK(hem_sync(r->world, LIMIT)); /* all have their graphs */
        device_graph_launch(graph, r->stream);
        device_stream_sync(r->stream);
        check_fields(r, memory, host, count, seed);
    }
    CHECK_OK(hem_exchange_status(x));
    CHECK_OK(hem_sync(r->world, LIMIT));
    device_graph_destroy(graph);
    CHECK_OK(hem_exchange_destroy(x));
}

int rank_main(hem_world *world) {
    static const hem_exchange_way ways[] = {HEM_EXCHANGE_STAGED, HEM_EXCHANGE_BEST,
                                            HEM_EXCHANGE_DIRECT, HEM_EXCHANGE_ENGINES};
    static const int counts[] = {1, 2, FIELDS};
    CHECK_OK(hem_device_open(world, NULL));
    ring r = ring_make(world);
    fields *memory = (fields *)device_alloc(FIELDS / 2 * sizeof *memory);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            harness_step("way * 100 + fields", (uint64_t)ways[w] * 100 + (uint64_t)counts[c]);
            check_count(&r, memory, counts[c], ways[w]);
        }
    ring_free(&r);
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
