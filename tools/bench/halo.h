#ifndef BENCH_HALO_H
#define BENCH_HALO_H

/*
 * The benchmarks of halo exchange, once for all libraries: which points a rank stores, which of them
 * go where, what the fields hold, the loop around the exchange, and the check of every halo value of
 * every iteration. What differs is `run`.
 *
 * A problem is a grid of one box per rank, or a mesh of one part per rank. All its fields have the
 * same points and differ in type.
 */

#include "../hem/bench_shape.h"
#include "bench.h"

enum {
    BENCH_MOST_FIELDS = 16,
    BENCH_MOST_DIMS = 3
};

struct bench_meet;

enum bench_type {
    BENCH_F64,
    BENCH_F32,
    BENCH_I32
};

struct bench_field {
    enum bench_type type;
    size_t element; /* bytes of a value */
    unsigned char *memory;
};

/*
 * Points of storage in the order in which they travel. A box (`index` NULL) has `count` points per
 * dimension from point `start` on, the last dimension innermost; grids of fewer dimensions have
 * counts of 1 in front. Otherwise they are those of `index`.
 */
struct bench_piece {
    int peer;
    size_t order; /* among those of its side, before they are ordered by peer */
    size_t points;
    size_t start;
    size_t count[BENCH_MOST_DIMS];
    size_t stride[BENCH_MOST_DIMS];
    int32_t *index;
    uint32_t *base; /* what each value is made of, levels innermost */
};

/* The k-th piece that a rank sends to another is the k-th that this one receives from it. */
struct bench_pieces {
    struct bench_piece *piece; /* ordered by peer */
    size_t count;
};

/* Who takes part: pieces `first` to `first + count - 1` of each side are for and from `rank`. */
struct bench_peer {
    int rank;
    size_t first_send;
    size_t sends;
    size_t first_recv;
    size_t recvs;
    size_t send_points;
    size_t recv_points;
};

/* The box of a grid, for libraries that find out themselves who sends what. */
struct bench_box {
    int dims;
    int64_t extent[BENCH_MOST_DIMS];
    int64_t start[BENCH_MOST_DIMS];
    int64_t count[BENCH_MOST_DIMS];
};

/* The part of a mesh: ids in the order of storage, own points first. */
struct bench_part {
    int64_t *ids;
    size_t owned;
};

struct bench_halo {
    const struct bench_world *world;
    struct bench_meet *meet;
    void (*help)(void *ctx); /* lets the library work without waiting */
    void (*run)(void *ctx);  /* fills the halos once */
    void *ctx;               /* of `run` */
    struct hemt_shape shape;
    enum bench_kind kind;
    size_t size;
    size_t points; /* in storage, halos included */
    size_t levels;
    struct bench_field field[BENCH_MOST_FIELDS];
    size_t fields;
    struct bench_pieces sends;
    struct bench_pieces recvs;
    struct bench_peer *peer; /* without this rank itself */
    size_t peers;
    struct bench_peer self; /* what a periodic grid copies on its own rank */
    struct bench_box box;
    struct bench_part part;
    uint64_t seq; /* of the iteration that runs */
};

/* Makes the problem, without memory for its fields. Local. `world`, `meet` and `help` are set. */
void bench_halo_make(struct bench_halo *halo, enum bench_kind kind, const struct hemt_shape *shape,
                     size_t size);
void bench_halo_free(struct bench_halo *halo);

/* The bytes of a field; and zeroed memory for all of them that is touched only where it is used. */
size_t bench_halo_bytes(const struct bench_halo *halo, const struct bench_field *field);
void bench_halo_alloc(struct bench_halo *halo);
void bench_halo_release(struct bench_halo *halo);

/* The bytes that this rank receives from others in an exchange. */
size_t bench_halo_moved(const struct bench_halo *halo);

/* Write every value that is sent, and check every halo value. The check ends the program. */
void bench_halo_fill(const struct bench_halo *halo);
void bench_halo_check(const struct bench_halo *halo);

/* Whether this field's piece lies in one run of storage. */
bool bench_piece_is_run(const struct bench_piece *piece);

/* Measure `run` and print it as `impl`. Collective. */
void bench_halo_measure(struct bench_halo *halo, const char *impl);

/* Used by the makers of grids and meshes. */
void bench_make_grid(struct bench_halo *halo);
void bench_make_mesh(struct bench_halo *halo);
uint32_t bench_halo_base(uint64_t id, size_t level);
void *bench_get(size_t count, size_t size);

#endif
