/*
 * For tests: runs the plans of all ranks in one thread, step by step, in an order that depends on a
 * seed. Whatever a plan leaves open comes up: any step of a round may be next, on any rank, and a
 * message is copied either when it is sent or when both sides have come to it.
 */
#ifndef HEMI_PLAN_TESTING_H
#define HEMI_PLAN_TESTING_H

#include "base/testing.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/** A message that was sent and not received. */
typedef struct testing_message {
    struct testing_message *next;
    size_t bytes;
    unsigned char data[];
} testing_message;

/** A rank that runs a plan. */
typedef struct testing_rank {
    const hemi_plan *plan;
    unsigned char *spaces[HEMI_SPACES];
    size_t round;
    size_t left; /**< steps of this round */
    bool *done;  /**< per step */
} testing_rank;

typedef struct testing_all {
    testing_rank *ranks;
    uint32_t size;
    bool buffered;            /**< sends are done at once */
    testing_message **queues; /**< [from * size + to], oldest first */
    uint32_t held;            /**< a rank that never starts; `size`: none */
    uint64_t random;
    const char *trouble;
} testing_all;

static inline unsigned char *testing_at(const testing_rank *rank, hemi_place place) {
    unsigned char *space = rank->spaces[place.space];
    return space == NULL ? NULL : space + place.offset;
}

static inline bool testing_is_over(const testing_rank *rank) {
    return rank->round == rank->plan->round_count;
}

static inline void testing_enter(testing_rank *rank) {
    if (!testing_is_over(rank))
        rank->left = rank->plan->ends[rank->round] - hemi_plan_round_start(rank->plan, rank->round);
}

static inline void testing_close(testing_rank *rank, const hemi_step *step) {
    rank->done[step - rank->plan->steps] = true;
    if (--rank->left == 0) {
        rank->round++;
        testing_enter(rank);
    }
}

/** The first message of a kind with `peer` that is open in this round, or NULL. */
static inline const hemi_step *testing_first(const testing_rank *rank, hemi_step_kind kind,
                                             uint32_t peer) {
    if (testing_is_over(rank))
        return NULL;
    size_t i = hemi_plan_round_start(rank->plan, rank->round);
    for (; i < rank->plan->ends[rank->round]; i++) {
        const hemi_step *step = &rank->plan->steps[i];
        if (step->kind == kind && step->peer == peer && !rank->done[i])
            return step;
    }
    return NULL;
}

static inline void testing_local(testing_rank *rank, const hemi_step *step) {
    const hemi_plan *plan = rank->plan;
    const void **sources = calloc(step->source_count, sizeof *sources);
    for (size_t i = 0; i < step->source_count; i++)
        sources[i] = testing_at(rank, plan->sources[step->first + i]);
    if (step->kind == HEMI_STEP_COPY)
        memcpy(testing_at(rank, step->at), sources[0], step->bytes);
    else
        plan->combine(plan->combine_arg, testing_at(rank, step->at), sources, step->source_count,
                      step->bytes / plan->element);
    free(sources);
}

static inline void testing_post(testing_all *all, testing_rank *rank, const hemi_step *step) {
    testing_message *message = malloc(sizeof *message + step->bytes);
    message->next = NULL;
    message->bytes = step->bytes;
    if (step->bytes > 0)
        memcpy(message->data, testing_at(rank, step->at), step->bytes);
    testing_message **end = &all->queues[rank->plan->rank * all->size + step->peer];
    while (*end != NULL)
        end = &(*end)->next;
    *end = message;
    testing_close(rank, step);
}

static inline bool testing_take(testing_all *all, testing_rank *rank, const hemi_step *step) {
    testing_message **queue = &all->queues[step->peer * all->size + rank->plan->rank];
    testing_message *message = *queue;
    if (message == NULL)
        return false;
    if (message->bytes != step->bytes)
        all->trouble = "a message has another length than its receiver expects";
    else if (message->bytes > 0)
        memcpy(testing_at(rank, step->at), message->data, message->bytes);
    *queue = message->next;
    free(message);
    testing_close(rank, step);
    return true;
}

/** Move a message straight from the sender to the receiver, if both have come to it. */
static inline bool testing_meet(testing_all *all, testing_rank *from, testing_rank *to) {
    const hemi_step *send = testing_first(from, HEMI_STEP_SEND, to->plan->rank);
    const hemi_step *recv = testing_first(to, HEMI_STEP_RECV, from->plan->rank);
    if (send == NULL || recv == NULL)
        return false;
    if (send->bytes != recv->bytes)
        all->trouble = "a message has another length than its receiver expects";
    else if (send->bytes > 0)
        memcpy(testing_at(to, recv->at), testing_at(from, send->at), send->bytes);
    testing_close(from, send);
    testing_close(to, recv);
    return true;
}

/** Do a step that is open, if it can be done now. */
static inline bool testing_try(testing_all *all, testing_rank *rank, const hemi_step *step) {
    if (!hemi_step_is_message(step)) {
        testing_local(rank, step);
        testing_close(rank, step);
        return true;
    }
    /* Messages with one peer keep their order. */
    if (testing_first(rank, step->kind, step->peer) != step)
        return false;
    testing_rank *peer = &all->ranks[step->peer];
    if (!all->buffered) {
        bool sends = step->kind == HEMI_STEP_SEND;
        return testing_meet(all, sends ? rank : peer, sends ? peer : rank);
    }
    if (step->kind == HEMI_STEP_RECV)
        return testing_take(all, rank, step);
    testing_post(all, rank, step);
    return true;
}

/** Do one step of a rank, starting to look at a random one. False: none can be done. */
static inline bool testing_step(testing_all *all, testing_rank *rank) {
    if (testing_is_over(rank) || rank == &all->ranks[all->held])
        return false;
    size_t start = hemi_plan_round_start(rank->plan, rank->round);
    size_t count = rank->plan->ends[rank->round] - start;
    size_t first = testing_random(&all->random) % count;
    for (size_t i = 0; i < count; i++) {
        size_t at = start + (first + i) % count;
        if (!rank->done[at] && testing_try(all, rank, &rank->plan->steps[at]))
            return true;
    }
    return false;
}

/** Run what can be run. @return whether all ranks came to their end. */
static inline bool testing_loop(testing_all *all) {
    for (;;) {
        uint32_t first = (uint32_t)(testing_random(&all->random) % all->size);
        bool moved = false;
        bool over = true;
        for (uint32_t i = 0; i < all->size && !moved; i++) {
            testing_rank *rank = &all->ranks[(first + i) % all->size];
            over = over && testing_is_over(rank);
            moved = testing_step(all, rank);
        }
        if (!moved)
            return over;
    }
}

/** Free what was not received. @return whether there was something. */
static inline bool testing_drain(testing_all *all) {
    bool some = false;
    for (size_t i = 0; i < (size_t)all->size * all->size; i++)
        while (all->queues[i] != NULL) {
            testing_message *message = all->queues[i];
            all->queues[i] = message->next;
            free(message);
            some = true;
        }
    return some;
}

static inline void testing_open(testing_all *all, const hemi_plan *plans, unsigned char **inputs,
                                unsigned char **outputs) {
    all->ranks = calloc(all->size + 1, sizeof *all->ranks);
    all->queues = calloc((size_t)all->size * all->size, sizeof(testing_message *));
    for (uint32_t r = 0; r < all->size; r++) {
        testing_rank *rank = &all->ranks[r];
        rank->plan = &plans[r];
        rank->spaces[HEMI_INPUT] = inputs[r];
        rank->spaces[HEMI_OUTPUT] = outputs[r];
        rank->spaces[HEMI_SCRATCH] = malloc(plans[r].rooms[HEMI_SCRATCH] + 1);
        /* What was never written is found out. */
        memset(rank->spaces[HEMI_SCRATCH], 0xa5, plans[r].rooms[HEMI_SCRATCH] + 1);
        rank->done = calloc(plans[r].step_count + 1, sizeof *rank->done);
        testing_enter(rank);
    }
}

/** @return whether there were messages that nobody received. */
static inline bool testing_shut(testing_all *all) {
    bool some = testing_drain(all);
    for (uint32_t r = 0; r < all->size; r++) {
        free(all->ranks[r].spaces[HEMI_SCRATCH]);
        free(all->ranks[r].done);
    }
    free(all->queues);
    free(all->ranks);
    return some;
}

/**
 * Run the plans of `size` ranks on their inputs and outputs.
 * @return NULL, or what went wrong.
 */
static inline const char *testing_run(const hemi_plan *plans, uint32_t size, unsigned char **inputs,
                                      unsigned char **outputs, bool buffered, uint64_t seed) {
    testing_all all = {.size = size, .buffered = buffered, .held = size, .random = seed};
    testing_open(&all, plans, inputs, outputs);
    if (!testing_loop(&all) && all.trouble == NULL)
        all.trouble = "some ranks are stuck";
    if (testing_shut(&all) && all.trouble == NULL)
        all.trouble = "a message was not received";
    return all.trouble;
}

/** How many ranks come to their end although rank `held` never starts. */
static inline uint32_t testing_finishers(const hemi_plan *plans, uint32_t size,
                                         unsigned char **inputs, unsigned char **outputs,
                                         uint32_t held) {
    testing_all all = {.size = size, .buffered = true, .held = held};
    uint32_t count = 0;
    testing_open(&all, plans, inputs, outputs);
    (void)testing_loop(&all);
    for (uint32_t r = 0; r < size; r++)
        count += testing_is_over(&all.ranks[r]);
    (void)testing_shut(&all);
    return count;
}

#endif
