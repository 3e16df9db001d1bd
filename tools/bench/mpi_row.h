#ifndef BENCH_MPI_ROW_H
#define BENCH_MPI_ROW_H

#include "bench.h"

/* Measure lines and rolling windows over MPI_COMM_WORLD. Collective. */
void bench_mpi_row(const struct bench_world *world, const struct bench_args *args);

#endif
