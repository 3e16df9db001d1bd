/* Signals as events: blocked in the launcher's processes and read from a descriptor. */
#ifndef HEMT_SIGNALS_H
#define HEMT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct hemt_signals {
    int fd; /**< readable while one is pending; -1 before hemt_signals_open */
    sigset_t taken;
    /* What the launcher was started with, and its ranks get back. */
    sigset_t mask_before;
    struct sigaction pipe_before;
    struct sigaction child_before;
} hemt_signals;

typedef struct hemt_signal {
    int number;
    bool from_terminal; /**< the kernel sent it, so that the process group has it already */
} hemt_signal;

/**
 * Block the signals that the launcher forwards, and SIGCHLD. Those that it was started with as
 * ignored (nohup, `&` in a script) stay ignored.
 */
void hemt_signals_take(hemt_signals *signals);

/** Wait for one of them without a descriptor. False if the wait was interrupted. */
bool hemt_signals_wait(const hemt_signals *signals, hemt_signal *signal_p);

/** Open the descriptor for the calling process. @return 0 or an errno. */
int hemt_signals_open(hemt_signals *signals);

/** Take the next pending signal. False if there is none. */
bool hemt_signals_next(hemt_signals *signals, hemt_signal *signal_p);

/** Send it to the keeper, together with where it came from. */
void hemt_signals_pass_on(const hemt_signal *signal, pid_t keeper);

/** Undo hemt_signals_take in a child that is about to become a rank. */
void hemt_signals_give_back(const hemt_signals *signals);

#endif
