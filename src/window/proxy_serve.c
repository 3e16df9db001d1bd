/* Carrying out what ranks without a mapping have ordered, into this rank's own device memory. */
#include "window/proxy.h"

#include <stddef.h>

static hem_status copy(const hem_window *window, unsigned char *to, const void *from, uint64_t n) {
    const hemi_device *device = window->device->device;
    return device->module->memory->copy(device->context, to, from, n);
}

/* Nothing that a peer has written is believed. */
static hem_status check(const hem_window *window, uint32_t rank, uint32_t lane,
                        const hemd_order *order) {
    const bool kernels = lane == HEMI_PROXY_KERNELS;
    const uint64_t ids = kernels ? window->signals : window->device_signals;
    const uint64_t barriers = 2 * (uint64_t)window->barriers;
    const uint64_t arrivals = barriers + HEMD_MIXED_OWN * (uint64_t)window->mixed_barriers;
    bool good = order->slots > 0 && order->slots <= HEMD_RING_CLAIM &&
                order->bytes <= (uint64_t)order->slots * HEMD_RING_CHUNK &&
                order->offset <= window->bytes && order->bytes <= window->bytes - order->offset;
    if (order->what == HEMD_ORDER_ARRIVE)
        good = good && order->id < arrivals && (kernels || order->id >= barriers);
    else
        good = good && order->what <= HEMD_ORDER_SET &&
               (order->what == HEMD_ORDER_NOTHING || order->id < ids);
    if (good)
        return HEM_OK;
    return hemi_fail(HEM_ERR_RANGE, "rank %u ordered something that this window does not have",
                     rank);
}

static hem_status copy_bytes(const hem_window *window, const hemd_ring *ring, uint32_t slot,
                             const hemd_order *order) {
    unsigned char *to = window->device->reach[window->rank].data + order->offset;
    uint64_t room = (uint64_t)(HEMD_RING_SLOTS - slot) * HEMD_RING_CHUNK;
    uint64_t head = order->bytes < room ? order->bytes : room;
    hem_status status = head > 0 ? copy(window, to, ring->data[slot], head) : HEM_OK;
    if (status == HEM_OK && order->bytes > head)
        status = copy(window, to + head, ring->data[0], order->bytes - head);
    return status;
}

/* A word of this rank's control block in device memory. Copies of one word are stored in one piece. */
static hem_status store(const hem_window *window, uint64_t offset, uint64_t value) {
    unsigned char *control = window->device->reach[window->rank].control;
    return copy(window, control + offset, &value, sizeof value);
}

/* The word of a slot in this rank's device memory that a kernel of `rank`, or its CPU, would store. */
static hem_status store_slot(const hem_window *window, uint32_t rank, uint32_t lane, uint64_t at,
                             uint64_t value) {
    const uint64_t word =
        lane == HEMI_PROXY_KERNELS ? offsetof(hemd_slot, kernel) : offsetof(hemd_slot, cpu);
    return store(window, rank * window->device->layout.row_bytes + at * sizeof(hemd_slot) + word,
                 value);
}

/* The same in its host memory: kernels only. */
static void store_host(const hem_window *window, uint32_t rank, uint32_t id, uint64_t value) {
    /* Pairs with the acquire in hemi_device_seen, and of arrivals with that in hemi_mixed_heard. */
    hemi_store64_release(&hemi_device_host_slot(window, rank, id)->kernel, value);
    hemi_wake(window->root, window->root->me);
}

static hem_status set_signal(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                             const hemd_order *order) {
    uint64_t *value = &in->values[lane][order->id];
    *value = order->what == HEMD_ORDER_ADD ? *value + order->value : order->value;
    if (order->id < window->device_signals)
        return store_slot(window, in->rank, lane, order->id, *value);
    store_host(window, in->rank, order->id, *value);
    return HEM_OK;
}

/* A CPU tells the host's side of a mixed barrier by itself. */
static hem_status set_arrival(const hem_window *window, uint32_t rank, uint32_t lane,
                              const hemd_order *order) {
    const hemi_device_layout *layout = &window->device->layout;
    if (order->id < 2 * window->barriers)
        return store(window,
                     layout->arrivals + rank * layout->arrival_bytes + order->id * sizeof(uint64_t),
                     order->value);
    const uint32_t at = order->id - 2 * window->barriers;
    hem_status status =
        store_slot(window, rank, lane, (uint64_t)window->device_signals + at, order->value);
    if (status == HEM_OK && lane == HEMI_PROXY_KERNELS)
        store_host(window, rank, window->signals + at, order->value);
    return status;
}

static hem_status carry_out(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                            const hemd_order *order) {
    hem_status status = check(window, in->rank, lane, order);
    if (status == HEM_OK)
        status = copy_bytes(window, &in->rings[lane], (uint32_t)(in->next[lane] % HEMD_RING_SLOTS),
                            order);
    if (status != HEM_OK || order->what == HEMD_ORDER_NOTHING)
        return status;
    if (order->what == HEMD_ORDER_ARRIVE)
        return set_arrival(window, in->rank, lane, order);
    return set_signal(window, in, lane, order);
}

static bool serve(const hem_window *window, hemi_proxy_in *in, uint32_t lane) {
    hemd_ring *ring = &in->rings[lane];
    uint64_t first = in->next[lane];
    const hemd_order *at = &ring->orders[first % HEMD_RING_SLOTS];
    /* Pairs with the release in hemd_ring_post. */
    if (in->failed[lane] || hemi_load64_acquire(&at->turn) != first + 1)
        return false;
    hemd_order order = *at;
    hem_status status = carry_out(window, in, lane, &order);
    if (status == HEM_OK) {
        in->next[lane] = first + order.slots;
        hemi_store64_release(&ring->taken, in->next[lane]);
    } else {
        in->failed[lane] = true;
        hemi_store32_release(&ring->failed, (uint32_t) - (int)status);
    }
    if (lane == HEMI_PROXY_CPU)
        hemi_wake(window->root,
                  hemi_arena_rank(&window->root->arena, window->world->members[in->rank]));
    return true;
}

bool hemi_proxy_work(hemi_chore *chore) {
    hemi_proxy *proxy = (hemi_proxy *)(void *)chore;
    bool worked = false;
    for (uint32_t i = 0; i < proxy->count; i++)
        for (uint32_t lane = 0; lane < HEMI_PROXY_LANES; lane++)
            worked = serve(proxy->window, &proxy->in[i], lane) || worked;
    return worked;
}
