#ifndef BENCH_SETUP_H
#define BENCH_SETUP_H

/*
 * Making a pattern, once for all libraries: every rank knows its own box, or its own points and the
 * ids of its halo, and finds out from whom it gets what and who gets what from it. What is found is
 * compared with what is so, each time.
 */

#include "halo.h"

/* What a rank found out, and what it took. */
struct bench_found {
    size_t neighbours;
    size_t send_points;
    size_t recv_points;
    size_t bytes;
    size_t messages; /* 0: not known */
    size_t peak;     /* bytes of memory in use at once */
};

struct bench_setup {
    struct bench_halo halo; /* the problem; the world, `meet` and `help` are set */
    size_t size;            /* points per rank, as asked for */
    void (*find)(struct bench_setup *setup, struct bench_found *found_p);
    void *ctx;
    struct bench_found found;
};

/* Make the problem, measure `find` and print it. Collective. */
void bench_setup_measure(struct bench_setup *setup, const struct bench_args *args, size_t size);

#endif
