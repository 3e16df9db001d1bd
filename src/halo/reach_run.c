/* Runs of a reach, as operations. */
#include "halo/line/device.h"
#include "halo/reach.h"

#include <stdio.h>
#include <stdlib.h>

#define NAP_NS 50000

typedef struct reach_op {
    struct hem_op op;
    hem_reach *reach; /* NULL when it is done */
    const unsigned char *rows;
    unsigned char *before;
    unsigned char *after;
} reach_op;

static hem_status letter_status(const hemi_letter *letter, uint64_t bytes) {
    if (letter->op.status != HEM_OK)
        return hemi_op_result(&letter->op);
    if (!letter->sends && letter->op.bytes != bytes)
        return hemi_fail(HEM_ERR_MISMATCH, "hem_reach_run: rank %u sent %zu bytes and not %llu",
                         letter->peer, letter->op.bytes, (unsigned long long)bytes);
    return HEM_OK;
}

/* Both letters of a partner. HEM_OK: they are done, or there were none. */
static hem_status look(const hem_reach *reach, const hemi_partner *partner) {
    if (hemi_letter_is_running(&partner->out) || hemi_letter_is_running(&partner->in))
        return HEMI_AGAIN;
    hem_status status = HEM_OK;
    if (partner->send.rows > 0)
        status = letter_status(&partner->out, 0);
    if (status == HEM_OK && partner->recv.rows > 0)
        status = letter_status(&partner->in, partner->recv.rows * reach->row_bytes);
    return status;
}

static void drop(hemi_letter *letter) {
    if (!hemi_letter_is_running(letter))
        return;
    hem_status status = hemi_fail(HEM_ERR_REVOKED, "hem_reach_run: the reach was broken");
    hemi_letter_drop(letter, status, hemi_lane_is_dead(letter->lane));
}

static void break_up(hem_reach *reach, hem_status status) {
    if (reach->broken)
        return;
    reach->broken = true;
    reach->why = status;
    (void)snprintf(reach->text, sizeof reach->text, "%s", hem_last_error());
    for (uint32_t i = 0; i < reach->count; i++) {
        drop(&reach->partners[i].out);
        drop(&reach->partners[i].in);
    }
    hemi_sides_break(reach->sides);
}

/* It may be gone as soon as it is completed. */
static void finish(hem_reach *reach, hem_status status) {
    struct hem_op *op = reach->op;
    reach->op = NULL;
    ((reach_op *)(void *)op)->reach = NULL;
    hemi_op_complete(op, status);
}

/* After a break: the run ends as soon as nobody touches its memory. */
static bool end_broken(hem_reach *reach) {
    for (uint32_t i = 0; i < reach->count; i++)
        if (hemi_letter_is_running(&reach->partners[i].out) ||
            hemi_letter_is_running(&reach->partners[i].in))
            return false;
    if (reach->op != NULL)
        finish(reach, hemi_fail(reach->why, "%s", reach->text));
    return true;
}

/* A partner has given up. What it had sent before counts. */
static hem_status look_at_gone(const hem_reach *reach, uint32_t i) {
    hemi_task *lane = &reach->sides->side[i].lane.task;
    hem_status status = lane->advance(lane);
    while (status == HEMI_MORE)
        status = lane->advance(lane);
    status = look(reach, &reach->partners[i]);
    if (status != HEMI_AGAIN)
        return status;
    return hemi_fail(HEM_ERR_REVOKED, "hem_reach_run: rank %u has given it up",
                     reach->partners[i].peer);
}

hem_status hemi_reach_advance(hemi_task *task) {
    hem_reach *reach = (hem_reach *)(void *)((char *)task - offsetof(hem_reach, task));
    hem_status all = HEM_OK;
    for (uint32_t i = 0; i < reach->count && !reach->broken; i++) {
        bool gone = hemi_side_is_gone(&reach->sides->side[i]);
        hem_status status = look(reach, &reach->partners[i]);
        if (status == HEMI_AGAIN && gone)
            status = look_at_gone(reach, i);
        if (status == HEMI_AGAIN)
            all = HEMI_AGAIN;
        else if (status != HEM_OK)
            break_up(reach, status);
    }
    if (reach->broken)
        return end_broken(reach) ? HEM_OK : HEMI_AGAIN;
    if (all == HEM_OK && reach->op != NULL)
        finish(reach, HEM_OK);
    return all;
}

/* The lanes find out who has died, and end letters with it. */
void hemi_reach_trouble(hemi_task *task, uint64_t now_ns) {
    (void)task;
    (void)now_ns;
}

void hemi_reach_stop(hem_reach *reach, hem_status status) {
    hem_world *world = reach->world;
    const hemi_platform *platform = world->root->platform;
    if (reach->op == NULL)
        return;
    break_up(reach, status);
    while (!end_broken(reach)) {
        hemi_engine_unlock(world);
        platform->nap(platform->ctx, NAP_NS);
        hemi_engine_lock(world);
        for (uint32_t i = 0; i < reach->count; i++) {
            hemi_task *task = &reach->sides->side[i].lane.task;
            if (task->link == NULL)
                continue;
            (void)task->advance(task);
            task->trouble(task, 0);
        }
    }
}

static void start(struct hem_op *op) {
    reach_op *run = (reach_op *)(void *)op;
    hem_reach *reach = run->reach;
    size_t width = reach->row_bytes;
    reach->op = op;
    for (uint32_t i = 0; i < reach->count; i++) {
        hemi_partner *partner = &reach->partners[i];
        hemi_side *side = &reach->sides->side[i];
        unsigned char *to = partner->after ? run->after : run->before;
        if (partner->recv.rows > 0) {
            hemi_side_letter(side, &partner->in, HEMI_CALL_REACH, false,
                             to + partner->recv.from * width, partner->recv.rows * width);
            hemi_op_begin(&partner->in.op);
        }
        if (partner->send.rows > 0) {
            const unsigned char *from = run->rows + partner->send.from * width;
            hemi_side_letter(side, &partner->out, HEMI_CALL_REACH, true, (void *)(uintptr_t)from,
                             partner->send.rows * width);
            hemi_op_begin(&partner->out.op);
        }
    }
    if (hemi_reach_advance(&reach->task) != HEM_OK)
        hemi_engine_list(reach->world, &reach->task);
}

static void cancel(struct hem_op *op) {
    hem_reach *reach = ((reach_op *)(void *)op)->reach;
    hemi_reach_stop(reach, hemi_fail(HEM_ERR_REVOKED, "hem_reach_run: given up under way"));
}

static void forget(hemi_letter *letter) {
    if (!hemi_letter_is_running(letter))
        return;
    hemi_letter_forget(letter);
    letter->op.state = HEMI_OP_DONE;
}

static void destroy(struct hem_op *op) {
    hem_reach *reach = ((reach_op *)(void *)op)->reach;
    /* Running: the rank has ended without closing. */
    for (uint32_t i = 0; op->state == HEMI_OP_RUNNING && i < reach->count; i++) {
        forget(&reach->partners[i].out);
        forget(&reach->partners[i].in);
    }
    free(op);
}

static void where(struct hem_op *op, hemi_flight_note *note) {
    const hem_reach *reach = ((const reach_op *)(const void *)op)->reach;
    for (uint32_t i = 0; reach != NULL && i < reach->count; i++)
        if (look(reach, &reach->partners[i]) == HEMI_AGAIN) {
            const hemi_lane *lane = &reach->sides->side[i].lane;
            note->peer = (int32_t)reach->world->members[lane->peer];
            note->id = lane->channel;
            note->word = &hemi_rx_slot(&lane->rx.cursor)->stamp;
            note->wanted = lane->rx.cursor.slot_head + 1;
            return;
        }
}

static const hemi_op_type run_type = {HEMI_CALL_REACH, start, cancel, destroy, where};

static hem_status check(const hem_reach *reach, const void *rows, const void *before,
                        const void *after, const char *call) {
    if (reach == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: reach is NULL", call);
    if (reach->world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this reach was closed", call);
    if ((rows == NULL && reach->rows > 0) || (before == NULL && reach->before > 0) ||
        (after == NULL && reach->after > 0))
        return hemi_fail(HEM_ERR_ARG, "%s: a buffer that is needed is NULL", call);
    const hemi_device *device = hemi_line_device_peek(reach->world->root);
    if (device != NULL &&
        (hemi_line_is_device(device, rows) || hemi_line_is_device(device, before) ||
         hemi_line_is_device(device, after)))
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: rows in device memory are not fetched; copy them to host memory, or "
                         "pass them along a line",
                         call);
    return hemi_engine_check(reach->world, call);
}

static void fill_in(reach_op *run, hem_reach *reach, const void *rows, void *before, void *after) {
    run->reach = reach;
    run->rows = rows;
    run->before = before;
    run->after = after;
}

/* Under the lock. */
static hem_status begin(reach_op *run, const char *call) {
    hem_reach *reach = run->reach;
    if (reach->broken)
        return hemi_fail(HEM_ERR_REVOKED, "%s: it has been broken before: %.200s", call,
                         reach->text);
    if (reach->op != NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: a run of it is still under way", call);
    hemi_op_begin(&run->op);
    return HEM_OK;
}

hem_status hem_reach_start(hem_reach *reach, const void *rows, void *before, void *after,
                           hem_op **op_p) {
    static const char call[] = "hem_reach_start";
    hem_status status = check(reach, rows, before, after, call);
    if (status == HEM_OK && op_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: op_p is NULL", call);
    if (status != HEM_OK)
        return status;
    reach_op *run = calloc(1, sizeof *run);
    if (run == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "%s: no memory for an operation", call);
    hem_world *world = reach->world;
    fill_in(run, reach, rows, before, after);
    hemi_engine_lock(world);
    hemi_op_init(&run->op, world, &run_type, false, true);
    status = begin(run, call);
    if (status != HEM_OK)
        hemi_world_abandon(world, &run->op.child);
    hemi_engine_unlock(world);
    if (status == HEM_OK)
        *op_p = &run->op;
    else
        free(run);
    hemi_engine_settle(world);
    return status;
}

/* It was not done in time: that breaks the reach. */
static hem_status give_up(hem_world *world, hem_reach *reach, reach_op *run) {
    hemi_engine_lock(world);
    if (!hemi_op_is_done(&run->op))
        hemi_reach_stop(reach, hemi_fail(HEM_ERR_TIMEOUT, "hem_reach_run: not done in time"));
    hemi_engine_unlock(world);
    return hemi_op_result(&run->op);
}

hem_status hem_reach_run(hem_reach *reach, const void *rows, void *before, void *after,
                         int64_t timeout_ns) {
    static const char call[] = "hem_reach_run";
    hem_status status = hemi_check_timeout(timeout_ns, call);
    if (status == HEM_OK)
        status = check(reach, rows, before, after, call);
    if (status != HEM_OK)
        return status;
    hem_world *world = reach->world;
    reach_op run = {0};
    fill_in(&run, reach, rows, before, after);
    hemi_engine_lock(world);
    hemi_op_init(&run.op, world, &run_type, false, false);
    status = begin(&run, call);
    hemi_engine_unlock(world);
    if (status != HEM_OK)
        return status;
    status = hemi_engine_wait(world, &run.op, timeout_ns);
    return status == HEM_ERR_TIMEOUT ? give_up(world, reach, &run) : status;
}
