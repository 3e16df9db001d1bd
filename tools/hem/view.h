/* What an onlooker can say about a rank from its block in the arena. */
#ifndef HEMT_VIEW_H
#define HEMT_VIEW_H

#include "core/arena.h"
#include "core/flight.h"

#include <sys/types.h>

typedef struct hemt_view {
    uint32_t rank;
    pid_t pid;         /**< 0: not known */
    const char *state; /**< "starting", "running", "waiting", "stopped", "exited" or "failed" */
    int exit_code;     /**< -1 while it runs */
    uint64_t end_ns;   /**< 0 while it runs */
    /** What its threads wait in. */
    uint32_t waits;
    hemi_flight flights[HEMI_FLIGHTS];
    uint64_t seen[HEMI_FLIGHTS];
    char about[128]; /**< the state in words, with what has ended and when */
} hemt_view;

/** Look at a rank. `child` is its process if the arena does not say, or 0. Never blocks. */
void hemt_view_take(const hemi_arena *arena, uint32_t rank, pid_t child, hemt_view *view_p);

/** How many lines it takes to say it: one per wait, at least one. */
uint32_t hemt_view_lines(const hemt_view *view);

/** Line number `line` of them, without the rank. */
void hemt_view_line(const hemt_view *view, uint32_t line, uint64_t now_ns, char *text, size_t size);

#endif
