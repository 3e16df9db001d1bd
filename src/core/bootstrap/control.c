#include "core/bootstrap/control.h"

#include "base/env.h"
#include "base/status.h"
#include "core/layout.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

const char *hemi_control_parse(const void *message, size_t bytes, uint32_t ranks,
                               uint32_t *rank_p) {
    hemi_control_hello hello;
    if (bytes != sizeof hello)
        return "a message of the wrong length";
    memcpy(&hello, message, sizeof hello);
    if (hello.magic != HEMI_CONTROL_MAGIC)
        return "a message that is no hello";
    if (hello.version != HEMI_LAYOUT_VERSION)
        return "a hello from another version of Hem";
    if (hello.rank >= ranks)
        return "a hello from a rank that does not exist";
    *rank_p = hello.rank;
    return NULL;
}

hem_status hemi_control_environment(hemi_launch_info *info_p, int *launched_p) {
    *launched_p = 0;
    if (hemi_env_text("HEM_ARENA_FD") == NULL)
        return HEM_OK;
    uint64_t rank = UINT64_MAX;
    uint64_t size = 0;
    uint64_t arena_fd = 0;
    uint64_t control_fd = 0;
    hem_status status = hemi_env_number("HEM_SIZE", 1, HEMI_MAX_RANKS, &size);
    if (status == HEM_OK && size > 0)
        status = hemi_env_number("HEM_RANK", 0, size - 1, &rank);
    if (status == HEM_OK)
        status = hemi_env_number("HEM_ARENA_FD", 3, INT_MAX, &arena_fd);
    if (status == HEM_OK)
        status = hemi_env_number("HEM_CONTROL_FD", 3, INT_MAX, &control_fd);
    if (status != HEM_OK)
        return status;
    if (size == 0 || rank == UINT64_MAX || arena_fd == 0 || control_fd == 0)
        return hemi_fail(HEM_ERR_ARG, "HEM_ARENA_FD is set, but HEM_RANK, HEM_SIZE or "
                                      "HEM_CONTROL_FD is not: start the program with hem run");
    info_p->rank = (uint32_t)rank;
    info_p->size = (uint32_t)size;
    info_p->arena_fd = (int)arena_fd;
    info_p->control_fd = (int)control_fd;
    *launched_p = 1;
    return HEM_OK;
}

hem_status hemi_control_send_hello(int control_fd, uint32_t rank) {
    hemi_control_hello hello = {HEMI_CONTROL_MAGIC, HEMI_LAYOUT_VERSION, rank};
    ssize_t sent = 0;
    do {
        sent = send(control_fd, &hello, sizeof hello, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)sizeof hello)
        return hemi_fail_errno(errno, "rank %u cannot reach the launcher", rank);
    return HEM_OK;
}
