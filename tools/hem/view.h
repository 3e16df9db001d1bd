/* What an onlooker can say about a rank from its block in the arena. */
#ifndef HEMT_VIEW_H
#define HEMT_VIEW_H

#include "core/arena.h"
#include "core/flight.h"

#include <sys/types.h>

/** What kernels wait for that an onlooker shows of one rank. */
#define HEMT_KERNELS 8
#define HEMT_WAITS   (HEMI_FLIGHTS + HEMT_KERNELS)

/** The sequences of all ranks' notes some time ago: device/notes.h. */
typedef struct hemt_beats {
    uint32_t *seqs; /**< HEMI_NOTES of each rank; NULL: no kernel has waited for long */
} hemt_beats;

/** Look at a job's notes. @return whether there are any: hemt_beats_pass comes next then. What there is no memory
 *  for is not shown. */
bool hemt_beats_take(const hemi_arena *arena, hemt_beats *beats_p);

/** Let so much time pass that the notes of kernels that wait change, once for all jobs. */
void hemt_beats_pass(void);
void hemt_beats_free(hemt_beats *beats);

typedef struct hemt_view {
    uint32_t rank;
    pid_t pid;         /**< 0: not known */
    const char *state; /**< "starting", "running", "waiting", "stopped", "exited" or "failed" */
    int exit_code;     /**< -1 while it runs */
    uint64_t end_ns;   /**< 0 while it runs */
    /** What its threads wait in, then what its kernels do. */
    uint32_t waits;
    hemi_flight flights[HEMT_WAITS];
    uint64_t seen[HEMT_WAITS];
    char about[128]; /**< the state in words, with what has ended and when */
} hemt_view;

/** Look at a rank at the time `now_ns`, which is after hemt_beats_take and what that asks for. `child` is its
 *  process if the arena does not say, or 0. Never blocks for long. */
void hemt_view_take(const hemi_arena *arena, const hemt_beats *beats, uint64_t now_ns,
                    uint32_t rank, pid_t child, hemt_view *view_p);

/** How many lines it takes to say it: one per wait, at least one. */
uint32_t hemt_view_lines(const hemt_view *view);

/** Line number `line` of them, without the rank. */
void hemt_view_line(const hemt_view *view, uint32_t line, uint64_t now_ns, char *text, size_t size);

#endif
