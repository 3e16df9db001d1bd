/*
 * Inside of a pattern: links.
 *
 * A link is a set of points that one domain owns and another has in its halo, in an order that both
 * sides share. Links between two ranks are in the same order on both: the k-th link that a rank
 * sends to a peer is the k-th that the peer receives from it. Links of a rank to itself stand in both
 * lists, too. So an exchange needs nothing but the two lists.
 *
 * A pattern is immutable once it is made, and counted: the caller's handle and each exchange hold a
 * reference. It has no shared memory and does not need its world any more, but for validate and
 * draw.
 */
#ifndef HEMI_HALO_PATTERN_PATTERN_H
#define HEMI_HALO_PATTERN_PATTERN_H

#include "core/world.h"

#include <hem/pattern.h>

enum hemi_pattern_kind {
    HEMI_PATTERN_GRID = 1,
    HEMI_PATTERN_MESH,
    HEMI_PATTERN_SPHERE,
    HEMI_PATTERN_EXPLICIT
};

/**
 * Some points of a domain, in order.
 *
 * A box: for k in 0 .. dims - 1, nested, the last innermost: dimension axis[k] goes from start[k] on
 * by step[k] (1 or -1), count[k] points. Positions are relative to the first point that the domain
 * owns, so those in a halo may be negative. Or a list: positions in the domain's storage, from 0.
 */
typedef struct hemi_points {
    uint64_t total; /**< number of points */
    int64_t *list;  /**< NULL: a box */
    int64_t start[HEM_DIMS];
    int64_t count[HEM_DIMS];
    uint8_t axis[HEM_DIMS];
    int8_t step[HEM_DIMS];
} hemi_points;

/** What the components x and y of a vector become on the way: new = sign x old[from]. */
typedef struct hemi_turn {
    uint8_t from[2];
    int8_t sign[2];
} hemi_turn;

typedef struct hemi_link {
    uint32_t peer;
    uint32_t here;  /**< domain of this rank */
    uint32_t there; /**< domain of the peer */
    uint32_t sides; /**< of the receiving domain: HEM_SIDE_ bits; 0 where there are none */
    hemi_turn turn; /**< what the receiver needs; {{0, 1}, {1, 1}} unless the axes turn */
    hemi_points points;
} hemi_link;

typedef struct hemi_links {
    hemi_link *links; /**< ordered by peer */
    size_t count;
} hemi_links;

/** One of this rank's domains. */
typedef struct hemi_domain {
    int64_t id;
    int panel;            /**< of the sphere */
    hem_box box;          /**< grids and the sphere */
    uint64_t points;      /**< that it stores, its halo included */
    uint64_t halo_points; /**< of them */
} hemi_domain;

struct hem_pattern {
    uint32_t refs; /**< atomic */
    uint32_t kind;
    hem_world *world; /**< NULL once it is closed */
    hemi_child child; /**< only to hear of that */
    uint64_t id;      /**< the same on all ranks, different for each pattern of a world */
    uint64_t world_id;
    uint32_t rank;
    int dims;
    int64_t extent[HEM_DIMS];
    bool periodic[HEM_DIMS];
    int64_t halo_low[HEM_DIMS];
    int64_t halo_high[HEM_DIMS];
    hemi_domain *domains;
    size_t domain_count;
    hemi_links sends;
    hemi_links recvs;
    hem_neighbour *neighbours; /**< ordered by rank, without this one */
    size_t neighbour_count;
    uint64_t holes;
    uint64_t setup_messages;
    uint64_t setup_bytes;
    uint64_t setup_peak_bytes;
    uint64_t setup_ns;
};

/** Whether its domains are boxes, and its links, too. */
static inline bool hemi_pattern_has_boxes(const hem_pattern *pattern) {
    return pattern->kind == HEMI_PATTERN_GRID || pattern->kind == HEMI_PATTERN_SPHERE;
}

/** One more reference. */
static inline void hemi_pattern_hold(const hem_pattern *pattern) {
    hemi_add32_acq_rel((uint32_t *)(uintptr_t)&pattern->refs, 1);
}

/** One less; the last one frees it. */
void hemi_pattern_drop(const hem_pattern *pattern);

/** The world that a finished pattern belongs to: it will hear when that closes. */
void hemi_pattern_adopt(hem_pattern *pattern, hem_world *world);

/** Fill in the neighbours from the links. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_pattern_meet(hem_pattern *pattern);

/** Points of `links` whose peer is this rank, or with `others`, those of all others. */
uint64_t hemi_links_points(const hemi_links *links, uint32_t rank, bool others);

/** Free the links and their lists. */
void hemi_links_free(hemi_links *links);

#endif
