#include "core/monitor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Well within the 50 ms in which a death must be known. */
#define RETRY_MS 10
/* Nobody but its parent knows how a process ended. */
#define CODE_UNKNOWN 255

struct hemi_monitor {
    hemi_root *root;
    pthread_t thread;
    int stop_fd;
    struct pollfd *watch; /* one per rank, then stop_fd */
};

static int open_process(uint32_t pid) {
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

/*
 * Have a descriptor for every rank that may still die. False if one could not be had, because the
 * process has used up its descriptors: then the monitor tries again soon.
 */
static bool watch_all(hemi_monitor *monitor) {
    const hemi_arena *arena = &monitor->root->arena;
    bool all = true;
    for (uint32_t r = 0; r < arena->ranks; r++) {
        struct pollfd *watch = &monitor->watch[r];
        const hemi_rank_block *block = hemi_arena_rank(arena, r);
        if (watch->fd >= 0 || r == monitor->root->rank ||
            hemi_load32_acquire(&block->state) != HEMI_STATE_ALIVE)
            continue;
        watch->fd = open_process(hemi_load32_relaxed(&block->pid));
        if (watch->fd < 0 && errno == ESRCH)
            hemi_liveness_ended(arena, monitor->root->platform, r, CODE_UNKNOWN);
        else if (watch->fd < 0)
            all = false;
    }
    return all;
}

static void report_ended(hemi_monitor *monitor) {
    const hemi_arena *arena = &monitor->root->arena;
    for (uint32_t r = 0; r < arena->ranks; r++) {
        struct pollfd *watch = &monitor->watch[r];
        if (watch->fd < 0 || watch->revents == 0)
            continue;
        close(watch->fd);
        watch->fd = -1;
        hemi_liveness_ended(arena, monitor->root->platform, r, CODE_UNKNOWN);
    }
}

static void *run(void *arg) {
    hemi_monitor *monitor = arg;
    uint32_t ranks = monitor->root->arena.ranks;
    const struct pollfd *stop = &monitor->watch[ranks];
    while (stop->revents == 0) {
        int limit_ms = watch_all(monitor) ? -1 : RETRY_MS;
        if (poll(monitor->watch, (nfds_t)ranks + 1, limit_ms) < 0 && errno != EINTR)
            monitor->root->platform->nap(monitor->root->platform->ctx, RETRY_MS * 1000000ll);
        else
            report_ended(monitor);
    }
    return NULL;
}

static int start_thread(hemi_monitor *monitor) {
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    /* The program's signals are for its own threads. */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&monitor->thread, NULL, run, monitor);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static void free_monitor(hemi_monitor *monitor) {
    for (uint32_t r = 0; monitor->watch != NULL && r < monitor->root->arena.ranks; r++)
        if (monitor->watch[r].fd >= 0)
            close(monitor->watch[r].fd);
    if (monitor->stop_fd >= 0)
        close(monitor->stop_fd);
    free(monitor->watch);
    free(monitor);
}

static hem_status make_watch(hemi_monitor *monitor) {
    uint32_t ranks = monitor->root->arena.ranks;
    monitor->watch = calloc((size_t)ranks + 1, sizeof *monitor->watch);
    if (monitor->watch == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the monitor");
    for (uint32_t r = 0; r < ranks; r++)
        monitor->watch[r] = (struct pollfd){.fd = -1, .events = POLLIN};
    monitor->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (monitor->stop_fd < 0)
        return hemi_fail_errno(errno, "cannot make the monitor (RLIMIT_NOFILE, ulimit -n)");
    monitor->watch[ranks] = (struct pollfd){.fd = monitor->stop_fd, .events = POLLIN};
    return HEM_OK;
}

hem_status hemi_monitor_start(hemi_root *root, hemi_monitor **monitor_p) {
    hemi_monitor *monitor = calloc(1, sizeof *monitor);
    if (monitor == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the monitor");
    monitor->root = root;
    monitor->stop_fd = -1;
    hem_status status = make_watch(monitor);
    int error = status == HEM_OK ? start_thread(monitor) : 0;
    if (error != 0)
        status = hemi_fail_errno(error, "cannot start the thread that watches for dead ranks");
    if (status != HEM_OK) {
        free_monitor(monitor);
        return status;
    }
    *monitor_p = monitor;
    return HEM_OK;
}

void hemi_monitor_stop(hemi_monitor *monitor) {
    if (monitor == NULL)
        return;
    uint64_t one = 1;
    while (write(monitor->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_join(monitor->thread, NULL);
    free_monitor(monitor);
}
