/*
 * The cursor protocol: how messages go from rank A to rank B through B's memory.
 *
 * An area lies in B's hub for each peer A and channel id. All of it is written by A alone:
 *
 *   credit line   A as the receiver of B -> A: slots, bytes, verdict, detail, pulling, likes
 *                 A as the sender of A -> B:   withdrawn, pushing
 *   slots         A as the sender; data and stamp in one line
 *   ring          A as the sender; longer messages in chunks
 *
 * So each side polls its own memory only: stamps lie at the receiver, credits at the sender. Counts
 * only grow, from 0, for as long as the world lives; nothing is ever reset.
 *
 * Sender, slot k (from 1): acquires `slots` of the peer's credit line until k - slots <= number of
 * slots, the same for `bytes` and the ring; writes chunk, kind, length, bytes, payload; releases
 * stamp = k. A slot's older stamps are k - n * slots: a stale slot never looks like the next one.
 * Receiver: acquires stamp == k; copies what it needs; releases `bytes`, then `slots` = k. Credits
 * go out after every slot, padding of the ring included. Both wake the other side after their
 * release (core/wait.h), which is why no sleeper misses it: stamp, slots, bytes, verdict, pulling
 * and pushing are all followed by hemi_wake.
 *
 * A message is MESSAGE alone; or BULK, CHUNK ... until all its bytes are there; or OFFER. ABORT
 * ends one that has begun with BULK or PUSH. An OFFER says where the data is. The receiver answers
 * in `verdict` (number of the offer's slot and a code; `detail` is written before, released with
 * it):
 *   STAGE  send it as BULK          RANGE  my room is `detail`: too small (also answers a BULK)
 *   PUSH   copy it to arena offset `detail`, then send FIN
 *   DONE   I have copied it         GONE   stop pushing, nobody wants it any more
 *
 * Who touches the other side's buffer says so first, and who takes a buffer away says that first:
 *   receiver, piece of a pull:    pulling = n;       full fence; acquires withdrawn; copies if < n
 *   sender, withdrawing offer n:  withdrawn = n;     full fence; acquires pulling until not n
 *   sender, piece of a push:      pushing = n;       full fence; acquires verdict; copies if PUSH(n)
 *   receiver, taking a push back: verdict = GONE(n); full fence; acquires pushing until not n
 * Of two such at least one sees the other (Dekker): after its wait the owner's buffer is its own.
 * pulling and pushing go back to 0 with a release after each piece; after the last piece of a pull,
 * DONE goes out first, so that a sender that withdraws finds it. An offer is settled or withdrawn
 * before the next one is made: while it is not settled, `withdrawn` >= n means that it is void. A
 * sender that withdraws before it has read PUSH sends neither FIN nor ABORT: then the next slot
 * begins a message, and `withdrawn` says why. FIN always finds a slot: the offer's own has come
 * back.
 *
 * What a peer wrote is read once, checked, then used. Nothing here waits or knows a world, so that
 * device code can share it.
 */
#ifndef HEMI_CHANNEL_CURSOR_H
#define HEMI_CHANNEL_CURSOR_H

#include "base/copy.h"
#include "channel/slot.h"

/** The memory of one direction, as either side sees it. */
typedef struct hemi_track {
    hemi_slot *slots;
    unsigned char *ring;
    uint64_t ring_bytes;
    uint32_t slot_count;
    uint32_t slot_at; /**< where the next slot is */
    uint64_t ring_at; /**< byte count % ring_bytes */
} hemi_track;

/** The sender's own state. */
typedef struct hemi_tx {
    hemi_track track;
    hemi_credit *mine;         /**< at the receiver */
    const hemi_credit *theirs; /**< at home */
    uint64_t slot_tail;        /**< slots ever used */
    uint64_t slot_head;        /**< of those, known to be free again */
    uint64_t byte_tail;
    uint64_t byte_head;
    uint32_t tag; /**< of the message that is being sent */
} hemi_tx;

/** The receiver's own state. */
typedef struct hemi_rx {
    hemi_track track;
    hemi_credit *mine;         /**< at the sender */
    const hemi_credit *theirs; /**< at home */
    uint64_t slot_head;
    uint64_t byte_head;
} hemi_rx;

static inline uint64_t hemi_verdict(uint64_t number, uint32_t code) {
    return number << 8 | code;
}

/** Set up the memory at `area`; the ring begins `head_bytes` behind it. */
static inline void hemi_track_init(hemi_track *track, unsigned char *area, uint64_t head_bytes,
                                   uint32_t slots, uint64_t ring_bytes) {
    track->slots = (hemi_slot *)(void *)(area + HEMI_LINE);
    track->ring = area + head_bytes;
    track->ring_bytes = ring_bytes;
    track->slot_count = slots;
    track->slot_at = 0;
    track->ring_at = 0;
}

static inline void hemi_track_step(hemi_track *track) {
    uint32_t next = track->slot_at + 1;
    track->slot_at = next == track->slot_count ? 0 : next;
}

/** Where in the ring the byte `ahead` of the present one is; `ahead` is at most the ring. */
static inline uint64_t hemi_track_at(const hemi_track *track, uint64_t ahead) {
    uint64_t at = track->ring_at + ahead;
    return at >= track->ring_bytes ? at - track->ring_bytes : at;
}

static inline uint64_t hemi_round_line(uint64_t bytes) {
    return (bytes + HEMI_LINE - 1) & ~(uint64_t)(HEMI_LINE - 1);
}

/* Sending. */

/** Look what the receiver has given back. False: what it says cannot be. */
static inline bool hemi_tx_reload(hemi_tx *tx) {
    /* Pairs with the releases in hemi_rx_credit: whatever lay there has been copied out. */
    uint64_t slots = hemi_load64_acquire(&tx->theirs->slots);
    uint64_t bytes = hemi_load64_acquire(&tx->theirs->bytes);
    if (tx->slot_tail - slots > tx->track.slot_count ||
        tx->byte_tail - bytes > tx->track.ring_bytes)
        return false;
    tx->slot_head = slots;
    tx->byte_head = bytes;
    return true;
}

/** As far as is known: is there a free slot? */
static inline bool hemi_tx_has_slot(const hemi_tx *tx) {
    return tx->slot_tail - tx->slot_head < tx->track.slot_count;
}

static inline hemi_slot *hemi_tx_slot(const hemi_tx *tx) {
    return &tx->track.slots[tx->track.slot_at];
}

/** The next slot's payload is in place: publish it. @return its number. */
static inline uint64_t hemi_tx_post(hemi_tx *tx, uint32_t kind, uint32_t length, uint64_t bytes) {
    hemi_slot *slot = hemi_tx_slot(tx);
    uint64_t number = ++tx->slot_tail;
    hemi_track_step(&tx->track);
    slot->kind = kind | HEMI_SLOT_LANES | tx->tag << HEMI_SLOT_TAG;
    slot->length = length;
    slot->bytes = bytes;
    /* Pairs with the acquire in hemi_rx_ready. */
    hemi_store64_release(&slot->stamp, number);
    return number;
}

/** Send a whole message inline. There is a slot, and `bytes` is at most HEMI_SLOT_BYTES. */
static inline void hemi_tx_inline(hemi_tx *tx, const void *data, size_t bytes) {
    hemi_copy_line(hemi_tx_slot(tx)->payload, data, bytes);
    hemi_tx_post(tx, HEMI_SLOT_MESSAGE, (uint32_t)bytes, bytes);
}

/**
 * Find room in the ring for the next chunk of at most `wanted` bytes; `wanted` is at most the ring.
 *
 * A chunk is contiguous. At the end of the ring it is cut short, or, if little would be left there
 * and there is room at the start, that rest is skipped. Says how much is skipped in `skip_p`.
 * @return the length, or 0: not now. Comes true once the receiver has taken what is there.
 */
static inline uint64_t hemi_tx_room(const hemi_tx *tx, uint64_t wanted, uint64_t *skip_p) {
    uint64_t free_bytes = tx->track.ring_bytes - (tx->byte_tail - tx->byte_head);
    uint64_t here = tx->track.ring_bytes - tx->track.ring_at;
    *skip_p = 0;
    if (here >= wanted)
        return free_bytes >= wanted ? wanted : 0;
    if (here <= wanted / 4 && free_bytes >= here + wanted) {
        *skip_p = here;
        return wanted;
    }
    return free_bytes >= here ? here : 0;
}

/** Where to write a chunk that `skip` bytes are skipped for. */
static inline unsigned char *hemi_tx_place(const hemi_tx *tx, uint64_t skip) {
    return tx->track.ring + hemi_track_at(&tx->track, skip);
}

/** A chunk of the message has been written: publish it. `offset` is what went before it. */
static inline uint64_t hemi_tx_chunk(hemi_tx *tx, uint64_t skip, uint64_t length, uint64_t chunk,
                                     uint64_t offset, uint64_t bytes) {
    hemi_chunk place = {tx->byte_tail + skip, offset, chunk};
    uint64_t used = skip + length;
    if (offset + length == bytes)
        used = hemi_round_line(place.position + length) - tx->byte_tail;
    tx->byte_tail += used;
    tx->track.ring_at = hemi_track_at(&tx->track, used);
    memcpy(hemi_tx_slot(tx)->payload, &place, sizeof place);
    return hemi_tx_post(tx, offset == 0 ? HEMI_SLOT_BULK : HEMI_SLOT_CHUNK, (uint32_t)length,
                        bytes);
}

/** Publish an offer. @return its number. */
static inline uint64_t hemi_tx_offer(hemi_tx *tx, const hemi_offer *offer, uint64_t bytes) {
    memcpy(hemi_tx_slot(tx)->payload, offer, sizeof *offer);
    return hemi_tx_post(tx, HEMI_SLOT_OFFER, 0, bytes);
}

/** What the receiver says about message `number`; its detail, too. */
static inline uint32_t hemi_tx_verdict(const hemi_tx *tx, uint64_t number, uint64_t *detail_p) {
    /* Pairs with the release in hemi_rx_say. */
    uint64_t verdict = hemi_load64_acquire(&tx->theirs->verdict);
    if (verdict >> 8 != number)
        return HEMI_VERDICT_NONE;
    *detail_p = hemi_load64_relaxed(&tx->theirs->detail);
    return (uint32_t)(verdict & 0xff);
}

/** Withdraw an offer. The buffer is one's own again once hemi_tx_pulled says so. */
static inline void hemi_tx_withdraw(hemi_tx *tx, uint64_t number) {
    hemi_store64_release(&tx->mine->withdrawn, number);
    hemi_fence_seq_cst();
}

/** Whether the receiver is in the middle of a piece of the offer. */
static inline bool hemi_tx_pulled(const hemi_tx *tx, uint64_t number) {
    /* Pairs with the release in hemi_rx_pull_end. */
    return hemi_load64_acquire(&tx->theirs->pulling) == number;
}

/** Before each piece of a push. False: do not touch the receiver's buffer, but end the push. */
static inline bool hemi_tx_push_begin(hemi_tx *tx, uint64_t number) {
    hemi_store64_relaxed(&tx->mine->pushing, number);
    hemi_fence_seq_cst();
    return hemi_load64_acquire(&tx->theirs->verdict) == hemi_verdict(number, HEMI_VERDICT_PUSH);
}

/** After each piece, and after a false. Pairs with the acquire in hemi_rx_pushed. */
static inline void hemi_tx_push_end(hemi_tx *tx) {
    hemi_store64_release(&tx->mine->pushing, 0);
}

/* Receiving. */

/** Whether the next slot is there. */
static inline bool hemi_rx_ready(const hemi_rx *rx) {
    /* Pairs with the release in hemi_tx_post. */
    return hemi_load64_acquire(&rx->track.slots[rx->track.slot_at].stamp) == rx->slot_head + 1;
}

static inline const hemi_slot *hemi_rx_slot(const hemi_rx *rx) {
    return &rx->track.slots[rx->track.slot_at];
}

/** A copy of a slot's header: what is checked is what is used. */
typedef struct hemi_header {
    uint32_t kind; /**< with the lanes, without the tag */
    uint32_t tag;
    uint32_t length;
    uint64_t bytes;
    union {
        hemi_chunk chunk;
        hemi_offer offer;
    } at;
} hemi_header;

/** Read the header of the next slot, which is there; of a MESSAGE without the payload. */
static inline void hemi_rx_header(const hemi_rx *rx, hemi_header *header_p) {
    const hemi_slot *slot = hemi_rx_slot(rx);
    /* Through atomics, so that a peer that writes meanwhile cannot make it be read twice. */
    uint32_t kind = hemi_load32_relaxed(&slot->kind);
    header_p->kind = kind & ((1u << HEMI_SLOT_TAG) - 1);
    header_p->tag = kind >> HEMI_SLOT_TAG;
    header_p->length = hemi_load32_relaxed(&slot->length);
    header_p->bytes = hemi_load64_relaxed(&slot->bytes);
    const uint64_t *words = (const uint64_t *)(const void *)slot->payload;
    header_p->at.chunk.position = hemi_load64_relaxed(&words[0]);
    header_p->at.chunk.offset = hemi_load64_relaxed(&words[1]);
    header_p->at.chunk.chunk = hemi_load64_relaxed(&words[2]);
}

/** NULL, or what is wrong with the place of a chunk. */
static inline const char *hemi_rx_check_place(const hemi_rx *rx, const hemi_header *h) {
    uint64_t ring = rx->track.ring_bytes;
    uint64_t ahead = h->at.chunk.position - rx->byte_head;
    /* All but the last chunk of a message are whole lines, so that byte counts are, too. */
    bool last = h->at.chunk.offset + h->length == h->bytes;
    if (h->length == 0 || h->length > ring || (h->length % HEMI_LINE != 0 && !last))
        return "length of a chunk";
    if (h->at.chunk.chunk < h->length || h->at.chunk.chunk > ring)
        return "chunk size";
    if (h->at.chunk.position % HEMI_LINE != 0 || ahead > ring || h->length > ring - ahead)
        return "position of a chunk";
    if (h->length > ring - hemi_track_at(&rx->track, ahead))
        return "chunk around the end of the ring";
    return NULL;
}

/**
 * Check a slot that begins a message. @return NULL, or what is wrong.
 *
 * Where an OFFER's data is, only the caller can check.
 */
static inline const char *hemi_rx_check_first(const hemi_rx *rx, const hemi_header *h) {
    switch (h->kind) {
    case HEMI_SLOT_MESSAGE | HEMI_SLOT_LANES:
        return h->length <= HEMI_SLOT_BYTES && h->bytes == h->length ? NULL : "length";
    case HEMI_SLOT_BULK | HEMI_SLOT_LANES:
        if (h->bytes < h->length || h->at.chunk.offset != 0)
            return "length of a message";
        return hemi_rx_check_place(rx, h);
    case HEMI_SLOT_OFFER | HEMI_SLOT_LANES:
        return h->length == 0 && h->bytes != 0 ? NULL : "length of an offer";
    default:
        return "kind or number of lanes";
    }
}

/** Check a slot that goes on with a message of `bytes`, of which `moved` have come as chunks. */
static inline const char *hemi_rx_check_next(const hemi_rx *rx, const hemi_header *h,
                                             uint64_t bytes, uint64_t moved) {
    switch (h->kind) {
    case HEMI_SLOT_CHUNK | HEMI_SLOT_LANES:
        if (h->bytes != bytes || h->at.chunk.offset != moved || h->length > bytes - moved)
            return "part of a message";
        return hemi_rx_check_place(rx, h);
    case HEMI_SLOT_ABORT | HEMI_SLOT_LANES:
        return h->length == 0 && h->bytes == moved ? NULL : "end of a message";
    default:
        return "kind or number of lanes";
    }
}

/** The bytes of a chunk that was found good. */
static inline const unsigned char *hemi_rx_place(const hemi_rx *rx, const hemi_header *h) {
    return rx->track.ring + hemi_track_at(&rx->track, h->at.chunk.position - rx->byte_head);
}

/** Done with the next slot: give it back. */
static inline void hemi_rx_credit(hemi_rx *rx) {
    rx->slot_head++;
    hemi_track_step(&rx->track);
    /* Pairs with the acquire in hemi_tx_reload. */
    hemi_store64_release(&rx->mine->slots, rx->slot_head);
}

/** Done with the next slot and its chunk; `last`: it ended the message. */
static inline void hemi_rx_credit_chunk(hemi_rx *rx, const hemi_header *h, bool last) {
    uint64_t head = h->at.chunk.position + h->length;
    if (last)
        head = hemi_round_line(head);
    rx->track.ring_at = hemi_track_at(&rx->track, head - rx->byte_head);
    rx->byte_head = head;
    hemi_store64_release(&rx->mine->bytes, head);
    hemi_rx_credit(rx);
}

/** Answer the message that began with slot `number`. */
static inline void hemi_rx_say(hemi_rx *rx, uint64_t number, uint32_t code, uint64_t detail) {
    hemi_store64_relaxed(&rx->mine->detail, detail);
    /* Pairs with the acquire in hemi_tx_verdict; whoever sees DONE sees that the copy is over. */
    hemi_store64_release(&rx->mine->verdict, hemi_verdict(number, code));
}

/** Whether the sender has withdrawn offer `number`. */
static inline bool hemi_rx_withdrawn(const hemi_rx *rx, uint64_t number) {
    return hemi_load64_acquire(&rx->theirs->withdrawn) >= number;
}

/** Before each piece of a pull. False: do not touch the sender's buffer; it is withdrawn. */
static inline bool hemi_rx_pull_begin(hemi_rx *rx, uint64_t number) {
    hemi_store64_relaxed(&rx->mine->pulling, number);
    hemi_fence_seq_cst();
    return !hemi_rx_withdrawn(rx, number);
}

/** After each piece, and after a false. Pairs with the acquire in hemi_tx_pulled. */
static inline void hemi_rx_pull_end(hemi_rx *rx) {
    hemi_store64_release(&rx->mine->pulling, 0);
}

/** Take back the permission to push. The buffer is one's own again once hemi_rx_pushed is false. */
static inline void hemi_rx_take_back(hemi_rx *rx, uint64_t number) {
    /* Not its detail: the sender may just have seen the permission and read where to push to. */
    hemi_store64_release(&rx->mine->verdict, hemi_verdict(number, HEMI_VERDICT_GONE));
    hemi_fence_seq_cst();
}

/** Whether the sender is in the middle of a piece of a push. */
static inline bool hemi_rx_pushed(const hemi_rx *rx, uint64_t number) {
    return hemi_load64_acquire(&rx->theirs->pushing) == number;
}

#endif
