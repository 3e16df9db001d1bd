#include "bench_child.h"

#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double grace_s = 2;

/* A pipe from the child and what has come out of it so far. */
struct stream {
    int fd;
    char *text;
    size_t length;
};

static double now_s(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

_Noreturn static void be_child(char *const argv[], pid_t parent, int out, int err) {
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execvp(argv[0], argv);
    fprintf(stderr, "%s cannot be started: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Reads what is there. Returns false, and closes, at the end of the stream. */
static bool drain(struct stream *stream) {
    char chunk[4096];
    ssize_t n;

    while ((n = read(stream->fd, chunk, sizeof(chunk))) > 0) {
        char *longer = realloc(stream->text, stream->length + (size_t)n + 1);
        if (longer == NULL)
            break;
        memcpy(longer + stream->length, chunk, (size_t)n);
        stream->text = longer;
        stream->length += (size_t)n;
        stream->text[stream->length] = '\0';
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    close(stream->fd);
    stream->fd = -1;
    return false;
}

static void read_ready(struct stream streams[2], int timeout_ms) {
    struct pollfd fds[2] = {
        {.fd = streams[0].fd, .events = POLLIN},
        {.fd = streams[1].fd, .events = POLLIN},
    };

    poll(fds, 2, timeout_ms);
    for (int i = 0; i < 2; i++) {
        if (streams[i].fd >= 0 && fds[i].revents != 0)
            drain(&streams[i]);
    }
}

/* Collects output until the child has ended, and ends it when its time is up. */
static int watch(pid_t pid, struct stream streams[2], double limit_s, bool *timed_out_p) {
    double end = now_s() + limit_s;
    double kill_at = end + grace_s;
    int status = 0;

    for (;;) {
        /* With both pipes at their end only the exit is still to come, and it comes at once. */
        bool silent = streams[0].fd < 0 && streams[1].fd < 0;
        read_ready(streams, silent ? 1 : 50);
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            break;
        if (now_s() > end && !*timed_out_p) {
            *timed_out_p = true;
            kill(pid, SIGTERM);
        }
        if (now_s() > kill_at)
            kill(-pid, SIGKILL);
    }
    /* What it left behind would run beside the next measurement. */
    kill(-pid, SIGKILL);
    for (int i = 0; i < 2; i++) {
        if (streams[i].fd >= 0 && drain(&streams[i]))
            close(streams[i].fd);
    }
    return hemt_shell_code(status);
}

/* What a runner says of itself tells more than what its launcher adds. */
static void keep_last_line(char *text, char *line_p, size_t size) {
    static const char runner[] = "hem-bench: ";
    bool own = false;
    char *rest;

    line_p[0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        bool is_own = strncmp(line, runner, strlen(runner)) == 0;
        if (line[strspn(line, " \t\r-=")] == '\0' || (own && !is_own))
            continue;
        own = is_own;
        snprintf(line_p, size, "%s", is_own ? line + strlen(runner) : line);
    }
}

static bool open_pipes(int out[2], int err[2]) {
    if (pipe2(out, O_CLOEXEC) != 0)
        return false;
    if (pipe2(err, O_CLOEXEC) == 0)
        return true;
    close(out[0]);
    close(out[1]);
    return false;
}

static void fail(struct hemt_child *child, const char *what) {
    child->code = 127;
    snprintf(child->last_line, sizeof(child->last_line), "%s: %s", what, strerror(errno));
}

void hemt_child_run(char *const argv[], double limit_s, struct hemt_child *child_p) {
    struct stream streams[2] = {{.fd = -1}, {.fd = -1}};
    pid_t parent = getpid();
    int out[2];
    int err[2];

    *child_p = (struct hemt_child){.output = strdup("")};
    if (!open_pipes(out, err)) {
        fail(child_p, "no pipe");
        return;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        be_child(argv, parent, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    streams[0].fd = out[0];
    streams[1].fd = err[0];
    if (pid < 0) {
        fail(child_p, "no process");
        close(out[0]);
        close(err[0]);
        return;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    child_p->code = watch(pid, streams, limit_s, &child_p->timed_out);
    if (streams[0].text != NULL) {
        free(child_p->output);
        child_p->output = streams[0].text;
    }
    if (streams[1].text != NULL)
        keep_last_line(streams[1].text, child_p->last_line, sizeof(child_p->last_line));
    free(streams[1].text);
}
