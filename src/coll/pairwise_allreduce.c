/*
 * All-reduce by all pairs: the vector is cut into a block for each rank; everybody sends each block to
 * its rank, which combines all contributions at once and sends the result to everybody.
 *
 * This moves as much as a ring does, 2 n (P-1)/P bytes per rank, in the order of ranks, with one
 * rounding, and shares the combining among all ranks. It costs scratch for two pieces of every other
 * rank, and every pair of ranks talks, so that staging is made for all of them.
 *
 * Blocks go in pieces: in slot j the contributions to piece j arrive, piece j - 1 is combined, and the
 * results of piece j - 2 go out. In place that is safe: what piece j - 2 overwrites left in slot j - 2.
 */
#include "coll/plans.h"

typedef struct pairs {
    const hemi_job *job;
    hemi_plan *plan;
    size_t piece;
    size_t pieces;
    bool in_place;
} pairs;

bool hemi_fits_pairwise_allreduce(const hemi_job *job) {
    return job->kind == HEM_ALLREDUCE;
}

/* Piece j of the block that belongs to a rank: may be empty. */
static hemi_block piece_of(const pairs *g, uint32_t rank, size_t j) {
    size_t each = g->job->count / g->job->size;
    size_t rest = g->job->count % g->job->size;
    size_t start = (rank * each + (rank < rest ? rank : rest)) * g->job->element;
    size_t bytes = (each + (rank < rest)) * g->job->element;
    size_t at = j * g->piece < bytes ? j * g->piece : bytes;
    return (hemi_block){start + at, bytes - at < g->piece ? bytes - at : g->piece};
}

static hemi_place own(const pairs *g, hemi_block piece) {
    return hemi_place_at(g->in_place ? HEMI_OUTPUT : HEMI_INPUT, piece.offset);
}

/* Where the contribution of another rank arrives. */
static hemi_place arrival(const pairs *g, uint32_t rank, size_t j) {
    size_t other = rank < g->job->rank ? rank : rank - 1;
    return hemi_place_at(HEMI_SCRATCH, (2 * other + j % 2) * g->piece);
}

static void contribute(const pairs *g, uint32_t to, uint32_t from, size_t j) {
    hemi_block theirs = piece_of(g, to, j);
    hemi_plan_recv(g->plan, from, arrival(g, from, j), piece_of(g, g->job->rank, j).bytes);
    hemi_plan_send(g->plan, to, own(g, theirs), theirs.bytes);
}

static void combine(const pairs *g, size_t j) {
    hemi_block mine = piece_of(g, g->job->rank, j);
    for (uint32_t r = 0; r < g->job->size; r++)
        hemi_plan_source(g->plan, r == g->job->rank ? own(g, mine) : arrival(g, r, j));
    hemi_plan_reduce_sources(g->plan, hemi_place_at(HEMI_OUTPUT, mine.offset), mine.bytes);
}

static void share(const pairs *g, uint32_t to, uint32_t from, size_t j) {
    hemi_block theirs = piece_of(g, from, j);
    hemi_block mine = piece_of(g, g->job->rank, j);
    hemi_plan_recv(g->plan, from, hemi_place_at(HEMI_OUTPUT, theirs.offset), theirs.bytes);
    hemi_plan_send(g->plan, to, hemi_place_at(HEMI_OUTPUT, mine.offset), mine.bytes);
}

static void plan_slot(const pairs *g, size_t slot) {
    uint32_t size = g->job->size;
    for (uint32_t k = 1; k < size; k++) {
        uint32_t to = (uint32_t)(((uint64_t)g->job->rank + k) % size);
        uint32_t from = (g->job->rank + size - k) % size;
        if (slot < g->pieces)
            contribute(g, to, from, slot);
        if (slot >= 2)
            share(g, to, from, slot - 2);
    }
    if (slot >= 1 && slot - 1 < g->pieces)
        combine(g, slot - 1);
    hemi_plan_round(g->plan);
}

hem_status hemi_plan_pairwise_allreduce(const hemi_job *job, hemi_plan *plan_p) {
    pairs g = {.job = job, .plan = plan_p, .in_place = hemi_job_in_place(job, 0)};
    if (job->size == 1)
        return hemi_job_plan_alone(job, 0, job->count * job->element, plan_p);
    hemi_job_begin_plan(job, plan_p);
    size_t block = (job->count + job->size - 1) / job->size * job->element;
    g.piece = hemi_job_piece(job, block, 3);
    g.pieces = (block + g.piece - 1) / g.piece;
    for (size_t slot = 0; slot < g.pieces + 2; slot++)
        plan_slot(&g, slot);
    return hemi_plan_finish(plan_p);
}
