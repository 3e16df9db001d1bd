/*
 * A triangulated torus: a sheet of points, each joined to the four beside it and to two across,
 * closed around in both directions. It is cut into blocks whose edges wander and fray, as
 * partitioners leave them, the same way on all ranks. A halo of width w is what is within w edges of
 * a rank's own points.
 */
#include "halo.h"

#include <stdlib.h>

struct torus {
    const struct bench_halo *halo;
    size_t nx;
    size_t ny;
    int *owner;
    int32_t *place; /* where a point is stored here, or -1 */
};

enum {
    JOINED = 6
};

static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* The k-th point that this one is joined to. */
static size_t joined(const struct torus *torus, size_t id, int k) {
    static const int step_x[JOINED] = {1, -1, 0, 0, 1, -1};
    static const int step_y[JOINED] = {0, 0, 1, -1, 1, -1};
    size_t x = (id % torus->nx + torus->nx + (size_t)step_x[k]) % torus->nx;
    size_t y = (id / torus->nx + torus->ny + (size_t)step_y[k]) % torus->ny;

    return y * torus->nx + x;
}

/* A slow wave of an eighth of a block, and every third point on the edge falls to either side. */
static size_t shifted(size_t a, size_t b, size_t n, size_t blocks, uint64_t salt) {
    size_t wave = n / blocks / 8 + 1;
    size_t phase = b * 8 % (4 * wave);
    size_t drift = phase < 2 * wave ? phase / 2 : (4 * wave - phase) / 2;
    size_t fray = scramble(a * 0x10001 + b + salt) % 3 == 0 ? 1 : 0;

    return (a + drift + fray) % n;
}

static void choose_owners(struct torus *torus) {
    size_t ranks = (size_t)torus->halo->world->ranks;
    size_t blocks_x = 1;

    for (size_t f = 1; f * f <= ranks; f++) {
        if (ranks % f == 0)
            blocks_x = f;
    }
    size_t blocks_y = ranks / blocks_x;
    for (size_t id = 0; id < torus->nx * torus->ny; id++) {
        size_t x = id % torus->nx;
        size_t y = id / torus->nx;
        size_t bx = shifted(x, y, torus->nx, blocks_x, 1) * blocks_x / torus->nx;
        size_t by = shifted(y, x, torus->ny, blocks_y, 2) * blocks_y / torus->ny;
        torus->owner[id] = (int)(by * blocks_x + bx);
    }
}

static int by_owner_and_id(const void *a, const void *b) {
    const int64_t *x = a;
    const int64_t *y = b;

    if (x[1] != y[1])
        return x[1] < y[1] ? -1 : 1;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Marks what is joined to own points or to halo of the last ring, ring after ring. */
static size_t find_halo(const struct torus *torus, size_t owned, int64_t (*halo_p)[2]) {
    int32_t *place = torus->place;
    size_t found = 0;

    for (int ring = 0; ring < torus->halo->shape.value[HEMT_HALO]; ring++) {
        size_t before = found;
        for (size_t i = 0; i < torus->nx * torus->ny; i++) {
            for (int k = 0; k < JOINED && place[i] < 0; k++) {
                int32_t other = place[joined(torus, i, k)];
                if (other < 0 || other >= (int32_t)(owned + before))
                    continue;
                halo_p[found][0] = (int64_t)i;
                halo_p[found][1] = torus->owner[i];
                place[i] = (int32_t)(owned + found++);
            }
        }
    }
    qsort(halo_p, found, sizeof(*halo_p), by_owner_and_id);
    return found;
}

static uint32_t *bases(const struct bench_halo *halo, const int64_t *ids, const int32_t *index,
                       size_t first, size_t points) {
    uint32_t *base = bench_get(points * halo->levels, sizeof(*base));

    for (size_t i = 0; i < points; i++) {
        uint64_t id = (uint64_t)ids[index != NULL ? (size_t)index[i] : first + i];
        for (size_t level = 0; level < halo->levels; level++)
            base[i * halo->levels + level] = bench_halo_base(id, level);
    }
    return base;
}

/* Halo points lie in the order of their owners, so that what comes from one of them is one run. */
static void add_recvs(struct bench_halo *halo, const int *owner) {
    const int64_t *ids = halo->part.ids;

    halo->recvs.piece = bench_get((size_t)halo->world->ranks, sizeof(struct bench_piece));
    for (size_t at = halo->part.owned; at < halo->points;) {
        struct bench_piece *piece = &halo->recvs.piece[halo->recvs.count++];
        size_t end = at;

        while (end < halo->points && owner[ids[end]] == owner[ids[at]])
            end++;
        *piece = (struct bench_piece){.peer = owner[ids[at]],
                                      .points = end - at,
                                      .start = at,
                                      .count = {1, 1, end - at},
                                      .stride = {0, 0, 1}};
        piece->base = bases(halo, ids, NULL, at, piece->points);
        at = end;
    }
}

/* Own points within so many edges of `id`. `stamp` says for which peer a point was taken last. */
static void reach(const struct torus *torus, size_t id, int peer, int edges, int *stamp,
                  struct bench_piece *piece) {
    int32_t place = torus->place[id];

    if (torus->owner[id] == torus->halo->world->rank && stamp[id] != peer) {
        stamp[id] = peer;
        piece->index[piece->points++] = place;
    }
    for (int k = 0; edges > 0 && k < JOINED; k++)
        reach(torus, joined(torus, id, k), peer, edges - 1, stamp, piece);
}

static int by_position(const void *a, const void *b) {
    return (*(const int32_t *)a > *(const int32_t *)b) -
           (*(const int32_t *)a < *(const int32_t *)b);
}

/* A peer needs this rank's points that are as near to its own as its halo here is to them. */
static void add_sends(struct bench_halo *halo, const struct torus *torus) {
    int *stamp = bench_get(torus->nx * torus->ny, sizeof(*stamp));

    for (size_t i = 0; i < torus->nx * torus->ny; i++)
        stamp[i] = -1;
    halo->sends.piece = bench_get(halo->recvs.count, sizeof(struct bench_piece));
    for (size_t r = 0; r < halo->recvs.count; r++) {
        const struct bench_piece *recv = &halo->recvs.piece[r];
        struct bench_piece *piece = &halo->sends.piece[halo->sends.count++];

        *piece = (struct bench_piece){.peer = recv->peer};
        piece->index = bench_get(halo->part.owned, sizeof(*piece->index));
        for (size_t i = 0; i < recv->points; i++)
            reach(torus, (size_t)halo->part.ids[recv->start + i], recv->peer,
                  halo->shape.value[HEMT_HALO], stamp, piece);
        qsort(piece->index, piece->points, sizeof(*piece->index), by_position);
        piece->base = bases(halo, halo->part.ids, piece->index, 0, piece->points);
    }
    free(stamp);
}

/* Lists own points, then halo points, and where each of them is stored. */
static void list_points(struct bench_halo *halo, struct torus *torus) {
    size_t all = torus->nx * torus->ny;
    int64_t(*around)[2] = bench_get(all, sizeof(*around));
    size_t owned = 0;

    halo->part.ids = bench_get(all, sizeof(int64_t));
    for (size_t i = 0; i < all; i++) {
        torus->place[i] = -1;
        if (torus->owner[i] != halo->world->rank)
            continue;
        torus->place[i] = (int32_t)owned;
        halo->part.ids[owned++] = (int64_t)i;
    }
    halo->part.owned = owned;
    halo->points = owned + find_halo(torus, owned, around);
    for (size_t i = owned; i < halo->points; i++)
        halo->part.ids[i] = around[i - owned][0];
    free(around);
}

void bench_make_mesh(struct bench_halo *halo) {
    struct torus torus = {.halo = halo, .nx = 1};

    while ((torus.nx + 1) * (torus.nx + 1) <= halo->size)
        torus.nx++;
    torus.ny = halo->size / torus.nx;
    torus.owner = bench_get(torus.nx * torus.ny, sizeof(*torus.owner));
    torus.place = bench_get(torus.nx * torus.ny, sizeof(*torus.place));
    choose_owners(&torus);
    list_points(halo, &torus);
    add_recvs(halo, torus.owner);
    add_sends(halo, &torus);
    free(torus.owner);
    free(torus.place);
}
