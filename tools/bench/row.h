#ifndef BENCH_ROW_H
#define BENCH_ROW_H

/*
 * Ranks in a row, once for all libraries.
 *
 * line     every rank gives `size` bytes to each of its two neighbours in a ring, who do not know how
 *          many will come
 * rolling  every rank has `size` rows of 8 bytes, sorted over the ranks, and needs the rows of
 *          `hops` ranks before its own, or as many as there are
 */

#include "../hem/bench_shape.h"
#include "bench.h"

enum {
    BENCH_LEFT,
    BENCH_RIGHT,
    BENCH_SIDES
};

struct bench_meet;

struct bench_row {
    const struct bench_world *world;
    struct bench_meet *meet;
    void (*help)(void *ctx);
    void (*run)(struct bench_row *row);
    void *ctx; /* of `run` */
    enum bench_kind kind;
    size_t size;
    int neighbour[BENCH_SIDES]; /* in the ring */
    /* line: what goes to each side, and what came from it, and how much, as `run` says. */
    unsigned char *send[BENCH_SIDES];
    const unsigned char *came[BENCH_SIDES];
    size_t came_bytes[BENCH_SIDES];
    /* rolling: own rows, and those before them, which end at `before + hops * size`. */
    uint64_t *rows;
    uint64_t *before;
    int hops; /* at most as many as there are ranks before the last */
    uint64_t seq;
};

/* How many blocks of rows come before this rank's own. */
static inline int bench_row_blocks(const struct bench_row *row) {
    return row->world->rank < row->hops ? row->world->rank : row->hops;
}

/* Where the block of the rank that is `hop` before this one belongs; 1 is the nearest. */
static inline uint64_t *bench_row_block(const struct bench_row *row, int hop) {
    return row->before + (size_t)(row->hops - hop) * row->size;
}

/* `world` is set. Sets the rest but for buffers, `run` and `size`, and says how long buffers are. */
void bench_row_open(struct bench_row *row, const struct bench_args *args);
size_t bench_row_send_bytes(const struct bench_args *args);
size_t bench_row_before_bytes(const struct bench_row *row, const struct bench_args *args);

/* Measure `run` with `size` and print it as `impl`. Collective. */
void bench_row_measure(struct bench_row *row, const char *impl);

#endif
