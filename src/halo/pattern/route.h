/*
 * Routing: records of any size to any ranks, where receivers do not know of them.
 *
 * Records travel in bags from rank to rank: in each of about log2(ranks) rounds a rank hands half of
 * what it holds to one partner and takes as much (a crystal router). So a rank sends a number of
 * messages that grows with the logarithm of the ranks, whatever the pattern, and each record is
 * carried at most so many times. Few ranks send directly.
 */
#ifndef HEMI_HALO_PATTERN_ROUTE_H
#define HEMI_HALO_PATTERN_ROUTE_H

#include "core/world.h"

/** A growing heap of records, each for one rank. Zeroed is empty. */
typedef struct hemi_bag {
    unsigned char *bytes;
    size_t used;
    size_t room;
    size_t records;
} hemi_bag;

/** A record. Its data follows it and is aligned to 8 bytes. */
typedef struct hemi_record {
    uint32_t to;
    uint32_t from;
    uint64_t bytes;
} hemi_record;

/** Who routes, until when, and what it took. */
typedef struct hemi_router {
    hem_world *world;
    uint32_t call;        /**< enum hemi_call */
    uint64_t deadline_ns; /**< of the platform's clock; UINT64_MAX: none */
    uint64_t messages;    /**< sent so far */
    uint64_t bytes;       /**< sent so far */
    uint64_t held; /**< memory in use now, and the most of it so far; others may add theirs */
    uint64_t peak;
} hemi_router;

/** Most ranks that send directly. More of them use the crystal router. */
#define HEMI_ROUTE_DIRECT 16

/** Count memory that was taken for the set-up, and that was given back. */
static inline void hemi_router_hold(hemi_router *router, uint64_t bytes) {
    router->held += bytes;
    if (router->held > router->peak)
        router->peak = router->held;
}

static inline void hemi_router_drop(hemi_router *router, uint64_t bytes) {
    router->held -= bytes;
}

/** The time that is left, as calls take it: nanoseconds, or HEM_FOREVER. */
int64_t hemi_router_left(const hemi_router *router);

/** Two questions that ranks answer as they begin: bits 0 and 1. */
typedef struct hemi_votes {
    uint32_t mine;
    uint32_t all;       /**< of any rank */
    uint32_t voters[2]; /**< the lowest rank that said yes, or UINT32_MAX */
} hemi_votes;

/**
 * Begin to route: all ranks have come, and agree on `call`, `fingerprint` and that `status` is HEM_OK
 * on all.
 *
 * Afterwards the router is ready. The shortest time limit of all ranks is its deadline, so that they
 * give up together; 0 is the world's. `votes` may be NULL. Collective.
 * @return HEM_OK, or the same error on all ranks.
 */
hem_status hemi_router_begin(hemi_router *router, hem_world *world, uint32_t call,
                             hem_status status, uint64_t fingerprint, int64_t timeout_ns,
                             hemi_votes *votes);

/** Put a record into the bag. `from` is this rank. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_bag_add(hemi_bag *bag, uint32_t from, uint32_t to, const void *data, size_t bytes);

/** The same, with data that the caller writes to `*data_p` before it adds another one. */
hem_status hemi_bag_make(hemi_bag *bag, uint32_t from, uint32_t to, size_t bytes, void **data_p);

/** The record after `record`, the first one for NULL; NULL at the end. */
const hemi_record *hemi_bag_next(const hemi_bag *bag, const hemi_record *record);

static inline const void *hemi_record_data(const hemi_record *record) {
    return record + 1;
}

/** Free what the bag holds: it is empty then. */
void hemi_bag_free(hemi_bag *bag);

/**
 * Make what hemi_route needs of channels, so that it cannot fail for want of that. Local; call it
 * before an agreement. @return HEM_OK, HEM_ERR_MEMORY.
 */
hem_status hemi_route_ready(hem_world *world);

/**
 * Bring all records to their ranks. Afterwards the bag holds what was sent here, ordered by sender,
 * and as each sender added them; lengths and ranks have been checked.
 *
 * Collective; blocks. A rank that cannot go on still takes part with an empty bag and says so in the
 * next agreement. On failure the bag is empty. The bag counts into `peak` while it is routed, not
 * into `held`.
 *
 * @return HEM_OK; HEM_ERR_MEMORY, HEM_ERR_PEER, HEM_ERR_TIMEOUT, HEM_ERR_REVOKED, HEM_ERR_MISMATCH;
 *         not the same on all ranks.
 */
hem_status hemi_route(hemi_router *router, hemi_bag *bag);

#endif
