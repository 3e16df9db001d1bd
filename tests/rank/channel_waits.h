/* Every call on channels that waits for another rank, for the tests of what ends a wait. */
#ifndef HEM_TESTS_RANK_CHANNEL_WAITS_H
#define HEM_TESTS_RANK_CHANNEL_WAITS_H

#include "channel_kit.h"

enum chan_wait {
    CHAN_RECV,
    CHAN_SEND,      /**< a large message that is never received */
    CHAN_SEND_FULL, /**< small messages until the staging is full */
    CHAN_SENDRECV,
    CHAN_OP_WAIT,
    CHAN_OP_TEST,
    CHAN_WAIT_ALL,
    CHAN_WAIT_ANY,
    CHAN_PERSISTENT,
    CHAN_CALLBACK, /**< only a progress thread looks */
    CHAN_PREPARE,  /**< the other rank must not have used the world's channels */
    CHAN_MID_RECV, /**< a large message of which the other rank has sent a part */
    CHAN_MID_SEND, /**< a large message of which the other rank has received a part */
    CHAN_WAITS
};

/** The name of a kind, and the kind of a name or CHAN_WAITS. */
const char *chan_wait_name(enum chan_wait kind);
enum chan_wait chan_wait_of_name(const char *name);

/** Let both sides use channel 0 first, where the kind allows it. Collective. */
void chan_wait_ready(enum chan_wait kind, hem_world *world);

/**
 * Wait on channel 0, with LIMIT, for something that needs `other` and that it never does. Never
 * HEM_OK: what was sent whole by mistake is received, and waited for again.
 */
hem_status chan_wait_for(enum chan_wait kind, hem_world *world, int other);

/**
 * What the other rank does for the kinds that stop in the middle: begin with every peer, and go no
 * further. The operations and their buffers are kept until chan_wait_forget, which the same thread
 * need not call; the operations of a dead rank are gone by then.
 */
void chan_wait_begin(enum chan_wait kind, hem_world *world);
void chan_wait_forget(bool dead);

#endif
