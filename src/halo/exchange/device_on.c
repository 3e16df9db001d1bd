/* Runs on streams of the device: launches, after a plan that is made when it is first wanted. */
#include "halo/exchange/device.h"

/* What a run needs. Making it is not for streams that are being captured. */
static hem_status find_plan(hem_exchange *x, const hem_exchange_how *how, bool captured,
                            hemi_halo_plan **plan_p) {
    hemi_halo_plan *plan = hemi_halo_plan_find(x->device, how);
    if (plan == NULL && captured)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_start_on: this combination of fields and sides is used for "
                         "the first time, and on a stream that is being captured: do one such run "
                         "before");
    if (plan == NULL)
        return hemi_halo_plan_make(x, how, plan_p);
    *plan_p = plan;
    return HEM_OK;
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
    if (status == HEM_OK)
        d->open = NULL;
    return status;
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

hem_status hemi_halo_device_finish_on(hem_exchange *x, void *stream) {
    hemi_halo_device *d = x->device;
    if (!d->ever)
        return hemi_fail(HEM_ERR_ARG, "hem_exchange_finish_on: nothing was started");
    /* What has finished already needs no more. */
    return d->open != NULL ? finish_open(d, stream, is_captured(d, stream)) : HEM_OK;
}

hem_status hemi_halo_device_close_open(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    if (d->open == NULL)
        return HEM_OK;
    if (d->open_captured) {
        d->open = NULL; /* it is in a graph, and runs when that does */
        return HEM_OK;
    }
    hem_status status = hemi_halo_device_stream(d);
    return status == HEM_OK ? finish_open(d, d->stream, false) : status;
}
