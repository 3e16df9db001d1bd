/* What the tests of windows in device memory share. */
#ifndef HEM_TESTS_DEVICE_WINDOW_KIT_H
#define HEM_TESTS_DEVICE_WINDOW_KIT_H

#include "device.h"

#include <hem/device/window.h>

static inline hem_window_options window_kit_options(size_t bytes) {
    hem_window_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    return options;
}

static inline hem_window *window_kit_create(hem_world *world, const hem_window_options *options) {
    hem_window *window = NULL;
    CHECK_OK(hem_window_create(world, options, &window));
    return window;
}

static inline hem_dev_window window_kit_dev(hem_window *window) {
    hem_dev_window dev;
    CHECK_OK(hem_window_device(window, &dev));
    return dev;
}

/** A wait of a kernel, and how it ended. */
typedef struct window_kit_wait {
    hem_dev_window w;
    int32_t peer; /**< -1: the sum */
    uint32_t id;
    uint64_t value;
    int64_t timeout_ns;
    uint64_t *status_p; /**< -status, in device memory */
} window_kit_wait;

/** What a kernel that has not ended yet would leave. */
#define WINDOW_KIT_NONE 999u

HEM_DEV hem_status window_kit_wait_here(const window_kit_wait *wait, hem_group group) {
    return wait->peer < 0 ? hem_dev_wait_signal(wait->w, group, wait->id, HEM_GE, wait->value,
                                                wait->timeout_ns)
                          : hem_dev_wait_signal_from(wait->w, group, wait->peer, wait->id, HEM_GE,
                                                     wait->value, wait->timeout_ns);
}

#endif
