/*
 * The layout of the arena: what lies where in the shared memory of one machine and root world.
 *
 *   0                head, one page
 *   ranks_offset     one block of 4096 bytes per rank: doorbell, state, flight record
 *   team_offset      the team of all ranks, made with the arena
 *   parts_offset     one part of part_bytes per rank: the heap from which that rank alone allocates
 *
 * The file is as long as all of it, but sparse: what nobody touched costs nothing. Everything that
 * refers to shared memory is an offset from the start of the arena, since each process maps it
 * where it likes. Words are only touched through base/atomic.h once a second rank can see them.
 *
 * Who writes what is said at each member. The launcher, `hem ps` and a rank may be of different
 * versions, so the head carries a number that must be equal.
 */
#ifndef HEMI_CORE_LAYOUT_H
#define HEMI_CORE_LAYOUT_H

#include "base/atomic.h"

#include <stdint.h>

#define HEMI_ARENA_MAGIC    0x616e6572616d6568u /* "hemarena" */
#define HEMI_TEAM_MAGIC     0x6d6165746d6568u   /* "hemteam" */
#define HEMI_LAYOUT_VERSION 5u

#define HEMI_PAGE      4096u
#define HEMI_MAX_RANKS 65536
/** What one rank can say to all in one step of a collective set-up. */
#define HEMI_BLOB    480
#define HEMI_FLIGHTS 4
/** Device objects of a rank whose kernels say what they wait for. */
#define HEMI_NOTES 64
/** Collectives that can be told apart in a team's verdicts. */
#define HEMI_SETTLES 64
/** Start of each part: the book-keeping of its heap. */
#define HEMI_HEAP_META (256u << 10)

/** How a root world came to be. */
enum hemi_kind {
    HEMI_KIND_LAUNCHED = 1,
    HEMI_KIND_CALLBACK,
    HEMI_KIND_THREADS,
    HEMI_KIND_ALONE
};

/** A rank's state, written by the rank until it is ALIVE, by the monitor afterwards. */
enum hemi_state {
    HEMI_STATE_NEW = 0, /**< has not come yet */
    HEMI_STATE_ALIVE,
    HEMI_STATE_EXITED, /**< ended with exit code 0, or its process closed everything and left */
    HEMI_STATE_DEAD    /**< ended otherwise */
};

typedef struct hemi_arena_head {
    /* Written by the maker of the arena before anybody else sees it. */
    uint64_t magic;
    uint32_t version;
    uint32_t kind; /**< enum hemi_kind */
    uint64_t total_bytes;
    uint32_t ranks;
    uint32_t maker_pid;
    uint64_t ranks_offset;
    uint64_t team_offset;
    uint64_t parts_offset;
    uint64_t part_bytes;
    uint64_t reserve_bytes; /**< memory that was reserved in each part behind its book-keeping */
    uint64_t job;           /**< random; names the job to people */
    uint64_t start_ns;      /**< platform clock */
    char command[160];      /**< what is run, for people */

    /** Counts up after any rank died or left and after any revoke: whoever cached it looks again.
     *  Watchers are parked on it, and nobody else. */
    uint32_t alarm __attribute__((aligned(HEMI_LINE)));
    /** 1 once a rank cannot take part in membarrier: then signallers fence. Only ever set. */
    uint32_t fence __attribute__((aligned(HEMI_LINE)));
    /** Worlds made so far, to name them to people. */
    uint32_t worlds;
    /** Ranks that are dead as threads and still put their affairs in order, in memory of others, too:
     *  what is freed meanwhile is not used again before. See core/liveness.h. */
    uint32_t dying;
} hemi_arena_head;

/** What a thread of a rank is waiting for. Guarded by `seq`: odd while it is being written. */
typedef struct hemi_flight {
    uint32_t owner; /**< 1 while a thread uses this slot */
    uint32_t seq;
    uint32_t call; /**< enum hemi_call; 0: in nothing */
    int32_t peer;  /**< root rank, or -1 for all */
    uint32_t id;   /**< signal, barrier or counter */
    uint32_t compare;
    uint64_t wanted;
    uint64_t word; /**< offset in the arena of the word that is watched; 0: none */
    uint64_t window;
    uint64_t world;
    uint64_t since_ns;
    uint64_t fingerprint; /**< of the arguments of a collective call */
} hemi_flight;

typedef struct hemi_rank_block {
    /** Threads of this rank that sleep or are about to. Written by them, read by signallers. */
    uint32_t sleepers;
    uint32_t state; /**< enum hemi_state */
    /** What the sleepers are parked on. Counted up by whoever wakes them. */
    uint32_t doorbell __attribute__((aligned(HEMI_LINE)));
    /* Written by the rank when it attaches. */
    uint32_t pid __attribute__((aligned(HEMI_LINE)));
    uint32_t host;
    /** Lock of the rank's heap: taken by threads of the rank's own process only. */
    uint32_t heap_lock;
    /* Written by whoever declares the rank ended, before it changes `state`. */
    int32_t exit_code; /**< as a shell says it: 128 + signal */
    uint64_t death_ns;
    hemi_flight flights[HEMI_FLIGHTS] __attribute__((aligned(HEMI_LINE)));
    /** Where the words of a device object of this rank are (hem/device/types.h, enum hemd_trouble), in
     *  which its kernels say what they wait for; 0: none. By the rank. */
    uint64_t notes[HEMI_NOTES] __attribute__((aligned(HEMI_LINE)));
} __attribute__((aligned(HEMI_PAGE))) hemi_rank_block;

/** One member of a team: what it has said in collective set-up, and whether it has left. */
typedef struct hemi_cell {
    uint64_t seq;          /**< number of the last step that this member has published */
    uint64_t shrink;       /**< number of the last hem_world_shrink that it has entered */
    uint64_t heard;        /**< number of the last step with whose blobs it is done */
    uint64_t meet;         /**< number of the last hemi_team_meet that it has entered */
    uint64_t meet_tags[2]; /**< what for, by number % 2 */
    uint32_t closed;       /**< it has called hem_world_close */
    uint32_t left;         /**< it will not touch the team again */
    uint64_t hub;          /**< where its hub is in the arena; 0: it has none yet. See core/hub.h */
    uint8_t blobs[2][HEMI_BLOB] __attribute__((aligned(HEMI_LINE)));
} __attribute__((aligned(HEMI_LINE))) hemi_cell;

/** The shared part of a world. Followed by `size` cells, then by the members' root ranks. */
typedef struct hemi_team {
    uint64_t magic;
    uint64_t id;
    uint32_t size;
    uint32_t owner; /**< root rank in whose part it lies; HEMI_MAX_RANKS: made with the arena */
    uint64_t bytes;
    uint32_t revoked __attribute__((aligned(HEMI_LINE)));
    /** How step e of collective set-up ended, in word e % 4: epoch << 32 | rank << 8 | code. */
    uint64_t settle[4] __attribute__((aligned(HEMI_LINE)));
    /** The team that the k-th shrink made, in word k % 4: k << 48 | offset / HEMI_PAGE. */
    uint64_t shrunk[4];
    /** How collective k ended, if anybody had doubts, in word k % HEMI_SETTLES: coll/settle.h. */
    uint64_t verdicts[HEMI_SETTLES] __attribute__((aligned(HEMI_LINE)));
    hemi_cell cells[] __attribute__((aligned(HEMI_LINE)));
} hemi_team;

/** Bytes of a team of `size`, a whole number of pages. */
static inline uint64_t hemi_team_bytes(uint32_t size) {
    uint64_t bytes = sizeof(hemi_team) + (uint64_t)size * (sizeof(hemi_cell) + sizeof(uint32_t));
    return (bytes + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE;
}

/** The members' root ranks. */
static inline uint32_t *hemi_team_members(hemi_team *team, uint32_t size) {
    return (uint32_t *)(void *)(team->cells + size);
}

_Static_assert(sizeof(hemi_arena_head) <= HEMI_PAGE, "the head is one page");
_Static_assert(sizeof(hemi_rank_block) == HEMI_PAGE, "a rank block is one page");
_Static_assert(sizeof(hemi_cell) == HEMI_LINE + 2 * HEMI_BLOB, "a cell has no holes");

#endif
