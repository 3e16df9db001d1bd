#include "device/fds.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LETTER_MAGIC 0x7364666d6568u /* "hemfds" */
/* Strangers' messages that are dropped in one call before the caller gets its turn. */
#define DROPS 64
/* One descriptor is expected; more are room to find that out in. */
#define FDS_MOST 4

/* What came with a message. */
typedef struct cargo {
    int fds[FDS_MOST];
    size_t count;
    bool trusted; /* the kernel says that it is from this user */
    bool cut;     /* there was more */
} cargo;

static socklen_t address_of(uint64_t name, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int n =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "hem-fds-%016" PRIx64, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

hem_status hemi_fds_open(const hemi_platform *platform, hemi_fds *fds_p) {
    hemi_fds fds = {.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    int yes = 1;
    struct sockaddr_un address;
    fds.where.name = platform->random(platform->ctx);
    fds.where.token = platform->random(platform->ctx);
    socklen_t size = address_of(fds.where.name, &address);
    /* Before it has a name, so that nothing comes without the sender's user. */
    if (fds.socket < 0 || setsockopt(fds.socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        bind(fds.socket, (struct sockaddr *)&address, size) != 0) {
        int error = errno;
        hemi_fds_close(&fds);
        return hemi_fail_errno(error, "cannot make a socket to share device memory");
    }
    *fds_p = fds;
    return HEM_OK;
}

void hemi_fds_close(hemi_fds *fds) {
    if (fds->socket >= 0)
        close(fds->socket);
    fds->socket = -1;
}

/* Whether it may work later. A receiver that is gone is found out by who asks whether it is alive. */
static bool is_passing(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM ||
           error == ETOOMANYREFS || error == ECONNREFUSED || error == ENOENT;
}

hem_status hemi_fds_send(const hemi_fds *fds, const hemi_fds_name *to, uint32_t from, int fd) {
    hemi_fds_letter letter = {.magic = LETTER_MAGIC, .token = to->token, .from = from};
    struct sockaddr_un address;
    struct iovec data = {.iov_base = &letter, .iov_len = sizeof letter};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.space = {0}};
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = address_of(to->name, &address),
                             .msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    ssize_t sent = 0;
    do {
        sent = sendmsg(fds->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent == (ssize_t)sizeof letter)
        return HEM_OK;
    if (sent < 0 && is_passing(errno))
        return HEMI_AGAIN;
    return hemi_fail_errno(sent < 0 ? errno : EMSGSIZE, "cannot hand device memory to a peer");
}

const char *hemi_fds_parse(const void *letter, size_t bytes, uint64_t token, uint32_t ranks,
                           uint32_t *from_p) {
    hemi_fds_letter l;
    if (bytes != sizeof l)
        return "a message of the wrong length";
    memcpy(&l, letter, sizeof l);
    if (l.magic != LETTER_MAGIC || l.zero != 0)
        return "a message of another kind";
    if (l.token != token)
        return "a message without the token";
    if (l.from >= ranks)
        return "a message from a rank that does not exist";
    *from_p = l.from;
    return NULL;
}

static void keep_fds(cargo *c, const struct cmsghdr *header) {
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        if (c->count < FDS_MOST)
            c->fds[c->count++] = fd;
        else
            close(fd); /* cannot be: there was room for no more */
    }
}

static void unload(struct msghdr *message, cargo *c) {
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h != NULL; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level != SOL_SOCKET)
            continue;
        if (h->cmsg_type == SCM_RIGHTS)
            keep_fds(c, h);
        if (h->cmsg_type == SCM_CREDENTIALS && h->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(h), sizeof sender);
            c->trusted = sender.uid == getuid();
        }
    }
    c->cut = (message->msg_flags & MSG_CTRUNC) != 0;
}

static ssize_t receive(int from, void *letter, size_t bytes, cargo *c) {
    struct iovec data = {.iov_base = letter, .iov_len = bytes};
    union {
        char space[CMSG_SPACE(FDS_MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t got = 0;
    do {
        got = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    if (got >= 0)
        unload(&message, c);
    return got;
}

/* Whether what came is good: then its descriptor is handed on. */
static hem_status judge(const hemi_fds *fds, const void *letter, size_t bytes, const cargo *c,
                        uint32_t ranks, uint32_t *from_p, int *fd_p) {
    uint32_t from = 0;
    if (!c->trusted || hemi_fds_parse(letter, bytes, fds->where.token, ranks, &from) != NULL)
        return HEMI_AGAIN;
    if (c->count == 0 && c->cut)
        return hemi_fail(HEM_ERR_LIMIT,
                         "there is no descriptor left for a peer's device memory (RLIMIT_NOFILE, "
                         "ulimit -n)");
    if (c->count != 1)
        return HEMI_AGAIN;
    *from_p = from;
    *fd_p = c->fds[0];
    return HEM_OK;
}

hem_status hemi_fds_take(const hemi_fds *fds, uint32_t ranks, uint32_t *from_p, int *fd_p) {
    for (int i = 0; i < DROPS; i++) {
        unsigned char letter[sizeof(hemi_fds_letter) + 1];
        cargo c = {.count = 0};
        ssize_t got = receive(fds->socket, letter, sizeof letter, &c);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HEMI_AGAIN;
        if (got < 0)
            return hemi_fail_errno(errno, "cannot take device memory from a peer");
        hem_status status = judge(fds, letter, (size_t)got, &c, ranks, from_p, fd_p);
        if (status == HEM_OK)
            return HEM_OK;
        for (size_t j = 0; j < c.count; j++)
            close(c.fds[j]);
        if (status != HEMI_AGAIN)
            return status;
    }
    return HEMI_AGAIN;
}
