/* The kinds of groups that make a call, for tests that go through all of them. */
#ifndef HEM_TESTS_DEVICE_GROUP_KIT_H
#define HEM_TESTS_DEVICE_GROUP_KIT_H

#include "device.h"

enum {
    GROUP_KIT_THREAD,
    GROUP_KIT_WARP,
    GROUP_KIT_WARPS, /**< the second and the third of the block */
    GROUP_KIT_BLOCK,
    GROUP_KITS
};

/** Warps of a block that has all of them. */
#define GROUP_KIT_WIDTH 3

HEM_DEV hem_group group_kit_of(uint32_t kind) {
    return kind == GROUP_KIT_THREAD  ? hem_thread()
           : kind == GROUP_KIT_WARP  ? hem_warp()
           : kind == GROUP_KIT_WARPS ? hem_warps(1, 2, 5)
                                     : hem_block();
}

/** Whether the calling thread is one of the group. */
HEM_DEV bool group_kit_takes_part(uint32_t kind) {
    if (kind == GROUP_KIT_WARPS)
        return hem_warp_index() == 1 || hem_warp_index() == 2;
    return kind == GROUP_KIT_BLOCK ||
           (hem_warp_index() == 0 && (kind == GROUP_KIT_WARP || hem_block().rank == 0));
}

#endif
