/*
 * Reduce-scatter along a chain, in the order of ranks.
 *
 * Every piece goes 0 -> 1 -> ... -> P-1, combined on arrival, and from the last rank straight to the
 * rank that it belongs to. Pieces go as they lie in the input. See ring_allreduce.c for the order and
 * for slots: piece c leaves rank r in slot c + 2 r, and the last rank, for its owner, in slot
 * c + 2 (P-1).
 *
 * What the order costs: all ranks together move (P-1) n bytes along the chain, as in the ring that
 * turns, and n (P-1)/P more from the last rank, which has twice the traffic of the others.
 * pairwise_reduce_scatter.c does without that, for more scratch and all pairs of ranks talking.
 *
 * In place, the result of a piece is written to the front of the buffer, no further back than the
 * piece was itself, and when everything up to there has been used: piece c is used on rank r in slot
 * c + 2 r - 1 at the latest, and written in slot c + 2 (P-1), r being less than P.
 */
#include "coll/plans.h"

#include "base/status.h"

#include <stdlib.h>

/* A piece of a block. */
typedef struct piece {
    uint32_t owner;
    size_t input;  /* where it is in the input */
    size_t output; /* and in its owner's output */
    size_t bytes;
} piece;

typedef struct chain {
    const hemi_job *job;
    hemi_plan *plan;
    piece *pieces;
    size_t count;
    size_t room; /* of the longest piece */
    bool in_place;
} chain;

bool hemi_fits_ring_reduce_scatter(const hemi_job *job) {
    return (job->kind == HEM_REDUCE_SCATTER || job->kind == HEM_REDUCE_SCATTERV) &&
           hemi_job_may_split(job);
}

static int by_place(const void *a, const void *b) {
    size_t x = ((const piece *)a)->input;
    size_t y = ((const piece *)b)->input;
    return x < y ? -1 : x > y;
}

static hem_status cut(chain *g) {
    size_t total = 0;
    for (uint32_t r = 0; r < g->job->size; r++)
        total += hemi_job_block(g->job, r).bytes;
    g->room = hemi_job_piece(g->job, total, 2 * g->job->size - 1);
    g->pieces = calloc(total / g->room + g->job->size, sizeof *g->pieces);
    if (g->pieces == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to plan a reduce-scatter of %zu bytes", total);
    for (uint32_t r = 0; r < g->job->size; r++) {
        hemi_block block = hemi_job_block(g->job, r);
        for (size_t at = 0; at < block.bytes; at += g->room) {
            size_t left = block.bytes - at;
            g->pieces[g->count++] =
                (piece){r, block.offset + at, at, left < g->room ? left : g->room};
        }
    }
    if (g->job->displs != NULL)
        qsort(g->pieces, g->count, sizeof *g->pieces, by_place);
    return HEM_OK;
}

/* The piece that is where piece 0 was in slot `first`, or NULL. */
static const piece *turn(const chain *g, size_t slot, size_t first) {
    return slot >= first && slot - first < g->count ? &g->pieces[slot - first] : NULL;
}

static hemi_place own(const chain *g, const piece *p) {
    return hemi_place_at(g->in_place ? HEMI_OUTPUT : HEMI_INPUT, p->input);
}

/* A piece arrives, is combined, and leaves: three slots. */
static hemi_place partial(const chain *g, const piece *p) {
    return hemi_place_at(HEMI_SCRATCH, (size_t)(p - g->pieces) % 3 * g->room);
}

/* What the last rank combines for itself goes straight to its output, unless that may lie across the
 * input. */
static bool goes_straight(const chain *g, const piece *p) {
    return p->owner == g->job->rank && g->job->rank + 1 == g->job->size && !g->in_place;
}

static void plan_chain(const chain *g, size_t slot) {
    size_t rank = g->job->rank;
    const piece *p = rank > 0 ? turn(g, slot, 2 * rank - 2) : NULL;
    if (p != NULL)
        hemi_plan_recv(g->plan, g->job->rank - 1, partial(g, p), p->bytes);
    p = rank > 0 ? turn(g, slot, 2 * rank - 1) : NULL;
    if (p != NULL)
        hemi_plan_reduce(
            g->plan, goes_straight(g, p) ? hemi_place_at(HEMI_OUTPUT, p->output) : partial(g, p),
            partial(g, p), own(g, p), p->bytes);
    p = rank + 1 < g->job->size ? turn(g, slot, 2 * rank) : NULL;
    if (p != NULL)
        hemi_plan_send(g->plan, g->job->rank + 1, rank == 0 ? own(g, p) : partial(g, p), p->bytes);
}

/* From the last rank to the owners. */
static void plan_delivery(const chain *g, size_t slot) {
    uint32_t last = g->job->size - 1;
    const piece *p = turn(g, slot, 2 * (size_t)last);
    if (p == NULL || (p->owner != g->job->rank && g->job->rank != last))
        return;
    hemi_place to = hemi_place_at(HEMI_OUTPUT, p->output);
    if (g->job->rank != last)
        hemi_plan_recv(g->plan, last, to, p->bytes);
    else if (p->owner != last)
        hemi_plan_send(g->plan, p->owner, partial(g, p), p->bytes);
    else if (!goes_straight(g, p))
        hemi_plan_copy(g->plan, to, partial(g, p), p->bytes);
}

hem_status hemi_plan_ring_reduce_scatter(const hemi_job *job, hemi_plan *plan_p) {
    chain g = {.job = job, .plan = plan_p, .in_place = hemi_job_in_place(job, 0)};
    hemi_block mine = hemi_job_block(job, job->rank);
    if (job->size == 1)
        return hemi_job_plan_alone(job, mine.offset, mine.bytes, plan_p);
    hemi_job_begin_plan(job, plan_p);
    hem_status status = cut(&g);
    if (status != HEM_OK) {
        hemi_plan_free(plan_p);
        return status;
    }
    size_t slots = g.count + 2 * (size_t)job->size;
    for (size_t slot = 0; slot < slots; slot++) {
        plan_chain(&g, slot);
        plan_delivery(&g, slot);
        hemi_plan_round(plan_p);
    }
    free(g.pieces);
    return hemi_plan_finish(plan_p);
}
