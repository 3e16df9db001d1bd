/*
 * Which form the library has chosen for a collective on device buffers, for tests that are about one of them:
 * what a form is chosen by differs between a GPU and the stand-in, and may change.
 */
#ifndef HEM_TESTS_DEVICE_COLL_FORM_H
#define HEM_TESTS_DEVICE_COLL_FORM_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether it goes in units of which each thread has several of a rank (src/device/kernels/coll_deep.h). */
bool coll_form_is_deep(const hem_op *op);
/** Whether it is too long for units: between barriers, or by multicast where that is on. */
bool coll_form_is_long(const hem_op *op);

#ifdef __cplusplus
}
#endif

/** Words of a rank with which it is deep, on a GPU and on the stand-in, with `blocks` of at most 3. A GPU has
 *  512 threads in a block and takes units for 8 words of all ranks per thread if it combines, 12 if it moves.
 *  So sums of 8 ranks are never deep there. */
static inline size_t coll_form_deep_words(int size, uint32_t blocks, bool combines) {
    return (size_t)blocks * (combines ? 4000 : 6000) / (size_t)size;
}

/** It is deep, where that can be. */
static inline void coll_form_check_deep(const hem_op *op, int size, bool combines) {
    CHECK(coll_form_is_deep(op) || (combines && size > 7 && !device_stands_in()));
}

#endif
