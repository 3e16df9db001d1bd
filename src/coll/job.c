#include "coll/job.h"
#include "base/status.h"
#include "core/flight.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(hem_coll_kind kind) {
    return hemi_call_name(HEMI_CALL_COLL + (uint32_t)kind);
}

static bool combines(hem_coll_kind kind) {
    return kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
           kind == HEM_REDUCE_SCATTERV;
}

static bool has_root(hem_coll_kind kind) {
    return kind == HEM_BROADCAST || kind == HEM_REDUCE || kind == HEM_GATHER ||
           kind == HEM_GATHERV || kind == HEM_SCATTER || kind == HEM_SCATTERV;
}

/* Whether this rank must say how long everybody's block is. */
static bool needs_counts(const hemi_job *job) {
    switch (job->kind) {
    case HEM_ALLGATHERV:
    case HEM_REDUCE_SCATTERV:
    case HEM_ALLTOALLV:
        return true;
    case HEM_GATHERV:
    case HEM_SCATTERV:
        return job->rank == job->root;
    default:
        return false;
    }
}

/* Copy counts and displacements; without the latter, blocks follow each other. */
static hem_status copy_counts(const hemi_job *job, const size_t *counts, const size_t *displs,
                              size_t **counts_p, size_t **displs_p) {
    if (counts == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: counts is NULL", name_of(job->kind));
    size_t most = job->element == 0 ? SIZE_MAX : SIZE_MAX / job->element;
    *counts_p = calloc(job->size, sizeof(size_t));
    *displs_p = calloc(job->size, sizeof(size_t));
    if (*counts_p == NULL || *displs_p == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "%s: no memory for %u counts", name_of(job->kind),
                         job->size);
    size_t next = 0;
    for (uint32_t r = 0; r < job->size; r++) {
        size_t at = displs != NULL ? displs[r] : next;
        if (counts[r] > most || at > most - counts[r])
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: %zu elements of %zu bytes at element %zu for rank %u overflow",
                             name_of(job->kind), counts[r], job->element, at, r);
        (*counts_p)[r] = counts[r];
        (*displs_p)[r] = at;
        next = at + counts[r];
    }
    return HEM_OK;
}

static size_t sum(const size_t *counts, uint32_t size) {
    size_t total = 0;
    for (uint32_t r = 0; r < size; r++)
        total += counts[r];
    return total;
}

static hem_status need(const hemi_job *job, const void *buffer, size_t count, const char *which) {
    if (buffer != NULL || count == 0 || job->element == 0)
        return HEM_OK;
    return hemi_fail(HEM_ERR_ARG, "%s: %s is NULL", name_of(job->kind), which);
}

/* Which buffers this rank must have. */
static hem_status check_buffers(const hemi_job *job) {
    bool root = job->rank == job->root;
    size_t sends = job->count;
    size_t gets = job->count;
    switch (job->kind) {
    case HEM_BARRIER:
        return HEM_OK;
    case HEM_BROADCAST:
        return root && job->send != NULL ? HEM_OK : need(job, job->recv, job->count, "the buffer");
    case HEM_REDUCE:
    case HEM_GATHER:
        gets = root ? gets : 0;
        break;
    case HEM_SCATTER:
        sends = root ? sends : 0;
        break;
    case HEM_ALLGATHERV:
        sends = job->counts[job->rank];
        gets = sum(job->counts, job->size);
        break;
    case HEM_REDUCE_SCATTERV:
        sends = sum(job->counts, job->size);
        gets = job->counts[job->rank];
        break;
    case HEM_GATHERV:
        gets = root ? sum(job->counts, job->size) : 0;
        break;
    case HEM_SCATTERV:
        sends = root ? sum(job->counts, job->size) : 0;
        break;
    case HEM_ALLTOALLV:
        sends = sum(job->send_counts, job->size);
        gets = sum(job->counts, job->size);
        break;
    default:
        break;
    }
    hem_status status = need(job, job->send, sends, "send");
    return status == HEM_OK ? need(job, job->recv, gets, "recv") : status;
}

static hem_status check_element(const hem_coll *coll, hemi_job *job) {
    job->dtype = coll->dtype;
    if (combines(coll->kind)) {
        job->op = coll->op;
        hem_status status = hemi_reducer_find(coll->dtype, coll->op, coll->user, coll->user_arg,
                                              coll->element, &job->reducer);
        job->element = job->reducer.element;
        return status;
    }
    job->element = coll->dtype != 0 ? hem_dtype_size(coll->dtype) : coll->element;
    if (job->element == 0 && coll->kind != HEM_BARRIER)
        return hemi_fail(HEM_ERR_ARG, "%s: neither a type nor an element size",
                         name_of(coll->kind));
    return HEM_OK;
}

/* What a rank says twice about its own block must be the same. */
static hem_status check_own(const hemi_job *job) {
    bool root = job->rank == job->root;
    size_t said = job->count;
    if (job->kind == HEM_ALLTOALLV)
        said = job->send_counts[job->rank];
    else if ((job->kind != HEM_GATHERV && job->kind != HEM_SCATTERV) || !root)
        return HEM_OK;
    if (said == job->counts[job->rank])
        return HEM_OK;
    return hemi_fail(HEM_ERR_ARG, "%s: rank %u has %zu elements for itself, but counts says %zu",
                     name_of(job->kind), job->rank, said, job->counts[job->rank]);
}

static hem_status fill_in(const hem_coll *coll, hemi_job *job) {
    hem_status status = check_element(coll, job);
    if (status != HEM_OK)
        return status;
    /* The whole of all blocks must be something that a size can count. */
    if (job->element != 0 && coll->count > SIZE_MAX / 2 / job->element / job->size)
        return hemi_fail(HEM_ERR_RANGE, "%s: %zu elements of %zu bytes on %u ranks overflow",
                         name_of(job->kind), coll->count, job->element, job->size);
    if (has_root(job->kind) && (coll->root < 0 || (uint32_t)coll->root >= job->size))
        return hemi_fail(HEM_ERR_RANGE, "%s: root %d is not one of 0 to %u", name_of(job->kind),
                         coll->root, job->size - 1);
    job->root = has_root(job->kind) ? (uint32_t)coll->root : 0;
    if (needs_counts(job))
        status = copy_counts(job, coll->counts, coll->displs, &job->counts, &job->displs);
    if (status == HEM_OK && job->kind == HEM_ALLTOALLV)
        status = copy_counts(job, coll->send_counts, coll->send_displs, &job->send_counts,
                             &job->send_displs);
    if (status == HEM_OK)
        status = check_own(job);
    return status == HEM_OK ? check_buffers(job) : status;
}

hem_status hemi_job_make(const hem_coll *coll, uint32_t rank, uint32_t size, hemi_job *job_p) {
    if ((unsigned)coll->kind < HEM_BARRIER || (unsigned)coll->kind > HEM_ALLTOALLV)
        return hemi_fail(HEM_ERR_ARG, "a collective of kind %d does not exist", (int)coll->kind);
    hemi_job job = {
        .kind = coll->kind,
        .rank = rank,
        .size = size,
        .count = coll->count,
        .send = coll->send,
        .recv = coll->recv,
    };
    hem_status status = fill_in(coll, &job);
    if (status != HEM_OK) {
        hemi_job_clear(&job);
        return status;
    }
    *job_p = job;
    return HEM_OK;
}

void hemi_job_clear(hemi_job *job) {
    free(job->counts);
    free(job->displs);
    free(job->send_counts);
    free(job->send_displs);
    job->counts = NULL;
    job->displs = NULL;
    job->send_counts = NULL;
    job->send_displs = NULL;
}
