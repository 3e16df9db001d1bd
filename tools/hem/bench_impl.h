#ifndef HEMT_BENCH_IMPL_H
#define HEMT_BENCH_IMPL_H

/* What can be compared, and how each of them is started. */

#include "bench_kind.h"
#include "bench_shape.h"
#include "bench_sizes.h"

#include <stdbool.h>
#include <stddef.h>

enum hemt_impl {
    HEMT_HEM,
    HEMT_HEM_LIB,     /* the same, with all buffers in library memory */
    HEMT_HEM_THREADS, /* the same, with ranks as threads of one process */
    HEMT_RAW,
    HEMT_OPENMPI,
    HEMT_MPICH,
    HEMT_UCX,
    HEMT_NCCL,
    HEMT_NVSHMEM,
    HEMT_IMPLS
};

#define HEMT_COMMAND_MAX 24
#define HEMT_BLOCKS_TEXT 128

/* A command line with the strings it points to. */
struct hemt_command {
    char *argv[HEMT_COMMAND_MAX + 1];
    int argc;
    char hem[4096];
    char runner[4096];
    char sizes[1024];
    char shape[HEMT_SHAPE_TEXT];
    char ranks[16];
    /* Of benchmarks on GPUs, set before the command is written. */
    char blocks[HEMT_BLOCKS_TEXT]; /* the most blocks of a rank, a list; empty: the runner's own */
    bool processes;                /* ranks are processes, not threads of one */
};

const char *hemt_impl_name(enum hemt_impl impl);

/* Whether it takes part in this benchmark at all. */
bool hemt_impl_takes_part(enum hemt_impl impl, enum bench_kind kind);

/* The number of processors that this process may use. */
int hemt_impl_cpus(void);

/**
 * Write the command line that measures `kind` once. `shape` may be NULL: the runner's own.
 *
 * Returns NULL, or why it cannot be measured here.
 */
const char *hemt_impl_command(enum hemt_impl impl, enum bench_kind kind, int ranks,
                              const struct hemt_sizes *sizes, const struct hemt_shape *shape,
                              struct hemt_command *command_p);

/* Have the runner put `name`, at most 23 letters that must stay, in place of its own into its lines. */
void hemt_command_name(struct hemt_command *command, const char *name);

#endif
