#include "task.h"

#include "base/sim.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t kill_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The parent of a process, 0 if that cannot be read. */
static pid_t parent_of(pid_t pid) {
    char path[64];
    char line[256] = "";
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    const char *rest = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    if (rest != NULL && strlen(rest) > 4)
        parent = strtol(rest + 4, NULL, 10);
    fclose(file);
    return (pid_t)parent;
}

void kill_die(kill_task *t) {
    pid_t whom = getpid();
    if (t->manner != KILL_SELF)
        whom = getppid();
    if (t->manner == KILL_FRONT)
        whom = parent_of(whom);
    __atomic_store_n(&t->score->death_ns, kill_now(), __ATOMIC_RELEASE);
    kill(whom, SIGKILL);
    for (int i = 0; t->manner == KILL_SELF && i < 100; i++)
        usleep(100000);
}

static void count_point(void *ctx) {
    kill_task *t = ctx;
    uint64_t count = ++t->score->points;
    if (count != t->point)
        return;
    hemi_sim_set_hook(NULL, NULL);
    kill_die(t);
}

void kill_arm(kill_task *t) {
    t->score->points = 0;
    hemi_sim_set_hook(count_point, t);
}

void kill_disarm(void) {
    hemi_sim_set_hook(NULL, NULL);
}

void kill_start_killer(kill_task *t) {
    pid_t victim = getpid();
    if (t->after_us < 0 || fork() != 0)
        return;
    usleep((useconds_t)t->after_us);
    __atomic_store_n(&t->score->death_ns, kill_now(), __ATOMIC_RELEASE);
    kill(victim, SIGKILL);
    _exit(0);
}

void kill_fail(const kill_task *t, int line, const char *format, ...) {
    kill_record *record = &t->score->ranks[t->me];
    char text[sizeof record->trouble];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(record->trouble, sizeof record->trouble, "line %d: %.280s", line, text);
    _exit(3);
}

void kill_enter(kill_task *t) {
    t->entered_ns = kill_now();
}

hem_status kill_left(kill_task *t, hem_status status) {
    kill_record *record = &t->score->ranks[t->me];
    /* An all-gather that fails is how a rank without a launcher learns of it while opening. */
    bool tells = status == HEM_ERR_PEER || status == HEM_ERR_REVOKED ||
                 (status == HEM_ERR_SYSTEM && t->forked && t->op->opens);
    if (tells && !record->learnt) {
        record->learnt_ns = kill_now();
        record->enter_ns = t->entered_ns;
        record->learnt = 1;
    }
    return status;
}

void kill_expect(const kill_task *t, int line, const char *what, hem_status got, hem_status want) {
    if (got != want)
        kill_fail(t, line, "%s gave %s, not %s: %s", what, hem_status_name(got),
                  hem_status_name(want), hem_last_error());
}

void kill_stage_reached(const kill_task *t, kill_stage stage) {
    t->score->ranks[t->me].stage = stage;
}

hem_window *kill_window(kill_task *t, hem_world *world, size_t bytes) {
    const hem_window_options options = {
        .struct_size = sizeof options, .bytes = bytes, .timeout_ns = KILL_LIMIT};
    hem_window *window = NULL;
    KILL_EXPECT(t, hem_window_create(world, &options, &window), HEM_OK);
    return window;
}

static unsigned char pattern(uint64_t tag, size_t i) {
    return (unsigned char)(((tag + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u) >> 56);
}

void kill_fill(void *bytes, size_t n, uint64_t tag) {
    unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        b[i] = pattern(tag, i);
}

bool kill_filled(const void *bytes, size_t n, uint64_t tag) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        if (b[i] != pattern(tag, i))
            return false;
    return true;
}
