/* Recording the sentence behind a status. */
#ifndef HEMI_BASE_STATUS_H
#define HEMI_BASE_STATUS_H

#include <hem/status.h>
#include <stddef.h>

/** Room for one sentence. Longer ones are cut. */
#define HEMI_ERROR_MAX 512

/**
 * Record a sentence for hem_last_error() and return `status`, so that the place which decides on an
 * error reads `return hemi_fail(HEM_ERR_RANGE, "…")`. Callers further up only pass the status on.
 */
hem_status hemi_fail(hem_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** As hemi_fail with HEM_ERR_SYSTEM, ": " and the text of `error` (an errno) appended. */
hem_status hemi_fail_errno(int error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Keep the calling thread's last sentence, and put it back. `sentence` has HEMI_ERROR_MAX bytes. */
void hemi_error_save(char *sentence);
void hemi_error_restore(const char *sentence);

#endif
