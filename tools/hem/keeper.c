#include "descendants.h"
#include "job.h"
#include "place.h"
#include "process.h"
#include "report.h"
#include "say.h"
#include "spawn.h"
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Memory that is reserved for the ranks' heaps from the start: per rank, and in all. */
#define RESERVE_RANK ((uint64_t)2 << 20)
#define RESERVE_ALL  ((uint64_t)32 << 20)
/* Descriptors beside those of tagged output, and then some for processes behind shells. */
#define DESCRIPTORS_SPARE 32
#define COMMAND_MAX       160

/* Have as many descriptors as we may. The ranks get the old limit back. */
static void raise_file_limit(hemt_job *job) {
    if (getrlimit(RLIMIT_NOFILE, &job->files_before) != 0)
        job->files_before = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit most = {job->files_before.rlim_max, job->files_before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
}

static void join_words(char **words, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; words[i] != NULL && used + 1 < size; i++) {
        int length = snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", words[i]);
        used += length > 0 ? (size_t)length : 0;
    }
}

static bool make_arena(hemt_job *job) {
    char command[COMMAND_MAX];
    join_words(job->options->program, command, sizeof command);
    uint64_t share = RESERVE_ALL / job->options->ranks / HEMI_PAGE * HEMI_PAGE;
    hemi_arena_plan plan = {.ranks = job->options->ranks,
                            .kind = HEMI_KIND_LAUNCHED,
                            .reserve_bytes = share < RESERVE_RANK ? share : RESERVE_RANK,
                            .command = command};
    if (hemi_arena_make(&plan, job->platform, &job->arena) == HEM_OK)
        return true;
    hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "%s", hem_last_error());
    return false;
}

static bool make_tagger(hemt_job *job) {
    if (!job->options->tag_output)
        return true;
    uint64_t need = hemt_tagger_descriptors(job->options->ranks) + DESCRIPTORS_SPARE;
    if (need > job->files_before.rlim_max) {
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED,
                              "--tag-output with %u ranks takes %llu descriptors, and the limit "
                              "(ulimit -n) is %llu",
                              job->options->ranks, (unsigned long long)need,
                              (unsigned long long)job->files_before.rlim_max);
        return false;
    }
    job->tagger = hemt_tagger_make(job->options->ranks);
    if (job->tagger == NULL)
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "cannot tag output: %s", strerror(errno));
    return job->tagger != NULL;
}

static bool plan_places(hemt_job *job, hemt_place **place_p) {
    char why[128];
    int error = hemt_place_plan(job->options->bind, job->options->ranks, place_p, why, sizeof why);
    if (error == ERANGE)
        hemt_job_cannot_start(job, HEMT_EXIT_USAGE, "%s", why);
    else if (error != 0)
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "%s: %s", why, strerror(error));
    return error == 0;
}

static void start(hemt_job *job) {
    job->ranks = calloc(job->options->ranks, sizeof *job->ranks);
    if (job->ranks == NULL) {
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "no memory for %u ranks", job->options->ranks);
        return;
    }
    hemt_place *place = NULL;
    if (plan_places(job, &place) && make_arena(job) && make_tagger(job) && hemt_watch_open(job))
        hemt_spawn_all(job, place);
    hemt_place_free(place);
}

/* How long output may be stuck: for ever, as that of any program, unless we were told to end. */
static int64_t output_limit(const hemt_job *job) {
    if (job->cause != HEMT_CAUSE_SIGNAL)
        return -1;
    uint64_t end = job->cause_ns + (uint64_t)job->options->grace_ns;
    uint64_t now = hemt_job_now(job);
    return end > now ? (int64_t)(end - now) : 0;
}

/* After the ranks: their children, then what they have written. */
static void finish(hemt_job *job) {
    hemt_end_descendants(NULL);
    /* From here on there is nobody to look after. Should our output be stuck, the front's death
     * must still be the end of us. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (job->front_gone || hemt_pidfd_ended(job->front_fd))
        _exit(HEMT_EXIT_SIGNAL + SIGKILL);
    if (job->tagger == NULL || job->started == 0)
        return;
    hemt_tagger_finish(job->tagger);
    uint64_t last_signal = job->signal_ns;
    int64_t limit = -1;
    while (!job->tagger_done && job->signal_ns == last_signal && limit != 0) {
        limit = output_limit(job);
        hemt_watch_step(job, limit);
    }
}

static void clean_up(hemt_job *job) {
    hemt_watch_close(job);
    hemi_arena_unmap(&job->arena);
    /* An output that is stuck holds the thread, which then ends with the process. */
    if (job->tagger_done)
        hemt_tagger_free(job->tagger);
    free(job->waits);
    free(job->ranks);
}

int hemt_keeper(const hemt_run_options *options, int front_fd, const hemt_signals *signals) {
    hemt_job job = {.options = options,
                    .platform = hemi_platform_real(),
                    .arena = {.fd = -1},
                    .signals = *signals,
                    .pid = getpid(),
                    .epoll_fd = -1,
                    .front_fd = front_fd,
                    .control = {-1, -1},
                    .report = {-1, -1}};
    job.start_ns = hemt_job_now(&job);
    /* Not with "hem" in it, so that `pkill -9 hem` does not strike both of us at once. */
    prctl(PR_SET_NAME, "job-keeper", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    /* Should we be stopped when the front dies, this lets us go on and see it. */
    prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0);
    raise_file_limit(&job);
    start(&job);
    for (;;) {
        int64_t limit = hemt_job_tick(&job);
        if (hemt_job_over(&job) || job.front_gone)
            break;
        hemt_watch_step(&job, limit);
    }
    finish(&job);
    hemt_report_end(&job);
    int code = job.exit_code;
    clean_up(&job);
    return code;
}
