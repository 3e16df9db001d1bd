/* What a collective on device buffers moves, rank by rank, and how the kernel calls it. */
#include "coll/device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A block is worth so many bytes that a rank writes or reads. */
#define BLOCK_BYTES 8192u

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective on a device");
}

/* Whether the host can read at an address, which only a system call tells without a fault. */
static bool is_readable(const void *address) {
    unsigned char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)address, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static bool is_on(const hemi_device *device, const void *address) {
    return address != NULL &&
           device->module->memory->kind(device->context, address) == HEM_MEMORY_DEVICE;
}

bool hemi_coll_is_device(hem_world *world, const hem_coll *coll, bool look) {
    if (coll->memory == HEM_MEMORY_DEVICE)
        return true;
    hemi_device *device = hemi_device_peek(world->root);
    if (device == NULL && look &&
        ((coll->send != NULL && !is_readable(coll->send)) ||
         (coll->recv != NULL && !is_readable(coll->recv))) &&
        hemi_device_get(world->root, &device) != HEM_OK)
        return false;
    return device != NULL && (is_on(device, coll->send) || is_on(device, coll->recv));
}

/* Of kinds with counts of each rank, or the same for all. */
static uint64_t count_of(const hemi_job *job, const size_t *counts, uint32_t r) {
    return (uint64_t)(counts != NULL ? counts[r] : job->count) * job->element;
}

static uint64_t place_of(const hemi_job *job, const size_t *displs, uint32_t r) {
    return (uint64_t)(displs != NULL ? displs[r] : r * job->count) * job->element;
}

static void send_to(hemi_coll_device *d, uint32_t r, uint64_t at, uint64_t bytes) {
    d->spans[r].send_at = bytes == 0 ? 0 : at;
    d->spans[r].send_bytes = bytes;
}

static void recv_from(hemi_coll_device *d, uint32_t r, uint64_t at, uint64_t bytes) {
    d->spans[r].recv_at = bytes == 0 ? 0 : at;
    d->spans[r].recv_bytes = bytes;
}

/* Kinds in which the root sends or receives, or does both as everybody does. */
static void span_rooted(hemi_coll_device *d, uint32_t r) {
    const hemi_job *job = &d->job;
    uint64_t own = (uint64_t)job->count * job->element;
    bool to_root = r == job->root;
    bool from_root = job->rank == job->root;
    switch (job->kind) {
    case HEM_BROADCAST:
        /* The root's buffer stays as it is. */
        if (from_root && !to_root)
            send_to(d, r, 0, own);
        if (to_root && !from_root)
            recv_from(d, r, 0, own);
        break;
    case HEM_REDUCE:
    case HEM_GATHER:
    case HEM_GATHERV:
        if (to_root)
            send_to(d, r, 0, own);
        if (from_root && job->kind == HEM_REDUCE)
            recv_from(d, r, 0, own);
        else if (from_root)
            recv_from(d, r, place_of(job, job->displs, r), count_of(job, job->counts, r));
        break;
    default:
        if (from_root)
            send_to(d, r, place_of(job, job->displs, r), count_of(job, job->counts, r));
        if (to_root)
            recv_from(d, r, 0, own);
        break;
    }
}

static void span(hemi_coll_device *d, uint32_t r) {
    const hemi_job *job = &d->job;
    switch (job->kind) {
    case HEM_BARRIER:
        break;
    case HEM_ALLREDUCE:
        send_to(d, r, 0, count_of(job, NULL, r));
        recv_from(d, r, 0, count_of(job, NULL, r));
        break;
    case HEM_ALLGATHER:
    case HEM_ALLGATHERV:
        send_to(d, r, 0, count_of(job, job->counts, job->rank));
        recv_from(d, r, place_of(job, job->displs, r), count_of(job, job->counts, r));
        break;
    case HEM_REDUCE_SCATTER:
    case HEM_REDUCE_SCATTERV:
        send_to(d, r, place_of(job, job->displs, r), count_of(job, job->counts, r));
        recv_from(d, r, 0, count_of(job, job->counts, job->rank));
        break;
    case HEM_ALLTOALL:
    case HEM_ALLTOALLV:
        send_to(d, r, place_of(job, job->send_displs, r), count_of(job, job->send_counts, r));
        recv_from(d, r, place_of(job, job->displs, r), count_of(job, job->counts, r));
        break;
    default:
        span_rooted(d, r);
        break;
    }
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void measure(hemi_coll_device *d) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < d->size; r++) {
        const hemi_coll_span *s = &d->spans[r];
        uint64_t *e = d->extents;
        e[HEMI_COLL_SEND] = larger(e[HEMI_COLL_SEND], s->send_at + s->send_bytes);
        e[HEMI_COLL_RECV] = larger(e[HEMI_COLL_RECV], s->recv_at + s->recv_bytes);
        d->all.pair_bytes = larger(d->all.pair_bytes, larger(s->send_bytes, s->recv_bytes));
        sum += larger(s->send_bytes, s->recv_bytes);
    }
    /* Each rank combines a slice of what all have. */
    if (d->job.kind == HEM_ALLREDUCE || d->job.kind == HEM_REDUCE)
        sum = d->all.pair_bytes;
    uint64_t wants = sum / BLOCK_BYTES + 1;
    d->all.wants = wants < HEMD_COLL_BLOCKS ? (uint32_t)wants : HEMD_COLL_BLOCKS;
    d->all.send_bytes = d->extents[HEMI_COLL_SEND];
    d->all.recv_bytes = d->extents[HEMI_COLL_RECV];
}

/* Whether a thread would write what another rank or thread still has to read. */
static bool needs_room(const hemi_coll_device *d) {
    hem_coll_kind kind = d->job.kind;
    bool apart = kind == HEM_REDUCE_SCATTER || kind == HEM_REDUCE_SCATTERV ||
                 kind == HEM_ALLTOALL || kind == HEM_ALLTOALLV;
    return apart && d->size > 1 && d->buffers[HEMI_COLL_SEND] == d->buffers[HEMI_COLL_RECV];
}

static hem_status check_memory(const hemi_coll_device *d) {
    static const char *const names[HEMI_COLL_BUFFERS] = {"send", "recv"};
    for (int b = 0; b < HEMI_COLL_BUFFERS; b++)
        if (d->extents[b] > 0 && !is_on(d->device, d->buffers[b]))
            return hemi_fail(
                HEM_ERR_MISMATCH,
                "%s: %s of rank %u is in host memory; on device buffers all buffers of "
                "all ranks are in device memory",
                hemi_call_name(HEMI_CALL_COLL + (uint32_t)d->job.kind), names[b], d->rank);
    return HEM_OK;
}

hem_status hemi_coll_device_prepare(hemi_coll_device *d, const hem_coll *coll) {
    hem_status status = hemi_job_make(coll, d->rank, d->size, &d->job);
    if (status == HEM_OK && d->job.op == HEM_USER)
        status = hemi_fail(
            HEM_ERR_UNSUPPORTED, "%s: the reduction %s is not done on device buffers",
            hemi_call_name(HEMI_CALL_COLL + (uint32_t)d->job.kind), hemi_reduction_name(d->job.op));
    if (status == HEM_OK)
        status = hemi_device_get(d->root, &d->device);
    if (status != HEM_OK)
        return status;
    d->spans = calloc(d->size, sizeof *d->spans);
    d->theirs = calloc(d->size, sizeof *d->theirs);
    for (int b = 0; b < HEMI_COLL_BUFFERS; b++)
        d->maps[b] = calloc(d->size, sizeof *d->maps[b]);
    d->wants = calloc(d->size, sizeof *d->wants);
    if (d->spans == NULL || d->theirs == NULL || d->maps[0] == NULL || d->maps[1] == NULL ||
        d->wants == NULL)
        return no_memory();
    memset(d->wants, 1, d->size * sizeof *d->wants);
    for (uint32_t r = 0; r < d->size; r++)
        span(d, r);
    d->buffers[HEMI_COLL_SEND] = (unsigned char *)(uintptr_t)d->job.send;
    d->buffers[HEMI_COLL_RECV] = d->job.recv;
    if (d->job.kind == HEM_BROADCAST && d->job.send == NULL)
        d->buffers[HEMI_COLL_SEND] = d->job.recv;
    measure(d);
    d->all.blocks =
        coll->blocks > 0 && coll->blocks < HEMD_COLL_BLOCKS ? coll->blocks : HEMD_COLL_BLOCKS;
    d->all.moved = needs_room(d);
    return check_memory(d);
}

/* The type of a reduction as the kernel has it; signed integers compare in their own way and have
 * everything else of the unsigned. */
static uint32_t type_of(hem_dtype dtype, hem_reduction op) {
    static const uint8_t types[HEM_BOOL + 1] = {
        [HEM_BYTE] = HEMD_COLL_U8, [HEM_I8] = HEMD_COLL_I8,     [HEM_I16] = HEMD_COLL_I16,
        [HEM_I32] = HEMD_COLL_I32, [HEM_I64] = HEMD_COLL_I64,   [HEM_U8] = HEMD_COLL_U8,
        [HEM_U16] = HEMD_COLL_U16, [HEM_U32] = HEMD_COLL_U32,   [HEM_U64] = HEMD_COLL_U64,
        [HEM_F16] = HEMD_COLL_F16, [HEM_BF16] = HEMD_COLL_BF16, [HEM_F32] = HEMD_COLL_F32,
        [HEM_F64] = HEMD_COLL_F64, [HEM_C64] = HEMD_COLL_C64,   [HEM_C128] = HEMD_COLL_C128,
        [HEM_BOOL] = HEMD_COLL_U8};
    uint32_t type = types[dtype];
    bool compares = op == HEM_MIN || op == HEM_MAX || op == HEM_MINLOC || op == HEM_MAXLOC;
    if (op >= HEM_BAND && op <= HEM_BXOR)
        return HEMD_COLL_U8;
    if (type >= HEMD_COLL_I8 && type <= HEMD_COLL_I64 && !compares)
        return type - HEMD_COLL_I8 + HEMD_COLL_U8;
    return type;
}

/* Any byte but 0 is true. */
static hem_reduction bool_op(hem_reduction op) {
    switch (op) {
    case HEM_SUM:
    case HEM_MAX:
    case HEM_BOR:
        return HEM_LOR;
    case HEM_PROD:
    case HEM_MIN:
    case HEM_BAND:
        return HEM_LAND;
    case HEM_BXOR:
        return HEM_LXOR;
    default:
        return op;
    }
}

uint32_t hemi_coll_device_code(const hemi_job *job, uint32_t *parts_p) {
    hem_reduction op = job->dtype == HEM_BOOL ? bool_op(job->op) : job->op;
    bool logical = op == HEM_LAND || op == HEM_LOR || op == HEM_LXOR;
    uint32_t type = type_of(job->dtype, op);
    *parts_p = 1;
    if (job->size == 1 && !logical)
        return 0;
    if (op == HEM_SUM && (type == HEMD_COLL_C64 || type == HEMD_COLL_C128)) {
        *parts_p = 2;
        type = type == HEMD_COLL_C64 ? HEMD_COLL_F32 : HEMD_COLL_F64;
    }
    return HEMD_COLL_CODE(type, op);
}
