#include "spawn.h"

#include "say.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Events are looked at after so many starts, so that a large job can be interrupted. */
#define STARTS_PER_LOOK 16

static bool set_number(const char *name, long value) {
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    return setenv(name, text, 1) == 0;
}

static bool set_environment(const hemt_job *job, uint32_t rank) {
    return set_number("HEM_RANK", (long)rank) &&
           set_number("HEM_SIZE", (long)job->options->ranks) &&
           set_number("HEM_ARENA_FD", job->arena.fd) &&
           set_number("HEM_CONTROL_FD", job->control[1]);
}

/* Rank 0 keeps our stdin; with --tag-output each rank writes into its pipes. */
static bool set_descriptors(const hemt_job *job, uint32_t rank, const int outputs[2]) {
    if (rank > 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
            return false;
    }
    if (outputs[0] >= 0 &&
        (dup2(outputs[0], STDOUT_FILENO) < 0 || dup2(outputs[1], STDERR_FILENO) < 0))
        return false;
    return fcntl(job->arena.fd, F_SETFD, 0) == 0 && fcntl(job->control[1], F_SETFD, 0) == 0;
}

static _Noreturn void report(const hemt_job *job, uint32_t rank, int error, hemt_spawn_step step) {
    hemt_spawn_report words = {.rank = rank, .error = error, .step = step};
    ssize_t wrote = 0;
    do {
        wrote = write(job->report[1], &words, sizeof words);
    } while (wrote < 0 && errno == EINTR);
    _exit(HEMT_EXIT_NOT_EXECUTABLE);
}

static _Noreturn void become_rank(const hemt_job *job, const hemt_place *place, uint32_t rank,
                                  const int outputs[2]) {
    /* The kernel ends us when the keeper dies; if it died before we asked, we end ourselves. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        report(job, rank, errno, HEMT_SPAWN_PREPARE);
    if (getppid() != job->pid)
        _exit(HEMT_EXIT_SIGNAL + SIGKILL);
    int error = hemt_place_bind(place, rank);
    if (error != 0)
        report(job, rank, error, HEMT_SPAWN_BIND);
    if (!set_environment(job, rank) || !set_descriptors(job, rank, outputs))
        report(job, rank, errno, HEMT_SPAWN_PREPARE);
    setrlimit(RLIMIT_NOFILE, &job->files_before);
    hemt_signals_give_back(&job->signals);
    execvp(job->options->program[0], job->options->program);
    report(job, rank, errno, HEMT_SPAWN_EXEC);
}

static void cannot_start(hemt_job *job, uint32_t rank, int error, const char *limit) {
    hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "cannot start rank %u of %u: %s (%s)", rank,
                          job->options->ranks, strerror(error), limit);
}

static void spawn(hemt_job *job, const hemt_place *place, uint32_t rank) {
    int outputs[2] = {-1, -1};
    int error = job->tagger != NULL ? hemt_tagger_connect(job->tagger, rank, outputs) : 0;
    if (error != 0) {
        cannot_start(job, rank, error, "limit on descriptors: ulimit -n");
        return;
    }
    pid_t pid = fork();
    error = errno;
    if (pid == 0)
        become_rank(job, place, rank, outputs);
    if (outputs[0] >= 0) {
        close(outputs[0]);
        close(outputs[1]);
    }
    if (pid < 0) {
        cannot_start(job, rank, error, "limit on processes: ulimit -u, or on memory");
        return;
    }
    job->ranks[rank] = (hemt_rank){
        .child = pid, .child_code = HEMT_RUNNING, .hello_fd = -1, .hello_code = HEMT_RUNNING};
    job->started++;
}

void hemt_spawn_all(hemt_job *job, const hemt_place *place) {
    for (uint32_t r = 0; r < job->options->ranks; r++) {
        if (r % STARTS_PER_LOOK == STARTS_PER_LOOK - 1) {
            hemt_watch_step(job, 0);
            hemt_job_tick(job);
        }
        if (job->phase != HEMT_PHASE_RUN || job->front_gone)
            break;
        spawn(job, place, r);
    }
    /* Now the report ends as soon as the last child has become a rank. */
    close(job->report[1]);
    job->report[1] = -1;
    int error = job->tagger != NULL ? hemt_tagger_start(job->tagger) : 0;
    if (error != 0)
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "cannot start a thread: %s", strerror(error));
}
