/* Finding the running jobs of this user. */
#ifndef HEMT_SCAN_H
#define HEMT_SCAN_H

#include "core/arena.h"

/** A job, mapped for reading. The words are copied out of shared memory once and end in a zero. */
typedef struct hemt_found {
    hemi_arena arena;
    uint64_t job;
    uint64_t start_ns;
    uint32_t maker_pid;
    char command[160];
} hemt_found;

typedef struct hemt_jobs {
    hemt_found *list;
    size_t count;
    size_t room;
} hemt_jobs;

/** Find them, the oldest first. @return 0, or an errno if /proc cannot be read. */
int hemt_scan(hemt_jobs *jobs_p);

void hemt_jobs_free(hemt_jobs *jobs);

/** "launched", "threads" and so on. */
const char *hemt_kind_name(uint32_t kind);

#endif
