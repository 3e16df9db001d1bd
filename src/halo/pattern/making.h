/*
 * A pattern in the making: what all kinds have in common.
 *
 * The receiving side decides. Each kind finds out which points of which owners its halos copy, and
 * says so with hemi_making_want. In the end the wants are sorted, those sides that the owners need
 * are routed to them, and both sides hold the same links in the same order.
 *
 * Failures are agreed at hemi_making_begin and hemi_making_finish; in between a rank that fails
 * remembers it and still takes part in every hemi_route, with what it has.
 */
#ifndef HEMI_HALO_PATTERN_MAKING_H
#define HEMI_HALO_PATTERN_MAKING_H

#include "halo/pattern/pattern.h"
#include "halo/pattern/route.h"

/** One link, as the receiver knows it. */
typedef struct hemi_want {
    uint32_t owner; /**< rank */
    uint32_t there; /**< the owner's domain */
    uint32_t here;  /**< this rank's domain */
    uint32_t sides;
    hemi_turn turn;
    hemi_points mine;   /**< where it goes; a list is taken over, freed with the making */
    hemi_points theirs; /**< what the owner sends, in the coordinates of its domain; the same */
} hemi_want;

typedef struct hemi_making {
    hem_pattern *pattern; /**< filled in as it goes: dims, extent, domains, holes ... */
    hemi_router router;
    hem_status status; /**< the first failure of this rank; its sentence is in `text` */
    char text[256];
    uint64_t began_ns;
    hemi_want *wants;
    size_t want_count;
    size_t want_room;
    hem_status doubt; /**< the first one, as `status`: see hemi_making_doubt */
    char doubt_text[256];
    uint32_t votes;     /**< of all ranks: hemi_making_poll */
    uint32_t voters[2]; /**< the lowest rank that voted for bit 0, for bit 1 */
} hemi_making;

/**
 * Begin. All ranks have come and agree on `call`, `fingerprint` and that `status` is HEM_OK on all.
 *
 * Collective. Otherwise returns the same error on all ranks, and there is nothing to free. Allocates
 * the pattern with `domain_count` zeroed domains. `timeout_ns` 0 is the world's. From then on the
 * smallest time limit of all ranks counts: so they give up at the same time, or none does.
 */
hem_status hemi_making_begin(hemi_making *making, hem_world *world, uint32_t call,
                             enum hemi_pattern_kind kind, size_t domain_count, uint64_t fingerprint,
                             hem_status status, int64_t timeout_ns);

/** The same; and `votes` of all ranks are put together: only the lowest two bits. */
hem_status hemi_making_poll(hemi_making *making, hem_world *world, uint32_t call,
                            enum hemi_pattern_kind kind, size_t domain_count, uint64_t fingerprint,
                            uint32_t votes, hem_status status, int64_t timeout_ns);

/** Remember a failure with this thread's last error sentence, unless there is one already. */
void hemi_making_fail(hemi_making *making, hem_status status);

/**
 * The same for what may come of another rank's failure, such as an answer that is missing. It counts
 * only if no rank has a failure of its own.
 */
void hemi_making_doubt(hemi_making *making, hem_status status);

/** Whether this rank has neither failed nor doubts. */
static inline bool hemi_making_is_well(const hemi_making *making) {
    return making->status == HEM_OK && making->doubt == HEM_OK;
}

/** Add a want. Lists are the making's from now on, also if it fails. Empty ones are dropped. */
void hemi_making_want(hemi_making *making, const hemi_want *want);

/**
 * Sort the wants, tell the owners, agree. Every position that an owner is asked for is checked there
 * against `points` of its domain, or its box.
 *
 * Collective. Frees everything but the pattern, and that, too, on failure.
 * @return HEM_OK, or the same error on all ranks.
 */
hem_status hemi_making_finish(hemi_making *making, hem_pattern **pattern_p);

/** The last part of it, for kinds that make their links themselves: neighbours, and agreement. */
hem_status hemi_making_conclude(hemi_making *making, hem_pattern **pattern_p);

/** hemi_route, whose failure is remembered. */
void hemi_making_route(hemi_making *making, hemi_bag *bag);

#endif
