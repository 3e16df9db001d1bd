/*
 * hem run: the launcher of jobs on one machine.
 *
 * How this works. Two processes protect each other. The front is what the user started; it forwards
 * signals and passes the exit code on. The keeper, its child, makes the arena, starts the ranks and
 * is the monitor that decides who is dead. Both are child subreapers. If the front dies, the keeper
 * sees it (a pidfd of the front) and ends everything below itself. If the keeper dies, the ranks are
 * killed by the kernel (PR_SET_PDEATHSIG), and whatever they had started becomes the front's, which
 * ends it. So one kill -9, wherever it strikes, leaves nothing behind.
 *
 * A rank is the child that the keeper started and, where that is a shell or a debugger, also the
 * process that attached to the arena and said hello on the control socket. It counts as ended for
 * its peers as soon as the process that attached has ended.
 */
#ifndef HEMT_RUN_H
#define HEMT_RUN_H

#include "signals.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum hemt_bind {
    HEMT_BIND_AUTO = 0, /**< to cores if there are enough */
    HEMT_BIND_CORE,
    HEMT_BIND_NONE
} hemt_bind;

typedef struct hemt_run_options {
    uint32_t ranks;
    hemt_bind bind;
    int64_t timeout_ns; /**< 0: none */
    int64_t grace_ns;
    bool tag_output;
    char **program; /**< its name and arguments, ended by NULL */
} hemt_run_options;

/** Read the command line. @return -1 with `*options_p` filled in, or the exit code to end with. */
int hemt_run_parse(int argc, char **argv, hemt_run_options *options_p);

/** Be the front: start the keeper, wait for it, clean up. @return the exit code. */
int hemt_front(const hemt_run_options *options);

/**
 * Be the keeper, in a fresh child of the front. `front_fd` is a pidfd of the front, `signals` what
 * the front has taken. @return the exit code.
 */
int hemt_keeper(const hemt_run_options *options, int front_fd, const hemt_signals *signals);

#endif
