/*
 * A deterministic scheduler for ranks that are threads of one process.
 *
 * How this works. Exactly one rank runs at a time. It holds a baton, which it hands on at schedule
 * points: every atomic operation and every HEMI_POINT() of the library (base/sim.h), and every call
 * of the platform table (base/platform.h). Who gets it is drawn from the seed. Time is a number
 * that grows a little at each point and jumps to the next deadline when everybody sleeps. So a run
 * is a function of the seed and the program, and a run that fails can be repeated.
 *
 * Ranks join at their first call of the platform table, which is before they open their world, and
 * nobody starts before all have joined. When all ranks sleep and none has a deadline, a wake-up was
 * lost: that ends the process, with the seed, the last events and what each rank waited for.
 *
 * The scheduler is sequentially consistent: what store buffers do is for models/ to check.
 */
#ifndef HEM_TESTS_SIM_SCHEDULER_H
#define HEM_TESTS_SIM_SCHEDULER_H

#include <hem/hem.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_RANKS_MAX 8

/** Exit codes of a run that did not go well. */
enum {
    SIM_EXIT_FAILED = 1,
    SIM_EXIT_DEADLOCK = 3
};

/** What is wrong with the platform, to prove that it would be noticed. */
typedef enum sim_mutant {
    SIM_HONEST = 0,
    SIM_PARK_BLIND, /**< park sleeps although the word has changed */
    SIM_WAKE_LOST   /**< one wake in sixteen does nothing */
} sim_mutant;

typedef struct sim_setup {
    const char *program; /**< named in failures */
    int ranks;
    uint64_t seed;
    sim_mutant mutant;
    /** Of the world. 0: for ever, so that a lost wake-up is a deadlock and no timeout. */
    int64_t timeout_ns;
} sim_setup;

typedef struct sim_outcome {
    hem_status status; /**< of hemi_threads_run */
    uint64_t hash;     /**< of everything that happened, in order */
    uint64_t points;
    uint64_t switches;
    uint64_t sleeps;
    uint64_t end_ns;
} sim_outcome;

/** Run `fn` on every rank under the scheduler. From the process's first thread only. */
sim_outcome sim_run(const sim_setup *setup, hem_rank_fn fn, void *arg);

/* For rank functions. */

/** The virtual clock. */
uint64_t sim_now(void);

/** The run's seed, for choices that all ranks must make alike. */
uint64_t sim_seed(void);

/** A choice from 0 to `below` - 1, made by the seed. */
uint64_t sim_below(uint64_t below);

/** Make `value` part of the run's hash. */
void sim_note(uint64_t value);

/**
 * Let this rank end without warning at its `points`-th schedule point from now, wherever in the
 * library that is: its function does not return from it, the rank counts as dead.
 */
void sim_die_after(uint64_t points);

/** It has survived: do not die any more. */
void sim_stay_alive(void);

/** Something is not as it must be: say so with the seed, and end the process. */
_Noreturn void sim_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
