#ifndef BENCH_MPI_SETUP_H
#define BENCH_MPI_SETUP_H

#include "bench.h"

/* Measure finding out who needs what over MPI_COMM_WORLD. Collective. */
void bench_mpi_setup(const struct bench_world *world, const struct bench_args *args);

#endif
