#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

/*
 * The loop around halo exchanges and lines: write all that is sent, run, check all that came.
 *
 * Where writing and checking cost little, turns follow each other without a pause, both included.
 * Where they do not, the ranks come together before and after each run, and only that counts, from
 * when the first begins until the last is done. See coll.c for the reasons.
 */

#include "bench.h"

struct bench_meet;

struct bench_turns {
    const struct bench_world *world;
    struct bench_meet *meet;
    void (*help)(void *ctx);  /* lets the library work without waiting; gets the world's ctx */
    void (*begin)(void *ctx); /* the next turn: writes what is sent */
    void (*run)(void *ctx);
    void (*check)(void *ctx);
    void *ctx;
    size_t touched; /* bytes that a turn writes and reads */
    bool passing;   /* set by bench_turns_measure */
};

/* Collective. The result is valid on rank 0. */
struct bench_result bench_turns_measure(struct bench_turns *turns);

#endif
