/*
 * How this works. A want is what the receiver knows of a link. The owner's half of it goes to the owner
 * as one record: a fixed head, and then a box or a list. The owner checks it against its domain, since
 * it will read that memory for ever after without looking again. Records come ordered by sender and as
 * they were sent, so both sides have the links of a pair of ranks in the same order. Links of a rank to
 * itself do not travel.
 */
#include "halo/pattern/making.h"

#include "core/team.h"
#include "halo/pattern/half.h"
#include "halo/pattern/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hemi_making_fail(hemi_making *making, hem_status status) {
    if (making->status != HEM_OK || status == HEM_OK)
        return;
    making->status = status;
    (void)snprintf(making->text, sizeof making->text, "%s", hem_last_error());
}

void hemi_making_doubt(hemi_making *making, hem_status status) {
    if (making->doubt != HEM_OK || status == HEM_OK)
        return;
    making->doubt = status;
    (void)snprintf(making->doubt_text, sizeof making->doubt_text, "%s", hem_last_error());
}

void hemi_making_route(hemi_making *making, hemi_bag *bag) {
    hemi_making_fail(making, hemi_route(&making->router, bag));
}

static hem_status make_pattern(hemi_making *making, hem_world *world, enum hemi_pattern_kind kind,
                               size_t domain_count) {
    if (domain_count > UINT32_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%zu domains are too many", domain_count);
    hem_pattern *pattern = calloc(1, sizeof *pattern);
    hemi_domain *domains = calloc(domain_count + 1, sizeof *domains);
    if (pattern == NULL || domains == NULL) {
        free(pattern);
        free(domains);
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a pattern of %zu domains", domain_count);
    }
    hemi_router_hold(&making->router, sizeof *pattern + (domain_count + 1) * sizeof *domains);
    pattern->refs = 1;
    pattern->kind = kind;
    pattern->dims = 1;
    pattern->rank = world->rank;
    pattern->world_id = world->id;
    pattern->domains = domains;
    pattern->domain_count = domain_count;
    making->pattern = pattern;
    return HEM_OK;
}

hem_status hemi_making_poll(hemi_making *making, hem_world *world, uint32_t call,
                            enum hemi_pattern_kind kind, size_t domain_count, uint64_t fingerprint,
                            uint32_t votes, hem_status status, int64_t timeout_ns) {
    const hemi_platform *platform = world->root->platform;
    hemi_votes said = {.mine = votes};
    memset(making, 0, sizeof *making);
    making->router = (hemi_router){.world = world, .call = call, .deadline_ns = UINT64_MAX};
    making->began_ns = platform->now(platform->ctx);
    if (status == HEM_OK)
        status = make_pattern(making, world, kind, domain_count);
    status =
        hemi_router_begin(&making->router, world, call, status, fingerprint, timeout_ns, &said);
    if (status != HEM_OK) {
        hemi_pattern_drop(making->pattern);
        making->pattern = NULL;
        return status;
    }
    making->votes = said.all;
    making->voters[0] = said.voters[0];
    making->voters[1] = said.voters[1];
    making->pattern->id = ++world->objects_made;
    return HEM_OK;
}

hem_status hemi_making_begin(hemi_making *making, hem_world *world, uint32_t call,
                             enum hemi_pattern_kind kind, size_t domain_count, uint64_t fingerprint,
                             hem_status status, int64_t timeout_ns) {
    return hemi_making_poll(making, world, call, kind, domain_count, fingerprint, 0, status,
                            timeout_ns);
}

static uint64_t list_bytes(const hemi_points *points) {
    return points->list != NULL ? points->total * sizeof *points->list : 0;
}

void hemi_making_want(hemi_making *making, const hemi_want *want) {
    uint64_t lists = list_bytes(&want->mine) + list_bytes(&want->theirs);
    bool empty = want->mine.total == 0;
    if (!empty && making->want_count == making->want_room) {
        size_t room = making->want_room == 0 ? 8 : 2 * making->want_room;
        hemi_want *grown = realloc(making->wants, room * sizeof *grown);
        if (grown == NULL) {
            hemi_making_fail(making, hemi_fail(HEM_ERR_MEMORY, "no memory for %zu links", room));
            empty = true;
        } else {
            hemi_router_hold(&making->router, (room - making->want_room) * sizeof *grown);
            making->wants = grown;
            making->want_room = room;
        }
    }
    if (empty) {
        free(want->mine.list);
        free(want->theirs.list);
        return;
    }
    hemi_router_hold(&making->router, lists);
    making->wants[making->want_count++] = *want;
}

static uint64_t part_of(const hemi_want *want, int part) {
    const uint32_t parts[3] = {want->here, want->there, want->owner};
    return parts[part];
}

/* By owner, the owner's domain, this rank's domain; otherwise as they were wanted. */
static void sort_wants(hemi_making *making) {
    size_t count = making->want_count;
    if (count < 2)
        return;
    hemi_keyed *items = malloc(2 * count * sizeof *items);
    hemi_want *sorted = malloc(count * sizeof *sorted);
    if (items != NULL && sorted != NULL) {
        uint64_t bytes = 2 * count * sizeof *items + count * sizeof *sorted;
        hemi_router_hold(&making->router, bytes);
        for (size_t i = 0; i < count; i++)
            items[i].value = i;
        for (int part = 0; part < 3; part++) {
            for (size_t i = 0; i < count; i++)
                items[i].key = part_of(&making->wants[items[i].value], part);
            hemi_order(items, items + count, count);
        }
        for (size_t i = 0; i < count; i++)
            sorted[i] = making->wants[items[i].value];
        memcpy(making->wants, sorted, count * sizeof *sorted);
        hemi_router_drop(&making->router, bytes);
    } else {
        hemi_making_fail(making, hemi_fail(HEM_ERR_MEMORY, "no memory to sort %zu links", count));
    }
    free(items);
    free(sorted);
}

/* Tell the owners. With a failure, there is nothing to tell, but others may tell this rank. */
static void tell_owners(hemi_making *making, hemi_bag *bag) {
    uint32_t me = making->router.world->rank;
    for (size_t i = 0; i < making->want_count && making->status == HEM_OK; i++)
        if (making->wants[i].owner != me)
            hemi_making_fail(making, hemi_half_pack(bag, me, &making->wants[i]));
    if (making->status != HEM_OK)
        hemi_bag_free(bag);
    hemi_making_route(making, bag);
}

static hem_status make_links(hemi_making *making, hemi_links *links, size_t room) {
    links->links = calloc(room + 1, sizeof *links->links);
    if (links->links == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu links", room);
    hemi_router_hold(&making->router, (room + 1) * sizeof *links->links);
    return HEM_OK;
}

/* The lists of the wants go over into the links. */
static hemi_link own_send(const hem_pattern *pattern, hemi_want *want) {
    hemi_link link = {pattern->rank, want->there, want->here,
                      want->sides,   want->turn,  want->theirs};
    want->theirs.list = NULL;
    return link;
}

static hemi_link receive_of(hemi_want *want) {
    hemi_link link = {want->owner, want->here, want->there, want->sides, want->turn, want->mine};
    want->mine.list = NULL;
    return link;
}

static hem_status link_recvs(hemi_making *making) {
    hemi_links *recvs = &making->pattern->recvs;
    hem_status status = make_links(making, recvs, making->want_count);
    for (size_t i = 0; i < making->want_count && status == HEM_OK; i++)
        recvs->links[recvs->count++] = receive_of(&making->wants[i]);
    return status;
}

/* What others ask for, ordered by rank, with this rank's own at its place. */
static hem_status link_sends(hemi_making *making, const hemi_bag *bag) {
    hem_pattern *pattern = making->pattern;
    hemi_links *sends = &pattern->sends;
    size_t first = 0;
    while (first < making->want_count && making->wants[first].owner != pattern->rank)
        first++;
    size_t end = first;
    while (end < making->want_count && making->wants[end].owner == pattern->rank)
        end++;
    hem_status status = make_links(making, sends, bag->records + end - first);
    const hemi_record *record = hemi_bag_next(bag, NULL);
    for (; status == HEM_OK && (record != NULL || first < end);) {
        if (first < end && (record == NULL || record->from > pattern->rank)) {
            sends->links[sends->count++] = own_send(pattern, &making->wants[first++]);
            continue;
        }
        status = hemi_half_unpack(making, record, &sends->links[sends->count]);
        if (status == HEM_OK)
            sends->count++;
        record = hemi_bag_next(bag, record);
    }
    return status;
}

static void free_wants(hemi_making *making) {
    for (size_t i = 0; i < making->want_count; i++) {
        free(making->wants[i].mine.list);
        free(making->wants[i].theirs.list);
    }
    free(making->wants);
    making->wants = NULL;
    making->want_count = 0;
}

/* Whether any rank has doubts. */
static bool hear_doubts(hem_world *world) {
    bool any = false;
    for (uint32_t r = 0; r < world->size; r++) {
        uint32_t doubts = 0;
        hemi_team_heard(world, r, &doubts, sizeof doubts);
        any = any || doubts != 0;
    }
    hemi_team_done(world);
    return any;
}

/* Failures first; only if there are none, what may have come of one. */
static hem_status agree(hemi_making *making) {
    const hemi_router *router = &making->router;
    hem_world *world = router->world;
    uint32_t doubts = making->doubt != HEM_OK;
    hem_status status = making->status;
    if (status != HEM_OK)
        status = hemi_fail(status, "%s", making->text);
    status = hemi_team_agree(world, router->call, status, making->pattern->id, &doubts,
                             sizeof doubts, hemi_router_left(router));
    if (status != HEM_OK || !hear_doubts(world))
        return status;
    status = making->doubt;
    if (status != HEM_OK)
        status = hemi_fail(status, "%s", making->doubt_text);
    return hemi_team_agree(world, router->call, status, making->pattern->id, NULL, 0,
                           hemi_router_left(router));
}

hem_status hemi_making_conclude(hemi_making *making, hem_pattern **pattern_p) {
    hemi_router *router = &making->router;
    hem_pattern *pattern = making->pattern;
    const hemi_platform *platform = router->world->root->platform;
    if (hemi_making_is_well(making))
        hemi_making_fail(making, hemi_pattern_meet(pattern));
    hem_status status = agree(making);
    free_wants(making);
    making->pattern = NULL;
    if (status != HEM_OK) {
        hemi_pattern_drop(pattern);
        return status;
    }
    hemi_router_hold(router, (pattern->neighbour_count + 1) * sizeof *pattern->neighbours);
    pattern->setup_messages = router->messages;
    pattern->setup_bytes = router->bytes;
    pattern->setup_peak_bytes = router->peak;
    pattern->setup_ns = platform->now(platform->ctx) - making->began_ns;
    hemi_pattern_adopt(pattern, router->world);
    *pattern_p = pattern;
    return HEM_OK;
}

hem_status hemi_making_finish(hemi_making *making, hem_pattern **pattern_p) {
    hemi_bag bag = {0};
    sort_wants(making);
    tell_owners(making, &bag);
    hemi_router_hold(&making->router, bag.room);
    if (making->status == HEM_OK)
        hemi_making_fail(making, link_sends(making, &bag));
    if (making->status == HEM_OK)
        hemi_making_fail(making, link_recvs(making));
    hemi_router_drop(&making->router, bag.room);
    hemi_bag_free(&bag);
    return hemi_making_conclude(making, pattern_p);
}
