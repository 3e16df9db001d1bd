/* What the tests of bad input to patterns and exchanges share. */
#ifndef HEM_TESTS_RANK_HALO_BAD_H
#define HEM_TESTS_RANK_HALO_BAD_H

#include "halo_kit.h"

/** Sets of errors, as bits. */
#define HALO_ERR(status) (1u << -(status))
#define HALO_ARG         HALO_ERR(HEM_ERR_ARG)
#define HALO_RANGE       HALO_ERR(HEM_ERR_RANGE)
#define HALO_MISMATCH    HALO_ERR(HEM_ERR_MISMATCH)
#define HALO_LIMIT       HALO_ERR(HEM_ERR_LIMIT)
#define HALO_MEMORY      HALO_ERR(HEM_ERR_MEMORY)
#define HALO_UNSUPPORTED HALO_ERR(HEM_ERR_UNSUPPORTED)

/** `status` is one of `allowed`, the same on all ranks, with a sentence everywhere. Collective. */
void halo_refused(hem_world *world, const char *what, hem_status status, unsigned allowed);

/** A ring of boxes of four points per rank is exchanged, which must work. Collective. */
void halo_works(hem_world *world);

/** A grid of one dimension with a box of four points on every rank, periodic, halo 1. */
halo_grid halo_ring(int ranks);

#endif
