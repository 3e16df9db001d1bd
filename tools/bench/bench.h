#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/*
 * What the runners share. A runner is one program per library (hem-bench-raw, hem-bench-openmpi and
 * so on) that measures one benchmark for a list of sizes and prints one JSON line per size:
 *
 *   {"bench":"signal","impl":"ucx","ranks":2,"bytes":8,"us":0.365,"gbps":0.022,"line_ns":117.2}
 *
 * gbps counts 10^9 bytes per second and is 0 for a barrier. line_ns is the yardstick, see below.
 */

#include "../hem/bench_kind.h"
#include "../hem/bench_shape.h"
#include "../hem/bench_sizes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct bench_args {
    enum bench_kind kind;
    int ranks;
    bool library;     /* buffers lie in the library's memory, where it has such a thing */
    const char *name; /* to be printed as the implementation; NULL: its own */
    struct hemt_sizes sizes;
    struct hemt_shape shape; /* of halos, lines and set-up */
    int threads;             /* set-up: ranks are so many threads; 0: processes */
};

/*
 * Reads `PROGRAM BENCH [-n RANKS] [--memory private|library] [--name NAME] [--shape SHAPE]
 * [--threads RANKS] --sizes LIST`, or says what is wrong and exits with 2.
 */
void bench_args_parse(int argc, char **argv, struct bench_args *args_p);

/* Says what went wrong and ends this rank with exit code 3; whoever started it ends the others. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline double bench_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void bench_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* `bytes` bytes of private memory, aligned to a page and touched. */
void *bench_alloc(size_t bytes);

/* How many puts or gets of `bytes` go out back to back: 64 at most, 4 MiB unless one is larger. */
size_t bench_window(size_t bytes);

/* The memory that such a window takes at the largest of the sizes, in whole pages. */
size_t bench_region(const struct hemt_sizes *sizes);

/* The number of processors this process may use, and binding to the `index`-th of them. */
int bench_cpus(void);
void bench_pin(int index);

/* The number of processors of the machine, whatever this process is bound to. */
int bench_online(void);

/*
 * Run `body` on `ranks` forked processes, each on its own processor if there are enough of them.
 * Returns 0 if all returned 0; after the first that did not, the others are killed.
 */
int bench_fork(int ranks, int (*body)(int rank, void *arg), void *arg);

struct bench_yard;

/* The ranks of this run. `agree` gives every rank the value of rank 0; all ranks call it. */
struct bench_world {
    const char *impl;
    int rank;
    int ranks;
    uint64_t (*agree)(void *ctx, uint64_t value);
    void *ctx;
    struct bench_yard *yard;
};

/*
 * Zeroed memory that all ranks share, without any library: the ranks run on one machine. Collective.
 * Returns NULL on all ranks where they cannot reach each other's files.
 */
void *bench_share(const struct bench_world *world, size_t bytes);
void bench_unshare(void *memory, size_t bytes);

/*
 * The yardstick: how long a cache line takes between the cores of ranks 0 and 1, without any
 * library. On virtual machines the cores move while a benchmark runs and this jumps by a factor of
 * five; measurements are comparable only at the same distance, so each carries its own. It also
 * tells whether one of the two was made to wait for its core by another program.
 *
 * Opened collectively; it stays absent with more than two ranks, or where the ranks cannot share a
 * page. Reading is collective too; all is 0 without a yardstick and on ranks other than 0.
 */
struct bench_reading {
    double line_ns;
    uint64_t switches; /* how often both together lost their cores so far */
    double ns;         /* when it was taken */
};

void bench_yard_open(struct bench_world *world);
struct bench_reading bench_yard_read(const struct bench_world *world);

/* Does something `iters` times on all ranks and returns the nanoseconds that count. */
typedef double (*bench_batch)(void *ctx, uint64_t iters);

struct bench_result {
    double ns; /* per iteration */
    double line_ns;
};

/*
 * Measure: warm up, find how many iterations make a batch, run batches until enough of them were
 * undisturbed, and take the median of their means. Collective; the result is valid on rank 0, and 0
 * if there was no undisturbed moment.
 */
struct bench_result bench_measure(const struct bench_world *world, bench_batch batch, void *ctx);

/* Measure several ways to do the same thing, at the same distance, and return the fastest. */
struct bench_result bench_fastest(const struct bench_world *world, const bench_batch *batches,
                                  size_t count, void *ctx);

/* Rank 0 prints its line; an iteration moved `parts` messages of `bytes`. `impl` NULL: the world's. */
void bench_print(const struct bench_world *world, const char *impl, enum bench_kind kind,
                 size_t bytes, struct bench_result result, size_t parts);

/* What else there is to say of a measurement; what is 0 is not said. */
struct bench_more {
    size_t moved; /* bytes, if the size is something else */
    size_t messages;
    size_t peak; /* bytes of memory */
};

/* The same for an iteration that is one call, with more to say. gbps counts what moved. */
void bench_print_more(const struct bench_world *world, const char *impl, enum bench_kind kind,
                      size_t size, struct bench_result result, const struct bench_more *more);

#endif
