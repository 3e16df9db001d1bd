#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int hemt_pidfd_open(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int hemt_pidfd_signal(int fd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

bool hemt_pidfd_ended(int fd) {
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    int ready = 0;
    do {
        ready = poll(&entry, 1, 0);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool hemt_process_look(pid_t pid, char *state_p, pid_t *parent_p) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char line[512];
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    /* The name in parentheses may itself hold parentheses and spaces. */
    const char *after = strrchr(line, ')');
    if (after == NULL || strlen(after) < 5)
        return false;
    *state_p = after[2];
    *parent_p = (pid_t)strtol(after + 3, NULL, 10);
    return true;
}

int hemt_fill_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number is this one. */
        if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            return errno != 0 ? errno : EBADF;
    }
    return 0;
}
