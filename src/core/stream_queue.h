/*
 * Inside of a host stream.
 *
 * How this works. A stream is a queue in pieces that form a ring. Those who put something on it hold
 * `lock`; the stream's thread takes from it without. The places of a stream are numbered 1, 2, 3 ...
 * A piece is filled again when something behind it is done, so that the thread has left it; if the
 * next piece is not free yet, a new one is put in before it. The ring only grows. Who writes what:
 *
 *   tail      the last place that was filled: by who holds `lock`, released after the item
 *   order     whether the thread is to end: by who holds `lock`
 *   done      the last place that is done: by the thread, released after the work
 *   asleep    1 by the thread that goes to sleep; 0 by it, or by whoever wakes it
 *   wanted    lowered by those who go to sleep until a place is done; raised by the thread
 *   bell      counted up by the thread
 *
 * Why the thread misses no wake-up. It stores 1 into `asleep`, fences, looks at `tail` and `order`
 * once more, and parks while `asleep` is 1. Who stores `tail` or `order` fences and then looks at
 * `asleep`. One of the two sees the other's store. If that is the thread, it goes on. If not, the
 * other one changes `asleep` from 1 to 0 and wakes it; a thread that has not parked yet does not park
 * then. Only who changes it wakes, so that a burst costs one system call.
 *
 * Why those who wait for a place P miss none. They read `bell`, lower `wanted` to P if it is higher,
 * fence, look at `done` once more, and park while `bell` is what it was. The thread stores `done`,
 * fences, and looks at `wanted`. Either the waiter sees that P is done, or the thread sees a number
 * that is at most P. When `done` has come to it, the thread first puts `wanted` back to "nobody",
 * then counts `bell` up, then wakes all. Whoever read the bell before that does not stay parked and
 * starts over; whoever reads it after finds the wishes gone and says its own anew. So places that
 * nobody sleeps for cost no call. models/stream.pml checks all of this.
 *
 * What comes after what is known from clocks: pairs of a stream and a place of it that lies before
 * all that comes now. A stream's clock takes in an event's when it is told to wait for it; an event's
 * is that of its stream and the place where it was recorded.
 *
 * Locks are taken in this order: an event's, a stream's, the root's `streams_lock`.
 */
#ifndef HEMI_CORE_STREAM_QUEUE_H
#define HEMI_CORE_STREAM_QUEUE_H

#include "core/flight.h"
#include "core/stream.h"

#include <pthread.h>

#define HEMI_STREAM_ITEMS 127

typedef struct hemi_stream_item {
    hemi_stream_work work;
    void *arg;
    uint64_t number;
} hemi_stream_item;

typedef struct hemi_stream_piece {
    struct hemi_stream_piece *next;
    uint64_t last; /**< the place of its last item; set when it was filled */
    hemi_stream_item items[HEMI_STREAM_ITEMS];
} hemi_stream_piece;

typedef struct hemi_clock_entry {
    uint64_t id;
    uint64_t position;
} hemi_clock_entry;

typedef struct hemi_clock {
    hemi_clock_entry *entries;
    uint32_t count;
    uint32_t room;
} hemi_clock;

enum hemi_stream_order {
    HEMI_STREAM_RUN = 0,
    HEMI_STREAM_DRAIN,  /**< take nothing more, end when nothing is left */
    HEMI_STREAM_ABANDON /**< the same, but call no more functions of the caller's */
};

struct hem_stream {
    hemi_child child;
    hem_world *world; /**< NULL once it is closed */
    hemi_root *root;  /**< valid as long as `world` */
    const hemi_platform *platform;
    hem_stream *next; /**< in root->streams */
    bool foreign;     /**< a stream of a device: no thread, no queue, not in root->streams */
    void *native;     /**< what the device calls it */
    uint64_t id;
    pthread_t thread;
    uint32_t refs;   /**< the handle, events, items that wait for this stream; atomic */
    uint32_t joined; /**< the thread is no more; atomic */
    uint32_t ended;  /**< it is about to be no more; released by it */
    uint32_t spin;   /**< polls before a wait yields */
    uint64_t yield_ns;
    uint64_t seen;    /**< a place that somebody was told to be done; atomic, only grows */
    hemi_clock clock; /**< under `lock` */
    uint32_t kept;    /**< a hem_status; read without `lock` to see whether there is one */
    char sentence[HEMI_ERROR_MAX]; /**< behind `kept`; under `lock` */

    /* Those who put something on it. */
    uint32_t lock __attribute__((aligned(HEMI_LINE)));
    uint32_t filled; /**< items in `into` */
    hemi_stream_piece *into;
    uint64_t tail __attribute__((aligned(HEMI_LINE)));
    uint32_t order;
    uint32_t asleep __attribute__((aligned(HEMI_LINE)));

    /* The thread, and those who wait for it. */
    uint64_t done __attribute__((aligned(HEMI_LINE)));
    hemi_stream_piece *from;
    uint32_t taken; /**< items of `from` */
    uint64_t wanted __attribute__((aligned(HEMI_LINE)));
    uint32_t bell;
};

/** Set up an empty queue. */
hem_status hemi_queue_init(hem_stream *stream);
void hemi_queue_free(hem_stream *stream);

/** Make room for one more item. Under the lock. @return HEM_OK, HEM_ERR_CLOSED, HEM_ERR_MEMORY. */
hem_status hemi_queue_room(hem_stream *stream, const char *call);

/** Put an item where there is room, and wake the thread if it sleeps. Under the lock. */
void hemi_queue_put(hem_stream *stream, hemi_stream_work work, void *arg, uint64_t number);

/** Tell the thread to end. An order replaces a lesser one. */
void hemi_queue_order(hem_stream *stream, uint32_t order);

/** Wait for the next item. False if the thread is to end. Only the thread. */
bool hemi_queue_take(hem_stream *stream, hemi_stream_item *item_p);

/** What was taken is done. Only the thread. */
void hemi_queue_finish(hem_stream *stream);

/** Whether place `position` is done. What was done there is visible then. */
static inline bool hemi_queue_is_done(const hem_stream *stream, uint64_t position) {
    /* Pairs with the release in hemi_queue_finish. */
    return hemi_load64_acquire(&stream->done) >= position;
}

/**
 * Wait until place `position` is done: spin, yield, sleep. With a `note`, the flight record of
 * `root` says so while this sleeps. @return false if it was not done in time.
 */
bool hemi_queue_await(hem_stream *stream, uint64_t position, int64_t timeout_ns, hemi_root *root,
                      const hemi_flight_note *note);

/** Give one reference back; with the last one the stream is freed. */
void hemi_stream_drop(hem_stream *stream);

/** An item that waits for place `number` of the stream `arg` and then drops its reference to it. */
hem_status hemi_stream_await_item(hem_status status, void *arg, uint64_t number);

/** It is a host stream, and its world is there. */
hem_status hemi_stream_check(const hem_stream *stream, const char *call);

/** Somebody was told that all up to `position` is done, and so that all that came before is. */
void hemi_stream_saw(hem_stream *stream, uint64_t position);

/** The same for every pair of a clock. */
void hemi_clock_saw(hemi_root *root, const hemi_clock *clock);

/** Whether there is a pair for `id` with at least `position`. */
bool hemi_clock_has(const hemi_clock *clock, uint64_t id, uint64_t position);

/** Raise the place of `id` in a clock that has room for it. */
void hemi_clock_raise(hemi_clock *clock, uint64_t id, uint64_t position);

/** Make `to` equal to `from` and one pair more. On failure `to` is as before. */
hem_status hemi_clock_copy(hemi_clock *to, const hemi_clock *from, uint64_t id, uint64_t position);

/** Raise all that is in `from`. On failure `to` is as before. Forgets what everybody knows. */
hem_status hemi_clock_merge(hemi_root *root, hemi_clock *to, const hemi_clock *from);

#endif
