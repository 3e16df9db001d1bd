/*
 * Reduce-scatter by all pairs: every rank sends each block to the rank that it belongs to, which
 * combines all contributions at once.
 *
 * This moves no more than a ring does, n (P-1)/P bytes per rank, and combines in the order of ranks
 * with one rounding. It costs scratch for two pieces of every other rank, and every pair of ranks
 * talks, so that staging is made for all of them. Blocks go in pieces: while one arrives, the one
 * before is combined.
 */
#include "coll/plans.h"

typedef struct pairs {
    const hemi_job *job;
    hemi_plan *plan;
    size_t piece;
    bool in_place;
    bool aside; /* the result must not go straight to the output, which lies across the own block */
} pairs;

bool hemi_fits_pairwise_reduce_scatter(const hemi_job *job) {
    return job->kind == HEM_REDUCE_SCATTER || job->kind == HEM_REDUCE_SCATTERV;
}

/* Piece j of a block: may be empty. */
static hemi_block piece_of(const pairs *g, uint32_t rank, size_t j) {
    hemi_block block = hemi_job_block(g->job, rank);
    size_t at = j * g->piece < block.bytes ? j * g->piece : block.bytes;
    size_t left = block.bytes - at;
    return (hemi_block){block.offset + at, left < g->piece ? left : g->piece};
}

static hemi_place own(const pairs *g, hemi_block piece) {
    return hemi_place_at(g->in_place ? HEMI_OUTPUT : HEMI_INPUT, piece.offset);
}

/* Where the piece of another rank arrives. */
static hemi_place arrival(const pairs *g, uint32_t rank, size_t j) {
    size_t other = rank < g->job->rank ? rank : rank - 1;
    return hemi_place_at(HEMI_SCRATCH, (2 * other + j % 2) * g->piece);
}

static hemi_place result(const pairs *g, size_t j) {
    if (!g->aside)
        return hemi_place_at(HEMI_OUTPUT, j * g->piece);
    return hemi_place_at(HEMI_SCRATCH, (2 * (size_t)(g->job->size - 1) + j) * g->piece);
}

static void exchange(const pairs *g, size_t j) {
    uint32_t size = g->job->size;
    hemi_block mine = piece_of(g, g->job->rank, j);
    for (uint32_t k = 1; k < size; k++) {
        uint32_t to = (uint32_t)(((uint64_t)g->job->rank + k) % size);
        uint32_t from = (g->job->rank + size - k) % size;
        hemi_block theirs = piece_of(g, to, j);
        hemi_plan_recv(g->plan, from, arrival(g, from, j), mine.bytes);
        hemi_plan_send(g->plan, to, own(g, theirs), theirs.bytes);
    }
}

static void combine(const pairs *g, size_t j) {
    hemi_block mine = piece_of(g, g->job->rank, j);
    for (uint32_t r = 0; r < g->job->size; r++)
        hemi_plan_source(g->plan, r == g->job->rank ? own(g, mine) : arrival(g, r, j));
    hemi_plan_reduce_sources(g->plan, result(g, j), mine.bytes);
}

/*
 * In place the output is the front of the input, which must be sent before it is written: only then
 * are the results put there, from scratch.
 */
static void put_in_place(const pairs *g, size_t pieces) {
    for (size_t j = 0; j < pieces; j++)
        hemi_plan_copy(g->plan, hemi_place_at(HEMI_OUTPUT, j * g->piece), result(g, j),
                       piece_of(g, g->job->rank, j).bytes);
}

hem_status hemi_plan_pairwise_reduce_scatter(const hemi_job *job, hemi_plan *plan_p) {
    pairs g = {.job = job, .plan = plan_p, .in_place = hemi_job_in_place(job, 0)};
    size_t most = 0;
    for (uint32_t r = 0; r < job->size; r++) {
        size_t bytes = hemi_job_block(job, r).bytes;
        most = bytes > most ? bytes : most;
    }
    if (job->size == 1)
        return hemi_job_plan_alone(job, hemi_job_block(job, 0).offset, most, plan_p);
    hemi_job_begin_plan(job, plan_p);
    g.aside = g.in_place;
    g.piece = hemi_job_piece(job, most, 2);
    size_t pieces = (most + g.piece - 1) / g.piece;
    for (size_t j = 0; j <= pieces; j++) {
        if (j < pieces)
            exchange(&g, j);
        if (j > 0)
            combine(&g, j - 1);
        hemi_plan_round(plan_p);
    }
    if (g.aside)
        put_in_place(&g, pieces);
    return hemi_plan_finish(plan_p);
}
