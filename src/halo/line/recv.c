/* Receiving at one side of a line. */
#include "channel/direct.h"
#include "halo/line/line.h"

#include <inttypes.h>
#include <stdlib.h>

/* How long a thread may sleep while a buffer is not ready. */
#define NAP_NS 50000

static bool end(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    in->received = in->at->number;
    in->at = in->at->next;
    in->phase = HEMI_IN_HEADER;
    return true;
}

static bool nonsense(hem_line *line, int s, const char *what) {
    hem_status status = hemi_fail(HEM_ERR_MISMATCH, "hem_line_exchange: rank %u sent nonsense: %s",
                                  line->sides->side[s].lane.peer, what);
    hemi_line_break(line, status, line->in[s].at->number);
    return true;
}

/* There is no memory for the payload: tell the sender, who waits to hear that. */
static bool refuse(hem_line *line, int s, const char *why) {
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

static void begin_letter(hem_line *line, int s, void *data, size_t bytes, uint32_t phase) {
    hemi_line_in *in = &line->in[s];
    in->phase = phase;
    hemi_side_letter(&line->sides->side[s], &in->letter, HEMI_CALL_LINE, false, data, bytes);
    hemi_op_begin(&in->letter.op);
}

/* The buffer is ready. */
static bool take_data(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    const hemi_line_header *header = &in->message.header;
    hem_delivery *delivery = &in->at->in[s];
    if ((header->magic & HEMI_LINE_DATA) == 0) {
        begin_letter(line, s, delivery->buffer.data, delivery->data_bytes, HEMI_IN_DATA);
        return true;
    }
    size_t before = (header->magic & HEMI_LINE_META) != 0 ? header->meta_bytes : 0;
    memcpy(delivery->buffer.data, in->message.rest + before, delivery->data_bytes);
    return end(line, s);
}

static bool has_ready(const hem_line *line) {
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++)
        if (line->in[s].phase == HEMI_IN_READY && line->in[s].at != NULL && !line->broken)
            return true;
    return false;
}

static void set_nap(hem_line *line) {
    const hemi_platform *platform = line->world->root->platform;
    hemi_engine_unlist(line->world, &line->nap);
    line->nap.deadline_ns = platform->now(platform->ctx) + NAP_NS;
    hemi_engine_list(line->world, &line->nap);
    /* So that those who wait begin anew, with a look at time limits. */
    hemi_store32_relaxed(&line->world->engine.moves, line->world->engine.moves + 1);
}

hem_status hemi_line_nap(hemi_task *task) {
    const hem_line *line =
        (const hem_line *)(const void *)((const char *)task - offsetof(hem_line, nap));
    return has_ready(line) ? HEMI_AGAIN : HEM_OK;
}

void hemi_line_wake_up(hemi_task *task, uint64_t now_ns) {
    hem_line *line = (hem_line *)(void *)((char *)task - offsetof(hem_line, nap));
    if (now_ns >= task->deadline_ns)
        set_nap(line);
}

static bool await_ready(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    bool done = false;
    hem_status status = hem_event_test(in->at->in[s].buffer.ready, &done);
    if (status != HEM_OK) {
        hemi_line_break(line, status, in->at->number);
        return true;
    }
    if (done)
        return take_data(line, s);
    if (line->nap.link == NULL)
        set_nap(line);
    return false;
}

/* There is a buffer. */
static bool accept(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hemi_side *side = &line->sides->side[s];
    if (line->alloc != NULL || (in->message.header.magic & HEMI_LINE_DATA) == 0)
        hemi_side_say(side, &side->tell->accepted, in->at->number);
    if (in->at->in[s].buffer.ready == NULL)
        return take_data(line, s);
    in->phase = HEMI_IN_READY;
    return true;
}

/* The metadata is there. */
static bool find_memory(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
    hem_delivery *delivery = &in->at->in[s];
    if (delivery->data_bytes == 0)
        return end(line, s);
    if (line->alloc != NULL) {
        in->phase = HEMI_IN_ALLOC;
        hemi_op_call_back(line->chore);
        return true;
    }
    delivery->buffer.data = malloc(delivery->data_bytes);
    return delivery->buffer.data != NULL ? accept(line, s) : refuse(line, s, "there is no memory");
}

/* Without the lock, but for the ends of it. */
static void allocate(hem_line *line, int s) {
    hem_world *world = line->world;
    hemi_line_in *in = &line->in[s];
    hem_line_buffer buffer = {0};
    hem_delivery *delivery = &in->at->in[s];
    in->calling = true;
    hemi_engine_unlock(world);
    hem_status status =
        line->alloc(line->alloc_arg, (int)line->sides->side[s].lane.peer, delivery->meta,
                    delivery->meta_bytes, delivery->data_bytes, &buffer);
    hemi_engine_lock(world);
    in->calling = false;
    if (status == HEM_OK)
        delivery->buffer = buffer;
    if (!line->broken) {
        if (status != HEM_OK)
            refuse(line, s, "the allocator has no memory");
        else if (buffer.data == NULL || buffer.kind != HEM_MEMORY_HOST)
            refuse(line, s, "the allocator gave no host memory");
        else
            accept(line, s);
    }
    hemi_engine_list(world, &line->task);
    hemi_wake(world->root, world->root->me);
}

void hemi_line_allocate(hem_op *op, hem_status status, void *arg) {
    hem_line *line = arg;
    hem_world *world = op->world;
    (void)status;
    hemi_engine_lock(world);
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++)
        if (line->in[s].phase == HEMI_IN_ALLOC && !line->in[s].calling && !line->broken)
            allocate(line, s);
    hemi_engine_unlock(world);
}

static const char *check_header(const hemi_line_header *header, uint64_t round, size_t bytes) {
    uint32_t flags = header->magic & 0xffff;
    if ((header->magic & ~0xffffu) != HEMI_LINE_MAGIC || flags > 7)
        return "no header";
    if (header->round != round)
        return "the number of a round";
    bool meta = (flags & HEMI_LINE_META) != 0;
    bool data = (flags & HEMI_LINE_DATA) != 0;
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
        return nonsense(line, s, wrong);
    in->heard = in->at->number;
    in->done = header->done;
    if ((header->magic & HEMI_LINE_PRESENT) == 0)
        return end(line, s);
    hem_delivery *delivery = &in->at->in[s];
    if (!hemi_delivery_make(line, header, delivery))
        return refuse(line, s, "there is no memory");
    if ((header->magic & HEMI_LINE_META) == 0) {
        begin_letter(line, s, delivery->meta, delivery->meta_bytes, HEMI_IN_META);
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
        begin_letter(line, s, &in->message, sizeof in->message, HEMI_IN_FIRST);
        return true;
    }
    hemi_lane_wake(lane);
    return take_header(line, s, bytes);
}

bool hemi_line_recv(hem_line *line, int s) {
    hemi_line_in *in = &line->in[s];
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
            return nonsense(line, s, "the length of metadata");
        return find_memory(line, s);
    case HEMI_IN_READY:
        return await_ready(line, s);
    case HEMI_IN_DATA:
        if (in->letter.op.bytes != in->message.header.data_bytes)
            return nonsense(line, s, "the length of data");
        return end(line, s);
    default:
        return false; /* the allocator is being called */
    }
}
