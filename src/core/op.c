#include "core/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void orphan(hemi_child *child, bool dead) {
    struct hem_op *op = (struct hem_op *)(void *)child;
    op->world = NULL;
    if (dead || op->doomed)
        op->type->destroy(op);
}

void hemi_op_init(struct hem_op *op, hem_world *world, const hemi_op_type *type, bool persistent,
                  bool owned) {
    op->world = world;
    op->type = type;
    op->call = type->call;
    op->persistent = persistent;
    op->owned = owned;
    if (!owned)
        return;
    op->child.orphan = orphan;
    hemi_world_adopt(world, &op->child);
}

void hemi_op_begin(struct hem_op *op) {
    op->status = HEM_OK;
    op->bytes = 0;
    hemi_store32_relaxed(&op->state, HEMI_OP_RUNNING);
    op->type->start(op);
}

void hemi_op_call_back(struct hem_op *op) {
    hemi_engine *engine = &op->world->engine;
    if (engine->callbacks_end == NULL)
        engine->callbacks_end = &engine->callbacks;
    op->due++;
    /* One that was started again in a callback may be done before the queue comes to it. */
    if (op->queued)
        return;
    op->queued = true;
    op->next_done = NULL;
    *engine->callbacks_end = op;
    engine->callbacks_end = &op->next_done;
    hemi_store32_relaxed(&engine->completed, 1);
}

/* Somebody wants to hear of it: by callback, by descriptor. */
static void announce(struct hem_op *op) {
    hemi_engine *engine = &op->world->engine;
    engine->events++;
    if (engine->event_fd >= 0) {
        uint64_t one = 1;
        /* It cannot fill up before 2^64 operations; a full one is readable anyway. */
        ssize_t written = write(engine->event_fd, &one, sizeof one);
        (void)written;
    }
    if (op->fn != NULL)
        hemi_op_call_back(op);
}

void hemi_op_complete(struct hem_op *op, hem_status status) {
    const hemi_root *root = op->world->root;
    op->status = status;
    if (__builtin_expect(status != HEM_OK, 0))
        snprintf(op->text, sizeof op->text, "%s", hem_last_error());
    if (op->owned)
        announce(op);
    /* Pairs with the acquire in hemi_op_is_done. From here on it may be gone. */
    hemi_store32_release(&op->state, HEMI_OP_DONE);
    hemi_wake(root, root->me);
}

hem_status hemi_op_result(const struct hem_op *op) {
    if (__builtin_expect(op->status == HEM_OK, 1))
        return HEM_OK;
    return hemi_fail(op->status, "%s", op->text);
}

hem_status hemi_op_check(const struct hem_op *op, const char *call) {
    if (op == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the operation is NULL", call);
    if (op->world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this operation was closed", call);
    return HEM_OK;
}

hem_status hem_op_start(hem_op *op) {
    hem_status status = hemi_op_check(op, "hem_op_start");
    if (status == HEM_OK)
        status = hemi_engine_check(op->world, "hem_op_start");
    if (status != HEM_OK)
        return status;
    hem_world *world = op->world;
    hemi_engine_lock(world);
    if (!op->persistent)
        status = hemi_fail(HEM_ERR_ARG, "hem_op_start: this operation can be started only once");
    else if (op->state == HEMI_OP_RUNNING)
        status = hemi_fail(HEM_ERR_ARG, "hem_op_start: the operation is still under way");
    else
        hemi_op_begin(op);
    hemi_engine_unlock(world);
    hemi_engine_settle(world);
    return status;
}

static hem_status check_running(const hem_op *op, const char *call) {
    if (hemi_load32_acquire(&op->state) != HEMI_OP_IDLE)
        return HEM_OK;
    return hemi_fail(HEM_ERR_ARG, "%s: the operation was not started", call);
}

hem_status hem_op_test(hem_op *op, bool *done_p) {
    hem_status status = hemi_op_check(op, "hem_op_test");
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_op_test: done_p is NULL");
    if (status == HEM_OK)
        status = check_running(op, "hem_op_test");
    if (status != HEM_OK)
        return status;
    hem_world *world = op->world;
    if (!hemi_op_is_done(op)) {
        hemi_engine_progress(world);
        uint32_t alarm = hemi_load32_acquire(&world->root->arena.head->alarm);
        if (alarm != hemi_load32_relaxed(&world->engine.alarm_seen) ||
            hemi_load32_relaxed(&world->engine.timed) != 0)
            hemi_engine_inspect(world);
    }
    *done_p = hemi_op_is_done(op);
    return *done_p ? hemi_op_result(op) : HEM_OK;
}

static hem_status late(hem_status status, const hem_op *op) {
    if (status != HEM_ERR_TIMEOUT)
        return status;
    if (hemi_op_is_done(op))
        return hemi_op_result(op);
    return hemi_fail(status, "%s was not done in time", hemi_call_name(op->call));
}

hem_status hem_op_wait(hem_op *op, int64_t timeout_ns) {
    hem_status status = hemi_op_check(op, "hem_op_wait");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_op_wait");
    if (status == HEM_OK)
        status = check_running(op, "hem_op_wait");
    if (status != HEM_OK)
        return status;
    return late(hemi_engine_wait(op->world, op, timeout_ns), op);
}

static hem_status check_list(hem_op *const *ops, size_t count, const char *call,
                             hem_world **world_p) {
    if (ops == NULL && count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: the list is NULL", call);
    *world_p = NULL;
    for (size_t i = 0; i < count; i++) {
        if (ops[i] == NULL)
            continue;
        hem_status status = hemi_op_check(ops[i], call);
        if (status == HEM_OK)
            status = check_running(ops[i], call);
        if (status == HEM_OK && *world_p != NULL && ops[i]->world != *world_p)
            status = hemi_fail(HEM_ERR_ARG, "%s: the operations are of several worlds", call);
        if (status != HEM_OK)
            return status;
        *world_p = ops[i]->world;
    }
    return HEM_OK;
}

/* What is left of a time limit that began at `start`. */
static int64_t left_of(const hem_world *world, uint64_t start, int64_t timeout_ns) {
    if (timeout_ns < 0)
        return timeout_ns;
    const hemi_platform *platform = world->root->platform;
    uint64_t gone = platform->now(platform->ctx) - start;
    return gone < (uint64_t)timeout_ns ? timeout_ns - (int64_t)gone : 0;
}

hem_status hem_op_wait_all(hem_op *const *ops, size_t count, int64_t timeout_ns) {
    hem_world *world = NULL;
    hem_status status = check_list(ops, count, "hem_op_wait_all", &world);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_op_wait_all");
    if (status != HEM_OK || world == NULL)
        return status;
    const hemi_platform *platform = world->root->platform;
    uint64_t start = platform->now(platform->ctx);
    const hem_op *failed = NULL;
    for (size_t i = 0; i < count; i++) {
        if (ops[i] == NULL)
            continue;
        status = hemi_engine_wait(world, ops[i], left_of(world, start, timeout_ns));
        if (!hemi_op_is_done(ops[i]))
            return late(status, ops[i]);
        if (ops[i]->status != HEM_OK && failed == NULL)
            failed = ops[i];
    }
    return failed == NULL ? HEM_OK : hemi_op_result(failed);
}

typedef struct any_wait {
    hem_world *world;
    hem_op *const *ops;
    size_t count;
    size_t which;
} any_wait;

static bool any_done(any_wait *w) {
    for (w->which = 0; w->which < w->count; w->which++)
        if (w->ops[w->which] != NULL && hemi_op_is_done(w->ops[w->which]))
            return true;
    return false;
}

static hem_status poll_any(void *arg) {
    any_wait *w = arg;
    hemi_engine_progress(w->world);
    return any_done(w) ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed_any(void *arg) {
    any_wait *w = arg;
    hemi_engine_inspect(w->world);
    return any_done(w) ? HEM_ERR_PEER : HEM_OK;
}

hem_status hem_op_wait_any(hem_op *const *ops, size_t count, size_t *which_p, int64_t timeout_ns) {
    any_wait w = {.ops = ops, .count = count};
    hem_status status = check_list(ops, count, "hem_op_wait_any", &w.world);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_op_wait_any");
    if (status == HEM_OK && (which_p == NULL || w.world == NULL))
        status = hemi_fail(HEM_ERR_ARG, "hem_op_wait_any: %s",
                           which_p == NULL ? "which_p is NULL" : "there is nothing to wait for");
    if (status != HEM_OK)
        return status;
    hemi_wait_for wait = {.poll = poll_any,
                          .doomed = doomed_any,
                          .arg = &w,
                          .also_revoked = true,
                          .note = {.call = HEMI_CALL_OP_WAIT, .peer = -1, .world = w.world->id}};
    status = hemi_engine_wait_until(w.world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "hem_op_wait_any: none of %zu operations was done in time", count);
    if (status != HEM_OK)
        return status;
    *which_p = w.which;
    return hemi_op_result(ops[w.which]);
}

size_t hem_op_bytes(const hem_op *op) {
    return op != NULL && hemi_op_is_done(op) && op->status == HEM_OK ? op->bytes : 0;
}

hem_status hem_op_on_done(hem_op *op, hem_op_fn fn, void *arg) {
    hem_status status = hemi_op_check(op, "hem_op_on_done");
    if (status != HEM_OK)
        return status;
    hem_world *world = op->world;
    hemi_engine_lock(world);
    op->fn = fn;
    op->arg = arg;
    bool now = fn != NULL && hemi_op_is_done(op) && op->calls == 0 && !op->queued;
    if (now)
        op->calls++;
    status = op->status;
    hemi_engine_unlock(world);
    if (!now)
        return HEM_OK;
    fn(op, status, arg);
    hemi_engine_lock(world);
    op->calls--;
    bool gone = op->doomed && op->calls == 0 && !op->queued;
    hemi_engine_unlock(world);
    if (gone)
        op->type->destroy(op);
    return HEM_OK;
}

hem_status hem_op_free(hem_op *op) {
    if (op == NULL)
        return HEM_OK;
    hem_world *world = op->world;
    if (world == NULL) {
        op->type->destroy(op);
        return HEM_OK;
    }
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    hemi_engine_lock(world);
    op->fn = NULL;
    if (op->state == HEMI_OP_RUNNING)
        op->type->cancel(op);
    hemi_error_restore(sentence);
    bool busy = op->calls > 0 || op->queued;
    op->doomed = true;
    hemi_world_abandon(world, &op->child);
    hemi_engine_unlock(world);
    if (!busy)
        op->type->destroy(op);
    hemi_engine_settle(world);
    return HEM_OK;
}

hem_status hem_progress(hem_world *world) {
    hem_status status = hemi_engine_check(world, "hem_progress");
    if (status != HEM_OK)
        return status;
    hemi_engine_progress(world);
    uint32_t alarm = hemi_load32_acquire(&world->root->arena.head->alarm);
    if (alarm != hemi_load32_relaxed(&world->engine.alarm_seen) ||
        hemi_load32_relaxed(&world->engine.timed) != 0)
        hemi_engine_inspect(world);
    return HEM_OK;
}

hem_status hem_world_event_fd(hem_world *world, int *fd_p) {
    if (world == NULL || fd_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_world_event_fd: world or fd_p is NULL");
    hemi_engine_lock(world);
    if (world->engine.event_fd < 0)
        world->engine.event_fd = eventfd(world->engine.events != 0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = world->engine.event_fd;
    int error = errno;
    hemi_engine_unlock(world);
    if (fd < 0)
        return hemi_fail_errno(error, "hem_world_event_fd: no descriptor");
    *fd_p = fd;
    return HEM_OK;
}

hem_status hem_world_event_read(hem_world *world, uint64_t *count_p) {
    if (world == NULL || count_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_world_event_read: world or count_p is NULL");
    hemi_engine_lock(world);
    uint64_t many = 0;
    if (world->engine.event_fd >= 0) {
        ssize_t got = read(world->engine.event_fd, &many, sizeof many);
        (void)got; /* nothing to read is no error */
    }
    *count_p = world->engine.events;
    world->engine.events = 0;
    hemi_engine_unlock(world);
    return HEM_OK;
}

static bool is_running_op(const hemi_child *child) {
    return child->orphan == orphan &&
           ((const struct hem_op *)(const void *)child)->state == HEMI_OP_RUNNING;
}

void hemi_engine_close(hem_world *world) {
    hemi_worker_stop(world);
    hemi_engine_lock(world);
    for (hemi_child *c = world->children; c != NULL; c = c->next)
        if (is_running_op(c)) {
            struct hem_op *op = (struct hem_op *)(void *)c;
            op->fn = NULL;
            op->type->cancel(op);
        }
    /* A lane may still have had something to say to its peer, which hears of the close instead. */
    while (world->engine.tasks != NULL)
        hemi_engine_unlist(world, world->engine.tasks);
    hemi_engine_unlock(world);
}
