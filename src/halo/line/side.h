/*
 * Sides: this rank's lanes with the few ranks that it exchanges with again and again, in shared memory
 * of their own. A line has two, a reach as many as it has partners.
 *
 * Each side has a piece of this rank's part of the arena that the partner alone writes: the area of a
 * lane (channel/cursor.h) and, behind its slots, a notice. So two sides with the same partner, as in a
 * ring of two, stay apart.
 *
 *   piece     credit line | slots | notice | from the next page on a ring
 *   notice    accepted 8 | refused 8 | gone 8
 *
 * The words of a notice are released by the partner and followed by a wake of this rank. After it has
 * released gone = LEFT, the partner never touches the piece again: when all partners have said that,
 * or have died, the memory is given back. Whoever leaves first keeps its memory until then; it is
 * looked after when the next sides of the world are made or left, and goes with the world at the
 * latest.
 */
#ifndef HEMI_HALO_LINE_SIDE_H
#define HEMI_HALO_LINE_SIDE_H

#include "channel/lane.h"

/** What a partner says beside its messages. */
typedef struct hemi_notice {
    uint64_t accepted; /**< the last round whose payload it has memory for */
    uint64_t refused;  /**< the round whose payload it refused, or 0 */
    uint64_t gone;     /**< enum hemi_side_gone */
} __attribute__((aligned(HEMI_LINE))) hemi_notice;

enum hemi_side_gone {
    HEMI_SIDE_THERE = 0,
    HEMI_SIDE_BROKEN, /**< it gave up; nothing more will come */
    HEMI_SIDE_LEFT    /**< it does not touch the piece any more */
};

/** Where a piece is: what a partner has to know. */
typedef struct hemi_place {
    uint64_t offset; /**< in the arena */
    uint64_t ring_bytes;
    uint32_t slots;
    uint32_t flags; /**< the caller's */
} hemi_place;

typedef struct hemi_side {
    hemi_lane lane;
    const hemi_notice *told; /**< in own memory; NULL: there is no partner */
    hemi_notice *tell;       /**< at the partner */
} hemi_side;

typedef struct hemi_sides {
    hemi_child child;
    hem_world *world; /**< NULL once it is closed */
    uint64_t offset;  /**< of the pieces; 0: there are none */
    uint64_t ring_bytes;
    uint32_t slots;
    uint32_t count;
    bool left; /**< given up, and waiting for partners to do so */
    hemi_side side[];
} hemi_sides;

/** Make `count` sides with pieces of memory and no partners. Local. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_sides_make(hem_world *world, uint32_t count, hemi_sides **sides_p);

/** Where side `i` is, for its partner. */
hemi_place hemi_sides_place(const hemi_sides *sides, uint32_t i);

/** Give side `i` a partner, whose piece is at `theirs`. @return HEM_OK, HEM_ERR_MISMATCH. */
hem_status hemi_sides_join(hemi_sides *sides, uint32_t i, uint32_t peer, const hemi_place *theirs);

/** Tell all partners that nothing more will come. Under the engine's lock. */
void hemi_sides_break(hemi_sides *sides);

/**
 * Give them up: tell all partners, and free them when those have done so, too. No letter is under way.
 * NULL is allowed. Without the engine's lock. Also after the world was closed, and for sides that were
 * never joined, of which nobody has heard.
 */
void hemi_sides_leave(hemi_sides *sides);

/** This rank has ended without closing: let them go with the world. No lock is taken. */
void hemi_sides_abandon(hemi_sides *sides);

/** Whether this rank's partner at the side has given up. What it published before is visible. */
static inline bool hemi_side_is_gone(const hemi_side *side) {
    return hemi_load64_acquire(&side->told->gone) != HEMI_SIDE_THERE;
}

/** Store a word of the notice at the partner, and wake it. */
static inline void hemi_side_say(hemi_side *side, uint64_t *word, uint64_t value) {
    /* Pairs with the acquires of `told`. */
    hemi_store64_release(word, value);
    hemi_lane_wake(&side->lane);
}

/** Fill in a letter of this side. hemi_op_begin starts it. */
void hemi_side_letter(hemi_side *side, hemi_letter *letter, uint32_t call, bool sends, void *data,
                      size_t bytes);

static inline bool hemi_letter_is_running(const hemi_letter *letter) {
    return letter->op.state == HEMI_OP_RUNNING;
}

#endif
