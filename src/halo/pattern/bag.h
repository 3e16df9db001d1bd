/* Inside of the router: bags that are cut, joined and put into order. */
#ifndef HEMI_HALO_PATTERN_BAG_H
#define HEMI_HALO_PATTERN_BAG_H

#include "halo/pattern/route.h"

/** Make room for `bytes` more, no more than that if `exact`. @return false: no memory. */
bool hemi_bag_reserve(hemi_bag *bag, size_t bytes, bool exact);

/** What a record of `bytes` takes in a bag. Does not overflow up to PTRDIFF_MAX. */
static inline size_t hemi_record_span(uint64_t bytes) {
    return sizeof(hemi_record) + (size_t)((bytes + 7) / 8 * 8);
}

/** Ranks from `low` on, up to `end` without it. */
typedef struct hemi_ranks {
    uint32_t low;
    uint32_t end;
} hemi_ranks;

static inline bool hemi_ranks_have(hemi_ranks ranks, uint32_t rank) {
    return rank >= ranks.low && rank < ranks.end;
}

/**
 * Whether `used` bytes from a peer are `records` records for `to` from `from`.
 *
 * Anything can stand there; only lengths that have been checked are followed.
 */
bool hemi_bag_check(const unsigned char *bytes, size_t used, uint64_t records, hemi_ranks to,
                    hemi_ranks from);

/**
 * Move those records that are not for `keep` into `out`, which is empty. Both keep their order.
 * @return false: no memory, and nothing was moved.
 */
bool hemi_bag_split(hemi_bag *bag, hemi_ranks keep, hemi_bag *out);

enum hemi_bag_key {
    HEMI_BAG_TO,
    HEMI_BAG_FROM
};

/**
 * Put records into the order of receivers or senders; equal ones stay as they are. `most_p` is
 * raised to the memory that this took besides the bag. @return false: no memory.
 */
bool hemi_bag_sort(hemi_bag *bag, enum hemi_bag_key key, uint64_t *most_p);

#endif
