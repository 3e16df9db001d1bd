/* What the command says when something is wrong, and exit codes that it shares. */
#ifndef HEMT_SAY_H
#define HEMT_SAY_H

#include <stddef.h>

/** Exit codes. Everything else is a rank's own code. */
enum {
    HEMT_EXIT_FAILED = 1,
    HEMT_EXIT_USAGE = 2,
    HEMT_EXIT_TIMEOUT = 124,
    HEMT_EXIT_NOT_EXECUTABLE = 126,
    HEMT_EXIT_NOT_FOUND = 127,
    HEMT_EXIT_SIGNAL = 128
};

/** Print "hem WHO: sentence" on stderr, in one write so that it does not mix with other output. */
void hemt_say(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** hemt_say, then a line that points to the help. @return HEMT_EXIT_USAGE. */
int hemt_usage(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Write "signal 9 (Killed)" into `text`. */
void hemt_signal_text(int signal, char *text, size_t size);

/** Write "was killed by signal 9 (Killed)" or "exited with code 3" for a shell's exit code. */
void hemt_end_text(int code, char *text, size_t size);

/** The number that a shell shows for what waitpid() returned. */
int hemt_shell_code(int wait_status);

#endif
