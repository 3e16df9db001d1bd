/*
 * A lane: both directions between this rank and a peer on one channel id, as this rank sees them.
 *
 * Letters wait in two queues, one per direction. The head of a queue is what the lane moves; what
 * it is in the middle of stands in `phase`. All of it is guarded by the engine's lock, but for
 * `busy`: a thread that polls for the next slot by itself claims the receiving direction under the
 * lock and gives it back without.
 */
#ifndef HEMI_CHANNEL_LANE_H
#define HEMI_CHANNEL_LANE_H

#include "channel/cursor.h"
#include "channel/letter.h"
#include "core/hub.h"

/** Longer messages may be offered instead of sent. */
#define HEMI_OFFER_MIN 16384
/** Messages up to this length go in one chunk. */
#define HEMI_WHOLE_MAX 8192
/** Bytes of a pull or a push between two looks at everything else. */
#define HEMI_PIECE 262144

enum hemi_tx_phase {
    HEMI_TX_IDLE = 0,
    HEMI_TX_BULK,       /**< chunks of the first letter are going out */
    HEMI_TX_OFFERED,    /**< it is offered */
    HEMI_TX_PUSH,       /**< the receiver said where to push it */
    HEMI_TX_WITHDRAWING /**< the offer is void, but the receiver may be in the middle of a piece */
};

enum hemi_rx_phase {
    HEMI_RX_IDLE = 0,
    HEMI_RX_BULK,       /**< chunks are coming */
    HEMI_RX_PULL,       /**< being copied from the sender's memory */
    HEMI_RX_PUSH,       /**< the sender may push */
    HEMI_RX_TAKING_BACK /**< it may not any more, but may be in the middle of a piece */
};

/** How a long message comes. */
enum hemi_way {
    HEMI_WAY_STAGED = 0,
    HEMI_WAY_SINGLE,
    HEMI_WAY_PULLED, /**< both buffers are library memory: who copies */
    HEMI_WAY_PUSHED,
    HEMI_WAYS
};

typedef struct hemi_queue {
    hemi_letter *head;
    hemi_letter *last; /**< if there is a head */
} hemi_queue;

typedef struct hemi_sending {
    hemi_tx cursor;
    hemi_queue queue;
    uint32_t phase; /**< of the head */
    uint32_t due;   /**< FIN or ABORT has to go out before anything else; or 0 */
    uint64_t due_bytes;
    uint64_t number;   /**< of the slot that began the head's message */
    uint64_t chunk;    /**< of the head's message */
    unsigned char *to; /**< where it is pushed */
    bool broken;
    bool reserved;     /**< the ring has memory */
    uint32_t slow;     /**< slow ones of the last copies that were timed: see send.c */
    uint32_t untimed;  /**< plain copies before one is timed */
    uint32_t near;     /**< offers that the receiver had better pull */
    uint32_t streamed; /**< copies still to go past the caches */
} hemi_sending;

typedef struct hemi_receiving {
    hemi_rx cursor;
    hemi_queue queue;
    uint32_t phase;
    uint32_t busy; /**< a thread polls for the next slot by itself; released without the lock */
    bool discard;  /**< the message under way belongs to nobody */
    bool broken;
    bool remote;               /**< the source is an address of another process */
    bool slow;                 /**< the last piece that was pulled was slow: see offer.c */
    uint32_t rates[HEMI_WAYS]; /**< bytes per microsecond of messages that went so: enum hemi_way */
    uint32_t tries;            /**< messages that were measured */
    uint64_t began_ns;         /**< of the message under way, if it is measured; else 0 */
    uint32_t far;              /**< offers still to be taken in another way than by pulling */
    uint64_t number;           /**< of the slot that began the message under way */
    uint64_t total;            /**< its length */
    uint64_t moved;
    uint64_t source; /**< where it is pulled from */
} hemi_receiving;

typedef struct hemi_lane {
    hemi_task task;
    hem_world *world;
    hemi_rank_block *block; /**< the peer's */
    const uint32_t *closed; /**< the peer's */
    uint32_t peer;
    uint32_t channel;
    bool ready;     /**< the own area is there */
    bool open;      /**< the peer's, too */
    bool no_single; /**< the system does not let us read the peer's memory */
    hemi_sending tx;
    hemi_receiving rx;
} hemi_lane;

/** The memory of one direction of a lane: credit line and slots, then the ring. */
typedef struct hemi_lane_area {
    unsigned char *at;
    uint64_t head_bytes; /**< before the ring; at least hemi_lane_head_bytes */
    uint64_t ring_bytes;
    uint32_t slots;
} hemi_lane_area;

/**
 * Set up a zeroed lane outside of the hubs, between two areas that read as zero until then and whose
 * heads have memory: `mine` in this rank's part, `theirs` in the peer's. Letters name it in `lane`;
 * hemi_lane_find does not know it.
 */
void hemi_lane_set_up(hemi_lane *lane, hem_world *world, uint32_t peer, const hemi_lane_area *mine,
                      const hemi_lane_area *theirs);

/** All lanes with one peer. */
typedef struct hemi_lanes {
    hemi_lane lanes[HEMI_LANE_IDS];
} hemi_lanes;

/** What hangs from a world's engine. */
typedef struct hemi_lane_table {
    uint32_t size;
    hemi_lanes *peers[];
} hemi_lane_table;

/** The lane, or NULL if it is not ready. Under the lock. */
static inline hemi_lane *hemi_lane_find(const hem_world *world, uint32_t peer, uint32_t channel) {
    const hemi_lane_table *table = world->engine.lanes;
    if (__builtin_expect(table == NULL || table->peers[peer] == NULL, 0))
        return NULL;
    hemi_lane *lane = &table->peers[peer]->lanes[channel];
    return __builtin_expect(lane->ready, 1) ? lane : NULL;
}

/** Look at the peer's area. @return HEM_OK, HEMI_AGAIN until the peer has a hub, or an error. */
hem_status hemi_lane_reach(hemi_lane *lane);

/** Reserve the ring that this rank sends through. It is open. */
hem_status hemi_lane_reserve_ring(hemi_lane *lane);

static inline hem_status hemi_lane_open(hemi_lane *lane) {
    return __builtin_expect(lane->open, 1) ? HEM_OK : hemi_lane_reach(lane);
}

/** Whether anything is left to do. */
static inline bool hemi_lane_has_work(const hemi_lane *lane) {
    return lane->tx.queue.head != NULL || lane->tx.due != 0 || lane->rx.queue.head != NULL ||
           lane->rx.phase != HEMI_RX_IDLE;
}

static inline void hemi_lane_wake(const hemi_lane *lane) {
    hemi_wake(lane->world->root, lane->block);
}

/** Whether the buffer is in this rank's part of the arena. */
static inline bool hemi_lane_is_library(const hemi_root *root, const void *data, size_t bytes) {
    uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)root->arena.base);
    return offset < root->arena.total_bytes &&
           hemi_arena_in_part(&root->arena, root->rank, offset, bytes);
}

/** Messages at least this long are measured, to see which way is faster. */
#define HEMI_MEASURED_MIN 32768
/** The slower way is tried again after so many of them. */
#define HEMI_MEASURED_TRIES 64

/** Which of two ways is faster, as far as is known; now and then the other one, to see. */
bool hemi_lane_prefers(const hemi_lane *lane, enum hemi_way way, enum hemi_way other);

/** Whether messages from the peer's private memory are to be read from there in one copy. */
bool hemi_lane_likes_single(const hemi_lane *lane);

/** A message of the peer that went this way begins, and is done. */
void hemi_lane_measure(hemi_lane *lane, uint64_t bytes);
void hemi_lane_measured(hemi_lane *lane, enum hemi_way way);

/** Whether the peer's private addresses mean something here. */
static inline bool hemi_lane_same_process(const hemi_lane *lane) {
    return lane->world->root->threads || lane->peer == lane->world->rank;
}

/** Whether the peer has ended: it touches nothing any more. */
static inline bool hemi_lane_is_dead(const hemi_lane *lane) {
    const hem_world *world = lane->world;
    return !hemi_liveness_may_come(&world->root->arena, world->members[lane->peer]);
}

void hemi_queue_append(hemi_queue *queue, hemi_letter *letter);
void hemi_queue_prepend(hemi_queue *queue, hemi_letter *letter);
void hemi_queue_remove(hemi_queue *queue, hemi_letter *letter);

static inline hemi_queue *hemi_letter_queue(hemi_letter *letter) {
    return letter->sends ? &letter->lane->tx.queue : &letter->lane->rx.queue;
}

/** Take a letter off its queue and complete it; with a bad status, a sentence was recorded. */
void hemi_letter_done(hemi_letter *letter, hem_status status);

/** Fail every letter of a queue with the last error sentence. */
void hemi_queue_fail(hemi_queue *queue, hem_status status);

/**
 * Do one thing of one direction. @return 0 if there was nothing to do, else about how many bytes
 * were moved and one more.
 */
uint64_t hemi_send_step(hemi_lane *lane);
uint64_t hemi_recv_step(hemi_lane *lane);

/** One piece of a pull, of a push; an offer that came, an answer to one's own. As the above. */
uint64_t hemi_offer_pull(hemi_lane *lane);
uint64_t hemi_offer_push(hemi_lane *lane);
uint64_t hemi_offer_accept(hemi_lane *lane, hemi_letter *letter, const hemi_header *header);

/** Send the FIN or ABORT that is due, if there is a slot. */
uint64_t hemi_send_due(hemi_lane *lane);

/** Copy to the receiver, and find out now and then whether past the caches is the faster way. */
void hemi_send_copy(hemi_lane *lane, unsigned char *to, const unsigned char *from, size_t bytes);

/** Complete the withdrawn head of the sending queue, unless the receiver is in a piece of it. */
uint64_t hemi_send_end_withdrawal(hemi_lane *lane, bool dead);

/** Whether to offer the head of the sending queue, and doing so. There is a slot. */
bool hemi_offer_wanted(const hemi_lane *lane, const hemi_letter *letter);
uint64_t hemi_offer_make(hemi_lane *lane);

/** Break a direction: what the peer wrote cannot be. @return 1. */
uint64_t hemi_recv_break(hemi_lane *lane, const char *what);
uint64_t hemi_send_break(hemi_lane *lane, const char *what);

/** Record that a message does not fit, with both sizes. @return HEM_ERR_RANGE. */
hem_status hemi_recv_too_small(const hemi_letter *letter, uint64_t bytes);

/** Record that the sender has withdrawn the message in the middle. @return HEM_ERR_REVOKED. */
hem_status hemi_recv_withdrawn(const hemi_letter *letter);

/**
 * Take a letter that is under way off its lane, with the last error sentence as the reason.
 *
 * If the peer is just copying from or into its buffer, it is completed later, by the lane: then it
 * is still RUNNING afterwards. `dead`: the peer cannot be copying any more.
 */
void hemi_letter_drop(hemi_letter *letter, hem_status status, bool dead);

/** The same, and wait for the end of that. May drop the lock meanwhile. */
void hemi_letter_cancel(hemi_letter *letter, hem_status status);

/** Fill in a letter; `call` is what errors name. */
void hemi_letter_fill(hemi_letter *letter, hem_world *world, uint32_t call, bool sends,
                      uint32_t peer, uint32_t channel, void *data, size_t bytes);

/** The rank has ended without closing, and the letter may still be under way: take it off its queue
 *  once the peer does not touch its buffer. */
void hemi_letter_forget(hemi_letter *letter);

/** Letters as operations. */
extern const hemi_op_type hemi_letter_send;
extern const hemi_op_type hemi_letter_recv;

#endif
