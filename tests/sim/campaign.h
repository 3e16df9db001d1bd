/*
 * Running a program under many seeds.
 *
 * HEM_SEED=n runs that seed alone, HEM_SOAK=1 runs fifty times as many.
 */
#ifndef HEM_TESTS_SIM_CAMPAIGN_H
#define HEM_TESTS_SIM_CAMPAIGN_H

#include "scheduler.h"

/** Checks of rank functions: a failure ends the process and names the seed. */
#define SIM_CHECK(cond) ((cond) ? (void)0 : sim_fail(__FILE__, __LINE__, "%s", #cond))
#define SIM_EQ(got, want)                                                                          \
    sim_check_equal(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(want))
#define SIM_OK(call)           sim_check_status(__FILE__, __LINE__, #call, (call), HEM_OK)
#define SIM_STATUS(call, want) sim_check_status(__FILE__, __LINE__, #call, (call), (want))

void sim_check_equal(const char *file, int line, const char *what, uint64_t got, uint64_t want);
void sim_check_status(const char *file, int line, const char *what, hem_status got,
                      hem_status want);

/** A program: what it is called and what each rank runs. It must leave all worlds closed. */
typedef struct sim_program {
    const char *name;
    hem_rank_fn fn;
    void *arg;
    int64_t timeout_ns; /**< see sim_setup */
} sim_program;

/** Run one seed. */
sim_outcome sim_once(const sim_program *program, int ranks, uint64_t seed, sim_mutant mutant);

/** Run a program at `ranks` under `seeds` seeds (see above). Every run must end well. */
void sim_many(const sim_program *program, int ranks, uint64_t seeds);

/**
 * Run one seed in a process of its own, with its words thrown away.
 *
 * @return its exit code; `outcome_p` is filled in if that is 0.
 */
int sim_apart(const sim_program *program, int ranks, uint64_t seed, sim_mutant mutant,
              sim_outcome *outcome_p);

/** The number of loops: fewer under a sanitizer, more in a soak. */
uint64_t sim_seeds(uint64_t seeds);

/* Pieces that most programs need. */

hem_window *sim_window(hem_world *world, size_t bytes);
int sim_right(const hem_world *world);
int sim_left(const hem_world *world);

/** A pattern of `n` bytes that says which message of which rank it is, and its check. */
void sim_fill(void *bytes, size_t n, uint64_t tag);
bool sim_filled(const void *bytes, size_t n, uint64_t tag);

#endif
