/* Inside of the scheduler: the ranks, who may run, and what is printed when nobody can. */
#ifndef HEM_TESTS_SIM_ACTORS_H
#define HEM_TESTS_SIM_ACTORS_H

#include "core/world.h"
#include "scheduler.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/types.h>

#define SIM_NEVER  UINT64_MAX
#define SIM_EVENTS 64

typedef enum sim_event_kind {
    SIM_POINT = 1,
    SIM_NOW,
    SIM_PARK,
    SIM_PARKED,
    SIM_WAKE,
    SIM_YIELD,
    SIM_NAP,
    SIM_MEMBARRIER,
    SIM_RANDOM,
    SIM_NOTE,
    SIM_END
} sim_event_kind;

typedef struct sim_event {
    uint32_t actor;
    sim_event_kind kind;
    uint64_t detail;
    uint64_t clock_ns;
} sim_event;

typedef enum sim_state {
    SIM_READY = 0,
    SIM_BLOCKED, /**< until a wake on its word, or its deadline */
    SIM_ENDED
} sim_state;

typedef struct sim sim;

typedef struct sim_actor {
    sim *sim;
    pid_t thread_id;
    uint32_t number; /**< the rank */
    sem_t turn;
    sim_state state;
    const uint32_t *word; /**< what it is parked on, or NULL */
    uint64_t deadline_ns;
    uint64_t points_left; /**< until it dies; 0: it does not */
    hemi_root *root;
    jmp_buf end;
} sim_actor;

struct sim {
    const sim_setup *setup;
    hem_rank_fn fn;
    void *arg;
    pthread_t starter;
    pthread_key_t key;
    pthread_mutex_t lock; /**< of joining; afterwards the baton guards everything */
    uint32_t ranks;
    uint32_t joined;
    sim_actor actors[SIM_RANKS_MAX];    /**< as they came */
    sim_actor *numbered[SIM_RANKS_MAX]; /**< by rank */
    hemi_arena arena; /**< for the flight records; without a base before a world is open */

    uint64_t dice;   /**< who runs, and choices of programs */
    uint64_t random; /**< what the library draws */
    uint32_t switch_one_in;
    uint32_t slow;             /**< a rank that is seldom chosen; none if it is no rank */
    uint32_t membarrier_fails; /**< one in so many times; 0: never */
    bool spurious;             /**< sleepers wake up for no reason now and then */
    uint64_t clock_ns;
    sim_outcome outcome;
    sim_event events[SIM_EVENTS];
    uint64_t event_count;
};

uint64_t sim_draw(uint64_t *state);

/** Give the joined threads their ranks: in the order in which they were started. */
void sim_number(sim *s);

/**
 * Who runs next, not `but` if there is another one. Lets time pass if all sleep. NULL when all have
 * ended. A deadlock ends the process.
 */
sim_actor *sim_choose(sim *s, const sim_actor *but);

/** Make everybody ready who is parked on `word`. */
void sim_wake(sim *s, const uint32_t *word);

/** A thread that died inside of the library held locks of its own process: open them. */
void sim_unlock_dead(hemi_root *root);

/** Say what happened and end the process. */
_Noreturn void sim_stop(const sim *s, int exit_code, const char *why);

#endif
