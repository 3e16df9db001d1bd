#ifndef BENCH_HALO_PACK_H
#define BENCH_HALO_PACK_H

/* Packing by hand, as well as a careful user of MPI writes it for such fields. */

#include "halo.h"

/* The bytes of so many points of a field in a message, rounded up so that what follows is aligned. */
size_t bench_packed_bytes(const struct bench_halo *halo, const struct bench_field *field,
                          size_t points);

/* All pieces of one field for or from a peer, one after the other. */
void bench_pack(const struct bench_halo *halo, const struct bench_field *field,
                const struct bench_peer *peer, void *to);
void bench_unpack(const struct bench_halo *halo, const struct bench_field *field,
                  const struct bench_peer *peer, const void *from);

/* What a periodic grid moves on its own rank, in all fields. */
void bench_copy_self(const struct bench_halo *halo);

#endif
