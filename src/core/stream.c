#include "core/stream_queue.h"

#include "base/lock.h"
#include "core/topology.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Where threads share cores, a waiting one lets go of its core as soon as in core/root.c. */
#define SPIN_SHARED 4
/* How long a rank that has ended without closing waits for its streams before it counts as dead. */
#define FAREWELL_NS 20000000
#define NAP_NS      20000

hem_status hemi_stream_check(const hem_stream *stream, const char *call) {
    if (__builtin_expect(stream == NULL, 0))
        return hemi_fail(HEM_ERR_ARG, "%s: stream is NULL", call);
    if (__builtin_expect(stream->world == NULL, 0))
        return hemi_fail(HEM_ERR_CLOSED, "%s: the stream's world was closed", call);
    if (__builtin_expect(stream->foreign, 0))
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: this is a CUDA stream, for which CUDA's own calls do that", call);
    return HEM_OK;
}

void *hemi_stream_native(const hem_stream *stream, bool *is_device_p) {
    *is_device_p = stream->foreign;
    return stream->native;
}

uint64_t hemi_stream_id(const hem_stream *stream) {
    return stream->id;
}

hem_world *hemi_stream_world(const hem_stream *stream) {
    return stream->world;
}

bool hemi_stream_is_inside(const hem_stream *stream) {
    return !stream->foreign && hemi_load32_acquire(&stream->joined) == 0 &&
           pthread_equal(stream->thread, pthread_self()) != 0;
}

void hemi_stream_drop(hem_stream *stream) {
    if (hemi_add32_acq_rel(&stream->refs, UINT32_MAX) != 1)
        return;
    hemi_queue_free(stream);
    free(stream->clock.entries);
    free(stream);
}

/* What a function of the caller's is inside of the queue: `number` is the function. */
static hem_status call_function(hem_status status, void *arg, uint64_t number) {
    hem_stream_fn fn = (hem_stream_fn)(uintptr_t)number;
    fn(status, arg);
    return HEM_OK;
}

hem_status hemi_stream_await_item(hem_status status, void *arg, uint64_t number) {
    hem_stream *other = arg;
    (void)status;
    hemi_queue_await(other, number, HEM_FOREVER, NULL, NULL);
    hemi_stream_drop(other);
    return HEM_OK;
}

/* The first bad status and its sentence stay until somebody is told. */
static void keep(hem_stream *stream, hem_status status) {
    hemi_lock(stream->platform, &stream->lock);
    if (stream->kept == HEM_OK) {
        hemi_error_save(stream->sentence);
        hemi_store32_relaxed(&stream->kept, (uint32_t)status);
    }
    hemi_unlock(&stream->lock);
}

/* What was kept, with its sentence for the calling thread. */
static hem_status look_at_kept(hem_stream *stream, bool clear) {
    if (__builtin_expect(hemi_load32_relaxed(&stream->kept) == HEM_OK, 1))
        return HEM_OK;
    hemi_lock(stream->platform, &stream->lock);
    hem_status status = (hem_status)stream->kept;
    if (status != HEM_OK)
        hemi_error_restore(stream->sentence);
    if (clear)
        hemi_store32_relaxed(&stream->kept, HEM_OK);
    hemi_unlock(&stream->lock);
    return status;
}

static void run(hem_stream *stream, const hemi_stream_item *item) {
    hem_status before = look_at_kept(stream, false);
    hem_status after = item->work(before, item->arg, item->number);
    if (__builtin_expect(after != HEM_OK && before == HEM_OK, 0))
        keep(stream, after);
}

/* The rank has ended: what its functions would touch may be gone. Work of the library is told, so
 * that it does nothing but give back what it holds. */
static void abandon(hem_stream *stream, const hemi_stream_item *item) {
    if (item->work == call_function)
        return;
    keep(stream, hemi_fail(HEM_ERR_CLOSED, "the rank ended with work left on a stream"));
    run(stream, item);
}

static void *work(void *arg) {
    hem_stream *stream = arg;
    hemi_stream_item item;
    while (hemi_queue_take(stream, &item)) {
        /* Pairs with the release in hemi_queue_order. */
        if (__builtin_expect(hemi_load32_acquire(&stream->order) == HEMI_STREAM_ABANDON, 0))
            abandon(stream, &item);
        else
            run(stream, &item);
        hemi_queue_finish(stream);
    }
    /* Pairs with the acquire in hemi_streams_abandon. */
    hemi_store32_release(&stream->ended, 1);
    return NULL;
}

static void join(hem_stream *stream) {
    hemi_queue_order(stream, HEMI_STREAM_DRAIN);
    if (hemi_load32_acquire(&stream->joined) != 0)
        return;
    pthread_join(stream->thread, NULL);
    hemi_store32_release(&stream->joined, 1);
}

/* Whoever is not in the list any more has nothing left to do: see hemi_stream_follows. */
static void unlist(hem_stream *stream) {
    hemi_root *root = stream->root;
    hemi_lock(root->platform, &root->streams_lock);
    hem_stream **link = &root->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    hemi_unlock(&root->streams_lock);
}

/* Nothing is on the stream any more. */
static void end(hem_stream *stream) {
    if (stream->foreign)
        return;
    join(stream);
    unlist(stream);
}

static void orphan(hemi_child *child, bool dead) {
    hem_stream *stream = (hem_stream *)(void *)child;
    end(stream); /* it was joined already, unless the stream was made in between */
    stream->world = NULL;
    stream->root = NULL;
    if (dead)
        hemi_stream_drop(stream);
}

static void enlist(hem_stream *stream) {
    hemi_root *root = stream->root;
    hemi_lock(root->platform, &root->streams_lock);
    stream->next = root->streams;
    root->streams = stream;
    hemi_unlock(&root->streams_lock);
}

/* A number, and how long to spin with as many threads as there are now. */
static void prepare(hem_stream *stream, hem_world *world) {
    hemi_root *root = world->root;
    uint64_t threads = 2;
    stream->world = world;
    stream->root = root;
    stream->platform = root->platform;
    hemi_lock(root->platform, &root->streams_lock);
    for (const hem_stream *s = root->streams; s != NULL; s = s->next)
        threads++;
    stream->id = root->streams_made + 1;
    hemi_store64_relaxed(&root->streams_made, stream->id);
    hemi_unlock(&root->streams_lock);
    stream->spin = root->spin;
    stream->yield_ns = root->yield_ns;
    if (threads * root->arena.ranks > hemi_topology_usable() && stream->spin > SPIN_SHARED)
        stream->spin = SPIN_SHARED;
}

/* Signals are for the program's own threads. */
static int start_thread(hem_stream *stream) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&stream->thread, NULL, work, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static hem_stream *allocate(void) {
    hem_stream *stream = NULL;
    if (posix_memalign((void **)(void *)&stream, HEMI_LINE, sizeof *stream) != 0)
        return NULL;
    memset(stream, 0, sizeof *stream);
    stream->refs = 1;
    return stream;
}

hem_status hemi_stream_wrap(hem_world *world, void *native, hem_stream **stream_p) {
    hem_stream *stream = allocate();
    if (stream == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a stream");
    prepare(stream, world);
    stream->foreign = true;
    stream->native = native;
    stream->child.orphan = orphan;
    hemi_world_adopt(world, &stream->child);
    *stream_p = stream;
    return HEM_OK;
}

hem_status hem_stream_create(hem_world *world, hem_stream **stream_p) {
    if (world == NULL || stream_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_stream_create: world or stream_p is NULL");
    hem_stream *stream = allocate();
    if (stream == NULL || hemi_queue_init(stream) != HEM_OK) {
        free(stream);
        return hemi_fail(HEM_ERR_MEMORY, "hem_stream_create: no memory for a stream");
    }
    prepare(stream, world);
    int error = start_thread(stream);
    if (error != 0) {
        hemi_stream_drop(stream);
        return hemi_fail_errno(error, "hem_stream_create: no thread could be made");
    }
    stream->child.orphan = orphan;
    enlist(stream);
    hemi_world_adopt(world, &stream->child);
    *stream_p = stream;
    return HEM_OK;
}

/* Most ranks never make one: then nothing is locked, which a rank that ends might leave so. */
static bool has_none(const hemi_root *root) {
    return hemi_load64_relaxed(&root->streams_made) == 0;
}

/* Whether the calling thread is that of a stream of this rank; of `world` only, unless NULL. */
static bool is_on_stream(hemi_root *root, const hem_world *world) {
    bool inside = false;
    if (has_none(root))
        return false;
    hemi_lock(root->platform, &root->streams_lock);
    for (const hem_stream *s = root->streams; s != NULL; s = s->next)
        if ((world == NULL || s->world == world) && hemi_stream_is_inside(s))
            inside = true;
    hemi_unlock(&root->streams_lock);
    return inside;
}

hem_status hem_stream_destroy(hem_stream *stream) {
    if (stream == NULL)
        return HEM_OK;
    if (stream->world != NULL) {
        if (!stream->foreign && is_on_stream(stream->root, NULL))
            return hemi_fail(HEM_ERR_ARG, "hem_stream_destroy: called from a function on a stream");
        end(stream);
        hemi_world_abandon(stream->world, &stream->child);
        stream->world = NULL;
    }
    hem_status status = look_at_kept(stream, true);
    hemi_stream_drop(stream);
    return status;
}

hem_status hemi_stream_push(hem_stream *stream, hemi_stream_work work_fn, void *arg,
                            uint64_t number, uint64_t *position_p) {
    hem_status status = hemi_stream_check(stream, "hemi_stream_push");
    if (status != HEM_OK)
        return status;
    hemi_lock(stream->platform, &stream->lock);
    status = hemi_queue_room(stream, "hemi_stream_push");
    if (status == HEM_OK) {
        hemi_queue_put(stream, work_fn, arg, number);
        if (position_p != NULL)
            *position_p = stream->tail;
    }
    hemi_unlock(&stream->lock);
    return status;
}

hem_status hem_stream_call(hem_stream *stream, hem_stream_fn fn, void *arg) {
    hem_status status = hemi_stream_check(stream, "hem_stream_call");
    if (status != HEM_OK)
        return status;
    if (fn == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_stream_call: fn is NULL");
    hemi_lock(stream->platform, &stream->lock);
    status = hemi_queue_room(stream, "hem_stream_call");
    if (status == HEM_OK)
        hemi_queue_put(stream, call_function, arg, (uint64_t)(uintptr_t)fn);
    hemi_unlock(&stream->lock);
    return status;
}

hem_status hem_stream_sync(hem_stream *stream, int64_t timeout_ns) {
    hem_status status = hemi_stream_check(stream, "hem_stream_sync");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_stream_sync");
    if (status != HEM_OK)
        return status;
    if (hemi_stream_is_inside(stream))
        return hemi_fail(HEM_ERR_ARG, "hem_stream_sync: called from a function on the same stream");
    uint64_t position = hemi_load64_acquire(&stream->tail);
    hemi_flight_note note = {.call = HEMI_CALL_STREAM_SYNC,
                             .peer = (int32_t)stream->root->rank,
                             .world = stream->world->id,
                             .wanted = position};
    if (!hemi_queue_await(stream, position, timeout_ns, stream->root, &note))
        return hemi_fail(
            HEM_ERR_TIMEOUT, "hem_stream_sync: %llu of %llu things on the stream were done in time",
            (unsigned long long)hemi_load64_acquire(&stream->done), (unsigned long long)position);
    hemi_stream_saw(stream, position);
    return look_at_kept(stream, true);
}

hem_status hem_stream_test(hem_stream *stream, bool *done_p) {
    hem_status status = hemi_stream_check(stream, "hem_stream_test");
    if (status != HEM_OK)
        return status;
    if (done_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_stream_test: done_p is NULL");
    uint64_t position = hemi_load64_acquire(&stream->tail);
    *done_p = hemi_queue_is_done(stream, position);
    if (*done_p)
        hemi_stream_saw(stream, position);
    return HEM_OK;
}

/* The stream of `world` (NULL: of any) with the lowest number above `id`. One more reference. */
static hem_stream *next_stream(hemi_root *root, const hem_world *world, uint64_t id) {
    hem_stream *found = NULL;
    if (has_none(root))
        return NULL;
    hemi_lock(root->platform, &root->streams_lock);
    for (hem_stream *s = root->streams; s != NULL; s = s->next)
        if (s->id > id && (world == NULL || s->world == world) &&
            (found == NULL || s->id < found->id))
            found = s;
    if (found != NULL)
        hemi_add32_relaxed(&found->refs, 1);
    hemi_unlock(&root->streams_lock);
    return found;
}

typedef void (*stream_visit)(hem_stream *stream);

/* All streams, also those that are made meanwhile. */
static void visit_all(hemi_root *root, const hem_world *world, stream_visit visit) {
    uint64_t id = 0;
    for (;;) {
        hem_stream *stream = next_stream(root, world, id);
        if (stream == NULL)
            return;
        id = stream->id;
        visit(stream);
        hemi_stream_drop(stream);
    }
}

static void drain(hem_stream *stream) {
    hemi_queue_await(stream, hemi_load64_acquire(&stream->tail), HEM_FOREVER, NULL, NULL);
}

hem_status hemi_streams_close(hem_world *world) {
    if (is_on_stream(world->root, world))
        return hemi_fail(HEM_ERR_ARG, "hem_world_close: called from a function on a stream");
    /* Functions may put more on any stream, up to a point. */
    visit_all(world->root, world, drain);
    visit_all(world->root, world, join);
    return HEM_OK;
}

static void order_abandon(hem_stream *stream) {
    hemi_queue_order(stream, HEMI_STREAM_ABANDON);
}

static void say_farewell(hem_stream *stream) {
    const hemi_platform *platform = stream->platform;
    uint64_t end = platform->now(platform->ctx) + FAREWELL_NS;
    while (hemi_load32_acquire(&stream->ended) == 0 && platform->now(platform->ctx) < end)
        platform->nap(platform->ctx, NAP_NS);
}

void hemi_streams_abandon(hemi_root *root) {
    visit_all(root, NULL, order_abandon);
    visit_all(root, NULL, say_farewell);
}

void hemi_streams_join(hemi_root *root) {
    visit_all(root, NULL, join);
}
