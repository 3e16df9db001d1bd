#include "core/monitor.h"


#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Well within the 50 ms in which a death must be known. */
#define RETRY_NS 10000000

struct hemi_monitor {
    hemi_root *root;
    pthread_t thread;
    int stop_fd;
};

/*
 * Sleep until the lock on the arena's first byte is ours; that makes the monitor. hemi_monitor_stop
 * ends the sleep by cancelling the thread, which holds nothing here.
 *
 * A lock that belongs to the process, not to the open file: a child that the process has forked
 * must not keep it. The kernel may suspect a deadlock where the processes of two worlds wait for
 * each other's locks; it is none, and trying again is right.
 */
static bool become_monitor(const hemi_root *root) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int old = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    int result = 0;
    while ((result = fcntl(root->arena.fd, F_SETLKW, &lock)) != 0 && (errno == EINTR || errno == EDEADLK))
        if (errno == EDEADLK)
            root->platform->nap(root->platform->ctx, RETRY_NS);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return result == 0;
}

static int open_process(uint32_t pid) {
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

/* Fill in one descriptor per rank that may still die; returns how many ranks have ended already. */
static void watch_all(const hemi_monitor *monitor, struct pollfd *watch) {
    const hemi_arena *arena = &monitor->root->arena;
    for (uint32_t r = 0; r < arena->ranks; r++) {
        watch[r] = (struct pollfd){.fd = -1, .events = POLLIN};
        const hemi_rank_block *block = hemi_arena_rank(arena, r);
        if (r == monitor->root->rank || hemi_load32_acquire(&block->state) != HEMI_STATE_ALIVE)
            continue;
        watch[r].fd = open_process(hemi_load32_relaxed(&block->pid));
        if (watch[r].fd < 0 && errno == ESRCH)
            hemi_liveness_ended(arena, monitor->root->platform, r, 255);
    }
}

static void close_all(const hemi_monitor *monitor, struct pollfd *watch) {
    for (uint32_t r = 0; r < monitor->root->arena.ranks; r++)
        if (watch[r].fd >= 0)
            close(watch[r].fd);
}

static void report_ended(const hemi_monitor *monitor, struct pollfd *watch) {
    const hemi_arena *arena = &monitor->root->arena;
    for (uint32_t r = 0; r < arena->ranks; r++) {
        if (watch[r].fd < 0 || watch[r].revents == 0)
            continue;
        close(watch[r].fd);
        watch[r].fd = -1;
        /* Nobody but its parent knows how it ended. */
        hemi_liveness_ended(arena, monitor->root->platform, r, 255);
    }
}

static void be_monitor(hemi_monitor *monitor) {
    uint32_t ranks = monitor->root->arena.ranks;
    struct pollfd *watch = calloc((size_t)ranks + 1, sizeof *watch);
    if (watch == NULL)
        return;
    watch_all(monitor, watch);
    watch[ranks] = (struct pollfd){.fd = monitor->stop_fd, .events = POLLIN};
    while (watch[ranks].revents == 0) {
        if (poll(watch, (nfds_t)ranks + 1, -1) < 0 && errno != EINTR)
            break;
        report_ended(monitor, watch);
    }
    close_all(monitor, watch);
    free(watch);
}

static void *run(void *arg) {
    hemi_monitor *monitor = arg;
    int old = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    if (become_monitor(monitor->root))
        be_monitor(monitor);
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

hem_status hemi_monitor_start(hemi_root *root, hemi_monitor **monitor_p) {
    hemi_monitor *monitor = calloc(1, sizeof *monitor);
    if (monitor == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the monitor");
    monitor->root = root;
    monitor->stop_fd = eventfd(0, EFD_CLOEXEC);
    int error = monitor->stop_fd < 0 ? errno : start_thread(monitor);
    if (error != 0) {
        if (monitor->stop_fd >= 0)
            close(monitor->stop_fd);
        free(monitor);
        return hemi_fail_errno(error, "cannot start the thread that watches for dead ranks");
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
    pthread_cancel(monitor->thread);
    pthread_join(monitor->thread, NULL);
    close(monitor->stop_fd);
    free(monitor);
}
