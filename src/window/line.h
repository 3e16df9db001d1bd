/*
 * The line of a signal, and the short payload that travels in it.
 *
 * Row (source A, target B) lies in B's memory. It has one line per signal id, written by A alone,
 * and one claim per id, which B owns. Who writes what, in which order:
 *
 *   A, with a payload: payload, place; look; release mark (seq = its number, ack); release value.
 *   A, without:        look; release mark (ack); release value.
 *   B, after it saw `value`: acquire seq. If claim is one behind, compare-and-swap it to seq. Whoever
 *      wins moves the payload to its place in the window and then releases done = seq.
 *   A, when a payload must be in place without B's help (flush, or a put to the same place): the same
 *      compare-and-swap, the same move.
 *
 * So each payload is moved by exactly one side, and never over something that B wrote after it had
 * seen it. A writes the payload area again only when it knows that done = seq: from `ack` in the line
 * of the opposite direction, which costs nothing, or from `done` itself. While it does not know, it
 * puts directly. models/inline.pml checks this, with mutants.
 *
 * `look` is a set of other ids of the same row whose payload may not be in place yet: a strong
 * signal promises all earlier puts, so whoever sees it delivers those, too.
 *
 * Nothing here waits, and nothing here knows a world, so that device code can share it.
 */
#ifndef HEMI_WINDOW_LINE_H
#define HEMI_WINDOW_LINE_H

#include "base/atomic.h"
#include "base/copy.h"

/** What fits beside a signal. */
#define HEMI_INLINE_MAX 32
/** Ids that a `look` set can name; higher ones carry no payload. */
#define HEMI_INLINE_IDS 64

#define HEMI_PLACE_SHIFT 56

/**
 * The order of members lets a word of payload go out together with its place. The fewer stores a line
 * takes, the smaller the chance that a polling reader fetches it half-written, which costs both sides
 * a trip.
 */
typedef struct hemi_line {
    uint64_t value;
    uint64_t mark;  /**< see hemi_mark */
    uint64_t place; /**< length << 56 | offset in the window */
    uint8_t payload[HEMI_INLINE_MAX];
    uint64_t look;
} __attribute__((aligned(HEMI_LINE))) hemi_line;

/**
 * Two counts in one word: `seq`, the payloads ever sent on this line, and `ack`, the payloads that the
 * writer has seen in place on the line of the same id in the opposite direction.
 */
static inline uint64_t hemi_mark(uint32_t seq, uint32_t ack) {
    return (uint64_t)ack << 32 | seq;
}

static inline uint32_t hemi_mark_seq(uint64_t mark) {
    return (uint32_t)mark;
}

static inline uint32_t hemi_mark_ack(uint64_t mark) {
    return (uint32_t)(mark >> 32);
}

/** Owned by the target; changed by either side under the rules above. */
typedef struct hemi_claim {
    uint32_t claim;
    uint32_t done;
} hemi_claim;

/** What the source remembers of a line. Touched by threads that use this id, read by others. */
typedef struct hemi_shadow {
    uint64_t value;
    uint64_t place; /**< of the last payload */
    uint32_t seq;
    uint32_t known; /**< the last payload known to be in place */
    uint64_t look;
} hemi_shadow;

_Static_assert(sizeof(hemi_line) == HEMI_LINE, "a line is one cache line");

static inline uint64_t hemi_place_offset(uint64_t place) {
    return place & ((1ull << HEMI_PLACE_SHIFT) - 1);
}

static inline size_t hemi_place_length(uint64_t place) {
    return (size_t)(place >> HEMI_PLACE_SHIFT);
}

/** Source: is the last payload known to be in place, as far as local memory tells? */
static inline bool hemi_line_known(hemi_shadow *shadow, const hemi_line *opposite) {
    uint32_t seq = hemi_load32_relaxed(&shadow->seq);
    /* Acquired, since another thread of this rank may have found it out. */
    if (seq == hemi_load32_acquire(&shadow->known))
        return true;
    /* Pairs with the release of the mark below: the peer had done with the payload before. */
    if (hemi_mark_ack(hemi_load64_acquire(&opposite->mark)) != seq)
        return false;
    hemi_store32_release(&shadow->known, seq);
    return true;
}

/** Source: may the payload area be written? Looks at the target's memory only if it must. */
static inline bool hemi_line_free(hemi_shadow *shadow, const hemi_line *opposite,
                                  const hemi_claim *claim) {
    if (hemi_line_known(shadow, opposite))
        return true;
    uint32_t done = hemi_load32_acquire(&claim->done);
    hemi_store32_release(&shadow->known, done);
    return done == hemi_load32_relaxed(&shadow->seq);
}

/**
 * Source: publish the signal. `done` is what this side has seen in place on the opposite line.
 *
 * What only this side remembers is written first, so that the stores to the line follow each other.
 */
static inline void hemi_line_signal(hemi_line *line, hemi_shadow *shadow, uint32_t done,
                                    uint64_t look, uint64_t value) {
    hemi_store64_relaxed(&shadow->value, value);
    if (__builtin_expect(look != shadow->look, 0)) {
        shadow->look = look;
        hemi_store64_release(&line->look, look);
    }
    /* Pairs with the acquires in hemi_line_waiting and hemi_line_known. */
    hemi_store64_release(&line->mark, hemi_mark(hemi_load32_relaxed(&shadow->seq), done));
    /* Pairs with the acquire of whoever waits for the signal. */
    hemi_store64_release(&line->value, value);
}

/** Source: the same with a payload of 1 to 32 bytes. The line must be free. */
static inline void hemi_line_send(hemi_line *line, hemi_shadow *shadow, uint64_t offset,
                                  const void *src, size_t n, uint32_t done, uint64_t look,
                                  uint64_t value) {
    uint64_t place = (uint64_t)n << HEMI_PLACE_SHIFT | offset;
    hemi_store64_relaxed(&shadow->place, place);
    hemi_store32_relaxed(&shadow->seq, hemi_load32_relaxed(&shadow->seq) + 1);
    /* Read before it is claimed, and so atomically: see hemi_line_take. */
    hemi_store64_relaxed(&line->place, place);
    hemi_copy_short(line->payload, src, n);
    hemi_line_signal(line, shadow, done, look, value);
}

/** Either side: a payload that is claimed by nobody? `seq_p` gets its number. */
static inline bool hemi_line_waiting(const hemi_line *line, const hemi_claim *claim,
                                     uint32_t *seq_p) {
    *seq_p = hemi_mark_seq(hemi_load64_acquire(&line->mark));
    return hemi_load32_relaxed(&claim->claim) != *seq_p;
}

/** Either side: is payload `seq`, or a later one, in place? */
static inline bool hemi_line_in_place(const hemi_claim *claim, uint32_t seq) {
    /* Pairs with the release in hemi_line_move. */
    return (int32_t)(hemi_load32_acquire(&claim->done) - seq) >= 0;
}

/** Either side: take the right and the duty to move payload `seq`. */
static inline bool hemi_line_claim(hemi_claim *claim, uint32_t seq) {
    uint32_t before = seq - 1;
    return hemi_cas32_acq_rel(&claim->claim, &before, seq);
}

/** Whether a place, which the peer has written, is one in a window of `bytes` bytes. */
static inline bool hemi_place_inside(uint64_t place, uint64_t bytes) {
    size_t n = hemi_place_length(place);
    return n - 1 < HEMI_INLINE_MAX && n <= bytes && hemi_place_offset(place) <= bytes - n;
}

/** Whoever has claimed it: move it. False if its place is not inside of `bytes`. */
static inline bool hemi_line_move(const hemi_line *line, hemi_claim *claim, uint32_t seq,
                                  unsigned char *memory, uint64_t bytes) {
    uint64_t place = hemi_load64_relaxed(&line->place);
    bool inside = hemi_place_inside(place, bytes);
    if (__builtin_expect(inside, 1))
        hemi_copy_short(memory + hemi_place_offset(place), line->payload, hemi_place_length(place));
    HEMI_POINT();
    /* Pairs with the acquire of whoever waits for it to be in place. */
    hemi_store32_release(&claim->done, seq);
    return inside;
}

/**
 * Target, after it saw the signal: deliver what waits in the line. False if that did not work out at
 * once, because the other side is at it or the place does not exist.
 */
static inline bool hemi_line_take(const hemi_line *line, hemi_claim *claim, unsigned char *memory,
                                  uint64_t bytes) {
    uint32_t seq = 0;
    if (hemi_line_waiting(line, claim, &seq))
        return hemi_place_inside(hemi_load64_relaxed(&line->place), bytes) &&
               hemi_line_claim(claim, seq) && hemi_line_move(line, claim, seq, memory, bytes);
    return hemi_line_in_place(claim, seq);
}

#endif
