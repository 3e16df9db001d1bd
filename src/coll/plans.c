#include "coll/plans.h"

#include <string.h>

/* A message costs about as much time as copying this many bytes. */
#define MESSAGE_WORTH ((size_t)16 << 10)
#define PIECE_MIN     ((size_t)16 << 10)
#define PIECE_MAX     ((size_t)1 << 20)

static const hemi_algorithm table[] = {
    {"ring", HEM_ALLREDUCE, hemi_fits_ring_allreduce, hemi_plan_ring_allreduce},
    {"ring", HEM_REDUCE_SCATTER, hemi_fits_ring_reduce_scatter, hemi_plan_ring_reduce_scatter},
    {"ring", HEM_REDUCE_SCATTERV, hemi_fits_ring_reduce_scatter, hemi_plan_ring_reduce_scatter},
    {"ring", HEM_ALLGATHER, hemi_fits_ring_allgather, hemi_plan_ring_allgather},
    {"ring", HEM_ALLGATHERV, hemi_fits_ring_allgather, hemi_plan_ring_allgather},
    {"doubling", HEM_ALLREDUCE, hemi_fits_doubling_allreduce, hemi_plan_doubling_allreduce},
    {"doubling", HEM_ALLGATHER, hemi_fits_doubling_allgather, hemi_plan_doubling_allgather},
    {"tree", HEM_BROADCAST, hemi_fits_tree_broadcast, hemi_plan_tree_broadcast},
    {"tree", HEM_REDUCE, hemi_fits_tree_reduce, hemi_plan_tree_reduce},
    {"pairwise", HEM_ALLTOALL, hemi_fits_pairwise_alltoall, hemi_plan_pairwise_alltoall},
    {"pairwise", HEM_ALLTOALLV, hemi_fits_pairwise_alltoall, hemi_plan_pairwise_alltoall},
    {"pairwise", HEM_ALLREDUCE, hemi_fits_pairwise_allreduce, hemi_plan_pairwise_allreduce},
    {"pairwise", HEM_REDUCE_SCATTER, hemi_fits_pairwise_reduce_scatter,
     hemi_plan_pairwise_reduce_scatter},
    {"pairwise", HEM_REDUCE_SCATTERV, hemi_fits_pairwise_reduce_scatter,
     hemi_plan_pairwise_reduce_scatter},
    {"linear", HEM_GATHER, hemi_fits_linear_gather, hemi_plan_linear_gather},
    {"linear", HEM_GATHERV, hemi_fits_linear_gather, hemi_plan_linear_gather},
    {"linear", HEM_SCATTER, hemi_fits_linear_scatter, hemi_plan_linear_scatter},
    {"linear", HEM_SCATTERV, hemi_fits_linear_scatter, hemi_plan_linear_scatter},
    {"dissemination", HEM_BARRIER, hemi_fits_dissemination_barrier,
     hemi_plan_dissemination_barrier},
};

const hemi_algorithm *hemi_algorithms(size_t *count_p) {
    *count_p = sizeof table / sizeof table[0];
    return table;
}

const hemi_algorithm *hemi_algorithm_find(const char *name, hem_coll_kind kind) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == kind && strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static hemi_block make_block(const hemi_job *job, const size_t *counts, const size_t *displs,
                             uint32_t rank) {
    if (counts == NULL)
        return (hemi_block){rank * job->count * job->element, job->count * job->element};
    size_t at = 0;
    if (displs != NULL)
        at = displs[rank];
    else
        for (uint32_t r = 0; r < rank; r++)
            at += counts[r];
    return (hemi_block){at * job->element, counts[rank] * job->element};
}

hemi_block hemi_job_block(const hemi_job *job, uint32_t rank) {
    return make_block(job, job->counts, job->displs, rank);
}

hemi_block hemi_job_send_block(const hemi_job *job, uint32_t rank) {
    return make_block(job, job->send_counts, job->send_displs, rank);
}

bool hemi_job_may_split(const hemi_job *job) {
    if (job->op == HEM_SUM || job->op == HEM_PROD)
        return job->dtype != HEM_F16 && job->dtype != HEM_BF16;
    /* What is not known does not fit. */
    return job->op != 0;
}

/*
 * Not floating point: rounding shows how operands were grouped, and so can a NaN among minima. Other
 * types are exact.
 */
bool hemi_job_may_regroup(const hemi_job *job) {
    if (job->op == HEM_USER)
        return true;
    switch (job->dtype) {
    case HEM_F16:
    case HEM_BF16:
    case HEM_F32:
    case HEM_F64:
    case HEM_C64:
    case HEM_C128:
        return false;
    default:
        return job->op != 0;
    }
}

static void combine(const void *arg, void *out, const void *const *sources, size_t source_count,
                    size_t count) {
    hemi_reduce(arg, out, sources, source_count, count);
}

static bool combines(hem_coll_kind kind) {
    return kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
           kind == HEM_REDUCE_SCATTERV;
}

void hemi_job_begin_plan(const hemi_job *job, hemi_plan *plan) {
    hemi_plan_init(plan, job->rank, job->size);
    if (combines(job->kind))
        hemi_plan_combine_by(plan, job->element, combine, &job->reducer, sizeof job->reducer);
}

/* Even one contribution is combined: logical operations and booleans make 1 of what is not 0. */
hem_status hemi_job_plan_alone(const hemi_job *job, size_t offset, size_t bytes,
                               hemi_plan *plan_p) {
    bool in_place = hemi_job_in_place(job, 0);
    /* The result may lie across its source. */
    bool aside = in_place && offset != 0;
    hemi_place result = hemi_place_at(HEMI_OUTPUT, 0);
    hemi_place to = aside ? hemi_place_at(HEMI_SCRATCH, 0) : result;
    hemi_job_begin_plan(job, plan_p);
    hemi_plan_source(plan_p, hemi_place_at(in_place ? HEMI_OUTPUT : HEMI_INPUT, offset));
    hemi_plan_reduce_sources(plan_p, to, bytes);
    hemi_plan_round(plan_p);
    if (aside)
        hemi_plan_copy(plan_p, result, to, bytes);
    return hemi_plan_finish(plan_p);
}

/* The largest number whose square is at most n. */
static size_t square_root(size_t n) {
    size_t root = 0;
    for (size_t bit = (size_t)1 << 31; bit > 0; bit >>= 1)
        if ((root + bit) <= n / (root + bit))
            root += bit;
    return root;
}

/*
 * A pipeline of k pieces through s stages takes (k + s) times (message + total / k), which is least
 * at total / k = sqrt(total * message / s).
 */
size_t hemi_job_piece(const hemi_job *job, size_t total, uint32_t stages) {
    size_t best = square_root(total / (stages > 0 ? stages : 1) * MESSAGE_WORTH);
    if (total > SIZE_MAX / MESSAGE_WORTH)
        best = PIECE_MAX;
    best = best < PIECE_MIN ? PIECE_MIN : best > PIECE_MAX ? PIECE_MAX : best;
    size_t elements = best / job->element;
    return (elements > 0 ? elements : 1) * job->element;
}
