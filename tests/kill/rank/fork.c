/*
 * Ranks without a launcher: this process forks them, and they open their world over an all-gather
 * in shared memory. Who dies is then found by the monitor among the ranks themselves.
 */
#include "task.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BLOCK = 512,
    ROUNDS = 16,
    LIMIT_S = 15,
    TIMED_OUT = 124
};

/* Every round has blocks of its own, so that nothing is ever used twice. */
typedef struct table {
    uint32_t ended[KILL_RANKS_MAX]; /* written by the parent */
    uint32_t there[ROUNDS][KILL_RANKS_MAX];
    unsigned char blocks[ROUNDS][KILL_RANKS_MAX][BLOCK];
} table;

typedef struct gather {
    table *table;
    int me;
    int size;
    int round;
} gather;

static bool has_come(const gather *g, int rank) {
    return __atomic_load_n(&g->table->there[g->round][rank], __ATOMIC_ACQUIRE) != 0;
}

static int all_gather(void *ctx, const void *mine, void *all, size_t bytes) {
    gather *g = ctx;
    if (g->round >= ROUNDS || bytes > BLOCK)
        return 1;
    memcpy(g->table->blocks[g->round][g->me], mine, bytes);
    __atomic_store_n(&g->table->there[g->round][g->me], 1, __ATOMIC_RELEASE);
    for (int rank = 0; rank < g->size; rank++) {
        while (!has_come(g, rank)) {
            bool ended = __atomic_load_n(&g->table->ended[rank], __ATOMIC_ACQUIRE) != 0;
            if (ended && !has_come(g, rank))
                return 2;
            usleep(50);
        }
        memcpy((unsigned char *)all + (size_t)rank * bytes, g->table->blocks[g->round][rank],
               bytes);
    }
    g->round++;
    return 0;
}

static _Noreturn void be_rank(kill_task *t, table *shared, int rank, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    gather g = {.table = shared, .me = rank, .size = t->size};
    t->me = rank;
    t->options.allgather = all_gather;
    t->options.allgather_ctx = &g;
    t->options.rank = rank;
    t->options.size = t->size;
    _exit(kill_rank(t));
}

static int code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int rank_of(const pid_t *pids, int size, pid_t pid) {
    for (int rank = 0; rank < size; rank++)
        if (pids[rank] == pid)
            return rank;
    return -1;
}

/* Reap until all ranks have ended, or it takes too long. @return the code of the first failure. */
static int reap_all(const pid_t *pids, int size, table *shared) {
    int left = size;
    int first = 0;
    uint64_t limit = kill_now() + LIMIT_S * 1000000000ull;
    while (left > 0 && kill_now() < limit) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        int rank = pid > 0 ? rank_of(pids, size, pid) : -1;
        if (rank >= 0) {
            __atomic_store_n(&shared->ended[rank], 1, __ATOMIC_RELEASE);
            left--;
            first = first != 0 ? first : code_of(status);
        } else if (pid <= 0) {
            usleep(200);
        }
    }
    for (int rank = 0; left > 0 && rank < size; rank++)
        if (shared->ended[rank] == 0)
            kill(pids[rank], SIGKILL);
    return left > 0 ? TIMED_OUT : first;
}

int kill_fork_ranks(kill_task *t) {
    table *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[KILL_RANKS_MAX] = {0};
    pid_t self = getpid();
    if (shared == MAP_FAILED)
        return 1;
    for (int rank = 0; rank < t->size; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            be_rank(t, shared, rank, self);
        if (pids[rank] < 0) {
            perror("fork");
            return 1; /* those that run die with this process */
        }
    }
    return reap_all(pids, t->size, shared);
}
