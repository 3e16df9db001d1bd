#ifndef BENCH_COLL_H
#define BENCH_COLL_H

/*
 * The benchmarks of messages and collectives, once for all libraries: what lies in the buffers, the
 * loops around the call, and the check of every byte of every iteration. What differs is `run`.
 *
 * `bytes` is what the call's count says: the vector of allreduce and bcast, one block of allgather,
 * reduce-scatter and alltoall, one message of the others.
 */

#include "bench.h"

struct bench_meet;
struct bench_coll;

/* How a library does it. */
struct bench_coll_ops {
    /* Does it once, from `send` to `recv` of `coll`, and returns when `recv` holds the result. */
    void (*run)(void *ctx, struct bench_coll *coll);
    /* Lets the library work without waiting for anything. */
    void (*help)(void *ctx);
};

struct bench_coll {
    const struct bench_world *world;
    const struct bench_coll_ops *ops;
    struct bench_meet *meet;
    enum bench_kind kind;
    size_t bytes;
    unsigned char *send;
    unsigned char *recv; /* the same as `send` for bcast */
    /* Sparse: the neighbours, and where the message of each was put. Set by `run`. */
    int peers[2];
    int peer_count;
    const void *came[2];
    uint64_t seq; /* of the iteration that runs */
};

/* The length of `send` and `recv` at one size, and at the largest of several. */
size_t bench_coll_send_bytes(enum bench_kind kind, int ranks, size_t bytes);
size_t bench_coll_recv_bytes(enum bench_kind kind, int ranks, size_t bytes);
size_t bench_coll_largest(enum bench_kind kind, int ranks, const struct hemt_sizes *sizes,
                          size_t (*length)(enum bench_kind kind, int ranks, size_t bytes));

/* Who sends here and where to in sendrecv and sendrecv-ring, and bcast's root in this iteration. */
int bench_coll_source(const struct bench_coll *coll);
int bench_coll_target(const struct bench_coll *coll);
int bench_coll_root(const struct bench_coll *coll);

/* Measure and print every size. `send` and `recv` are long enough for the largest. Collective. */
void bench_coll_measure(struct bench_coll *coll, const struct bench_args *args);

#endif
