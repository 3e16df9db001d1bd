#ifndef HEMT_BENCH_KIND_H
#define HEMT_BENCH_KIND_H

/* The benchmarks by name: what the command offers and what each runner is asked for. */

#include "bench_sizes.h"

#include <stdbool.h>

enum bench_kind {
    BENCH_RAW,
    BENCH_SIGNAL,
    BENCH_PUT,
    BENCH_GET,
    BENCH_BARRIER,
    BENCH_SENDRECV,
    BENCH_SENDRECV_RING,
    BENCH_ALLREDUCE,
    BENCH_ALLGATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALLTOALL,
    BENCH_BCAST,
    BENCH_SPARSE,
    BENCH_GRID,
    BENCH_MESH,
    BENCH_LINE,
    BENCH_ROLLING,
    BENCH_PATTERN_SETUP,
    BENCH_STREAM,
    BENCH_GPU_SIGNAL,
    BENCH_GPU_PUT,
    BENCH_GPU_SENDRECV,
    BENCH_GPU_EXCHANGE,
    BENCH_GPU_ALLREDUCE,
    BENCH_GPU_ALLGATHER,
    BENCH_KINDS
};

struct hemt_kind {
    const char *name;
    const char *sizes; /* that are measured if none are named; NULL if it has no sizes */
    const char *help;
    const char *headline;
    const char *unit;  /* what a size counts; NULL: bytes */
    const char *ranks; /* by default; NULL: two */
    bool pair;         /* between two ranks only */
    bool together;     /* messages and collectives: any number of ranks, from two kinds of memory */
    bool blocks;       /* a buffer holds one block of the size per rank */
    bool reduces;      /* sizes are whole numbers of doubles */
    bool lists;        /* measured with several numbers of ranks in one go */
    bool gpu;          /* on GPUs; each way of Hem is compared with the same way of others */
};

const struct hemt_kind *hemt_kind(enum bench_kind kind);

/* Returns false if there is no benchmark of this name. */
bool hemt_kind_find(const char *name, enum bench_kind *kind_p);

/* The sizes by default: without those at which a rank's buffer would be beyond 128 MiB. */
void hemt_kind_sizes(enum bench_kind kind, int ranks, struct hemt_sizes *sizes_p);

/* NULL, or a sentence that says why it cannot be measured with so many ranks or these sizes. */
const char *hemt_kind_refuses(enum bench_kind kind, int ranks, const struct hemt_sizes *sizes);

#endif
