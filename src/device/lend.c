/*
 * Streams of the library's own that operations have for a run.
 *
 * How this works. A GPU has at most 32 queues for a process, which may be many ranks. Streams that share a
 * queue wait for each other, and kernels here wait for other ranks: if every operation kept a stream,
 * a program with many idle ones would hang. So an operation takes a stream when a run begins and
 * gives it back when the run has ended. A rank has as many as it ever had runs at a time.
 *
 * Nobody shares a stream. Two runs that are under way have two streams, so kernels that wait are never
 * behind kernels of another operation, in whatever order the ranks begin.
 *
 * When a stream may be given back. A kernel that is on it must not wait any more: it is done, as the
 * stream says itself, or its last block has told the host so and only returns after that. Then the
 * stream may be busy for a moment yet, and what its next user puts there begins that moment later. It
 * needs no help for that, so nothing can hang. A run of which that is not known (the device has
 * failed, a kernel did not end in time) keeps its stream: the operation goes on to use it or destroys it.
 *
 * What orders runs of one operation. They may be on different streams, so it is not the stream: the next
 * run is put on one only when the host knows that the one before has ended, by the same word or
 * query after which the stream was given back. Who takes a stream adds nothing to that: the stream is
 * behind what has ended.
 *
 * What waits for nobody (copies of lines, memory in the order of a stream) needs no stream of its own:
 * it is on one that all share.
 *
 * Who writes what: `idle_lock` guards the list. The last one that came is lent first, so that few are
 * in use. Streams are made and destroyed without the lock.
 */
#include "base/lock.h"
#include "device/device.h"

hem_status hemi_device_stream_take(hemi_root *root, hemi_device *device, void **stream_p) {
    void *stream = NULL;
    hemi_lock(root->platform, &device->idle_lock);
    if (device->idle_count > 0)
        stream = device->idle[--device->idle_count];
    hemi_unlock(&device->idle_lock);
    if (stream == NULL)
        return device->module->stream->make(device->context, stream_p);
    *stream_p = stream;
    return HEM_OK;
}

void hemi_device_stream_give(hemi_root *root, hemi_device *device, void **stream) {
    void *given = *stream;
    if (given == NULL)
        return;
    *stream = NULL;
    hemi_lock(root->platform, &device->idle_lock);
    bool kept = device->idle_count < HEMI_DEVICE_IDLE;
    if (kept)
        device->idle[device->idle_count++] = given;
    hemi_unlock(&device->idle_lock);
    if (!kept)
        device->module->stream->destroy(device->context, given);
}

hem_status hemi_device_stream_common(hemi_root *root, hemi_device *device, void **stream_p) {
    void *mine = NULL;
    hemi_lock(root->platform, &device->idle_lock);
    void *common = device->common;
    hemi_unlock(&device->idle_lock);
    hem_status status = common == NULL ? hemi_device_stream_take(root, device, &mine) : HEM_OK;
    if (status != HEM_OK)
        return status;
    hemi_lock(root->platform, &device->idle_lock);
    if (device->common == NULL) {
        device->common = mine;
        mine = NULL;
    }
    *stream_p = device->common;
    hemi_unlock(&device->idle_lock);
    /* Another thread was first. */
    hemi_device_stream_give(root, device, &mine);
    return HEM_OK;
}

void hemi_device_free_streams(hemi_device *device) {
    if (device->common != NULL)
        device->module->stream->destroy(device->context, device->common);
    device->common = NULL;
    while (device->idle_count > 0)
        device->module->stream->destroy(device->context, device->idle[--device->idle_count]);
}
