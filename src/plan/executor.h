/*
 * The host executor: runs a plan with messages between ranks.
 *
 * A run is a state machine that a task of the engine, or anybody else under the engine's lock,
 * advances. It begins the messages of a round, does the copies and reductions of the round while
 * those are on their way, and goes on to the next round when all are done. Set-up allocates; a run
 * does not, and can be started any number of times.
 *
 * Runs of a world use one channel, where messages are matched by order. So the plans of a world must
 * run one after the other, in the same order on all ranks: a run may be started when the one before
 * is done on this rank. (A peer may be in the next one already; its messages wait.)
 *
 * A run that fails leaves messages behind on the channel: those of peers that had not heard of it.
 * Whoever serialises the runs gives each start a later `tag`, by which receivers know what is old and
 * throw it away; or goes on with another channel: hemi_run_use_channel.
 *
 * A message that fails ends the run: a peer died, the world was revoked. But a death that this rank's
 * own messages do not depend on does not: others may wait for the dead and this rank for them. So
 * whoever owns the run watches the world and cancels it.
 */
#ifndef HEMI_PLAN_EXECUTOR_H
#define HEMI_PLAN_EXECUTOR_H

#include "channel/letter.h"
#include "plan/plan.h"

enum hemi_run_state {
    HEMI_RUN_IDLE = 0, /**< not started, or done, or cancelled */
    HEMI_RUN_RUNNING,
    HEMI_RUN_FAILED,    /**< messages may still be under way */
    HEMI_RUN_CANCELLING /**< some thread is in hemi_run_cancel */
};

typedef struct hemi_run {
    hem_world *world;
    const hemi_plan *plan;
    uint32_t channel;
    uint32_t state; /**< enum hemi_run_state; under the engine's lock */
    uint32_t tag;   /**< of the messages; set before each start: see channel/slot.h */
    hem_status status;
    size_t round;    /**< that is going on */
    size_t begun;    /**< letters of this round */
    size_t finished; /**< the first ones of them, known to be done */
    unsigned char *spaces[HEMI_SPACES];
    const void **sources;      /**< addresses of plan->sources */
    hemi_letter *letters;      /**< as many as the round with the most messages has */
    const hemi_step **carried; /**< per letter: the step that it does */
    size_t letter_room;
} hemi_run;

/**
 * Make a run of `plan`, which must stay until hemi_run_free, as must both buffers while it runs.
 *
 * Buffers that the plan does not use may be NULL. Makes this rank's side of the lanes, scratch and
 * letters. Takes the engine's lock. Talks to nobody.
 *
 * @return HEM_OK; HEM_ERR_MEMORY, and then there is nothing to free.
 */
hem_status hemi_run_prepare(hemi_run *run, hem_world *world, const hemi_plan *plan,
                            const void *input, void *output);

/** Use other buffers from the next start on. Under the lock, while it is not running. */
void hemi_run_rebind(hemi_run *run, const void *input, void *output);

/**
 * Have the messages go over another channel than HEMI_CHANNEL_OWN from the next start on. All ranks
 * must do so at the same run. Makes this rank's side of its lanes, which allocates; does nothing if
 * that is the channel already. Under the lock, while it is not running.
 *
 * @return HEM_OK; HEM_ERR_MEMORY, and then it stays as it was.
 */
hem_status hemi_run_use_channel(hemi_run *run, uint32_t channel);

/** Begin, once more if it has been run before. Under the lock; not while it runs. */
void hemi_run_start(hemi_run *run);

/**
 * Do what can be done now. Under the lock; does not block, does not allocate.
 *
 * @return HEM_OK: the result is there, and the buffers are the caller's again. HEMI_AGAIN: not yet.
 *         Anything else: it failed, with its sentence recorded; it begins nothing new, but buffers
 *         may still be in use until hemi_run_cancel. A message of another length than the plan says
 *         is HEM_ERR_MISMATCH.
 */
hem_status hemi_run_advance(hemi_run *run);

/**
 * End a run at any point: when this returns, no buffer of it is touched any more. Under the lock,
 * which it may drop and take again while a peer is just copying from or into a buffer; a call of
 * hemi_run_advance in between says HEMI_AGAIN. Does nothing to a run that is not under way.
 */
void hemi_run_cancel(hemi_run *run);

/** Whom the run is waiting for, or -1 if for nobody. For flight records. Under the lock. */
int hemi_run_waits_for(const hemi_run *run);

/** Free what it holds. It is not running. A run of zeroes is allowed. */
void hemi_run_free(hemi_run *run);

#endif
