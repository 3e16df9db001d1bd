/*
 * gpu-exchange: the halos of 16 small fields of floats over the 6 faces of each rank's box, n points
 * along each edge, in a grid that is periodic.
 *
 * hem  hem_exchange_start_on and hem_exchange_finish_on, one right after the other: "staged",
 *      "straight" into the neighbours' halos (HEM_EXCHANGE_DIRECT), and so by "engines"
 *      (HEM_EXCHANGE_ENGINES); the last one not where there are too many rows for that
 * raw  one kernel per field and face that copies it straight into the neighbour's halo, between two
 *      barriers of all ranks: the least that a program does which launches a kernel for each. 98
 *      launches, in the same graph. Printed beside each way.
 *
 * 27 ranks have six different neighbours each; with 8 the two faces of an axis have the same one,
 * and with 2 some faces are a rank's own.
 */
#include "gpu.h"

#include <hem/device.cuh>

enum {
    FIELDS = 16,
    FACES = 6,
    FACE_THREADS = 256,
    BARRIER_BEFORE = 0,
    BARRIER_AFTER = 1
};

/* Where a rank's box is. */
struct place {
    int parts[3];
    int at[3];
    int edge;
};

struct halo {
    struct place place;
    size_t field_bytes; /* from one field to the next */
    hem_window *window;
    hem_dev_window w;
    hem_exchange_way way;
    hem_exchange *exchange;
};

/* A cube of boxes, or as many halves as there are. */
static struct place place_of(const struct gpu_rank *rank, int edge) {
    struct place place = {{1, 1, 1}, {0, 0, 0}, edge};
    int cube = 1;
    int left = rank->ranks;

    while (cube * cube * cube < left)
        cube++;
    for (int axis = 0; axis < 3; axis++)
        place.parts[axis] = cube * cube * cube == rank->ranks ? cube : 1;
    for (int axis = 0; cube * cube * cube != rank->ranks && left > 1; axis = (axis + 1) % 3) {
        int by = left % 2 == 0 ? 2 : left;
        place.parts[axis] *= by;
        left /= by;
    }
    place.at[0] = rank->rank / (place.parts[1] * place.parts[2]);
    place.at[1] = rank->rank / place.parts[2] % place.parts[1];
    place.at[2] = rank->rank % place.parts[2];
    return place;
}

static int neighbour(const struct place *place, int face) {
    int at[3] = {place->at[0], place->at[1], place->at[2]};
    int axis = face / 2;

    at[axis] = (at[axis] + (face % 2 == 0 ? place->parts[axis] - 1 : 1)) % place->parts[axis];
    return (at[0] * place->parts[1] + at[1]) * place->parts[2] + at[2];
}

/* What a point of the whole grid has: small whole numbers, which floats hold. */
static __device__ float value_of(const struct place &place, const int *storage, int field,
                                 unsigned turn) {
    unsigned code = turn * 31u + (unsigned)field;

    for (int axis = 0; axis < 3; axis++) {
        int extent = place.parts[axis] * place.edge;
        int point = (place.at[axis] * place.edge + storage[axis] - 1 + extent) % extent;
        code = code * 1009u + (unsigned)point;
    }
    return (float)(code % 16777213u);
}

/* Where the i-th point that is stored lies, and in how many dimensions it is a halo: edges and corners
 * of halos, with more than one, take no part. */
static __device__ int sort_point(const struct place &place, size_t i, int *storage) {
    int side = place.edge + 2;
    int outside = 0;

    storage[2] = (int)(i % (size_t)side);
    storage[1] = (int)(i / (size_t)side % (size_t)side);
    storage[0] = (int)(i / (size_t)side / (size_t)side);
    for (int axis = 0; axis < 3; axis++)
        outside += storage[axis] == 0 || storage[axis] == side - 1;
    return outside;
}

/* Owned points get their value, all halos something else. */
static __global__ void fill_kernel(struct place place, float *memory, int field, unsigned turn) {
    size_t side = (size_t)place.edge + 2;
    int storage[3];

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < side * side * side;
         i += (size_t)gridDim.x * blockDim.x)
        memory[i] =
            sort_point(place, i, storage) == 0 ? value_of(place, storage, field, turn) : -1.0f;
}

static __global__ void check_kernel(struct place place, const float *memory, int field,
                                    unsigned turn, unsigned *wrong) {
    size_t side = (size_t)place.edge + 2;
    unsigned mine = 0;
    int storage[3];

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < side * side * side;
         i += (size_t)gridDim.x * blockDim.x)
        mine += sort_point(place, i, storage) <= 1 &&
                memory[i] != value_of(place, storage, field, turn);
    if (mine > 0)
        atomicAdd(wrong, mine);
}

/* The owned layer next to one face becomes the halo behind the opposite face of the neighbour. */
static __global__ void face_kernel(const float *from, float *to, int edge, int face) {
    int side = edge + 2;
    int axis = face / 2;
    int low = face % 2 == 0;
    size_t strides[3] = {(size_t)side * (size_t)side, (size_t)side, 1};
    size_t down = strides[axis == 0 ? 1 : 0];
    size_t along = strides[axis == 2 ? 1 : 2];
    size_t source = strides[axis] * (size_t)(low ? 1 : edge);
    size_t target = strides[axis] * (size_t)(low ? edge + 1 : 0);

    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < edge * edge;
         i += (int)(gridDim.x * blockDim.x)) {
        size_t at = (size_t)(i / edge + 1) * down + (size_t)(i % edge + 1) * along;
        to[target + at] = from[source + at];
    }
}

static __global__ void barrier_kernel(hem_dev_window w, uint32_t id, unsigned *failed) {
    if (hem_dev_barrier(w, hem_warp(), id, HEM_SEC(5)) != HEM_OK && threadIdx.x == 0)
        atomicAdd(failed, 1);
}

static float *field_of(const struct halo *halo, int rank, int field) {
    return (float *)hem_window_peer_address(halo->window, rank, (size_t)field * halo->field_bytes);
}

static void by_faces(struct gpu_rank *rank, struct halo *halo) {
    int edge = halo->place.edge;
    unsigned blocks = (unsigned)(edge * edge + FACE_THREADS - 1) / FACE_THREADS;

    barrier_kernel<<<1, 32, 0, rank->stream>>>(halo->w, BARRIER_BEFORE, rank->wrong);
    for (int field = 0; field < FIELDS; field++) {
        for (int face = 0; face < FACES; face++)
            face_kernel<<<blocks, FACE_THREADS, 0, rank->stream>>>(
                field_of(halo, rank->rank, field),
                field_of(halo, neighbour(&halo->place, face), field), edge, face);
    }
    barrier_kernel<<<1, 32, 0, rank->stream>>>(halo->w, BARRIER_AFTER, rank->wrong);
    NEED_CUDA(cudaGetLastError());
}

static void body(struct gpu_rank *rank, void *ctx) {
    struct halo *halo = (struct halo *)ctx;

    if (rank->args->who == GPU_RAW) {
        by_faces(rank, halo);
        return;
    }
    NEED_HEM(hem_exchange_start_on(halo->exchange, NULL, rank->hem));
    NEED_HEM(hem_exchange_finish_on(halo->exchange, rank->hem));
}

static void look(struct gpu_rank *rank, const char *what) {
    unsigned wrong = 0;

    NEED_CUDA(
        cudaMemcpyAsync(&wrong, rank->wrong, sizeof(wrong), cudaMemcpyDeviceToHost, rank->stream));
    gpu_finish(rank);
    if (wrong > 0)
        gpu_die("rank %d: %u %s", rank->rank, wrong, what);
}

static void verify(struct gpu_rank *rank, struct halo *halo, unsigned turn) {
    NEED_CUDA(cudaMemsetAsync(rank->wrong, 0, sizeof(*rank->wrong), rank->stream));
    for (int field = 0; field < FIELDS; field++)
        fill_kernel<<<16, FACE_THREADS, 0, rank->stream>>>(
            halo->place, field_of(halo, rank->rank, field), field, turn);
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, halo);
    look(rank, "barriers failed");
    gpu_meet(rank);
    for (int field = 0; field < FIELDS; field++)
        check_kernel<<<16, FACE_THREADS, 0, rank->stream>>>(
            halo->place, field_of(halo, rank->rank, field), field, turn, rank->wrong);
    look(rank, "values are wrong");
}

static void make_exchange(struct gpu_rank *rank, struct halo *halo) {
    hem_binding bindings[FIELDS] = {};
    hem_exchange_options options = {};
    hem_grid_options grid = {};
    hem_grid_domain domain = {};
    hem_pattern *pattern;

    grid.struct_size = sizeof(grid);
    grid.dims = 3;
    grid.faces_only = true;
    grid.domains = &domain;
    grid.domain_count = 1;
    domain.id = rank->rank;
    for (int axis = 0; axis < 3; axis++) {
        grid.extent[axis] = (int64_t)halo->place.parts[axis] * halo->place.edge;
        grid.periodic[axis] = true;
        grid.halo_low[axis] = grid.halo_high[axis] = 1;
        domain.box.start[axis] = (int64_t)halo->place.at[axis] * halo->place.edge;
        domain.box.count[axis] = halo->place.edge;
    }
    NEED_HEM(hem_pattern_grid(rank->world, &grid, &pattern));
    for (int field = 0; field < FIELDS; field++) {
        bindings[field].pattern = pattern;
        bindings[field].field.struct_size = sizeof(hem_field);
        bindings[field].field.memory = field_of(halo, rank->rank, field);
        bindings[field].field.dtype = HEM_F32;
    }
    options.struct_size = sizeof(options);
    options.bindings = bindings;
    options.count = FIELDS;
    options.way = halo->way;
    hem_status status = hem_exchange_create(rank->world, &options, &halo->exchange);
    if (halo->way != HEM_EXCHANGE_ENGINES || status != HEM_ERR_UNSUPPORTED)
        NEED_HEM(status);
    NEED_HEM(hem_pattern_destroy(pattern));
}

static void run_edge(struct gpu_rank *rank, int edge, hem_exchange_way way) {
    size_t side = (size_t)edge + 2;
    struct halo halo = {};
    hem_window_options options = {};
    const char *name = way == HEM_EXCHANGE_ENGINES  ? "engines"
                       : way == HEM_EXCHANGE_DIRECT ? "straight"
                                                    : "staged";
    struct gpu_line line = {name, 0, (size_t)edge, 0, 0};

    gpu_watch(rank, "16 fields of %d^3 points", edge);
    halo.way = way;
    halo.place = place_of(rank, edge);
    halo.field_bytes = (side * side * side * sizeof(float) + 255) / 256 * 256;
    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = halo.field_bytes * FIELDS;
    NEED_HEM(hem_window_create(rank->world, &options, &halo.window));
    NEED_HEM(hem_window_device(halo.window, &halo.w));
    if (rank->args->who == GPU_HEM)
        make_exchange(rank, &halo);
    if (rank->args->who == GPU_HEM && halo.exchange == NULL) { /* on all ranks */
        NEED_HEM(hem_window_destroy(halo.window));
        return;
    }
    line.moved = (size_t)edge * (size_t)edge * sizeof(float) * FACES * FIELDS;
    line.touched = options.bytes * (size_t)rank->ranks;
    verify(rank, &halo, 1);
    struct gpu_result result = gpu_measure(rank, body, &halo, 16);
    verify(rank, &halo, 2);
    gpu_print(rank, &line, result);
    gpu_meet(rank);
    NEED_HEM(hem_exchange_destroy(halo.exchange));
    NEED_HEM(hem_window_destroy(halo.window));
}

void gpu_exchange(struct gpu_rank *rank) {
    for (size_t i = 0; i < rank->args->sizes.count; i++) {
        if (rank->args->sizes.bytes[i] > 256)
            gpu_die("edges are 1 to 256");
        run_edge(rank, (int)rank->args->sizes.bytes[i], HEM_EXCHANGE_STAGED);
        run_edge(rank, (int)rank->args->sizes.bytes[i], HEM_EXCHANGE_DIRECT);
        run_edge(rank, (int)rank->args->sizes.bytes[i], HEM_EXCHANGE_ENGINES);
    }
}
