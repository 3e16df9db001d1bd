#include "coll/quick.h"
#include "base/copy.h"
#include "coll/settle.h"

#define RANKS_MAX HEMI_SOURCES_FEW
/* How often to look for the others before an operation is made. */
#define POLLS 200
/* The most bytes that a rank posts this way; what does not fit into the line goes into the stage. */
#define BYTES_MAX 4096
/* Lines of each stage that are asked for while waiting, so that they come together with the post. */
#define AHEAD 8

/* One collective of this kind: how many bytes a rank posts, and how many of them are one block. */
typedef struct shape {
    size_t element;
    size_t block;
    size_t posted;
    bool root_only; /* the root's post is all that is needed */
    bool staged;    /* data is in the stage, not in the line */
} shape;

/* False: too long, or not for here. */
static inline bool find_shape(const hem_coll *coll, const hemi_context *context, shape *s) {
    s->element = hem_dtype_size(coll->dtype);
    s->root_only = false;
    s->staged = false;
    if (coll->count > BYTES_MAX)
        return false;
    s->block = coll->count * s->element;
    s->posted = s->block;
    switch (coll->kind) {
    case HEM_BARRIER:
        s->posted = 0;
        return true;
    case HEM_BROADCAST:
        s->root_only = true;
        if ((unsigned)coll->root >= context->size || coll->send != NULL)
            return false;
        break;
    case HEM_ALLREDUCE:
    case HEM_ALLGATHER:
        break;
    case HEM_REDUCE_SCATTER:
    case HEM_ALLTOALL:
        s->posted = s->block * context->size;
        break;
    default:
        return false;
    }
    s->staged = s->posted > HEMI_POST_INLINE;
    return s->block > 0 && s->posted <= BYTES_MAX && s->posted <= context->stage_bytes &&
           coll->recv != NULL && (coll->send != NULL || s->root_only);
}

static inline bool combines(const hem_coll *coll) {
    return coll->kind == HEM_ALLREDUCE || coll->kind == HEM_REDUCE_SCATTER;
}

static inline bool gathers(const hem_coll *coll) {
    return coll->kind == HEM_ALLGATHER || coll->kind == HEM_ALLTOALL;
}

/* The last reduction is remembered: programs tend to use one. */
static inline bool find_reducer(hemi_context *context, const hem_coll *coll) {
    if (__builtin_expect(context->dtype == coll->dtype && context->op == coll->op, 1))
        return true;
    if (coll->op == HEM_USER || coll->op == HEM_MINLOC || coll->op == HEM_MAXLOC)
        return false;
    if (hemi_reducer_find(coll->dtype, coll->op, NULL, NULL, 0, &context->reducer) != HEM_OK)
        return false;
    context->dtype = coll->dtype;
    context->op = coll->op;
    return true;
}

static inline bool is_ready(const hemi_context *context) {
    return context != NULL && context->known == context->size && context->size <= RANKS_MAX &&
           context->plain && context->world->engine.hub->staged;
}

/* Where rank r has the data of this step, if it is in its stage. */
static inline unsigned char *stage_of(const hemi_quick *q, uint32_t r) {
    const hemi_context *context = q->context;
    return context->hubs[r] + context->stages +
           (hemi_step_line(q->step) % HEMI_BOARD) * context->stage_bytes;
}

static inline void post(const hemi_quick *q, const hem_coll *coll, const shape *s) {
    hemi_context *context = q->context;
    if (s->root_only && context->rank != (uint32_t)coll->root)
        return;
    hemi_post *line = hemi_context_post(context, context->rank, q->step);
    const void *data = s->root_only ? coll->recv : coll->send;
    uint64_t where = 0;
    if (s->staged) {
        unsigned char *stage = stage_of(q, context->rank);
        memcpy(stage, data, s->posted);
        where = (uint64_t)(stage - context->world->root->arena.base);
    } else {
        hemi_copy_line(line->payload, data, s->posted);
    }
    hemi_post_release(line, q->step, where, s->posted);
    hemi_context_wake(context);
}

/* It has not come yet: let its data come with it. */
static inline void ask_ahead(const hemi_quick *q, const shape *s, uint32_t r) {
    const unsigned char *stage = stage_of(q, r);
    for (size_t at = 0; at < s->posted && at < (size_t)AHEAD * HEMI_LINE; at += HEMI_LINE)
        __builtin_prefetch(stage + at);
}

static inline bool has_all(const hemi_quick *q, const hem_coll *coll, const shape *s,
                           uint32_t *next) {
    const hemi_context *context = q->context;
    uint32_t end = context->size;
    if (s->root_only) {
        *next = (uint32_t)coll->root;
        end = *next + 1;
    }
    for (; *next < end; (*next)++)
        if (!hemi_post_is(hemi_context_post(context, *next, q->step), q->step)) {
            if (s->staged)
                ask_ahead(q, s, *next);
            return false;
        }
    return true;
}

static hem_status fail_bytes(const hem_coll *coll, uint32_t rank, uint64_t said, size_t wanted) {
    return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u has %llu bytes where %zu are expected",
                     hemi_call_name(HEMI_CALL_COLL + (uint32_t)coll->kind), rank,
                     (unsigned long long)said, wanted);
}

static inline void copy_block(void *to, const void *from, const shape *s) {
    if (s->staged)
        memcpy(to, from, s->block);
    else
        hemi_copy_line(to, from, s->block);
}

static hem_status pull(const hemi_quick *q, const hem_coll *coll, const shape *s) {
    hemi_context *context = q->context;
    const void *sources[RANKS_MAX];
    unsigned char *recv = coll->recv;
    size_t mine = s->posted > s->block ? context->rank * s->block : 0;
    for (uint32_t r = 0; r < context->size; r++) {
        if (s->root_only && r != (uint32_t)coll->root)
            continue;
        if (r == context->rank && !s->root_only) {
            /* Not what it has posted itself: those stores are still on their way. */
            sources[r] = (const unsigned char *)coll->send + mine;
            if (gathers(coll) && recv + r * s->block != sources[r])
                copy_block(recv + r * s->block, sources[r], s);
            continue;
        }
        const hemi_post *line = hemi_context_post(context, r, q->step);
        uint64_t said = hemi_load64_relaxed(&line->bytes);
        const unsigned char *data = line->payload;
        uint64_t where = 0;
        if (s->staged) {
            data = stage_of(q, r);
            where = (uint64_t)(data - context->world->root->arena.base);
        }
        if (__builtin_expect(said != s->posted || line->where != where, 0))
            return fail_bytes(coll, r, said, s->posted);
        sources[r] = data + mine;
        if (gathers(coll))
            copy_block(recv + r * s->block, sources[r], s);
        else if (s->root_only && r != context->rank)
            copy_block(recv, sources[r], s);
    }
    if (combines(coll))
        hemi_reduce(&context->reducer, recv, sources, context->size, coll->count);
    return HEM_OK;
}

/* All that it takes is there: use it, unless somebody has doubts, which the long way settles. */
static inline bool conclude(const hemi_quick *q, const hem_coll *coll, const shape *s) {
    hemi_context *context = q->context;
    if (__builtin_expect(context->world->root->fence, 0))
        hemi_fence_seq_cst(); /* between the post and the look at the verdict */
    else
        hemi_compiler_barrier();
    hemi_verdict verdict = hemi_settle_read(context, context->collectives);
    if (__builtin_expect(verdict.doubted || verdict.status != HEMI_AGAIN, 0) ||
        pull(q, coll, s) != HEM_OK)
        return false;
    hemi_context_pass(context);
    return true;
}

/* The lock is held all the while: nothing else is under way, and it does not take long. */
static hem_status run_locked(hem_world *world, const hem_coll *coll, const shape *s,
                             hemi_quick *q) {
    hemi_context *context = q->context;
    if (context->spans != NULL || context->pool == NULL ||
        hemi_load32_relaxed(&world->engine.listed) != 0 ||
        (combines(coll) && !find_reducer(context, coll)))
        return HEMI_ENOUGH;
    q->step = hemi_step_number(context->collectives + 1, 0);
    if (!hemi_context_may_post(context, q->step))
        return HEMI_ENOUGH;
    context->collectives++;
    post(q, coll, s);
    uint32_t next = 0;
    uint32_t polls = world->root->spin < POLLS ? world->root->spin : POLLS;
    bool all = has_all(q, coll, s, &next);
    for (; !all && polls > 0; polls--) {
        hemi_pause();
        all = has_all(q, coll, s, &next);
    }
    if (__builtin_expect(all && conclude(q, coll, s), 1))
        return HEM_OK;
    context->collectives--;
    q->span = hemi_context_take(context, 1, false);
    q->span->posted = true;
    return HEMI_AGAIN;
}

hem_status hemi_quick_run(hem_world *world, const hem_coll *coll, hemi_quick *quick_p) {
    shape s;
    quick_p->context = world->engine.coll;
    if (!is_ready(quick_p->context) || !find_shape(coll, quick_p->context, &s))
        return HEMI_ENOUGH;
    hemi_engine_lock(world);
    hem_status status = run_locked(world, coll, &s, quick_p);
    hemi_engine_unlock(world);
    /* Its own next line, for the next time. */
    hemi_prefetch_write(hemi_context_post(quick_p->context, quick_p->context->rank,
                                          quick_p->step + (1ull << HEMI_STEP_BITS)));
    return status;
}

void hemi_quick_adopt(const hemi_quick *quick, hemi_collective *c) {
    c->span = quick->span;
    c->number = quick->span->number;
    c->next_post = 1;
    c->task.deadline_ns = UINT64_MAX;
}
