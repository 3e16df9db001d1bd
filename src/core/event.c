/*
 * An event is a value: a stream and a place of it. Recording writes the value, waiting copies it, so
 * that those who wait already do not notice when it is recorded again or destroyed.
 */
#include "core/stream_queue.h"

#include "base/lock.h"

#include <stdlib.h>

struct hem_event {
    hemi_child child;
    hem_world *world; /* NULL once it is closed */
    const hemi_platform *platform;
    uint32_t lock;      /* guards all that follows */
    hem_stream *stream; /* a reference; NULL: never recorded */
    uint64_t position;
    hemi_clock clock; /* what lies before it, the place itself included */
};

static hem_status check(const hem_event *event, const char *call) {
    if (event == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: event is NULL", call);
    if (event->world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the event's world was closed", call);
    return HEM_OK;
}

static hem_status check_both(const hem_event *event, const hem_stream *stream, const char *call) {
    hem_status status = check(event, call);
    if (status == HEM_OK)
        status = hemi_stream_check(stream, call);
    if (status == HEM_OK && event->world->root != stream->root)
        status =
            hemi_fail(HEM_ERR_ARG, "%s: the event and the stream are of different ranks", call);
    return status;
}

static void free_event(hem_event *event) {
    if (event->stream != NULL)
        hemi_stream_drop(event->stream);
    free(event->clock.entries);
    free(event);
}

static void orphan(hemi_child *child, bool dead) {
    hem_event *event = (hem_event *)(void *)child;
    event->world = NULL;
    if (dead)
        free_event(event);
}

hem_status hem_event_create(hem_world *world, hem_event **event_p) {
    if (world == NULL || event_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_event_create: world or event_p is NULL");
    hem_event *event = calloc(1, sizeof *event);
    if (event == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_event_create: no memory for an event");
    event->world = world;
    event->platform = world->root->platform;
    event->child.orphan = orphan;
    hemi_world_adopt(world, &event->child);
    *event_p = event;
    return HEM_OK;
}

hem_status hem_event_destroy(hem_event *event) {
    if (event == NULL)
        return HEM_OK;
    if (event->world != NULL)
        hemi_world_abandon(event->world, &event->child);
    free_event(event);
    return HEM_OK;
}

hem_status hem_event_record(hem_event *event, hem_stream *stream) {
    hem_status status = check_both(event, stream, "hem_event_record");
    if (status != HEM_OK)
        return status;
    hem_stream *old = NULL;
    hemi_lock(event->platform, &event->lock);
    hemi_lock(stream->platform, &stream->lock);
    uint64_t position = stream->tail;
    if (stream->order != HEMI_STREAM_RUN)
        status = hemi_fail(HEM_ERR_CLOSED, "hem_event_record: the stream is being closed");
    else
        status = hemi_clock_copy(&event->clock, &stream->clock, stream->id, position);
    hemi_unlock(&stream->lock);
    if (status == HEM_OK) {
        event->position = position;
        if (event->stream != stream) {
            old = event->stream;
            hemi_add32_relaxed(&stream->refs, 1);
            event->stream = stream;
        }
    }
    hemi_unlock(&event->lock);
    if (old != NULL)
        hemi_stream_drop(old);
    return status;
}

/* Under both locks. Nothing is half done on failure. */
static hem_status make_wait(hem_stream *stream, const hem_event *event) {
    hem_status status = hemi_queue_room(stream, "hem_stream_wait");
    if (status == HEM_OK)
        status = hemi_clock_merge(stream->root, &stream->clock, &event->clock);
    if (status != HEM_OK || hemi_queue_is_done(event->stream, event->position))
        return status;
    hemi_add32_relaxed(&event->stream->refs, 1);
    hemi_queue_put(stream, hemi_stream_await_item, event->stream, event->position);
    return HEM_OK;
}

hem_status hem_stream_wait(hem_stream *stream, hem_event *event) {
    hem_status status = check_both(event, stream, "hem_stream_wait");
    if (status != HEM_OK)
        return status;
    hemi_lock(event->platform, &event->lock);
    if (event->stream != NULL && event->stream != stream) {
        hemi_lock(stream->platform, &stream->lock);
        status = make_wait(stream, event);
        hemi_unlock(&stream->lock);
    }
    hemi_unlock(&event->lock);
    return status;
}

/* The value, with one more reference to the stream; or NULL if there is nothing to wait for. */
static hem_stream *read_value(hem_event *event, uint64_t *position_p) {
    hemi_lock(event->platform, &event->lock);
    hem_stream *stream = event->stream;
    *position_p = event->position;
    if (stream != NULL)
        hemi_add32_relaxed(&stream->refs, 1);
    hemi_unlock(&event->lock);
    return stream;
}

/* Somebody is told that the event is done, and so that all before it is. */
static void saw(hem_event *event) {
    hemi_lock(event->platform, &event->lock);
    hemi_clock_saw(event->world->root, &event->clock);
    hemi_unlock(&event->lock);
}

hem_status hem_event_test(hem_event *event, bool *done_p) {
    hem_status status = check(event, "hem_event_test");
    if (status != HEM_OK)
        return status;
    if (done_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_event_test: done_p is NULL");
    hemi_lock(event->platform, &event->lock);
    *done_p = event->stream == NULL || hemi_queue_is_done(event->stream, event->position);
    if (*done_p)
        hemi_clock_saw(event->world->root, &event->clock);
    hemi_unlock(&event->lock);
    return HEM_OK;
}

static hem_status await(const hem_event *event, hem_stream *stream, uint64_t position,
                        int64_t timeout_ns) {
    /* On its own thread, what is not done is what runs now or comes after it. */
    if (hemi_stream_is_inside(stream) && !hemi_queue_is_done(stream, position))
        return hemi_fail(HEM_ERR_ARG, "hem_event_sync: called from a function on the same stream");
    hemi_root *root = event->world->root;
    hemi_flight_note note = {.call = HEMI_CALL_EVENT_SYNC,
                             .peer = (int32_t)root->rank,
                             .world = event->world->id,
                             .wanted = position};
    if (hemi_queue_await(stream, position, timeout_ns, root, &note))
        return HEM_OK;
    return hemi_fail(HEM_ERR_TIMEOUT, "hem_event_sync: the event was not done in time");
}

hem_status hem_event_sync(hem_event *event, int64_t timeout_ns) {
    hem_status status = check(event, "hem_event_sync");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_event_sync");
    if (status != HEM_OK)
        return status;
    uint64_t position = 0;
    hem_stream *stream = read_value(event, &position);
    if (stream == NULL)
        return HEM_OK;
    status = await(event, stream, position, timeout_ns);
    if (status == HEM_OK)
        saw(event);
    hemi_stream_drop(stream);
    return status;
}
