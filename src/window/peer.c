#include "base/lock.h"
#include "window/device.h"

#include <inttypes.h>
#include <stdlib.h>

hem_status hemi_window_fail_rank(const hem_window *window, int rank, const char *call) {
    return hemi_fail(HEM_ERR_RANGE, "%s: rank %d is not one of 0 to %u", call, rank,
                     window->size - 1);
}

hem_status hemi_window_fail_range(const hemi_peer *peer, size_t offset, size_t n,
                                  const char *call) {
    return hemi_fail(HEM_ERR_RANGE,
                     "%s: %zu bytes at offset %zu do not fit into the %" PRIu64
                     " bytes that rank %u has in the window",
                     call, n, offset, peer->data.bytes, peer->rank);
}

hem_status hemi_window_fail_id(const hem_window *window, uint32_t id, uint32_t ids,
                               const char *what, const char *call) {
    if (window->own_memory && what[0] == 's')
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: a window over the caller's own memory carries no signals", call);
    return hemi_fail(HEM_ERR_RANGE, "%s: %s %u is not one of the window's %u", call, what, id, ids);
}

hem_status hemi_window_fail_handle(const hem_window *window, const char *call) {
    if (window == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the window is NULL", call);
    return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this window was closed", call);
}

static unsigned char *row_at(const hem_window *window, uint64_t control, uint32_t source) {
    return (unsigned char *)hemi_arena_at(&window->root->arena, control) + window->layout.rows +
           (uint64_t)source * window->layout.row_bytes;
}

static hem_status reserve(const hem_window *window, uint64_t offset, uint64_t bytes) {
    uint64_t start = offset / HEMI_PAGE * HEMI_PAGE;
    uint64_t end = (offset + bytes + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE;
    return hemi_arena_reserve(&window->root->arena, start, end - start);
}

static hem_status reserve_row(const hem_window *window, uint64_t control, uint32_t source) {
    return reserve(window, control + window->layout.rows + source * window->layout.row_bytes,
                   window->layout.row_bytes);
}

/* Tell the peer that this rank's row is worth looking at. */
static hem_status enlist(const hem_window *window, uint64_t control) {
    hemi_window_head *head = hemi_arena_at(&window->root->arena, control);
    uint32_t place = hemi_load32_acquire(&head->users);
    uint64_t entry = 0;
    /* Memory first, then the place: one that is taken and not filled in would be lost. */
    do {
        if (place >= window->size)
            return hemi_fail(HEM_ERR_MISMATCH, "a peer's list of users has overflowed");
        entry = control + window->layout.list + place * sizeof(uint32_t);
        hem_status status = reserve(window, entry, sizeof(uint32_t));
        if (status != HEM_OK)
            return status;
    } while (!hemi_cas32_acq_rel(&head->users, &place, place + 1));
    /* Pairs with the acquire in the sum over peers. 0 means not filled in yet. */
    hemi_store32_release(hemi_arena_at(&window->root->arena, entry), window->rank + 1);
    return HEM_OK;
}

static void point(const hem_window *window, hemi_peer *peer, unsigned char *out,
                  unsigned char *in) {
    const hemi_window_layout *layout = &window->layout;
    peer->out = (hemi_line *)(void *)out;
    peer->in = (hemi_line *)(void *)in;
    peer->out_arrivals = (hemi_arrival *)(void *)(out + layout->row_arrivals);
    peer->in_arrivals = (hemi_arrival *)(void *)(in + layout->row_arrivals);
    peer->out_claims = (hemi_claim *)(void *)(out + layout->row_claims);
    peer->in_claims = (hemi_claim *)(void *)(in + layout->row_claims);
    peer->pairs = (hemi_barrier_state *)(void *)(in + layout->row_pairs);
}

static hem_status attach(const hem_window *window, uint32_t rank, hemi_region *region_p) {
    if (window->device != NULL) {
        hemi_device_region(window, rank, region_p);
        return HEM_OK;
    }
    const hemi_window_head *head =
        hemi_arena_at(&window->root->arena, hemi_window_control(window, rank));
    hemi_name data = head->data;
    if (data.kind != (window->own_memory ? HEMI_NAME_OWN : HEMI_NAME_LIBRARY))
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u has other memory in the window", rank);
    return hemi_region_attach(window->root, &data, window->world->members[rank], region_p);
}

static hem_status build(hem_window *window, uint32_t rank, hemi_peer *peer) {
    uint64_t control = hemi_window_control(window, rank);
    uint64_t mine = hemi_window_control(window, window->rank);
    uint32_t root_rank = window->world->members[rank];
    hem_status status = attach(window, rank, &peer->data);
    if (status == HEM_OK)
        status = reserve_row(window, control, window->rank);
    if (status == HEM_OK)
        status = reserve_row(window, mine, rank);
    if (status == HEM_OK)
        status = enlist(window, control);
    if (status != HEM_OK)
        return status;
    peer->rank = rank;
    peer->block = hemi_arena_rank(&window->root->arena, root_rank);
    point(window, peer, row_at(window, control, window->rank), row_at(window, mine, rank));
    return HEM_OK;
}

static hem_status open_locked(hem_window *window, uint32_t rank, hemi_peer **peer_p) {
    if (window->peers[rank] != NULL) {
        *peer_p = window->peers[rank];
        return HEM_OK;
    }
    hemi_peer *peer = calloc(1, sizeof *peer + window->signals * sizeof(hemi_shadow));
    if (peer == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the first use of rank %u", rank);
    hem_status status = build(window, rank, peer);
    if (status != HEM_OK) {
        free(peer);
        return status;
    }
    /* Pairs with the acquire in hemi_peer_find. */
    __atomic_store_n(&window->peers[rank], peer, __ATOMIC_RELEASE);
    *peer_p = peer;
    return HEM_OK;
}

hem_status hemi_peer_open(hem_window *window, uint32_t rank, hemi_peer **peer_p) {
    hemi_lock(window->root->platform, &window->lock);
    hem_status status = open_locked(window, rank, peer_p);
    hemi_unlock(&window->lock);
    return status;
}
