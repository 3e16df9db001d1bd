/* Small things about processes that the C library of Debian 12 lacks or makes long. */
#ifndef HEMT_PROCESS_H
#define HEMT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/** A close-on-exec descriptor that becomes readable when `pid` has ended, or -1 with errno. */
int hemt_pidfd_open(pid_t pid);

/** Send a signal through a pidfd: it cannot strike a stranger. @return 0 or -1 with errno. */
int hemt_pidfd_signal(int fd, int signal);

/** Whether the process behind a pidfd has ended. */
bool hemt_pidfd_ended(int fd);

/**
 * Look a process up in /proc: its parent, and its state as a letter ('R', 'S', 'T' for stopped).
 *
 * @return false if there is no such process.
 */
bool hemt_process_look(pid_t pid, char *state_p, pid_t *parent_p);

/** Open /dev/null for those of the descriptors 0, 1 and 2 that are closed, so that nothing else
 *  gets these numbers. @return 0 or an errno. */
int hemt_fill_standard_descriptors(void);

#endif
