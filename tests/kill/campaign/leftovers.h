/* What a job may have left behind: processes, sockets, files. */
#ifndef HEM_TESTS_KILL_LEFTOVERS_H
#define HEM_TESTS_KILL_LEFTOVERS_H

#include <stdbool.h>
#include <stddef.h>

/** The variable that carries the mark. */
#define KILL_MARK "HEM_KILL_MARK"

/**
 * Look for processes whose environment has the mark, for at most `limit_ms`.
 *
 * @return how many are left; `text` says which.
 */
int kill_leftover_processes(const char *mark, int limit_ms, char *text, size_t size);

/** The same for files of Hem in /dev/shm, and abstract sockets of Hem that no process holds. */
int kill_leftover_names(int limit_ms, char *text, size_t size);

#endif
