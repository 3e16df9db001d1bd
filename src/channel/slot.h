/* The words of a channel in shared memory. Who writes them, and when: see channel/cursor.h. */
#ifndef HEMI_CHANNEL_SLOT_H
#define HEMI_CHANNEL_SLOT_H

#include "base/atomic.h"

/** What fits into a slot beside its header. */
#define HEMI_SLOT_BYTES 40

enum hemi_slot_kind {
    HEMI_SLOT_MESSAGE = 1, /**< a whole message, inline */
    HEMI_SLOT_BULK,        /**< a message begins, with its first chunk */
    HEMI_SLOT_CHUNK,       /**< it goes on */
    HEMI_SLOT_OFFER,       /**< a message begins: where it can be had */
    HEMI_SLOT_FIN,         /**< it has been pushed */
    HEMI_SLOT_ABORT,       /**< it has been withdrawn in the middle */
    HEMI_SLOT_KINDS
};

enum hemi_verdict_code {
    HEMI_VERDICT_NONE = 0,
    HEMI_VERDICT_DONE,
    HEMI_VERDICT_STAGE,
    HEMI_VERDICT_PUSH,
    HEMI_VERDICT_RANGE,
    HEMI_VERDICT_GONE
};

/** Where offered data is. */
enum hemi_offer_memory {
    HEMI_OFFER_LIBRARY = 1, /**< at an offset in the arena, in the sender's part */
    HEMI_OFFER_PRIVATE      /**< at an address of the sender */
};

/** The payload of BULK and CHUNK. */
typedef struct hemi_chunk {
    uint64_t position; /**< count of ring bytes before it */
    uint64_t offset;   /**< bytes of the message before it */
    uint64_t chunk;    /**< the sender's chunk size; no chunk of the message is longer */
} hemi_chunk;

/** The payload of OFFER. */
typedef struct hemi_offer {
    uint64_t memory; /**< enum hemi_offer_memory */
    uint64_t where;
    uint64_t present; /**< 1: the sender waits in a call and would like to push */
} hemi_offer;

/** In `kind`: messages are not striped over several lanes yet. */
#define HEMI_SLOT_LANES (1u << 8)

/**
 * In `kind`, above: which collective of the library a message belongs to, modulo 2^16; 0 for the
 * caller's messages. A receiver throws away what is older than it expects: a collective that failed
 * left it behind.
 */
#define HEMI_SLOT_TAG 16

typedef struct hemi_slot {
    uint64_t stamp;
    uint32_t kind;   /**< enum hemi_slot_kind | lanes << 8 | tag << 16 */
    uint32_t length; /**< bytes that this slot brings */
    uint64_t bytes;  /**< of the whole message; of ABORT: those that had gone before it */
    uint8_t payload[HEMI_SLOT_BYTES];
} __attribute__((aligned(HEMI_LINE))) hemi_slot;

typedef struct hemi_credit {
    uint64_t slots;     /**< slots used up, ever */
    uint64_t bytes;     /**< ring bytes used up, ever */
    uint64_t verdict;   /**< number << 8 | enum hemi_verdict_code */
    uint64_t detail;    /**< of the verdict */
    uint64_t pulling;   /**< the offer from which a piece is being copied now, or 0 */
    uint64_t likes;     /**< 1: the receiver's last long buffer was library memory */
    uint64_t withdrawn; /**< all own offers up to this number are settled or void */
    uint64_t pushing;   /**< the own offer of which a piece is being pushed now, or 0 */
} __attribute__((aligned(HEMI_LINE))) hemi_credit;

_Static_assert(sizeof(hemi_slot) == HEMI_LINE, "a slot is one cache line");
_Static_assert(sizeof(hemi_credit) == HEMI_LINE, "so is the credit line");
_Static_assert(sizeof(hemi_chunk) <= HEMI_SLOT_BYTES, "a chunk's place fits into its slot");

#endif
