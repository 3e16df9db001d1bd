/*
 * All-reduce by recursive doubling, in the order of ranks, at any rank count.
 *
 * With Q the largest power of two up to P, the first 2 (P-Q) ranks form pairs: the odd one gives its
 * contribution to the even one and gets the result at the end. What is left are Q groups of one or
 * two neighbouring ranks. In round k a group exchanges with the one whose number differs in bit k, so
 * that each then has the result of 2^(k+1) neighbouring groups. Both compute lower op upper, hence
 * the same bits. log2(Q) rounds, two more if P is no power of two; the whole vector each time.
 */
#include "coll/plans.h"

bool hemi_fits_doubling_allreduce(const hemi_job *job) {
    return job->kind == HEM_ALLREDUCE && hemi_job_may_regroup(job);
}

/* What this rank has so far, and where the result goes. */
typedef struct doubling {
    hemi_plan *plan;
    hemi_place have;
    hemi_place into;
    size_t total;
} doubling;

/* The partner's part has come into scratch: combine it. */
static void fold(doubling *d, bool partner_is_lower) {
    hemi_place theirs = hemi_place_at(HEMI_SCRATCH, 0);
    hemi_plan_round(d->plan);
    if (partner_is_lower)
        hemi_plan_reduce(d->plan, d->into, theirs, d->have, d->total);
    else
        hemi_plan_reduce(d->plan, d->into, d->have, theirs, d->total);
    hemi_plan_round(d->plan);
    d->have = d->into;
}

static void exchange_all(doubling *d, uint32_t rank, uint32_t power, uint32_t pairs) {
    uint32_t group = rank < 2 * pairs ? rank / 2 : rank - pairs;
    for (uint32_t bit = 1; bit < power; bit *= 2) {
        uint32_t other = group ^ bit;
        uint32_t peer = other < pairs ? 2 * other : other + pairs;
        hemi_plan_recv(d->plan, peer, hemi_place_at(HEMI_SCRATCH, 0), d->total);
        hemi_plan_send(d->plan, peer, d->have, d->total);
        fold(d, other < group);
    }
}

hem_status hemi_plan_doubling_allreduce(const hemi_job *job, hemi_plan *plan_p) {
    uint32_t rank = job->rank;
    uint32_t power = 1;
    while (power <= job->size / 2)
        power *= 2;
    uint32_t pairs = job->size - power;
    bool in_place = hemi_job_in_place(job, 0);
    doubling d = {.plan = plan_p,
                  .have = hemi_place_at(in_place ? HEMI_OUTPUT : HEMI_INPUT, 0),
                  .into = hemi_place_at(HEMI_OUTPUT, 0),
                  .total = job->count * job->element};
    if (job->size == 1)
        return hemi_job_plan_alone(job, 0, d.total, plan_p);
    hemi_job_begin_plan(job, plan_p);
    if (rank < 2 * pairs && rank % 2 == 1) {
        hemi_plan_send(plan_p, rank - 1, d.have, d.total);
        hemi_plan_round(plan_p);
        hemi_plan_recv(plan_p, rank - 1, d.into, d.total);
        return hemi_plan_finish(plan_p);
    }
    if (rank < 2 * pairs) {
        hemi_plan_recv(plan_p, rank + 1, hemi_place_at(HEMI_SCRATCH, 0), d.total);
        fold(&d, false);
    }
    exchange_all(&d, rank, power, pairs);
    if (rank < 2 * pairs)
        hemi_plan_send(plan_p, rank + 1, d.into, d.total);
    return hemi_plan_finish(plan_p);
}
