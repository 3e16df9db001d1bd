#include "plan/executor.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64

/* The most messages that any round of the plan has. */
static size_t most_messages(const hemi_plan *plan) {
    size_t most = 0;
    for (size_t round = 0; round < plan->round_count; round++) {
        size_t count = 0;
        for (size_t i = hemi_plan_round_start(plan, round); i < plan->ends[round]; i++)
            count += hemi_step_is_message(&plan->steps[i]);
        most = count > most ? count : most;
    }
    return most;
}

static unsigned char *address(const hemi_run *run, hemi_place place) {
    unsigned char *space = run->spaces[place.space];
    /* Of a space that is not used there is no address to add to. */
    return space == NULL ? NULL : space + place.offset;
}

void hemi_run_rebind(hemi_run *run, const void *input, void *output) {
    /* Nobody writes to the input: hemi_plan_check holds that. */
    run->spaces[HEMI_INPUT] = (unsigned char *)(uintptr_t)input;
    run->spaces[HEMI_OUTPUT] = output;
    for (size_t i = 0; i < run->plan->source_count; i++)
        run->sources[i] = address(run, run->plan->sources[i]);
}

static hem_status allocate(hemi_run *run) {
    const hemi_plan *plan = run->plan;
    size_t scratch = (plan->rooms[HEMI_SCRATCH] + ALIGN - 1) / ALIGN * ALIGN;
    run->letter_room = most_messages(plan);
    run->letters = calloc(run->letter_room + 1, sizeof *run->letters);
    run->carried = calloc(run->letter_room + 1, sizeof(hemi_step *));
    run->sources = calloc(plan->source_count + 1, sizeof *run->sources);
    run->spaces[HEMI_SCRATCH] = aligned_alloc(ALIGN, scratch + ALIGN);
    if (run->letters == NULL || run->carried == NULL || run->sources == NULL ||
        run->spaces[HEMI_SCRATCH] == NULL)
        return hemi_fail(HEM_ERR_MEMORY,
                         "no memory for a plan of %zu steps with %zu bytes of scratch",
                         plan->step_count, plan->rooms[HEMI_SCRATCH]);
    return HEM_OK;
}

/* Every lane that the plan uses, so that no message of a run has to make it. Under the lock. */
hem_status hemi_run_use_channel(hemi_run *run, uint32_t channel) {
    const hemi_plan *plan = run->plan;
    hem_status status = HEM_OK;
    if (run->channel == channel)
        return HEM_OK;
    for (size_t i = 0; i < plan->step_count && status == HEM_OK; i++)
        if (hemi_step_is_message(&plan->steps[i]))
            status = hemi_lane_ready(run->world, plan->steps[i].peer, channel);
    if (status == HEM_OK)
        run->channel = channel;
    return status;
}

hem_status hemi_run_prepare(hemi_run *run, hem_world *world, const hemi_plan *plan,
                            const void *input, void *output) {
    memset(run, 0, sizeof *run);
    run->world = world;
    run->plan = plan;
    run->channel = UINT32_MAX; /* none yet */
    hem_status status = allocate(run);
    if (status == HEM_OK) {
        hemi_engine_lock(world);
        status = hemi_run_use_channel(run, HEMI_CHANNEL_OWN);
        hemi_engine_unlock(world);
    }
    if (status != HEM_OK) {
        hemi_run_free(run);
        return status;
    }
    hemi_run_rebind(run, input, output);
    return HEM_OK;
}

void hemi_run_free(hemi_run *run) {
    free(run->letters);
    free(run->carried);
    free(run->sources);
    free(run->spaces[HEMI_SCRATCH]);
    memset(run, 0, sizeof *run);
}

static void begin_messages(hemi_run *run, hemi_step_kind kind) {
    const hemi_plan *plan = run->plan;
    for (size_t i = hemi_plan_round_start(plan, run->round); i < plan->ends[run->round]; i++) {
        const hemi_step *step = &plan->steps[i];
        if (step->kind != kind)
            continue;
        hemi_letter *letter = &run->letters[run->begun];
        run->carried[run->begun++] = step;
        hemi_letter_init(letter, run->world, kind == HEMI_STEP_SEND, step->peer, run->channel,
                         address(run, step->at), step->bytes);
        letter->tag = run->tag;
        hemi_op_begin(&letter->op);
    }
}

static void do_local(hemi_run *run, const hemi_step *step) {
    const hemi_plan *plan = run->plan;
    const void *const *sources = &run->sources[step->first];
    if (step->kind == HEMI_STEP_COPY)
        memcpy(address(run, step->at), sources[0], step->bytes);
    else if (step->kind == HEMI_STEP_REDUCE)
        plan->combine(plan->combine_arg, address(run, step->at), sources, step->source_count,
                      step->bytes / plan->element);
}

/*
 * Receives first, so that what arrives has a place; then sends; and while they are on their way, what
 * this rank does by itself.
 */
static void begin_round(hemi_run *run) {
    const hemi_plan *plan = run->plan;
    run->begun = 0;
    run->finished = 0;
    begin_messages(run, HEMI_STEP_RECV);
    begin_messages(run, HEMI_STEP_SEND);
    for (size_t i = hemi_plan_round_start(plan, run->round); i < plan->ends[run->round]; i++)
        do_local(run, &plan->steps[i]);
}

void hemi_run_start(hemi_run *run) {
    run->state = HEMI_RUN_RUNNING;
    run->status = HEM_OK;
    run->round = 0;
    run->begun = 0;
    run->finished = 0;
    if (run->plan->round_count > 0)
        begin_round(run);
}

/* How a message that is done went. */
static hem_status judge(const hemi_letter *letter, const hemi_step *step) {
    if (letter->op.status != HEM_OK)
        return hemi_op_result(&letter->op);
    if (step->kind == HEMI_STEP_SEND || letter->op.bytes == step->bytes)
        return HEM_OK;
    return hemi_fail(HEM_ERR_MISMATCH,
                     "rank %u sent %zu bytes for a collective in which this rank expects %zu: the "
                     "ranks did not call the same thing",
                     step->peer, letter->op.bytes, step->bytes);
}

/*
 * Look at the messages of this round. All of them: one that failed ends the run even if another one,
 * which may never come, stands before it.
 */
static hem_status finish_round(hemi_run *run) {
    bool all = true;
    for (size_t i = run->finished; i < run->begun; i++) {
        const hemi_letter *letter = &run->letters[i];
        if (!hemi_op_is_done(&letter->op)) {
            all = false;
            continue;
        }
        hem_status status = judge(letter, run->carried[i]);
        if (status != HEM_OK)
            return status;
        if (all)
            run->finished = i + 1;
    }
    return all ? HEM_OK : HEMI_AGAIN;
}

hem_status hemi_run_advance(hemi_run *run) {
    if (run->state == HEMI_RUN_CANCELLING)
        return HEMI_AGAIN;
    if (run->state != HEMI_RUN_RUNNING)
        return run->status;
    while (run->round < run->plan->round_count) {
        hem_status status = finish_round(run);
        if (status == HEMI_AGAIN)
            return HEMI_AGAIN;
        if (status != HEM_OK) {
            run->state = HEMI_RUN_FAILED;
            run->status = status;
            return status;
        }
        if (++run->round < run->plan->round_count)
            begin_round(run);
    }
    run->state = HEMI_RUN_IDLE;
    return HEM_OK;
}

void hemi_run_cancel(hemi_run *run) {
    if (run->state != HEMI_RUN_RUNNING && run->state != HEMI_RUN_FAILED)
        return;
    run->state = HEMI_RUN_CANCELLING;
    /* From the last one on: so none of them gets to the head of its queue while others go. */
    for (size_t i = run->begun; i-- > 0;) {
        struct hem_op *op = &run->letters[i].op;
        if (!hemi_op_is_done(op))
            op->type->cancel(op);
    }
    run->begun = 0;
    run->finished = 0;
    run->state = HEMI_RUN_IDLE;
    if (run->status == HEM_OK)
        run->status = HEM_ERR_REVOKED;
}

int hemi_run_waits_for(const hemi_run *run) {
    if (run->state != HEMI_RUN_RUNNING || run->finished >= run->begun)
        return -1;
    return (int)run->carried[run->finished]->peer;
}
