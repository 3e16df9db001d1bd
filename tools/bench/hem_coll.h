#ifndef BENCH_HEM_COLL_H
#define BENCH_HEM_COLL_H

#include "bench.h"

#include <hem/hem.h>

/* Measure messages or collectives over a world, from private or library memory. Collective. */
void bench_hem_coll(const struct bench_world *world, const struct bench_args *args,
                    hem_world *ranks);

#endif
