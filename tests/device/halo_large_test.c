/*
 * Much: more than 2^20 indices per neighbour in a list, a face that takes many tiles of many blocks,
 * and fields of more than 2^31 elements, whose halos lie beyond what 32 bits count: those of a box, and
 * those that a list names.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=120
 */
#include "halo_ring.h"

#define INDICES ((1 << 20) + 77)

/* What point `i` of the rank's own has. */
static uint32_t value_of(int rank, int64_t i) {
    return (uint32_t)((uint64_t)(i + 1) * 2654435761u + (uint32_t)rank * 40503u);
}

/* Of `points` points everybody sends some to the next rank, which gets them at others. */
static hem_pattern *make_lists(hem_world *world, size_t points, const int64_t *sent,
                               const int64_t *got, size_t count) {
    hem_point_list lists[2];
    hem_explicit_options options;
    hem_pattern *pattern = NULL;
    memset(lists, 0, sizeof lists);
    memset(&options, 0, sizeof options);
    lists[0].peer = harness_right(world);
    lists[0].points = sent;
    lists[1].peer = harness_left(world);
    lists[1].points = got;
    lists[0].count = lists[1].count = count;
    options.struct_size = sizeof options;
    options.domain_points = &points;
    options.domain_count = 1;
    options.sends = &lists[0];
    options.receives = &lists[1];
    options.send_count = options.receive_count = 1;
    CHECK_OK(hem_pattern_explicit(world, &options, &pattern));
    return pattern;
}

/* Everybody sends scattered points to the next rank, which has them scattered, too. */
static void long_list(hem_world *world) {
    int me = hem_world_rank(world);
    size_t points = 2 * (size_t)INDICES;
    int64_t *sent = (int64_t *)malloc(INDICES * sizeof *sent);
    int64_t *got = (int64_t *)malloc(INDICES * sizeof *got);
    uint32_t *values = (uint32_t *)malloc(points * sizeof *values);
    uint32_t *device = (uint32_t *)device_alloc(points * sizeof *values);
    for (int64_t i = 0; i < INDICES; i++) {
        sent[i] = i * 7919 % INDICES;
        got[i] = INDICES + i * 104729 % INDICES;
        values[i] = value_of(me, i);
        values[INDICES + i] = 0;
    }
    hem_pattern *pattern = make_lists(world, points, sent, got, INDICES);
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
        CHECK_EQ(values[got[i]], value_of(harness_left(world), sent[i]));
    }
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(device);
    free(values);
    free(got);
    free(sent);
}

static hem_exchange *bind(hem_world *world, const hem_pattern *pattern, hem_dtype dtype,
                          void *memory) {
    hem_binding binding;
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = dtype;
    binding.field.memory = memory;
    return twin_create(world, &binding, 1, 0);
}

/* As many points in the face of a box, each in a row of its own: a halo, and two of the rank's own. */
static hem_pattern *make_rows(hem_world *world) {
    hem_grid_domain domain;
    hem_grid_options options;
    hem_pattern *pattern = NULL;
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    domain.id = hem_world_rank(world);
    domain.box.start[1] = 2 * (int64_t)domain.id;
    domain.box.count[0] = INDICES;
    domain.box.count[1] = 2;
    options.struct_size = sizeof options;
    options.dims = 2;
    options.extent[0] = INDICES;
    options.extent[1] = 2 * (int64_t)hem_world_size(world);
    options.periodic[1] = true;
    options.halo_low[1] = 1;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    return pattern;
}

static void many_rows(hem_world *world) {
    const size_t bytes = 3 * (size_t)INDICES * sizeof(uint32_t);
    hem_pattern *pattern = make_rows(world);
    uint32_t *values = (uint32_t *)calloc(1, bytes);
    uint32_t *device = (uint32_t *)device_alloc(bytes);
    hem_exchange *x = bind(world, pattern, HEM_U32, device);
    CHECK(values != NULL);
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < INDICES; i++)
            values[3 * i + 2] = value_of(hem_world_rank(world) + round, i);
        device_copy(device, values, bytes);
        CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
        device_copy(values, device, bytes);
        for (int64_t i = 0; i < INDICES; i++) {
            CHECK_EQ(values[3 * i], value_of(harness_left(world) + round, i));
            CHECK_EQ(values[3 * i + 1], 0);
            CHECK_EQ(values[3 * i + 2], value_of(hem_world_rank(world) + round, i));
        }
    }
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(device);
    free(values);
}

/* What both fields have that are so large. */
#define FAR_BYTES (4 * ((1ll << 30) + 1000))

enum {
    FAR_RUNS = 60,
    FAR_STEP = 72796060, /* from run to run: the last one begins behind 4 GiB */
    FAR_LONG = 99        /* points of a run at most */
};

/* The points of a list, run by run, or one of each; not all equally far apart. @return How many. */
static size_t far_points(int64_t first, bool runs, int64_t *points) {
    size_t count = 0;
    for (int64_t run = 0; run < FAR_RUNS; run++) {
        int64_t length = runs ? 40 + run * 7 % (FAR_LONG - 40) : 1;
        for (int64_t i = 0; i < length; i++)
            points[count++] = first + run * FAR_STEP + run % 3 + i;
    }
    return count;
}

static void far_list(hem_world *world, bool runs) {
    int64_t sent[FAR_RUNS * FAR_LONG], got[FAR_RUNS * FAR_LONG];
    size_t count = far_points(0, runs, sent);
    CHECK_EQ(far_points(1000, runs, got), count);
    CHECK(sent[count - 1] > UINT32_MAX && got[count - 1] < FAR_BYTES);
    hem_pattern *pattern = make_lists(world, FAR_BYTES, sent, got, count);
    unsigned char *device = (unsigned char *)device_alloc(FAR_BYTES);
    hem_exchange *x = bind(world, pattern, HEM_U8, device);
    for (size_t i = 0; i < count; i++) {
        unsigned char value = (unsigned char)value_of(hem_world_rank(world), (int64_t)i);
        device_copy(device + sent[i], &value, 1);
    }
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    for (size_t i = 0; i < count; i++) {
        unsigned char around[3];
        device_copy(around, device + got[i] - 1, 3);
        CHECK_EQ(around[1], (unsigned char)value_of(harness_left(world), (int64_t)i));
        CHECK(around[0] == 0 || (i > 0 && got[i - 1] == got[i] - 1));
    }
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(device);
}

/* Four rows of 2^30 bytes, of which only the ends are ever touched. */
static void far_away(hem_world *world) {
    enum {
        ROWS = 4,
        HALO = 500
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
    CHECK_EQ(ROWS * stride, FAR_BYTES);
    unsigned char *device = (unsigned char *)device_alloc(FAR_BYTES);
    hem_exchange *x = bind(world, pattern, HEM_U8, device);
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
    harness_step("rows", 0);
    many_rows(world);
    harness_step("far", 0);
    far_away(world);
    for (int i = 0; i < 2; i++) {
        harness_step("far list", (uint64_t)i);
        far_list(world, i != 0);
    }
    harness_close(world, HEM_OK);
    return 0;
}
