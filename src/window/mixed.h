/*
 * Mixed barriers from the CPU's side: hem/device/mixed.h says who writes which word. What CPUs tell each other
 * is in barrier.c; here is what they tell kernels, and what kernels have told them.
 *
 * Calls take the kind of entry: HEMD_MIXED_ALL into a barrier of all, where `rank` is whose entry it is, or who
 * is told; HEMD_MIXED_PAIR into one with `rank`; HEMD_MIXED_OWN this rank's into that.
 */
#ifndef HEMI_WINDOW_MIXED_H
#define HEMI_WINDOW_MIXED_H

#include "window/window.h"

#include <hem/device/types.h>

static inline bool hemi_is_mixed(const hem_window *window, uint32_t id) {
    return __builtin_expect(id < window->mixed_barriers, 0);
}

/** How often kernels have entered, where this CPU looks. */
const uint64_t *hemi_mixed_word(const hem_window *window, uint32_t rank, enum hemd_mixed kind,
                                uint32_t id);

/** Whether kernels of `rank` have entered as often as `epoch`. */
bool hemi_mixed_heard(const hem_window *window, uint32_t rank, enum hemd_mixed kind, uint32_t id,
                      uint64_t epoch);

/** How often this rank has entered: `arrived` times, as far as its CPU knows, or more by kernels. */
uint64_t hemi_mixed_own(const hem_window *window, uint32_t rank, enum hemd_mixed kind, uint32_t id,
                        uint64_t arrived);

/** Whether kernels of `rank` can be told. @return HEM_OK, HEM_ERR_UNSUPPORTED. */
hem_status hemi_mixed_check(const hem_window *window, uint32_t rank);

/** Tell kernels of `rank`, or one's own, that this CPU has entered as often as `epoch`. May be told again.
 *  @return that of a copy, or of an order to a host (window/proxy.h). */
hem_status hemi_mixed_tell(hem_window *window, uint32_t rank, enum hemd_mixed kind, uint32_t id,
                           uint64_t epoch);

/** Tell kernels of all ranks, one's own first. Tries all, returns the first error. */
hem_status hemi_mixed_tell_all(hem_window *window, uint32_t id, uint64_t epoch);

#endif
