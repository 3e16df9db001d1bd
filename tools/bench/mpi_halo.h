#ifndef BENCH_MPI_HALO_H
#define BENCH_MPI_HALO_H

#include "halo.h"

#include <mpi.h>

/* Measure halo exchange over MPI_COMM_WORLD, written by hand in several ways. Collective. */
void bench_mpi_halo(const struct bench_world *world, const struct bench_args *args);

/* One way to do it. What `open` returns is what `run` and `close` get. */
struct mpi_halo_way {
    const char *impl;
    void *(*open)(struct bench_halo *halo);
    void (*run)(void *ctx);
    void (*close)(void *ctx);
};

/* MPI_Neighbor_alltoallw with a datatype per peer, in mpi_halo_types.c. */
extern const struct mpi_halo_way bench_mpi_alltoallw;

#endif
