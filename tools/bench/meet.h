#ifndef BENCH_MEET_H
#define BENCH_MEET_H

/*
 * A barrier without any library, so that every implementation starts its turn the same way: the
 * ranks leave it together, however good or bad the library's own barrier is.
 */

#include "bench.h"

struct bench_meet;

/* Collective. Ends the program where the ranks cannot share memory. */
struct bench_meet *bench_meet_open(const struct bench_world *world);

/* Wait for all ranks. Now and then `help` is called, because a library may owe a peer something. */
void bench_meet(struct bench_meet *meet, const struct bench_world *world, void (*help)(void *ctx));

/*
 * The same, and the time from the earliest start to the latest end of all ranks, to all ranks. They
 * run on one machine and read one clock. A rank that left the last meeting late hides nothing.
 */
double bench_meet_span(struct bench_meet *meet, const struct bench_world *world,
                       void (*help)(void *ctx), double start, double end);

/* The largest of what the ranks bring, to all of them. Collective. */
size_t bench_meet_most(struct bench_meet *meet, const struct bench_world *world,
                       void (*help)(void *ctx), size_t value);

#endif
