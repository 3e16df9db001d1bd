/*
 * A message that this rank sends or receives, as the other rooms see it.
 *
 * A letter is an operation (its first member), so it can be waited for; it may be part of something
 * larger, such as a plan, which looks at its state.
 */
#ifndef HEMI_CHANNEL_LETTER_H
#define HEMI_CHANNEL_LETTER_H

#include "core/engine.h"

#include <hem/channel.h>

/** The channel ids of the library itself: for collectives, and for the set-up of patterns. */
#define HEMI_CHANNEL_OWN   HEM_CHANNELS
#define HEMI_CHANNEL_SETUP (HEM_CHANNELS + 1)
/** What lanes outside of the hubs are called: those of lines. */
#define HEMI_CHANNEL_APART (HEM_CHANNELS + 2)

struct hemi_lane;

typedef struct hemi_letter {
    struct hem_op op;
    struct hemi_letter *next; /**< in the queue of its lane */
    struct hemi_lane *lane;
    unsigned char *data; /**< is only read where it is sent */
    size_t room;         /**< bytes to send, or the room to receive */
    size_t moved;        /**< of the message, so far */
    uint32_t peer;
    uint32_t channel;
    uint32_t tag; /**< of the library's own messages: see HEMI_SLOT_TAG */
    bool sends;
    hem_status ending; /**< how it will end once the peer has let go of its buffer */
} hemi_letter;

/**
 * Fill in a letter that is part of something else (not a handle of the caller). Arguments must be
 * good. Does not talk to anybody. The letter may be begun again whenever it is done.
 */
void hemi_letter_init(hemi_letter *letter, hem_world *world, bool sends, uint32_t peer,
                      uint32_t channel, void *data, size_t bytes);

/** hemi_op_begin(&letter->op): under the engine's lock, does not block. */

/** Find or make the lane of (peer, channel), so that beginning a letter allocates nothing. Under the
 *  lock. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_lane_ready(hem_world *world, uint32_t peer, uint32_t channel);

#endif
