/*
 * Runs by kernels: launching them, and what becomes of them.
 *
 * A run that the host starts goes on a stream that the exchange borrows; its task looks at the pinned
 * word in which the kernels count their ends, and naps in between, since no kernel rings a doorbell.
 * Kernels find out by themselves that a peer is dead or that a time limit has passed; the host only
 * hears. The stream is given back when all kernels have counted themselves, which is the last thing
 * that they do; so the next run, which the host begins only then, may be on any stream.
 */
#include "halo/exchange/engine.h"
#include "halo/exchange/message.h"

#include <hem/device/types.h>

/* How long who waits for a kernel naps, and how often it asks whether the device still works. */
#define NAP_NS  50000u
#define LOOK_NS 10000000u
/* How long one waits before one makes sure that nothing was missed, and for a kernel that was told
 * to end. */
#define SLICE_NS 200000
#define STOP_NS  5000000000u

bool hemi_halo_device_is_idle(const hem_exchange *x) {
    const hemi_halo_device *d = x->device;
    /* Pairs with the release in hemd_halo_tell. */
    return d->lost || hemi_load64_acquire(&d->words->counted) >= d->launched;
}

bool hemi_halo_device_is_busy(const hem_exchange *x) {
    return x->device != NULL &&
           (!hemi_halo_device_is_idle(x) || (x->device->open != NULL && !x->broken));
}

bool hemi_halo_device_is_broken(hem_exchange *x) {
    hem_status status = HEM_OK;
    if (!x->broken && x->device != NULL)
        status = hemi_halo_device_status(x);
    if (status != HEM_OK)
        hemi_exchange_break(x, status);
    return x->broken;
}

hem_status hemi_halo_device_status(const hem_exchange *x) {
    const hemi_halo_device *d = x->device;
    uint64_t failed = hemi_load64_acquire(&d->words->failed);
    if (failed == 0)
        return HEM_OK;
    hem_status status = (hem_status)(-(int32_t)(uint32_t)failed);
    uint32_t peer = (uint32_t)(failed >> 32) - 1;
    switch (status) {
    case HEM_ERR_PEER:
        return hemi_fail(status, "hem_exchange_finish: rank %u is dead or has left", peer);
    case HEM_ERR_TIMEOUT:
        return hemi_fail(status,
                         "hem_exchange_finish: a run took longer than the time limit of a run, "
                         "waiting for rank %u",
                         peer);
    case HEM_ERR_MISMATCH:
        return hemi_fail(status,
                         "hem_exchange_finish: a run of rank %u is not what rank %u does: other "
                         "fields, sides or combination",
                         peer, d->rank);
    case HEM_ERR_ARG:
        return hemi_fail(status, "hem_exchange_start_on: a run was started on a stream before the "
                                 "one before it had finished on another");
    case HEM_ERR_CLOSED:
        return hemi_fail(status, "hem_exchange_finish: the world was closed");
    default:
        return hemi_fail(status, "hem_exchange_finish: %s",
                         d->breaking != 0 ? "this rank has given the exchange up"
                                          : "the world was revoked, or a neighbour has given this "
                                            "exchange up");
    }
}

hem_status hemi_halo_device_launch(hemi_halo_device *d, const hemi_halo_plan *plan, bool finishes,
                                   void *stream, bool tells) {
    if (d->engine != NULL)
        return hemi_halo_engine_put(d, plan, finishes, stream, tells);
    hemd_halo_args args = finishes ? plan->finish : plan->start;
    args.tell = tells;
    enum hemi_kernel finish = args.groups != NULL ? HEMI_KERNEL_HALO_BACK : HEMI_KERNEL_HALO_FINISH;
    hemi_launch launch = {
        .kernel = finishes ? finish : HEMI_KERNEL_HALO_START,
        .blocks = finishes ? plan->finish_blocks : plan->start_blocks,
        .threads = HEMI_HALO_THREADS,
        .args = &args,
        .bytes = sizeof args,
    };
    hem_status status = d->device->module->stream->launch(d->device->context, stream, &launch);
    if (status == HEM_OK)
        d->launched += tells;
    return status;
}

static uint64_t now_ns(const hem_exchange *x) {
    const hemi_platform *platform = x->world->root->platform;
    return platform->now(platform->ctx);
}

hem_status hemi_halo_device_stream(hemi_halo_device *d) {
    if (d->stream != NULL)
        return HEM_OK;
    return hemi_device_stream_take(d->root, d->device, &d->stream);
}

void hemi_halo_device_give(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    /* Nothing is known of kernels on a device that has failed. And if the end of an open run could not
     * be put on the stream, that may be waiting for the caller's. */
    if (!d->lost && d->open == NULL && hemi_halo_device_is_idle(x))
        hemi_device_stream_give(d->root, d->device, &d->stream);
}

void hemi_halo_device_rest(hem_exchange *x) {
    hemi_engine_lock(x->world);
    if (x->begun == x->ended)
        hemi_halo_device_give(x);
    hemi_engine_unlock(x->world);
}

void hemi_halo_device_begin(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    hem_status status = HEM_OK;
    d->finishing = false;
    d->running = hemi_halo_plan_find(d, &x->how);
    if (d->running == NULL)
        status = hemi_halo_plan_make(x, &x->how, &d->running);
    if (status == HEM_OK)
        status = hemi_halo_device_stream(d);
    if (status == HEM_OK)
        status = hemi_halo_device_launch(d, d->running, false, d->stream, true);
    if (status != HEM_OK)
        hemi_exchange_break(x, status);
    x->task.deadline_ns = now_ns(x) + NAP_NS;
}

/* Whether the device has failed as a whole; then no kernel will ever say so. */
static hem_status look_at_device(hem_exchange *x, uint64_t now) {
    hemi_halo_device *d = x->device;
    if (now < d->look_ns)
        return HEM_OK;
    d->look_ns = now + LOOK_NS;
    if (d->stream == NULL)
        return HEM_OK;
    hem_status status = d->device->module->stream->query(d->device->context, d->stream);
    if (status == HEM_OK || status == HEM_ERR_TIMEOUT)
        return HEM_OK;
    d->lost = true;
    return status;
}

/* The kernels of this run that were launched have ended: it has, too. */
static hem_status end(hem_exchange *x, hem_status status) {
    if (status != HEM_OK)
        hemi_exchange_break(x, status);
    if (x->broken) {
        status = x->ending;
        (void)hemi_fail(status, "%s", x->text);
    }
    hemi_halo_device_give(x);
    hemi_exchange_end(x, status);
    return HEM_OK;
}

hem_status hemi_halo_device_launch_finish(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    if (d->finishing || x->broken || x->begun > x->allowed)
        return HEM_OK;
    hem_status status = hemi_halo_device_launch(d, d->running, true, d->stream, true);
    d->finishing = true;
    if (status != HEM_OK)
        hemi_exchange_break(x, status);
    return status;
}

hem_status hemi_halo_device_advance(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    if (d->engine != NULL)
        hemi_halo_engine_look(d->engine);
    (void)hemi_halo_device_launch_finish(x); /* what fails has broken the exchange */
    if (hemi_halo_device_is_idle(x) && (d->finishing || x->broken))
        return end(x, hemi_halo_device_status(x));
    uint64_t now = now_ns(x);
    x->task.deadline_ns = now + NAP_NS;
    hem_status status = look_at_device(x, now);
    if (status == HEM_OK)
        return HEMI_AGAIN;
    hemi_exchange_break(x, status);
    return end(x, status);
}

/* A word in the device memory of some rank. What fails here fails everywhere: it is heard of then. */
static void store(const hemi_halo_device *d, uint64_t *word, uint64_t value) {
    hem_status status =
        d->device->module->memory->copy(d->device->context, word, &value, sizeof value);
    (void)status;
}

void hemi_halo_device_break(hem_exchange *x, uint64_t gone) {
    hemi_halo_device *d = x->device;
    if (d->engine != NULL) {
        d->breaking |= gone;
        if ((gone & HEMI_GONE_BROKEN) != 0)
            hemi_halo_engine_raise(d, HEM_ERR_REVOKED, 0);
        return;
    }
    if (d->breaking == 0 && hemi_load64_acquire(&d->words->failed) == 0)
        store(d, &hemi_halo_state(d)->failed, (uint64_t)(uint32_t)-HEM_ERR_REVOKED);
    d->breaking |= gone;
    for (size_t l = 0; l < x->lane_count; l++) {
        uint32_t peer = x->lanes[l].way.peer;
        if (peer == d->rank)
            continue;
        unsigned char *out = (unsigned char *)d->maps[peer].address + d->reach[l].out_at;
        store(d, &((hemd_halo_area *)(void *)out)->gone_cpu, d->breaking);
    }
}

hem_status hemi_halo_device_finish(hem_exchange *x) {
    hemi_engine_lock(x->world);
    hem_status status = HEM_OK;
    hemi_exchange_allow(x, x->asked);
    if (!hemi_halo_device_is_broken(x))
        status = hemi_halo_device_close_open(x);
    hemi_engine_unlock(x->world);
    return status;
}

static bool is_under_way(const hem_exchange *x, uint64_t run) {
    return hemi_load64_acquire(&x->ended) < run || hemi_halo_device_is_busy(x) ||
           hemi_load64_acquire(&x->items_done) < x->items;
}

/* Nobody rings when a kernel has ended on a stream of the caller's: so look again and again. A run
 * that is over may have ended with HEM_ERR_TIMEOUT itself. */
static hem_status await_slices(hem_exchange *x, uint64_t run, int64_t timeout_ns) {
    uint64_t start = now_ns(x);
    for (;;) {
        bool over = !is_under_way(x, run);
        uint64_t gone = now_ns(x) - start;
        int64_t left = SLICE_NS;
        if (timeout_ns >= 0 && gone + SLICE_NS > (uint64_t)timeout_ns)
            left = gone < (uint64_t)timeout_ns ? timeout_ns - (int64_t)gone : 0;
        hem_status status = hemi_exchange_await(x, run, true, left);
        if (status != HEM_ERR_TIMEOUT || over || (left == 0 && is_under_way(x, run)))
            return status;
    }
}

hem_status hemi_halo_device_await(hem_exchange *x, int64_t timeout_ns) {
    hem_status status = hemi_halo_device_finish(x);
    if (status == HEM_OK)
        status = await_slices(x, hemi_load64_acquire(&x->asked), timeout_ns);
    hemi_halo_device_rest(x);
    if (status != HEM_OK)
        return status;
    hemi_engine_lock(x->world);
    if (hemi_halo_device_is_broken(x))
        status = hemi_fail(x->ending, "%s", x->text);
    hemi_engine_unlock(x->world);
    return status;
}

void hemi_halo_device_stop(hem_exchange *x) {
    const hemi_platform *platform = x->world->root->platform;
    if (x->device == NULL || hemi_halo_device_is_idle(x))
        return;
    hemi_exchange_break(
        x, hemi_fail(HEM_ERR_REVOKED, "hem_exchange_destroy: a run on a stream was not done"));
    uint64_t end = now_ns(x) + STOP_NS;
    while (!hemi_halo_device_is_idle(x) && now_ns(x) < end) {
        hemi_engine_unlock(x->world);
        platform->nap(platform->ctx, NAP_NS);
        hemi_engine_lock(x->world);
    }
}
