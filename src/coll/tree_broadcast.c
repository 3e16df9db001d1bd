/*
 * Broadcast down a binomial tree, in pieces: a rank passes a piece on to all of its children while the
 * next one arrives. The rank at distance v from the root gets it from v without its lowest bit, and
 * gives it to v + b for all powers of two b below that bit, the largest subtree first.
 */
#include "coll/plans.h"

typedef struct tree {
    const hemi_job *job;
    hemi_plan *plan;
    uint32_t distance; /* from the root, around the ring of ranks */
    uint32_t lowest;   /* bit of the distance; for the root the first power of two beyond all */
    size_t total;
    size_t piece;
    hemi_place source;
} tree;

bool hemi_fits_tree_broadcast(const hemi_job *job) {
    return job->kind == HEM_BROADCAST;
}

static uint32_t peer(const tree *t, uint32_t distance) {
    return (uint32_t)(((uint64_t)t->job->root + distance) % t->job->size);
}

static size_t length(const tree *t, size_t c) {
    size_t left = t->total - c * t->piece;
    return left < t->piece ? left : t->piece;
}

static void pass_on(const tree *t, size_t c) {
    hemi_place from = hemi_place_add(t->source, c * t->piece);
    for (uint32_t bit = t->lowest / 2; bit > 0; bit /= 2)
        if (t->distance + bit < t->job->size)
            hemi_plan_send(t->plan, peer(t, t->distance + bit), from, length(t, c));
}

static void plan_root(const tree *t, size_t pieces) {
    bool copies = t->job->recv != NULL && t->source.space == HEMI_INPUT;
    for (size_t c = 0; c < pieces; c++) {
        pass_on(t, c);
        if (copies)
            hemi_plan_copy(t->plan, hemi_place_at(HEMI_OUTPUT, c * t->piece),
                           hemi_place_at(HEMI_INPUT, c * t->piece), length(t, c));
        hemi_plan_round(t->plan);
    }
}

static void plan_other(const tree *t, size_t pieces) {
    for (size_t c = 0; c <= pieces; c++) {
        if (c < pieces)
            hemi_plan_recv(t->plan, peer(t, t->distance - t->lowest),
                           hemi_place_at(HEMI_OUTPUT, c * t->piece), length(t, c));
        if (c > 0)
            pass_on(t, c - 1);
        hemi_plan_round(t->plan);
    }
}

hem_status hemi_plan_tree_broadcast(const hemi_job *job, hemi_plan *plan_p) {
    tree t = {.job = job,
              .plan = plan_p,
              .distance = (job->rank + job->size - job->root) % job->size,
              .lowest = 1,
              .total = job->count * job->element,
              .source = hemi_place_at(HEMI_OUTPUT, 0)};
    uint32_t depth = 1;
    for (uint32_t power = 1; power < job->size; power *= 2)
        depth++;
    t.piece = hemi_job_piece(job, t.total, depth);
    size_t pieces = (t.total + t.piece - 1) / t.piece;
    while (t.lowest < job->size && (t.distance & t.lowest) == 0)
        t.lowest *= 2;
    hemi_job_begin_plan(job, plan_p);
    if (t.distance != 0) {
        plan_other(&t, pieces);
        return hemi_plan_finish(plan_p);
    }
    if (job->send != NULL && !hemi_job_in_place(job, 0))
        t.source.space = HEMI_INPUT;
    plan_root(&t, pieces);
    return hemi_plan_finish(plan_p);
}
