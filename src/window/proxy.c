/* Making and giving up the rings through which ranks without a mapping are reached. */
#include "window/proxy.h"

#include <stdlib.h>

#define PAIR_BYTES (HEMI_PROXY_LANES * sizeof(hemd_ring))

/* Where the rings begin, behind the table. */
static uint64_t rings_offset(const hem_window *window) {
    uint64_t bytes = window->size * sizeof(uint32_t);
    return (bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

static hemd_ring *rings_at(unsigned char *block, const hem_window *window, uint32_t pair) {
    return (hemd_ring *)(void *)(block + rings_offset(window) + pair * PAIR_BYTES);
}

hem_status hemi_proxy_allocate(hem_window *window) {
    hemi_window_device *d = window->device;
    hemi_root *root = window->root;
    uint32_t count = 0;
    void *seen = NULL;
    for (uint32_t r = 0; r < window->size; r++)
        count += d->reach[r].proxied;
    if (count == 0)
        return HEM_OK;
    hem_status status =
        hemi_device_pinned_alloc(root, rings_offset(window) + count * PAIR_BYTES, &d->rings);
    if (status == HEM_OK)
        status = hemi_device_pinned_see(root, root->rank, &d->rings, &seen);
    if (status != HEM_OK)
        return status;
    unsigned char *block = hemi_arena_at(&root->arena, d->rings.offset);
    uint32_t *table = (uint32_t *)(void *)block;
    count = 0;
    for (uint32_t r = 0; r < window->size; r++) {
        hemi_device_reach *reach = &d->reach[r];
        if (!reach->proxied)
            continue;
        reach->rings = rings_at(block, window, count);
        reach->kernel_ring = rings_at(seen, window, count) + HEMI_PROXY_KERNELS;
        table[r] = ++count; /* 0 means that there are none */
    }
    return HEM_OK;
}

hem_status hemi_proxy_hear(hem_window *window, uint32_t rank, const hemi_pinned *rings) {
    hemi_root *root = window->root;
    uint32_t root_rank = window->world->members[rank];
    hemi_device_reach *reach = &window->device->reach[rank];
    void *seen = NULL;
    if (rings->bytes == 0 || rank == window->rank)
        return HEM_OK;
    uint64_t offset = rings_offset(window);
    if (rings->bytes < offset || !hemi_device_pinned_fits(root, root_rank, rings))
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u named rings outside of its memory", rank);
    unsigned char *block = hemi_arena_at(&root->arena, rings->offset);
    uint32_t pair = ((const uint32_t *)(const void *)block)[window->rank];
    if (pair == 0)
        return HEM_OK;
    if (pair > (rings->bytes - offset) / PAIR_BYTES)
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u named rings outside of its memory", rank);
    reach->served = rings_at(block, window, pair - 1);
    /* Copies out of it are faster, and hold up nobody else, when it is pinned here, too. */
    return hemi_device_pinned_see(root, root_rank, rings, &seen);
}

static hemi_proxy *make(const hem_window *window, uint32_t count) {
    hemi_proxy *proxy = calloc(1, sizeof *proxy + count * sizeof proxy->in[0]);
    uint64_t *values = calloc((size_t)count * HEMI_PROXY_LANES * window->signals, sizeof(uint64_t));
    if (proxy == NULL || values == NULL) {
        free(proxy);
        free(values);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t lane = 0; lane < HEMI_PROXY_LANES; lane++)
            proxy->in[i].values[lane] =
                values + ((size_t)i * HEMI_PROXY_LANES + lane) * window->signals;
    return proxy;
}

static void drop(hemi_proxy *proxy) {
    free(proxy->in[0].values[0]);
    free(proxy);
}

hem_status hemi_proxy_serve(hem_window *window) {
    hemi_window_device *d = window->device;
    uint32_t count = 0;
    for (uint32_t r = 0; r < window->size; r++)
        count += d->reach[r].served != NULL;
    if (count == 0)
        return HEM_OK;
    hemi_proxy *proxy = make(window, count);
    if (proxy == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to carry out orders of %u ranks", count);
    proxy->chore.work = hemi_proxy_work;
    proxy->window = window;
    for (uint32_t r = 0; r < window->size; r++)
        if (d->reach[r].served != NULL) {
            hemi_proxy_in *in = &proxy->in[proxy->count++];
            in->rank = r;
            in->rings = d->reach[r].served;
        }
    hem_status status = hemi_chore_begin(window->root, &proxy->chore);
    if (status == HEM_OK)
        d->proxy = proxy;
    else
        drop(proxy);
    return status;
}

void hemi_proxy_end(hem_window *window, bool closed) {
    hemi_window_device *d = window->device;
    hemi_proxy *proxy = d->proxy;
    if (proxy == NULL)
        return;
    hemi_chore_end(window->root, &proxy->chore);
    while (!closed && hemi_proxy_work(&proxy->chore))
        continue;
    drop(proxy);
    d->proxy = NULL;
}
