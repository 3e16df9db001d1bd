#include "base/status.h"
#include "plan/plan.h"

/* A range that a step reads or writes. */
typedef struct range {
    hemi_place at;
    size_t bytes;
} range;

static bool touch(range a, range b) {
    return a.bytes > 0 && b.bytes > 0 && a.at.space == b.at.space &&
           a.at.offset < b.at.offset + b.bytes && b.at.offset < a.at.offset + a.bytes;
}

static bool same_place(hemi_place a, hemi_place b) {
    return a.space == b.space && a.offset == b.offset;
}

static hem_status fail_step(const hemi_plan *plan, size_t round, size_t step, const char *why) {
    char text[160];
    hemi_step_text(plan, &plan->steps[step], text, sizeof text);
    return hemi_fail(HEM_ERR_ARG, "plan of rank %u, round %zu, step %zu (%s): %s", plan->rank,
                     round, step, text, why);
}

static bool inside(const hemi_plan *plan, hemi_place place, size_t bytes) {
    return (unsigned)place.space < HEMI_SPACES && bytes <= plan->rooms[place.space] &&
           place.offset <= plan->rooms[place.space] - bytes;
}

/* The sources of a step that has some: they exist, lie inside, and suit what is done with them. */
static const char *judge_sources(const hemi_plan *plan, const hemi_step *step) {
    if (step->source_count == 0 || step->first > plan->source_count ||
        step->source_count > plan->source_count - step->first)
        return "its sources are not in the table";
    if (step->kind == HEMI_STEP_COPY && step->source_count != 1)
        return "a copy has one source";
    if (step->kind == HEMI_STEP_REDUCE &&
        (plan->combine == NULL || plan->element == 0 || step->bytes % plan->element != 0))
        return "it cannot combine whole elements";
    for (size_t i = 0; i < step->source_count; i++) {
        hemi_place source = plan->sources[step->first + i];
        if (!inside(plan, source, step->bytes))
            return "a source lies outside of its space";
        bool same = step->kind == HEMI_STEP_REDUCE && same_place(source, step->at);
        if (!same && touch((range){source, step->bytes}, (range){step->at, step->bytes}))
            return "it writes into a part of its own source";
    }
    return NULL;
}

/* Whether a step is good by itself: NULL, or why not. */
static const char *judge(const hemi_plan *plan, const hemi_step *step) {
    if (step->kind < HEMI_STEP_SEND || step->kind > HEMI_STEP_REDUCE)
        return "there is no such kind of step";
    if (!inside(plan, step->at, step->bytes))
        return "it lies outside of its space";
    if (step->kind != HEMI_STEP_SEND && step->at.space == HEMI_INPUT)
        return "it writes to the input";
    if (!hemi_step_is_message(step))
        return judge_sources(plan, step);
    if (step->peer >= plan->size)
        return "there is no such rank";
    if (step->peer == plan->rank)
        return "a rank does not send to itself, it copies";
    return NULL;
}

/* Whether `step` reads something of `written`. */
static bool reads(const hemi_plan *plan, const hemi_step *step, range written) {
    if (step->kind == HEMI_STEP_SEND)
        return touch((range){step->at, step->bytes}, written);
    if (step->kind == HEMI_STEP_RECV)
        return false;
    for (size_t i = 0; i < step->source_count; i++)
        if (touch((range){plan->sources[step->first + i], step->bytes}, written))
            return true;
    return false;
}

static bool writes(const hemi_step *step, range written) {
    return step->kind != HEMI_STEP_SEND && touch((range){step->at, step->bytes}, written);
}

static hem_status check_round(const hemi_plan *plan, size_t round) {
    size_t start = hemi_plan_round_start(plan, round);
    size_t end = plan->ends[round];
    for (size_t i = start; i < end; i++) {
        const char *why = judge(plan, &plan->steps[i]);
        if (why != NULL)
            return fail_step(plan, round, i, why);
    }
    for (size_t i = start; i < end; i++) {
        if (plan->steps[i].kind == HEMI_STEP_SEND)
            continue;
        range written = {plan->steps[i].at, plan->steps[i].bytes};
        for (size_t k = start; k < end; k++)
            if (k != i &&
                (reads(plan, &plan->steps[k], written) || writes(&plan->steps[k], written)))
                return fail_step(plan, round, i, "it writes what another step of the round uses");
    }
    return HEM_OK;
}

hem_status hemi_plan_check(const hemi_plan *plan) {
    if (plan->size == 0 || plan->rank >= plan->size)
        return hemi_fail(HEM_ERR_ARG, "a plan of rank %u of %u", plan->rank, plan->size);
    size_t last = 0;
    for (size_t round = 0; round < plan->round_count; round++) {
        if (plan->ends[round] <= last || plan->ends[round] > plan->step_count)
            return hemi_fail(HEM_ERR_ARG, "plan of rank %u: round %zu ends at step %zu of %zu",
                             plan->rank, round, plan->ends[round], plan->step_count);
        hem_status status = check_round(plan, round);
        if (status != HEM_OK)
            return status;
        last = plan->ends[round];
    }
    if (last != plan->step_count)
        return hemi_fail(HEM_ERR_ARG, "plan of rank %u: %zu steps are in no round", plan->rank,
                         plan->step_count - last);
    return HEM_OK;
}
