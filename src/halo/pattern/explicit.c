/*
 * How this works. Each rank tells every peer of a list which domain it is of and how long it is, in one
 * route. What a peer tells of its receives is compared with the own sends, one by one, and the other way
 * round; then both sides know the peer's domain and have equally many links.
 */
#include "base/options.h"
#include "core/flight.h"
#include "halo/pattern/making.h"
#include "halo/pattern/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FINGERPRINT 0x6c697374u

static const char call[] = "hem_pattern_explicit";

/* What a peer hears of a list. */
typedef struct notice {
    uint32_t sends; /* 1: it is sent to the peer; 0: it is received from it */
    uint32_t domain;
    uint64_t count;
} notice;

/* One direction: the caller's lists, and their order by peer. */
typedef struct lists {
    const hem_point_list *all;
    size_t count;
    hemi_keyed *order; /* key: peer, value: which */
    bool sends;
} lists;

typedef struct job {
    hem_world *world;
    const size_t *domain_points;
    size_t domain_count;
    lists sends;
    lists receives;
} job;

static hem_status no_memory(size_t count) {
    return hemi_fail(HEM_ERR_MEMORY, "%s: no memory for lists of %zu points", call, count);
}

static hem_status check_list(const job *j, const lists *l, size_t which) {
    const hem_point_list *list = &l->all[which];
    const char *what = l->sends ? "send" : "receive";
    if (list->peer < 0 || (uint32_t)list->peer >= j->world->size)
        return hemi_fail(HEM_ERR_RANGE, "%s: %s list %zu is for rank %d, which does not exist",
                         call, what, which, list->peer);
    if (list->domain >= j->domain_count)
        return hemi_fail(HEM_ERR_RANGE, "%s: %s list %zu is of domain %zu of %zu", call, what,
                         which, list->domain, j->domain_count);
    if (list->points == NULL && list->count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: the points of %s list %zu are NULL", call, what, which);
    if (list->count > PTRDIFF_MAX / sizeof(int64_t))
        return hemi_fail(HEM_ERR_RANGE, "%s: %s list %zu cannot have %zu points", call, what, which,
                         list->count);
    size_t points = j->domain_points[list->domain];
    for (size_t i = 0; i < list->count; i++)
        if (list->points[i] < 0 || (uint64_t)list->points[i] >= points)
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: %s list %zu names point %" PRId64 " of domain %zu, which has %zu",
                             call, what, which, list->points[i], list->domain, points);
    return HEM_OK;
}

static hem_status check_lists(const job *j, const lists *l) {
    hem_status status = HEM_OK;
    if (l->all == NULL && l->count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: there are %zu lists, but they are NULL", call, l->count);
    for (size_t i = 0; i < l->count && status == HEM_OK; i++)
        status = check_list(j, l, i);
    return status;
}

static size_t total_of(const lists *l) {
    size_t total = 0;
    for (size_t i = 0; i < l->count; i++)
        if (__builtin_add_overflow(total, l->all[i].count, &total))
            return SIZE_MAX;
    return total;
}

/* Ordered by domain and position, a point that is named twice stands beside itself. */
static hem_status find_twice(const job *j, hemi_keyed *items, size_t total) {
    size_t next = 0;
    for (size_t i = 0; i < j->receives.count; i++)
        for (size_t k = 0; k < j->receives.all[i].count; k++)
            items[next++] =
                (hemi_keyed){(uint64_t)j->receives.all[i].points[k], j->receives.all[i].domain};
    hemi_order(items, items + total, total);
    for (size_t i = 0; i < total; i++)
        items[i] = (hemi_keyed){items[i].value, items[i].key};
    hemi_order(items, items + total, total);
    for (size_t i = 1; i < total; i++)
        if (items[i].key == items[i - 1].key && items[i].value == items[i - 1].value)
            return hemi_fail(HEM_ERR_ARG,
                             "%s: point %" PRIu64 " of domain %" PRIu64 " is received twice", call,
                             items[i].value, items[i].key);
    return HEM_OK;
}

static hem_status check_once(const job *j) {
    size_t total = total_of(&j->receives);
    if (total > PTRDIFF_MAX / 2 / sizeof(hemi_keyed) - 1)
        return no_memory(total);
    hemi_keyed *items = malloc((2 * total + 1) * sizeof *items);
    if (items == NULL)
        return no_memory(total);
    hem_status status = find_twice(j, items, total);
    free(items);
    return status;
}

static hem_status order_lists(lists *l) {
    l->order = malloc((2 * l->count + 1) * sizeof *l->order);
    if (l->order == NULL)
        return no_memory(l->count);
    for (size_t i = 0; i < l->count; i++)
        l->order[i] = (hemi_keyed){(uint64_t)l->all[i].peer, i};
    hemi_order(l->order, l->order + l->count, l->count);
    return HEM_OK;
}

static hem_status check_job(job *j) {
    if (j->domain_points == NULL && j->domain_count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: domain_points is NULL", call);
    if (j->domain_count > UINT32_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%s: %zu domains are too many", call, j->domain_count);
    for (size_t d = 0; d < j->domain_count; d++)
        if (j->domain_points[d] > INT64_MAX)
            return hemi_fail(HEM_ERR_RANGE, "%s: domain %zu cannot have %zu points", call, d,
                             j->domain_points[d]);
    hem_status status = check_lists(j, &j->sends);
    if (status == HEM_OK)
        status = check_lists(j, &j->receives);
    if (status == HEM_OK)
        status = check_once(j);
    if (status == HEM_OK)
        status = order_lists(&j->sends);
    if (status == HEM_OK)
        status = order_lists(&j->receives);
    return status;
}

static hem_status tell(const job *j, const lists *l, hemi_bag *bag) {
    hem_status status = HEM_OK;
    for (size_t i = 0; i < l->count && status == HEM_OK; i++) {
        notice n = {l->sends, (uint32_t)l->all[i].domain, l->all[i].count};
        status = hemi_bag_add(bag, j->world->rank, (uint32_t)l->all[i].peer, &n, sizeof n);
    }
    return status;
}

/* The next notice of the other side of `sends`. */
static const hemi_record *next_notice(const hemi_bag *bag, const hemi_record *record, bool sends,
                                      notice *n) {
    do {
        record = hemi_bag_next(bag, record);
        if (record != NULL && record->bytes == sizeof *n)
            memcpy(n, hemi_record_data(record), sizeof *n);
    } while (record != NULL && (record->bytes != sizeof *n || n->sends == sends));
    return record;
}

/* One side has a list that the other has not. `mine`: this rank has it. */
static hem_status fail_single(const job *j, const lists *l, uint32_t peer, size_t number,
                              bool mine) {
    bool sent = l->sends == mine;
    uint32_t me = j->world->rank;
    uint32_t from = l->sends ? me : peer;
    uint32_t to = l->sends ? peer : me;
    return hemi_fail(HEM_ERR_MISMATCH,
                     "%s: rank %u %s rank %u list %zu, but rank %u does not %s it", call,
                     sent ? from : to, sent ? "sends" : "receives from", sent ? to : from, number,
                     sent ? to : from, sent ? "receive" : "send");
}

static hem_status add_link(hemi_making *making, hemi_links *links, const hem_point_list *list,
                           uint32_t there) {
    if (list->count == 0)
        return HEM_OK;
    size_t bytes = list->count * sizeof *list->points;
    hemi_link link = {.peer = (uint32_t)list->peer,
                      .here = (uint32_t)list->domain,
                      .there = there,
                      .turn = {{0, 1}, {1, 1}},
                      .points = {.total = list->count, .list = malloc(bytes)}};
    if (link.points.list == NULL)
        return no_memory(list->count);
    memcpy(link.points.list, list->points, bytes);
    hemi_router_hold(&making->router, bytes);
    links->links[links->count++] = link;
    return HEM_OK;
}

/* Compare what this rank has with what its peers have told, and make the links. */
static hem_status match(hemi_making *making, const job *j, const lists *l, const hemi_bag *bag,
                        hemi_links *links) {
    links->links = calloc(l->count + 1, sizeof *links->links);
    if (links->links == NULL)
        return no_memory(l->count);
    hemi_router_hold(&making->router, (l->count + 1) * sizeof *links->links);
    notice n = {0};
    const hemi_record *record = next_notice(bag, NULL, l->sends, &n);
    hem_status status = HEM_OK;
    size_t number = 0;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; status == HEM_OK && (i < l->count || record != NULL);) {
        uint32_t mine = i < l->count ? (uint32_t)l->order[i].key : UINT32_MAX;
        uint32_t theirs = record != NULL ? record->from : UINT32_MAX;
        uint32_t peer = mine < theirs ? mine : theirs;
        number = peer == last ? number + 1 : 0;
        last = peer;
        if (mine != theirs)
            return fail_single(j, l, peer, number, mine < theirs);
        const hem_point_list *list = &l->all[l->order[i++].value];
        if (n.count != list->count)
            return hemi_fail(HEM_ERR_MISMATCH,
                             "%s: list %zu from rank %u to rank %u has %" PRIu64
                             " points there and %" PRIu64 " here",
                             call, number, l->sends ? j->world->rank : peer,
                             l->sends ? peer : j->world->rank,
                             l->sends ? (uint64_t)list->count : n.count,
                             l->sends ? n.count : (uint64_t)list->count);
        status = add_link(making, links, list, n.domain);
        record = next_notice(bag, record, l->sends, &n);
    }
    return status;
}

static void describe(hem_pattern *pattern, const job *j) {
    for (size_t d = 0; d < j->domain_count; d++) {
        pattern->domains[d].id = (int64_t)d;
        pattern->domains[d].points = j->domain_points[d];
    }
    for (size_t i = 0; i < j->receives.count; i++)
        pattern->domains[j->receives.all[i].domain].halo_points += j->receives.all[i].count;
}

static hem_status build(hemi_making *making, const job *j, hem_pattern **pattern_p) {
    hemi_bag bag = {0};
    describe(making->pattern, j);
    hemi_router_hold(&making->router,
                     2 * (j->sends.count + j->receives.count + 1) * sizeof(hemi_keyed));
    hemi_making_fail(making, tell(j, &j->sends, &bag));
    hemi_making_fail(making, tell(j, &j->receives, &bag));
    hemi_making_route(making, &bag);
    hemi_router_hold(&making->router, bag.room);
    /* What a peer has not told may have been lost with another rank's failure. */
    if (making->status == HEM_OK)
        hemi_making_doubt(making, match(making, j, &j->sends, &bag, &making->pattern->sends));
    if (making->status == HEM_OK)
        hemi_making_doubt(making, match(making, j, &j->receives, &bag, &making->pattern->recvs));
    hemi_router_drop(&making->router, bag.room);
    hemi_bag_free(&bag);
    return hemi_making_conclude(making, pattern_p);
}

hem_status hem_pattern_explicit(hem_world *world, const hem_explicit_options *options,
                                hem_pattern **pattern_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: world is NULL", call);
    hem_explicit_options o = {0};
    hemi_making making;
    job j = {.world = world, .sends = {.sends = true}};
    hem_status status = hemi_options_read(&o, sizeof o, options, call);
    if (status == HEM_OK && pattern_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: pattern_p is NULL", call);
    if (status == HEM_OK) {
        j.domain_points = o.domain_points;
        j.domain_count = o.domain_count;
        j.sends.all = o.sends;
        j.sends.count = o.send_count;
        j.receives.all = o.receives;
        j.receives.count = o.receive_count;
        status = check_job(&j);
    }
    status = hemi_making_begin(&making, world, HEMI_CALL_PATTERN_EXPLICIT, HEMI_PATTERN_EXPLICIT,
                               j.domain_count, FINGERPRINT, status, o.timeout_ns);
    if (status == HEM_OK)
        status = build(&making, &j, pattern_p);
    free(j.sends.order);
    free(j.receives.order);
    return status;
}
