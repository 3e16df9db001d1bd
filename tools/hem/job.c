#include "job.h"

#include "core/liveness.h"
#include "process.h"
#include "report.h"
#include "say.h"
#include "watch.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS ((uint64_t)1000000)
/* Between SIGTERM and SIGKILL. */
#define TERM_NS (200 * NS_PER_MS)
/* A signal that comes again within this time is the same one, sent to the group and forwarded. */
#define SAME_SIGNAL_NS (100 * NS_PER_MS)
/* How long the shell around a rank gets to pass its exit code on before the peers hear of the end
 * without one. They are to hear of it within 50 ms. */
#define TELL_NS (20 * NS_PER_MS)
/* The code that then stands for it. */
#define CODE_NOT_TOLD 255

double hemt_job_seconds(const hemt_job *job, uint64_t ns) {
    return ns > job->start_ns ? (double)(ns - job->start_ns) * 1e-9 : 0.0;
}

bool hemt_job_blame(hemt_job *job, hemt_cause cause, int exit_code) {
    if (job->cause != HEMT_CAUSE_NONE)
        return false;
    job->cause = cause;
    job->cause_ns = hemt_job_now(job);
    job->exit_code = exit_code;
    return true;
}

void hemt_job_cannot_start(hemt_job *job, int exit_code, const char *format, ...) {
    if (hemt_job_blame(job, HEMT_CAUSE_START, exit_code)) {
        va_list args;
        va_start(args, format);
        vsnprintf(job->trouble, sizeof job->trouble, format, args);
        va_end(args);
    }
    hemt_job_kill(job);
}

static bool hello_runs(const hemt_rank *rank) {
    return rank->hello != 0 && rank->hello_code == HEMT_RUNNING;
}

static void signal_rank(const hemt_rank *rank, int signal, bool from_terminal) {
    /* The child is not reaped yet, so its number is still its own. */
    if (rank->child_code == HEMT_RUNNING && !(from_terminal && getpgid(rank->child) == getpgrp()))
        kill(rank->child, signal);
    if (hello_runs(rank) && rank->hello_fd >= 0 &&
        !(from_terminal && getpgid(rank->hello) == getpgrp()))
        hemt_pidfd_signal(rank->hello_fd, signal);
}

static void signal_all(hemt_job *job, int signal, bool from_terminal) {
    for (uint32_t r = 0; r < job->started; r++)
        if (!job->ranks[r].over)
            signal_rank(&job->ranks[r], signal, from_terminal);
}

static void enter_phase(hemt_job *job, hemt_phase phase, uint64_t lasts_ns) {
    job->phase = phase;
    job->phase_ends_ns = hemt_job_now(job) + lasts_ns;
}

void hemt_job_kill(hemt_job *job) {
    if (job->phase < HEMT_PHASE_TERM)
        job->ended_by_us = job->started - job->over;
    enter_phase(job, HEMT_PHASE_KILL, 0);
    signal_all(job, SIGKILL, false);
    /* A program that has become another user's cannot be ended. The front reports it. */
    for (uint32_t r = 0; r < job->started; r++) {
        hemt_rank *rank = &job->ranks[r];
        if (rank->child_code == HEMT_RUNNING && kill(rank->child, 0) != 0 && errno == EPERM)
            hemt_job_reaped(job, rank->child, HEMT_EXIT_SIGNAL + SIGKILL);
    }
}

static void terminate(hemt_job *job) {
    job->ended_by_us = job->started - job->over;
    enter_phase(job, HEMT_PHASE_TERM, TERM_NS);
    signal_all(job, SIGTERM, false);
}

static void give_grace(hemt_job *job) {
    if (job->phase == HEMT_PHASE_RUN)
        enter_phase(job, HEMT_PHASE_GRACE, (uint64_t)job->options->grace_ns);
}

/* Tell the peers. Only the first call for a rank counts. */
static void declare(hemt_job *job, uint32_t r, int code) {
    if (job->ranks[r].declare_at_ns != 0) {
        job->ranks[r].declare_at_ns = 0;
        job->undeclared--;
    }
    hemi_liveness_ended(&job->arena, job->platform, r, code);
}

static void fail_by_rank(hemt_job *job, uint32_t r, int code) {
    if (hemt_job_blame(job, HEMT_CAUSE_RANK, code))
        job->failed_rank = r;
    give_grace(job);
}

/* A process of rank `r` has ended; what follows from that. */
static void settle(hemt_job *job, uint32_t r) {
    hemt_rank *rank = &job->ranks[r];
    bool child_runs = rank->child_code == HEMT_RUNNING;
    if (child_runs && rank->hello_code >= 0)
        declare(job, r, rank->hello_code);
    if (!child_runs && rank->child_code != 0)
        fail_by_rank(job, r, rank->child_code);
    if (child_runs)
        return;
    if (hello_runs(rank)) {
        /* After a shell that ended well, the program it left behind is the rank and goes on. After
         * one that failed, peers may hear of the end only once the program stores no more. */
        if (rank->child_code != 0 && rank->hello_fd >= 0)
            hemt_pidfd_signal(rank->hello_fd, SIGKILL);
        return;
    }
    int code = rank->child_code != 0 || rank->hello_code < 0 ? rank->child_code : rank->hello_code;
    declare(job, r, code);
    if (rank->over)
        return;
    rank->over = true;
    job->over++;
}

/* Closing the descriptor also takes it out of the events. */
static void forget_hello(hemt_rank *rank, int code) {
    rank->hello_code = code;
    if (rank->hello_fd >= 0)
        close(rank->hello_fd);
    rank->hello_fd = -1;
}

/* The process that said hello, which is not the child, has ended. */
static void end_hello(hemt_job *job, uint32_t r, int code) {
    hemt_rank *rank = &job->ranks[r];
    bool shell_left_first = rank->child_code == 0;
    forget_hello(rank, code);
    if (code == HEMT_UNKNOWN && rank->child_code == HEMT_RUNNING && rank->declare_at_ns == 0) {
        rank->declare_at_ns = hemt_job_now(job) + TELL_NS;
        job->undeclared++;
    }
    if (shell_left_first && code > 0)
        fail_by_rank(job, r, code);
    settle(job, r);
}

void hemt_job_hello(hemt_job *job, uint32_t r, pid_t pid) {
    hemt_rank *rank = &job->ranks[r];
    if (r >= job->started || rank->over || pid == rank->attached)
        return;
    if (rank->attached != 0) {
        hemt_say("run", "process %ld says that it is rank %u, which process %ld is already",
                 (long)pid, r, (long)rank->attached);
        return;
    }
    rank->attached = pid;
    if (pid == rank->child)
        return;
    rank->hello = pid;
    rank->hello_fd = hemt_pidfd_open(pid);
    if (rank->hello_fd < 0 && errno == ESRCH) {
        end_hello(job, r, HEMT_UNKNOWN);
        return;
    }
    if (rank->hello_fd < 0 || !hemt_watch_hello(job, r)) {
        hemt_say("run", "cannot watch process %ld of rank %u (limit on descriptors: ulimit -n)",
                 (long)pid, r);
        forget_hello(rank, HEMT_UNKNOWN);
    }
}

void hemt_job_hello_ended(hemt_job *job, uint32_t r) {
    hemt_rank *rank = &job->ranks[r];
    if (!hello_runs(rank))
        return;
    /* Where its own parent is gone, it had become our child, and we can know how it ended. */
    int status = 0;
    bool ours = waitpid(rank->hello, &status, WNOHANG) == rank->hello;
    end_hello(job, r, ours ? hemt_shell_code(status) : HEMT_UNKNOWN);
}

void hemt_job_reaped(hemt_job *job, pid_t pid, int code) {
    for (uint32_t r = 0; r < job->started; r++) {
        hemt_rank *rank = &job->ranks[r];
        if (rank->child == pid && rank->child_code == HEMT_RUNNING) {
            rank->child_code = code;
            settle(job, r);
            return;
        }
        if (rank->hello == pid && rank->hello_code < 0) {
            end_hello(job, r, code);
            return;
        }
    }
}

void hemt_job_signal(hemt_job *job, const hemt_signal *signal) {
    int number = signal->number;
    if (number == SIGCONT || number == SIGTSTP || number == SIGUSR1 || number == SIGUSR2) {
        signal_all(job, number, signal->from_terminal);
        return;
    }
    uint64_t now = hemt_job_now(job);
    if (job->signal_ns != 0 && now - job->signal_ns < SAME_SIGNAL_NS)
        return;
    bool second = job->signal_ns != 0;
    job->signal_ns = now;
    if (hemt_job_blame(job, HEMT_CAUSE_SIGNAL, HEMT_EXIT_SIGNAL + number))
        job->signal = number;
    if (second) {
        hemt_job_kill(job);
    } else {
        signal_all(job, number, signal->from_terminal);
        give_grace(job);
    }
}

static void time_is_up(hemt_job *job) {
    if (hemt_job_blame(job, HEMT_CAUSE_TIMEOUT, HEMT_EXIT_TIMEOUT))
        /* Taken now, shown when all is over: whoever reads stderr slowly must not hold us up. */
        job->waits = hemt_report_job(job);
    terminate(job);
}

/* Declare the ends whose kind nobody has told in time. Returns when the next one is due. */
static uint64_t declare_late(hemt_job *job, uint64_t now) {
    uint64_t next = UINT64_MAX;
    for (uint32_t r = 0; r < job->started && job->undeclared > 0; r++) {
        uint64_t at = job->ranks[r].declare_at_ns;
        if (at != 0 && at <= now)
            declare(job, r, CODE_NOT_TOLD);
        else if (at != 0 && at < next)
            next = at;
    }
    return next;
}

int64_t hemt_job_tick(hemt_job *job) {
    uint64_t now = hemt_job_now(job);
    uint64_t next = job->undeclared > 0 ? declare_late(job, now) : UINT64_MAX;
    uint64_t limit = job->start_ns + (uint64_t)job->options->timeout_ns;
    if (job->phase == HEMT_PHASE_RUN && job->options->timeout_ns > 0 && now >= limit) {
        time_is_up(job);
        now = hemt_job_now(job); /* it may have looked at kernels for a while */
    }
    if (job->phase == HEMT_PHASE_GRACE && now >= job->phase_ends_ns) {
        if (job->cause == HEMT_CAUSE_SIGNAL)
            hemt_job_kill(job);
        else
            terminate(job);
    }
    if (job->phase == HEMT_PHASE_TERM && now >= job->phase_ends_ns)
        hemt_job_kill(job);

    if (job->phase == HEMT_PHASE_RUN && job->options->timeout_ns > 0 && limit < next)
        next = limit;
    if ((job->phase == HEMT_PHASE_GRACE || job->phase == HEMT_PHASE_TERM) &&
        job->phase_ends_ns < next)
        next = job->phase_ends_ns;
    if (next == UINT64_MAX)
        return -1;
    return next > now ? (int64_t)(next - now) : 0;
}
