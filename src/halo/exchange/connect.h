/* The two rounds in which an exchange is connected: connect.c. */
#ifndef HEMI_HALO_EXCHANGE_CONNECT_H
#define HEMI_HALO_EXCHANGE_CONNECT_H

#include "halo/exchange/exchange.h"
#include "halo/pattern/route.h"

/** What receivers tell: where messages land, and which parts they expect. hello.c */
hem_status hemi_hello_say(const hem_exchange *x, hemi_bag *bag);
hem_status hemi_hello_hear(hem_exchange *x, const hemi_bag *bag);

/** What owners tell: the order of axes, and what is left in the field. answer.c */
hem_status hemi_answer_say(hem_exchange *x, hemi_bag *bag);
hem_status hemi_answer_hear(hem_exchange *x, const hemi_bag *bag);

/** The lane with a neighbour, or NULL. */
hemi_halo_lane *hemi_lane_with(const hem_exchange *x, uint32_t peer);

/** Take what a neighbour says. */
typedef hem_status (*hemi_hear_fn)(hem_exchange *x, hemi_halo_lane *lane,
                                   const hemi_record *record);
/** Give each neighbour's record to `hear`, with its lane. All must have `told` something. hello.c */
hem_status hemi_connect_hear(hem_exchange *x, const hemi_bag *bag, hemi_hear_fn hear,
                             const char *told);

/** Room that all parts take in a message. */
uint64_t hemi_parts_room(const hemi_parts *parts);

/** Bytes of a landing buffer of a lane in host memory, the same on both sides. */
uint64_t hemi_lane_landing(const hem_exchange *x, const hemi_halo_lane *lane);

/** Record that two ranks do not mean the same part. Either may be NULL: it has no such part. */
hem_status hemi_part_differs(const hem_exchange *x, uint32_t peer, const hemi_part_key *ours,
                             const hemi_part_key *theirs);

/** Record that a peer says what cannot be, or that there is no memory. */
hem_status hemi_connect_nonsense(uint32_t peer);
hem_status hemi_connect_no_memory(void);

#endif
