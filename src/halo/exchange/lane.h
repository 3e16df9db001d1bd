/*
 * The lane of an exchange with one neighbour, and how a message gets through it.
 *
 * How this works. For each neighbour S of rank R there is an area in R's part of the arena that S
 * alone writes:
 *
 *   notes[2]    the message of run e is told in notes[e % 2]: epoch, check, up to 40 bytes of data
 *   credit      what S says as the receiver of R's messages: up to which run it has taken them, and
 *               whether it has given the exchange up
 *   landing[2]  where S packs the message of run e: landing[e % 2]
 *
 * Run e, counted from 1 by each rank for itself; all ranks run alike.
 *
 *   S  needs taken >= e - 2 (acquire), so that what was in note and landing e % 2 has been used;
 *      packs; stores check; releases epoch = e; wakes R.
 *   R  acquires epoch == e; compares check; unpacks, and copies what the sender left in its own field
 *      straight from there; releases taken = e at S; wakes S.
 *
 * S may write its field again when it has packed and, where R copies from the field itself, when it
 * acquires taken >= e. R alone writes R's fields, so nothing overtakes what R does in order before.
 * A rank is at most one run ahead of a neighbour that receives from it: for run e + 2 it needs taken
 * >= e. So two notes and landings are enough. models/halo.pml checks this.
 *
 * Every run sends a message to every neighbour, if only an empty one, so that epochs and credits
 * never stand still on one side.
 *
 * Failure. A rank whose run fails sets `gone` at all its neighbours and raises the alarm, on which
 * everybody who waits looks at `gone`, and then once more at what it waits for. A neighbour may be
 * copying from this rank's field just then: it says so in `pulling` before, fences, and looks at
 * `gone`; the one that fails sets `gone`, fences, and waits until `pulling` is not ahead of `taken`.
 * At least one of them sees the other.
 */
#ifndef HEMI_HALO_EXCHANGE_LANE_H
#define HEMI_HALO_EXCHANGE_LANE_H

#include "core/engine.h"

/** Messages up to this length ride in the note. */
#define HEMI_NOTE_BYTES 40

typedef struct hemi_note {
    uint64_t epoch;
    uint64_t check; /**< what this run is, and the length: hemi_lane_check */
    unsigned char payload[HEMI_NOTE_BYTES];
    uint64_t spare;
} hemi_note;

/** Bits of `gone`. */
enum hemi_gone {
    HEMI_GONE_NOT = 0,
    HEMI_GONE_BROKEN = 1,   /**< a run of it failed */
    HEMI_GONE_DESTROYED = 2 /**< it touches nothing of this exchange any more */
};

typedef struct hemi_halo_credit {
    uint64_t taken;   /**< runs whose messages have been taken, all up to this one */
    uint64_t gone;    /**< enum hemi_gone */
    uint64_t pulling; /**< the run in which it last began to copy from the other's fields */
    /* Copy engines, each from 0 to 1 once: engine.h. */
    uint64_t raised;  /**< it is broken: hem_exchange_status says so there */
    uint64_t leaving; /**< it is being given up there */
    uint64_t quiet;   /**< no start from there will write to halos any more */
    uint64_t parted;  /**< nothing at all is written from there any more */
    uint64_t spare[1];
} hemi_halo_credit;

/* Neighbouring lines are fetched in pairs: what different sides write lies two lines apart. */
typedef struct hemi_halo_area {
    struct {
        hemi_note note;
        unsigned char apart[HEMI_LINE];
    } notes[2];
    hemi_halo_credit credit;
    unsigned char apart[HEMI_LINE];
    unsigned char landing[]; /**< two of `landing_bytes` */
} hemi_halo_area;

_Static_assert(sizeof(hemi_note) == HEMI_LINE, "a note is one line");
_Static_assert(sizeof(hemi_halo_credit) == HEMI_LINE, "a credit is one line");

/** Bytes of one landing buffer for messages of up to `bytes`. */
static inline uint64_t hemi_landing_bytes(uint64_t bytes) {
    return bytes <= HEMI_NOTE_BYTES ? 0 : (bytes + HEMI_LINE - 1) / HEMI_LINE * HEMI_LINE;
}

static inline uint64_t hemi_area_bytes(uint64_t landing_bytes) {
    const uint64_t pair = 2ull * HEMI_LINE;
    return (sizeof(hemi_halo_area) + 2 * landing_bytes + pair - 1) / pair * pair;
}

/** Both directions with one neighbour. */
typedef struct hemi_halo_way {
    uint32_t peer;
    hemi_rank_block *block; /**< its doorbell */
    const uint32_t *closed; /**< the peer's */
    hemi_halo_area *in;     /**< here, written by the peer */
    hemi_halo_area *out;    /**< at the peer, written by this rank */
    uint64_t in_bytes;      /**< of one landing buffer here */
    uint64_t out_bytes;     /**< of one landing buffer there */
    uint64_t taken;         /**< the peer's, as far as seen */
} hemi_halo_way;

/** Where the message of run e is packed. */
static inline unsigned char *hemi_way_out(const hemi_halo_way *way, uint64_t e, uint64_t bytes) {
    return bytes <= HEMI_NOTE_BYTES ? way->out->notes[e % 2].note.payload
                                    : way->out->landing + (e % 2) * way->out_bytes;
}

/** Where the message of run e has landed. */
static inline unsigned char *hemi_way_in(const hemi_halo_way *way, uint64_t e, uint64_t bytes) {
    return bytes <= HEMI_NOTE_BYTES ? way->in->notes[e % 2].note.payload
                                    : way->in->landing + (e % 2) * way->in_bytes;
}

/** Whether the peer has taken the messages of all runs up to `e`; never of negative ones. */
static inline bool hemi_way_taken(hemi_halo_way *way, uint64_t e) {
    if (way->taken >= e)
        return true;
    /* Pairs with the release in hemi_way_take. */
    way->taken = hemi_load64_acquire(&way->in->credit.taken);
    return way->taken >= e;
}

/** Whether the message of run e may be packed. */
static inline bool hemi_way_may_pack(hemi_halo_way *way, uint64_t e) {
    return e <= 2 || hemi_way_taken(way, e - 2);
}

/** The message of run e is packed: tell. The caller wakes the peer. */
static inline void hemi_way_post(const hemi_halo_way *way, uint64_t e, uint64_t check) {
    hemi_note *note = &way->out->notes[e % 2].note;
    hemi_store64_relaxed(&note->check, check);
    /* Pairs with the acquire in hemi_way_arrived. */
    hemi_store64_release(&note->epoch, e);
}

/** Whether the message of run e is here. */
static inline bool hemi_way_arrived(const hemi_halo_way *way, uint64_t e) {
    return hemi_load64_acquire(&way->in->notes[e % 2].note.epoch) == e;
}

static inline uint64_t hemi_way_check(const hemi_halo_way *way, uint64_t e) {
    return hemi_load64_relaxed(&way->in->notes[e % 2].note.check);
}

static inline uint64_t hemi_way_gone(const hemi_halo_way *way) {
    return hemi_load64_acquire(&way->in->credit.gone);
}

/** Whether the peer's fields may be copied from in run e. Until hemi_way_take it waits for us. */
static inline bool hemi_way_pull(const hemi_halo_way *way, uint64_t e) {
    hemi_store64_relaxed(&way->out->credit.pulling, e);
    hemi_fence_seq_cst(); /* pairs with that in hemi_exchange_break */
    return hemi_way_gone(way) == HEMI_GONE_NOT;
}

/** Whether the peer is in the middle of copying from our fields. */
static inline bool hemi_way_is_pulled(const hemi_halo_way *way) {
    uint64_t pulling = hemi_load64_acquire(&way->in->credit.pulling);
    return hemi_way_gone(way) == HEMI_GONE_NOT &&
           hemi_load64_acquire(&way->in->credit.taken) < pulling;
}

/** The message of run e has been used. The caller wakes the peer. */
static inline void hemi_way_take(const hemi_halo_way *way, uint64_t e) {
    hemi_store64_release(&way->out->credit.taken, e);
}

#endif
