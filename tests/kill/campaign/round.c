#include "round.h"

#include "leftovers.h"

#include <hem/hem.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ARGS_MAX = 40,
    ROUND_LIMIT_S = 30,
    /* How long what is left may take to end, where nobody waits for it. */
    LEFT_MS = 1500,
    /* So many times the limit is no noise. */
    HOPELESS = 6
};

typedef struct words {
    char text[ARGS_MAX][128];
    int count;
} words;

static void say(words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(words *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(w->text[w->count++], sizeof w->text[0], format, args);
    va_end(args);
}

static void score_path(const kill_place *place, char *path, size_t size) {
    snprintf(path, size, "%s/score", place->folder);
}

static words command_of(const kill_place *place, const kill_round *round) {
    words w = {.count = 0};
    char path[128];
    score_path(place, path, sizeof path);
    if (!round->forked) {
        say(&w, "%s", place->hem);
        say(&w, "run");
        say(&w, "--grace");
        say(&w, "9000");
        say(&w, "--timeout");
        say(&w, "15");
        say(&w, "-n");
        say(&w, "%d", round->ranks);
    }
    say(&w, "%s", place->rank);
    say(&w, "--score");
    say(&w, "%s", path);
    say(&w, "--op");
    say(&w, "%s", round->op);
    say(&w, "--victim");
    say(&w, "%d", round->victim);
    say(&w, "--kill");
    say(&w, "%s", round->kill);
    if (round->point != 0) {
        say(&w, "--point");
        say(&w, "%" PRIu64, round->point);
    }
    if (round->after_us >= 0) {
        say(&w, "--after");
        say(&w, "%" PRId64, round->after_us);
    }
    if (round->forked) {
        say(&w, "--forked");
        say(&w, "%d", round->ranks);
    }
    return w;
}

void kill_round_describe(const kill_place *place, const kill_round *round, char *text,
                         size_t size) {
    words w = command_of(place, round);
    size_t used = (size_t)snprintf(text, size, "HEM_SPIN=2 HEM_YIELD_US=0");
    for (int i = 0; i < w.count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %s", w.text[i]);
}

static _Noreturn void become(const kill_place *place, const kill_round *round, const char *mark) {
    words w = command_of(place, round);
    char *argv[ARGS_MAX + 1] = {NULL};
    char path[128];
    snprintf(path, sizeof path, "%s/output", place->folder);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    setenv(KILL_MARK, mark, 1);
    if (round->after_us < 0) {
        /* Few polls, so that each point of a wait is another place. */
        setenv("HEM_SPIN", "2", 1);
        setenv("HEM_YIELD_US", "0", 1);
    }
    for (int i = 0; i < w.count; i++)
        argv[i] = w.text[i];
    execv(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* @return what waitpid says, or -1 after the limit. */
static int wait_for(pid_t job) {
    uint64_t limit = now_ns() + ROUND_LIMIT_S * 1000000000ull;
    int status = 0;
    while (waitpid(job, &status, WNOHANG) != job) {
        if (now_ns() > limit) {
            kill(job, SIGKILL);
            waitpid(job, &status, 0);
            return -1;
        }
        usleep(500);
    }
    return status;
}

static void blame(kill_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void blame(kill_result *result, const char *format, ...) {
    if (result->verdict == KILL_BAD)
        return; /* the first reason says most */
    result->verdict = KILL_BAD;
    va_list args;
    va_start(args, format);
    vsnprintf(result->why, sizeof result->why, format, args);
    va_end(args);
}

static bool somebody_dies(const kill_round *round) {
    return round->point != 0 || round->after_us >= 0;
}

static bool ends_launcher(const kill_round *round) {
    return strcmp(round->kill, "self") != 0;
}

static void judge_exit(const kill_round *round, int status, kill_result *result) {
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    int want = somebody_dies(round) ? 128 + SIGKILL : 0;
    if (status == -1)
        blame(result, "the job hung for %d s", ROUND_LIMIT_S);
    else if (code != want)
        blame(result, "exit code %d, not %d", code, want);
}

static bool survives(const kill_round *round, int rank) {
    if (!somebody_dies(round))
        return true;
    return rank != round->victim &&
           (round->deaths < 2 || rank != (round->victim + 1) % round->ranks);
}

static void judge_rank(const kill_place *place, const kill_round *round, int rank,
                       kill_result *result) {
    const kill_record *record = &place->score->ranks[rank];
    uint64_t death = place->score->death_ns;
    if (record->trouble[0] != '\0')
        blame(result, "rank %d: %.300s", rank, record->trouble);
    else if (record->stage != KILL_STAGE_FINISHED)
        blame(result, "rank %d came only to stage %u", rank, record->stage);
    else if (somebody_dies(round) && !record->learnt)
        blame(result, "rank %d did not learn of the death", rank);
    else if (somebody_dies(round) && record->learnt_ns < death)
        blame(result, "rank %d was told of a death that had not happened yet", rank);
    if (!record->learnt)
        return;
    uint64_t since = record->enter_ns > death ? record->enter_ns : death;
    uint64_t took = record->learnt_ns > since ? record->learnt_ns - since : 0;
    if (took > result->slowest_ns)
        result->slowest_ns = took;
}

/* Set-up calls end in the same way for all. */
static void judge_agreement(const kill_place *place, const kill_round *round, kill_result *result) {
    const kill_record *first = NULL;
    for (int rank = 0; rank < round->ranks; rank++) {
        const kill_record *record = &place->score->ranks[rank];
        if (!survives(round, rank))
            continue;
        if (first == NULL)
            first = record;
        if (record->status != first->status || record->size != first->size)
            blame(result, "survivors disagree: %s (%d ranks) and %s (%d ranks)",
                  hem_status_name((hem_status)first->status), first->size,
                  hem_status_name((hem_status)record->status), record->size);
    }
}

static void judge_leftovers(const char *mark, int limit_ms, kill_result *result) {
    char text[200];
    int count = kill_leftover_processes(mark, limit_ms, text, sizeof text);
    if (count > 0)
        blame(result, "%d processes are left:%s", count, text);
}

/* A busy machine makes a rank late, but not by that much. */
static void judge_time(const kill_place *place, kill_result *result) {
    if (result->verdict != KILL_GOOD || result->slowest_ns <= place->limit_ns)
        return;
    result->verdict = result->slowest_ns < HOPELESS * place->limit_ns ? KILL_LATE : KILL_BAD;
    snprintf(result->why, sizeof result->why, "the death was learnt after %.1f ms",
             (double)result->slowest_ns * 1e-6);
}

void kill_round_run(kill_place *place, const kill_round *round, kill_result *result_p) {
    kill_result result = {.verdict = KILL_GOOD};
    char mark[80];
    snprintf(mark, sizeof mark, "%s-%" PRIu64 "-", place->mark, ++place->rounds);
    memset(place->score, 0, sizeof *place->score);
    fflush(NULL);
    pid_t job = fork();
    if (job == 0)
        become(place, round, mark);
    int status = job > 0 ? wait_for(job) : -1;
    judge_exit(round, status, &result);
    for (int rank = 0; !ends_launcher(round) && rank < round->ranks; rank++)
        if (survives(round, rank))
            judge_rank(place, round, rank, &result);
    if (round->agreed && !ends_launcher(round) && result.verdict == KILL_GOOD)
        judge_agreement(place, round, &result);
    /* The launcher ends only after everything else has; otherwise somebody must notice first. */
    judge_leftovers(mark, round->forked || ends_launcher(round) ? LEFT_MS : 0, &result);
    judge_time(place, &result);
    result.points = place->score->points;
    *result_p = result;
}

static void show_output(const kill_place *place) {
    char path[128];
    char line[512];
    snprintf(path, sizeof path, "%s/output", place->folder);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        printf("    | %s", line);
    if (file != NULL)
        fclose(file);
}

void kill_round_show(const kill_place *place, const kill_round *round) {
    show_output(place);
    for (int rank = 0; rank < round->ranks; rank++) {
        const kill_record *record = &place->score->ranks[rank];
        printf("    rank %d: stage %u, %s, world of %d; learnt %s %.3f ms after the death; %s\n",
               rank, record->stage, hem_status_name((hem_status)record->status), record->size,
               record->learnt ? "it" : "nothing",
               record->learnt ? ((double)record->learnt_ns - (double)place->score->death_ns) * 1e-6
                              : 0.0,
               record->trouble);
    }
}

bool kill_place_open(kill_place *place) {
    char path[128];
    score_path(place, path, sizeof path);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *score = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(kill_score)) == 0)
        score = mmap(NULL, sizeof(kill_score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (score == MAP_FAILED)
        perror(path);
    if (fd >= 0)
        close(fd);
    place->score = score;
    snprintf(place->mark, sizeof place->mark, "%ld-%" PRIx64, (long)getpid(), now_ns());
    return score != MAP_FAILED;
}
