/*
 * Operations: things that were started and go on by themselves until they are done.
 *
 * A started send, receive or collective is a hem_op. It moves on whenever this rank is inside of a
 * call on the same world that waits, tests or makes progress, or waits for long in another world, or
 * all the time if the world has a progress thread. All calls are safe from any thread.
 */
#ifndef HEM_OP_H
#define HEM_OP_H

#include <hem/world.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hem_op hem_op;

/**
 * Start a persistent operation, one that a _plan call made, once more.
 *
 * Does not block and does not allocate. The buffers that were named in the plan are used again:
 * what is in them now is what is sent. Started in the same order on all ranks where the operation
 * is a collective.
 *
 * Local. @return HEM_OK; HEM_ERR_ARG if it is not persistent or still under way; HEM_ERR_CLOSED,
 *         HEM_ERR_REVOKED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_start(hem_op *op);

/**
 * Make some progress and say whether the operation is done.
 *
 * Does not block. Once it is done, `done_p` is true and the status is the operation's own: buffers
 * may be reused. Local.
 *
 * @return HEM_OK, or how the operation failed; HEM_ERR_ARG, HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_test(hem_op *op, bool *done_p);

/**
 * Wait until the operation is done.
 *
 * After HEM_ERR_TIMEOUT it is still under way and can be waited for again. Local.
 *
 * @return HEM_OK, HEM_ERR_TIMEOUT, or how the operation failed; HEM_ERR_ARG, HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_wait(hem_op *op, int64_t timeout_ns);

/**
 * Wait until all of `count` operations of one world are done; NULLs are passed over. Returns the
 * first failure in the order of the list, after all are done. Otherwise as hem_op_wait.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_wait_all(hem_op *const *ops, size_t count,
                                                  int64_t timeout_ns);

/**
 * Wait until one of `count` operations of one world is done; `which_p` says which, the first in the
 * list if several are. NULLs are passed over. Returns that operation's status.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_wait_any(hem_op *const *ops, size_t count, size_t *which_p,
                                                  int64_t timeout_ns);

/** What a receive got: its length in bytes once it is done, else 0. Local. From any thread. */
HEM_API size_t hem_op_bytes(const hem_op *op);

/** Called once an operation is done. `status` is how it ended. */
typedef void (*hem_op_fn)(hem_op *op, hem_status status, void *arg);

/**
 * Have `fn` called each time the operation gets done; if it is done already, at once.
 *
 * It is called by whichever thread makes progress, with no lock held. It may start new operations
 * and free this one, but it must not wait. NULL takes the callback away. Local.
 *
 * @return HEM_OK, HEM_ERR_ARG, HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_op_on_done(hem_op *op, hem_op_fn fn, void *arg);

/**
 * Free an operation. NULL is allowed.
 *
 * One that is under way is cancelled first. A send that had begun ends at the receiver with
 * HEM_ERR_REVOKED; what is left of a message that was being received is thrown away; a collective
 * fails on every rank that has not finished it with HEM_ERR_REVOKED. Where a peer is just copying
 * straight from or into the buffer, it waits for the end of that copy. After its world was closed
 * it only frees the handle. Its callback is not called any more, unless it is running already.
 *
 * Local, but collective for a collective on device buffers, which then must not be freed in a
 * callback. @return HEM_OK.
 */
HEM_API hem_status hem_op_free(hem_op *op);

/* Progress. */

/** Move everything on that is under way in this world. Does not block. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_progress(hem_world *world);

/**
 * Give the world a thread that makes progress, take it away, let it pause and go on.
 *
 * Pausing returns once the thread is not in the library any more. Starting it twice, and pausing,
 * resuming or stopping none, is HEM_ERR_ARG. hem_world_close stops it. Local.
 *
 * @return HEM_OK, HEM_ERR_ARG, HEM_ERR_SYSTEM if no thread could be made.
 */
HEM_API HEM_MUST_CHECK hem_status hem_progress_start(hem_world *world);
HEM_API HEM_MUST_CHECK hem_status hem_progress_pause(hem_world *world);
HEM_API HEM_MUST_CHECK hem_status hem_progress_resume(hem_world *world);
HEM_API HEM_MUST_CHECK hem_status hem_progress_stop(hem_world *world);

/**
 * A descriptor that becomes readable when an operation of this world got done, for poll, epoll and
 * event loops over them.
 *
 * The same descriptor each time; the world closes it. Without a progress thread nothing gets done
 * unless something calls into the library: call hem_progress from a timer, or start the thread.
 * Local. @return HEM_OK, HEM_ERR_ARG, HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_world_event_fd(hem_world *world, int *fd_p);

/**
 * Make the descriptor unreadable again and say how many operations got done since the last time.
 *
 * Local. @return HEM_OK, HEM_ERR_ARG.
 */
HEM_API HEM_MUST_CHECK hem_status hem_world_event_read(hem_world *world, uint64_t *count_p);

#ifdef __cplusplus
}
#endif
#endif
