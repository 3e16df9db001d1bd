#include "core/engine.h"

#include <unistd.h>

/* How often something may have moved before a wait looks at the clock for the first time. */
#define SPINS_AGAIN 4096

hem_status hemi_engine_check(hem_world *world, const char *call) {
    if (__builtin_expect(world == NULL, 0))
        return hemi_fail(HEM_ERR_ARG, "%s: world is NULL", call);
    return hemi_world_check_peer(world, world->rank, call);
}

static bool try_lock(hem_world *world) {
    uint32_t unlocked = 0;
    return hemi_cas32_acq_rel(&world->engine.lock, &unlocked, 1);
}

void hemi_engine_list(hem_world *world, hemi_task *task) {
    hemi_engine *engine = &world->engine;
    if (task->link != NULL)
        return;
    task->next = engine->tasks;
    task->link = &engine->tasks;
    if (task->next != NULL)
        task->next->link = &task->next;
    engine->tasks = task;
    if (task->deadline_ns != UINT64_MAX) {
        hemi_store32_relaxed(&engine->timed, engine->timed + 1);
        /* Whoever sleeps without a limit, or with a later one, must choose again how long. */
        hemi_store32_relaxed(&engine->moves, engine->moves + 1);
    }
    hemi_store32_relaxed(&engine->listed, engine->listed + 1);
    /* Whoever died before this task came must be told of to it, too. */
    uint32_t alarm = hemi_load32_acquire(&world->root->arena.head->alarm);
    if (__builtin_expect(alarm != 0, 0))
        hemi_store32_relaxed(&engine->alarm_seen, alarm - 1);
    hemi_wake(world->root, world->root->me);
}

void hemi_engine_unlist(hem_world *world, hemi_task *task) {
    hemi_engine *engine = &world->engine;
    if (task->link == NULL)
        return;
    if (engine->cursor == task)
        engine->cursor = task->next;
    *task->link = task->next;
    if (task->next != NULL)
        task->next->link = task->link;
    task->link = NULL;
    if (task->deadline_ns != UINT64_MAX)
        hemi_store32_relaxed(&engine->timed, engine->timed - 1);
    hemi_store32_relaxed(&engine->listed, engine->listed - 1);
}

/* Every task once. Tasks that a task lists come to the front and wait for the next pass. */
static bool pass(hem_world *world, bool trouble, uint64_t now_ns) {
    hemi_engine *engine = &world->engine;
    bool more = false;
    for (engine->cursor = engine->tasks; engine->cursor != NULL;) {
        hemi_task *task = engine->cursor;
        engine->cursor = task->next;
        hem_status status = task->advance(task);
        more = more || status == HEMI_MORE;
        if (status != HEMI_AGAIN && status != HEMI_MORE)
            hemi_engine_unlist(world, task);
        else if (trouble && task->link != NULL)
            task->trouble(task, now_ns);
    }
    return more;
}

void hemi_engine_progress(hem_world *world) {
    if (hemi_load32_relaxed(&world->engine.listed) != 0 && try_lock(world)) {
        pass(world, false, 0);
        hemi_engine_unlock(world);
    }
    hemi_engine_settle(world);
}

/*
 * A peer may wait for this rank in another world than this thread does. What completes there is called
 * back when a thread next makes progress in that world.
 */
static void inspect_others(hem_world *world, uint64_t now_ns) {
    hemi_root *root = world->root;
    hemi_lock(root->platform, &root->worlds_lock);
    for (hem_world *w = root->worlds; w != NULL; w = w->next)
        if (w != world && hemi_load32_relaxed(&w->engine.listed) != 0) {
            hemi_engine_lock(w);
            if (pass(w, true, now_ns))
                hemi_wake(root, root->me);
            hemi_engine_unlock(w);
        }
    hemi_unlock(&root->worlds_lock);
}

void hemi_engine_inspect(hem_world *world) {
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    const hemi_platform *platform = world->root->platform;
    uint64_t now = platform->now(platform->ctx);
    if (hemi_load32_relaxed(&world->engine.listed) != 0) {
        uint32_t alarm = hemi_load32_acquire(&world->root->arena.head->alarm);
        /* Another thread's pass may have looked at a word before it changed: wait for the lock. Until
         * nothing is left that could be done now: nobody would wake the caller for that. */
        bool more = true;
        while (more) {
            hemi_engine_lock(world);
            more = pass(world, true, now);
            hemi_store32_relaxed(&world->engine.alarm_seen, alarm);
            hemi_engine_unlock(world);
        }
    }
    inspect_others(world, now);
    /* What has failed keeps its own sentence; the calling thread's is another matter. */
    hemi_error_restore(sentence);
    hemi_engine_settle(world);
}

static struct hem_op *next_callback(hemi_engine *engine) {
    struct hem_op *op = engine->callbacks;
    if (op == NULL) {
        hemi_store32_relaxed(&engine->completed, 0);
        return NULL;
    }
    engine->callbacks = op->next_done;
    if (engine->callbacks == NULL)
        engine->callbacks_end = &engine->callbacks;
    op->queued = false;
    return op;
}

static void call_back(hem_world *world, struct hem_op *op) {
    uint32_t due = op->due;
    op->due = 0;
    op->calls++;
    for (; due > 0 && op->fn != NULL && !op->doomed; due--) {
        hem_op_fn fn = op->fn;
        void *arg = op->arg;
        hem_status status = op->status;
        hemi_engine_unlock(world);
        fn(op, status, arg);
        hemi_engine_lock(world);
    }
    op->calls--;
    if (op->doomed && op->calls == 0 && !op->queued) {
        hemi_engine_unlock(world);
        op->type->destroy(op);
        hemi_engine_lock(world);
    }
}

void hemi_engine_settle(hem_world *world) {
    hemi_engine *engine = &world->engine;
    if (__builtin_expect(hemi_load32_relaxed(&engine->completed) == 0, 1))
        return;
    hemi_engine_lock(world);
    /* One thread at a time, and a callback that starts something does not recurse. */
    if (!engine->settling) {
        engine->settling = true;
        for (struct hem_op *op = next_callback(engine); op != NULL; op = next_callback(engine))
            call_back(world, op);
        engine->settling = false;
    }
    hemi_engine_unlock(world);
}

typedef struct op_wait {
    hem_world *world;
    struct hem_op *op;
} op_wait;

static hem_status poll_op(void *arg) {
    const op_wait *w = arg;
    if (hemi_op_is_done(w->op))
        return HEM_OK;
    hemi_engine_progress(w->world);
    return hemi_op_is_done(w->op) ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed_op(void *arg) {
    const op_wait *w = arg;
    hemi_engine_inspect(w->world);
    /* Not a verdict: it makes the wait look at the operation again. */
    return hemi_op_is_done(w->op) ? HEM_ERR_PEER : HEM_OK;
}

static void where_op(void *arg, hemi_flight_note *note) {
    const op_wait *w = arg;
    hemi_engine_lock(w->world);
    if (!hemi_op_is_done(w->op) && w->op->type->where != NULL)
        w->op->type->where(w->op, note);
    hemi_engine_unlock(w->world);
}

/* How long one may sleep before a task's time limit passes. */
static int64_t next_limit(hem_world *world, uint64_t now_ns) {
    uint64_t soonest = UINT64_MAX;
    hemi_engine_lock(world);
    for (const hemi_task *t = world->engine.tasks; t != NULL; t = t->next)
        if (t->deadline_ns < soonest)
            soonest = t->deadline_ns;
    hemi_engine_unlock(world);
    if (soonest == UINT64_MAX)
        return HEM_FOREVER;
    return soonest > now_ns ? (int64_t)(soonest - now_ns) : 0;
}

/* Wait with somebody else's time limits in mind, too. */
static hem_status wait_timed(hem_world *world, const hemi_wait_for *wait, int64_t timeout_ns) {
    const hemi_platform *platform = world->root->platform;
    uint64_t start = platform->now(platform->ctx);
    for (;;) {
        uint64_t now = platform->now(platform->ctx);
        int64_t left = timeout_ns < 0 ? HEM_FOREVER : timeout_ns - (int64_t)(now - start);
        if (timeout_ns >= 0 && left < 0)
            left = 0;
        int64_t other = next_limit(world, now);
        bool mine = other < 0 || (left >= 0 && left <= other);
        hem_status status = hemi_wait(world, wait, mine ? left : other);
        if (status != HEM_ERR_TIMEOUT || mine)
            return status;
        hemi_engine_inspect(world);
    }
}

/* A wait that starts over, with polling, whenever some task has moved something. */
typedef struct busy_wait {
    hem_world *world;
    const hemi_wait_for *wait;
    uint32_t moves;
} busy_wait;

static hem_status poll_busy(void *arg) {
    busy_wait *b = arg;
    hem_status status = b->wait->poll(b->wait->arg);
    uint32_t moves = hemi_load32_relaxed(&b->world->engine.moves);
    if (status != HEMI_AGAIN || moves == b->moves)
        return status;
    b->moves = moves;
    return HEMI_MORE;
}

static hem_status doomed_busy(void *arg) {
    const busy_wait *b = arg;
    return b->wait->doomed(b->wait->arg);
}

static void where_busy(void *arg, hemi_flight_note *note) {
    const busy_wait *b = arg;
    if (b->wait->where != NULL)
        b->wait->where(b->wait->arg, note);
}

/* The first polls, for which no clock is read. */
static hem_status spin_busy(busy_wait *b) {
    uint32_t most = b->world->root->spin;
    uint32_t again = SPINS_AGAIN;
    for (uint32_t i = 0; i < most; i++) {
        hem_status status = poll_busy(b);
        if (status == HEMI_MORE && again-- > 0)
            i = 0;
        else if (status == HEMI_MORE)
            return HEMI_AGAIN;
        else if (status != HEMI_AGAIN)
            return status;
        else
            hemi_pause();
    }
    return HEMI_AGAIN;
}

/* Whether the time is up. Others may move something for ever. */
static bool is_over(uint64_t gone_ns, int64_t timeout_ns) {
    return timeout_ns >= 0 && gone_ns >= (uint64_t)timeout_ns;
}

hem_status hemi_engine_wait_until(hem_world *world, const hemi_wait_for *wait, int64_t timeout_ns) {
    const hemi_platform *platform = world->root->platform;
    busy_wait b = {world, wait, hemi_load32_relaxed(&world->engine.moves)};
    hem_status status = spin_busy(&b);
    if (status != HEMI_AGAIN)
        return status;
    hemi_wait_for again = *wait;
    again.poll = poll_busy;
    again.doomed = wait->doomed != NULL ? doomed_busy : NULL;
    again.where = where_busy;
    again.arg = &b;
    uint64_t start = platform->now(platform->ctx);
    uint64_t gone = 0;
    do {
        int64_t left = timeout_ns < 0 ? timeout_ns : timeout_ns - (int64_t)gone;
        status = __builtin_expect(hemi_load32_relaxed(&world->engine.timed) != 0, 0)
                     ? wait_timed(world, &again, left)
                     : hemi_wait(world, &again, left);
        gone = status == HEMI_MORE ? platform->now(platform->ctx) - start : 0;
    } while (status == HEMI_MORE && !is_over(gone, timeout_ns));
    return status == HEMI_MORE ? hemi_wait(world, wait, 0) : status;
}

hem_status hemi_engine_wait(hem_world *world, struct hem_op *op, int64_t timeout_ns) {
    op_wait w = {world, op};
    hemi_wait_for wait = {
        .poll = poll_op,
        .doomed = doomed_op,
        .where = where_op,
        .arg = &w,
        .also_revoked = true, /* a revoke ends the operation, and that ends the wait */
        .note = {.call = op->call, .peer = -1, .world = world->id},
    };
    hem_status status = hemi_engine_wait_until(world, &wait, timeout_ns);
    return status == HEM_OK ? hemi_op_result(op) : status;
}

void hemi_engine_free(hem_world *world) {
    hemi_engine *engine = &world->engine;
    if (engine->lanes_free != NULL)
        engine->lanes_free(engine->lanes);
    if (engine->coll_free != NULL)
        engine->coll_free(engine->coll);
    if (engine->left_free != NULL)
        engine->left_free(engine->left);
    if (engine->event_fd >= 0)
        close(engine->event_fd);
}
