/* The public calls: check, make, run. */
#include "base/options.h"
#include "coll/device.h"
#include "coll/quick.h"
#include "coll/sparse.h"

#include <stdio.h>
#include <stdlib.h>

/* Run a collective that lies on the stack and wait for it. */
static hem_status run(hem_world *world, hemi_collective *c, const hemi_quick *posted,
                      int64_t timeout_ns) {
    hemi_engine_lock(world);
    if (posted != NULL)
        hemi_collective_resume(c, posted);
    else
        hemi_op_begin(&c->op);
    hemi_engine_unlock(world);
    hem_status status = HEM_OK;
    if (hemi_op_is_done(&c->op))
        status = hemi_op_result(&c->op);
    else
        status = hemi_engine_wait(world, &c->op, timeout_ns);
    if (__builtin_expect(status == HEM_ERR_TIMEOUT, 0) && !hemi_op_is_done(&c->op)) {
        hemi_engine_lock(world);
        hemi_collective_expire(c);
        hemi_engine_unlock(world);
        /* Where others had it in spite of all, it comes to its end here, too. */
        status = hemi_engine_wait(world, &c->op, HEM_FOREVER);
    } else if (__builtin_expect(status == HEM_ERR_TIMEOUT, 0)) {
        status = hemi_op_result(&c->op); /* another thread was just in time */
    }
    /* If another thread has completed it, that looks at the task once more before it drops the lock. */
    hemi_engine_lock(world);
    hemi_engine_unlock(world);
    hemi_engine_settle(world);
    return status;
}

static hem_status check(hem_world *world, const hem_coll *coll, int64_t timeout_ns,
                        const char *call, hem_coll *read_p) {
    hem_status status = hemi_engine_check(world, call);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, call);
    if (status == HEM_OK && coll == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: what to do is NULL", call);
    if (status == HEM_OK)
        status = hemi_options_read(read_p, sizeof *read_p, coll, call);
    if (status == HEM_OK && read_p->timeout_ns < 0)
        status = hemi_fail(HEM_ERR_ARG, "%s: a time limit of %lld ns", call,
                           (long long)read_p->timeout_ns);
    return status;
}

/*
 * The arguments are no good. With HEM_CHECK the others hear of it: they get HEM_ERR_MISMATCH, and the
 * next collective works.
 */
static hem_status refuse(hem_world *world, const hem_coll *coll, hem_status why,
                         int64_t timeout_ns) {
    if (!world->root->settings.check)
        return why;
    char sentence[HEMI_OP_TEXT];
    snprintf(sentence, sizeof sentence, "%s", hem_last_error());
    hemi_collective c;
    memset(&c, 0, offsetof(hemi_collective, room));
    hemi_job job = {.kind = HEM_BARRIER, .rank = world->rank, .size = world->size};
    hemi_op_init(&c.op, world, &hemi_collective_type, false, false);
    c.refused = true;
    hem_status status = hemi_collective_make(world, &job, &c);
    unsigned kind = (unsigned)coll->kind;
    if (kind >= HEM_BARRIER && kind <= HEM_ALLTOALLV)
        c.job.kind = coll->kind;
    c.op.call = HEMI_CALL_COLL + (uint32_t)c.job.kind;
    if (status == HEM_OK)
        (void)run(world, &c, NULL, timeout_ns);
    hemi_collective_clear(&c);
    return hemi_fail(why, "%s", sentence);
}

/* The long way, from the beginning or from what was posted. */
static hem_status run_slowly(hem_world *world, const hem_coll *coll, const hemi_quick *posted,
                             int64_t timeout_ns) {
    hemi_collective c;
    /* The room need not be cleared. */
    memset(&c, 0, offsetof(hemi_collective, room));
    hemi_job job;
    hem_status status = hemi_job_make(coll, world->rank, world->size, &job);
    if (status != HEM_OK)
        return refuse(world, coll, status, timeout_ns);
    hemi_op_init(&c.op, world, &hemi_collective_type, false, false);
    c.op.call = HEMI_CALL_COLL + (uint32_t)coll->kind;
    status = hemi_collective_make(world, &job, &c);
    if (status == HEM_OK)
        status = run(world, &c, posted, timeout_ns);
    hemi_collective_clear(&c);
    return status;
}

static hem_status run_coll(hem_world *world, const hem_coll *coll, int64_t timeout_ns) {
    if (__builtin_expect(world->root->device != NULL || coll->memory != HEM_MEMORY_HOST, 0) &&
        hemi_coll_is_device(world, coll, false))
        return hemi_coll_device_run(world, coll, timeout_ns);
    hemi_quick quick;
    hem_status status = hemi_quick_run(world, coll, &quick);
    if (__builtin_expect(status != HEMI_AGAIN && status != HEMI_ENOUGH, 1))
        return status;
    return run_slowly(world, coll, status == HEMI_AGAIN ? &quick : NULL, timeout_ns);
}

hem_status hem_coll_run(hem_world *world, const hem_coll *coll, int64_t timeout_ns) {
    hem_coll c;
    hem_status status = check(world, coll, timeout_ns, "hem_coll_run", &c);
    c.timeout_ns = 0;
    return status == HEM_OK ? run_coll(world, &c, timeout_ns) : status;
}

/* A handle for the caller. */
static hem_status make_handle(hem_world *world, const hem_coll *coll, bool persistent,
                              hemi_collective **c_p) {
    hemi_job job;
    hem_status status = hemi_job_make(coll, world->rank, world->size, &job);
    if (status != HEM_OK)
        return status;
    hemi_collective *c = calloc(1, sizeof *c);
    if (c == NULL) {
        hemi_job_clear(&job);
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective");
    }
    c->op.owned = true;
    c->timeout_ns = coll->timeout_ns;
    c->op.call = HEMI_CALL_COLL + (uint32_t)coll->kind;
    status = hemi_collective_make(world, &job, c);
    if (status != HEM_OK) {
        hemi_collective_clear(c);
        free(c);
        return status;
    }
    hemi_op_init(&c->op, world, &hemi_collective_type, persistent, true);
    c->op.call = HEMI_CALL_COLL + (uint32_t)coll->kind;
    *c_p = c;
    return HEM_OK;
}

/* An operation that may be started. */
static hem_status make_checked(hem_world *world, const hem_coll *coll, bool persistent,
                               const char *call, hem_op **op_p) {
    hem_coll c;
    hemi_collective *made = NULL;
    hem_status status = check(world, coll, 0, call, &c);
    if (status == HEM_OK && op_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: op_p is NULL", call);
    if (status != HEM_OK)
        return status;
    if (hemi_coll_is_device(world, &c, true))
        return hemi_coll_device_plan(world, &c, persistent, world->timeout_ns, op_p);
    status = make_handle(world, &c, persistent, &made);
    if (status == HEM_OK)
        *op_p = &made->op;
    return status;
}

hem_status hem_coll_start(hem_world *world, const hem_coll *coll, hem_op **op_p) {
    hem_op *op = NULL;
    hem_status status =
        make_checked(world, coll, false, "hem_coll_start", op_p == NULL ? NULL : &op);
    if (status != HEM_OK)
        return status;
    hemi_engine_lock(world);
    hemi_op_begin(op);
    hemi_engine_unlock(world);
    *op_p = op;
    hemi_engine_settle(world);
    return HEM_OK;
}

hem_status hem_coll_plan(hem_world *world, const hem_coll *coll, hem_op **op_p) {
    return make_checked(world, coll, true, "hem_coll_plan", op_p);
}

/* The blocking forms by name. */

static hem_status run_named(hem_world *world, const hem_coll *coll, const char *call,
                            int64_t timeout_ns) {
    hem_status status = hemi_engine_check(world, call);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, call);
    return status == HEM_OK ? run_coll(world, coll, timeout_ns) : status;
}

hem_status hem_sync(hem_world *world, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_BARRIER};
    return run_named(world, &coll, "hem_sync", timeout_ns);
}

hem_status hem_broadcast(hem_world *world, void *data, size_t count, hem_dtype dtype, int root,
                         int64_t timeout_ns) {
    hem_coll coll = {
        .kind = HEM_BROADCAST, .recv = data, .count = count, .dtype = dtype, .root = root};
    return run_named(world, &coll, "hem_broadcast", timeout_ns);
}

hem_status hem_reduce(hem_world *world, const void *send, void *recv, size_t count, hem_dtype dtype,
                      hem_reduction op, int root, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_REDUCE,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .dtype = dtype,
                     .op = op,
                     .root = root};
    return run_named(world, &coll, "hem_reduce", timeout_ns);
}

hem_status hem_allreduce(hem_world *world, const void *send, void *recv, size_t count,
                         hem_dtype dtype, hem_reduction op, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_ALLREDUCE,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .dtype = dtype,
                     .op = op};
    return run_named(world, &coll, "hem_allreduce", timeout_ns);
}

hem_status hem_allgather(hem_world *world, const void *send, void *recv, size_t count,
                         hem_dtype dtype, int64_t timeout_ns) {
    hem_coll coll = {
        .kind = HEM_ALLGATHER, .send = send, .recv = recv, .count = count, .dtype = dtype};
    return run_named(world, &coll, "hem_allgather", timeout_ns);
}

hem_status hem_allgatherv(hem_world *world, const void *send, void *recv, const size_t *counts,
                          const size_t *displs, hem_dtype dtype, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_ALLGATHERV,
                     .send = send,
                     .recv = recv,
                     .counts = counts,
                     .displs = displs,
                     .dtype = dtype};
    return run_named(world, &coll, "hem_allgatherv", timeout_ns);
}

hem_status hem_reduce_scatter(hem_world *world, const void *send, void *recv, size_t count,
                              hem_dtype dtype, hem_reduction op, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_REDUCE_SCATTER,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .dtype = dtype,
                     .op = op};
    return run_named(world, &coll, "hem_reduce_scatter", timeout_ns);
}

hem_status hem_reduce_scatterv(hem_world *world, const void *send, void *recv, const size_t *counts,
                               hem_dtype dtype, hem_reduction op, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_REDUCE_SCATTERV,
                     .send = send,
                     .recv = recv,
                     .counts = counts,
                     .dtype = dtype,
                     .op = op};
    return run_named(world, &coll, "hem_reduce_scatterv", timeout_ns);
}

hem_status hem_gather(hem_world *world, const void *send, void *recv, size_t count, hem_dtype dtype,
                      int root, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_GATHER,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .dtype = dtype,
                     .root = root};
    return run_named(world, &coll, "hem_gather", timeout_ns);
}

hem_status hem_gatherv(hem_world *world, const void *send, size_t count, void *recv,
                       const size_t *counts, const size_t *displs, hem_dtype dtype, int root,
                       int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_GATHERV,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .counts = counts,
                     .displs = displs,
                     .dtype = dtype,
                     .root = root};
    return run_named(world, &coll, "hem_gatherv", timeout_ns);
}

hem_status hem_scatter(hem_world *world, const void *send, void *recv, size_t count,
                       hem_dtype dtype, int root, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_SCATTER,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .dtype = dtype,
                     .root = root};
    return run_named(world, &coll, "hem_scatter", timeout_ns);
}

hem_status hem_scatterv(hem_world *world, const void *send, const size_t *counts,
                        const size_t *displs, void *recv, size_t count, hem_dtype dtype, int root,
                        int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_SCATTERV,
                     .send = send,
                     .recv = recv,
                     .count = count,
                     .counts = counts,
                     .displs = displs,
                     .dtype = dtype,
                     .root = root};
    return run_named(world, &coll, "hem_scatterv", timeout_ns);
}

hem_status hem_alltoall(hem_world *world, const void *send, void *recv, size_t count,
                        hem_dtype dtype, int64_t timeout_ns) {
    hem_coll coll = {
        .kind = HEM_ALLTOALL, .send = send, .recv = recv, .count = count, .dtype = dtype};
    return run_named(world, &coll, "hem_alltoall", timeout_ns);
}

hem_status hem_alltoallv(hem_world *world, const void *send, const size_t *send_counts,
                         const size_t *send_displs, void *recv, const size_t *recv_counts,
                         const size_t *recv_displs, hem_dtype dtype, int64_t timeout_ns) {
    hem_coll coll = {.kind = HEM_ALLTOALLV,
                     .send = send,
                     .recv = recv,
                     .counts = recv_counts,
                     .displs = recv_displs,
                     .send_counts = send_counts,
                     .send_displs = send_displs,
                     .dtype = dtype};
    return run_named(world, &coll, "hem_alltoallv", timeout_ns);
}

/* Sparse. */

static hem_status check_sparse(hem_world *world, const hem_parcel *parcels, size_t count,
                               const hem_sparse_result *result_p, const char *call) {
    hem_status status = hemi_engine_check(world, call);
    if (status == HEM_OK && ((parcels == NULL && count > 0) || result_p == NULL))
        status = hemi_fail(HEM_ERR_ARG, "%s: parcels or result_p is NULL", call);
    return status;
}

static hem_status make_sparse(hem_world *world, hemi_collective *c, const hem_parcel *parcels,
                              size_t count, hem_sparse_result *result_p) {
    hemi_job job = {
        .kind = HEMI_KIND_SPARSE, .rank = world->rank, .size = world->size, .element = 1};
    c->op.call = HEMI_CALL_SPARSE;
    hemi_sparse_call call = {parcels, count, result_p};
    c->call = &call;
    hem_status status = hemi_collective_make(world, &job, c);
    c->call = NULL;
    return status;
}

hem_status hem_sparse(hem_world *world, const hem_parcel *parcels, size_t count,
                      hem_sparse_result *result_p, int64_t timeout_ns) {
    hem_status status = check_sparse(world, parcels, count, result_p, "hem_sparse");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_sparse");
    if (status != HEM_OK)
        return status;
    hemi_collective c;
    memset(&c, 0, offsetof(hemi_collective, room));
    hemi_op_init(&c.op, world, &hemi_collective_type, false, false);
    status = make_sparse(world, &c, parcels, count, result_p);
    if (status == HEM_OK)
        status = run(world, &c, NULL, timeout_ns);
    hemi_collective_clear(&c);
    return status;
}

hem_status hem_sparse_start(hem_world *world, const hem_parcel *parcels, size_t count,
                            hem_sparse_result *result_p, hem_op **op_p) {
    hem_status status = check_sparse(world, parcels, count, result_p, "hem_sparse_start");
    if (status == HEM_OK && op_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_sparse_start: op_p is NULL");
    if (status != HEM_OK)
        return status;
    hemi_collective *c = calloc(1, sizeof *c);
    if (c == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective");
    c->op.owned = true;
    status = make_sparse(world, c, parcels, count, result_p);
    if (status != HEM_OK) {
        hemi_collective_clear(c);
        free(c);
        return status;
    }
    hemi_op_init(&c->op, world, &hemi_collective_type, false, true);
    c->op.call = HEMI_CALL_SPARSE;
    hemi_engine_lock(world);
    hemi_op_begin(&c->op);
    hemi_engine_unlock(world);
    *op_p = &c->op;
    hemi_engine_settle(world);
    return HEM_OK;
}
