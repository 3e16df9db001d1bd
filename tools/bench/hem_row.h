#ifndef BENCH_HEM_ROW_H
#define BENCH_HEM_ROW_H

#include "bench.h"

#include <hem/hem.h>

/* Measure lines and rolling windows, from private or library memory. Collective. */
void bench_hem_row(const struct bench_world *world, const struct bench_args *args,
                   hem_world *ranks);

#endif
