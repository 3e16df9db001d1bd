/* Streams of a device where the library wants a hem_stream. */
#include "device/device.h"

#include "core/stream.h"

#include <hem/cuda.h>

hem_status hem_stream_cuda(hem_world *world, void *stream, hem_stream **stream_p) {
    if (world == NULL || stream_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_stream_cuda: world or stream_p is NULL");
    hemi_device *device = NULL;
    hem_status status = hemi_device_get(world->root, &device);
    if (status == HEM_OK)
        status = device->module->stream->check(device->context, stream,
                                               hemi_device_is_shared(world->root));
    if (status == HEM_OK)
        status = hemi_stream_wrap(world, stream, stream_p);
    return status;
}
