/* The message of a run to one neighbour, and from it. */
#ifndef HEMI_HALO_EXCHANGE_MESSAGE_H
#define HEMI_HALO_EXCHANGE_MESSAGE_H

#include "halo/exchange/exchange.h"

/** Whether the lane is between domains of this rank. */
static inline bool hemi_lane_is_own(const hem_exchange *x, const hemi_halo_lane *lane) {
    return lane->way.peer == x->world->rank;
}

/** Pack it into the neighbour's memory and tell. It may be packed. */
void hemi_message_pack(hem_exchange *x, hemi_halo_lane *lane);

/** It is here: use it. @return HEM_OK; HEM_ERR_MISMATCH, HEM_ERR_REVOKED, HEM_ERR_PEER. */
hem_status hemi_message_take(hem_exchange *x, hemi_halo_lane *lane);

/** What there is between domains of this rank. */
void hemi_message_copy_own(hem_exchange *x, hemi_halo_lane *lane);

/** Whether taking it copies from the neighbour's fields. */
bool hemi_message_pulls(const hem_exchange *x, const hemi_halo_lane *lane);

/** Record that the neighbour has given up, or, if one of them is dead, that. */
hem_status hemi_exchange_fail_gone(const hem_exchange *x, const hemi_halo_lane *lane);

#endif
