/* A line as a task: what moves its rounds on, and what ends them. */
#include "halo/line/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NAP_NS 50000
/* Steps before others get their turn. */
#define TURN 64

bool hemi_line_lacks(const hem_line *line, const hemi_round *round, int s) {
    if (!hemi_line_has(line, s))
        return false;
    return line->in[s].received < round->number || line->out[s].sent < round->number ||
           /* Pairs with the release in accept. */
           (round->needs[s] != 0 &&
            hemi_load64_acquire(&line->sides->side[s].told->accepted) < round->needs[s]);
}

/* Whether all ranks are known to be done, and for so long that all ranks know it. */
static bool all_done(const hem_line *line, uint64_t number) {
    uint64_t latest = line->done;
    if (latest == 0)
        return false;
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        if (hemi_line_ends(line, s))
            continue;
        if (line->in[s].done == 0)
            return false;
        if (line->in[s].done > latest)
            latest = line->in[s].done;
    }
    return number >= latest + line->world->size - 1;
}

/* Take the oldest round off the queue. It may be gone as soon as it is completed. */
static void finish(hem_line *line, hem_status status) {
    hemi_round *round = line->head;
    line->head = round->next;
    round->line = NULL;
    hemi_line_mark_drop(&round->mark);
    hemi_op_complete(&round->op, status);
}

static bool finish_done(hem_line *line) {
    bool moved = false;
    while (line->head != NULL && !hemi_line_lacks(line, line->head, HEMI_LEFT) &&
           !hemi_line_lacks(line, line->head, HEMI_RIGHT)) {
        line->head->all_done = all_done(line, line->head->number);
        finish(line, HEM_OK);
        moved = true;
    }
    return moved;
}

/* What ended the line, as the round `number` is told. */
static hem_status reason(const hem_line *line, uint64_t number) {
    if (number == line->fault)
        return hemi_fail(line->why, "%s", line->text);
    return hemi_fail(HEM_ERR_REVOKED,
                     "hem_line_exchange: the line was broken in round %" PRIu64 ": %.160s",
                     line->fault, line->text);
}

static bool is_busy(hem_line *line) {
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        if (hemi_letter_is_running(&line->out[s].letter) ||
            hemi_letter_is_running(&line->in[s].letter) || line->in[s].calling)
            return true;
        /* Of the device nobody rings. */
        if (hemi_line_stage_settle(&line->out[s].stage) == HEMI_AGAIN ||
            hemi_line_stage_settle(&line->in[s].stage) == HEMI_AGAIN) {
            hemi_line_watch(line);
            return true;
        }
    }
    return false;
}

/* After a break: all rounds end as soon as nobody touches their memory. */
static bool end_all(hem_line *line) {
    if (is_busy(line))
        return false;
    while (line->head != NULL)
        finish(line, reason(line, line->head->number));
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        hemi_line_in *in = &line->in[s];
        line->out[s].at = NULL;
        in->at = NULL;
        hemi_line_mark_drop(&in->mark);
        free(in->bounce);
        in->bounce = NULL;
    }
    return true;
}

static void drop(hemi_letter *letter) {
    if (!hemi_letter_is_running(letter))
        return;
    hem_status status = hemi_fail(HEM_ERR_REVOKED, "hem_line_exchange: the line was broken");
    hemi_letter_drop(letter, status, hemi_lane_is_dead(letter->lane));
}

void hemi_line_break(hem_line *line, hem_status status, uint64_t number) {
    if (line->broken)
        return;
    line->broken = true;
    line->why = status;
    line->fault = number;
    (void)snprintf(line->text, sizeof line->text, "%s", hem_last_error());
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        drop(&line->out[s].letter);
        drop(&line->in[s].letter);
    }
    hemi_sides_break(line->sides);
}

/* The neighbour has given up: why, as far as it says. */
static void break_gone(hem_line *line, int s, uint64_t number) {
    const hemi_side *side = &line->sides->side[s];
    uint64_t refused = hemi_load64_acquire(&side->told->refused);
    hem_status status;
    if (refused != 0) {
        number = refused;
        status =
            hemi_fail(HEM_ERR_MEMORY,
                      "hem_line_exchange: rank %u has no memory for the payload of round %" PRIu64,
                      side->lane.peer, refused);
    } else {
        status = hemi_fail(HEM_ERR_REVOKED, "hem_line_exchange: rank %u has given the line up",
                           side->lane.peer);
    }
    hemi_line_break(line, status, number);
}

void hemi_line_break_side(hem_line *line, int s, hem_status status, uint64_t number) {
    if (hemi_side_is_gone(&line->sides->side[s]))
        break_gone(line, s, number);
    else
        hemi_line_break(line, status, number);
}

static bool step(hem_line *line) {
    bool moved = false;
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        moved = (!line->broken && hemi_line_send(line, s)) || moved;
        moved = (!line->broken && hemi_line_recv(line, s)) || moved;
    }
    return moved;
}

/* Whether the round waits for the neighbour, and not for an allocator or for a buffer's stream. */
static bool waits_for(const hem_line *line, const hemi_round *round, int s) {
    const hemi_line_in *in = &line->in[s];
    bool here = in->phase == HEMI_IN_ALLOC || in->held;
    return hemi_line_lacks(line, round, s) &&
           !(here && in->received < round->number && line->out[s].sent >= round->number);
}

/* Take all that a neighbour has published that will publish no more. @return whether the oldest round
 * still waits for it. */
static bool exhaust(hem_line *line, int s) {
    hemi_task *lane = &line->sides->side[s].lane.task;
    bool moved = true;
    while (moved && !line->broken) {
        while (lane->advance(lane) == HEMI_MORE)
            continue;
        moved = step(line);
    }
    if (!line->broken)
        finish_done(line);
    return !line->broken && line->head != NULL && waits_for(line, line->head, s);
}

static void look_for_gone(hem_line *line, const bool gone[2]) {
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++)
        if (gone[s] && line->head != NULL && exhaust(line, s))
            break_gone(line, s, line->head->number);
}

hem_status hemi_line_advance(hemi_task *task) {
    hem_line *line = (hem_line *)(void *)((char *)task - offsetof(hem_line, task));
    hemi_engine *engine = &line->world->engine;
    bool gone[2];
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++)
        gone[s] = hemi_line_has(line, s) && hemi_side_is_gone(&line->sides->side[s]);
    int turns = 0;
    while (turns < TURN && step(line))
        turns++;
    bool moved = (!line->broken && finish_done(line)) || turns > 0;
    if (moved) {
        hemi_store32_relaxed(&engine->moves, engine->moves + 1);
        line->moved = true;
    }
    if (turns == TURN && !line->broken)
        return HEMI_MORE;
    look_for_gone(line, gone);
    if (line->broken)
        return end_all(line) ? HEM_OK : HEMI_AGAIN;
    return line->head == NULL ? HEM_OK : HEMI_AGAIN;
}

void hemi_line_trouble(hemi_task *task, uint64_t now_ns) {
    hem_line *line = (hem_line *)(void *)((char *)task - offsetof(hem_line, task));
    hem_world *world = line->world;
    (void)now_ns;
    bool revoked = hemi_load32_acquire(&world->team->revoked) != 0;
    bool lost[2] = {false, false};
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++)
        lost[s] =
            hemi_line_has(line, s) && !hemi_world_may_come(world, line->sides->side[s].lane.peer);
    if (!revoked && !lost[HEMI_LEFT] && !lost[HEMI_RIGHT])
        return;
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        uint32_t peer = line->sides->side[s].lane.peer;
        if (lost[s] && line->head != NULL && exhaust(line, s))
            hemi_line_break_side(line, s, hemi_world_fail_peer(world, peer, "hem_line_exchange"),
                                 line->head->number);
    }
    hem_status status = hemi_line_advance(task);
    if (revoked && line->head != NULL)
        hemi_line_break(line, hemi_world_fail_revoked(world, "hem_line_exchange"),
                        line->head->number);
    if (line->broken)
        status = end_all(line) ? HEM_OK : HEMI_AGAIN;
    if (status == HEM_OK)
        hemi_engine_unlist(world, task);
}

void hemi_line_await_end(hem_line *line) {
    hem_world *world = line->world;
    const hemi_platform *platform = world->root->platform;
    while (!end_all(line)) {
        hemi_engine_unlock(world);
        platform->nap(platform->ctx, NAP_NS);
        hemi_engine_lock(world);
        for (uint32_t s = 0; s < line->sides->count; s++) {
            hemi_task *task = &line->sides->side[s].lane.task;
            if (task->link == NULL)
                continue;
            (void)task->advance(task);
            task->trouble(task, 0);
        }
    }
}
