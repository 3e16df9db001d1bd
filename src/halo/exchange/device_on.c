/* Runs on streams of the device: launches, after a plan that is made when it is first wanted. */
#include "halo/exchange/device.h"

/* What a run needs. Making it is not for streams that are being captured. */
static hem_status find_plan(hem_exchange *x, const hem_exchange_how *how, bool captured,
                            hemi_halo_plan **plan_p) {
    hemi_halo_plan *plan = hemi_halo_plan_find(x->device, how);
    if (plan == NULL && captured)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_start_on: this combination of fields and sides is used for "
                         "the first time, and on a stream that is being captured: call "
                         "hem_exchange_prepare before");
    if (plan == NULL)
        return hemi_halo_plan_make(x, how, plan_p);
    *plan_p = plan;
    return HEM_OK;
}

hem_status hemi_halo_device_prepare(hem_exchange *x, const hem_exchange_how *how) {
    hemi_halo_plan *plan = NULL;
    return find_plan(x, how, false, &plan);
}

static bool is_captured(const hemi_halo_device *d, void *stream) {
    return d->device->module->stream->captures(d->device->context, stream);
}

/* Launch the second kernel of the run that is open. */
static hem_status finish_open(hemi_halo_device *d, void *stream, bool captured) {
    hem_status status = HEM_OK;
    if (stream != d->open_stream)
        status = d->device->module->stream->order(d->device->context, d->open_stream, stream);
    if (status == HEM_OK)
        status = hemi_halo_device_launch(d, d->open, true, stream, !captured);
    if (status != HEM_OK)
        return status;
    d->open = NULL;
    d->open_stream = stream;
    d->open_captured = captured;
    return HEM_OK;
}

hem_status hemi_halo_device_start_on(hem_exchange *x, const hem_exchange_how *how, void *stream) {
    hemi_halo_device *d = x->device;
    hemi_halo_plan *plan = NULL;
    bool captured = is_captured(d, stream);
    hem_status status = find_plan(x, how, captured, &plan);
    if (status == HEM_OK && d->open != NULL)
        status = finish_open(d, stream, captured);
    if (status == HEM_OK)
        status = hemi_halo_device_launch(d, plan, false, stream, !captured);
    if (status != HEM_OK)
        return status;
    d->open = plan;
    d->open_stream = stream;
    d->open_captured = captured;
    d->ever = true;
    return HEM_OK;
}

static hem_status fail_outside(void) {
    return hemi_fail(
        HEM_ERR_ARG,
        "hem_exchange_finish_on: the stream is being captured, and what was started last "
        "is under way: it is no part of the graph. Wait for it first, by "
        "hem_exchange_finish");
}

/* A run that the host has started: both of its kernels are on the stream that it borrows, or will be in
 * a moment. A start that waits on a stream of the host is nowhere yet. */
static hem_status follow_host(hem_exchange *x, void *stream) {
    hemi_halo_device *d = x->device;
    if (x->begun != x->asked)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "hem_exchange_finish_on: run %llu waits on a stream of the host for its "
                         "start: finish it on such a stream, too, or by hem_exchange_finish",
                         (unsigned long long)x->asked);
    if (is_captured(d, stream))
        return fail_outside();
    hemi_exchange_allow(x, x->asked);
    hem_status status = hemi_halo_device_launch_finish(x);
    if (status == HEM_OK)
        status = d->device->module->stream->order(d->device->context, d->stream, stream);
    return status;
}

/* A run that was finished on a stream of the device, which may be another one. As part of a graph it is
 * waited for as long as that is being captured; later it runs when the graph does. */
static hem_status follow_finish(const hem_exchange *x, void *stream) {
    const hemi_halo_device *d = x->device;
    bool over = d->open_captured ? !is_captured(d, d->open_stream) : hemi_halo_device_is_idle(x);
    if (over || stream == d->open_stream)
        return HEM_OK;
    if (!d->open_captured && is_captured(d, stream))
        return fail_outside();
    return d->device->module->stream->order(d->device->context, d->open_stream, stream);
}

hem_status hemi_halo_device_finish_on(hem_exchange *x, void *stream) {
    hemi_halo_device *d = x->device;
    if (d->open != NULL)
        return finish_open(d, stream, is_captured(d, stream));
    if (x->asked != x->ended)
        return follow_host(x, stream);
    if (d->ever)
        return follow_finish(x, stream);
    if (x->asked == 0)
        return hemi_fail(HEM_ERR_ARG, "hem_exchange_finish_on: nothing was started");
    return HEM_OK; /* the host's last run is over */
}

hem_status hemi_halo_device_close_open(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    if (d->open == NULL)
        return HEM_OK;
    if (d->open_captured) {
        d->open = NULL; /* it is in a graph, and runs when that does */
        return HEM_OK;
    }
    /* Its finish may have been refused for that, and the stream be gone since. */
    hem_status status = hemi_engine_check(x->world, "hem_exchange_finish");
    if (status != HEM_OK) {
        hemi_exchange_break(x, status);
        return HEM_OK;
    }
    status = hemi_halo_device_stream(d);
    return status == HEM_OK ? finish_open(d, d->stream, false) : status;
}
