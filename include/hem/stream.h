/*
 * Streams: queues of work that is done in order.
 *
 * A host stream has a thread that does what was put on the stream, one thing after the other, while
 * the caller goes on. Nothing that puts work on a stream waits for other work. Work on different
 * streams is not ordered, unless one waits for an event that was recorded on the other. All calls
 * are safe from any thread.
 *
 * When something on a stream fails, such as an exchange whose peer died, the stream keeps the first
 * status and its sentence, functions that follow are told, exchanges that follow do nothing, and
 * hem_stream_sync returns it. Then the stream is good again.
 */
#ifndef HEM_STREAM_H
#define HEM_STREAM_H

#include <hem/world.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hem_stream hem_stream;
typedef struct hem_event hem_event;

/**
 * Make a host stream of this rank.
 *
 * Local. @return HEM_OK, HEM_ERR_ARG, HEM_ERR_MEMORY, HEM_ERR_SYSTEM if no thread could be made.
 */
HEM_API HEM_MUST_CHECK hem_status hem_stream_create(hem_world *world, hem_stream **stream_p);

/**
 * Wait until everything on the stream is done, then free it. NULL is allowed.
 *
 * hem_world_close does this with streams that are left; their handles stay valid for this call.
 * Local. Not from a function on a stream. @return HEM_OK, or what the stream had kept.
 */
HEM_API hem_status hem_stream_destroy(hem_stream *stream);

/** `status` is HEM_OK, or what failed earlier on the stream. */
typedef void (*hem_stream_fn)(hem_status status, void *arg);

/**
 * Have `fn` called after everything that is on the stream already.
 *
 * Does not block. It is called by the stream's thread, with no lock held; it may call Hem, put work
 * on streams and wait, but not for its own stream. Local.
 * @return HEM_OK, HEM_ERR_ARG, HEM_ERR_CLOSED, HEM_ERR_MEMORY if the queue could not grow.
 */
HEM_API HEM_MUST_CHECK hem_status hem_stream_call(hem_stream *stream, hem_stream_fn fn, void *arg);

/**
 * Wait until everything that was on the stream when this was called is done.
 *
 * Local. @return HEM_OK, or what failed on it since the last time; HEM_ERR_TIMEOUT, HEM_ERR_ARG,
 *         HEM_ERR_CLOSED.
 */
HEM_API HEM_MUST_CHECK hem_status hem_stream_sync(hem_stream *stream, int64_t timeout_ns);

/** Whether nothing is left on the stream. Does not block. Local. @return as hem_stream_call. */
HEM_API HEM_MUST_CHECK hem_status hem_stream_test(hem_stream *stream, bool *done_p);

/** Make an event. One that was never recorded counts as done. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_event_create(hem_world *world, hem_event **event_p);

/** Free an event. NULL is allowed. Streams that wait for it go on waiting. Local. */
HEM_API hem_status hem_event_destroy(hem_event *event);

/**
 * The event is done when everything that is on the stream now is done. Recorded again it forgets
 * the last time; those who wait already do not. Does not block. Local.
 * @return as hem_stream_call.
 */
HEM_API HEM_MUST_CHECK hem_status hem_event_record(hem_event *event, hem_stream *stream);

/** What is put on the stream from now on begins after the event is done. Does not block. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_stream_wait(hem_stream *stream, hem_event *event);

/** Whether the event is done, or wait until it is. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_event_test(hem_event *event, bool *done_p);
HEM_API HEM_MUST_CHECK hem_status hem_event_sync(hem_event *event, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
