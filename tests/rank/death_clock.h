/*
 * How soon a death must be known: who is about to die writes the time into a window of each rank, its
 * clock, and who learns of it looks there. The time is in the first word of the window's memory.
 */
#ifndef HEM_TESTS_RANK_DEATH_CLOCK_H
#define HEM_TESTS_RANK_DEATH_CLOCK_H

#include "harness.h"

/** HEM_TEST_DEATH_MS, or 50 ms where the machine can keep it: not with a crowd on few cores, nor if the
 *  ranks were `busy` until then and not asleep, and are scheduled behind whatever else it does. */
int64_t death_clock_limit(int ranks, bool busy);

/** Write the time down, everywhere. */
void death_clock_stamp(hem_world *world, hem_window *clock);

/**
 * Fail if the limit has passed since `victim` died. Whoever was at something else by then has not waited
 * before `called`, which is 0 where it waited already.
 *
 * Ranks that were `busy` and learn of it after the limit of others, but within their own, say so; the scripts
 * (tests/script/death.bash) count them, and allow few.
 */
void death_clock_check(hem_world *world, hem_window *clock, const char *what, int victim,
                       int64_t called, bool busy);

#endif
