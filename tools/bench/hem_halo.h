#ifndef BENCH_HEM_HALO_H
#define BENCH_HEM_HALO_H

#include "halo.h"

#include <hem/hem.h>

/* A problem as Hem sees it: the pattern, the fields and the exchange. */
struct hem_halo {
    struct bench_halo halo;
    hem_world *ranks;
    hem_pattern *pattern;
    hem_exchange *exchange;
    hem_memory *memory[BENCH_MOST_FIELDS]; /* of fields in library memory */
};

/* Make a problem, its fields and the exchange of it. `halo` has its world and `ranks` is set. */
void bench_hem_halo_open(struct hem_halo *hem, const struct bench_args *args, size_t size);
void bench_hem_halo_close(struct hem_halo *hem);

/* The pattern of a problem. Collective. */
hem_pattern *bench_hem_pattern(hem_world *ranks, const struct bench_halo *halo);

/* Measure halo exchange, from private or library memory. Collective. */
void bench_hem_halo(const struct bench_world *world, const struct bench_args *args,
                    hem_world *ranks);

/* Measure what it costs the host to start an exchange on a stream. Collective. */
void bench_hem_stream(const struct bench_world *world, const struct bench_args *args,
                      hem_world *ranks);

/* Ends the program with a sentence if something failed. */
void bench_hem_need(hem_status status, const char *what);

#endif
