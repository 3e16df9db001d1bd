#include "halo.h"

#include "meet.h"
#include "turns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Values are whole numbers that all types can hold. */
static const uint32_t value_mask = 0xffffff;

void *bench_get(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);

    if (memory == NULL)
        bench_die("no memory for %zu things of %zu bytes", count, size);
    return memory;
}

uint32_t bench_halo_base(uint64_t id, size_t level) {
    uint64_t h = (id * 1024 + level + 1) * UINT64_C(0x9E3779B97F4A7C15);

    return (uint32_t)((h ^ h >> 29) >> 16);
}

bool bench_piece_is_run(const struct bench_piece *piece) {
    return piece->index == NULL && piece->count[0] == 1 && piece->count[1] == 1;
}

size_t bench_halo_bytes(const struct bench_halo *halo, const struct bench_field *field) {
    return halo->points * halo->levels * field->element;
}

void bench_halo_alloc(struct bench_halo *halo) {
    for (size_t f = 0; f < halo->fields; f++) {
        void *memory = mmap(NULL, bench_halo_bytes(halo, &halo->field[f]), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            bench_die("no memory for a field of %zu points", halo->points);
        halo->field[f].memory = memory;
    }
}

void bench_halo_release(struct bench_halo *halo) {
    for (size_t f = 0; f < halo->fields; f++) {
        if (halo->field[f].memory != NULL)
            munmap(halo->field[f].memory, bench_halo_bytes(halo, &halo->field[f]));
        halo->field[f].memory = NULL;
    }
}

size_t bench_halo_moved(const struct bench_halo *halo) {
    size_t points = 0;
    size_t bytes = 0;

    for (size_t i = 0; i < halo->peers; i++)
        points += halo->peer[i].recv_points;
    for (size_t f = 0; f < halo->fields; f++)
        bytes += points * halo->levels * halo->field[f].element;
    return bytes;
}

/* What is added to the base of every value of a field: no two fields and iterations are alike. */
static uint32_t addend(const struct bench_halo *halo, size_t field) {
    return (uint32_t)halo->seq * 0x9E3779B1u + (uint32_t)field * 0x85EBCA6Bu;
}

static inline int32_t value_of(uint32_t base, uint32_t add) {
    return (int32_t)((base + add) & value_mask);
}

static void fill_f64(double *to, const uint32_t *base, size_t n, uint32_t add) {
    for (size_t i = 0; i < n; i++)
        to[i] = value_of(base[i], add);
}

static void fill_f32(float *to, const uint32_t *base, size_t n, uint32_t add) {
    for (size_t i = 0; i < n; i++)
        to[i] = (float)value_of(base[i], add);
}

static void fill_i32(int32_t *to, const uint32_t *base, size_t n, uint32_t add) {
    for (size_t i = 0; i < n; i++)
        to[i] = value_of(base[i], add);
}

static bool check_f64(const double *from, const uint32_t *base, size_t n, uint32_t add) {
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong |= from[i] != value_of(base[i], add);
    return wrong == 0;
}

static bool check_f32(const float *from, const uint32_t *base, size_t n, uint32_t add) {
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong |= from[i] != (float)value_of(base[i], add);
    return wrong == 0;
}

static bool check_i32(const int32_t *from, const uint32_t *base, size_t n, uint32_t add) {
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong |= from[i] != value_of(base[i], add);
    return wrong == 0;
}

static void fill_row(const struct bench_field *field, size_t at, const uint32_t *base, size_t n,
                     uint32_t add) {
    void *to = field->memory + at * field->element;

    if (field->type == BENCH_F64)
        fill_f64(to, base, n, add);
    else if (field->type == BENCH_F32)
        fill_f32(to, base, n, add);
    else
        fill_i32(to, base, n, add);
}

static bool check_row(const struct bench_field *field, size_t at, const uint32_t *base, size_t n,
                      uint32_t add) {
    const void *from = field->memory + at * field->element;

    if (field->type == BENCH_F64)
        return check_f64(from, base, n, add);
    if (field->type == BENCH_F32)
        return check_f32(from, base, n, add);
    return check_i32(from, base, n, add);
}

/* The number of rows of a piece, and where one begins and how many values it has. */
static size_t row_count(const struct bench_piece *piece) {
    return piece->index != NULL ? piece->points : piece->count[0] * piece->count[1];
}

static size_t row_start(const struct bench_piece *piece, size_t row) {
    if (piece->index != NULL)
        return (size_t)piece->index[row];
    return piece->start + row / piece->count[1] * piece->stride[0] +
           row % piece->count[1] * piece->stride[1];
}

static size_t row_points(const struct bench_piece *piece) {
    return piece->index != NULL ? 1 : piece->count[2];
}

void bench_halo_fill(const struct bench_halo *halo) {
    for (size_t f = 0; f < halo->fields; f++) {
        for (size_t p = 0; p < halo->sends.count; p++) {
            const struct bench_piece *piece = &halo->sends.piece[p];
            size_t n = row_points(piece) * halo->levels;

            for (size_t row = 0; row < row_count(piece); row++)
                fill_row(&halo->field[f], row_start(piece, row) * halo->levels,
                         piece->base + row * n, n, addend(halo, f));
        }
    }
}

static void check_piece(const struct bench_halo *halo, size_t f, const struct bench_piece *piece) {
    size_t n = row_points(piece) * halo->levels;

    for (size_t row = 0; row < row_count(piece); row++) {
        if (!check_row(&halo->field[f], row_start(piece, row) * halo->levels, piece->base + row * n,
                       n, addend(halo, f)))
            bench_die("rank %d: iteration %llu with size %zu: field %zu has a wrong value from "
                      "rank %d in row %zu",
                      halo->world->rank, (unsigned long long)halo->seq, halo->size, f, piece->peer,
                      row);
    }
}

void bench_halo_check(const struct bench_halo *halo) {
    for (size_t f = 0; f < halo->fields; f++) {
        for (size_t p = 0; p < halo->recvs.count; p++)
            check_piece(halo, f, &halo->recvs.piece[p]);
    }
}

static int by_peer(const void *a, const void *b) {
    const struct bench_piece *x = a;
    const struct bench_piece *y = b;

    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The makers list the pieces of two ranks in the same order on both sides, and that stays. */
static void order_pieces(struct bench_pieces *pieces) {
    for (size_t i = 0; i < pieces->count; i++)
        pieces->piece[i].order = i;
    qsort(pieces->piece, pieces->count, sizeof(struct bench_piece), by_peer);
}

/* Counts the pieces from `at` on that are for one peer. */
static size_t gather(const struct bench_pieces *pieces, size_t at, int peer, size_t *points_p) {
    size_t count = 0;

    *points_p = 0;
    while (at + count < pieces->count && pieces->piece[at + count].peer == peer)
        *points_p += pieces->piece[at + count++].points;
    return count;
}

/* Pieces are ordered by peer; whoever is sent to also sends here. */
static void find_peers(struct bench_halo *halo) {
    halo->peer = bench_get(halo->sends.count, sizeof(*halo->peer));
    for (size_t s = 0, r = 0; s < halo->sends.count;) {
        struct bench_peer peer = {halo->sends.piece[s].peer, s, 0, r, 0, 0, 0};

        peer.sends = gather(&halo->sends, s, peer.rank, &peer.send_points);
        peer.recvs = gather(&halo->recvs, r, peer.rank, &peer.recv_points);
        if (peer.recvs != peer.sends)
            bench_die("rank %d sends %zu pieces to rank %d and gets %zu", halo->world->rank,
                      peer.sends, peer.rank, peer.recvs);
        s += peer.sends;
        r += peer.recvs;
        if (peer.rank == halo->world->rank)
            halo->self = peer;
        else
            halo->peer[halo->peers++] = peer;
    }
}

static void name_fields(struct bench_halo *halo) {
    static const size_t elements[] = {sizeof(double), sizeof(float), sizeof(int32_t)};

    halo->fields = (size_t)halo->shape.value[HEMT_FIELDS];
    for (size_t f = 0; f < halo->fields; f++)
        halo->field[f] = (struct bench_field){(enum bench_type)(f % 3), elements[f % 3], NULL};
}

void bench_halo_make(struct bench_halo *halo, enum bench_kind kind, const struct hemt_shape *shape,
                     size_t size) {
    halo->kind = kind;
    halo->shape = *shape;
    halo->size = size;
    halo->levels = kind == BENCH_MESH ? (size_t)shape->value[HEMT_LEVELS] : 1;
    halo->seq = 0;
    halo->peers = 0;
    halo->self = (struct bench_peer){0};
    name_fields(halo);
    if (kind == BENCH_MESH)
        bench_make_mesh(halo);
    else
        bench_make_grid(halo);
    order_pieces(&halo->sends);
    order_pieces(&halo->recvs);
    find_peers(halo);
}

static void free_pieces(struct bench_pieces *pieces) {
    for (size_t i = 0; i < pieces->count; i++) {
        free(pieces->piece[i].index);
        free(pieces->piece[i].base);
    }
    free(pieces->piece);
    *pieces = (struct bench_pieces){0};
}

void bench_halo_free(struct bench_halo *halo) {
    free_pieces(&halo->sends);
    free_pieces(&halo->recvs);
    free(halo->peer);
    free(halo->part.ids);
    halo->peer = NULL;
    halo->part.ids = NULL;
}

static void begin_turn(void *ctx) {
    struct bench_halo *halo = ctx;

    halo->seq++;
    bench_halo_fill(halo);
}

static void run_turn(void *ctx) {
    struct bench_halo *halo = ctx;

    halo->run(halo->ctx);
}

static void check_turn(void *ctx) {
    bench_halo_check(ctx);
}

void bench_halo_measure(struct bench_halo *halo, const char *impl) {
    size_t moved = bench_halo_moved(halo);
    struct bench_turns turns = {.world = halo->world,
                                .meet = halo->meet,
                                .help = halo->help,
                                .begin = begin_turn,
                                .run = run_turn,
                                .check = check_turn,
                                .ctx = halo,
                                .touched = 2 * moved};
    struct bench_result result = bench_turns_measure(&turns);

    moved = bench_meet_most(halo->meet, halo->world, halo->help, moved);
    bench_print_more(halo->world, impl, halo->kind, halo->size, result,
                     &(struct bench_more){.moved = moved});
}
