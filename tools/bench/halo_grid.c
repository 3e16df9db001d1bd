/*
 * Grids of one box per rank, all of the same edge. The ranks are spread over the dimensions as
 * evenly as they can be, beginning with the axis that is asked for. Halos are at faces, edges and
 * corners.
 */
#include "halo.h"

/* Where a rank's box lies among the others. Dimensions are those of the grid, 2 or 3. */
struct cut {
    int dims;
    int parts[BENCH_MOST_DIMS];
    int place[BENCH_MOST_DIMS];
};

static int largest_factor(int n) {
    int largest = n;

    for (int f = 2; f < n; f++) {
        while (n % f == 0 && n > f) {
            n /= f;
            largest = n;
        }
    }
    return largest;
}

static struct cut cut_ranks(const struct bench_halo *halo) {
    struct cut cut = {.dims = halo->shape.value[HEMT_DIMS], .parts = {1, 1, 1}};
    int rank = halo->world->rank;

    for (int left = halo->world->ranks; left > 1;) {
        int factor = largest_factor(left);
        int best = halo->shape.value[HEMT_AXIS];
        for (int d = 0; d < cut.dims; d++) {
            if (cut.parts[d] < cut.parts[best])
                best = d;
        }
        cut.parts[best] *= factor;
        left /= factor;
    }
    for (int d = cut.dims - 1; d >= 0; d--) {
        cut.place[d] = rank % cut.parts[d];
        rank /= cut.parts[d];
    }
    return cut;
}

/* Digit `d` of a direction, -1, 0 or 1; the opposite of direction c is the last one minus c. */
static int step_of(int direction, int dims, int d) {
    for (int i = d; i < dims - 1; i++)
        direction /= 3;
    return direction % 3 - 1;
}

static int directions_of(int dims) {
    return dims == 2 ? 9 : 27;
}

/* The rank in this direction, or -1. */
static int rank_at(const struct cut *cut, bool periodic, int direction) {
    int rank = 0;

    for (int d = 0; d < cut->dims; d++) {
        int place = cut->place[d] + step_of(direction, cut->dims, d);
        if (!periodic && (place < 0 || place >= cut->parts[d]))
            return -1;
        rank = rank * cut->parts[d] + (place + cut->parts[d]) % cut->parts[d];
    }
    return rank;
}

static uint64_t id_of(const struct bench_box *box, const size_t *at, size_t halo) {
    uint64_t id = 0;

    for (int d = 0; d < box->dims; d++) {
        int64_t point = box->start[d] + (int64_t)at[d] - (int64_t)halo + box->extent[d];
        id = id * (uint64_t)box->extent[d] + (uint64_t)(point % box->extent[d]);
    }
    return id;
}

/* Storage indices of the piece's point number `n`, for as many dimensions as the grid has. */
static void locate(const struct bench_piece *piece, const size_t *from, int dims, size_t n,
                   size_t *at_p) {
    for (int d = dims - 1; d >= 0; d--) {
        size_t count = piece->count[BENCH_MOST_DIMS - dims + d];
        at_p[d] = from[d] + n % count;
        n /= count;
    }
}

/* Makes the box on one side: inside of the rank's own points, or in the halo around them. */
static void make_piece(const struct bench_halo *halo, int direction, bool inside,
                       struct bench_piece *piece_p) {
    int dims = halo->box.dims;
    size_t width = (size_t)halo->shape.value[HEMT_HALO];
    size_t n = halo->size;
    size_t from[BENCH_MOST_DIMS];
    size_t stride = 1;

    piece_p->points = 1;
    for (int k = 0; k < BENCH_MOST_DIMS; k++)
        piece_p->count[k] = 1;
    for (int d = dims - 1; d >= 0; d--) {
        int k = BENCH_MOST_DIMS - dims + d;
        int step = step_of(direction, dims, d);

        from[d] = step < 0 ? (inside ? width : 0) : step > 0 ? (inside ? n : n + width) : width;
        piece_p->count[k] = step == 0 ? n : width;
        piece_p->stride[k] = stride;
        piece_p->start += from[d] * stride;
        piece_p->points *= piece_p->count[k];
        stride *= n + 2 * width;
    }
    piece_p->base = bench_get(piece_p->points, sizeof(uint32_t));
    for (size_t i = 0; i < piece_p->points; i++) {
        size_t at[BENCH_MOST_DIMS];
        locate(piece_p, from, dims, i, at);
        piece_p->base[i] = bench_halo_base(id_of(&halo->box, at, width), 0);
    }
}

static void add_piece(const struct bench_halo *halo, const struct cut *cut, int direction,
                      bool inside, struct bench_pieces *pieces) {
    int peer = rank_at(cut, halo->shape.value[HEMT_PERIODIC] != 0, direction);
    struct bench_piece piece = {.peer = peer};

    if (peer < 0 || direction == directions_of(cut->dims) / 2)
        return;
    make_piece(halo, direction, inside, &piece);
    pieces->piece[pieces->count++] = piece;
}

void bench_make_grid(struct bench_halo *halo) {
    struct cut cut = cut_ranks(halo);
    int last = directions_of(cut.dims) - 1;
    size_t edge = halo->size + 2 * (size_t)halo->shape.value[HEMT_HALO];

    halo->points = 1;
    halo->box.dims = cut.dims;
    for (int d = 0; d < cut.dims; d++) {
        halo->points *= edge;
        halo->box.extent[d] = (int64_t)halo->size * cut.parts[d];
        halo->box.start[d] = (int64_t)halo->size * cut.place[d];
        halo->box.count[d] = (int64_t)halo->size;
    }
    halo->sends.piece = bench_get((size_t)last, sizeof(struct bench_piece));
    halo->recvs.piece = bench_get((size_t)last, sizeof(struct bench_piece));
    /* What goes in one direction fills the halo on the opposite side. */
    for (int direction = 0; direction <= last; direction++) {
        add_piece(halo, &cut, direction, true, &halo->sends);
        add_piece(halo, &cut, last - direction, false, &halo->recvs);
    }
}
