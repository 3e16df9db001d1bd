#include "base/status.h"
#include "plan/plan.h"

#include <stdlib.h>

/*
 * The plans of all ranks are run without data, with the least help that a transport may give: a
 * message is done when both sides have come to it, and nothing is buffered. What ends here ends
 * everywhere.
 */

/* Where a rank stands. */
typedef struct stand {
    const hemi_plan *plan;
    size_t round;
    size_t left; /* messages of this round that are not done */
    bool *done;  /* per step */
} stand;

static bool is_over(const stand *s) {
    return s->round == s->plan->round_count;
}

/* Go to the next round that has messages to wait for. */
static void enter(stand *s) {
    for (; !is_over(s); s->round++) {
        s->left = 0;
        for (size_t i = hemi_plan_round_start(s->plan, s->round); i < s->plan->ends[s->round]; i++)
            s->left += hemi_step_is_message(&s->plan->steps[i]);
        if (s->left > 0)
            return;
    }
}

/* The first message of a kind with `peer` that is not done in this round, or NULL. */
static const hemi_step *first_open(const stand *s, hemi_step_kind kind, uint32_t peer) {
    if (is_over(s))
        return NULL;
    for (size_t i = hemi_plan_round_start(s->plan, s->round); i < s->plan->ends[s->round]; i++) {
        const hemi_step *step = &s->plan->steps[i];
        if (step->kind == kind && step->peer == peer && !s->done[i])
            return step;
    }
    return NULL;
}

static void close_step(stand *s, const hemi_step *step) {
    s->done[step - s->plan->steps] = true;
    s->left--;
}

static void leave(stand *s) {
    if (!is_over(s) && s->left == 0) {
        s->round++;
        enter(s);
    }
}

/* Do what can be done between a sender and a receiver now. */
static hem_status meet(stand *from, stand *to, bool *moved) {
    for (;;) {
        const hemi_step *send = first_open(from, HEMI_STEP_SEND, to->plan->rank);
        const hemi_step *recv = first_open(to, HEMI_STEP_RECV, from->plan->rank);
        if (send == NULL || recv == NULL)
            return HEM_OK;
        if (send->bytes != recv->bytes)
            return hemi_fail(HEM_ERR_MISMATCH,
                             "rank %u sends %zu bytes in its round %zu, rank %u expects %zu in "
                             "its round %zu",
                             from->plan->rank, send->bytes, from->round, to->plan->rank,
                             recv->bytes, to->round);
        close_step(from, send);
        close_step(to, recv);
        *moved = true;
    }
}

static hem_status find_stuck(const stand *stands, uint32_t size) {
    for (uint32_t r = 0; r < size; r++)
        if (!is_over(&stands[r]))
            return hemi_fail(HEM_ERR_MISMATCH,
                             "rank %u is stuck in round %zu of %zu with %zu messages to go", r,
                             stands[r].round, stands[r].plan->round_count, stands[r].left);
    return HEM_OK;
}

static hem_status run_all(stand *stands, uint32_t size) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t from = 0; from < size; from++)
            for (uint32_t to = 0; to < size; to++) {
                hem_status status = meet(&stands[from], &stands[to], &moved);
                if (status != HEM_OK)
                    return status;
            }
        for (uint32_t r = 0; r < size; r++)
            leave(&stands[r]);
    }
    return find_stuck(stands, size);
}

static hem_status make_stand(stand *s, const hemi_plan *plan, uint32_t rank, uint32_t size) {
    hem_status status = hemi_plan_check(plan);
    if (status != HEM_OK)
        return status;
    if (plan->rank != rank || plan->size != size)
        return hemi_fail(HEM_ERR_ARG, "plan %u of %u is that of rank %u of %u", rank, size,
                         plan->rank, plan->size);
    s->plan = plan;
    s->done = calloc(plan->step_count + 1, sizeof *s->done);
    if (s->done == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to check the plans of %u ranks", size);
    enter(s);
    return HEM_OK;
}

hem_status hemi_plans_check(const hemi_plan *plans, uint32_t size) {
    stand *stands = calloc(size + (size_t)1, sizeof *stands);
    if (stands == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to check the plans of %u ranks", size);
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < size && status == HEM_OK; r++)
        status = make_stand(&stands[r], &plans[r], r, size);
    if (status == HEM_OK)
        status = run_all(stands, size);
    for (uint32_t r = 0; r < size; r++)
        free(stands[r].done);
    free(stands);
    return status;
}
