/*
 * The state of a job inside of the keeper: its ranks, why and how it is being ended.
 *
 * job.c keeps the books and decides; watch.c brings the events; spawn.c starts the ranks.
 */
#ifndef HEMT_JOB_H
#define HEMT_JOB_H

#include "base/platform.h"
#include "core/arena.h"
#include "run.h"
#include "tag.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

/** In place of an exit code. */
enum {
    HEMT_RUNNING = -1,
    HEMT_UNKNOWN = -2 /**< ended, and nobody can tell how */
};

typedef struct hemt_rank {
    pid_t child;    /**< what the keeper started */
    int child_code; /**< as a shell says it, or HEMT_RUNNING */
    pid_t attached; /**< the first process that said hello; 0: none yet */
    /** The process that said hello, where it is not the child itself; 0: none. */
    pid_t hello;
    int hello_fd;   /**< its pidfd, or -1 */
    int hello_code; /**< as a shell says it, HEMT_RUNNING or HEMT_UNKNOWN */
    /** When to declare an end of unknown kind, if the child does not tell until then; 0: no. */
    uint64_t declare_at_ns;
    bool over; /**< neither child nor hello runs */
} hemt_rank;

typedef enum hemt_phase {
    HEMT_PHASE_RUN = 0,
    HEMT_PHASE_GRACE, /**< something failed: the ranks may end by themselves */
    HEMT_PHASE_TERM,  /**< they were sent SIGTERM */
    HEMT_PHASE_KILL   /**< they were sent SIGKILL */
} hemt_phase;

typedef enum hemt_cause {
    HEMT_CAUSE_NONE = 0,
    HEMT_CAUSE_RANK,    /**< a rank failed */
    HEMT_CAUSE_SIGNAL,  /**< the launcher got a signal */
    HEMT_CAUSE_TIMEOUT, /**< --timeout */
    HEMT_CAUSE_START    /**< not all ranks could be started; `trouble` says why */
} hemt_cause;

typedef struct hemt_job {
    const hemt_run_options *options;
    const hemi_platform *platform;
    hemi_arena arena;
    hemt_signals signals;
    hemt_tagger *tagger; /**< NULL without --tag-output */
    struct rlimit files_before;
    uint64_t start_ns;
    pid_t pid;

    int epoll_fd;
    int front_fd;   /**< pidfd of the front */
    int control[2]; /**< [0] is ours, [1] the ranks' */
    int report[2];  /**< a rank that cannot exec says so: [0] ours, [1] theirs until exec */

    hemt_rank *ranks;
    uint32_t started;
    uint32_t over;
    uint32_t undeclared;  /**< ranks with declare_at_ns set */
    bool front_gone;      /**< the front is dead: end everything, there is nobody to be told */
    bool tagger_done;     /**< all tagged output is written */
    bool strangers_noted; /**< a message that makes no sense was reported once */

    hemt_phase phase;
    uint64_t phase_ends_ns; /**< of GRACE and TERM */
    hemt_cause cause;       /**< the first one stands */
    uint64_t cause_ns;
    int exit_code;
    uint32_t failed_rank; /**< for HEMT_CAUSE_RANK */
    int signal;           /**< for HEMT_CAUSE_SIGNAL */
    uint64_t signal_ns;   /**< when the last one came that asks for the end */
    uint32_t ended_by_us; /**< ranks that SIGTERM or SIGKILL had to end */
    char trouble[512];    /**< for HEMT_CAUSE_START */
    char *waits;          /**< for HEMT_CAUSE_TIMEOUT: what each rank was in */
} hemt_job;

static inline uint64_t hemt_job_now(const hemt_job *job) {
    return job->platform->now(job->platform->ctx);
}

/** Seconds from the start of the job to `ns`. */
double hemt_job_seconds(const hemt_job *job, uint64_t ns);

/** Everything that was started has ended. */
static inline bool hemt_job_over(const hemt_job *job) {
    return job->over == job->started;
}

/** Process `pid` says that it is rank `rank`. */
void hemt_job_hello(hemt_job *job, uint32_t rank, pid_t pid);

/** A child of the keeper has ended and was reaped: a rank, a process that said hello, or neither. */
void hemt_job_reaped(hemt_job *job, pid_t pid, int code);

/** The hello process of `rank`, which is no child of ours, has ended. */
void hemt_job_hello_ended(hemt_job *job, uint32_t rank);

/** The launcher got a signal. */
void hemt_job_signal(hemt_job *job, const hemt_signal *signal);

/** Note why the job ends, unless there is a reason already. @return whether it is the first. */
bool hemt_job_blame(hemt_job *job, hemt_cause cause, int exit_code);

/** Ranks cannot be started: note the sentence, and kill what runs. */
void hemt_job_cannot_start(hemt_job *job, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Kill all ranks now. */
void hemt_job_kill(hemt_job *job);

/** Do what is due. @return nanoseconds until the next thing is, or -1 for none. */
int64_t hemt_job_tick(hemt_job *job);

#endif
