/*
 * Host streams, as other rooms use them: how library work is put on them and ordered.
 */
#ifndef HEMI_CORE_STREAM_H
#define HEMI_CORE_STREAM_H

#include "core/world.h"

#include <hem/stream.h>

/**
 * Work of the library. Called by the stream's thread, which may wait in it. `status` is what the
 * stream has kept so far; what it returns is kept if that was HEM_OK, with the thread's last error
 * sentence.
 */
typedef hem_status (*hemi_stream_work)(hem_status status, void *arg, uint64_t number);

/**
 * Put work on the stream. Does not block, and does not allocate unless the queue grows. `number` is
 * passed on. `position_p` (may be NULL) gets its place in the stream: 1, 2, 3 ...
 *
 * @return as hem_stream_call.
 */
hem_status hemi_stream_push(hem_stream *stream, hemi_stream_work work, void *arg, uint64_t number,
                            uint64_t *position_p);

/**
 * Make a handle on a stream of a device, which the handle does not own. The calls of host streams
 * refuse it with HEM_ERR_UNSUPPORTED; who can use it asks hemi_stream_native first.
 * @return HEM_OK, HEM_ERR_MEMORY.
 */
hem_status hemi_stream_wrap(hem_world *world, void *native, hem_stream **stream_p);

/** What the device calls the stream, which may well be NULL. `*is_device_p`: whether it is one of a
 *  device; else it is a host stream, and NULL is returned. */
void *hemi_stream_native(const hem_stream *stream, bool *is_device_p);

/** A number for each stream of a rank, never used again; not 0. */
uint64_t hemi_stream_id(const hem_stream *stream);

/** Whether what is put on `stream` from now on comes after position `position` of stream `id`: it is
 *  the same stream, or has waited for events that say so, directly or through others, or that place
 *  was known to be done when an event was seen done. */
bool hemi_stream_follows(hem_stream *stream, uint64_t id, uint64_t position);

/** The world that the stream belongs to, or NULL after it was closed. */
hem_world *hemi_stream_world(const hem_stream *stream);

/** Whether the calling thread is the thread of this stream. */
bool hemi_stream_is_inside(const hem_stream *stream);

/**
 * The world is about to close: let its streams do all that is on them, and end their threads. What is
 * put on one after that is HEM_ERR_CLOSED. @return HEM_OK, HEM_ERR_ARG from a function on a stream.
 */
hem_status hemi_streams_close(hem_world *world);

/**
 * The rank has ended without closing: no more functions of the caller's are called, and work of the
 * library gets what the stream has kept, or else HEM_ERR_CLOSED. Waits a little for what runs just
 * now. If that waits for peers, then they end it once they hear that this rank is dead.
 */
void hemi_streams_abandon(hemi_root *root);

/** End the threads of all streams of the rank. Before anything else of its worlds is freed. */
void hemi_streams_join(hemi_root *root);

#endif
