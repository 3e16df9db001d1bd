/* The flight record: what each rank is waiting for, readable by others at any time. */
#ifndef HEMI_CORE_FLIGHT_H
#define HEMI_CORE_FLIGHT_H

#include "core/arena.h"

#include <hem/device/types.h>

/** The calls that can wait. */
enum hemi_call {
    HEMI_CALL_NONE = 0,
    HEMI_CALL_OPEN,
    HEMI_CALL_CLOSE,
    HEMI_CALL_SPLIT,
    HEMI_CALL_SHRINK,
    HEMI_CALL_WINDOW_CREATE,
    HEMI_CALL_WINDOW_DESTROY,
    HEMI_CALL_WAIT_SIGNAL,
    HEMI_CALL_WAIT_SIGNAL_FROM,
    HEMI_CALL_WAIT_SIGNAL_ANY,
    HEMI_CALL_WAIT_COUNTER,
    HEMI_CALL_BARRIER,
    HEMI_CALL_BARRIER_PEER,
    HEMI_CALL_FLUSH,
    HEMI_CALL_OP_WAIT,
    HEMI_CALL_COLL, /**< plus a hem_coll_kind, which start at 1 */
    HEMI_CALL_SPARSE = HEMI_CALL_COLL + 15,
    HEMI_CALL_SEND,
    HEMI_CALL_RECV,
    HEMI_CALL_SENDRECV,
    HEMI_CALL_CHANNEL_PREPARE,
    HEMI_CALL_PATTERN_GRID,
    HEMI_CALL_PATTERN_MESH,
    HEMI_CALL_PATTERN_SPHERE,
    HEMI_CALL_PATTERN_EXPLICIT,
    HEMI_CALL_PATTERN_VALIDATE,
    HEMI_CALL_PATTERN_DRAW,
    HEMI_CALL_EXCHANGE_CREATE,
    HEMI_CALL_EXCHANGE,
    HEMI_CALL_LINE_CREATE,
    HEMI_CALL_LINE,
    HEMI_CALL_REACH_PLAN,
    HEMI_CALL_REACH,
    HEMI_CALL_STREAM_SYNC,
    HEMI_CALL_EVENT_SYNC,
    HEMI_CALL_PIPE_CREATE,
    HEMI_CALL_PIPE_DESTROY,
    HEMI_CALL_COLL_PLAN,
    HEMI_CALL_KERNEL, /**< plus an enum hemd_what, which start at 1: what a kernel is in */
    HEMI_CALL_COUNT = HEMI_CALL_KERNEL + HEMD_WHAT_COUNT
};

/** The name of the public call, such as "hem_barrier". */
const char *hemi_call_name(uint32_t call);

/** What to write into the record. Zeroed members mean "not applicable". */
typedef struct hemi_flight_note {
    uint32_t call;
    int32_t peer; /**< root rank, or -1 for all */
    uint32_t id;
    uint32_t compare;
    uint64_t wanted;
    const void *word; /**< the watched 64-bit word, inside the arena, or NULL */
    uint64_t window;
    uint64_t world;
    uint64_t fingerprint;
} hemi_flight_note;

/** Take a free slot of the rank and fill it in. NULL if all are taken: then nothing is recorded. */
hemi_flight *hemi_flight_enter(const hemi_arena *arena, uint32_t root_rank,
                               const hemi_flight_note *note, uint64_t now_ns);

/** Change the peer and the word that a slot shows. NULL is allowed. */
void hemi_flight_update(const hemi_arena *arena, hemi_flight *flight, int32_t peer,
                        const void *word, uint64_t wanted);

/** Give the slot back. NULL is allowed. */
void hemi_flight_leave(hemi_flight *flight);

/**
 * Copy slot `slot` of a rank's record consistently. For onlookers; takes 20 ms at most.
 *
 * `seen_p` gets the present value of the watched word, 0 if there is none.
 * @return false if the slot is not in use.
 */
bool hemi_flight_read(const hemi_arena *arena, uint32_t root_rank, uint32_t slot,
                      hemi_flight *copy_p, uint64_t *seen_p);

/**
 * One line for people about a copied slot, such as
 * "hem_wait_signal_from: window 3, signal 2 from rank 1: is 4, wants >= 5, for 2.1 s", or about what
 * a kernel waits for (device/notes.h), which begins with "a kernel in ".
 */
void hemi_flight_describe(const hemi_flight *flight, uint64_t seen, uint64_t now_ns, char *text,
                          size_t size);

#endif
