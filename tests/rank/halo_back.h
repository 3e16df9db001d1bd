/*
 * The global reference of reverse runs: what owners get of all halos that are copies of their points.
 *
 * Halo values depend on the point, the rank and the domain, so that it does not matter which of
 * several copies in one domain comes first.
 */
#ifndef HEM_TESTS_RANK_HALO_BACK_H
#define HEM_TESTS_RANK_HALO_BACK_H

#include "halo_kit.h"

/** A copy of a point somewhere. */
typedef struct halo_copy {
    int64_t key;
    int rank;
    size_t domain;
    const halo_cell *cell;
} halo_copy;

typedef struct halo_copies {
    halo_copy *all; /**< ordered by point, rank and domain */
    size_t count;
    size_t most; /**< copies of one point */
} halo_copies;

halo_copies halo_copies_of(const halo_case *c);
/** Those of one point. */
const halo_copy *halo_copies_find(const halo_copies *copies, int64_t key, size_t *count_p);

/** Poison, then numbers into owned cells and halos. All fields must be of the same case. */
void halo_back_fill(halo_set *s, uint64_t round);
/** What a reverse run of such fields must leave. */
void halo_back_expect(halo_set *s, const halo_copies *copies, const hem_exchange_how *how,
                      uint64_t round);

#endif
