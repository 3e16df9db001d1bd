/*
 * Carrying out what ranks without a mapping have ordered, into this rank's own device memory.
 *
 * All orders that are there are done together: copies and words in device memory are sent in the order of
 * the orders, and waited for once, before `taken` says that it is done. Words in host memory are
 * stored by this thread itself, so what was sent before them is waited for first. A copy that is waited for
 * takes some ten microseconds, whatever it brings.
 */
#include "window/proxy.h"

#include <stddef.h>

static hem_status send(const hem_window *window, hemi_proxy_in *in, unsigned char *to,
                       const void *from, uint64_t n) {
    const hemi_device *device = window->device->device;
    in->sent = true;
    return device->module->memory->send(device->context, to, from, n);
}

/* Wait for what was sent. Where nothing was, others that copy are not waited for. */
static hem_status complete(const hem_window *window, hemi_proxy_in *in) {
    const hemi_device *device = window->device->device;
    if (!in->sent)
        return HEM_OK;
    in->sent = false;
    return device->module->memory->copy(device->context, NULL, NULL, 0);
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

static hem_status send_bytes(const hem_window *window, hemi_proxy_in *in, const hemd_ring *ring,
                             uint32_t slot, const hemd_order *order) {
    unsigned char *to = window->device->reach[window->rank].data + order->offset;
    uint64_t room = (uint64_t)(HEMD_RING_SLOTS - slot) * HEMD_RING_CHUNK;
    uint64_t head = order->bytes < room ? order->bytes : room;
    hem_status status = head > 0 ? send(window, in, to, ring->data[slot], head) : HEM_OK;
    if (status == HEM_OK && order->bytes > head)
        status = send(window, in, to + head, ring->data[0], order->bytes - head);
    return status;
}

/* A word of this rank's control block in device memory. Words that are sent are stored in one piece. */
static hem_status store(const hem_window *window, hemi_proxy_in *in, uint64_t offset,
                        uint64_t value) {
    unsigned char *control = window->device->reach[window->rank].control;
    return send(window, in, control + offset, &value, sizeof value);
}

/* The word of a slot in this rank's device memory that a kernel of the giver, or its CPU, would store. */
static hem_status store_slot(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                             uint64_t at, uint64_t value) {
    const uint64_t word =
        lane == HEMI_PROXY_KERNELS ? offsetof(hemd_slot, kernel) : offsetof(hemd_slot, cpu);
    return store(window, in,
                 in->rank * window->device->layout.row_bytes + at * sizeof(hemd_slot) + word,
                 value);
}

/* The same in its host memory: kernels only. */
static hem_status store_host(const hem_window *window, hemi_proxy_in *in, uint32_t id,
                             uint64_t value) {
    hem_status status = complete(window, in);
    if (status != HEM_OK)
        return status;
    /* Pairs with the acquire in hemi_device_seen, and of arrivals with that in hemi_mixed_heard. */
    hemi_store64_release(&hemi_device_host_slot(window, in->rank, id)->kernel, value);
    hemi_wake(window->root, window->root->me);
    return HEM_OK;
}

static hem_status set_signal(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                             const hemd_order *order) {
    uint64_t *value = &in->values[lane][order->id];
    *value = order->what == HEMD_ORDER_ADD ? *value + order->value : order->value;
    if (order->id < window->device_signals)
        return store_slot(window, in, lane, order->id, *value);
    return store_host(window, in, order->id, *value);
}

/* A CPU tells the host's side of a mixed barrier by itself. */
static hem_status set_arrival(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                              const hemd_order *order) {
    const hemi_device_layout *layout = &window->device->layout;
    if (order->id < 2 * window->barriers)
        return store(window, in,
                     layout->arrivals + in->rank * layout->arrival_bytes +
                         order->id * sizeof(uint64_t),
                     order->value);
    const uint32_t at = order->id - 2 * window->barriers;
    hem_status status =
        store_slot(window, in, lane, (uint64_t)window->device_signals + at, order->value);
    if (status == HEM_OK && lane == HEMI_PROXY_KERNELS)
        status = store_host(window, in, window->signals + at, order->value);
    return status;
}

/* Send what the order at `first` wants. */
static hem_status carry_out(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                            uint64_t first, const hemd_order *order) {
    hem_status status = check(window, in->rank, lane, order);
    if (status == HEM_OK)
        status =
            send_bytes(window, in, &in->rings[lane], (uint32_t)(first % HEMD_RING_SLOTS), order);
    if (status != HEM_OK || order->what == HEMD_ORDER_NOTHING)
        return status;
    if (order->what == HEMD_ORDER_ARRIVE)
        return set_arrival(window, in, lane, order);
    return set_signal(window, in, lane, order);
}

/* The same of all orders that are there, but not of more than half of the ring, so that the other one is filled
 * meanwhile. `next_p`: behind the last good one. */
static hem_status carry_out_all(const hem_window *window, hemi_proxy_in *in, uint32_t lane,
                                uint64_t *next_p) {
    const hemd_ring *ring = &in->rings[lane];
    const uint64_t first = *next_p;
    hem_status status = HEM_OK;
    while (status == HEM_OK) {
        const hemd_order *at = &ring->orders[*next_p % HEMD_RING_SLOTS];
        /* Pairs with the release in hemd_ring_post. */
        if (hemi_load64_acquire(&at->turn) != *next_p + 1)
            break;
        const hemd_order order = *at;
        if (*next_p != first && *next_p + order.slots - first > HEMD_RING_SLOTS / 2)
            break;
        status = carry_out(window, in, lane, *next_p, &order);
        if (status == HEM_OK)
            *next_p += order.slots;
    }
    return status;
}

static bool serve(const hem_window *window, hemi_proxy_in *in, uint32_t lane) {
    hemd_ring *ring = &in->rings[lane];
    uint64_t next = in->next[lane];
    if (in->failed[lane])
        return false;
    hem_status status = carry_out_all(window, in, lane, &next);
    if (status == HEM_OK && next == in->next[lane])
        return false;
    /* Also after an error: what was sent reads from the ring, and those before it count. */
    const hem_status completed = complete(window, in);
    if (completed == HEM_OK && next != in->next[lane]) {
        in->next[lane] = next;
        hemi_store64_release(&ring->taken, next);
    }
    if (status == HEM_OK)
        status = completed;
    if (status != HEM_OK) {
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
