/*
 * What the tests of channels share: buffers with guards at any alignment, contents in which every
 * eight bytes say where they belong, and loads that run with any size of staging.
 */
#ifndef HEM_TESTS_RANK_CHANNEL_KIT_H
#define HEM_TESTS_RANK_CHANNEL_KIT_H

#include "harness.h"

#include <hem/channel.h>

/** Guard bytes on each side of a buffer. */
#define CHAN_GUARD 64
/** The longest message that fits into a slot. */
#define CHAN_INLINE 40

/** Room for a message, somewhere in a block, between guards. */
typedef struct chan_buffer {
    uint8_t *block;
    size_t capacity;
    uint8_t *at;
    size_t bytes;
    uint8_t guard; /**< what its guards are made of: another for sending than for receiving */
} chan_buffer;

/** Private memory for messages of up to `capacity` bytes. Placed at shift 0 with no bytes. */
chan_buffer chan_make(size_t capacity);
void chan_free(chan_buffer *buffer);
/** Let it hold `bytes` bytes, `shift` bytes behind a multiple of 16, and write the guards. */
void chan_place(chan_buffer *buffer, size_t bytes, size_t shift);
/** The same, and write the contents that go with `tag`. */
void chan_load(chan_buffer *buffer, size_t bytes, size_t shift, uint64_t tag);

void chan_fill(void *at, size_t bytes, uint64_t tag);
void chan_check_bytes(const char *file, int line, const void *at, size_t bytes, uint64_t tag);
void chan_check_guards(const char *file, int line, const chan_buffer *buffer);

/** Bytes that chan_fill wrote with the same tag. */
#define CHECK_BYTES(at, bytes, tag) chan_check_bytes(__FILE__, __LINE__, (at), (bytes), (tag))
#define CHECK_GUARDS(buffer)        chan_check_guards(__FILE__, __LINE__, (buffer))
/** The contents that go with `tag`, and the guards. */
#define CHECK_LOAD(buffer, tag)                                                                    \
    (CHECK_BYTES((buffer)->at, (buffer)->bytes, (tag)), CHECK_GUARDS(buffer))
/** A free must succeed; it is not counted as a must-check call. */
#define FREE_OP(op) CHECK_OK(hem_op_free(op))

/** A number for the contents of message `number` on one channel. */
uint64_t chan_tag(int from, int to, uint32_t channel, uint64_t number);
/** A length as real programs and hostile ones would choose it, at most `most`. */
size_t chan_random_bytes(harness_rng *rng, size_t most);

/** Send and receive something small and something staged on `channel`, which must work. */
void chan_works(hem_world *world, int peer, uint32_t channel, uint64_t number);

/** The rank that this one plays with: its neighbour, or itself. */
int chan_partner(const hem_world *world);

/* Loads. */

/** Every length around a boundary up to `most`, at all alignments of both buffers; `quick`: in fewer
 *  pairs. */
void chan_sizes(hem_world *world, size_t most, bool quick);
/** `count` messages of random length without a pause, first one way, then the other. */
void chan_stream(hem_world *world, int count, size_t most);
/** The same both ways at once, with up to eight operations under way in each direction. */
void chan_crossing(hem_world *world, uint32_t channel, int count, size_t most);

/* Running with other settings. */

/** main of a test that sets something in the environment before its world is opened. */
int chan_main(int argc, char **argv, harness_body body);
/** Staging of `slots` slots and a ring of `bytes` for worlds opened from now on. */
void chan_geometry(const char *slots, const char *bytes);

#endif
