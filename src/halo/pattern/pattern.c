/* The life of a pattern, and what it says of itself in numbers. */
#include "halo/pattern/pattern.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void hemi_links_free(hemi_links *links) {
    for (size_t i = 0; i < links->count; i++)
        free(links->links[i].points.list);
    free(links->links);
    links->links = NULL;
    links->count = 0;
}

static void free_pattern(hem_pattern *pattern) {
    hemi_links_free(&pattern->sends);
    hemi_links_free(&pattern->recvs);
    free(pattern->neighbours);
    free(pattern->domains);
    free(pattern);
}

void hemi_pattern_drop(const hem_pattern *pattern) {
    if (pattern == NULL)
        return;
    /* Constant to whoever holds it; the count and the end are not. */
    hem_pattern *mine = (hem_pattern *)(uintptr_t)pattern;
    if (hemi_add32_acq_rel(&mine->refs, UINT32_MAX) == 1)
        free_pattern(mine);
}

static void orphan(hemi_child *child, bool dead) {
    hem_pattern *pattern =
        (hem_pattern *)(void *)((unsigned char *)child - offsetof(hem_pattern, child));
    pattern->world = NULL;
    if (dead)
        hemi_pattern_drop(pattern); /* the handle, which nobody will give up */
}

void hemi_pattern_adopt(hem_pattern *pattern, hem_world *world) {
    pattern->world = world;
    pattern->child.orphan = orphan;
    hemi_world_adopt(world, &pattern->child);
}

hem_status hem_pattern_destroy(hem_pattern *pattern) {
    if (pattern == NULL)
        return HEM_OK;
    if (pattern->world != NULL)
        hemi_world_abandon(pattern->world, &pattern->child);
    pattern->world = NULL;
    hemi_pattern_drop(pattern);
    return HEM_OK;
}

uint64_t hemi_links_points(const hemi_links *links, uint32_t rank, bool others) {
    uint64_t points = 0;
    for (size_t i = 0; i < links->count; i++)
        if ((links->links[i].peer != rank) == others)
            points += links->links[i].points.total;
    return points;
}

/* The next peer, over both lists, which are ordered. UINT32_MAX: none. */
static uint32_t next_peer(const hem_pattern *pattern, size_t send, size_t recv) {
    uint32_t peer = UINT32_MAX;
    if (send < pattern->sends.count)
        peer = pattern->sends.links[send].peer;
    if (recv < pattern->recvs.count && pattern->recvs.links[recv].peer < peer)
        peer = pattern->recvs.links[recv].peer;
    return peer;
}

static uint64_t pass(const hemi_links *links, uint32_t peer, size_t *at) {
    uint64_t points = 0;
    for (; *at < links->count && links->links[*at].peer == peer; ++*at)
        points += links->links[*at].points.total;
    return points;
}

/* Write down the neighbours, or only count them where there is no memory for them yet. */
static size_t list_neighbours(const hem_pattern *pattern, hem_neighbour *neighbours) {
    size_t count = 0;
    size_t send = 0;
    size_t recv = 0;
    for (;;) {
        uint32_t peer = next_peer(pattern, send, recv);
        if (peer == UINT32_MAX)
            return count;
        hem_neighbour found = {.rank = (int)peer};
        found.send_points = pass(&pattern->sends, peer, &send);
        found.recv_points = pass(&pattern->recvs, peer, &recv);
        if (peer == pattern->rank)
            continue;
        if (neighbours != NULL)
            neighbours[count] = found;
        count++;
    }
}

hem_status hemi_pattern_meet(hem_pattern *pattern) {
    size_t count = list_neighbours(pattern, NULL);
    pattern->neighbours = calloc(count + 1, sizeof *pattern->neighbours);
    if (pattern->neighbours == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu neighbours", count);
    pattern->neighbour_count = list_neighbours(pattern, pattern->neighbours);
    return HEM_OK;
}

hem_status hem_pattern_info(const hem_pattern *pattern, hem_pattern_facts *facts_p) {
    if (pattern == NULL || facts_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_info: pattern or facts_p is NULL");
    if (facts_p->struct_size < offsetof(hem_pattern_facts, domains))
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_info: struct_size is %zu, not that of the facts",
                         facts_p->struct_size);
    hem_pattern_facts facts = {
        .struct_size = facts_p->struct_size,
        .dims = pattern->dims,
        .domains = pattern->domain_count,
        .neighbours = pattern->neighbour_count,
        .send_points = hemi_links_points(&pattern->sends, pattern->rank, true),
        .recv_points = hemi_links_points(&pattern->recvs, pattern->rank, true),
        .local_points = hemi_links_points(&pattern->recvs, pattern->rank, false),
        .holes = pattern->holes,
        .setup_messages = pattern->setup_messages,
        .setup_bytes = pattern->setup_bytes,
        .setup_peak_bytes = pattern->setup_peak_bytes,
        .setup_ns = pattern->setup_ns,
    };
    size_t size = facts.struct_size;
    if (size > sizeof facts) {
        /* A newer caller: what this version does not know is nothing. */
        memset((unsigned char *)facts_p + sizeof facts, 0, size - sizeof facts);
        size = sizeof facts;
    }
    memcpy(facts_p, &facts, size);
    return HEM_OK;
}

hem_status hem_pattern_neighbour(const hem_pattern *pattern, size_t index,
                                 hem_neighbour *neighbour_p) {
    if (pattern == NULL || neighbour_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_neighbour: pattern or neighbour_p is NULL");
    if (index >= pattern->neighbour_count)
        return hemi_fail(HEM_ERR_RANGE, "hem_pattern_neighbour: there is no neighbour %zu of %zu",
                         index, pattern->neighbour_count);
    *neighbour_p = pattern->neighbours[index];
    return HEM_OK;
}
