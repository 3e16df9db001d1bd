#include "leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRON_MAX (256u << 10)

/* Whether a file of /proc has `needle` somewhere in it, zero bytes or not. */
static bool file_has(const char *path, const char *needle) {
    static char bytes[ENVIRON_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t used = 0;
    ssize_t got = 0;
    while (used < sizeof bytes && (got = read(fd, bytes + used, sizeof bytes - used)) > 0)
        used += (size_t)got;
    close(fd);
    return memmem(bytes, used, needle, strlen(needle)) != NULL;
}

static bool is_number(const char *text) {
    return isdigit((unsigned char)text[0]) != 0;
}

static void append(char *text, size_t size, const char *word) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, " %s", word);
}

/* A process that has ended and waits to be reaped has no environment any more. */
static int count_marked(const char *mark, char *text, size_t size) {
    int count = 0;
    text[0] = '\0';
    DIR *folder = opendir("/proc");
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
        if (!is_number(e->d_name) || !file_has(path, mark))
            continue;
        append(text, size, e->d_name);
        count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

int kill_leftover_processes(const char *mark, int limit_ms, char *text, size_t size) {
    int count = 0;
    for (int waited = 0;; waited += 5) {
        count = count_marked(mark, text, size);
        if (count == 0 || waited >= limit_ms)
            return count;
        usleep(5000);
    }
}

/* A process of another user, whose descriptors are not shown, may hold it as well as not. */
static bool may_hold(const char *pid, const char *link) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    bool found = folder == NULL && errno == EACCES;
    for (struct dirent *e; folder != NULL && !found && (e = readdir(folder)) != NULL;) {
        char target[64] = "";
        ssize_t n = readlinkat(dirfd(folder), e->d_name, target, sizeof target - 1);
        found = n > 0 && strcmp(target, link) == 0;
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

static bool anybody_holds(const char *inode) {
    char link[64];
    bool found = false;
    snprintf(link, sizeof link, "socket:[%s]", inode);
    DIR *folder = opendir("/proc");
    for (struct dirent *e; folder != NULL && !found && (e = readdir(folder)) != NULL;)
        found = is_number(e->d_name) && may_hold(e->d_name, link);
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* Lines of /proc/net/unix end in "inode name"; abstract names begin with @. */
static int count_sockets(char *text, size_t size) {
    int count = 0;
    char line[512];
    FILE *file = fopen("/proc/net/unix", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *name = strstr(line, " @hem-");
        if (name == NULL)
            continue;
        *name = '\0';
        const char *inode = strrchr(line, ' ');
        if (inode == NULL || anybody_holds(inode + 1))
            continue;
        append(text, size, name + 1);
        count++;
    }
    if (file != NULL)
        fclose(file);
    return count;
}

static int count_names(char *text, size_t size) {
    int count = 0;
    text[0] = '\0';
    DIR *folder = opendir("/dev/shm");
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        if (strncmp(e->d_name, "hem", 3) != 0)
            continue;
        append(text, size, e->d_name);
        count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count + count_sockets(text, size);
}

int kill_leftover_names(int limit_ms, char *text, size_t size) {
    int count = 0;
    /* Another job's socket may go between the moments at which its name and its holder are read. */
    for (int waited = 0;; waited += 100) {
        count = count_names(text, size);
        if (count == 0 || waited >= limit_ms)
            return count;
        usleep(100000);
    }
}
