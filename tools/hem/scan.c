#include "scan.h"

#include "say.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How /proc shows the descriptor of an arena; see make_file in core/arena.c. */
#define ARENA_LINK "/memfd:hem-arena"

typedef struct file_id {
    dev_t device;
    ino_t number;
} file_id;

/* The arenas that were looked at: each is open in many processes. */
typedef struct seen_files {
    file_id *list;
    size_t count;
    size_t room;
} seen_files;

/* Doubles a full array. False without memory: then what comes is left out. */
static bool make_room(void **list, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return true;
    size_t more = *room == 0 ? 16 : 2 * *room;
    void *grown = reallocarray(*list, more, size);
    if (grown == NULL)
        return false;
    *list = grown;
    *room = more;
    return true;
}

static bool first_time(seen_files *seen, const struct stat *file) {
    for (size_t i = 0; i < seen->count; i++)
        if (seen->list[i].device == file->st_dev && seen->list[i].number == file->st_ino)
            return false;
    void *list = seen->list;
    if (make_room(&list, &seen->room, seen->count, sizeof *seen->list)) {
        seen->list = list;
        seen->list[seen->count++] = (file_id){file->st_dev, file->st_ino};
    }
    return true;
}

static bool known(const hemt_jobs *jobs, uint64_t job) {
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->list[i].job == job)
            return true;
    return false;
}

static void adopt(hemt_jobs *jobs, hemi_arena *arena) {
    const hemi_arena_head *head = arena->head;
    hemt_found found = {.arena = *arena,
                        .job = head->job,
                        .start_ns = head->start_ns,
                        .maker_pid = head->maker_pid};
    memcpy(found.command, head->command, sizeof found.command);
    found.command[sizeof found.command - 1] = '\0';
    void *list = jobs->list;
    if (known(jobs, found.job) || !make_room(&list, &jobs->room, jobs->count, sizeof *jobs->list)) {
        hemi_arena_unmap(arena);
        return;
    }
    jobs->list = list;
    jobs->list[jobs->count++] = found;
}

/* Look at one arena. One that is gone meanwhile is no error. */
static void look(hemt_jobs *jobs, int folder, const char *name, const char *pid) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    hemi_arena arena;
    uint64_t magic = 0;
    if (hemi_arena_map(fd, false, &arena) == HEM_OK)
        adopt(jobs, &arena);
    else if (pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == HEMI_ARENA_MAGIC)
        /* Not one that is just being made. */
        hemt_say("ps", "left out a job of process %s: %s", pid, hem_last_error());
    close(fd);
}

static void scan_process(hemt_jobs *jobs, seen_files *seen, int proc, const char *pid) {
    char path[300];
    snprintf(path, sizeof path, "%s/fd", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char link[sizeof ARENA_LINK] = "";
        struct stat file;
        if (readlinkat(fd, entry->d_name, link, sizeof link - 1) == sizeof link - 1 &&
            strcmp(link, ARENA_LINK) == 0 && fstatat(fd, entry->d_name, &file, 0) == 0 &&
            first_time(seen, &file))
            look(jobs, fd, entry->d_name, pid);
    }
    closedir(folder);
}

static bool is_mine(int proc, const char *pid) {
    struct stat owner;
    return isdigit((unsigned char)pid[0]) && fstatat(proc, pid, &owner, 0) == 0 &&
           owner.st_uid == geteuid();
}

static int by_age(const void *a, const void *b) {
    const hemt_found *left = a;
    const hemt_found *right = b;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

int hemt_scan(hemt_jobs *jobs_p) {
    *jobs_p = (hemt_jobs){0};
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return errno;
    seen_files seen = {0};
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;)
        if (is_mine(dirfd(proc), entry->d_name))
            scan_process(jobs_p, &seen, dirfd(proc), entry->d_name);
    closedir(proc);
    free(seen.list);
    if (jobs_p->count > 0)
        qsort(jobs_p->list, jobs_p->count, sizeof *jobs_p->list, by_age);
    return 0;
}

void hemt_jobs_free(hemt_jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++)
        hemi_arena_unmap(&jobs->list[i].arena);
    free(jobs->list);
    *jobs = (hemt_jobs){0};
}

const char *hemt_kind_name(uint32_t kind) {
    switch (kind) {
    case HEMI_KIND_LAUNCHED:
        return "launched";
    case HEMI_KIND_CALLBACK:
        return "callback";
    case HEMI_KIND_THREADS:
        return "threads";
    case HEMI_KIND_ALONE:
        return "alone";
    default:
        return "unknown";
    }
}
