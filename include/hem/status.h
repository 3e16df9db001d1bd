/* What a Hem call answers, and the sentence that explains a failure. */
#ifndef HEM_STATUS_H
#define HEM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEM_API        __attribute__((visibility("default")))
#define HEM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HEM_API
#define HEM_MUST_CHECK
#endif

/** 0 is good, negative is an error. Every call that can fail returns one. */
typedef enum hem_status {
    HEM_OK = 0,
    HEM_ERR_ARG = -1,         /**< a NULL, an unknown flag, a malformed option */
    HEM_ERR_RANGE = -2,       /**< a rank, id, offset or length outside of what exists */
    HEM_ERR_MEMORY = -3,      /**< no memory, or none left in the arena */
    HEM_ERR_TIMEOUT = -4,     /**< the time limit passed first */
    HEM_ERR_PEER = -5,        /**< a rank that this call depends on is dead or has left */
    HEM_ERR_REVOKED = -6,     /**< some rank revoked the world */
    HEM_ERR_MISMATCH = -7,    /**< the ranks did not call the same thing */
    HEM_ERR_UNSUPPORTED = -8, /**< no route to that peer can do this */
    HEM_ERR_CLOSED = -9,      /**< the world of this window was closed */
    HEM_ERR_SYSTEM = -10,     /**< the operating system refused; the sentence says what */
    HEM_ERR_LIMIT = -11       /**< more than this build or machine can hold */
} hem_status;

/** Wait for ever. Any other negative time limit is HEM_ERR_ARG. */
#define HEM_FOREVER (-1LL)
/** Time limits are nanoseconds. */
#define HEM_US(x)  ((long long)(x)*1000LL)
#define HEM_MS(x)  ((long long)(x)*1000000LL)
#define HEM_SEC(x) ((long long)(x)*1000000000LL)

/**
 * The name of a status, such as "HEM_ERR_PEER".
 *
 * Returns a constant string, also for numbers that are no status. Local. From any thread.
 */
HEM_API const char *hem_status_name(hem_status status);

/**
 * One sentence about the last failure of a Hem call in this thread, with ranks, sizes and names.
 *
 * Never NULL; empty before the first failure. Valid until the next Hem call of this thread fails;
 * successful calls leave it alone. Local. From any thread.
 */
HEM_API const char *hem_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
