/*
 * Channels: two-sided messages between any two ranks of a world, from any memory that
 * the CPU reaches.
 *
 * Messages from one rank to another with the same channel id arrive in the order in which they were
 * sent, and are received in the order in which receives were started. Different ids do not disturb
 * each other. A receive names its sender; its buffer must be at least as long as the message.
 *
 * Messages of up to 40 bytes travel in one cache line. Longer ones go through staging in the
 * receiver's memory, or in one copy where either side's buffer is library memory (a window or
 * hem_memory_alloc) or the ranks are threads. Staging for a pair and id is made on first use, or by
 * hem_channel_prepare; HEM_CHANNEL_SLOTS and HEM_CHANNEL_BYTES in the environment say how much.
 *
 * A send is done when its buffer may be reused, which may be before anybody receives the message.
 * Every call ends with HEM_ERR_PEER when its peer is dead or has closed the world and can no longer
 * do its part, with HEM_ERR_REVOKED after hem_world_revoke. What a rank sent before it died and what
 * has been staged can still be received. All calls are safe from any thread.
 *
 * Device memory is HEM_ERR_UNSUPPORTED, once the rank's device is open (hem_device_open): for that there
 * are pipes (hem/cuda.h).
 */
#ifndef HEM_CHANNEL_H
#define HEM_CHANNEL_H

#include <hem/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Channel ids are 0 to HEM_CHANNELS - 1. */
#define HEM_CHANNELS 16

/**
 * Send `bytes` bytes to `peer`.
 *
 * Returns when `data` may be reused. After HEM_ERR_TIMEOUT the message is withdrawn: the receiver
 * gets HEM_ERR_REVOKED if it had begun to arrive, and nothing otherwise. Local.
 *
 * @return HEM_OK; HEM_ERR_RANGE for a bad rank or channel, or if the receiver's buffer turned out
 *         too small, naming both sizes; HEM_ERR_ARG, HEM_ERR_TIMEOUT, HEM_ERR_PEER,
 *         HEM_ERR_REVOKED, HEM_ERR_UNSUPPORTED for device memory, HEM_ERR_MEMORY on first use.
 */
HEM_API HEM_MUST_CHECK hem_status hem_send(hem_world *world, int peer, uint32_t channel,
                                           const void *data, size_t bytes, int64_t timeout_ns);

/**
 * Receive the next message of `peer` into `data` of `room` bytes; `bytes_p` (may be NULL) gets its
 * length.
 *
 * Returns when it is there. After HEM_ERR_TIMEOUT nothing more is written to `data`; a message that
 * had begun to arrive is lost. Local.
 *
 * @return HEM_OK; HEM_ERR_RANGE if the message does not fit, naming both sizes: it is then taken
 *         off the channel; otherwise as hem_send.
 */
HEM_API HEM_MUST_CHECK hem_status hem_recv(hem_world *world, int peer, uint32_t channel, void *data,
                                           size_t room, size_t *bytes_p, int64_t timeout_ns);

/** One half of hem_sendrecv. A negative peer means that there is no such half. */
typedef struct hem_message {
    int peer;
    void *data;   /**< is only read where it is sent */
    size_t bytes; /**< to send, or the room to receive; becomes the length that came */
} hem_message;

/**
 * Send one message and receive another at the same time; the peers may differ, or be this rank.
 *
 * Rings and cycles of it cannot deadlock however little staging there is. Either half may be NULL.
 * Returns when both are done. Otherwise as hem_send and hem_recv.
 */
HEM_API HEM_MUST_CHECK hem_status hem_sendrecv(hem_world *world, uint32_t channel,
                                               const hem_message *send, hem_message *recv,
                                               int64_t timeout_ns);

/**
 * Start a send or a receive. Does not block.
 *
 * `data` must stay as it is until the operation is done; hem_op_bytes tells what a receive got.
 * Local. @return as hem_send and hem_recv, but for what is found out later; HEM_ERR_MEMORY.
 */
HEM_API HEM_MUST_CHECK hem_status hem_send_start(hem_world *world, int peer, uint32_t channel,
                                                 const void *data, size_t bytes, hem_op **op_p);
HEM_API HEM_MUST_CHECK hem_status hem_recv_start(hem_world *world, int peer, uint32_t channel,
                                                 void *data, size_t room, hem_op **op_p);

/**
 * Make a persistent send or receive, to be started with hem_op_start any number of times.
 *
 * Makes the staging, too. Local. @return as hem_send_start.
 */
HEM_API HEM_MUST_CHECK hem_status hem_send_plan(hem_world *world, int peer, uint32_t channel,
                                                const void *data, size_t bytes, hem_op **op_p);
HEM_API HEM_MUST_CHECK hem_status hem_recv_plan(hem_world *world, int peer, uint32_t channel,
                                                void *data, size_t room, hem_op **op_p);

/**
 * Make the staging to and from `peer` for one channel now, so that no later call on it can fail for
 * want of memory.
 *
 * Both ranks may call it or one alone. It waits until `peer` has used any channel or collective of
 * this world, or prepared one. Local.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_MEMORY, HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_channel_prepare(hem_world *world, int peer, uint32_t channel,
                                                      int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
