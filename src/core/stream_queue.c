#include "core/stream_queue.h"

#include "base/lock.h"

#include <stdlib.h>

#define NOBODY UINT64_MAX

hem_status hemi_queue_init(hem_stream *stream) {
    hemi_stream_piece *piece = malloc(sizeof *piece);
    if (piece == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a stream");
    piece->next = piece;
    piece->last = 0;
    stream->into = piece;
    stream->from = piece;
    stream->wanted = NOBODY;
    return HEM_OK;
}

void hemi_queue_free(hem_stream *stream) {
    hemi_stream_piece *first = stream->into;
    if (first == NULL)
        return;
    hemi_stream_piece *piece = first->next;
    while (piece != first) {
        hemi_stream_piece *next = piece->next;
        free(piece);
        piece = next;
    }
    free(first);
}

/* The piece after the full one, or a new one in between. */
static hem_status next_piece(hem_stream *stream, const char *call) {
    hemi_stream_piece *full = stream->into;
    hemi_stream_piece *next = full->next;
    /* Not as soon as its last item is done: the thread may still have to go on from there. */
    if (next == full || !hemi_queue_is_done(stream, next->last + 1)) {
        next = malloc(sizeof *next);
        if (next == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "%s: no memory for more items on a stream", call);
        next->next = full->next;
        full->next = next;
    }
    full->last = stream->tail;
    stream->into = next;
    stream->filled = 0;
    return HEM_OK;
}

hem_status hemi_queue_room(hem_stream *stream, const char *call) {
    if (__builtin_expect(stream->order != HEMI_STREAM_RUN, 0))
        return hemi_fail(HEM_ERR_CLOSED, "%s: the stream is being closed", call);
    if (__builtin_expect(stream->filled == HEMI_STREAM_ITEMS, 0))
        return next_piece(stream, call);
    return HEM_OK;
}

/* After `tail` or `order` was stored. */
static void wake_thread(hem_stream *stream) {
    hemi_fence_seq_cst();
    if (__builtin_expect(hemi_load32_relaxed(&stream->asleep) == 0, 1))
        return;
    uint32_t sleeping = 1;
    if (hemi_cas32_acq_rel(&stream->asleep, &sleeping, 0))
        stream->platform->wake(stream->platform->ctx, &stream->asleep);
}

void hemi_queue_put(hem_stream *stream, hemi_stream_work work, void *arg, uint64_t number) {
    hemi_stream_item *item = &stream->into->items[stream->filled++];
    *item = (hemi_stream_item){.work = work, .arg = arg, .number = number};
    /* Pairs with the acquire in has_work. */
    hemi_store64_release(&stream->tail, stream->tail + 1);
    wake_thread(stream);
}

void hemi_queue_order(hem_stream *stream, uint32_t order) {
    hemi_lock(stream->platform, &stream->lock);
    if (order > stream->order) {
        /* Pairs with the acquires in has_work and hemi_queue_take. */
        hemi_store32_release(&stream->order, order);
        wake_thread(stream);
    }
    hemi_unlock(&stream->lock);
}

static bool has_work(const hem_stream *stream) {
    /* Pairs with the release in hemi_queue_put. */
    return hemi_load64_acquire(&stream->tail) != stream->done ||
           hemi_load32_acquire(&stream->order) != HEMI_STREAM_RUN;
}

static bool spin_for_work(const hem_stream *stream) {
    for (uint32_t i = stream->spin; i > 0; i--) {
        if (has_work(stream))
            return true;
        hemi_pause();
    }
    const hemi_platform *platform = stream->platform;
    uint64_t end = platform->now(platform->ctx) + stream->yield_ns;
    do {
        if (has_work(stream))
            return true;
        platform->yield(platform->ctx);
    } while (platform->now(platform->ctx) < end);
    return has_work(stream);
}

static void sleep_for_work(hem_stream *stream) {
    const hemi_platform *platform = stream->platform;
    do {
        hemi_store32_relaxed(&stream->asleep, 1);
        hemi_fence_seq_cst();
        if (!has_work(stream))
            platform->park(platform->ctx, &stream->asleep, 1, -1);
    } while (!has_work(stream));
    hemi_store32_relaxed(&stream->asleep, 0);
}

bool hemi_queue_take(hem_stream *stream, hemi_stream_item *item_p) {
    if (!has_work(stream) && !spin_for_work(stream))
        sleep_for_work(stream);
    if (hemi_load64_acquire(&stream->tail) == stream->done &&
        hemi_load32_acquire(&stream->order) != HEMI_STREAM_RUN &&
        /* Once more: something may have been put on it just before the order. */
        hemi_load64_acquire(&stream->tail) == stream->done)
        return false;
    if (stream->taken == HEMI_STREAM_ITEMS) {
        stream->from = stream->from->next;
        stream->taken = 0;
    }
    *item_p = stream->from->items[stream->taken++];
    return true;
}

/* Those who sleep until a place that is done now; and with them all others, who look and go back. A
 * wish that comes in between and is lost is lower than one that was fulfilled: it is so, too. */
static void wake_waiters(hem_stream *stream) {
    hemi_store64_relaxed(&stream->wanted, NOBODY);
    /* Pairs with the acquire in sleep_for: the wish is gone by then. */
    hemi_add32_acq_rel(&stream->bell, 1);
    stream->platform->wake(stream->platform->ctx, &stream->bell);
}

void hemi_queue_finish(hem_stream *stream) {
    uint64_t position = stream->done + 1;
    /* Pairs with the acquire in hemi_queue_is_done. */
    hemi_store64_release(&stream->done, position);
    hemi_fence_seq_cst();
    if (__builtin_expect(hemi_load64_relaxed(&stream->wanted) <= position, 0))
        wake_waiters(stream);
}

static bool spin_for(const hem_stream *stream, uint64_t position) {
    for (uint32_t i = stream->spin; i > 0; i--) {
        if (hemi_queue_is_done(stream, position))
            return true;
        hemi_pause();
    }
    return hemi_queue_is_done(stream, position);
}

static bool yield_for(const hem_stream *stream, uint64_t position, uint64_t start,
                      uint64_t deadline) {
    const hemi_platform *platform = stream->platform;
    uint64_t end = start + stream->yield_ns < deadline ? start + stream->yield_ns : deadline;
    while (platform->now(platform->ctx) < end) {
        platform->yield(platform->ctx);
        if (hemi_queue_is_done(stream, position))
            return true;
    }
    return hemi_queue_is_done(stream, position);
}

static void want(hem_stream *stream, uint64_t position) {
    uint64_t wanted = hemi_load64_relaxed(&stream->wanted);
    while (wanted > position)
        if (hemi_cas64_acq_rel(&stream->wanted, &wanted, position))
            return;
}

static bool sleep_for(hem_stream *stream, uint64_t position, uint64_t deadline) {
    const hemi_platform *platform = stream->platform;
    for (;;) {
        uint32_t bell = hemi_load32_acquire(&stream->bell);
        want(stream, position);
        hemi_fence_seq_cst();
        if (hemi_queue_is_done(stream, position))
            return true;
        uint64_t now = platform->now(platform->ctx);
        if (now >= deadline)
            return false;
        platform->park(platform->ctx, &stream->bell, bell,
                       deadline == UINT64_MAX ? -1 : (int64_t)(deadline - now));
    }
}

bool hemi_queue_await(hem_stream *stream, uint64_t position, int64_t timeout_ns, hemi_root *root,
                      const hemi_flight_note *note) {
    if (spin_for(stream, position))
        return true;
    uint64_t start = stream->platform->now(stream->platform->ctx);
    uint64_t deadline = timeout_ns < 0 ? UINT64_MAX : start + (uint64_t)timeout_ns;
    if (yield_for(stream, position, start, deadline))
        return true;
    hemi_flight *flight = NULL;
    if (note != NULL)
        flight = hemi_flight_enter(&root->arena, root->rank, note, start);
    bool done = sleep_for(stream, position, deadline);
    hemi_flight_leave(flight);
    return done;
}
