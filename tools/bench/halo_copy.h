#ifndef BENCH_HALO_COPY_H
#define BENCH_HALO_COPY_H

#include "halo.h"

/*
 * The limit of one copy: each rank copies as many bytes as it receives in an exchange, with memcpy,
 * out of memory that its peers have just written, a block per peer. Printed as raw-memcpy. Collective.
 */
void bench_copy_measure(const struct bench_halo *halo);

#endif
