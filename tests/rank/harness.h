/*
 * What every multi-rank test stands on: checks that name the rank, random numbers that can be
 * repeated, and small pieces that most tests need.
 *
 * A test implements rank_main, which closes its world itself with harness_close. A check that fails
 * prints where and on which rank, revokes the world so that no other rank hangs, and leaves
 * rank_main for good; the rank then counts as failed.
 *
 * HEM_SEED=n repeats a run's random choices, HEM_SOAK=1 makes the loops longer, and
 * HEM_TEST_SLACK_MS (200) is by how much a time limit may be overrun on a busy machine.
 */
#ifndef HEM_TESTS_RANK_HARNESS_H
#define HEM_TESTS_RANK_HARNESS_H

#include <hem/hem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The test. Returns 0 if all was well. */
int rank_main(hem_world *world);

/** Long enough for anything that does end, short enough to give a message before CTest does. */
#define LIMIT HEM_SEC(40)

/* Checks. */

#define CHECK(cond) ((cond) ? (void)0 : harness_fail(__FILE__, __LINE__, "%s", #cond))
#define CHECK_EQ(got, want)                                                                        \
    harness_check_equal(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(want))
#define CHECK_OK(call) harness_check_status(__FILE__, __LINE__, #call, (call), HEM_OK)
/** An expected error must also come with a sentence. */
#define CHECK_STATUS(call, want) harness_check_status(__FILE__, __LINE__, #call, (call), (want))
/** The last error's sentence has `part` in it. */
#define CHECK_SENTENCE(part) harness_check_sentence(__FILE__, __LINE__, (part))
/** The last error's sentence names this rank. */
#define CHECK_NAMES_RANK(rank) harness_check_names_rank(__FILE__, __LINE__, (rank))
/** Bytes that harness_fill wrote with the same tag. */
#define CHECK_FILLED(bytes, n, tag) harness_check_filled(__FILE__, __LINE__, (bytes), (n), (tag))
/** Bytes that all have one value. */
#define CHECK_ALL(bytes, n, value) harness_check_all(__FILE__, __LINE__, (bytes), (n), (value))

void harness_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
void harness_check_equal(const char *file, int line, const char *what, uint64_t got, uint64_t want);
void harness_check_status(const char *file, int line, const char *what, hem_status got,
                          hem_status want);
void harness_check_sentence(const char *file, int line, const char *part);
void harness_check_names_rank(const char *file, int line, int rank);
void harness_check_filled(const char *file, int line, const void *bytes, size_t n, uint64_t tag);
void harness_check_all(const char *file, int line, const void *bytes, size_t n, uint8_t value);

/* Running. */

typedef int (*harness_body)(hem_world *world);

/** Run `body` as one rank of `world`, with checks that can leave it. @return 0, or 1 if not. */
int harness_run(hem_world *world, harness_body body);

/** Close the world that the harness opened, expecting `want`. */
void harness_close(hem_world *world, hem_status want);

/** Which rank a failure is said to be of, where harness_run does not know yet. */
void harness_note_rank(int rank);

/** What a failure of this rank from now on is said to be in. `what` is kept, not copied. */
void harness_step(const char *what, uint64_t number);

/** The world is closed or will be by other means; a later failure does not touch it. */
void harness_forget(void);

/** Whether the ranks are threads of this process. */
bool harness_threads(void);
void harness_set_threads(void);

/** A further thread of this rank. A check that fails in one makes the join fail. */
typedef struct harness_thread {
    pthread_t id;
    void (*body)(void *arg);
    void *arg;
    const void *parent;
    bool failed;
} harness_thread;

void harness_start(harness_thread *thread, void (*body)(void *arg), void *arg);
/** Wait for all of them, then fail if one did: nobody may still use the world by then. */
void harness_join(harness_thread *threads, int count);

/* Time and amount. */

int64_t harness_now(void);
void harness_sleep_ms(int ms);
/** Waste a little time: nothing, some turns of a loop, or a yield, as `dice` says. */
void harness_dither(uint64_t dice);
/** How far a limit may be overrun, in nanoseconds. */
int64_t harness_slack(void);
/** `n` loops, more in a soak, fewer under a sanitizer. */
int harness_rounds(int n);
/** Whether a sanitizer is in this program, which then has an allocator of its own. */
#define HARNESS_SANITIZED 0
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef HARNESS_SANITIZED
#define HARNESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef HARNESS_SANITIZED
#define HARNESS_SANITIZED 1
#endif
#endif
bool harness_sanitized(void);
int harness_cores(void);

/* Random numbers. */

typedef struct harness_rng {
    uint64_t state;
} harness_rng;

/** A seed that all ranks of `world` share. Collective. */
uint64_t harness_seed(hem_world *world);
/** Name the seed in failures of this rank. */
void harness_note_seed(uint64_t seed);
/** Choices that depend on nothing but these three. */
harness_rng harness_rng_of(uint64_t seed, uint64_t a, uint64_t b);
uint64_t harness_random(harness_rng *rng);
/** 0 to `below` - 1. */
size_t harness_below(harness_rng *rng, size_t below);

/* Windows. */

hem_window *harness_window(hem_world *world, size_t bytes);
hem_window *harness_window_ids(hem_world *world, size_t bytes, uint32_t signals, uint32_t barriers,
                               uint32_t counters);
void harness_destroy(hem_window *window);
/** hem_barrier on id 0, which must succeed. */
void harness_barrier(hem_window *window);
/** All ranks pass the same value, or the test fails. Collective. */
void harness_same(hem_world *world, uint64_t value);
int harness_right(const hem_world *world);
int harness_left(const hem_world *world);

void harness_fill(void *bytes, size_t n, uint64_t tag);

/** The ways to see a signal. HARNESS_SUM is right only where `peer` alone signals `id`. */
enum {
    HARNESS_FROM,
    HARNESS_ANY,
    HARNESS_TEST_FROM,
    HARNESS_TEST_ANY,
    HARNESS_READ_FROM,
    HARNESS_SUM,
    HARNESS_TEST_SUM,
    HARNESS_READ_SUM,
    HARNESS_SEE_WAYS,
    HARNESS_SEE_ONE_PEER = HARNESS_SUM
};

/** Return when slot `id` of `peer` is at least `value`, by one of the ways. */
void harness_see(hem_window *window, int way, int peer, uint32_t id, uint64_t value);

/* What a process holds, from /proc/self. */

int harness_open_files(void);
int harness_mappings(void);
long harness_resident_kib(void);

#endif
