#include "plan/plan.h"

#include <inttypes.h>

static const char *space_name(hemi_space space) {
    static const char *const names[HEMI_SPACES] = {"input", "output", "scratch"};
    return (unsigned)space < HEMI_SPACES ? names[space] : "nowhere";
}

/* Like snprintf at the end of what is in `text`; what does not fit is cut. */
static void append(char *text, size_t room, size_t *length, hemi_place place, const char *before) {
    int more = snprintf(text + *length, room - *length, "%s%s+%zu", before, space_name(place.space),
                        place.offset);
    if (more > 0)
        *length = *length + (size_t)more < room ? *length + (size_t)more : room - 1;
}

static void sources_text(const hemi_plan *plan, const hemi_step *step, char *text, size_t room,
                         size_t *length) {
    /* A step that the checker complains of may name sources that there are not. */
    for (size_t i = 0; i < step->source_count && step->first + i < plan->source_count; i++)
        append(text, room, length, plan->sources[step->first + i], i == 0 ? " = " : " op ");
}

void hemi_step_text(const hemi_plan *plan, const hemi_step *step, char *text, size_t room) {
    static const char *const names[] = {
        [HEMI_STEP_SEND] = "send",
        [HEMI_STEP_RECV] = "recv",
        [HEMI_STEP_COPY] = "copy",
        [HEMI_STEP_REDUCE] = "reduce",
    };
    if (room == 0)
        return;
    bool known = step->kind >= HEMI_STEP_SEND && step->kind <= HEMI_STEP_REDUCE;
    int written =
        snprintf(text, room, "%-6s %zu bytes ", known ? names[step->kind] : "?", step->bytes);
    size_t length = written < 0 ? 0 : (size_t)written;
    if (length >= room)
        return;
    append(text, room, &length, step->at, "");
    if (hemi_step_is_message(step))
        (void)snprintf(text + length, room - length, " %s %" PRIu32,
                       step->kind == HEMI_STEP_SEND ? "to" : "from", step->peer);
    else
        sources_text(plan, step, text, room, &length);
}

void hemi_plan_print(const hemi_plan *plan, FILE *file) {
    (void)fprintf(file,
                  "rank %" PRIu32 " of %" PRIu32 ": %zu steps in %zu rounds, %zu bytes of input, "
                  "%zu of output, %zu of scratch\n",
                  plan->rank, plan->size, plan->step_count, plan->round_count,
                  plan->rooms[HEMI_INPUT], plan->rooms[HEMI_OUTPUT], plan->rooms[HEMI_SCRATCH]);
    for (size_t round = 0; round < plan->round_count; round++) {
        (void)fprintf(file, "round %zu\n", round);
        for (size_t i = hemi_plan_round_start(plan, round); i < plan->ends[round]; i++) {
            char text[512];
            hemi_step_text(plan, &plan->steps[i], text, sizeof text);
            (void)fprintf(file, "  %s\n", text);
        }
    }
}
