/*
 * The hub of a rank in a world: the shared memory behind channels and collectives.
 *
 * Each rank makes its own in its part of the arena when it first uses either, and names it in its
 * cell (release of `hub`, followed by a wake of all). Whoever needs a peer's hub and does not find it
 * yet waits for that word. Almost nothing of a hub has memory behind it until it is used.
 *
 *   head      this rank's geometry, and how many steps of collectives it has finished
 *   board     HEMI_BOARD lines, one per step of a collective: see coll/board.h
 *   stages    HEMI_BOARD stages of stage_bytes
 *   lanes     per peer and channel id: see channel/cursor.h
 *
 * The owner decides on the geometry of its hub; others read it from the head once and check it.
 */
#ifndef HEMI_CORE_HUB_H
#define HEMI_CORE_HUB_H

#include "core/engine.h"

#define HEMI_HUB_MAGIC 0x6275686d6568u /* "hemhub" */
/** Steps of collectives that a rank can be ahead of the slowest one. A power of two. */
#define HEMI_BOARD 16
/** Public channel ids and two for the library's own use. */
#define HEMI_LANE_IDS 18

/** What the owner writes before it names the hub; constant from then on. */
typedef struct hemi_hub_head {
    uint64_t magic;
    uint64_t world;
    uint32_t ranks;
    uint32_t slots;       /**< of a lane */
    uint64_t ring_bytes;  /**< of a lane; a multiple of the page */
    uint64_t stage_bytes; /**< a multiple of the page */
    uint32_t check;       /**< it compares what the ranks call */
    /** An address in this rank's process where `world` can be read, to see whether peers can. */
    uint64_t probe;
    /** Whether this rank can read its peers' private memory: enum hemi_pull. Written by the owner. */
    uint32_t pull;
    /** Steps that this rank has finished, all up to this one. Written by the owner. */
    uint64_t done __attribute__((aligned(HEMI_LINE)));
} hemi_hub_head;

enum hemi_pull {
    HEMI_PULL_UNKNOWN = 0,
    HEMI_PULL_YES,
    HEMI_PULL_NO
};

/** A hub as seen from here. Private memory; one's own and those of peers alike. */
typedef struct hemi_hub_view {
    hemi_hub_head *head; /**< NULL: not seen yet */
    unsigned char *board;
    unsigned char *stages;
    uint64_t offset; /**< in the arena */
    uint64_t stage_bytes;
    uint64_t lanes; /**< offset in the arena of the first lane */
    uint64_t lane_bytes;
    uint64_t ring_bytes;
    uint32_t slots;
} hemi_hub_view;

typedef struct hemi_hub {
    hemi_child child;
    hem_world *world;
    hemi_hub_view mine;
    uint64_t bytes;
    uint64_t probe; /**< what peers read here: the world's id */
    bool staged;    /**< the stages have memory */
} hemi_hub;

/** Bytes of a lane's slots and credit line, before its ring: whole pages. */
static inline uint64_t hemi_lane_head_bytes(uint32_t slots) {
    return ((uint64_t)(slots + 1) * HEMI_LINE + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE;
}

/** Where lane (peer, id) is in a hub. */
static inline uint64_t hemi_hub_lane(const hemi_hub_view *hub, uint32_t peer, uint32_t id) {
    return hub->lanes + ((uint64_t)peer * HEMI_LANE_IDS + id) * hub->lane_bytes;
}

/** Make this rank's hub if there is none. Under the engine's lock. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_hub_open(hem_world *world);

/**
 * Look at the hub of `rank`. @return HEM_OK; HEMI_AGAIN if it has none yet; HEM_ERR_MISMATCH if what
 * it named is not a hub of this world.
 */
hem_status hemi_hub_see(hem_world *world, uint32_t rank, hemi_hub_view *view_p);

/** Reserve memory behind [offset, offset + bytes) of any rank's hub. */
hem_status hemi_hub_reserve(hem_world *world, uint64_t offset, uint64_t bytes);

/** Reserve this rank's stages, once. */
hem_status hemi_hub_stages(hem_world *world);

#endif
