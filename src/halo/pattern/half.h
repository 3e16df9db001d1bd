/* The owner's half of a link, on its way to the owner. */
#ifndef HEMI_HALO_PATTERN_HALF_H
#define HEMI_HALO_PATTERN_HALF_H

#include "halo/pattern/making.h"

/** Put what the owner of `want` needs into the bag, from rank `me`. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_half_pack(hemi_bag *bag, uint32_t me, const hemi_want *want);

/**
 * A link out of what a peer asks for. Nothing of it is believed: domain, positions and lengths are
 * checked against this rank's domains.
 *
 * @return HEM_OK, HEM_ERR_MEMORY, HEM_ERR_MISMATCH; then `link` holds nothing.
 */
hem_status hemi_half_unpack(hemi_making *making, const hemi_record *record, hemi_link *link);

#endif
