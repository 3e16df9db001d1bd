/* Using a window in device memory from the CPU: copies, signals to kernels, what kernels signalled. */
#include "window/proxy.h"

#include <hem/cuda.h>
#include <stddef.h>
#include <stdlib.h>

static hem_status fail_unreached(const hemi_device_reach *reach) {
    return hemi_fail(HEM_ERR_UNSUPPORTED,
                     "the device memory of rank %u is not mapped here: it was not named in "
                     "device_peers, or this device cannot reach it",
                     reach->rank);
}

hem_status hemi_device_check_reach(const hemi_device_reach *reach) {
    return reach->control == NULL && !reach->proxied ? fail_unreached(reach) : HEM_OK;
}

static hemi_device_reach *reach_of(const hemi_region *region) {
    return (hemi_device_reach *)(uintptr_t)region->remote;
}

static hem_status put(const hemi_region *region, uint64_t offset, const void *src, size_t n) {
    hemi_device_reach *reach = reach_of(region);
    if (reach->proxied)
        return hemi_proxy_put(reach, offset, src, n);
    if (reach->data == NULL)
        return fail_unreached(reach);
    return reach->device->module->memory->copy(reach->device->context, reach->data + offset, src,
                                               n);
}

static hem_status get(const hemi_region *region, uint64_t offset, void *dst, size_t n) {
    const hemi_device_reach *reach = reach_of(region);
    if (reach->proxied)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "the device memory of rank %u is reached through its host: it can be put "
                         "to, but not read from here",
                         reach->rank);
    if (reach->data == NULL)
        return fail_unreached(reach);
    return reach->device->module->memory->copy(reach->device->context, dst, reach->data + offset,
                                               n);
}

/* Not one that is chosen for a rank: it has the copies only. */
static const hemi_transport copies = {.name = "device", .put = put, .get = get};

void hemi_device_region(const hem_window *window, uint32_t rank, hemi_region *region_p) {
    const hemi_device_reach *reach = &window->device->reach[rank];
    hemi_region region = {
        .transport = &copies,
        .bytes = reach->bytes,
        .remote = (uintptr_t)reach,
        .root_rank = window->world->members[rank],
        .route = HEM_ROUTE_COPY | HEM_ROUTE_DEVICE,
    };
    *region_p = region;
}

/* A word is stored in one piece. Pairs with the fence at the end of a kernel's wait. */
hem_status hemi_device_set_slot(const hem_window *window, const hemi_device_reach *reach,
                                uint32_t row, uint32_t at, uint64_t value) {
    const hemi_window_device *d = window->device;
    unsigned char *word = reach->control + row * d->layout.row_bytes + at * sizeof(hemd_slot) +
                          offsetof(hemd_slot, cpu);
    return d->device->module->memory->copy(d->device->context, word, &value, sizeof value);
}

hem_status hemi_device_signal(hem_window *window, hemi_peer *peer, uint32_t id, int op,
                              uint64_t value) {
    hemi_device_reach *reach = &window->device->reach[peer->rank];
    uint64_t *shadow = &peer->shadows[id].value;
    hem_status status = hemi_device_check_reach(reach);
    if (status != HEM_OK)
        return status;
    if ((op & HEM_SIGNAL_ADD) != 0)
        value += hemi_load64_relaxed(shadow);
    /* Earlier puts were complete before this begins. */
    status = reach->proxied ? hemi_proxy_signal(reach, id, value)
                            : hemi_device_set_slot(window, reach, window->rank, id, value);
    if (status == HEM_OK)
        hemi_store64_relaxed(shadow, value);
    return status;
}

hemd_slot *hemi_device_host_slot(const hem_window *window, uint32_t rank, uint32_t id) {
    const hemi_window_device *d = window->device;
    unsigned char *block = hemi_arena_at(&window->root->arena, d->reach[window->rank].slots.offset);
    hemd_slot *row = (hemd_slot *)(void *)(block + rank * d->layout.host_row_bytes);
    return &row[id - window->device_signals];
}

uint64_t hemi_device_seen(const hem_window *window, uint32_t rank, uint32_t id) {
    /* Pairs with the fence before a kernel's store at system scope, and with that of a proxy. */
    return hemi_load64_acquire(&hemi_device_host_slot(window, rank, id)->kernel);
}

void *hemi_window_device_address(const hem_window *window, uint32_t rank) {
    if (window->device == NULL || rank >= window->size)
        return NULL;
    return window->device->reach[rank].data;
}

hemi_device *hemi_window_device_of(const hem_window *window) {
    return window->device == NULL ? NULL : window->device->device;
}

hem_status hem_window_device(hem_window *window, hem_dev_window *dev_p) {
    hem_status status = hemi_window_check(window, "hem_window_device");
    if (status == HEM_OK && dev_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_window_device: dev_p is NULL");
    if (status == HEM_OK && window->device == NULL)
        status = hemi_fail(HEM_ERR_UNSUPPORTED,
                           "hem_window_device: the window is in host memory; make it with kind = "
                           "HEM_MEMORY_DEVICE");
    if (status == HEM_OK)
        *dev_p = window->device->dev;
    return status;
}

hem_status hemi_device_window_create(hem_world *world, uint32_t call, uint64_t bytes,
                                     const bool *peers_wanted, hem_window **window_p) {
    int none = 0;
    int *list = NULL;
    hem_window_options options = {
        .struct_size = sizeof options, .bytes = bytes, .kind = HEM_MEMORY_DEVICE};
    if (peers_wanted != NULL) {
        list = calloc(world->size, sizeof *list);
        options.device_peers = list == NULL ? &none : list;
    }
    for (uint32_t r = 0; list != NULL && r < world->size; r++)
        if (peers_wanted[r])
            list[options.device_peer_count++] = (int)r;
    /* Where there is no memory even for this, the ranks are told together. */
    if (peers_wanted != NULL && list == NULL)
        options.bytes = SIZE_MAX;
    hem_status status = hemi_window_create(world, call, &options, window_p);
    free(list);
    return status;
}
