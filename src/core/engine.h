/*
 * The engine of a world: what is under way, and who moves it on.
 *
 * A task is something that may have work to do: one direction of a lane of a channel, a collective.
 * While it has, it is in the engine's list. Whoever waits, tests or makes progress takes the engine's
 * lock and lets each task advance once; so does the progress thread, if there is one. All state of
 * tasks and operations is guarded by that lock, but for `state` of an operation, which is released
 * when it is done so that waiters can look at it without the lock.
 *
 * Who wakes whom. Peers ring this rank's doorbell after they have written a word that a task of this
 * rank looks at (core/wait.h). A thread of this rank that completes an operation rings its own
 * rank's doorbell, since another thread may sleep until just that happens; so does one that lists a
 * task, since the progress thread may sleep.
 *
 * Callbacks run without the lock, after the pass that completed their operations.
 */
#ifndef HEMI_CORE_ENGINE_H
#define HEMI_CORE_ENGINE_H

#include "base/lock.h"
#include "core/wait.h"

#include <hem/op.h>

/** What a task's advance says: not done, and there is more to do right now. */
#define HEMI_MORE ((hem_status)2)

/** Something that may have work to do. Embedded in what it moves. */
typedef struct hemi_task {
    struct hemi_task *next;
    struct hemi_task **link; /**< NULL: not in the list */
    /** Do what can be done now. HEMI_AGAIN: keep it in the list. HEMI_MORE: the same, and it did a
     *  part only, so that others get their turn: nobody sleeps before it was called again. Anything
     *  else: it was taken off the list already or is to be taken off now. Under the lock; must not
     *  block. May unlist itself and complete operations; must not free the task. */
    hem_status (*advance)(struct hemi_task *task);
    /** Somebody has died or closed, or the world was revoked, or `now_ns` may be past a time limit:
     *  fail what can never be done. Called after `advance` said HEMI_AGAIN, which is called once
     *  more before a verdict takes effect by the implementation itself: what holds beats a reason to
     *  give up. Under the lock. */
    void (*trouble)(struct hemi_task *task, uint64_t now_ns);
    uint64_t deadline_ns; /**< of the platform's clock; UINT64_MAX: none */
} hemi_task;

/** Room for the sentence behind an operation's bad status. */
#define HEMI_OP_TEXT 256

enum hemi_op_state {
    HEMI_OP_IDLE = 0, /**< persistent, and not started */
    HEMI_OP_RUNNING,
    HEMI_OP_DONE
};

struct hem_op;

/** What differs between operations. Called under the lock unless it says otherwise. */
typedef struct hemi_op_type {
    uint32_t call; /**< what hemi_op_init sets */
    /** Begin (again). May complete it at once. Bad luck that is found here is the operation's
     *  status, not the return value. */
    void (*start)(struct hem_op *op);
    /** It is RUNNING and goes away: make sure that nobody touches its buffers any more, then
     *  complete it. May drop and take the lock while it waits. */
    void (*cancel)(struct hem_op *op);
    /** Free what the operation owns, and itself. Without the lock; it is not RUNNING. */
    void (*destroy)(struct hem_op *op);
    /** Say in the flight record what it waits for. May be NULL. */
    void (*where)(struct hem_op *op, hemi_flight_note *note);
} hemi_op_type;

/** Embedded as the first member of every operation. */
struct hem_op {
    hemi_child child; /**< only handles that the caller has are children of the world */
    hem_world *world; /**< NULL once it is closed */
    const hemi_op_type *type;
    uint32_t call;  /**< enum hemi_call, for the flight record and sentences */
    uint32_t state; /**< enum hemi_op_state; released when DONE */
    hem_status status;
    size_t bytes;
    bool persistent;
    bool owned;     /**< by the caller: a handle, not part of a blocking call */
    bool doomed;    /**< freed while its callback was queued or running */
    bool queued;    /**< for its callback */
    uint32_t due;   /**< how often it is to be called then */
    uint32_t calls; /**< callbacks running */
    hem_op_fn fn;
    void *arg;
    struct hem_op *next_done; /**< in the engine's list of callbacks to call */
    char text[HEMI_OP_TEXT];  /**< the sentence behind a bad status */
};

/** Set up a zeroed operation. `owned` makes it a child of the world: a handle for the caller. */
void hemi_op_init(struct hem_op *op, hem_world *world, const hemi_op_type *type, bool persistent,
                  bool owned);

/** Start a fresh operation under the lock: RUNNING, then type->start. */
void hemi_op_begin(struct hem_op *op);

/** It is done. With a bad status, this thread's last error sentence goes with it. Under the lock. */
void hemi_op_complete(struct hem_op *op, hem_status status);

/** Have op->fn called by the next hemi_engine_settle, once more for each time. Under the lock. */
void hemi_op_call_back(struct hem_op *op);

static inline bool hemi_op_is_done(const struct hem_op *op) {
    /* Pairs with the release in hemi_op_complete. */
    return hemi_load32_acquire(&op->state) == HEMI_OP_DONE;
}

/** Record the operation's sentence for the calling thread and return its status. It is done. */
hem_status hemi_op_result(const struct hem_op *op);

/** Check that `world` can be used: not NULL, not revoked. */
hem_status hemi_engine_check(hem_world *world, const char *call);

static inline void hemi_engine_lock(hem_world *world) {
    hemi_lock(world->root->platform, &world->engine.lock);
}

/** Give the lock back. Does not call callbacks: hemi_engine_settle does. */
static inline void hemi_engine_unlock(hem_world *world) {
    hemi_unlock(&world->engine.lock);
}

/** Call the callbacks of what has been completed. Without the lock. One load if there is nothing. */
void hemi_engine_settle(hem_world *world);

/** Put a task into the list, or take it off; twice does no harm. Under the lock. */
void hemi_engine_list(hem_world *world, hemi_task *task);
void hemi_engine_unlist(hem_world *world, hemi_task *task);

/** One pass over all tasks; does nothing if another thread is at it. Then callbacks. */
void hemi_engine_progress(hem_world *world);

/** The same with a look for deaths, revokes and time limits. */
void hemi_engine_inspect(hem_world *world);

/**
 * Wait until `op` is done, making progress with everything meanwhile. Without the lock.
 *
 * HEM_ERR_TIMEOUT leaves it RUNNING; the sentence is the caller's to record. Otherwise the status of
 * the operation, with its sentence recorded. A dead peer or a revoke ends the operation through its
 * task's `trouble`, not the wait.
 */
hem_status hemi_engine_wait(hem_world *world, struct hem_op *op, int64_t timeout_ns);

/** hemi_wait that also minds the time limits of tasks. */
hem_status hemi_engine_wait_until(hem_world *world, const hemi_wait_for *wait, int64_t timeout_ns);

/** The world goes: stop the progress thread and cancel what is running. */
void hemi_engine_close(hem_world *world);

/** Free what the engine holds in private memory. Nothing is running. */
void hemi_engine_free(hem_world *world);

/** The world of this operation, or why there is none: NULL, closed. */
hem_status hemi_op_check(const struct hem_op *op, const char *call);

/** Stop the progress thread if there is one. core/worker.c. */
void hemi_worker_stop(hem_world *world);

#endif
