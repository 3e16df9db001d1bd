/*
 * Reduce up binomial trees, in the order of ranks, to any root.
 *
 * Rotating a tree so that it ends at the root would combine high ranks before low ones. Instead the
 * ranks from the root on form a tree under the root, and those below it one under rank 0, which gives
 * its result to the root: P-1 messages in all. Rank v of a tree has the children v + 1, v + 2, v + 4
 * ... up to its lowest bit, each of which brings the ranks from itself up to the next child, so that
 * [from below the root] op own op child op child ... is in the order of ranks.
 *
 * It goes in pieces: while one arrives from all children, the one before is combined, and the one
 * before that leaves.
 */
#include "coll/plans.h"

/* More children than any rank of 2^32 has, with the tree below the root. */
#define CHILDREN 34

typedef struct tree {
    const hemi_job *job;
    hemi_plan *plan;
    uint32_t children[CHILDREN]; /* in the order of ranks */
    uint32_t child_count;
    uint32_t before; /* children whose part comes before this rank's own */
    uint32_t parent; /* the rank itself: none */
    size_t total;
    size_t piece;
    bool in_place;
} tree;

bool hemi_fits_tree_reduce(const hemi_job *job) {
    return job->kind == HEM_REDUCE && hemi_job_may_regroup(job);
}

static void find_family(tree *t) {
    const hemi_job *job = t->job;
    bool below = job->rank < job->root;
    uint32_t top = below ? 0 : job->root;
    uint32_t size = below ? job->root : job->size - job->root;
    uint32_t v = job->rank - top;
    if (job->rank == job->root && job->root > 0) {
        t->children[t->child_count++] = 0;
        t->before = 1;
    }
    uint32_t bit = 1;
    for (; bit < size && (v & bit) == 0; bit *= 2)
        if (v + bit < size)
            t->children[t->child_count++] = top + v + bit;
    if (v > 0)
        t->parent = top + v - (v & (0 - v));
    else
        t->parent = job->root;
}

static size_t length(const tree *t, size_t c) {
    size_t left = t->total - c * t->piece;
    return left < t->piece ? left : t->piece;
}

static hemi_place own(const tree *t, size_t c) {
    return hemi_place_at(t->in_place ? HEMI_OUTPUT : HEMI_INPUT, c * t->piece);
}

/* Scratch has two pieces for each child, and two for what leaves. */
static hemi_place scratch(const tree *t, size_t which, size_t c) {
    return hemi_place_at(HEMI_SCRATCH, (2 * which + c % 2) * t->piece);
}

static hemi_place combined(const tree *t, size_t c) {
    if (t->job->rank == t->job->root)
        return hemi_place_at(HEMI_OUTPUT, c * t->piece);
    return t->child_count == 0 ? own(t, c) : scratch(t, t->child_count, c);
}

static void combine(const tree *t, size_t c) {
    for (uint32_t i = 0; i < t->before; i++)
        hemi_plan_source(t->plan, scratch(t, i, c));
    hemi_plan_source(t->plan, own(t, c));
    for (uint32_t i = t->before; i < t->child_count; i++)
        hemi_plan_source(t->plan, scratch(t, i, c));
    hemi_plan_reduce_sources(t->plan, combined(t, c), length(t, c));
}

static void plan_slot(const tree *t, size_t slot, size_t pieces) {
    for (uint32_t i = 0; i < t->child_count && slot < pieces; i++)
        hemi_plan_recv(t->plan, t->children[i], scratch(t, i, slot), length(t, slot));
    if (t->child_count > 0 && slot >= 1 && slot - 1 < pieces)
        combine(t, slot - 1);
    if (t->job->rank != t->job->root && slot >= 2)
        hemi_plan_send(t->plan, t->parent, combined(t, slot - 2), length(t, slot - 2));
    hemi_plan_round(t->plan);
}

hem_status hemi_plan_tree_reduce(const hemi_job *job, hemi_plan *plan_p) {
    tree t = {.job = job,
              .plan = plan_p,
              .parent = job->rank,
              .total = job->count * job->element,
              /* Elsewhere the output is not used. */
              .in_place = job->rank == job->root && hemi_job_in_place(job, 0)};
    uint32_t depth = 2;
    for (uint32_t power = 1; power < job->size; power *= 2)
        depth += 2;
    t.piece = hemi_job_piece(job, t.total, depth);
    size_t pieces = (t.total + t.piece - 1) / t.piece;
    find_family(&t);
    if (job->size == 1)
        return hemi_job_plan_alone(job, 0, t.total, plan_p);
    hemi_job_begin_plan(job, plan_p);
    for (size_t slot = 0; slot < pieces + 2; slot++)
        plan_slot(&t, slot, pieces);
    return hemi_plan_finish(plan_p);
}
