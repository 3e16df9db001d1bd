#include "core/bootstrap/handout.h"

#include "base/status.h"
#include "core/liveness.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ASK_MAGIC 0x6b7361u /* "ask" */
/* A stranger that connects and says nothing holds the others up for no longer than this. */
#define ASK_LIMIT_MS 1000

struct hemi_handout {
    const hemi_platform *platform;
    hemi_handout_name where;
    int fd;
};

const char *hemi_handout_parse(const void *message, size_t bytes, uint64_t token, uint32_t ranks,
                               uint32_t *rank_p) {
    hemi_handout_ask ask;
    if (bytes != sizeof ask)
        return "a message of the wrong length";
    memcpy(&ask, message, sizeof ask);
    if (ask.magic != ASK_MAGIC || ask.version != HEMI_LAYOUT_VERSION)
        return "a message of another version of Hem";
    if (ask.token != token)
        return "a message without the token";
    if (ask.rank == 0 || ask.rank >= ranks)
        return "a message from a rank that does not exist";
    *rank_p = ask.rank;
    return NULL;
}

static socklen_t address_of(uint64_t name, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "hem-%016" PRIx64, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool same_user(int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

hem_status hemi_handout_open(const hemi_platform *platform, hemi_handout **handout_p) {
    hemi_handout *handout = calloc(1, sizeof *handout);
    if (handout == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to hand out the arena");
    handout->platform = platform;
    handout->where.name = platform->random(platform->ctx);
    handout->where.token = platform->random(platform->ctx);
    handout->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;
    socklen_t size = address_of(handout->where.name, &address);
    if (handout->fd < 0 || bind(handout->fd, (struct sockaddr *)&address, size) != 0 ||
        listen(handout->fd, SOMAXCONN) != 0) {
        int error = errno;
        hemi_handout_close(handout);
        return hemi_fail_errno(error, "cannot listen for the other ranks");
    }
    *handout_p = handout;
    return HEM_OK;
}

const hemi_handout_name *hemi_handout_where(const hemi_handout *handout) {
    return &handout->where;
}

void hemi_handout_close(hemi_handout *handout) {
    if (handout == NULL)
        return;
    if (handout->fd >= 0)
        close(handout->fd);
    free(handout);
}

/* Wait for something to read; signals do not shorten it. */
static int wait_readable(int fd, int64_t limit_ns) {
    const hemi_platform *platform = hemi_platform_real();
    uint64_t start = platform->now(platform->ctx);
    for (;;) {
        int64_t left = limit_ns - (int64_t)(platform->now(platform->ctx) - start);
        int64_t ms = (left < 0 ? 0 : left + 999999) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, limit_ns < 0 ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms);
        if (ready >= 0 || errno != EINTR)
            return ready;
    }
}

static bool send_descriptor(int to, int fd) {
    char byte = 'A';
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.space = {0}};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

/* One visitor. Returns its rank if it got the descriptor, 0 otherwise. */
static uint32_t serve_one(const hemi_handout *handout, const hemi_arena *arena) {
    int peer = accept4(handout->fd, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0)
        return 0;
    uint32_t rank = 0;
    unsigned char message[64];
    if (same_user(peer) && wait_readable(peer, ASK_LIMIT_MS * 1000000ll) > 0) {
        ssize_t got = recv(peer, message, sizeof message, 0);
        if (got < 0 ||
            hemi_handout_parse(message, (size_t)got, handout->where.token, arena->ranks, &rank) !=
                NULL ||
            !send_descriptor(peer, arena->fd))
            rank = 0;
    }
    close(peer);
    return rank;
}

/* Declare ended whoever has not come and never will; returns how many are still expected. */
static uint32_t count_missing(const hemi_handout *handout, const hemi_arena *arena,
                              const bool *served, bool give_up) {
    uint32_t missing = 0;
    for (uint32_t r = 1; r < arena->ranks; r++) {
        const hemi_rank_block *block = hemi_arena_rank(arena, r);
        if (served[r] || !hemi_liveness_may_come(arena, r))
            continue;
        int process = (int)syscall(SYS_pidfd_open, (pid_t)block->pid, 0);
        bool ended = process >= 0 ? wait_readable(process, 0) > 0 : errno == ESRCH;
        if (process >= 0)
            close(process);
        if (ended || give_up)
            hemi_liveness_ended(arena, handout->platform, r, 255);
        else
            missing++;
    }
    return missing;
}

void hemi_handout_serve(hemi_handout *handout, const hemi_arena *arena, int64_t timeout_ns) {
    const hemi_platform *platform = handout->platform;
    bool *served = calloc(arena->ranks, sizeof *served);
    uint64_t start = platform->now(platform->ctx);
    uint64_t deadline = timeout_ns < 0 ? UINT64_MAX : start + (uint64_t)timeout_ns;
    for (;;) {
        bool late = served == NULL || platform->now(platform->ctx) >= deadline;
        if (served == NULL || count_missing(handout, arena, served, late) == 0)
            break;
        /* Short naps, since a rank that dies does not announce it here. */
        if (wait_readable(handout->fd, 10000000) > 0)
            served[serve_one(handout, arena)] = true;
    }
    free(served);
}

static int receive_descriptor(int from) {
    char byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

static hem_status ask_for(int to, const hemi_handout_name *name, uint32_t rank, int64_t timeout_ns,
                          int *fd_p) {
    hemi_handout_ask ask = {ASK_MAGIC, name->token, HEMI_LAYOUT_VERSION, rank};
    struct sockaddr_un address;
    socklen_t size = address_of(name->name, &address);
    /* Where the queue of rank 0 is full, connecting waits, too. */
    struct timeval limit = {.tv_sec = timeout_ns < 0 ? 0 : timeout_ns / 1000000000 + 1};
    setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(to, (struct sockaddr *)&address, size) != 0)
        return hemi_fail(HEM_ERR_PEER, "rank 0 is not there to hand out the arena: %s",
                         strerror(errno));
    if (!same_user(to))
        return hemi_fail(HEM_ERR_SYSTEM, "rank 0 runs as another user");
    if (send(to, &ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask)
        return hemi_fail(HEM_ERR_PEER, "rank 0 went away while handing out the arena");
    if (wait_readable(to, timeout_ns) == 0)
        return hemi_fail(HEM_ERR_TIMEOUT, "rank 0 did not hand out the arena in time");
    *fd_p = receive_descriptor(to);
    if (*fd_p < 0)
        return hemi_fail(HEM_ERR_PEER, "rank 0 did not hand out the arena");
    return HEM_OK;
}

hem_status hemi_handout_fetch(const hemi_handout_name *name, uint32_t rank, int64_t timeout_ns,
                              int *fd_p) {
    int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (to < 0)
        return hemi_fail_errno(errno, "cannot make a socket to fetch the arena");
    hem_status status = ask_for(to, name, rank, timeout_ns, fd_p);
    close(to);
    return status;
}
