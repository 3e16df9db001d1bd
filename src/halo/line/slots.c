/* Slots of pinned memory between device memory and messages. */
#include "halo/line/device.h"

#include <string.h>

void hemi_line_stage_begin(hemi_line_stage *stage, const void *from) {
    stage->copied = 0;
    stage->passed = 0;
    stage->from = from;
    stage->moving = false;
}

static hem_status test(hemi_line_stage *stage, uint64_t slot) {
    const hemi_device *device = stage->device;
    if (stage->marks[slot] == NULL)
        return HEM_OK;
    hem_status status = device->module->stream->test(device->context, stage->marks[slot]);
    if (status == HEM_ERR_TIMEOUT)
        return HEMI_AGAIN;
    device->module->stream->unmark(device->context, stage->marks[slot]);
    stage->marks[slot] = NULL;
    return status;
}

hem_status hemi_line_stage_test(hemi_line_stage *stage, uint64_t offset) {
    return test(stage, offset / HEMI_LINE_PIECE % HEMI_LINE_SLOTS);
}

hem_status hemi_line_stage_settle(hemi_line_stage *stage) {
    const hemi_device *device = stage->device;
    hem_status all = HEM_OK;
    for (uint64_t i = 0; i < HEMI_LINE_SLOTS; i++) {
        hem_status status = test(stage, i);
        if (status == HEMI_AGAIN || all == HEM_OK)
            all = status;
    }
    if (all == HEMI_AGAIN || stage->loose == NULL)
        return all;
    if (device->module->stream->query(device->context, stage->loose) == HEM_ERR_TIMEOUT)
        return HEMI_AGAIN;
    stage->loose = NULL;
    return all;
}

hem_status hemi_line_stage_copy(hemi_line_stage *stage, const hemi_line_device *device,
                                unsigned char *memory, uint64_t bytes, bool out) {
    const hemi_device_stream_ops *ops = device->device->module->stream;
    unsigned char *slot = hemi_line_slot(stage, stage->copied);
    size_t piece = hemi_line_piece(stage->copied, bytes);
    void *at = memory + stage->copied;
    void *to = out ? slot : at;
    const void *from = out ? at : slot;
    hem_status status = ops->copy(device->device->context, device->stream, 1, &to, &from, &piece);
    if (status != HEM_OK)
        return status;
    uint64_t i = stage->copied / HEMI_LINE_PIECE % HEMI_LINE_SLOTS;
    stage->copied += piece;
    status = ops->mark(device->device->context, device->stream, &stage->marks[i]);
    if (status != HEM_OK)
        stage->loose = device->stream;
    return status;
}

void hemi_line_stage_free(hemi_root *root, hemi_line_stage *stage) {
    if (stage->slots == NULL)
        return;
    if (hemi_line_stage_settle(stage) != HEMI_AGAIN)
        hemi_device_pinned_free(root, &stage->pinned);
    for (uint64_t i = 0; i < HEMI_LINE_SLOTS; i++)
        if (stage->marks[i] != NULL)
            stage->device->module->stream->unmark(stage->device->context, stage->marks[i]);
    *stage = (hemi_line_stage){0};
}
