#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void be_rank(int rank, int ranks, pid_t parent, int (*body)(int, void *),
                              void *arg) {
    /* Whoever ends the runner ends its ranks, which might otherwise spin for ever. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(3);
    if (ranks <= bench_cpus())
        bench_pin(rank);
    int code = body(rank, arg);
    fflush(NULL);
    _exit(code);
}

static void kill_all(const pid_t *pids, int count) {
    for (int i = 0; i < count; i++) {
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    }
}

static int exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Collects every rank; the first failure ends the rest and is what is returned. */
static int reap(pid_t *pids, int count) {
    int code = 0;

    for (int left = count; left > 0;) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return code != 0 ? code : 3;
        left--;
        for (int i = 0; i < count; i++) {
            if (pids[i] == pid)
                pids[i] = 0;
        }
        if (code == 0 && exit_code(status) != 0) {
            code = exit_code(status);
            kill_all(pids, count);
        }
    }
    return code;
}

int bench_fork(int ranks, int (*body)(int rank, void *arg), void *arg) {
    pid_t parent = getpid();
    pid_t *pids = calloc((size_t)ranks, sizeof(*pids));

    if (pids == NULL)
        bench_die("no memory for %d ranks", ranks);
    fflush(NULL);
    for (int rank = 0; rank < ranks; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            be_rank(rank, ranks, parent, body, arg);
        if (pids[rank] < 0) {
            fprintf(stderr, "rank %d cannot be started: %s\n", rank, strerror(errno));
            kill_all(pids, rank);
            reap(pids, rank);
            free(pids);
            return 3;
        }
    }
    int code = reap(pids, ranks);
    free(pids);
    return code;
}
