/* Calls that all ranks make together, and in which records are routed. */
#ifndef HEMI_HALO_PATTERN_JOIN_H
#define HEMI_HALO_PATTERN_JOIN_H

#include "core/flight.h"
#include "halo/pattern/pattern.h"
#include "halo/pattern/route.h"

/**
 * Begin. All ranks have come and agree on `call`, the pattern, and that `status` is HEM_OK on all.
 *
 * Afterwards the router is ready, and the shortest time limit of all ranks is its deadline. A
 * `timeout_ns` of 0 is the world's. Collective. @return HEM_OK, or the same error on all ranks; a
 * pattern whose world is closed is HEM_ERR_CLOSED here alone.
 */
hem_status hemi_join_begin(hemi_router *router, const hem_pattern *pattern, uint32_t call,
                           hem_status status, int64_t timeout_ns);

/** End: agree on how it went. Collective. @return HEM_OK, or the same error on all ranks. */
hem_status hemi_join_end(hemi_router *router, const hem_pattern *pattern, hem_status status);

#endif
