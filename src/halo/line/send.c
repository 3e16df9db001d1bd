/* Sending at one side of a line. */
#include "channel/direct.h"
#include "halo/line/line.h"

/* What the header of the round says about who is done at the other side and here; false: the header
 * of the round before must come first. */
static bool find_done(const hem_line *line, const hemi_round *round, int s, uint64_t *done_p) {
    int from = 1 - s;
    *done_p = 0;
    if (line->done == 0 || line->done > round->number)
        return true;
    if (hemi_line_ends(line, from)) {
        *done_p = line->done;
        return true;
    }
    const hemi_line_in *in = &line->in[from];
    if (in->heard + 1 < round->number)
        return false;
    if (in->done != 0)
        *done_p = in->done > line->done ? in->done : line->done;
    return true;
}

/* Write the message and say which parts ride in it. */
static size_t write_message(hemi_line_message *message, const hemi_round *round, int s,
                            uint64_t done) {
    const hem_payload *payload = &round->out[s];
    uint32_t flags = round->gives[s] ? HEMI_LINE_PRESENT : 0;
    size_t used = 0;
    if (payload->meta_bytes <= HEMI_LINE_SHORT) {
        flags |= HEMI_LINE_META;
        if (payload->meta_bytes > 0)
            memcpy(message->rest, payload->meta, payload->meta_bytes);
        used = payload->meta_bytes;
    }
    if (round->device[s]) {
        flags |= HEMI_LINE_DEVICE;
    } else if (payload->data_bytes <= HEMI_LINE_SHORT - used) {
        flags |= HEMI_LINE_DATA;
        if (payload->data_bytes > 0)
            memcpy(message->rest + used, payload->data, payload->data_bytes);
        used += payload->data_bytes;
    }
    message->header = (hemi_line_header){HEMI_LINE_MAGIC | flags, (uint32_t)payload->meta_bytes,
                                         payload->data_bytes, round->number, done};
    return sizeof message->header + used;
}

void hemi_line_send_letter(hem_line *line, int s, const void *data, size_t bytes) {
    hemi_line_out *out = &line->out[s];
    hemi_side_letter(&line->sides->side[s], &out->letter, HEMI_CALL_LINE, true,
                     (void *)(uintptr_t)data, bytes);
    hemi_op_begin(&out->letter.op);
}

static uint32_t next_part(const hemi_line_out *out, uint32_t after) {
    uint32_t flags = out->message.header.magic;
    if (after < HEMI_PART_META && (flags & HEMI_LINE_META) == 0)
        return HEMI_PART_META;
    if (after < HEMI_PART_DATA && (flags & HEMI_LINE_DATA) == 0)
        return HEMI_PART_DATA;
    return HEMI_PART_END;
}

/* Whether the data of host memory may be read: some of it may go with the header. */
static bool may_read(hem_line *line, hemi_round *round, int s) {
    if (round->device[s] || round->out[s].data_bytes == 0 || hemi_line_is_ready(line, round))
        return true;
    line->out[s].held = true;
    hemi_line_watch(line);
    return false;
}

static bool send_header(hem_line *line, int s) {
    hemi_line_out *out = &line->out[s];
    hemi_round *round = out->at;
    hemi_lane *lane = &line->sides->side[s].lane;
    uint64_t done = 0;
    if (!find_done(line, round, s, &done))
        return false;
    if (!may_read(line, round, s))
        return line->broken;
    size_t bytes = write_message(&out->message, round, s, done);
    hem_status status = bytes > HEMI_SLOT_BYTES ? hemi_lane_reserve_ring(lane) : HEM_OK;
    if (status != HEM_OK) {
        hemi_line_break(line, status, round->number);
        return true;
    }
    bool whole = (out->message.header.magic & HEMI_LINE_DATA) != 0;
    if (round->out[s].data_bytes > 0 && (line->asks[s] || !whole))
        round->needs[s] = round->number;
    out->part = next_part(out, HEMI_PART_HEADER);
    if (hemi_direct_send(lane, &out->message, bytes))
        hemi_lane_wake(lane);
    else
        hemi_line_send_letter(line, s, &out->message, bytes);
    return true;
}

bool hemi_line_send(hem_line *line, int s) {
    hemi_line_out *out = &line->out[s];
    hemi_round *round = out->at;
    out->held = false;
    if (round == NULL || hemi_letter_is_running(&out->letter))
        return false;
    if (out->letter.op.status != HEM_OK) {
        hemi_line_break_side(line, s, hemi_op_result(&out->letter.op), round->number);
        return true;
    }
    const hem_payload *payload = &round->out[s];
    switch (out->part) {
    case HEMI_PART_HEADER:
        return send_header(line, s);
    case HEMI_PART_META:
        out->part = next_part(out, HEMI_PART_META);
        hemi_line_send_letter(line, s, payload->meta, payload->meta_bytes);
        return true;
    case HEMI_PART_DATA:
        if (round->device[s]) {
            out->part = HEMI_PART_STAGED;
            hemi_line_stage_begin(&out->stage, NULL);
            return true;
        }
        out->part = HEMI_PART_END;
        hemi_line_send_letter(line, s, payload->data, payload->data_bytes);
        return true;
    case HEMI_PART_STAGED:
        return hemi_line_send_staged(line, s);
    default:
        out->sent = round->number;
        out->at = round->next;
        out->part = HEMI_PART_HEADER;
        return true;
    }
}
