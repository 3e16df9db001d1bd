/* The events of a job: signals, ends of processes, hellos. */
#ifndef HEMT_WATCH_H
#define HEMT_WATCH_H

#include "job.h"

/** What a child that cannot become a rank was doing. */
typedef enum hemt_spawn_step {
    HEMT_SPAWN_BIND = 1,
    HEMT_SPAWN_PREPARE,
    HEMT_SPAWN_EXEC
} hemt_spawn_step;

/** What it says, in one write, before it exits. */
typedef struct hemt_spawn_report {
    uint32_t rank;
    int32_t error;
    hemt_spawn_step step;
} hemt_spawn_report;

/** Open everything that is watched. On failure the job has its trouble. */
bool hemt_watch_open(hemt_job *job);

/** Watch the hello process of a rank as well. @return false if there is no room for it. */
bool hemt_watch_hello(hemt_job *job, uint32_t rank);

/** Wait for events, at most `limit_ns` (negative: for ever), and handle them. */
void hemt_watch_step(hemt_job *job, int64_t limit_ns);

/** Close what hemt_watch_open opened. Safe on a half-open job. */
void hemt_watch_close(hemt_job *job);

#endif
