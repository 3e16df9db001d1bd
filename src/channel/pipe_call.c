/* Calls on a pipe. Nothing here waits, allocates or locks. */
#include "channel/pipe.h"
#include "core/stream.h"
#include "device/kernels/sendrecv.h"
#include "window/window.h"

#include <hem/window.h>
#include <string.h>

static hem_status check_pipe(const hem_pipe *pipe, const char *call) {
    if (pipe == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the pipe is NULL", call);
    if (pipe->world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this pipe was closed", call);
    return HEM_OK;
}

/* Is it a half that can be carried out, if there is one? */
static hem_status check_half(const hem_pipe *pipe, const hem_pipe_half *half) {
    static const char call[] = "hem_pipe_sendrecv";
    if (half == NULL || half->peer < 0)
        return HEM_OK;
    if ((uint32_t)half->peer >= pipe->size)
        return hemi_fail(HEM_ERR_RANGE, "%s: peer %d; 0 to %u are allowed, or a negative one", call,
                         half->peer, pipe->size - 1);
    if (!pipe->peers[half->peer].named)
        return hemi_fail(HEM_ERR_ARG, "%s: rank %d was not named when the pipe was made", call,
                         half->peer);
    if (half->data == NULL && half->bytes > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: %zu bytes at NULL", call, half->bytes);
    return hemi_world_check_peer(pipe->world, (uint32_t)half->peer, call);
}

static void fill_half(const hem_pipe *pipe, const hem_pipe_half *half, hemd_half *to) {
    if (half == NULL || half->peer < 0)
        return;
    to->way = pipe->ways[half->peer];
    to->deal = hemd_deal_out(&pipe->dev, half->bytes);
    to->data = half->data;
    to->there = 1;
}

static hem_status check_stream(const hem_stream *stream, void **native_p) {
    static const char call[] = "hem_pipe_sendrecv";
    if (stream == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the stream is NULL", call);
    bool is_device = false;
    *native_p = hemi_stream_native(stream, &is_device);
    if (!is_device)
        return hemi_fail(HEM_ERR_ARG,
                         "%s: this is a host stream; hem_stream_cuda makes one of a "
                         "stream of CUDA's",
                         call);
    return HEM_OK;
}

static hem_status launch(const hem_pipe *pipe, void *native, const hemi_pipe_form *form,
                         struct hemd_sendrecv_args *args) {
    uint32_t roles = args->send.there != 0 && args->recv.there != 0 ? 2 : 1;
    args->warps = form->warps;
    args->team = form->team;
    args->chunk = form->chunk;
    args->timeout_ns = form->timeout_ns;
    hemi_launch it = {.kernel = HEMI_KERNEL_SENDRECV,
                      .blocks = form->blocks,
                      .threads = 32 * roles * form->warps,
                      .args = args,
                      .bytes = sizeof *args};
    return pipe->device->module->stream->launch(pipe->device->context, native, &it);
}

hem_status hem_pipe_sendrecv(hem_pipe *pipe, const hem_pipe_half *send, const hem_pipe_half *recv,
                             const hem_pipe_how *how, hem_stream *stream) {
    void *native = NULL;
    hem_status status = check_pipe(pipe, "hem_pipe_sendrecv");
    if (status == HEM_OK)
        status = check_stream(stream, &native);
    if (status == HEM_OK)
        status = check_half(pipe, send);
    if (status == HEM_OK)
        status = check_half(pipe, recv);
    if (status != HEM_OK)
        return status;
    struct hemd_sendrecv_args args;
    memset(&args, 0, sizeof args);
    args.pipe = pipe->dev;
    fill_half(pipe, send, &args.send);
    fill_half(pipe, recv, &args.recv);
    uint32_t lanes =
        args.send.deal.lanes > args.recv.deal.lanes ? args.send.deal.lanes : args.recv.deal.lanes;
    hemi_pipe_form form;
    status = hemi_pipe_choose(pipe, how, lanes,
                              args.send.there != 0 && args.recv.there != 0 ? 2 : 1, &form);
    if (status != HEM_OK || lanes == 0)
        return status; /* with no half there is nothing to do */
    return launch(pipe, native, &form, &args);
}

/* What kernels of `rank` have said about its end of the pipe. */
static hem_status said_by(const hem_pipe *pipe, uint32_t rank) {
    uint64_t code = hemi_device_seen(pipe->window, rank, pipe->window->signals - 1);
    if (code == 0)
        return HEM_OK;
    hem_status status = (hem_status)(-(int)code);
    return hemi_fail(status, "hem_pipe_status: rank %u has given the pipe up: %s", rank,
                     hem_status_name(status));
}

hem_status hem_pipe_status(const hem_pipe *pipe) {
    hem_status status = check_pipe(pipe, "hem_pipe_status");
    if (status == HEM_OK)
        status = said_by(pipe, pipe->rank);
    for (uint32_t r = 0; status == HEM_OK && r < pipe->size; r++)
        if (pipe->peers[r].named && r != pipe->rank)
            status = said_by(pipe, r);
    return status;
}

hem_status hem_pipe_device(hem_pipe *pipe, hem_dev_pipe *dev_p) {
    hem_status status = check_pipe(pipe, "hem_pipe_device");
    if (status == HEM_OK && dev_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_pipe_device: dev_p is NULL");
    if (status == HEM_OK)
        *dev_p = pipe->dev;
    return status;
}
