/*
 * Inside of a reach: rows that ranks need of others, however far away, planned once.
 *
 * In planning, everybody says how many rows it has, between which keys, and how far it looks; so each
 * rank finds out by itself whom it needs rows of and who needs its own, and by rows also how many. By
 * keys only the owner knows how many of its rows lie within a distance that ends inside of them: that
 * goes along when the partners tell each other where their lanes are (halo/line/side.h).
 *
 * A run is one message per partner and direction, straight from the caller's rows to where they go. All
 * of them may be under way at once, and a partner may be a run ahead: its messages wait in its lane.
 */
#ifndef HEMI_HALO_REACH_H
#define HEMI_HALO_REACH_H

#include "halo/line/side.h"

#include <hem/line.h>

/** What a rank says in planning. */
typedef struct hemi_extent {
    uint64_t rows;
    int64_t first; /**< keys; only if there are rows */
    int64_t last;
    uint64_t back; /**< rows, or a distance of keys */
    uint64_t ahead;
    uint64_t keyed; /**< it has keys */
    uint64_t start; /**< rows before it; not said but worked out */
} hemi_extent;

/** Rows of a rank that another one needs. */
typedef struct hemi_span {
    uint64_t from; /**< the first of them, of the owner's rows */
    uint64_t rows;
    bool vague; /**< some of the owner's rows, it knows which */
} hemi_span;

/** What goes between this rank and another one. */
typedef struct hemi_partner {
    uint32_t peer;
    bool after; /**< it owns rows after this rank's */
    hemi_span send;
    hemi_span recv; /**< `from`: where they go, in rows of `before` or `after` */
    hemi_letter out;
    hemi_letter in;
} hemi_partner;

struct hem_reach {
    hemi_child child;
    hem_world *world;  /**< NULL once it is closed */
    hemi_sides *sides; /**< one per partner */
    hemi_task task;
    struct hem_op *op; /**< the run that is under way, or NULL */
    uint64_t rows;
    size_t row_bytes;
    uint64_t before; /**< rows that this rank gets */
    uint64_t after;
    bool broken;
    hem_status why;
    uint32_t count;
    hemi_partner *partners; /**< in the order of ranks */
    char text[HEMI_OP_TEXT];
};

/** Which rows of `owner` the rank `asker` needs; `earlier`: the owner's rank is the lower one. `keys`
 *  are the owner's if it is this rank, else NULL. */
hemi_span hemi_reach_span(const hemi_extent *asker, const hemi_extent *owner, bool earlier,
                          const int64_t *keys);

/** The task of a run. */
hem_status hemi_reach_advance(hemi_task *task);
void hemi_reach_trouble(hemi_task *task, uint64_t now_ns);

/** End the run that is under way. Under the lock, which may be dropped meanwhile. */
void hemi_reach_stop(hem_reach *reach, hem_status status);

#endif
