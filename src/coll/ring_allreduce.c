/*
 * All-reduce along a ring, in the order of ranks.
 *
 * How this works. In the usual ring each block starts on another rank, so that its contributions are
 * combined in a rotated order. Here the chain of every piece starts at rank 0 and ends at the last
 * rank, which has the result; from there it goes on around the ring, to rank 0, 1, and so on:
 *
 *     0 -> 1 -> ... -> P-1           partial results, combined on arrival: ((0 op 1) op 2) ...
 *     P-1 -> 0 -> 1 -> ... -> P-2    results
 *
 * Pieces follow each other, so that after the pipe has filled all links and ranks are at work at once.
 *
 * What the order costs. All ranks together move and combine exactly as much as in the ring that
 * turns: 2 (P-1) n bytes, (P-1) n combined. But a link carries up to 2 n bytes instead of
 * 2 n (P-1)/P; rank 0 combines nothing; and filling the pipe takes 3 P - 4 pieces' time, which is
 * why pieces get smaller with more ranks.
 *
 * Time is counted in slots. The partial result of piece c leaves rank r in slot c + 2 r: it arrives,
 * is combined in the next slot, and leaves in the one after. The result leaves the last rank in slot
 * c + 2 (P-1), and rank r in slot c + 2 P - 1 + r. Sender and receiver have a message in the same slot,
 * so that the order on each link agrees. Slots are rounds of the plan where something happens.
 */
#include "coll/plans.h"

typedef struct ring {
    const hemi_job *job;
    hemi_plan *plan;
    size_t total;
    size_t piece;
    size_t pieces;
    bool in_place;
} ring;

bool hemi_fits_ring_allreduce(const hemi_job *job) {
    return job->kind == HEM_ALLREDUCE && hemi_job_may_split(job);
}

static size_t length(const ring *g, size_t c) {
    size_t left = g->total - c * g->piece;
    return left < g->piece ? left : g->piece;
}

/* Which piece is where piece 0 was in slot `first`. False: none. */
static bool turn(const ring *g, size_t slot, size_t first, size_t *c_p) {
    *c_p = slot - first;
    return slot >= first && slot - first < g->pieces;
}

static hemi_place result(const ring *g, size_t c) {
    return hemi_place_at(HEMI_OUTPUT, c * g->piece);
}

static hemi_place own(const ring *g, size_t c) {
    return hemi_place_at(g->in_place ? HEMI_OUTPUT : HEMI_INPUT, c * g->piece);
}

/* Where the partial result of the ranks below arrives: it stays for this slot and the next. */
static hemi_place partial(const ring *g, size_t c) {
    return g->in_place ? hemi_place_at(HEMI_SCRATCH, c % 2 * g->piece) : result(g, c);
}

static void plan_partials(const ring *g, size_t slot) {
    size_t rank = g->job->rank;
    uint32_t size = g->job->size;
    size_t c;
    if (rank > 0 && turn(g, slot, 2 * rank - 2, &c))
        hemi_plan_recv(g->plan, g->job->rank - 1, partial(g, c), length(g, c));
    if (rank > 0 && turn(g, slot, 2 * rank - 1, &c))
        hemi_plan_reduce(g->plan, result(g, c), partial(g, c), own(g, c), length(g, c));
    if (rank + 1 < size && turn(g, slot, 2 * rank, &c))
        hemi_plan_send(g->plan, g->job->rank + 1, rank == 0 ? own(g, c) : result(g, c),
                       length(g, c));
}

static void plan_results(const ring *g, size_t slot) {
    size_t rank = g->job->rank;
    uint32_t size = g->job->size;
    size_t end = 2 * (size_t)size - 2;
    size_t c;
    if (rank + 1 < size && turn(g, slot, end + rank, &c))
        hemi_plan_recv(g->plan, (g->job->rank + size - 1) % size, result(g, c), length(g, c));
    if (rank + 1 == size && turn(g, slot, end, &c))
        hemi_plan_send(g->plan, 0, result(g, c), length(g, c));
    if (rank + 2 < size && turn(g, slot, end + rank + 1, &c))
        hemi_plan_send(g->plan, g->job->rank + 1, result(g, c), length(g, c));
}

hem_status hemi_plan_ring_allreduce(const hemi_job *job, hemi_plan *plan_p) {
    ring g = {job, plan_p, job->count * job->element, 0, 0, hemi_job_in_place(job, 0)};
    if (job->size == 1)
        return hemi_job_plan_alone(job, 0, g.total, plan_p);
    hemi_job_begin_plan(job, plan_p);
    g.piece = hemi_job_piece(job, g.total, 3 * job->size - 4);
    g.pieces = (g.total + g.piece - 1) / g.piece;
    size_t slots = g.pieces + 3 * (size_t)job->size;
    for (size_t slot = 0; slot < slots; slot++) {
        plan_partials(&g, slot);
        plan_results(&g, slot);
        hemi_plan_round(plan_p);
    }
    return hemi_plan_finish(plan_p);
}
