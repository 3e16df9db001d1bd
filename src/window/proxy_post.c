/*
 * What this rank's CPU orders from a rank that it cannot reach. A call returns when its orders have
 * been carried out, as copies into mapped memory are complete on return, so that whatever the CPU
 * tells the peer afterwards by other ways is not early.
 */
#include "window/proxy.h"

#include "base/lock.h"

#include <string.h>

typedef struct await {
    const hemi_device_reach *reach;
    uint64_t least; /* slots that are to be taken */
} await;

static hem_status poll(void *arg) {
    const await *a = arg;
    const hemd_ring *ring = &a->reach->rings[HEMI_PROXY_CPU];
    /* Pairs with the release after the orders were carried out. */
    if ((int64_t)(hemi_load64_acquire(&ring->taken) - a->least) >= 0)
        return HEM_OK;
    uint32_t failed = hemi_load32_acquire(&ring->failed);
    if (failed != 0)
        return hemi_fail(HEM_ERR_SYSTEM,
                         "the host of rank %u could not carry out what this rank ordered: %s",
                         a->reach->rank, hem_status_name((hem_status) - (int)failed));
    return HEMI_AGAIN;
}

static hem_status doomed(void *arg) {
    const await *a = arg;
    hem_world *world = a->reach->window->world;
    if (hemi_world_may_come(world, a->reach->rank))
        return HEM_OK;
    return hemi_world_fail_peer(world, a->reach->rank, "an order to its host");
}

static hem_status await_taken(const hemi_device_reach *reach, uint64_t least) {
    await a = {reach, least};
    hemi_wait_for wait = {.poll = poll, .doomed = doomed, .arg = &a};
    hem_window *window = reach->window;
    hem_status status = hemi_wait(window->world, &wait, window->timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(HEM_ERR_TIMEOUT, "the host of rank %u does not take orders", reach->rank);
    return status;
}

/* Give one order if there is room. `end_p`: the number of the slot behind it. */
static bool post(hemi_device_reach *reach, const hemd_order *order, const unsigned char *src,
                 uint64_t *end_p) {
    hemd_ring *ring = &reach->rings[HEMI_PROXY_CPU];
    hemi_lock(reach->window->root->platform, &reach->post_lock);
    uint64_t first = reach->posted;
    bool room = first + order->slots - hemi_load64_acquire(&ring->taken) <= HEMD_RING_SLOTS;
    *end_p = first + order->slots;
    if (room) {
        uint32_t slot = (uint32_t)(first % HEMD_RING_SLOTS);
        uint64_t most = (uint64_t)(HEMD_RING_SLOTS - slot) * HEMD_RING_CHUNK;
        uint64_t head = order->bytes < most ? order->bytes : most;
        if (order->bytes > 0) {
            memcpy(ring->data[slot], src, head);
            memcpy(ring->data[0], src + head, order->bytes - head);
        }
        hemd_ring_post(ring, first, order);
        reach->posted = *end_p;
    }
    hemi_unlock(&reach->post_lock);
    return room;
}

static hem_status order(hemi_device_reach *reach, const hemd_order *what, const unsigned char *src,
                        uint64_t *end_p) {
    hem_status status = HEM_OK;
    while (status == HEM_OK && !post(reach, what, src, end_p))
        status = await_taken(reach, *end_p - HEMD_RING_SLOTS);
    return status;
}

hem_status hemi_proxy_put(hemi_device_reach *reach, uint64_t offset, const void *src, size_t n) {
    const unsigned char *from = src;
    const uint64_t most = (uint64_t)HEMD_RING_CLAIM * HEMD_RING_CHUNK;
    uint64_t end = 0;
    hem_status status = HEM_OK;
    for (size_t done = 0; done < n && status == HEM_OK;) {
        uint64_t part = n - done < most ? n - done : most;
        hemd_order what = {.offset = offset + done,
                           .bytes = part,
                           .slots = (uint32_t)((part - 1) / HEMD_RING_CHUNK) + 1};
        status = order(reach, &what, from + done, &end);
        done += part;
    }
    return status == HEM_OK && n > 0 ? await_taken(reach, end) : status;
}

static hem_status set_word(hemi_device_reach *reach, uint32_t kind, uint32_t id, uint64_t value) {
    hemd_order what = {.value = value, .what = kind, .id = id, .slots = 1};
    uint64_t end = 0;
    hem_status status = order(reach, &what, NULL, &end);
    return status == HEM_OK ? await_taken(reach, end) : status;
}

hem_status hemi_proxy_signal(hemi_device_reach *reach, uint32_t id, uint64_t value) {
    return set_word(reach, HEMD_ORDER_SET, id, value);
}

hem_status hemi_proxy_arrive(hemi_device_reach *reach, uint32_t id, uint64_t epoch) {
    return set_word(reach, HEMD_ORDER_ARRIVE, id, epoch);
}
