#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The one mutable global that DESIGN rule 1 allows. */
static _Thread_local char last_error[HEMI_ERROR_MAX];

const char *hem_status_name(hem_status status) {
    switch (status) {
    case HEM_OK:
        return "HEM_OK";
    case HEM_ERR_ARG:
        return "HEM_ERR_ARG";
    case HEM_ERR_RANGE:
        return "HEM_ERR_RANGE";
    case HEM_ERR_MEMORY:
        return "HEM_ERR_MEMORY";
    case HEM_ERR_TIMEOUT:
        return "HEM_ERR_TIMEOUT";
    case HEM_ERR_PEER:
        return "HEM_ERR_PEER";
    case HEM_ERR_REVOKED:
        return "HEM_ERR_REVOKED";
    case HEM_ERR_MISMATCH:
        return "HEM_ERR_MISMATCH";
    case HEM_ERR_UNSUPPORTED:
        return "HEM_ERR_UNSUPPORTED";
    case HEM_ERR_CLOSED:
        return "HEM_ERR_CLOSED";
    case HEM_ERR_SYSTEM:
        return "HEM_ERR_SYSTEM";
    case HEM_ERR_LIMIT:
        return "HEM_ERR_LIMIT";
    }
    return "unknown hem_status";
}

const char *hem_last_error(void) {
    return last_error;
}

hem_status hemi_fail(hem_status status, const char *format, ...) {
    /* The arguments may point into last_error itself, so the sentence is made beside it. */
    char text[HEMI_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(last_error, text, sizeof text);
    return status;
}

hem_status hemi_fail_errno(int error, const char *format, ...) {
    char text[HEMI_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char reason[128];
    return hemi_fail(HEM_ERR_SYSTEM, "%.360s: %.128s", text,
                     strerror_r(error, reason, sizeof reason));
}

void hemi_error_save(char *sentence) {
    memcpy(sentence, last_error, sizeof last_error);
}

void hemi_error_restore(const char *sentence) {
    memcpy(last_error, sentence, sizeof last_error);
}
