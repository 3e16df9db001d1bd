#ifndef HEMT_BENCH_CHILD_H
#define HEMT_BENCH_CHILD_H

#include <stdbool.h>

/* How a child process ended and what it said. */
struct hemt_child {
    int code;            /* the exit code, or 128 + the signal; 127 if it could not be started */
    bool timed_out;      /* it was ended because its time was up */
    char *output;        /* all of stdout, to be freed; never NULL */
    char last_line[200]; /* of stderr: the last with "hem-bench: ", else the last not empty */
};

/**
 * Run `argv` with stdin closed to it, collect what it prints, and wait for its end.
 *
 * After `limit_s` seconds it gets SIGTERM, so that a launcher can end its ranks, and two seconds
 * later it and its process group get SIGKILL. It gets SIGTERM too when this process dies. Whatever
 * is left of its process group when it ends is killed.
 */
void hemt_child_run(char *const argv[], double limit_s, struct hemt_child *child_p);

#endif
