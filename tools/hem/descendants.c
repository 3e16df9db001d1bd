#include "descendants.h"

#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void hemt_pids_free(hemt_pids *pids) {
    free(pids->list);
    *pids = (hemt_pids){0};
}

/* Without memory the list stays short; the rounds of hemt_end_descendants then are more. */
static void add(hemt_pids *pids, pid_t pid) {
    if (pids->count == pids->room) {
        size_t room = pids->room == 0 ? 64 : 2 * pids->room;
        pid_t *list = realloc(pids->list, room * sizeof *list);
        if (list == NULL)
            return;
        pids->list = list;
        pids->room = room;
    }
    pids->list[pids->count++] = pid;
}

static bool contains(const hemt_pids *pids, pid_t pid) {
    for (size_t i = 0; pids != NULL && i < pids->count; i++)
        if (pids->list[i] == pid)
            return true;
    return false;
}

/* The kernel's own list. It may miss a process while another one ends. False where there is none. */
static bool list_by_threads(hemt_pids *pids) {
    DIR *threads = opendir("/proc/self/task");
    bool readable = false;
    for (struct dirent *entry; threads != NULL && (entry = readdir(threads)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/children", entry->d_name);
        FILE *file = isdigit((unsigned char)entry->d_name[0]) ? fopen(path, "re") : NULL;
        if (file == NULL)
            continue;
        readable = true;
        char word[32];
        while (fscanf(file, "%31s", word) == 1)
            add(pids, (pid_t)strtol(word, NULL, 10));
        fclose(file);
    }
    if (threads != NULL)
        closedir(threads);
    return readable;
}

static void list_by_parents(hemt_pids *pids) {
    pid_t self = getpid();
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        pid_t parent = 0;
        char state = 0;
        if (pid > 0 && hemt_process_look(pid, &state, &parent) && parent == self)
            add(pids, pid);
    }
    if (all != NULL)
        closedir(all);
}

void hemt_children(hemt_pids *pids_p) {
    *pids_p = (hemt_pids){0};
    if (!list_by_threads(pids_p) || pids_p->count == 0)
        list_by_parents(pids_p);
}

static void reap_the_dead(void) {
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

size_t hemt_end_descendants(const hemt_pids *spared) {
    for (;;) {
        reap_the_dead();
        hemt_pids children;
        hemt_children(&children);
        size_t killed = 0;
        size_t foreign = 0;
        for (size_t i = 0; i < children.count; i++) {
            if (contains(spared, children.list[i]))
                continue;
            if (kill(children.list[i], SIGKILL) == 0)
                killed++;
            else if (errno == EPERM)
                foreign++;
        }
        hemt_pids_free(&children);
        if (killed == 0)
            return foreign;
        /* At least one ends now. Its children become ours before its end can be seen here. */
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}
