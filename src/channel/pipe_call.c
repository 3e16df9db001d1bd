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

static void fill_half(const hem_pipe *pipe, const hem_pipe_half *half, hemd_half *to,
                      hemd_ends *ends) {
    if (half == NULL || half->peer < 0)
        return;
    const hemi_pipe_peer *mine = &pipe->peers[pipe->rank], *theirs = &pipe->peers[half->peer];
    ends->here = hemd_place_in(mine->memory, mine->bytes, half->data, half->bytes);
    ends->far = theirs->memory;
    ends->far_bytes = theirs->bytes;
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

static bool is_bulk(const hemd_half *half) {
    return half->there != 0 && !half->deal.brief;
}

/* What a call is, from what it carries. A kernel of its own agrees where messages of the bulk form go. */
static hemi_pipe_want want_of(const hem_pipe *pipe, const struct hemd_sendrecv_args *call) {
    const hemd_half *send = &call->send, *recv = &call->recv;
    hemi_pipe_want want = {
        .lanes = send->deal.lanes > recv->deal.lanes ? send->deal.lanes : recv->deal.lanes,
        .roles = send->there != 0 && recv->there != 0 ? 2 : 1,
        .straight = pipe->straight != NULL && (is_bulk(send) || is_bulk(recv)),
    };
    return want;
}

static hem_status launch(const hem_pipe *pipe, void *native, const hemi_pipe_want *want,
                         const hemi_pipe_form *form, struct hemd_straight_args *args) {
    struct hemd_sendrecv_args *call = &args->call;
    call->warps = form->warps;
    call->team = form->team;
    call->chunk = form->chunk;
    call->timeout_ns = form->timeout_ns;
    hemi_launch it = {.kernel = want->straight ? HEMI_KERNEL_STRAIGHT : HEMI_KERNEL_SENDRECV,
                      .blocks = form->blocks,
                      .threads = 32 * want->roles * form->warps,
                      .args = args,
                      .bytes = want->straight ? sizeof *args : sizeof *call};
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
    struct hemd_straight_args args;
    memset(&args, 0, sizeof args);
    args.call.pipe = pipe->dev;
    fill_half(pipe, send, &args.call.send, &args.send);
    fill_half(pipe, recv, &args.call.recv, &args.recv);
    hemi_pipe_want want = want_of(pipe, &args.call);
    hemi_pipe_form form;
    status = hemi_pipe_choose(pipe, how, &want, &form);
    if (status != HEM_OK || want.lanes == 0)
        return status; /* with no half there is nothing to do */
    return launch(pipe, native, &want, &form, &args);
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
