/*
 * gpu-exchange: the halos of 16 small fields of floats over the 6 faces of each rank's box, n points
 * along each edge, in a grid that is periodic.
 *
 * hem  hem_exchange_start_on and hem_exchange_finish_on, one right after the other: "staged",
 *      "straight" into the neighbours' halos (HEM_EXCHANGE_DIRECT), and so by "engines"
 *      (HEM_EXCHANGE_ENGINES); the last one not where there are too many rows for that. "back" is the
 *      staged one in reverse: halos are added to what they are copies of
 * raw  one kernel per field and face that copies it straight into the neighbour's halo, or adds a halo to the
 *      neighbour's edge by atomic operations, between two
 *      barriers of all ranks: the least that a program does which launches a kernel for each. 98
 *      launches, in the same graph. Printed beside each way.
 *
 * 27 ranks have six different neighbours each; with 8 the two faces of an axis have the same one,
 * and with 2 some faces are a rank's own. 7 ranks, too, have six different ones: they are in a ring,
 * and who is behind the faces of the three axes is 1, 2 and 3 ranks away. That is no grid, so Hem
 * gets lists of points.
 */
#include "gpu.h"

#include <hem/device.cuh>

#include <stdlib.h>

enum {
    FIELDS = 16,
    FACES = 6,
    FACE_THREADS = 256,
    RING_RANKS = 7,
    SECTOR = 32, /* bytes that the cache takes at once */
    BARRIER_BEFORE = 0,
    BARRIER_AFTER = 1
};

/* Where a rank's box is. */
struct place {
    int parts[3];
    int at[3];
    int edge;
    bool ring; /* not in a grid */
    int rank;
    int neighbours[FACES]; /* below and above along each axis */
};

struct halo {
    struct place place;
    size_t field_bytes; /* from one field to the next */
    hem_window *window;
    hem_dev_window w;
    hem_exchange_way way;
    bool back; /* in reverse */
    hem_exchange *exchange;
};

/* A cube of boxes, or as many halves as there are. */
static void cut(const struct gpu_rank *rank, struct place *place) {
    int cube = 1;
    int left = rank->ranks;

    while (cube * cube * cube < left)
        cube++;
    for (int axis = 0; axis < 3; axis++)
        place->parts[axis] = cube * cube * cube == rank->ranks ? cube : 1;
    for (int axis = 0; cube * cube * cube != rank->ranks && left > 1; axis = (axis + 1) % 3) {
        int by = left % 2 == 0 ? 2 : left;
        place->parts[axis] *= by;
        left /= by;
    }
    place->at[0] = rank->rank / (place->parts[1] * place->parts[2]);
    place->at[1] = rank->rank / place->parts[2] % place->parts[1];
    place->at[2] = rank->rank % place->parts[2];
}

static int neighbour(const struct place *place, int face) {
    int at[3] = {place->at[0], place->at[1], place->at[2]};
    int axis = face / 2;
    int away = axis + 1;

    if (place->ring)
        return (place->rank + (face % 2 == 0 ? RING_RANKS - away : away)) % RING_RANKS;
    at[axis] = (at[axis] + (face % 2 == 0 ? place->parts[axis] - 1 : 1)) % place->parts[axis];
    return (at[0] * place->parts[1] + at[1]) * place->parts[2] + at[2];
}

static struct place place_of(const struct gpu_rank *rank, int edge) {
    struct place place = {};

    place.edge = edge;
    place.rank = rank->rank;
    place.ring = rank->ranks == RING_RANKS;
    if (!place.ring)
        cut(rank, &place);
    for (int face = 0; face < FACES; face++)
        place.neighbours[face] = neighbour(&place, face);
    return place;
}

/* What a point has that is the rank's own or of a halo in one dimension: it follows from who owns it
 * and where it is there. Small whole numbers, of which floats hold the sevenfold. */
static __device__ float value_of(const struct place &place, const int *storage, int field,
                                 unsigned turn) {
    unsigned code = 0;
    int owner = place.rank;

    for (int axis = 0; axis < 3; axis++) {
        int point = storage[axis];
        if (point == 0 || point == place.edge + 1) {
            owner = place.neighbours[2 * axis + (point == 0 ? 0 : 1)];
            point = point == 0 ? place.edge : 1;
        }
        code = code * 1009u + (unsigned)point;
    }
    code += (turn * 31u + (unsigned)field) * 7919u + (unsigned)owner * 104729u;
    code = (code ^ code >> 15) * 2654435761u;
    return (float)((code >> 4) % 1000003u);
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

/* Owned points get their value, all halos something else; in reverse those of faces, too, have theirs. */
static __global__ void fill_kernel(struct place place, float *memory, int field, unsigned turn,
                                   bool back) {
    size_t side = (size_t)place.edge + 2;
    int storage[3];

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < side * side * side;
         i += (size_t)gridDim.x * blockDim.x)
        memory[i] = sort_point(place, i, storage) <= (back ? 1 : 0)
                        ? value_of(place, storage, field, turn)
                        : -1.0f;
}

/* An owned point after a run in reverse: its value, and once more for each face that it is on. */
static __device__ float sum_of(const struct place &place, const int *storage, int field,
                               unsigned turn) {
    int faces = 0;

    for (int axis = 0; axis < 3; axis++)
        faces += (storage[axis] == 1) + (storage[axis] == place.edge);
    return (float)(1 + faces) * value_of(place, storage, field, turn);
}

static __global__ void check_kernel(struct place place, const float *memory, int field,
                                    unsigned turn, bool back, unsigned *wrong) {
    size_t side = (size_t)place.edge + 2;
    unsigned mine = 0;
    int storage[3];

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < side * side * side;
         i += (size_t)gridDim.x * blockDim.x) {
        int outside = sort_point(place, i, storage);
        if (back)
            mine += outside == 0 && memory[i] != sum_of(place, storage, field, turn);
        else
            mine += outside <= 1 && memory[i] != value_of(place, storage, field, turn);
    }
    if (mine > 0)
        atomicAdd(wrong, mine);
}

/* The owned layer next to one face becomes the halo behind the opposite face of the neighbour. In reverse
 * the halo behind the face is added to the layer next to the opposite one. */
static __global__ void face_kernel(const float *from, float *to, int edge, int face, bool back) {
    int side = edge + 2;
    int axis = face / 2;
    int low = face % 2 == 0;
    size_t strides[3] = {(size_t)side * (size_t)side, (size_t)side, 1};
    size_t down = strides[axis == 0 ? 1 : 0];
    size_t along = strides[axis == 2 ? 1 : 2];
    size_t inside = low ? 1 : (size_t)edge;
    size_t outside = low ? 0 : (size_t)edge + 1;
    size_t source = strides[axis] * (back ? outside : inside);
    size_t target = strides[axis] * ((size_t)edge + 1 - (back ? inside : outside));

    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < edge * edge;
         i += (int)(gridDim.x * blockDim.x)) {
        size_t at = (size_t)(i / edge + 1) * down + (size_t)(i % edge + 1) * along;
        if (back)
            atomicAdd_system(&to[target + at], from[source + at]);
        else
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
                field_of(halo, halo->place.neighbours[face], field), edge, face, halo->back);
    }
    barrier_kernel<<<1, 32, 0, rank->stream>>>(halo->w, BARRIER_AFTER, rank->wrong);
    NEED_CUDA(cudaGetLastError());
}

static void body(struct gpu_rank *rank, void *ctx) {
    struct halo *halo = (struct halo *)ctx;

    hem_exchange_how how = {};

    if (rank->args->who == GPU_RAW) {
        by_faces(rank, halo);
        return;
    }
    how.struct_size = sizeof(how);
    how.combine = halo->back ? HEM_COMBINE_SUM : (hem_combine)0;
    NEED_HEM(hem_exchange_start_on(halo->exchange, &how, rank->hem));
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
            halo->place, field_of(halo, rank->rank, field), field, turn, halo->back);
    NEED_CUDA(cudaGetLastError());
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, halo);
    look(rank, "barriers failed");
    gpu_meet(rank);
    for (int field = 0; field < FIELDS; field++)
        check_kernel<<<16, FACE_THREADS, 0, rank->stream>>>(
            halo->place, field_of(halo, rank->rank, field), field, turn, halo->back, rank->wrong);
    NEED_CUDA(cudaGetLastError());
    look(rank, "values are wrong");
}

static void make_grid(struct gpu_rank *rank, const struct place *place, hem_pattern **made_p) {
    hem_grid_options grid = {};
    hem_grid_domain domain = {};

    grid.struct_size = sizeof(grid);
    grid.dims = 3;
    grid.faces_only = true;
    grid.domains = &domain;
    grid.domain_count = 1;
    domain.id = rank->rank;
    for (int axis = 0; axis < 3; axis++) {
        grid.extent[axis] = (int64_t)place->parts[axis] * place->edge;
        grid.periodic[axis] = true;
        grid.halo_low[axis] = grid.halo_high[axis] = 1;
        domain.box.start[axis] = (int64_t)place->at[axis] * place->edge;
        domain.box.count[axis] = place->edge;
    }
    NEED_HEM(hem_pattern_grid(rank->world, &grid, made_p));
}

/* The points of a field in the owned layer next to a face, or in the halo behind it. */
static void list_layer(const struct place *place, int face, bool halo, int64_t *points_p) {
    int64_t side = place->edge + 2;
    int64_t strides[3] = {side * side, side, 1};
    int axis = face / 2;
    int64_t depth = face % 2 == 0 ? (halo ? 0 : 1) : place->edge + (halo ? 1 : 0);

    for (int64_t i = 1; i <= place->edge; i++) {
        for (int64_t j = 1; j <= place->edge; j++)
            *points_p++ = depth * strides[axis] + i * strides[axis == 0 ? 1 : 0] +
                          j * strides[axis == 2 ? 1 : 2];
    }
}

/* All of them, face by face, owned ones first; to be freed. */
static int64_t *list_layers(const struct place *place) {
    size_t count = (size_t)place->edge * (size_t)place->edge;
    int64_t *points = (int64_t *)malloc(2 * FACES * count * sizeof(*points));

    if (points == NULL)
        gpu_die("no memory for lists of %zu points", count);
    for (int face = 0; face < FACES; face++) {
        list_layer(place, face, false, points + (size_t)face * count);
        list_layer(place, face, true, points + (size_t)(FACES + face) * count);
    }
    return points;
}

/* One list to each neighbour and one from each, since all are different. */
static void make_ring(struct gpu_rank *rank, const struct place *place, hem_pattern **made_p) {
    size_t side = (size_t)place->edge + 2;
    size_t all = side * side * side;
    size_t count = (size_t)place->edge * (size_t)place->edge;
    int64_t *points = list_layers(place);
    hem_point_list sends[FACES] = {};
    hem_point_list receives[FACES] = {};
    hem_explicit_options lists = {};

    for (int face = 0; face < FACES; face++) {
        sends[face].peer = receives[face].peer = place->neighbours[face];
        sends[face].points = points + (size_t)face * count;
        receives[face].points = points + (size_t)(FACES + face) * count;
        sends[face].count = receives[face].count = count;
    }
    lists.struct_size = sizeof(lists);
    lists.domain_points = &all;
    lists.domain_count = 1;
    lists.sends = sends;
    lists.receives = receives;
    lists.send_count = lists.receive_count = FACES;
    NEED_HEM(hem_pattern_explicit(rank->world, &lists, made_p));
    free(points);
}

static void make_exchange(struct gpu_rank *rank, struct halo *halo) {
    hem_binding bindings[FIELDS] = {};
    hem_exchange_options options = {};
    hem_pattern *pattern;

    if (halo->place.ring)
        make_ring(rank, &halo->place, &pattern);
    else
        make_grid(rank, &halo->place, &pattern);
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

/* Bytes of the sectors of a field in which points next to a face or behind it lie. */
static size_t sector_bytes(const struct place *place) {
    size_t side = (size_t)place->edge + 2;
    size_t sectors = side * side * side * sizeof(float) / SECTOR + 1;
    size_t count = 2 * FACES * (size_t)place->edge * (size_t)place->edge;
    int64_t *points = list_layers(place);
    bool *seen = (bool *)calloc(sectors, sizeof(*seen));
    size_t found = 0;

    if (seen == NULL)
        gpu_die("no memory for %zu sectors", sectors);
    for (size_t i = 0; i < count; i++)
        seen[(size_t)points[i] * sizeof(float) / SECTOR] = true;
    for (size_t i = 0; i < sectors; i++)
        found += seen[i];
    free(seen);
    free(points);
    return found * SECTOR;
}

/* What all ranks read and write: layers and halos, and where they are staged a message from each
 * neighbour, which has two places by turns. */
static size_t touched(const struct gpu_rank *rank, const struct halo *halo) {
    size_t face_bytes = (size_t)halo->place.edge * (size_t)halo->place.edge * sizeof(float);
    size_t mine = sector_bytes(&halo->place);
    bool staged = rank->args->who == GPU_HEM && halo->way == HEM_EXCHANGE_STAGED;

    for (int face = 0; face < FACES && staged; face++)
        mine += halo->place.neighbours[face] != rank->rank ? 2 * face_bytes : 0;
    return mine * FIELDS * (size_t)rank->ranks;
}

static void run_edge(struct gpu_rank *rank, int edge, const char *name, hem_exchange_way way,
                     bool back) {
    size_t side = (size_t)edge + 2;
    struct halo halo = {};
    hem_window_options options = {};
    struct gpu_line line = {name, 0, (size_t)edge, 0, 0};

    gpu_watch(rank, "16 fields of %d^3 points", edge);
    halo.way = way;
    halo.back = back;
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
    line.touched = touched(rank, &halo);
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
        int edge = (int)rank->args->sizes.bytes[i];
        run_edge(rank, edge, "staged", HEM_EXCHANGE_STAGED, false);
        run_edge(rank, edge, "straight", HEM_EXCHANGE_DIRECT, false);
        run_edge(rank, edge, "engines", HEM_EXCHANGE_ENGINES, false);
        run_edge(rank, edge, "back", HEM_EXCHANGE_STAGED, true);
    }
}
