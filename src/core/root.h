/* A rank's hold on an arena, shared by all its worlds in it. */
#ifndef HEMI_CORE_ROOT_H
#define HEMI_CORE_ROOT_H

#include "core/world.h"

/**
 * Attach as `rank` to a mapped arena, which the root owns from then on, also on failure.
 *
 * Prepares the heap, registers for membarrier, sets the spin limits, marks the rank ALIVE.
 */
hem_status hemi_root_attach(hemi_arena *arena, const hemi_platform *platform, uint32_t rank,
                            hemi_root **root_p);

void hemi_root_hold(hemi_root *root);

/** Drop a reference; the last one stops the monitor and unmaps. */
void hemi_root_drop(hemi_root *root);

/** Stop the progress threads of all worlds of a rank that has ended. */
void hemi_root_stop_workers(hemi_root *root);

/** Free all worlds that a rank which has ended left open, with everything in them. */
void hemi_root_bury(hemi_root *root);

/**
 * The world of all ranks of the arena, made over the root team.
 *
 * Every rank of the arena calls it; it agrees on limits for waiting and on fences, then splits a
 * fresh team off, so that each opening has its own. `open_ns` limits each step of that; the world's
 * own limit is `timeout_ns`.
 */
hem_status hemi_root_open_world(hemi_root *root, int64_t open_ns, int64_t timeout_ns,
                                hem_world **world_p);

#endif
