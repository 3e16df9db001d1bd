/*
 * Who is dead.
 *
 * A monitor decides it: the launcher, or, where there is none, a thread of each rank that watches the
 * others (core/monitor.c), or the function that runs thread ranks. Everybody else only reads.
 */
#ifndef HEMI_CORE_LIVENESS_H
#define HEMI_CORE_LIVENESS_H

#include "core/arena.h"

/**
 * Declare that a rank has ended, and wake everybody so that they see it.
 *
 * `exit_code` as a shell says it (128 + signal); 0 makes it EXITED, anything else DEAD. The first
 * declaration stands. Returns whether this was the first.
 */
bool hemi_liveness_ended(const hemi_arena *arena, const hemi_platform *platform, uint32_t root_rank,
                         int exit_code);

/*
 * A process that has ended touches nothing. A thread that has ended as a rank does: it withdraws what
 * it had offered its peers, and its streams may be in the middle of a copy into their memory. It counts
 * itself among the dying before its death is declared, and out again when that is over. So whoever
 * knows of the death, and frees memory for that reason, finds the count or is behind the last touch.
 */
static inline void hemi_liveness_dying(const hemi_arena *arena) {
    hemi_add32_acq_rel(&arena->head->dying, 1);
}

static inline void hemi_liveness_buried(const hemi_arena *arena) {
    /* Pairs with the acquire in hemi_liveness_all_buried. */
    hemi_add32_acq_rel(&arena->head->dying, UINT32_MAX);
}

static inline bool hemi_liveness_all_buried(const hemi_arena *arena) {
    return hemi_load32_acquire(&arena->head->dying) == 0;
}

/** Count the alarm up and wake those who are parked on it: the watchers of device/watch.c. */
void hemi_liveness_count(const hemi_arena *arena, const hemi_platform *platform);

/** The same, and wake every sleeper of every rank. For deaths and revokes. */
void hemi_liveness_alarm(const hemi_arena *arena, const hemi_platform *platform);

/** Whether the rank can still do something for others: it is NEW or ALIVE. */
static inline bool hemi_liveness_may_come(const hemi_arena *arena, uint32_t root_rank) {
    /* Pairs with the release in hemi_liveness_ended: whoever sees the death sees all stores that
     * the dead rank had made, because its process had ended before. */
    return hemi_load32_acquire(&hemi_arena_rank(arena, root_rank)->state) <= HEMI_STATE_ALIVE;
}

/** "was killed by signal 9", "exited with code 3", "exited": what became of an ended rank. */
void hemi_liveness_describe(const hemi_arena *arena, uint32_t root_rank, char *text, size_t size);

#endif
