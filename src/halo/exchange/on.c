/*
 * Exchanges on streams.
 *
 * A start on a stream puts an item there that begins the run; a finish puts one there that lets it
 * write halos and waits for its end. Items carry the number of the run as the caller counts; what a
 * run is waits in a queue of the exchange, since starts happen in order. The thread of the stream
 * waits in an item as any caller would, and makes progress meanwhile.
 */
#include "core/stream.h"
#include "halo/exchange/device.h"

#include <stdlib.h>

static hem_status check(const hem_exchange *x, const hem_stream *stream, const char *call) {
    if (x == NULL || stream == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the %s is NULL", call,
                         x == NULL ? "exchange" : "stream");
    if (x->op.world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this exchange was closed", call);
    return hemi_engine_check(x->world, call);
}

/* Make room for one more, rarely. Under the lock. */
static hem_status make_room(hemi_how_queue *queue) {
    if (queue->count < queue->room)
        return HEM_OK;
    size_t room = queue->room == 0 ? 8 : 2 * queue->room;
    hem_exchange_how *hows = malloc(room * sizeof *hows);
    if (hows == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_start_on: no memory for %zu runs", room);
    for (size_t i = 0, at = queue->first; i < queue->count; i++, at++)
        hows[i] = queue->hows[at < queue->room ? at : at - queue->room];
    free(queue->hows);
    *queue = (hemi_how_queue){hows, room, 0, queue->count};
    return HEM_OK;
}

static hem_exchange_how take_how(hemi_how_queue *queue) {
    hem_exchange_how how = queue->hows[queue->first];
    queue->first = (queue->first + 1) % queue->room;
    queue->count--;
    return how;
}

/* One more item is done. Under the lock. */
static void item_done(hem_exchange *x) {
    /* Pairs with the acquire in calls.c. */
    hemi_store64_release(&x->items_done, x->items_done + 1);
    hemi_wake(x->world->root, x->world->root->me);
}

typedef struct begun_wait {
    hem_exchange *x;
    uint64_t run;
} begun_wait;

static hem_status poll_begun(void *arg) {
    const begun_wait *w = arg;
    if (hemi_load64_acquire(&w->x->begun) >= w->run)
        return HEM_OK;
    hemi_engine_progress(w->x->world);
    return HEMI_AGAIN;
}

static hem_status keep_going(void *arg) {
    const begun_wait *w = arg;
    hemi_engine_inspect(w->x->world);
    return HEM_OK;
}

/* Wait until run `run` has begun: its start may be on another stream. */
static hem_status await_begun(hem_exchange *x, uint64_t run) {
    begun_wait w = {x, run};
    hemi_wait_for wait = {
        .poll = poll_begun,
        .doomed = keep_going,
        .arg = &w,
        .also_revoked = true,
        .note = {.call = HEMI_CALL_EXCHANGE, .peer = -1, .world = x->world->id},
    };
    return hemi_engine_wait_until(x->world, &wait, HEM_FOREVER);
}

/* The run before may have no finish of its own. */
static void finish_before(hem_exchange *x, uint64_t run) {
    hemi_engine_lock(x->world);
    hemi_exchange_allow(x, run);
    hemi_engine_unlock(x->world);
    hem_status status = hemi_exchange_await(x, run, false, HEM_FOREVER);
    (void)status; /* a run that failed has broken the exchange, and that is looked at next */
}

static hem_status begin_item(hem_status status, void *arg, uint64_t run) {
    hem_exchange *x = arg;
    hem_world *world = x->world;
    if (run > 1)
        finish_before(x, run - 1);
    hemi_engine_lock(world);
    hem_exchange_how how = take_how(&x->queue);
    /* What depends on work that failed must not happen, and the neighbours must not wait for it. */
    if (status != HEM_OK && !x->broken)
        hemi_exchange_break(x, hemi_fail(HEM_ERR_REVOKED,
                                         "hem_exchange_start_on: the stream of run "
                                         "%llu had failed before",
                                         (unsigned long long)run));
    if (x->broken) {
        status = hemi_exchange_fail_broken(x, "hem_exchange_start_on");
        hemi_store64_release(&x->begun, x->begun + 1);
        hemi_store64_release(&x->ended, x->begun);
        if (!hemi_op_is_done(&x->op)) /* it has never run */
            hemi_op_complete(&x->op, status);
    } else {
        hemi_exchange_begin(x, &how);
    }
    item_done(x);
    hemi_engine_unlock(world);
    hemi_engine_settle(world);
    return status;
}

static hem_status finish_item(hem_status status, void *arg, uint64_t run) {
    hem_exchange *x = arg;
    hem_world *world = x->world;
    hem_status ended = await_begun(x, run);
    if (ended == HEM_OK) {
        hemi_engine_lock(world);
        hemi_exchange_allow(x, run);
        hemi_engine_unlock(world);
        ended = hemi_exchange_await(x, run, false, HEM_FOREVER);
    }
    hemi_engine_lock(world);
    item_done(x);
    hemi_engine_unlock(world);
    return status != HEM_OK ? status : ended;
}

/* Put an item on the stream. Under the lock, so that the order of items is that of the streams. */
static hem_status push(hem_exchange *x, hem_stream *stream, hemi_stream_work work, uint64_t run) {
    uint64_t position = 0;
    hem_status status = hemi_stream_push(stream, work, x, run, &position);
    if (status != HEM_OK)
        return status;
    hemi_store64_relaxed(&x->items, x->items + 1);
    x->last_stream = hemi_stream_id(stream);
    x->last_position = position;
    return HEM_OK;
}

/* Whether what is put on the stream now comes after all that was asked of this exchange before. */
static bool is_ordered(hem_exchange *x, hem_stream *stream) {
    if (hemi_halo_device_is_busy(x))
        return false; /* on a stream of the device, of which host streams know nothing */
    if (x->asked == x->ended && x->items == x->items_done)
        return true;
    return x->last_stream != 0 && hemi_stream_follows(stream, x->last_stream, x->last_position);
}

/* A stream of a device takes kernels, and so exchanges that are made of them. */
static hem_status check_device(const hem_exchange *x, const hem_stream *stream, const char *call) {
    if (hemi_stream_world(stream) == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of the stream was closed", call);
    if (x->device == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: this exchange has no field in device memory on any rank: use a "
                         "stream of the host",
                         call);
    if (hemi_halo_device_is_broken((hem_exchange *)(uintptr_t)x))
        return hemi_exchange_fail_broken(x, call);
    return HEM_OK;
}

static hem_status start_on_device(hem_exchange *x, const hem_exchange_how *how,
                                  const hem_stream *stream, void *native) {
    hemi_engine_lock(x->world);
    hem_status status = check_device(x, stream, "hem_exchange_start_on");
    if (status == HEM_OK && (x->asked != x->ended || x->items != x->items_done))
        status = hemi_fail(HEM_ERR_ARG,
                           "hem_exchange_start_on: run %llu, which the host or a stream of the "
                           "host has started, is under way",
                           (unsigned long long)x->asked);
    if (status == HEM_OK)
        status = hemi_halo_device_start_on(x, how, native);
    hemi_engine_unlock(x->world);
    return status;
}

static hem_status finish_on_device(hem_exchange *x, const hem_stream *stream, void *native) {
    hemi_engine_lock(x->world);
    hem_status status = check_device(x, stream, "hem_exchange_finish_on");
    if (status == HEM_OK)
        status = hemi_halo_device_finish_on(x, native);
    hemi_engine_unlock(x->world);
    return status;
}

hem_status hem_exchange_start_on(hem_exchange *x, const hem_exchange_how *given,
                                 hem_stream *stream) {
    hem_exchange_how how;
    bool is_device = false;
    hem_status status = check(x, stream, "hem_exchange_start_on");
    if (status == HEM_OK)
        status = hemi_exchange_read_how(x, given, "hem_exchange_start_on", &how);
    if (status != HEM_OK)
        return status;
    void *native = hemi_stream_native(stream, &is_device);
    if (is_device)
        return start_on_device(x, &how, stream, native);
    hemi_engine_lock(x->world);
    if (x->broken)
        status = hemi_exchange_fail_broken(x, "hem_exchange_start_on");
    else if (!is_ordered(x, stream))
        status = hemi_fail(HEM_ERR_ARG,
                           "hem_exchange_start_on: run %llu is under way on another stream, which "
                           "this one does not wait for",
                           (unsigned long long)x->asked);
    if (status == HEM_OK)
        status = make_room(&x->queue);
    if (status == HEM_OK)
        status = push(x, stream, begin_item, x->asked + 1);
    if (status == HEM_OK) {
        x->queue.hows[(x->queue.first + x->queue.count++) % x->queue.room] = how;
        x->asked++;
    }
    hemi_engine_unlock(x->world);
    return status;
}

hem_status hem_exchange_finish_on(hem_exchange *x, hem_stream *stream) {
    bool is_device = false;
    hem_status status = check(x, stream, "hem_exchange_finish_on");
    if (status != HEM_OK)
        return status;
    void *native = hemi_stream_native(stream, &is_device);
    if (is_device)
        return finish_on_device(x, stream, native);
    hemi_engine_lock(x->world);
    if (x->asked == 0)
        status = hemi_fail(HEM_ERR_ARG, "hem_exchange_finish_on: nothing was started");
    else
        status = push(x, stream, finish_item, x->asked);
    hemi_engine_unlock(x->world);
    return status;
}
