/*
 * Data on its way out of device memory, and into it.
 *
 * Out: pieces are copied into the slots as far ahead as there are slots; when the copy of the oldest is
 * done, a letter carries it, and then its slot is free. In: a letter fills a slot when the copy that
 * used it is done, and then the next copy takes it on. While one slot is with a letter, the other is
 * with the device.
 */
#include "halo/line/line.h"

static hem_status make(const hem_line *line, hemi_device *device, bool wants_device,
                       bool wants_slots, hemi_line_device **device_p, hemi_pinned *pinned_p) {
    hem_status status = HEM_OK;
    if (wants_device)
        status = hemi_line_device_make(line->world->root, device, device_p);
    if (status == HEM_OK && wants_slots)
        status = hemi_device_pinned_alloc(line->world->root,
                                          HEMI_LINE_SLOTS * (uint64_t)HEMI_LINE_PIECE, pinned_p);
    return status;
}

/* Another thread may have done the same meanwhile. */
hem_status hemi_line_equip(hem_line *line, hemi_line_stage *stage) {
    hem_world *world = line->world;
    hemi_root *root = world->root;
    hemi_device *device = hemi_line_device_peek(root);
    hemi_line_device *made = NULL;
    hemi_pinned pinned = {0};
    if (device == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "hem_line_exchange: this rank's device is not open");
    hemi_engine_lock(world);
    bool wants_device = line->device == NULL;
    bool wants_slots = stage->slots == NULL;
    hemi_engine_unlock(world);
    hem_status status = make(line, device, wants_device, wants_slots, &made, &pinned);
    hemi_engine_lock(world);
    if (line->device == NULL) {
        line->device = made;
        made = NULL;
    }
    if (stage->slots == NULL && pinned.bytes > 0) {
        stage->device = device;
        stage->slots = hemi_arena_at(&root->arena, pinned.offset);
        stage->pinned = pinned;
        pinned = (hemi_pinned){0};
    }
    hemi_engine_unlock(world);
    hemi_line_device_drop(made);
    hemi_device_pinned_free(root, &pinned);
    return status;
}

/* The device has failed, or the like. */
static bool fail(hem_line *line, hem_status status, uint64_t number) {
    hemi_line_break(line, status, number);
    return true;
}

static bool hold(hem_line *line, bool *held) {
    *held = true;
    hemi_line_watch(line);
    return false;
}

bool hemi_line_is_ready(hem_line *line, hemi_round *round) {
    hem_status status = hemi_line_mark_test(&round->mark);
    if (status == HEM_OK)
        return true;
    if (status != HEMI_AGAIN)
        fail(line, status, round->number);
    return false;
}

/* Put copies on the device's stream for all slots that are free. */
static hem_status copy_ahead(const hem_line *line, hemi_line_stage *stage,
                             const hem_payload *payload) {
    hem_status status = HEM_OK;
    while (status == HEM_OK && stage->copied < payload->data_bytes &&
           stage->copied - stage->passed < HEMI_LINE_SLOTS * (uint64_t)HEMI_LINE_PIECE)
        status =
            hemi_line_stage_copy(stage, line->device, (unsigned char *)(uintptr_t)payload->data,
                                 payload->data_bytes, true);
    return status;
}

bool hemi_line_send_staged(hem_line *line, int s) {
    hemi_line_out *out = &line->out[s];
    hemi_line_stage *stage = &out->stage;
    hemi_round *round = out->at;
    const hem_payload *payload = &round->out[s];
    if (!hemi_line_is_ready(line, round))
        return line->broken || hold(line, &out->held);
    if (stage->moving)
        stage->passed += hemi_line_piece(stage->passed, payload->data_bytes);
    stage->moving = false;
    hem_status status = copy_ahead(line, stage, payload);
    if (status == HEM_OK && stage->passed == payload->data_bytes) {
        out->part = HEMI_PART_END;
        return true;
    }
    if (status == HEM_OK)
        status = hemi_line_stage_test(stage, stage->passed);
    if (status == HEMI_AGAIN)
        return hold(line, &out->held);
    if (status != HEM_OK)
        return fail(line, status, round->number);
    stage->moving = true;
    hemi_line_send_letter(line, s, hemi_line_slot(stage, stage->passed),
                          hemi_line_piece(stage->passed, payload->data_bytes));
    return true;
}

bool hemi_line_begin_staged(hem_line *line, int s, const void *from) {
    hemi_line_in *in = &line->in[s];
    in->phase = HEMI_IN_STAGED;
    hemi_line_stage_begin(&in->stage, from);
    return true;
}

/* Take on what has come into the next slot. */
static hem_status pass_on(const hem_line *line, hemi_line_stage *stage, hem_delivery *delivery) {
    stage->passed += hemi_line_piece(stage->passed, delivery->data_bytes);
    return hemi_line_stage_copy(stage, line->device, delivery->buffer.data, delivery->data_bytes,
                                false);
}

/* The next slot is free: fill it. */
static hem_status fill(hem_line *line, int s, hemi_line_stage *stage, hem_delivery *delivery) {
    size_t piece = hemi_line_piece(stage->passed, delivery->data_bytes);
    unsigned char *slot = hemi_line_slot(stage, stage->passed);
    if (stage->from != NULL) {
        memcpy(slot, stage->from + stage->passed, piece);
        return pass_on(line, stage, delivery);
    }
    stage->moving = true;
    hemi_line_recv_letter(line, s, slot, piece, HEMI_IN_STAGED);
    return HEM_OK;
}

bool hemi_line_recv_staged(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hemi_line_stage *stage = &in->stage;
    hem_delivery *delivery = &in->at->in[s];
    hem_status status = HEM_OK;
    if (stage->moving) {
        stage->moving = false;
        if (in->letter.op.bytes != hemi_line_piece(stage->passed, delivery->data_bytes))
            return hemi_line_nonsense(line, s, "the length of a piece");
        status = pass_on(line, stage, delivery);
    }
    bool all = stage->passed == delivery->data_bytes;
    if (status == HEM_OK)
        status = all ? hemi_line_stage_settle(stage) : hemi_line_stage_test(stage, stage->passed);
    if (status == HEMI_AGAIN)
        return hold(line, &in->held);
    if (status == HEM_OK && all)
        return hemi_line_recv_end(line, s);
    if (status == HEM_OK)
        status = fill(line, s, stage, delivery);
    return status == HEM_OK || fail(line, status, in->at->number);
}

static bool next_piece(hem_line *line, int s) {
    hemi_line_stage *stage = &line->in[s].stage;
    hem_delivery *delivery = &line->in[s].at->in[s];
    hemi_line_recv_letter(line, s, (unsigned char *)delivery->buffer.data + stage->passed,
                          hemi_line_piece(stage->passed, delivery->data_bytes), HEMI_IN_PIECES);
    return true;
}

bool hemi_line_begin_pieces(hem_line *line, int s) {
    hemi_line_stage_begin(&line->in[s].stage, NULL);
    return next_piece(line, s);
}

bool hemi_line_recv_pieces(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hemi_line_stage *stage = &in->stage;
    uint64_t bytes = in->at->in[s].data_bytes;
    uint64_t piece = hemi_line_piece(stage->passed, bytes);
    if (in->letter.op.bytes != piece)
        return hemi_line_nonsense(line, s, "the length of a piece");
    stage->passed += piece;
    return stage->passed == bytes ? hemi_line_recv_end(line, s) : next_piece(line, s);
}
