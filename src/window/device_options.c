/* What is asked of a window in device memory. */
#include "window/device.h"

#include <stdlib.h>

/* Signal ids that are for CPUs, if nothing is said. */
#define CPU_SIGNALS 4

static hem_status check_host(const hem_window_options *o) {
    if (o->device_signals == 0 && o->device_peers == NULL && o->device_peer_count == 0 &&
        o->proxy_peers == NULL && o->proxy_peer_count == 0 && o->proxy_timeout_ns == 0 &&
        o->mixed_barriers == 0)
        return HEM_OK;
    return hemi_fail(HEM_ERR_ARG, "device_signals, device_peers, proxy_peers, proxy_timeout_ns and "
                                  "mixed_barriers are of windows in device memory");
}

static hem_status check_ids(hem_window_options *o) {
    if (o->device_signals > o->signals)
        return hemi_fail(HEM_ERR_RANGE, "%u device_signals, but the window has %u signals",
                         o->device_signals, o->signals);
    if (o->mixed_barriers > o->barriers)
        return hemi_fail(HEM_ERR_RANGE, "%u mixed_barriers, but the window has %u barriers",
                         o->mixed_barriers, o->barriers);
    if (o->device_signals == 0 && o->signals > CPU_SIGNALS)
        o->device_signals = o->signals - CPU_SIGNALS;
    return HEM_OK;
}

static hem_status check_list(const hem_window *window, const int *list, size_t count,
                             const char *name) {
    if (list == NULL && count != 0)
        return hemi_fail(HEM_ERR_ARG, "%zu %s, but the list is NULL", count, name);
    for (size_t i = 0; i < count; i++)
        if (list[i] < 0 || (uint32_t)list[i] >= window->size)
            return hemi_fail(HEM_ERR_RANGE, "%s: rank %d is not one of 0 to %u", name, list[i],
                             window->size - 1);
    return HEM_OK;
}

static hem_status read_peers(hem_window *window, const hem_window_options *o) {
    hemi_window_device *d = window->device;
    hem_status status = check_list(window, o->device_peers, o->device_peer_count, "device_peers");
    if (status == HEM_OK)
        status = check_list(window, o->proxy_peers, o->proxy_peer_count, "proxy_peers");
    if (status != HEM_OK)
        return status;
    d->listed = o->device_peers != NULL;
    for (uint32_t r = 0; r < window->size; r++) {
        d->reach[r].rank = r;
        d->reach[r].window = window;
        d->reach[r].wanted = !d->listed || r == window->rank;
    }
    for (size_t i = 0; i < o->device_peer_count; i++)
        d->reach[o->device_peers[i]].wanted = true;
    for (size_t i = 0; i < o->proxy_peer_count; i++) {
        hemi_device_reach *reach = &d->reach[o->proxy_peers[i]];
        if (reach->rank == window->rank)
            return hemi_fail(HEM_ERR_ARG, "proxy_peers: rank %u is this one", reach->rank);
        reach->proxied = true;
        reach->wanted = false;
    }
    return HEM_OK;
}

hem_status hemi_device_read_options(hem_window *window, hem_window_options *o) {
    if (o->kind == HEM_MEMORY_HOST)
        return check_host(o);
    if (o->kind != HEM_MEMORY_DEVICE)
        return hemi_fail(HEM_ERR_ARG, "%d is no kind of memory", (int)o->kind);
    if (o->proxy_timeout_ns < HEM_FOREVER)
        return hemi_fail(HEM_ERR_ARG, "proxy_timeout_ns: %lld is no time",
                         (long long)o->proxy_timeout_ns);
    hem_status status = check_ids(o);
    if (status != HEM_OK)
        return status;
    hemi_window_device *d = calloc(1, sizeof *d + window->size * sizeof d->reach[0]);
    if (d == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a window of %u ranks", window->size);
    window->device = d;
    d->adopted = o->memory != NULL;
    d->memory = o->memory;
    d->proxy_limit_ns = o->proxy_timeout_ns == 0 ? HEM_FOREVER : o->proxy_timeout_ns;
    window->device_signals = o->device_signals;
    window->mixed_barriers = o->mixed_barriers;
    return read_peers(window, o);
}
