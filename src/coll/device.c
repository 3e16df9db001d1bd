/*
 * Operations on device buffers: made together, started on streams, freed together.
 *
 * A run that the host starts goes on a stream that the operation borrows for it; its task asks that
 * stream whether all is done, and naps in between, since no kernel rings a doorbell. Kernels find out
 * by themselves that a peer is dead or that a time limit has passed; the host only hears. A run of
 * which nobody knows that it is done keeps its stream, and the next one goes behind it.
 */
#include "coll/device.h"
#include "core/stream.h"
#include "device/kernels/copy.h"
#include "window/device.h"

#include <hem/cuda.h>
#include <hem/window.h>
#include <stdlib.h>
#include <string.h>

/* How long a kernel that was told to end may take. */
#define STOP_NS 5000000000u

static hemi_coll_device *of_op(hem_op *op) {
    return (hemi_coll_device *)(void *)op;
}

static uint64_t now_ns(const hemi_coll_device *d) {
    return d->root->platform->now(d->root->platform->ctx);
}

/* What kernels of `rank` have said of its part. */
static hem_status said_by(const hemi_coll_device *d, uint32_t rank) {
    uint64_t code = hemi_device_seen(d->window, rank, HEMD_COLL_SAID);
    if (code == 0)
        return HEM_OK;
    hem_status status = (hem_status)(-(int)code);
    return hemi_fail(status, "%s: a run on a stream of rank %u has ended with %s",
                     hemi_call_name(d->op.call), rank, hem_status_name(status));
}

static hem_status status_of(const hemi_coll_device *d) {
    hem_status status = said_by(d, d->rank);
    for (uint32_t r = 0; status == HEM_OK && r < d->size; r++)
        status = said_by(d, r);
    return status;
}

/* How many blocks copy, and from how many bytes on there is one more. */
#define COPY_BLOCKS 16
#define COPY_BYTES  16384u

static hem_status copy(const hemi_coll_device *d, void *stream, const hemi_coll_copies *c) {
    hem_status status = HEM_OK;
    uint32_t most_blocks = d->all.blocks < COPY_BLOCKS ? d->all.blocks : COPY_BLOCKS;
    for (uint32_t i = 0; i < c->count && status == HEM_OK; i += HEMD_COPY_PIECES) {
        hemd_copy_args args = {.count = 0};
        uint64_t most = 0;
        for (uint32_t j = i; j < c->count && j < i + HEMD_COPY_PIECES; j++) {
            args.pieces[args.count++] = (hemd_copy_piece){c->to[j], c->from[j], c->bytes[j]};
            most = c->bytes[j] > most ? c->bytes[j] : most;
        }
        uint64_t blocks = most / COPY_BYTES + 1;
        hemi_launch it = {.kernel = HEMI_KERNEL_COPY,
                          .blocks = blocks < most_blocks ? (uint32_t)blocks : most_blocks,
                          .threads = d->threads,
                          .args = &args,
                          .bytes = sizeof args};
        status = d->device->module->stream->launch(d->device->context, stream, &it);
    }
    return status;
}

/* One run: nothing here waits, allocates or locks. */
static hem_status launch(const hemi_coll_device *d, void *stream) {
    hemi_launch it = {.kernel = hemi_coll_device_kernel(d),
                      .blocks = d->blocks,
                      .threads = d->threads,
                      .args = &d->args,
                      .bytes = sizeof d->args};
    hem_status status = copy(d, stream, &d->before);
    if (status == HEM_OK)
        status = d->device->module->stream->launch(d->device->context, stream, &it);
    return status == HEM_OK ? copy(d, stream, &d->after) : status;
}

/* Runs that the host starts. */

/* What its stream says. None: all is done, and the stream was given back. */
static hem_status query(const hemi_coll_device *d) {
    if (d->stream == NULL)
        return HEM_OK;
    return d->device->module->stream->query(d->device->context, d->stream);
}

static void end(hemi_coll_device *d, hem_status status) {
    hemi_engine_unlist(d->op.world, &d->task);
    hemi_op_complete(&d->op, status);
}

static hem_status advance(hemi_task *task) {
    hemi_coll_device *d =
        (hemi_coll_device *)(void *)((unsigned char *)task - offsetof(hemi_coll_device, task));
    hem_status status = query(d);
    task->deadline_ns = now_ns(d) + HEMI_DEVICE_NAP_NS;
    if (status == HEM_ERR_TIMEOUT)
        return HEMI_AGAIN;
    if (status == HEM_OK) {
        hemi_device_stream_give(d->root, d->device, &d->stream);
        status = status_of(d);
    }
    end(d, status);
    return HEM_OK;
}

static void trouble(hemi_task *task, uint64_t now) {
    (void)task;
    (void)now; /* kernels find out by themselves */
}

static void start(struct hem_op *op) {
    hemi_coll_device *d = of_op(op);
    hem_status status = status_of(d);
    if (status == HEM_OK && d->stream == NULL)
        status = hemi_device_stream_take(d->root, d->device, &d->stream);
    if (status == HEM_OK)
        status = launch(d, d->stream);
    if (status != HEM_OK) {
        hemi_op_complete(op, status);
        return;
    }
    d->task.deadline_ns = now_ns(d) + HEMI_DEVICE_NAP_NS;
    hemi_engine_list(op->world, &d->task);
}

/* The kernel hears of it, tells the others, and ends. The task may do that first. */
static void cancel(struct hem_op *op) {
    hemi_coll_device *d = of_op(op);
    const hemi_device *device = d->device;
    const hemi_platform *platform = d->root->platform;
    uint64_t code = (uint64_t)(uint32_t)-HEM_ERR_REVOKED;
    hem_status status =
        device->module->memory->copy(device->context, &d->args.state->cancel, &code, sizeof code);
    uint64_t limit = now_ns(d) + STOP_NS;
    while (status == HEM_OK && now_ns(d) < limit && query(d) == HEM_ERR_TIMEOUT) {
        hemi_engine_unlock(op->world);
        platform->nap(platform->ctx, HEMI_DEVICE_NAP_NS);
        hemi_engine_lock(op->world);
    }
    if (hemi_op_is_done(op))
        return;
    if (query(d) == HEM_OK)
        hemi_device_stream_give(d->root, d->device, &d->stream);
    end(d, hemi_fail(HEM_ERR_REVOKED, "%s: this rank cancelled it", hemi_call_name(op->call)));
}

static void where(struct hem_op *op, hemi_flight_note *note) {
    note->call = op->call;
}

/* Freeing. */

static void drop_memory(hemi_coll_device *d, hemi_device_memory *memory, bool closed) {
    if (memory->address == NULL)
        return;
    if (closed)
        hemi_device_retire(d->root, memory);
    else
        d->device->module->memory->release(d->device->context, memory);
    memset(memory, 0, sizeof *memory);
}

void hemi_coll_device_drop(hemi_coll_device *d, bool closed) {
    if (d->device == NULL)
        return;
    for (int b = 0; b < HEMI_COLL_BUFFERS; b++) {
        for (uint32_t r = 0; d->maps[b] != NULL && r < d->size; r++)
            if (r != d->rank)
                drop_memory(d, &d->maps[b][r], closed);
        drop_memory(d, &d->own[b], closed);
    }
    drop_memory(d, &d->team, closed);
    if (d->stream != NULL)
        d->device->module->stream->destroy(d->device->context, d->stream);
    d->stream = NULL;
    d->device = NULL;
}

static void free_copies(hemi_coll_copies *c) {
    free(c->to);
    free(c->from);
    free(c->bytes);
}

static void free_handle(hemi_coll_device *d) {
    hemi_job_clear(&d->job);
    free_copies(&d->before);
    free_copies(&d->after);
    for (int b = 0; b < HEMI_COLL_BUFFERS; b++)
        free(d->maps[b]);
    free(d->spans);
    free(d->theirs);
    free(d->wants);
    free(d);
}

/* The world goes; the window goes by itself. */
static void orphan(hemi_child *child, bool dead) {
    hemi_coll_device *d =
        (hemi_coll_device *)(void *)((unsigned char *)child - offsetof(hemi_coll_device, child));
    hemi_coll_device_drop(d, true);
    if (dead)
        d->window = NULL;
}

/* All ranks come here together, unless the world is gone. */
static void destroy(struct hem_op *op) {
    hemi_coll_device *d = of_op(op);
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    if (op->world != NULL)
        hemi_world_abandon(op->world, &d->child);
    /* Of a world that is just being closed the window is told by that. */
    if (op->world != NULL || (d->window != NULL && d->window->world == NULL)) {
        hem_status status = hem_window_destroy(d->window);
        hemi_coll_device_drop(d, status != HEM_OK && status != HEM_ERR_PEER);
    }
    free_handle(d);
    hemi_error_restore(sentence);
}

const hemi_op_type hemi_coll_device_type = {
    .call = HEMI_CALL_COLL,
    .start = start,
    .cancel = cancel,
    .destroy = destroy,
    .where = where,
};

/* Making. */

/* What all ranks must call alike. What each has of its own is compared pair by pair. */
static uint64_t fingerprint(const hemi_job *job) {
    bool each = job->counts != NULL || job->kind == HEM_GATHERV || job->kind == HEM_SCATTERV;
    uint64_t words[6] = {(uint64_t)job->kind, (uint64_t)job->dtype,
                         (uint64_t)job->op,   job->root,
                         job->element,        each ? 0 : (uint64_t)job->count};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < 6; i++)
        hash = (hash ^ words[i]) * 1099511628211u;
    return hash;
}

static void unmake(hemi_coll_device *d) {
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    (void)hem_window_destroy(d->window);
    hemi_coll_device_drop(d, false);
    free_handle(d);
    hemi_error_restore(sentence);
}

static hem_status make(hemi_coll_device *d, hem_world *world, const hem_coll *coll,
                       int64_t timeout_ns) {
    d->root = world->root;
    d->rank = world->rank;
    d->size = world->size;
    d->timeout_ns = timeout_ns;
    d->op.world = world;
    d->op.call = HEMI_CALL_COLL + (uint32_t)coll->kind;
    d->args.timeout_ns = coll->timeout_ns > 0 ? coll->timeout_ns : HEM_FOREVER;
    d->task.advance = advance;
    d->task.trouble = trouble;
    hem_status status = hemi_coll_device_prepare(d, coll);
    return hemi_coll_device_connect(d, status, status == HEM_OK ? fingerprint(&d->job) : 0);
}

hem_status hemi_coll_device_plan(hem_world *world, const hem_coll *coll, bool persistent,
                                 int64_t timeout_ns, hem_op **op_p) {
    hemi_coll_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective");
    uint32_t call = HEMI_CALL_COLL + (uint32_t)coll->kind;
    hem_status status = make(d, world, coll, timeout_ns);
    if (status != HEM_OK) {
        unmake(d);
        return status;
    }
    hemi_op_init(&d->op, world, &hemi_coll_device_type, persistent, true);
    d->op.call = call;
    d->child.orphan = orphan;
    hemi_world_adopt(world, &d->child);
    *op_p = &d->op;
    return HEM_OK;
}

hem_status hemi_coll_device_run(hem_world *world, const hem_coll *coll, int64_t timeout_ns) {
    hem_op *op = NULL;
    hem_coll limited = *coll;
    limited.timeout_ns = timeout_ns > 0 ? timeout_ns : (timeout_ns == 0 ? 1 : 0);
    hem_status status = hemi_coll_device_plan(world, &limited, true, timeout_ns, &op);
    if (status != HEM_OK)
        return status;
    status = hem_op_start(op);
    if (status == HEM_OK)
        status = hem_op_wait(op, HEM_FOREVER);
    (void)hem_op_free(op);
    return status;
}

/* Public calls. */

static hem_status check_start(hem_op *op, hem_stream *stream, void **native_p) {
    static const char call[] = "hem_op_start_on";
    hem_status status = hemi_op_check(op, call);
    if (status == HEM_OK)
        status = hemi_engine_check(op->world, call);
    if (status != HEM_OK)
        return status;
    if (op->type != &hemi_coll_device_type || !op->persistent)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: this is no operation that hem_coll_plan made on device buffers",
                         call);
    if (stream == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the stream is NULL", call);
    bool is_device = false;
    *native_p = hemi_stream_native(stream, &is_device);
    if (!is_device)
        return hemi_fail(HEM_ERR_ARG,
                         "%s: this is a host stream; hem_stream_cuda makes one of a stream of "
                         "CUDA's",
                         call);
    if (hemi_load32_acquire(&op->state) == HEMI_OP_RUNNING)
        return hemi_fail(HEM_ERR_ARG, "%s: the operation is still under way", call);
    return status_of(of_op(op));
}

hem_status hem_op_start_on(hem_op *op, hem_stream *stream) {
    void *native = NULL;
    hem_status status = check_start(op, stream, &native);
    return status == HEM_OK ? launch(of_op(op), native) : status;
}

hem_status hem_op_status(hem_op *op) {
    hem_status status = hemi_op_check(op, "hem_op_status");
    if (status != HEM_OK)
        return status;
    if (op->type == &hemi_coll_device_type)
        return status_of(of_op(op));
    return hemi_op_is_done(op) ? hemi_op_result(op) : HEM_OK;
}
