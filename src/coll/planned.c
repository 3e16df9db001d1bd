/*
 * A collective that runs a plan over channels, then a step over the board in which everybody says
 * that it has its result; so all agree on how it ended.
 */
#include "coll/mail.h"
#include "coll/select.h"
#include "plan/executor.h"

#include <stdlib.h>

typedef struct planned {
    hemi_plan plan;
    hemi_run run;
    hem_status status; /* of the run; HEMI_AGAIN before its end */
    bool begun;
} planned;

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    (void)job;
    (void)stage_bytes;
    return true;
}

static uint64_t lay_out(hemi_collective *c) {
    (void)c;
    return 1;
}

static hem_status prepare(hemi_collective *c) {
    planned *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a plan");
    hem_status status = c->algorithm->plan(&c->job, &p->plan);
    if (status == HEM_OK) {
        const void *input = c->job.send != NULL ? c->job.send : c->job.recv;
        status = hemi_run_prepare(&p->run, c->context->world, &p->plan, input, c->job.recv);
        if (status != HEM_OK)
            hemi_plan_free(&p->plan);
    }
    if (status != HEM_OK) {
        free(p);
        return status;
    }
    c->state = p;
    return HEM_OK;
}

static void begin(hemi_collective *c) {
    planned *p = c->state;
    p->begun = false;
    p->status = HEMI_AGAIN;
}

/* The step of the board is posted when the plan has run. */
static hem_status ready(hemi_collective *c, uint64_t k) {
    planned *p = c->state;
    (void)k;
    if (!p->begun) {
        p->begun = true;
        p->run.tag = hemi_mail_tag(c->number);
        hemi_run_start(&p->run);
    }
    if (p->status == HEMI_AGAIN)
        p->status = hemi_run_advance(&p->run);
    return p->status;
}

static void post(hemi_collective *c, uint64_t k) {
    hemi_collective_refer(c, k, 0, 0);
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    (void)c;
    (void)k;
    return HEM_OK;
}

static void stop(hemi_collective *c) {
    planned *p = c->state;
    if (p->begun)
        hemi_run_cancel(&p->run);
}

static void release(hemi_collective *c) {
    planned *p = c->state;
    if (p == NULL)
        return;
    hemi_run_free(&p->run);
    hemi_plan_free(&p->plan);
    free(p);
    c->state = NULL;
}

const hemi_method hemi_planned = {
    .name = "plan",
    .fits = fits,
    .lay_out = lay_out,
    .ready = ready,
    .post = post,
    .pull = pull,
    .uses_channels = true,
    .prepare = prepare,
    .begin = begin,
    .stop = stop,
    .release = release,
};
