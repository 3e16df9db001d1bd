#include "coll/claim.h"
#include "coll/quick.h"
#include "coll/select.h"
#include "coll/settle.h"

#include <stdio.h>
#include <stdlib.h>

/* Posts are at most this many steps ahead of pulls, so that stages stay in the cache. */
#define AHEAD 4

static bool is_check(const hemi_collective *c, uint64_t i) {
    return c->checks && i == 0;
}

static bool is_closing(const hemi_collective *c, uint64_t i) {
    return c->closes && i == c->steps - 1;
}

static uint64_t body_step(const hemi_collective *c, uint64_t i) {
    return i - (c->checks ? 1 : 0);
}

static hem_status may_post(hemi_collective *c) {
    uint64_t i = c->next_post;
    if (i >= c->steps || i > c->next_pull + AHEAD || !hemi_context_may_begin(c->context, c->span))
        return HEMI_AGAIN;
    /* What a rank calls must be known to fit before anything of it is done. */
    if (c->checks && i > 0 && c->next_pull == 0)
        return HEMI_AGAIN;
    if (is_closing(c, i) && c->next_pull < i)
        return HEMI_AGAIN;
    if (!is_check(c, i) && !is_closing(c, i) && c->method->ready != NULL) {
        hem_status status = c->method->ready(c, body_step(c, i));
        if (status != HEM_OK)
            return status;
    }
    return hemi_context_may_post(c->context, hemi_step_number(c->number, i)) ? HEM_OK : HEMI_AGAIN;
}

/* The next collective may take lines now, and nobody else might look after it soon. */
static void has_posted(const hemi_collective *c) {
    const hemi_root *root = c->context->world->root;
    c->span->posted = true;
    if (c->span->next != NULL)
        hemi_wake(root, root->me);
}

static void post(hemi_collective *c) {
    uint64_t i = c->next_post++;
    if (is_check(c, i))
        hemi_claim_post(c);
    else if (is_closing(c, i))
        hemi_collective_publish(c, body_step(c, i), 0);
    else
        c->method->post(c, body_step(c, i));
    if (c->next_post == c->steps)
        has_posted(c);
}

static bool needs_root_only(const hemi_collective *c, uint64_t i) {
    return c->method->needs_root_only && !is_check(c, i) && !is_closing(c, i);
}

/* Whether the posts that step `next_pull` needs are there. */
static inline bool has_posts(hemi_collective *c) {
    uint64_t step = hemi_step_number(c->number, c->next_pull);
    if (needs_root_only(c, c->next_pull))
        return hemi_post_is(hemi_context_post(c->context, c->job.root, step), step);
    for (; c->next_rank < c->job.size; c->next_rank++)
        if (!hemi_post_is(hemi_context_post(c->context, c->next_rank, step), step))
            return false;
    return true;
}

static hem_status pull(hemi_collective *c) {
    uint64_t i = c->next_pull;
    if (is_check(c, i))
        return hemi_claim_compare(c);
    return is_closing(c, i) ? HEM_OK : c->method->pull(c, body_step(c, i));
}

static hem_status lay_out(hemi_collective *c) {
    c->body = c->method->lay_out(c);
    if (c->body == 0)
        return HEM_ERR_MEMORY;
    c->steps = c->body + (c->checks ? 1 : 0) + (c->closes ? 1 : 0);
    c->laid_out = true;
    return HEM_OK;
}

/* Everything that can be done now. HEM_OK: this rank has all that it needs. */
static hem_status work(hemi_collective *c) {
    if (__builtin_expect(c->context->known < c->job.size, 0)) {
        hem_status status = hemi_context_connect(c->context);
        if (status != HEM_OK)
            return status;
    }
    if (!c->laid_out) {
        hem_status status = lay_out(c);
        if (status != HEM_OK)
            return status;
        c->span->steps = c->steps;
    }
    if (c->method->uses_channels && !hemi_context_is_turn(c->context, c->span))
        return HEMI_AGAIN;
    while (c->next_pull < c->steps) {
        hem_status posted = may_post(c);
        if (posted == HEM_OK)
            post(c);
        else if (posted != HEMI_AGAIN)
            return posted;
        if (c->next_pull < c->next_post && has_posts(c)) {
            hem_status status = pull(c);
            if (status != HEM_OK && status != HEMI_ENOUGH)
                return status;
            uint64_t steps = status == HEM_OK ? 1 : c->steps - c->next_pull;
            c->next_pull += steps;
            c->next_rank = 0;
            /* The last one is finished when it is known how the collective ended: see end(). */
            if (c->next_pull < c->steps)
                hemi_context_finish(c->context, c->span, steps);
        } else if (posted != HEM_OK) {
            return HEMI_AGAIN;
        }
    }
    return HEM_OK;
}

/* It is over for this rank: the rest of its steps will not be posted. */
static void end(hemi_collective *c, hem_status status) {
    hemi_engine_unlist(c->context->world, &c->task);
    if (status != HEM_OK) {
        char sentence[HEMI_OP_TEXT];
        snprintf(sentence, sizeof sentence, "%s", hem_last_error());
        if (c->method->stop != NULL)
            c->method->stop(c);
        hemi_fail(status, "%s", sentence); /* what was cancelled is not the reason */
    }
    if (c->span != NULL) {
        has_posted(c);
        hemi_context_finish(c->context, c->span, c->steps - c->span->finished);
    }
    c->span = NULL;
    hemi_op_complete(&c->op, status);
}

static hem_status explain(const hemi_collective *c, hemi_verdict verdict) {
    const char *call = hemi_call_name(c->op.call);
    const hem_world *world = c->context->world;
    if (verdict.status == HEM_ERR_PEER && verdict.rank < c->job.size)
        return hemi_world_fail_peer(world, verdict.rank, call);
    if (verdict.status == HEM_ERR_TIMEOUT)
        return hemi_fail(verdict.status, "%s: rank %u did not come in time", call, verdict.rank);
    if (verdict.status == HEM_ERR_REVOKED && verdict.doubted)
        return hemi_fail(verdict.status, "%s: rank %u cancelled it", call, verdict.rank);
    return verdict.status == HEM_ERR_REVOKED
               ? hemi_world_fail_revoked(world, call)
               : hemi_fail(verdict.status, "%s: rank %u could not go on", call, verdict.rank);
}

/* This rank has all that it needs, and so it has succeeded unless somebody gave up before. */
static hem_status conclude(hemi_collective *c) {
    if (__builtin_expect(c->context->world->root->fence, 0))
        hemi_fence_seq_cst();
    else
        hemi_compiler_barrier();
    hemi_verdict verdict = hemi_settle_read(c->context, c->number);
    if (__builtin_expect(verdict.status == HEMI_AGAIN && !verdict.doubted, 1))
        return HEM_OK;
    if (verdict.status == HEMI_AGAIN)
        verdict = hemi_settle_propose(c->context, c->number, HEM_OK, c->context->rank);
    return verdict.status == HEM_OK ? HEM_OK : explain(c, verdict);
}

/* Whose fault a failure is that this rank has found. */
static uint32_t blame(const hemi_collective *c, hem_status status) {
    const hem_world *world = c->context->world;
    for (uint32_t r = 0; status == HEM_ERR_PEER && r < world->size; r++)
        if (!hemi_liveness_may_come(&world->root->arena, world->members[r]))
            return r;
    for (uint32_t r = 0; status == HEM_ERR_PEER && r < world->size; r++)
        if (!hemi_world_may_come(world, r))
            return r;
    return c->context->rank;
}

static hem_status advance(hemi_task *task) {
    hemi_collective *c =
        (hemi_collective *)(void *)((unsigned char *)task - offsetof(hemi_collective, task));
    hem_status status = work(c);
    if (status == HEMI_AGAIN)
        return status;
    if (status == HEM_OK)
        status = conclude(c);
    else if (!is_check(c, c->next_pull) || status != HEM_ERR_MISMATCH)
        /* Something is wrong here: the others must hear of it. What everybody called, they see. */
        status = hemi_collective_give_up(c, status, blame(c, status));
    if (status != HEMI_AGAIN)
        end(c, status);
    return status;
}

hem_status hemi_collective_give_up(hemi_collective *c, hem_status why, uint32_t rank) {
    const hem_world *world = c->context->world;
    char sentence[HEMI_OP_TEXT];
    snprintf(sentence, sizeof sentence, "%s", hem_last_error());
    hem_status status = hemi_settle_doubt(c->context, c->number);
    if (status != HEM_OK)
        return hemi_world_fail_revoked(world, hemi_call_name(c->op.call));
    bool outside = why == HEM_ERR_TIMEOUT || why == HEM_ERR_PEER || why == HEM_ERR_REVOKED;
    hem_status now = outside ? work(c) : why;
    hemi_verdict verdict =
        hemi_settle_propose(c->context, c->number, now == HEM_OK ? HEM_OK : why, rank);
    if (verdict.status == HEM_OK) {
        c->settled = true;
        return now == HEM_OK ? HEM_OK : HEMI_AGAIN;
    }
    /* Others may sleep in a wait that this failure ends. */
    hemi_liveness_alarm(&world->root->arena, world->root->platform);
    if (!outside && verdict.rank == rank && verdict.status == why)
        return hemi_fail(why, "%s", sentence);
    return explain(c, verdict);
}

/* Who has not done what this rank waits for; the size of the world if nobody is to blame. */
static uint32_t find_missing(const hemi_collective *c) {
    const hemi_context *context = c->context;
    if (context->known < context->size)
        return hemi_context_unknown(context);
    uint64_t step = hemi_step_number(c->number, c->next_pull);
    for (uint32_t r = 0; r < context->size && c->next_pull < c->next_post; r++) {
        bool needed = !needs_root_only(c, c->next_pull) || r == c->job.root;
        if (needed && !hemi_post_is(hemi_context_post(context, r, step), step))
            return r;
    }
    if (c->next_post < c->steps)
        return hemi_context_slowest(context, hemi_step_number(c->number, c->next_post));
    return context->size;
}

/* Like find_missing, but only those who cannot come any more. */
static uint32_t find_dead(const hemi_collective *c) {
    const hemi_context *context = c->context;
    const hem_world *world = context->world;
    uint64_t step = hemi_step_number(c->number, c->next_pull);
    if (c->lost != 0 && !hemi_world_may_come(world, c->lost - 1))
        return c->lost - 1;
    for (uint32_t r = 0; r < context->size; r++) {
        if (hemi_world_may_come(world, r))
            continue;
        if (context->known < context->size) {
            if (r == hemi_context_unknown(context))
                return r;
            continue;
        }
        bool needed = !needs_root_only(c, c->next_pull) || r == c->job.root;
        if (c->next_pull < c->next_post && needed &&
            !hemi_post_is(hemi_context_post(context, r, step), step))
            return r;
        if (c->next_post < c->steps && c->next_post == c->next_pull &&
            hemi_context_slowest(context, hemi_step_number(c->number, c->next_post)) == r)
            return r;
    }
    return context->size;
}

static void trouble(hemi_task *task, uint64_t now_ns) {
    hemi_collective *c =
        (hemi_collective *)(void *)((unsigned char *)task - offsetof(hemi_collective, task));
    const hem_world *world = c->context->world;
    hem_status status = HEMI_AGAIN;
    hemi_verdict verdict = hemi_settle_read(c->context, c->number);
    uint32_t dead = find_dead(c);
    if (verdict.status != HEMI_AGAIN && verdict.status != HEM_OK)
        status = explain(c, verdict);
    else if (hemi_load32_acquire(&world->team->revoked) != 0)
        status = hemi_world_fail_revoked(world, hemi_call_name(c->op.call));
    else if (dead < c->job.size && !c->settled)
        status = hemi_collective_give_up(c, HEM_ERR_PEER, dead);
    else if (now_ns >= task->deadline_ns && !c->settled)
        status = hemi_collective_give_up(c, HEM_ERR_TIMEOUT, find_missing(c));
    if (status != HEMI_AGAIN)
        end(c, status);
}

void hemi_collective_expire(hemi_collective *c) {
    if (hemi_op_is_done(&c->op))
        return;
    hem_status status = hemi_collective_give_up(c, HEM_ERR_TIMEOUT, find_missing(c));
    if (status != HEMI_AGAIN)
        end(c, status);
}

static void start(struct hem_op *op) {
    hemi_collective *c = (hemi_collective *)(void *)op;
    hemi_context *context = c->context;
    const hemi_platform *platform = context->world->root->platform;
    c->span = hemi_context_take(context, c->steps, c->method->uses_channels);
    c->number = c->span->number;
    c->next_post = 0;
    c->next_pull = 0;
    c->next_rank = 0;
    c->settled = false;
    c->lost = 0;
    c->task.deadline_ns = UINT64_MAX;
    if (c->timeout_ns > 0)
        c->task.deadline_ns = platform->now(platform->ctx) + (uint64_t)c->timeout_ns;
    if (c->method->begin != NULL)
        c->method->begin(c);
    if (advance(&c->task) == HEMI_AGAIN)
        hemi_engine_list(context->world, &c->task);
}

void hemi_collective_resume(hemi_collective *c, const struct hemi_quick *posted) {
    hemi_quick_adopt(posted, c);
    hemi_store32_relaxed(&c->op.state, HEMI_OP_RUNNING);
    if (advance(&c->task) == HEMI_AGAIN)
        hemi_engine_list(c->context->world, &c->task);
}

static void cancel(struct hem_op *op) {
    hemi_collective *c = (hemi_collective *)(void *)op;
    hem_status status = hemi_collective_give_up(c, HEM_ERR_REVOKED, c->context->rank);
    /* If all others have it, they have read all that they need of this rank. */
    end(c, status == HEMI_AGAIN ? HEM_OK : status);
}

static void destroy(struct hem_op *op) {
    hemi_collective *c = (hemi_collective *)(void *)op;
    hemi_collective_clear(c);
    free(c);
}

static void where(struct hem_op *op, hemi_flight_note *note) {
    const hemi_collective *c = (const hemi_collective *)(const void *)op;
    const hemi_context *context = c->context;
    uint32_t missing = find_missing(c);
    note->call = HEMI_CALL_COLL + (uint32_t)c->job.kind;
    note->fingerprint = c->number;
    if (missing >= context->size)
        return;
    note->peer = (int32_t)context->world->members[missing];
    note->wanted = hemi_step_number(c->number, c->next_pull);
    note->compare = HEM_GE;
    note->word = context->known < context->size
                     ? &context->world->cells[missing].hub
                     : &hemi_context_post(context, missing, note->wanted)->stamp;
}

const hemi_op_type hemi_collective_type = {
    .call = HEMI_CALL_COLL,
    .start = start,
    .cancel = cancel,
    .destroy = destroy,
    .where = where,
};

hem_status hemi_collective_make(hem_world *world, hemi_job *job, hemi_collective *c) {
    c->job = *job;
    memset(job, 0, sizeof *job);
    hemi_engine_lock(world);
    hem_status status = hemi_context_find(world, &c->context);
    if (status == HEM_OK)
        status = hemi_hub_stages(world);
    /* Blocking calls may share one; handles bring one each. */
    if (status == HEM_OK && (c->context->pool == NULL || c->op.owned))
        status = hemi_context_stock(c->context);
    hemi_engine_unlock(world);
    if (status == HEM_OK)
        status = hemi_select(world, &c->job, c->context->stage_bytes, &c->method, &c->algorithm);
    if (status != HEM_OK)
        return status;
    c->task.advance = advance;
    c->task.trouble = trouble;
    c->checks = world->root->settings.check;
    c->steps = 1; /* until it is laid out */
    if (c->method->prepare != NULL)
        status = c->method->prepare(c);
    /* If the peers are known already, a run of it will allocate nothing. */
    hemi_engine_lock(world);
    if (status == HEM_OK && c->context->known == c->context->size)
        status = lay_out(c);
    hemi_engine_unlock(world);
    return status;
}

void hemi_collective_clear(hemi_collective *c) {
    if (c->method != NULL && c->method->release != NULL)
        c->method->release(c);
    free(c->copy);
    c->copy = NULL;
    hemi_job_clear(&c->job);
}
