/*
 * The rendezvous of boxes: who owns what lies in and around my boxes?
 *
 * Every rank says which boxes it owns and which ones it asks about. Both go to the ranks that the
 * tiles they touch belong to (halo/pattern/tiling.h); there they meet, and who asked hears of every
 * box that shares a point with its question. Nobody hears of anything else, so that what a rank
 * sends, keeps and receives follows its own boxes and its neighbours.
 */
#ifndef HEMI_HALO_PATTERN_CELLS_H
#define HEMI_HALO_PATTERN_CELLS_H

#include "halo/pattern/making.h"

/** A box that this rank owns: domain `k` is the k-th. */
typedef struct hemi_owned {
    int64_t id;
    uint32_t space; /**< which of several grids of the same extents: the panel of a sphere */
    hem_box box;    /**< not empty, inside of the grid */
} hemi_owned;

/** Which levels a question is asked at. */
enum hemi_when {
    /** Where tiles are at least as large as those that the asking domain belongs to. These
     *  questions must cover its own box, too: so of two boxes that overlap, the owner of the one
     *  with the smaller tiles, or both, hear of it. */
    HEMI_ASK_COARSE,
    /** Where they are smaller. These should leave its own box out. */
    HEMI_ASK_FINE
};

/** What a domain asks about: a box of a grid, not empty, inside. */
typedef struct hemi_question {
    uint32_t here; /**< domain of this rank */
    uint32_t space;
    enum hemi_when when;
    hem_box box;
} hemi_question;

/** An answer: a box of another domain, or of another domain of this rank. */
typedef struct hemi_owner {
    uint32_t here; /**< the domain that asked */
    uint32_t rank;
    uint32_t there; /**< its domain of that rank */
    uint32_t space;
    int64_t id;
    hem_box box;
} hemi_owner;

/** A search: what all ranks know alike, what this one owns and asks, and what it hears. */
typedef struct hemi_search {
    int dims;
    int64_t extent[HEM_DIMS];
    uint32_t spaces;
    const hemi_owned *places; /**< one per domain of this rank */
    size_t place_count;
    const hemi_question *questions;
    size_t question_count;
    hemi_owner *owners; /**< the result, ordered by here, rank, there; each once */
    size_t owner_count;
    uint64_t owner_bytes;
} hemi_search;

/**
 * Ask all questions of all ranks and hear the answers.
 *
 * Collective, once all have agreed to come (hemi_making_begin). What fails is remembered in `making`;
 * there may then be fewer answers, or none. The result must be zeroed before.
 */
void hemi_cells_search(hemi_making *making, hemi_search *search);

/** Free the answers. */
void hemi_cells_free(hemi_making *making, hemi_search *search);

#endif
