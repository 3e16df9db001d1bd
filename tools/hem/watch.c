#include "watch.h"

#include "core/bootstrap/control.h"
#include "process.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS 1000000
#define BATCH     64

/* What an event belongs to; from EVENT_HELLO on, a rank. */
enum {
    EVENT_SIGNAL,
    EVENT_FRONT,
    EVENT_CONTROL,
    EVENT_REPORT,
    EVENT_TAGGER,
    EVENT_HELLO
};

static bool add(hemt_job *job, int fd, uint64_t what) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
    return epoll_ctl(job->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool open_control(hemt_job *job) {
    /* The ranks share one end and block in it; only our own reads must not. */
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, job->control) != 0)
        return false;
    const int on = 1;
    return setsockopt(job->control[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
}

static bool open_report(hemt_job *job) {
    return pipe2(job->report, O_CLOEXEC) == 0 && fcntl(job->report[0], F_SETFL, O_NONBLOCK) == 0;
}

bool hemt_watch_open(hemt_job *job) {
    job->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool good = job->epoll_fd >= 0 && hemt_signals_open(&job->signals) == 0 && open_control(job) &&
                open_report(job) && add(job, job->signals.fd, EVENT_SIGNAL) &&
                add(job, job->front_fd, EVENT_FRONT) && add(job, job->control[0], EVENT_CONTROL) &&
                add(job, job->report[0], EVENT_REPORT);
    if (good && job->tagger != NULL)
        good = add(job, hemt_tagger_done_fd(job->tagger), EVENT_TAGGER);
    if (!good)
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED,
                              "cannot watch over ranks: %s (limit on descriptors: ulimit -n)",
                              strerror(errno));
    return good;
}

bool hemt_watch_hello(hemt_job *job, uint32_t rank) {
    return add(job, job->ranks[rank].hello_fd, EVENT_HELLO + (uint64_t)rank);
}

/* The kernel's word on who sent a message. */
static bool sender_of(struct msghdr *message, struct ucred *who_p) {
    struct cmsghdr *part = CMSG_FIRSTHDR(message);
    if (part == NULL || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS ||
        part->cmsg_len != CMSG_LEN(sizeof *who_p))
        return false;
    memcpy(who_p, CMSG_DATA(part), sizeof *who_p);
    return true;
}

/* Root may have started a program that gives root up. */
static bool may_be_rank(uid_t user) {
    return user == getuid() || getuid() == 0;
}

static void handle_hello(hemt_job *job, struct msghdr *message, size_t bytes) {
    struct ucred who = {.pid = 0};
    uint32_t rank = 0;
    const char *wrong = "a message without a sender";
    if (sender_of(message, &who) && who.pid > 0)
        wrong = !may_be_rank(who.uid) ? "a message from another user"
                                      : hemi_control_parse(message->msg_iov->iov_base, bytes,
                                                           job->options->ranks, &rank);
    if (wrong == NULL)
        hemt_job_hello(job, rank, who.pid);
    else if (!job->strangers_noted)
        hemt_say("run", "ignored %s (process %ld)", wrong, (long)who.pid);
    if (wrong != NULL)
        job->strangers_noted = true;
}

static void drain_control(hemt_job *job) {
    for (;;) {
        /* One byte more than a hello, so that a longer message is seen to be longer. Descriptors
         * that somebody attaches do not fit in `ancillary` and are closed by the kernel. */
        char bytes[sizeof(hemi_control_hello) + 1];
        _Alignas(struct cmsghdr) char ancillary[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec piece = {.iov_base = bytes, .iov_len = sizeof bytes};
        struct msghdr message = {.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = ancillary,
                                 .msg_controllen = sizeof ancillary};
        ssize_t got = recvmsg(job->control[0], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return;
        handle_hello(job, &message, (size_t)got);
    }
}

static void handle_report(hemt_job *job, const hemt_spawn_report *report) {
    const char *program = job->options->program[0];
    const char *why = strerror(report->error);
    int code = report->error == ENOENT ? HEMT_EXIT_NOT_FOUND : HEMT_EXIT_NOT_EXECUTABLE;
    if (report->step == HEMT_SPAWN_BIND)
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "cannot bind rank %u to its core: %s",
                              report->rank, why);
    else if (report->step == HEMT_SPAWN_PREPARE)
        hemt_job_cannot_start(job, HEMT_EXIT_FAILED, "cannot start rank %u of %u: %s%s",
                              report->rank, job->options->ranks, why,
                              report->error == EMFILE ? " (ulimit -n)" : "");
    else if (report->error == ENOENT && strchr(program, '/') != NULL && access(program, F_OK) == 0)
        hemt_job_cannot_start(job, code,
                              "cannot run %.256s: the interpreter that it names is not "
                              "there",
                              program);
    else
        hemt_job_cannot_start(job, code, "cannot run %.256s: %s", program, why);
}

static void drain_report(hemt_job *job) {
    while (job->report[0] >= 0) {
        hemt_spawn_report report;
        ssize_t got = read(job->report[0], &report, sizeof report);
        if (got == (ssize_t)sizeof report) {
            handle_report(job, &report);
        } else if (got >= 0) {
            /* All have become ranks. */
            close(job->report[0]);
            job->report[0] = -1;
        } else if (errno != EINTR) {
            return;
        }
    }
}

static void reap(hemt_job *job) {
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0)
            return;
        /* Whatever it had said is there, and must be known before its end is judged. */
        drain_report(job);
        drain_control(job);
        hemt_job_reaped(job, pid, hemt_shell_code(status));
    }
}

static void drain_signals(hemt_job *job) {
    hemt_signal signal;
    while (hemt_signals_next(&job->signals, &signal)) {
        if (signal.number == SIGCHLD)
            reap(job);
        else
            hemt_job_signal(job, &signal);
    }
}

static void handle(hemt_job *job, uint64_t what) {
    switch (what) {
    case EVENT_SIGNAL:
        drain_signals(job);
        break;
    case EVENT_FRONT:
        job->front_gone = true;
        break;
    case EVENT_CONTROL:
        drain_control(job);
        break;
    case EVENT_REPORT:
        drain_report(job);
        break;
    case EVENT_TAGGER:
        job->tagger_done = true;
        break;
    default:
        hemt_job_hello_ended(job, (uint32_t)(what - EVENT_HELLO));
    }
}

/* Whole milliseconds, rounded up, so that nothing is looked for before it is due. */
static int to_ms(int64_t ns) {
    int64_t ms = ns < 0 ? -1 : (ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

void hemt_watch_step(hemt_job *job, int64_t limit_ns) {
    struct epoll_event events[BATCH];
    int count = epoll_wait(job->epoll_fd, events, BATCH, to_ms(limit_ns));
    for (int i = 0; i < count; i++)
        handle(job, events[i].data.u64);
}

static void close_one(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void hemt_watch_close(hemt_job *job) {
    close_one(&job->control[0]);
    close_one(&job->control[1]);
    close_one(&job->report[0]);
    close_one(&job->report[1]);
    close_one(&job->signals.fd);
    close_one(&job->epoll_fd);
}
