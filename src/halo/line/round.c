/* Rounds as operations: starting, waiting, taking what came. */
#include "base/options.h"
#include "core/stream.h"
#include "halo/line/line.h"

#include <inttypes.h>
#include <stdlib.h>

#define COPY_NAPS   5000
#define COPY_NAP_NS 200000

static void start(struct hem_op *op) {
    hemi_round *round = (hemi_round *)(void *)op;
    hem_line *line = round->line;
    round->number = ++line->rounds;
    round->next = NULL;
    if (line->head == NULL)
        line->head = round;
    else
        line->last->next = round;
    line->last = round;
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        if (!hemi_line_has(line, s))
            continue;
        if (line->out[s].at == NULL)
            line->out[s].at = round;
        if (line->in[s].at == NULL)
            line->in[s].at = round;
    }
    if (hemi_line_advance(&line->task) != HEM_OK)
        hemi_engine_list(line->world, &line->task);
}

static void cancel(struct hem_op *op) {
    hemi_round *round = (hemi_round *)(void *)op;
    hem_line *line = round->line;
    hem_status status =
        hemi_fail(HEM_ERR_REVOKED, "hem_line_exchange: round %" PRIu64 " was given up under way",
                  round->number);
    hemi_line_break(line, status, round->number);
    hemi_line_await_end(line);
}

/* Copies are short. If the device does not end them, there is nothing to be done about it. */
static void await_copies(const hem_line *line, hemi_line_stage *stage) {
    const hemi_platform *platform = line->world->root->platform;
    for (int i = 0; i < COPY_NAPS && hemi_line_stage_settle(stage) == HEMI_AGAIN; i++)
        platform->nap(platform->ctx, COPY_NAP_NS);
}

/* The rank has ended without closing: nobody may touch what is freed now. */
static void forget(hem_line *line) {
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        hemi_letter *letters[] = {&line->out[s].letter, &line->in[s].letter};
        for (int i = 0; i < 2; i++)
            if (hemi_letter_is_running(letters[i])) {
                hemi_letter_forget(letters[i]);
                letters[i]->op.state = HEMI_OP_DONE;
            }
        await_copies(line, &line->out[s].stage);
        await_copies(line, &line->in[s].stage);
    }
}

static void destroy(struct hem_op *op) {
    hemi_round *round = (hemi_round *)(void *)op;
    bool dead = op->state == HEMI_OP_RUNNING;
    if (dead && round->line != NULL)
        forget(round->line);
    hemi_line_mark_drop(&round->mark);
    hemi_delivery_free(&round->in[HEMI_LEFT], dead);
    hemi_delivery_free(&round->in[HEMI_RIGHT], dead);
    free(round);
}

static void where(struct hem_op *op, hemi_flight_note *note) {
    const hemi_round *round = (const hemi_round *)(const void *)op;
    const hem_line *line = round->line;
    for (int s = HEMI_LEFT; line != NULL && s <= HEMI_RIGHT; s++)
        if (hemi_line_lacks(line, round, s)) {
            const hemi_lane *lane = &line->sides->side[s].lane;
            note->peer = (int32_t)line->world->members[lane->peer];
            note->id = lane->channel;
            note->word = &hemi_rx_slot(&lane->rx.cursor)->stamp;
            note->wanted = lane->rx.cursor.slot_head + 1;
            return;
        }
}

const hemi_op_type hemi_line_round_type = {HEMI_CALL_LINE, start, cancel, destroy, where};

static hem_status check_payload(const hem_payload *payload, const char *call) {
    if (payload == NULL)
        return HEM_OK;
    if (payload->meta_bytes > HEMI_LINE_META_MAX)
        return hemi_fail(HEM_ERR_ARG, "%s: %zu bytes of metadata are more than %u", call,
                         payload->meta_bytes, HEMI_LINE_META_MAX);
    if ((payload->meta == NULL && payload->meta_bytes > 0) ||
        (payload->data == NULL && payload->data_bytes > 0))
        return hemi_fail(HEM_ERR_ARG, "%s: %s is NULL and has a length", call,
                         payload->data == NULL && payload->data_bytes > 0 ? "data" : "metadata");
    if (payload->data_bytes > PTRDIFF_MAX)
        return hemi_fail(HEM_ERR_ARG, "%s: %zu bytes are more than there can be", call,
                         payload->data_bytes);
    return HEM_OK;
}

static hem_status check(const hem_line *line, const char *call) {
    if (line == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: line is NULL", call);
    if (line->world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this line was closed", call);
    return hemi_engine_check(line->world, call);
}

/* Find out where the payloads are, and get what it takes to send them from there. */
static hem_status find_device(hemi_round *round, hem_line *line) {
    const hemi_device *device = hemi_line_device_peek(line->world->root);
    hem_status status = HEM_OK;
    for (int s = HEMI_LEFT; device != NULL && s <= HEMI_RIGHT && status == HEM_OK; s++) {
        if (round->out[s].data_bytes == 0 || !hemi_line_has(line, s) ||
            !hemi_line_is_device(device, round->out[s].data))
            continue;
        round->device[s] = true;
        status = hemi_line_equip(line, &line->out[s].stage);
    }
    return status;
}

static hem_status set_stream(hemi_round *round, const hem_line *line, hem_stream *stream,
                             const char *call) {
    if (stream == NULL)
        return HEM_OK;
    round->stream = hemi_stream_native(stream, &round->streamed);
    return hemi_line_mark_set(line->world->root, stream, call, &round->mark);
}

/* Read what the caller wants into a zeroed round; `done_p` says whether this rank is done. */
static hem_status fill_in(hemi_round *round, hem_line *line, const hem_line_round *wanted,
                          const char *call, bool *done_p) {
    hem_line_round r;
    hem_status status = check(line, call);
    if (status == HEM_OK)
        status = hemi_options_read(&r, sizeof r, wanted, call);
    if (status == HEM_OK)
        status = check_payload(r.to_left, call);
    if (status == HEM_OK)
        status = check_payload(r.to_right, call);
    if (status != HEM_OK)
        return status;
    const hem_payload *payloads[] = {r.to_left, r.to_right};
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        round->gives[s] = payloads[s] != NULL;
        if (payloads[s] != NULL)
            round->out[s] = *payloads[s];
    }
    round->line = line;
    *done_p = r.done;
    status = find_device(round, line);
    if (status == HEM_OK)
        status = set_stream(round, line, r.stream, call);
    return status;
}

/* Begin the round, unless the line is broken. Under the lock. */
static hem_status begin(hemi_round *round, bool done, const char *call) {
    hem_line *line = round->line;
    if (line->broken) {
        hemi_line_mark_drop(&round->mark);
        return hemi_fail(HEM_ERR_REVOKED,
                         "%s: the line has been broken since round %" PRIu64 ": %.160s", call,
                         line->fault, line->text);
    }
    if (done && line->done == 0)
        line->done = line->rounds + 1;
    hemi_op_begin(&round->op);
    return HEM_OK;
}

hem_status hem_line_start(hem_line *line, const hem_line_round *round, hem_op **op_p) {
    static const char call[] = "hem_line_start";
    if (op_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: op_p is NULL", call);
    bool done = false;
    hemi_round *r = calloc(1, sizeof *r);
    hem_status status = r == NULL ? hemi_fail(HEM_ERR_MEMORY, "%s: no memory for a round", call)
                                  : fill_in(r, line, round, call, &done);
    if (status != HEM_OK) {
        free(r);
        return status;
    }
    hem_world *world = line->world;
    hemi_engine_lock(world);
    hemi_op_init(&r->op, world, &hemi_line_round_type, false, true);
    status = begin(r, done, call);
    if (status != HEM_OK)
        hemi_world_abandon(world, &r->op.child);
    hemi_engine_unlock(world);
    if (status == HEM_OK)
        *op_p = &r->op;
    else
        free(r);
    hemi_engine_settle(world);
    return status;
}

/* From now on the caller may use the memory on the stream of the round. */
static void name_stream(const hemi_round *round, const hem_delivery *delivery) {
    if (!delivery->present)
        return;
    hemi_line_memory *memory = &hemi_delivery_keep(delivery)->memory;
    memory->stream = round->stream;
    memory->streamed = round->streamed;
}

static void hand_over(hemi_round *round, hem_line_result *result_p) {
    name_stream(round, &round->in[HEMI_LEFT]);
    name_stream(round, &round->in[HEMI_RIGHT]);
    *result_p = (hem_line_result){.from_left = round->in[HEMI_LEFT],
                                  .from_right = round->in[HEMI_RIGHT],
                                  .round = round->number,
                                  .all_done = round->all_done};
    memset(round->in, 0, sizeof round->in);
    round->taken = true;
}

/* It was not done in time: that breaks the line. */
static hem_status give_up(hem_world *world, hem_line *line, hemi_round *round) {
    hemi_engine_lock(world);
    if (!hemi_op_is_done(&round->op)) {
        hem_status status =
            hemi_fail(HEM_ERR_TIMEOUT, "hem_line_exchange: round %" PRIu64 " was not done in time",
                      round->number);
        hemi_line_break(line, status, round->number);
        hemi_line_await_end(line);
    }
    hemi_engine_unlock(world);
    hemi_engine_settle(world);
    return hemi_op_result(&round->op);
}

hem_status hem_line_exchange(hem_line *line, const hem_line_round *round, hem_line_result *result_p,
                             int64_t timeout_ns) {
    static const char call[] = "hem_line_exchange";
    hemi_round r;
    /* All but the room for a sentence, which is most of it. */
    memset(&r, 0, offsetof(struct hem_op, text));
    memset((char *)&r + sizeof r.op, 0, sizeof r - sizeof r.op);
    r.op.text[0] = '\0';
    bool done = false;
    hem_status status = hemi_check_timeout(timeout_ns, call);
    if (status == HEM_OK && result_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: result_p is NULL", call);
    if (status == HEM_OK)
        status = fill_in(&r, line, round, call, &done);
    if (status != HEM_OK)
        return status;
    hem_world *world = line->world;
    hemi_engine_lock(world);
    hemi_op_init(&r.op, world, &hemi_line_round_type, false, false);
    status = begin(&r, done, call);
    hemi_engine_unlock(world);
    if (status != HEM_OK)
        return status;
    status = hemi_engine_wait(world, &r.op, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        status = give_up(world, line, &r);
    if (status == HEM_OK) {
        hand_over(&r, result_p);
        return HEM_OK;
    }
    hemi_delivery_free(&r.in[HEMI_LEFT], false);
    hemi_delivery_free(&r.in[HEMI_RIGHT], false);
    return status;
}

hem_status hem_line_take(hem_op *op, hem_line_result *result_p) {
    static const char call[] = "hem_line_take";
    if (op == NULL || result_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: op or result_p is NULL", call);
    if (op->type != &hemi_line_round_type)
        return hemi_fail(HEM_ERR_ARG, "%s: the operation is not of a line", call);
    hemi_round *round = (hemi_round *)(void *)op;
    hem_world *world = op->world;
    if (world != NULL)
        hemi_engine_lock(world);
    hem_status status = HEM_OK;
    if (!hemi_op_is_done(op))
        status = hemi_fail(HEM_ERR_ARG, "%s: the round is not done", call);
    else if (op->status != HEM_OK)
        status = hemi_op_result(op);
    else if (round->taken)
        status = hemi_fail(HEM_ERR_ARG, "%s: the result was taken already", call);
    else
        hand_over(round, result_p);
    if (world != NULL)
        hemi_engine_unlock(world);
    return status;
}
