/*
 * Much: more than 2^20 indices per neighbour in a list, a face that takes many tiles of many blocks,
 * and a field of more than 2^31 elements, whose halos lie beyond what 32 bits count.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=120
 */
#include "halo_ring.h"

#define INDICES ((1 << 20) + 77)

/* What point `i` of the rank's own has. */
static uint32_t value_of(int rank, int64_t i) {
    return (uint32_t)((uint64_t)(i + 1) * 2654435761u + (uint32_t)rank * 40503u);
}

/* Everybody sends scattered points to the next rank, which has them scattered, too. */
static void long_list(hem_world *world) {
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    size_t points = 2 * (size_t)INDICES;
    int64_t *sent = (int64_t *)malloc(INDICES * sizeof *sent);
    int64_t *got = (int64_t *)malloc(INDICES * sizeof *got);
    uint32_t *values = (uint32_t *)malloc(points * sizeof *values);
    uint32_t *device = (uint32_t *)device_alloc(points * sizeof *values);
    hem_point_list lists[2];
    hem_explicit_options options;
    hem_pattern *pattern = NULL;
    memset(lists, 0, sizeof lists);
    memset(&options, 0, sizeof options);
    for (int64_t i = 0; i < INDICES; i++) {
        sent[i] = i * 7919 % INDICES;
        got[i] = INDICES + i * 104729 % INDICES;
        values[i] = value_of(me, i);
        values[INDICES + i] = 0;
    }
    lists[0].peer = (me + 1) % size;
    lists[0].points = sent;
    lists[1].peer = (me + size - 1) % size;
    lists[1].points = got;
    lists[0].count = lists[1].count = INDICES;
    options.struct_size = sizeof options;
    options.domain_points = &points;
    options.domain_count = 1;
    options.sends = &lists[0];
    options.receives = &lists[1];
    options.send_count = options.receive_count = 1;
    CHECK_OK(hem_pattern_explicit(world, &options, &pattern));
    hem_binding binding;
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U32;
    binding.field.memory = device;
    hem_exchange *x = twin_create(world, &binding, 1, 0);
    device_copy(device, values, points * sizeof *values);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    device_copy(values, device, points * sizeof *values);
    for (int64_t i = 0; i < INDICES; i++) {
        CHECK_EQ(values[i], value_of(me, i));
        CHECK_EQ(values[got[i]], value_of((me + size - 1) % size, sent[i]));
    }
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(device);
    free(values);
    free(got);
    free(sent);
}

/* Three rows of 2^30 bytes, of which only the ends are ever touched. */
static void far_away(hem_world *world) {
    enum {
        ROWS = 3,
        HALO = 5
    };
    const int64_t length = 1ll << 30;
    const int64_t stride = length + 2 * HALO;
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_grid_domain domain;
    hem_grid_options options;
    hem_pattern *pattern = NULL;
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    domain.id = me;
    domain.box.start[1] = length * me;
    domain.box.count[0] = ROWS;
    domain.box.count[1] = length;
    options.struct_size = sizeof options;
    options.dims = 2;
    options.extent[0] = ROWS;
    options.extent[1] = length * size;
    options.halo_low[1] = options.halo_high[1] = HALO;
    options.periodic[1] = true;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    unsigned char *device = (unsigned char *)device_alloc((size_t)(ROWS * stride));
    hem_binding binding;
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U8;
    binding.field.memory = device;
    hem_exchange *x = twin_create(world, &binding, 1, 0);
    unsigned char cells[2 * HALO];
    for (int64_t row = 0; row < ROWS; row++) {
        for (int i = 0; i < 2 * HALO; i++)
            cells[i] = (unsigned char)(100 * me + 20 * row + i % HALO + 1);
        device_copy(device + row * stride, cells, 2 * HALO);
        device_copy(device + row * stride + length, cells, 2 * HALO);
    }
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    for (int64_t row = 0; row < ROWS; row++) {
        int left = (me + size - 1) % size;
        int right = (me + 1) % size;
        device_copy(cells, device + row * stride, HALO);
        device_copy(cells + HALO, device + row * stride + HALO + length, HALO);
        for (int i = 0; i < HALO; i++) {
            CHECK_EQ(cells[i], (unsigned char)(100 * left + 20 * row + i + 1));
            CHECK_EQ(cells[HALO + i], (unsigned char)(100 * right + 20 * row + i + 1));
        }
    }
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(device);
}

int rank_main(hem_world *world) {
    CHECK_OK(hem_device_open(world, NULL));
    harness_step("list", 0);
    long_list(world);
    harness_step("far", 0);
    far_away(world);
    harness_close(world, HEM_OK);
    return 0;
}
