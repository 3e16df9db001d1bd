/* The device as lines use it: a stream, marks, memory. */
#include "halo/line/device.h"

#include "core/stream.h"

#include <stdlib.h>
#include <string.h>

hemi_device *hemi_line_device_peek(const hemi_root *root) {
    hemi_device *device = hemi_device_peek(root);
    /* A table that a test has made up may end before. */
    return device != NULL && device->module->stream->free_on != NULL ? device : NULL;
}

hem_status hemi_line_device_make(hemi_root *root, hemi_device *device,
                                 hemi_line_device **device_p) {
    hemi_line_device *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the stream of a line");
    made->refs = 1;
    made->device = device;
    hem_status status = hemi_device_stream_common(root, device, &made->stream);
    if (status != HEM_OK) {
        free(made);
        return status;
    }
    *device_p = made;
    return HEM_OK;
}

void hemi_line_device_drop(hemi_line_device *device) {
    /* Release what was done with it to who frees it. */
    if (device == NULL || hemi_add32_acq_rel(&device->refs, UINT32_MAX) != 1)
        return;
    free(device);
}

/* Shared by a line and by what it has put on a stream of the host. */
struct hemi_line_flag {
    uint32_t refs;
    uint32_t done; /* released by the stream's thread */
    hem_status status;
};

static void flag_drop(hemi_line_flag *flag) {
    if (hemi_add32_acq_rel(&flag->refs, UINT32_MAX) == 1)
        free(flag);
}

static hem_status raise_flag(hem_status status, void *arg, uint64_t number) {
    hemi_line_flag *flag = arg;
    (void)number;
    flag->status = status;
    /* Pairs with the acquire in hemi_line_mark_test. */
    hemi_store32_release(&flag->done, 1);
    flag_drop(flag);
    return HEM_OK;
}

static hem_status mark_host(hem_stream *stream, hemi_line_mark *mark_p) {
    hemi_line_flag *flag = calloc(1, sizeof *flag);
    if (flag == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a mark on a stream");
    flag->refs = 2;
    hem_status status = hemi_stream_push(stream, raise_flag, flag, 0, NULL);
    if (status != HEM_OK)
        free(flag);
    else
        mark_p->flag = flag;
    return status;
}

static hem_status mark_device(const hemi_root *root, void *native, const char *call,
                              hemi_line_mark *mark_p) {
    hemi_device *device = hemi_line_device_peek(root);
    if (device == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "%s: the device cannot mark streams", call);
    if (device->module->stream->captures(device->context, native))
        return hemi_fail(HEM_ERR_ARG, "%s: the stream is being captured", call);
    hem_status status = device->module->stream->mark(device->context, native, &mark_p->mark);
    if (status == HEM_OK)
        mark_p->device = device;
    return status;
}

hem_status hemi_line_mark_set(const hemi_root *root, hem_stream *stream, const char *call,
                              hemi_line_mark *mark_p) {
    const hem_world *world = hemi_stream_world(stream);
    if (world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of the stream was closed", call);
    if (world->root != root)
        return hemi_fail(HEM_ERR_ARG, "%s: the stream is another rank's", call);
    bool is_device = false;
    void *native = hemi_stream_native(stream, &is_device);
    return is_device ? mark_device(root, native, call, mark_p) : mark_host(stream, mark_p);
}

void hemi_line_mark_drop(hemi_line_mark *mark) {
    if (mark->flag != NULL)
        flag_drop(mark->flag);
    if (mark->device != NULL)
        mark->device->module->stream->unmark(mark->device->context, mark->mark);
    *mark = (hemi_line_mark){0};
}

hem_status hemi_line_mark_test(hemi_line_mark *mark) {
    hem_status status = HEM_OK;
    if (mark->flag != NULL) {
        if (hemi_load32_acquire(&mark->flag->done) == 0)
            return HEMI_AGAIN;
        status = mark->flag->status;
        if (status != HEM_OK)
            status = hemi_fail(status, "hem_line_exchange: what was on the stream before failed");
    } else if (mark->device != NULL) {
        status = mark->device->module->stream->test(mark->device->context, mark->mark);
        if (status == HEM_ERR_TIMEOUT)
            return HEMI_AGAIN;
    }
    if (status == HEM_OK)
        hemi_line_mark_drop(mark);
    return status;
}

static void give_back(hemi_line_memory *memory, bool kept) {
    const hemi_device *device = memory->device->device;
    if (!kept)
        device->module->stream->free_on(device->context,
                                        memory->streamed ? memory->stream : memory->device->stream,
                                        memory->address);
    hemi_line_device_drop(memory->device);
    memory->device = NULL;
}

/* The world is closed, and nobody uses the memory any more; the caller's stream may be gone, too. */
static void orphan(hemi_child *child, bool dead) {
    hemi_line_memory *memory = (hemi_line_memory *)(void *)child;
    (void)dead;
    memory->world = NULL;
    memory->streamed = false;
    give_back(memory, false);
}

hem_status hemi_line_memory_alloc(hem_world *world, hemi_line_device *device, size_t bytes,
                                  hemi_line_memory *memory) {
    hem_status status = device->device->module->stream->alloc_on(
        device->device->context, device->stream, bytes, &memory->address);
    if (status != HEM_OK)
        return status;
    hemi_add32_relaxed(&device->refs, 1);
    memory->device = device;
    memory->world = world;
    memory->child.orphan = orphan;
    hemi_world_adopt(world, &memory->child);
    return HEM_OK;
}

void hemi_line_memory_free(hemi_line_memory *memory, bool kept) {
    if (memory->device == NULL)
        return;
    hemi_world_abandon(memory->world, &memory->child);
    give_back(memory, kept);
}
