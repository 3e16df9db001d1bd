/* Streams: a queue and a thread that works it off. */
#include "device/standin/inside.h"

#include <stdlib.h>

/* Taken when streams come and go and when a capture ends, not when work is put on them. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static hemi_standin_stream *all;
static hemi_standin_stream *default_stream;

static hemi_standin_item *take(hemi_standin_stream *stream) {
    while (stream->first == NULL && !stream->closing)
        hemi_standin_bell_await(&stream->changed, &stream->lock);
    hemi_standin_item *item = stream->first;
    if (item == NULL)
        return NULL;
    stream->first = item->next;
    if (stream->first == NULL)
        stream->last = &stream->first;
    return item;
}

static void *stream_main(void *arg) {
    hemi_standin_stream *stream = arg;
    hemi_standin_item *item;

    hemi_standin_warp_enter();
    pthread_mutex_lock(&stream->lock);
    while ((item = take(stream)) != NULL) {
        bool skip = stream->broken != HEM_OK;
        pthread_mutex_unlock(&stream->lock);
        hem_status status = skip ? HEM_OK : item->run(item, &stream->crew);
        hemi_standin_item_free(item);
        hemi_standin_item_goes();
        pthread_mutex_lock(&stream->lock);
        if (status != HEM_OK)
            stream->broken = status;
        stream->done++;
        hemi_standin_bell_ring(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    hemi_standin_warp_leave();
    hemi_standin_crew_end(&stream->crew);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
    return NULL;
}

static bool start(hemi_standin_stream *stream) {
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attr, stream_main, stream);
    pthread_attr_destroy(&attr);
    return error == 0;
}

/* Under all_lock. */
static hemi_standin_stream *make(void) {
    hemi_standin_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    pthread_mutex_init(&stream->lock, NULL);
    stream->last = &stream->first;
    hemi_standin_crew_init(&stream->crew);
    if (!start(stream)) {
        hemi_standin_crew_end(&stream->crew);
        pthread_mutex_destroy(&stream->lock);
        free(stream);
        return NULL;
    }
    stream->next = all;
    all = stream;
    return stream;
}

HEM_API hem_status hemi_standin_stream_create(hemi_standin_stream **stream_p) {
    pthread_mutex_lock(&all_lock);
    hemi_standin_stream *stream = make();
    pthread_mutex_unlock(&all_lock);
    if (stream == NULL)
        return HEM_ERR_MEMORY;
    *stream_p = stream;
    return HEM_OK;
}

HEM_API void hemi_standin_stream_destroy(hemi_standin_stream *stream) {
    if (stream == NULL)
        return;
    pthread_mutex_lock(&all_lock);
    hemi_standin_stream **at = &all;
    while (*at != NULL && *at != stream)
        at = &(*at)->next;
    if (*at != NULL)
        *at = stream->next;
    pthread_mutex_unlock(&all_lock);
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    hemi_standin_bell_ring(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

hemi_standin_stream *hemi_standin_stream_of(void *stream) {
    if (stream != NULL)
        return stream;
    pthread_mutex_lock(&all_lock);
    if (default_stream == NULL)
        default_stream = make();
    hemi_standin_stream *found = default_stream;
    pthread_mutex_unlock(&all_lock);
    return found;
}

bool hemi_standin_stream_known(const void *stream) {
    pthread_mutex_lock(&all_lock);
    const hemi_standin_stream *at = all;
    while (at != NULL && at != stream)
        at = at->next;
    pthread_mutex_unlock(&all_lock);
    return at != NULL;
}

HEM_API size_t hemi_standin_streams(void) {
    size_t count = 0;
    pthread_mutex_lock(&all_lock);
    for (const hemi_standin_stream *at = all; at != NULL; at = at->next)
        count++;
    pthread_mutex_unlock(&all_lock);
    return count;
}

hem_status hemi_standin_stream_put(const void *context, void *handle, hemi_standin_item *item) {
    hemi_standin_stream *stream = hemi_standin_stream_of(handle);
    if (stream == NULL || item == NULL) {
        hemi_standin_item_free(item);
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no memory for work on a stream");
    }
    hemi_standin_pass();
    pthread_mutex_lock(&stream->lock);
    if (stream->capture != NULL) {
        stream->loose = stream->capture->origin != stream;
        hemi_standin_graph_add(stream->capture, item);
    } else {
        *stream->last = item;
        stream->last = &item->next;
        stream->put++;
        hemi_standin_item_comes();
        hemi_standin_bell_ring(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return HEM_OK;
}

/* `after` is ordered behind `before`, which is captured. */
static hem_status follow_captured(const void *context, hemi_standin_stream *before,
                                  hemi_standin_graph *graph, hemi_standin_stream *after) {
    pthread_mutex_lock(&after->lock);
    bool other = after->capture != NULL && after->capture != graph;
    if (!other) {
        after->capture = graph;
        after->loose = graph->origin != after;
    }
    pthread_mutex_unlock(&after->lock);
    if (other)
        return hemi_standin_fail(context, HEM_ERR_UNSUPPORTED,
                                 "the streams are being captured into different graphs");
    pthread_mutex_lock(&before->lock);
    before->loose = false;
    pthread_mutex_unlock(&before->lock);
    return HEM_OK;
}

static hemi_standin_graph *capture_of(hemi_standin_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    hemi_standin_graph *graph = stream->capture;
    pthread_mutex_unlock(&stream->lock);
    return graph;
}

bool hemi_standin_stream_captures(void *handle) {
    hemi_standin_stream *stream = hemi_standin_stream_of(handle);
    return stream != NULL && capture_of(stream) != NULL;
}

hem_status hemi_standin_stream_follow(const void *context, void *first, void *second) {
    hemi_standin_stream *before = hemi_standin_stream_of(first);
    hemi_standin_stream *after = hemi_standin_stream_of(second);
    hemi_standin_item *mark, *wait;

    if (before == NULL || after == NULL)
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no memory for the default stream");
    if (before == after)
        return HEM_OK;
    hemi_standin_graph *graph = capture_of(before);
    if (graph != NULL)
        return follow_captured(context, before, graph, after);
    if (capture_of(after) != NULL)
        return hemi_standin_fail(context, HEM_ERR_UNSUPPORTED,
                                 "a stream that is captured cannot wait for one that is not");
    if (!hemi_standin_item_pair(&mark, &wait))
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no memory for an event");
    hem_status status = hemi_standin_stream_put(context, before, mark);
    if (status != HEM_OK) {
        hemi_standin_item_free(wait);
        return status;
    }
    return hemi_standin_stream_put(context, after, wait);
}

hem_status hemi_standin_stream_look(const void *context, void *handle) {
    hemi_standin_stream *stream = hemi_standin_stream_of(handle);
    if (stream == NULL)
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no memory for the default stream");
    pthread_mutex_lock(&stream->lock);
    bool captured = stream->capture != NULL;
    hem_status broken = stream->broken;
    bool done = stream->done == stream->put;
    pthread_mutex_unlock(&stream->lock);
    if (captured)
        return hemi_standin_fail(context, HEM_ERR_UNSUPPORTED,
                                 "a stream that is captured cannot be asked or waited for");
    if (broken != HEM_OK)
        return hemi_standin_fail(context, HEM_ERR_SYSTEM, "the stand-in had no threads left");
    return done ? HEM_OK : HEM_ERR_TIMEOUT;
}

HEM_API hem_status hemi_standin_stream_sync(hemi_standin_stream *handle) {
    hemi_standin_stream *stream = hemi_standin_stream_of(handle);
    hem_status status = hemi_standin_stream_look(NULL, stream);
    if (status != HEM_ERR_TIMEOUT)
        return status;
    pthread_mutex_lock(&stream->lock);
    uint64_t until = stream->put;
    while (stream->done < until)
        hemi_standin_bell_await(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    status = hemi_standin_stream_look(NULL, stream);
    return status == HEM_ERR_TIMEOUT ? HEM_OK : status;
}

bool hemi_standin_streams_leave(hemi_standin_graph *graph) {
    bool loose = false;
    pthread_mutex_lock(&all_lock);
    for (hemi_standin_stream *stream = all; stream != NULL; stream = stream->next) {
        pthread_mutex_lock(&stream->lock);
        if (stream->capture == graph) {
            loose |= stream->loose;
            stream->capture = NULL;
            stream->loose = false;
        }
        pthread_mutex_unlock(&stream->lock);
    }
    pthread_mutex_unlock(&all_lock);
    return loose;
}
