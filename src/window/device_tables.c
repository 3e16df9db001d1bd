/* What kernels find in device memory: where everything lies, and the tables that say so to them. */
#include "window/device.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(hemd_peer) == HEM_DEV_LINE, "an entry of the table of ranks is a line");

static uint64_t to_line(uint64_t bytes) {
    return (bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

void hemi_device_lay_out(hemi_device_layout *layout, uint32_t size, uint32_t signals,
                         uint32_t device_signals, uint32_t barriers, uint32_t counters,
                         uint32_t mixed_barriers) {
    const uint64_t ranks = size;
    const uint64_t mixed = (uint64_t)HEMD_MIXED_KINDS * mixed_barriers;
    layout->row_bytes = to_line((device_signals + mixed) * sizeof(hemd_slot));
    layout->arrivals = ranks * layout->row_bytes;
    layout->arrival_bytes = to_line(2 * (uint64_t)barriers * sizeof(uint64_t));
    layout->pair_epochs = layout->arrivals + ranks * layout->arrival_bytes;
    layout->epochs = layout->pair_epochs + to_line(ranks * barriers * sizeof(uint64_t));
    layout->counters = layout->epochs + to_line(barriers * sizeof(uint64_t));
    layout->claims = layout->counters + to_line(counters * sizeof(uint64_t));
    layout->peers = layout->claims + to_line(ranks * sizeof(hemd_claims));
    layout->home = layout->peers + to_line(ranks * sizeof(hemd_peer));
    layout->bytes = layout->home + to_line(sizeof(hemd_home));
    layout->host_row_bytes = to_line((signals - device_signals + mixed) * sizeof(hemd_slot));
    layout->host_bytes = ranks * layout->host_row_bytes;
}

/* Row `source` of slots in a control block; NULL if there is none. */
static hemd_slot *slots_at(const hemi_device_layout *layout, unsigned char *control,
                           uint32_t source) {
    return (hemd_slot *)(void *)(control + source * layout->row_bytes);
}

static uint64_t *arrivals_at(const hemi_device_layout *layout, unsigned char *control,
                             uint32_t source) {
    return (uint64_t *)(void *)(control + layout->arrivals + source * layout->arrival_bytes);
}

/* The same among the slots in host memory. */
static hemd_slot *host_at(const hemi_device_layout *layout, hemd_slot *block, uint32_t source) {
    if (block == NULL)
        return NULL;
    return (hemd_slot *)(void *)((unsigned char *)block + source * layout->host_row_bytes);
}

static void fill_peer(const hem_window *window, uint32_t rank, hemd_peer *peer) {
    const hemi_window_device *d = window->device;
    const hemi_device_layout *layout = &d->layout;
    const hemi_device_reach *reach = &d->reach[rank];
    const hemi_device_reach *mine = &d->reach[window->rank];
    peer->bytes = reach->bytes;
    /* What a host thread has carried out is not in the cache of this GPU. */
    peer->near = reach->near && !reach->proxied && reach->served == NULL;
    peer->in = slots_at(layout, mine->control, rank);
    peer->in_host = host_at(layout, mine->host, rank);
    peer->in_arrivals = arrivals_at(layout, mine->control, rank);
    peer->pair_epochs = (uint64_t *)(void *)(mine->control + layout->pair_epochs) +
                        (uint64_t)rank * window->barriers;
    peer->route = reach->proxied ? HEMD_ROUTE_PROXY : HEMD_ROUTE_NONE;
    peer->ring = reach->kernel_ring;
    peer->claims = (hemd_claims *)(void *)(mine->control + layout->claims) + rank;
    if (reach->control == NULL)
        return;
    peer->route = rank == window->rank ? HEMD_ROUTE_SELF : HEMD_ROUTE_DIRECT;
    peer->data = reach->data;
    peer->out = slots_at(layout, reach->control, window->rank);
    peer->out_host = host_at(layout, reach->host, window->rank);
    peer->out_arrivals = arrivals_at(layout, reach->control, window->rank);
}

static hemd_home home_of(const hem_window *window) {
    const hemi_window_device *d = window->device;
    unsigned char *control = d->reach[window->rank].control;
    hemd_home home = {
        .trouble = d->trouble_words,
        .epochs = (uint64_t *)(void *)(control + d->layout.epochs),
        .counters = (uint64_t *)(void *)(control + d->layout.counters),
        .signals = window->signals,
        .device_signals = window->device_signals,
        .barriers = window->barriers,
        .counter_count = window->counters,
        .proxy_limit_ns = d->proxy_limit_ns,
    };
    for (uint32_t r = 0; r < window->size; r++)
        home.proxied += d->reach[r].proxied;
    return home;
}

hem_status hemi_device_write_tables(hem_window *window) {
    hemi_window_device *d = window->device;
    unsigned char *control = d->reach[window->rank].control;
    size_t bytes = window->size * sizeof(hemd_peer);
    hemd_peer *peers = calloc(window->size, sizeof *peers);
    if (peers == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a table of %u ranks", window->size);
    for (uint32_t r = 0; r < window->size; r++)
        fill_peer(window, r, &peers[r]);
    hemd_home home = home_of(window);
    const hemi_device_memory_ops *memory = d->device->module->memory;
    hem_status status = memory->copy(d->device->context, control + d->layout.peers, peers, bytes);
    if (status == HEM_OK)
        status = memory->copy(d->device->context, control + d->layout.home, &home, sizeof home);
    free(peers);
    d->dev.rank = (int32_t)window->rank;
    d->dev.size = (int32_t)window->size;
    d->dev.peers = (const hemd_peer *)(const void *)(control + d->layout.peers);
    d->dev.home = (const hemd_home *)(const void *)(control + d->layout.home);
    d->dev.device_signals = window->device_signals;
    d->dev.mixed_barriers = window->mixed_barriers;
    return status;
}
