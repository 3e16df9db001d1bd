#include "plan/plan.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

void hemi_plan_init(hemi_plan *plan, uint32_t rank, uint32_t size) {
    memset(plan, 0, sizeof *plan);
    plan->rank = rank;
    plan->size = size;
    plan->element = 1;
}

static void fail_memory(hemi_plan *plan) {
    if (plan->status == HEM_OK)
        plan->status = hemi_fail(HEM_ERR_MEMORY, "no memory for a plan of %zu steps and more",
                                 plan->step_count);
}

/* Make room for `more` elements after `count`. Returns NULL, and remembers that, if there is none. */
static void *grow(hemi_plan *plan, void *array, size_t count, size_t more, size_t element,
                  size_t *room) {
    if (count + more <= *room)
        return array;
    size_t wanted = *room * 2 > count + more ? *room * 2 : count + more;
    if (wanted < 16)
        wanted = 16;
    void *grown = reallocarray(array, wanted, element);
    if (grown == NULL) {
        fail_memory(plan);
        return NULL;
    }
    *room = wanted;
    return grown;
}

void hemi_plan_combine_by(hemi_plan *plan, size_t element, hemi_combine_fn combine, const void *arg,
                          size_t arg_bytes) {
    void *copy = malloc(arg_bytes > 0 ? arg_bytes : 1);
    if (copy == NULL) {
        fail_memory(plan);
        return;
    }
    if (arg_bytes > 0)
        memcpy(copy, arg, arg_bytes);
    free(plan->combine_arg);
    plan->combine_arg = copy;
    plan->combine = combine;
    plan->element = element;
}

/* The space of `place` is at least as long as what is used of it. */
static void use(hemi_plan *plan, hemi_place place, size_t bytes) {
    if (bytes > 0 && plan->rooms[place.space] < place.offset + bytes)
        plan->rooms[place.space] = place.offset + bytes;
}

static void add(hemi_plan *plan, const hemi_step *step) {
    if (plan->status != HEM_OK)
        return;
    hemi_step *steps =
        grow(plan, plan->steps, plan->step_count, 1, sizeof *steps, &plan->step_room);
    if (steps == NULL)
        return;
    plan->steps = steps;
    steps[plan->step_count++] = *step;
    use(plan, step->at, step->bytes);
}

static void add_message(hemi_plan *plan, hemi_step_kind kind, uint32_t peer, hemi_place at,
                        size_t bytes) {
    hemi_step step = {.kind = kind, .peer = peer, .at = at, .bytes = bytes};
    add(plan, &step);
}

void hemi_plan_send(hemi_plan *plan, uint32_t peer, hemi_place from, size_t bytes) {
    if (bytes > 0)
        add_message(plan, HEMI_STEP_SEND, peer, from, bytes);
}

void hemi_plan_recv(hemi_plan *plan, uint32_t peer, hemi_place to, size_t bytes) {
    if (bytes > 0)
        add_message(plan, HEMI_STEP_RECV, peer, to, bytes);
}

void hemi_plan_send_signal(hemi_plan *plan, uint32_t peer) {
    add_message(plan, HEMI_STEP_SEND, peer, hemi_place_at(HEMI_SCRATCH, 0), 0);
}

void hemi_plan_recv_signal(hemi_plan *plan, uint32_t peer) {
    add_message(plan, HEMI_STEP_RECV, peer, hemi_place_at(HEMI_SCRATCH, 0), 0);
}

void hemi_plan_source(hemi_plan *plan, hemi_place source) {
    if (plan->status != HEM_OK)
        return;
    hemi_place *sources =
        grow(plan, plan->sources, plan->source_count, 1, sizeof *sources, &plan->source_room);
    if (sources == NULL)
        return;
    plan->sources = sources;
    sources[plan->source_count++] = source;
    plan->named++;
}

/* A step that takes the sources that were named. */
static void add_local(hemi_plan *plan, hemi_step_kind kind, hemi_place to, size_t bytes) {
    hemi_step step = {.kind = kind,
                      .at = to,
                      .bytes = bytes,
                      .first = plan->source_count - plan->named,
                      .source_count = plan->named};
    plan->named = 0;
    if (bytes == 0) {
        plan->source_count = step.first;
        return;
    }
    for (size_t i = step.first; i < plan->source_count; i++)
        use(plan, plan->sources[i], bytes);
    add(plan, &step);
}

void hemi_plan_copy(hemi_plan *plan, hemi_place to, hemi_place from, size_t bytes) {
    hemi_plan_source(plan, from);
    add_local(plan, HEMI_STEP_COPY, to, bytes);
}

void hemi_plan_reduce(hemi_plan *plan, hemi_place to, hemi_place low, hemi_place high,
                      size_t bytes) {
    hemi_plan_source(plan, low);
    hemi_plan_source(plan, high);
    add_local(plan, HEMI_STEP_REDUCE, to, bytes);
}

void hemi_plan_reduce_sources(hemi_plan *plan, hemi_place to, size_t bytes) {
    add_local(plan, HEMI_STEP_REDUCE, to, bytes);
}

void hemi_plan_round(hemi_plan *plan) {
    size_t last = plan->round_count == 0 ? 0 : plan->ends[plan->round_count - 1];
    if (plan->status != HEM_OK || plan->step_count == last)
        return;
    size_t *ends = grow(plan, plan->ends, plan->round_count, 1, sizeof *ends, &plan->round_room);
    if (ends == NULL)
        return;
    plan->ends = ends;
    ends[plan->round_count++] = plan->step_count;
}

hem_status hemi_plan_finish(hemi_plan *plan) {
    hemi_plan_round(plan);
    hem_status status = plan->status;
    if (status != HEM_OK)
        hemi_plan_free(plan);
    return status;
}

void hemi_plan_free(hemi_plan *plan) {
    free(plan->steps);
    free(plan->ends);
    free(plan->sources);
    free(plan->combine_arg);
    memset(plan, 0, sizeof *plan);
}
