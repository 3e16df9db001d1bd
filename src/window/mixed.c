#include "window/mixed.h"

#include "window/proxy.h"

static uint32_t at(const hem_window *window, enum hemd_mixed kind, uint32_t id) {
    return (uint32_t)kind * window->mixed_barriers + id;
}

const uint64_t *hemi_mixed_word(const hem_window *window, uint32_t rank, enum hemd_mixed kind,
                                uint32_t id) {
    return &hemi_device_host_slot(window, rank, window->signals + at(window, kind, id))->kernel;
}

bool hemi_mixed_heard(const hem_window *window, uint32_t rank, enum hemd_mixed kind, uint32_t id,
                      uint64_t epoch) {
    /* Pairs with the fence before a kernel's stores at system scope, and with the release of a proxy. */
    return hemi_load64_acquire(hemi_mixed_word(window, rank, kind, id)) >= epoch;
}

uint64_t hemi_mixed_own(const hem_window *window, uint32_t rank, enum hemd_mixed kind, uint32_t id,
                        uint64_t arrived) {
    uint64_t kernels = hemi_load64_acquire(hemi_mixed_word(window, rank, kind, id));
    return kernels > arrived ? kernels : arrived;
}

hem_status hemi_mixed_check(const hem_window *window, uint32_t rank) {
    return hemi_device_check_reach(&window->device->reach[rank]);
}

hem_status hemi_mixed_tell(hem_window *window, uint32_t rank, enum hemd_mixed kind, uint32_t id,
                           uint64_t epoch) {
    const bool own = kind == HEMD_MIXED_OWN;
    hemi_device_reach *reach = &window->device->reach[own ? window->rank : rank];
    if (reach->proxied) {
        hem_status status =
            hemi_proxy_arrive(reach, 2 * window->barriers + at(window, kind, id), epoch);
        /* Who is gone need not be told, and whether it had come is the wait's to find out. */
        return status == HEM_ERR_PEER ? HEM_OK : status;
    }
    return hemi_device_set_slot(window, reach, own ? rank : window->rank,
                                window->device_signals + at(window, kind, id), epoch);
}

hem_status hemi_mixed_tell_all(hem_window *window, uint32_t id, uint64_t epoch) {
    hem_status status = hemi_mixed_tell(window, window->rank, HEMD_MIXED_ALL, id, epoch);
    for (uint32_t r = 0; r < window->size; r++) {
        if (r == window->rank)
            continue;
        hem_status here = hemi_mixed_tell(window, r, HEMD_MIXED_ALL, id, epoch);
        status = status == HEM_OK ? here : status;
    }
    return status;
}
