/* Receiving at one side of a line. */
#include "channel/direct.h"
#include "halo/line/line.h"

#include <inttypes.h>
#include <stdlib.h>

/* How long a thread may sleep while a stream is waited for: at least so long, and when nothing has moved
 * for a while, an eighth of that while. */
#define NAP_NS      50000
#define LONG_NAP_NS 1000000

bool hemi_line_recv_end(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    free(in->bounce);
    in->bounce = NULL;
    in->received = in->at->number;
    in->at = in->at->next;
    in->phase = HEMI_IN_HEADER;
    return true;
}

bool hemi_line_nonsense(hem_line *line, int s, const char *what) {
    hem_status status = hemi_fail(HEM_ERR_MISMATCH, "hem_line_exchange: rank %u sent nonsense: %s",
                                  line->sides->side[s].lane.peer, what);
    hemi_line_break(line, status, line->in[s].at->number);
    return true;
}

/* There is no memory for the payload: tell the sender, who waits to hear that. */
bool hemi_line_refuse(hem_line *line, int s, const char *why) {
    hemi_line_in *in = &line->in[s];
    hemi_side *side = &line->sides->side[s];
    uint64_t number = in->at->number;
    hem_status status = hemi_fail(
        HEM_ERR_MEMORY, "hem_line_exchange: %s for %" PRIu64 " bytes of rank %u in round %" PRIu64,
        why, in->message.header.data_bytes, side->lane.peer, number);
    hemi_side_say(side, &side->tell->refused, number);
    hemi_line_break(line, status, number);
    return true;
}

void hemi_line_recv_letter(hem_line *line, int s, void *data, size_t bytes, uint32_t phase) {
    hemi_line_in *in = &line->in[s];
    in->phase = phase;
    hemi_side_letter(&line->sides->side[s], &in->letter, HEMI_CALL_LINE, false, data, bytes);
    hemi_op_begin(&in->letter.op);
}

/* What rode with the header, or came in one letter. */
static bool take_whole(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    const hemi_line_header *header = &in->message.header;
    hem_delivery *delivery = &in->at->in[s];
    bool device = delivery->buffer.kind == HEM_MEMORY_DEVICE;
    if ((header->magic & HEMI_LINE_DATA) == 0) {
        hemi_line_recv_letter(line, s, device ? in->bounce : delivery->buffer.data,
                              delivery->data_bytes, HEMI_IN_DATA);
        return true;
    }
    size_t before = (header->magic & HEMI_LINE_META) != 0 ? header->meta_bytes : 0;
    if (device)
        return hemi_line_begin_staged(line, s, in->message.rest + before);
    memcpy(delivery->buffer.data, in->message.rest + before, delivery->data_bytes);
    return hemi_line_recv_end(line, s);
}

/* The buffer is ready. */
static bool take_data(hem_line *line, int s) {
    const hemi_line_in *in = &line->in[s];
    if ((in->message.header.magic & HEMI_LINE_DEVICE) == 0)
        return take_whole(line, s);
    if (in->at->in[s].buffer.kind == HEM_MEMORY_DEVICE)
        return hemi_line_begin_staged(line, s, NULL);
    return hemi_line_begin_pieces(line, s);
}

static bool end_letter(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    if (in->letter.op.bytes != in->message.header.data_bytes)
        return hemi_line_nonsense(line, s, "the length of data");
    if (in->bounce != NULL)
        return hemi_line_begin_staged(line, s, in->bounce);
    return hemi_line_recv_end(line, s);
}

/* Whether somebody has to look at a stream again. */
static bool is_held(hem_line *line) {
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        hemi_line_in *in = &line->in[s];
        hemi_line_out *out = &line->out[s];
        if (line->broken ? hemi_line_stage_settle(&in->stage) == HEMI_AGAIN ||
                               hemi_line_stage_settle(&out->stage) == HEMI_AGAIN
                         : (in->at != NULL && in->held) || (out->at != NULL && out->held))
            return true;
    }
    return false;
}

void hemi_line_watch(hem_line *line) {
    const hemi_platform *platform = line->world->root->platform;
    if (line->nap.link != NULL)
        return;
    line->held_ns = platform->now(platform->ctx);
    line->nap.deadline_ns = line->held_ns + NAP_NS;
    hemi_engine_list(line->world, &line->nap);
    /* So that those who wait begin anew, with a look at time limits. */
    hemi_store32_relaxed(&line->world->engine.moves, line->world->engine.moves + 1);
}

hem_status hemi_line_nap(hemi_task *task) {
    hem_line *line = (hem_line *)(void *)((char *)task - offsetof(hem_line, nap));
    return is_held(line) ? HEMI_AGAIN : HEM_OK;
}

void hemi_line_wake_up(hemi_task *task, uint64_t now_ns) {
    hem_line *line = (hem_line *)(void *)((char *)task - offsetof(hem_line, nap));
    if (now_ns < task->deadline_ns)
        return;
    if (line->moved)
        line->held_ns = now_ns;
    line->moved = false;
    uint64_t nap = (now_ns - line->held_ns) / 8;
    nap = nap < NAP_NS ? NAP_NS : nap;
    task->deadline_ns = now_ns + (nap < LONG_NAP_NS ? nap : LONG_NAP_NS);
}

static bool await_ready(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hem_event *ready = in->at->in[s].buffer.ready;
    bool done = true;
    hem_status status = ready != NULL ? hem_event_test(ready, &done) : HEM_OK;
    if (status == HEM_OK && done)
        status = hemi_line_mark_test(&in->mark);
    if (status == HEM_OK && done)
        return take_data(line, s);
    if (status != HEM_OK && status != HEMI_AGAIN) {
        hemi_line_break(line, status, in->at->number);
        return true;
    }
    in->held = true;
    hemi_line_watch(line);
    return false;
}

/* There is a buffer. */
bool hemi_line_accept(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hemi_side *side = &line->sides->side[s];
    if (line->alloc != NULL || (in->message.header.magic & HEMI_LINE_DATA) == 0)
        hemi_side_say(side, &side->tell->accepted, in->at->number);
    const hem_line_buffer *buffer = &in->at->in[s].buffer;
    if (buffer->ready == NULL && buffer->stream == NULL)
        return take_data(line, s);
    in->phase = HEMI_IN_READY;
    return true;
}

/* The metadata is there. */
static bool find_memory(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hem_delivery *delivery = &in->at->in[s];
    if (delivery->data_bytes == 0)
        return hemi_line_recv_end(line, s);
    if (line->alloc != NULL || ((in->message.header.magic & HEMI_LINE_DEVICE) != 0 &&
                                hemi_line_device_peek(line->world->root) != NULL)) {
        in->phase = HEMI_IN_ALLOC;
        hemi_op_call_back(line->chore);
        return true;
    }
    delivery->buffer.data = malloc(delivery->data_bytes);
    return delivery->buffer.data != NULL ? hemi_line_accept(line, s)
                                         : hemi_line_refuse(line, s, "there is no memory");
}

static const char *check_header(const hemi_line_header *header, uint64_t round, size_t bytes) {
    uint32_t flags = header->magic & 0xffff;
    if ((header->magic & ~0xffffu) != HEMI_LINE_MAGIC || flags > 15)
        return "no header";
    if (header->round != round)
        return "the number of a round";
    bool meta = (flags & HEMI_LINE_META) != 0;
    bool data = (flags & HEMI_LINE_DATA) != 0;
    if (data && (flags & HEMI_LINE_DEVICE) != 0)
        return "where data was";
    if (header->meta_bytes > HEMI_LINE_META_MAX || (header->meta_bytes == 0 && !meta) ||
        (header->data_bytes == 0 && !data) || header->data_bytes > PTRDIFF_MAX)
        return "the length of a payload";
    size_t rest = bytes - sizeof *header;
    if (meta && header->meta_bytes > rest)
        return "the length of a message";
    rest -= meta ? header->meta_bytes : 0;
    return rest == (data ? header->data_bytes : 0) ? NULL : "the length of a message";
}

static bool take_header(hem_line *line, int s, size_t bytes) {
    hemi_line_in *in = &line->in[s];
    const hemi_line_header *header = &in->message.header;
    const char *wrong = bytes < sizeof *header ? "too short a message"
                                               : check_header(header, in->at->number, bytes);
    if (wrong != NULL)
        return hemi_line_nonsense(line, s, wrong);
    in->heard = in->at->number;
    in->done = header->done;
    if ((header->magic & HEMI_LINE_PRESENT) == 0)
        return hemi_line_recv_end(line, s);
    hem_delivery *delivery = &in->at->in[s];
    if (!hemi_delivery_make(line, header, delivery))
        return hemi_line_refuse(line, s, "there is no memory");
    if ((header->magic & HEMI_LINE_META) == 0) {
        hemi_line_recv_letter(line, s, delivery->meta, delivery->meta_bytes, HEMI_IN_META);
        return true;
    }
    memcpy(delivery->meta, in->message.rest, delivery->meta_bytes);
    return find_memory(line, s);
}

/* The next header: by the short way if it is one message in one piece. */
static bool await_header(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hemi_lane *lane = &line->sides->side[s].lane;
    size_t bytes = 0;
    if (!hemi_rx_ready(&lane->rx.cursor))
        return false;
    if (lane->rx.broken || !hemi_direct_take(lane, &in->message, sizeof in->message, &bytes)) {
        hemi_line_recv_letter(line, s, &in->message, sizeof in->message, HEMI_IN_FIRST);
        return true;
    }
    hemi_lane_wake(lane);
    return take_header(line, s, bytes);
}

bool hemi_line_recv(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    in->held = false;
    if (in->at == NULL || hemi_letter_is_running(&in->letter))
        return false;
    if (in->letter.op.status != HEM_OK) {
        hemi_line_break_side(line, s, hemi_op_result(&in->letter.op), in->at->number);
        return true;
    }
    switch (in->phase) {
    case HEMI_IN_HEADER:
        return await_header(line, s);
    case HEMI_IN_FIRST:
        return take_header(line, s, in->letter.op.bytes);
    case HEMI_IN_META:
        if (in->letter.op.bytes != in->message.header.meta_bytes)
            return hemi_line_nonsense(line, s, "the length of metadata");
        return find_memory(line, s);
    case HEMI_IN_READY:
        return await_ready(line, s);
    case HEMI_IN_DATA:
        return end_letter(line, s);
    case HEMI_IN_PIECES:
        return hemi_line_recv_pieces(line, s);
    case HEMI_IN_STAGED:
        return hemi_line_recv_staged(line, s);
    default:
        return false; /* the allocator is being called */
    }
}
