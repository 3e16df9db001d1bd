/* The ways in which a world comes to be. Each ends in hemi_root_open_world. */
#ifndef HEMI_CORE_BOOTSTRAP_BOOTSTRAP_H
#define HEMI_CORE_BOOTSTRAP_BOOTSTRAP_H

#include "core/bootstrap/control.h"
#include "core/world.h"

/** A world of one. */
hem_status hemi_open_alone(const hem_world_options *options, hem_world **world_p);

/** Under `hem run`. */
hem_status hemi_open_launched(const hemi_launch_info *info, int64_t timeout_ns,
                              hem_world **world_p);

/** Over the caller's all-gather. */
hem_status hemi_open_callback(const hem_world_options *options, hem_world **world_p);

/** hem_world_threads on another platform: what simulations start from. */
hem_status hemi_threads_run(const hemi_platform *platform, int n, hem_rank_fn fn, void *arg,
                            const hem_world_options *options);

/** The time limit that options and HEM_OPEN_TIMEOUT make. */
hem_status hemi_open_timeout(const hem_world_options *options, int64_t *timeout_p);

#endif
