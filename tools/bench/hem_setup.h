#ifndef BENCH_HEM_SETUP_H
#define BENCH_HEM_SETUP_H

#include "bench.h"

#include <hem/hem.h>

/* Measure making patterns. Collective. From several threads at once, each a rank. */
void bench_hem_setup(const struct bench_world *world, const struct bench_args *args,
                     hem_world *ranks);

#endif
