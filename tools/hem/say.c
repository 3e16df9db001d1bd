#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static void say_list(const char *who, const char *tail, const char *format, va_list args) {
    char text[LINE_MAX_BYTES];
    char line[LINE_MAX_BYTES + 256];
    vsnprintf(text, sizeof text, format, args);
    int length = snprintf(line, sizeof line, "hem %s: %s\n%s", who, text, tail);
    /* A stderr that is gone is no reason to stop. */
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

void hemt_say(const char *who, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_list(who, "", format, args);
    va_end(args);
}

int hemt_usage(const char *who, const char *format, ...) {
    char tail[96];
    snprintf(tail, sizeof tail, "Try: hem %s --help\n", who);
    va_list args;
    va_start(args, format);
    say_list(who, tail, format, args);
    va_end(args);
    return HEMT_EXIT_USAGE;
}

void hemt_signal_text(int signal, char *text, size_t size) {
    snprintf(text, size, "signal %d (%s)", signal, strsignal(signal));
}

void hemt_end_text(int code, char *text, size_t size) {
    char signal[64];
    if (code > HEMT_EXIT_SIGNAL && code <= HEMT_EXIT_SIGNAL + 64) {
        hemt_signal_text(code - HEMT_EXIT_SIGNAL, signal, sizeof signal);
        snprintf(text, size, "was killed by %s", signal);
    } else {
        snprintf(text, size, "exited with code %d", code);
    }
}

int hemt_shell_code(int wait_status) {
    if (WIFSIGNALED(wait_status))
        return HEMT_EXIT_SIGNAL + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}
