/*
 * Plans: what one rank does in a collective, as a table of steps.
 *
 * A step sends, receives, copies or combines bytes of three spaces: INPUT and OUTPUT are the caller's
 * buffers, SCRATCH belongs to whoever runs the plan. Addresses are not part of a plan. Steps are
 * grouped in rounds: all steps of a round may run at once and in any order, but for messages to the
 * same peer or from the same peer, which keep the order of the table; the next round starts when
 * they are done. So no step of a round writes what another step of the same round reads or writes.
 * Rounds are the rank's own: only messages order the ranks among each other.
 *
 * A plan that names both INPUT and OUTPUT takes them to be apart. Where they are the same memory, the
 * plan names one of them only; that is how collectives work in place.
 *
 * Messages are matched by order alone, per pair of ranks, so that what one rank sends to another must
 * be what that one expects, in number, order and size. hemi_plans_check holds that over the plans of
 * all ranks.
 */
#ifndef HEMI_PLAN_PLAN_H
#define HEMI_PLAN_PLAN_H

#include <hem/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum hemi_space {
    HEMI_INPUT = 0,
    HEMI_OUTPUT,
    HEMI_SCRATCH,
    HEMI_SPACES
} hemi_space;

/** A place in one of the spaces. */
typedef struct hemi_place {
    hemi_space space;
    size_t offset; /**< in bytes */
} hemi_place;

typedef enum hemi_step_kind {
    HEMI_STEP_SEND = 1,
    HEMI_STEP_RECV,
    HEMI_STEP_COPY,
    HEMI_STEP_REDUCE
} hemi_step_kind;

typedef struct hemi_step {
    hemi_step_kind kind;
    uint32_t peer; /**< SEND, RECV */
    hemi_place at; /**< SEND: what is sent. Otherwise: where the result goes. */
    size_t bytes;
    size_t first;        /**< COPY, REDUCE: the first of its sources in plan->sources */
    size_t source_count; /**< COPY: 1. REDUCE: at least 1; combined in this order. */
} hemi_step;

/** out[i] = sources[0][i] op sources[1][i] op ...; `out` may be one of the sources. */
typedef void (*hemi_combine_fn)(const void *arg, void *out, const void *const *sources,
                                size_t source_count, size_t count);

typedef struct hemi_plan {
    uint32_t rank;
    uint32_t size;
    hemi_step *steps;
    size_t step_count;
    size_t *ends; /**< of each round: the index of the step after its last one */
    size_t round_count;
    hemi_place *sources;
    size_t source_count;
    size_t rooms[HEMI_SPACES]; /**< bytes of each space; grows with what the steps use */
    size_t element;            /**< bytes of one, for REDUCE */
    hemi_combine_fn combine;
    void *combine_arg; /**< the plan's own copy */
    /* While it is being made. */
    size_t step_room;
    size_t round_room;
    size_t source_room;
    size_t named;      /**< sources that no step has taken yet, at the end of the table */
    hem_status status; /**< the first failure; everything after it does nothing */
} hemi_plan;

static inline hemi_place hemi_place_at(hemi_space space, size_t offset) {
    return (hemi_place){space, offset};
}

static inline hemi_place hemi_place_add(hemi_place place, size_t bytes) {
    place.offset += bytes;
    return place;
}

/*
 * Making a plan: init, then steps and rounds, then finish. Want of memory is remembered and comes
 * out of finish, so that builders read as the algorithm does. Nothing is moved for 0 bytes: both
 * sides of an empty message leave it out, unless it is a signal.
 */

void hemi_plan_init(hemi_plan *plan, uint32_t rank, uint32_t size);

/** How REDUCE steps combine. `arg_bytes` at `arg` are copied. */
void hemi_plan_combine_by(hemi_plan *plan, size_t element, hemi_combine_fn combine, const void *arg,
                          size_t arg_bytes);

void hemi_plan_send(hemi_plan *plan, uint32_t peer, hemi_place from, size_t bytes);
void hemi_plan_recv(hemi_plan *plan, uint32_t peer, hemi_place to, size_t bytes);
/** Empty messages that do exist. */
void hemi_plan_send_signal(hemi_plan *plan, uint32_t peer);
void hemi_plan_recv_signal(hemi_plan *plan, uint32_t peer);
void hemi_plan_copy(hemi_plan *plan, hemi_place to, hemi_place from, size_t bytes);
/** to = low op high, where `low` comes from lower ranks. */
void hemi_plan_reduce(hemi_plan *plan, hemi_place to, hemi_place low, hemi_place high,
                      size_t bytes);
/** Name a further source, in the order of ranks, of the next hemi_plan_reduce_sources. */
void hemi_plan_source(hemi_plan *plan, hemi_place source);
/** to = those sources in this order. */
void hemi_plan_reduce_sources(hemi_plan *plan, hemi_place to, size_t bytes);

/** The round ends here. One without steps is left out. */
void hemi_plan_round(hemi_plan *plan);

/** End the last round. @return HEM_OK, or HEM_ERR_MEMORY, and then the plan is free already. */
hem_status hemi_plan_finish(hemi_plan *plan);

/** Free what it holds. A plan of zeroes and one that was freed are allowed. */
void hemi_plan_free(hemi_plan *plan);

/* Looking at a plan. */

static inline size_t hemi_plan_round_start(const hemi_plan *plan, size_t round) {
    return round == 0 ? 0 : plan->ends[round - 1];
}

static inline bool hemi_step_is_message(const hemi_step *step) {
    return step->kind == HEMI_STEP_SEND || step->kind == HEMI_STEP_RECV;
}

/**
 * Check one rank's plan by itself: kinds, peers, that every range lies in its space, that INPUT is
 * not written, that whole elements are combined into one of their sources or apart from all, and
 * that no step of a round disturbs another.
 *
 * @return HEM_OK, or HEM_ERR_ARG with a sentence that names round and step.
 */
hem_status hemi_plan_check(const hemi_plan *plan);

/**
 * Check the plans of all ranks, plans[r] being rank r's: each by itself; every message has its
 * counterpart of the same size; and all come to their end even if no message is ever buffered.
 *
 * For tests and debugging: allocates, takes time in ranks squared.
 * @return HEM_OK; HEM_ERR_ARG as hemi_plan_check; HEM_ERR_MISMATCH with a sentence that names ranks,
 *         sizes and where they stand; HEM_ERR_MEMORY.
 */
hem_status hemi_plans_check(const hemi_plan *plans, uint32_t size);

/** Print a plan for people, one step per line. */
void hemi_plan_print(const hemi_plan *plan, FILE *file);

/** One step as a line of text without an end of line; cut if `room` is too small. */
void hemi_step_text(const hemi_plan *plan, const hemi_step *step, char *text, size_t room);

#endif
