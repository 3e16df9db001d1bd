/*
 * Whether the CPU may touch the caller's memory, for calls that the host carries out. Where no device was
 * ever asked for this is one load and a branch.
 */
#ifndef HEMI_DEVICE_TOUCH_H
#define HEMI_DEVICE_TOUCH_H

#include "core/world.h"

/** Whether a device was asked for on this rank, so that hemi_device_check_host is worth its call. */
static inline bool hemi_device_is_asked_for(const hemi_root *root) {
    return __atomic_load_n(&root->device, __ATOMIC_RELAXED) != NULL;
}

/**
 * Whether the CPU reaches `bytes` bytes at `data`, as far as the device knows. Pages that it did reach
 * are remembered, so that asking again is cheap; memory that was freed since, and is a device's now, may
 * then be missed. Does not wait. @return HEM_OK; HEM_ERR_UNSUPPORTED, and `instead` is recorded.
 */
hem_status hemi_device_check_host(const hemi_root *root, const void *data, size_t bytes,
                                  const char *call, const char *instead);

#endif
