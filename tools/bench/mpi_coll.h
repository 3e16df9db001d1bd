#ifndef BENCH_MPI_COLL_H
#define BENCH_MPI_COLL_H

#include "bench.h"

/* Measure messages or collectives over MPI_COMM_WORLD. Collective. */
void bench_mpi_coll(const struct bench_world *world, const struct bench_args *args);

#endif
