/* Making and giving up what a window in device memory has besides its control block. */
#include "window/proxy.h"

#include "core/team.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* More than any device has, and far from overflowing when something is added. */
#define BYTES_MAX (1ull << 56)

static uint64_t to_line(uint64_t bytes) {
    return (bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

/* Where the control block begins in what a rank with `bytes` bytes has allocated. */
static uint64_t control_offset(const hemi_window_device *d, uint64_t bytes) {
    return d->adopted ? 0 : to_line(bytes);
}

static hem_status adopt(hem_window *window, hemi_device_reach *mine) {
    hemi_window_device *d = window->device;
    mine->data = d->memory;
    if (window->bytes == 0)
        return HEM_OK;
    return d->device->module->memory->adopt(d->device->context, d->memory, window->bytes,
                                            &mine->own_data);
}

static hem_status allocate_device(hem_window *window, hemi_device_reach *mine) {
    hemi_window_device *d = window->device;
    if (window->bytes > BYTES_MAX)
        return hemi_fail(HEM_ERR_MEMORY, "%" PRIu64 " bytes are more than any device has",
                         window->bytes);
    hem_status status = d->adopted ? adopt(window, mine) : HEM_OK;
    uint64_t offset = control_offset(d, window->bytes);
    if (status == HEM_OK)
        status = d->device->module->memory->alloc(d->device->context, offset + d->layout.bytes,
                                                  &mine->map);
    if (status != HEM_OK)
        return status;
    mine->control = (unsigned char *)mine->map.address + offset;
    if (!d->adopted)
        mine->data = mine->map.address;
    window->memory = mine->data;
    return HEM_OK;
}

hem_status hemi_device_allocate(hem_window *window) {
    hemi_window_device *d = window->device;
    hemi_root *root = window->root;
    hemi_device_reach *mine = &d->reach[window->rank];
    window->memory = NULL;
    hemi_device_lay_out(&d->layout, window->size, window->signals, window->device_signals,
                        window->barriers, window->counters, window->mixed_barriers);
    hem_status status = hemi_device_get(root, &d->device);
    if (status == HEM_OK && d->layout.host_bytes > 0)
        status = hemi_device_pinned_alloc(root, d->layout.host_bytes, &mine->slots);
    return status == HEM_OK ? allocate_device(window, mine) : status;
}

void hemi_device_say(const hem_window *window, hemi_device_place *place_p) {
    const hemi_window_device *d = window->device;
    place_p->bytes = window->bytes;
    place_p->slots = d->reach[window->rank].slots;
    memcpy(place_p->uuid, d->device->facts.uuid, sizeof place_p->uuid);
}

hem_status hemi_device_hear(hem_window *window, uint32_t rank, const hemi_device_place *place) {
    hemi_window_device *d = window->device;
    bool slots =
        d->layout.host_bytes == 0 ||
        (place->slots.bytes == d->layout.host_bytes &&
         hemi_device_pinned_fits(window->root, window->world->members[rank], &place->slots));
    if (!slots || place->bytes > BYTES_MAX)
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u named a window outside of its memory", rank);
    hemi_device_reach *reach = &d->reach[rank];
    reach->device = d->device;
    reach->bytes = place->bytes;
    reach->slots = place->slots;
    reach->near = memcmp(place->uuid, d->device->facts.uuid, sizeof place->uuid) == 0;
    return HEM_OK;
}

/* Share one piece of each rank; maps of peers go to `own_data` or `map` of their reach. */
static hem_status share(hem_window *window, uint32_t call, hem_status status, bool own_data) {
    hemi_window_device *d = window->device;
    hemi_device_memory *maps = calloc(window->size, sizeof *maps);
    bool *wants = calloc(window->size, sizeof *wants);
    if (status == HEM_OK && (maps == NULL || wants == NULL))
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for maps of %u ranks", window->size);
    for (uint32_t r = 0; wants != NULL && r < window->size; r++)
        wants[r] = d->reach[r].wanted;
    const hemi_device_reach *mine = &d->reach[window->rank];
    const hemi_device_memory *shown = own_data ? &mine->own_data : &mine->map;
    status = hemi_device_share(window->world, call, status, shown->address == NULL ? NULL : shown,
                               wants, maps, window->timeout_ns);
    for (uint32_t r = 0; status == HEM_OK && r < window->size; r++)
        if (r != window->rank && own_data)
            d->reach[r].own_data = maps[r];
        else if (r != window->rank)
            d->reach[r].map = maps[r];
    free(maps);
    free(wants);
    return status;
}

/* Whether what was mapped of a peer is as large as it said, and where things are in it. */
static hem_status place_peer(hem_window *window, hemi_device_reach *reach) {
    const hemi_window_device *d = window->device;
    const hemi_device_memory *data = d->adopted ? &reach->own_data : &reach->map;
    bool mapped = reach->map.address != NULL && (data->address != NULL || reach->bytes == 0);
    if (!mapped && !window->inner) {
        reach->proxied = true;
        return HEM_OK;
    }
    if (!mapped && d->listed)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "kernels of rank %u cannot reach the memory of rank %u, which it named in "
                         "device_peers",
                         window->rank, reach->rank);
    if (!mapped)
        return HEM_OK;
    uint64_t offset = control_offset(d, reach->bytes);
    if (reach->map.bytes < offset + d->layout.bytes || (d->adopted && data->bytes < reach->bytes))
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u shows less memory than it said", reach->rank);
    reach->data = data->address;
    reach->control = (unsigned char *)reach->map.address + offset;
    return HEM_OK;
}

/* Let kernels here see the slots that are in a rank's host memory. */
static hem_status map_slots(hem_window *window, hemi_device_reach *reach) {
    const hemi_window_device *d = window->device;
    if (d->layout.host_bytes == 0)
        return HEM_OK;
    void *seen = NULL;
    hem_status status = hemi_device_pinned_see(window->root, window->world->members[reach->rank],
                                               &reach->slots, &seen);
    if (status == HEM_OK)
        reach->host = seen;
    return status;
}

/* What was mapped is placed; where nothing was, there are rings. */
static hem_status reach_all(hem_window *window) {
    hemi_window_device *d = window->device;
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < window->size && status == HEM_OK; r++) {
        hemi_device_reach *reach = &d->reach[r];
        if (r != window->rank && reach->wanted)
            status = place_peer(window, reach);
        if (status == HEM_OK && (reach->control != NULL || reach->proxied))
            status = map_slots(window, reach);
    }
    return status == HEM_OK ? hemi_proxy_allocate(window) : status;
}

/* All ranks have said where their rings are. */
static hem_status finish(hem_window *window) {
    hemi_window_device *d = window->device;
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < window->size && status == HEM_OK; r++) {
        hemi_pinned rings;
        hemi_team_heard(window->world, r, &rings, sizeof rings);
        status = hemi_proxy_hear(window, r, &rings);
    }
    hemi_team_done(window->world);
    if (status == HEM_OK)
        status = hemi_trouble_watch(window->world, window->id, &d->trouble, &d->trouble_words);
    if (status == HEM_OK)
        status = hemi_device_write_tables(window);
    return status == HEM_OK ? hemi_proxy_serve(window) : status;
}

hem_status hemi_device_connect(hem_window *window, uint32_t call, hem_status status,
                               uint64_t fingerprint) {
    hemi_window_device *d = window->device;
    status = share(window, call, status, false);
    if (status == HEM_OK && d->adopted)
        status = share(window, call, status, true);
    if (status == HEM_OK) {
        status = reach_all(window);
        status = hemi_team_agree(window->world, call, status, fingerprint, &d->rings,
                                 sizeof d->rings, window->timeout_ns);
    }
    if (status == HEM_OK) {
        status = finish(window);
        status = hemi_team_agree(window->world, call, status, fingerprint + 1, NULL, 0,
                                 window->timeout_ns);
    }
    if (status != HEM_OK)
        hemi_device_unmap(window, false);
    return status;
}

/* With `closed`, kernels may still be on their way to find that out. */
static void release(const hem_window *window, hemi_device_memory *memory, bool closed) {
    const hemi_device *device = window->device->device;
    if (closed)
        hemi_device_retire(window->root, memory);
    else if (memory->address != NULL)
        device->module->memory->release(device->context, memory);
    memset(memory, 0, sizeof *memory);
}

void hemi_device_unmap(hem_window *window, bool closed) {
    hemi_window_device *d = window->device;
    if (d == NULL || d->device == NULL)
        return;
    hemi_proxy_end(window, closed);
    hemi_trouble_end(d->trouble, closed);
    d->trouble = NULL;
    for (uint32_t r = 0; r < window->size; r++) {
        hemi_device_reach *reach = &d->reach[r];
        reach->host = NULL;
        if (r == window->rank)
            continue;
        release(window, &reach->map, closed);
        release(window, &reach->own_data, closed);
        reach->data = NULL;
        reach->control = NULL;
    }
}

void hemi_device_disown(hem_window *window) {
    hemi_window_device *d = window->device;
    if (d != NULL && d->device != NULL)
        release(window, &d->reach[window->rank].own_data, true);
}

void hemi_device_free(hem_window *window, bool closed) {
    hemi_window_device *d = window->device;
    if (d == NULL || d->device == NULL)
        return;
    hemi_device_reach *mine = &d->reach[window->rank];
    release(window, &mine->map, closed);
    release(window, &mine->own_data, closed);
    /* With `closed`, kernels may still write there: it stays as long as its chunk. */
    if (!closed) {
        hemi_device_pinned_free(window->root, &mine->slots);
        hemi_device_pinned_free(window->root, &d->rings);
    }
    mine->data = NULL;
    mine->control = NULL;
}
