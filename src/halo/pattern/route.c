/*
 * How this works. The ranks from `low` on, `many` of them, are cut into a lower and an upper half. Each
 * rank hands what is for the other half to its mirror image there, takes what the mirror has for
 * this half, and goes on with its own half, until that is the rank alone. If `many` is odd, the rank
 * in the middle has no mirror: it belongs to the lower half, and hands over to the first rank of the
 * upper one, which takes twice. All records of one sender for one receiver take the same way, so they
 * stay in order.
 *
 * A hand-over is a head of fixed size and, if there is anything, a body. Both are started before
 * anything is waited for, so no cycle of ranks can block. A rank that fails goes on with an empty bag:
 * its partners get what they wait for, and the next agreement tells them. If there is no memory for
 * a body, it is refused, which the sender hears.
 *
 * Each route of a world has a number, which its messages carry: see HEMI_SLOT_TAG. What a failed
 * route left on a lane is older than what the next one expects, and is thrown away. Partners only
 * depend on the ranks, so that happens before numbers come around.
 */
#include "halo/pattern/route.h"

#include "channel/lane.h"
#include "halo/pattern/bag.h"

#include <hem/coll.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAGIC 0x6d746f7572u

/** What is handed over. Fits into a slot. */
typedef struct head {
    uint64_t magic;
    uint64_t number; /* of the route */
    uint64_t bytes;
    uint64_t records;
} head;

_Static_assert(sizeof(head) <= HEMI_SLOT_BYTES, "a head needs no ring");

/** A route that is under way. */
typedef struct route {
    hemi_router *router;
    hemi_bag *bag;
    uint64_t number;
    hem_status status; /* the first failure */
    char text[256];
} route;

/** With whom this rank deals in a round. */
typedef struct partners {
    hemi_ranks keep;
    uint32_t to;
    uint32_t from[2];
    uint32_t from_count;
} partners;

int64_t hemi_router_left(const hemi_router *router) {
    const hemi_platform *platform = router->world->root->platform;
    if (router->deadline_ns == UINT64_MAX)
        return HEM_FOREVER;
    uint64_t now = platform->now(platform->ctx);
    return now < router->deadline_ns ? (int64_t)(router->deadline_ns - now) : 0;
}

/* Remember the first failure, and go on with nothing. */
static void give_up(route *r, hem_status status) {
    if (r->status == HEM_OK) {
        r->status = status;
        (void)snprintf(r->text, sizeof r->text, "%s", hem_last_error());
    }
    hemi_bag_free(r->bag);
}

static hem_status no_memory(const route *r, uint64_t bytes) {
    return hemi_fail(HEM_ERR_MEMORY, "%s: no memory to route %" PRIu64 " bytes",
                     hemi_call_name(r->router->call), bytes);
}

static void note_peak(hemi_router *router, uint64_t bytes) {
    hemi_router_hold(router, bytes);
    hemi_router_drop(router, bytes);
}

static void plan_round(partners *p, hemi_ranks all, uint32_t me) {
    uint32_t many = all.end - all.low;
    uint32_t middle = all.low + (many + 1) / 2;
    uint32_t mirror = all.end - 1 - (me - all.low);
    p->keep = me < middle ? (hemi_ranks){all.low, middle} : (hemi_ranks){middle, all.end};
    p->to = mirror == me ? middle : mirror;
    p->from_count = 0;
    if (mirror != me)
        p->from[p->from_count++] = mirror;
    if (many % 2 == 1 && me == middle)
        p->from[p->from_count++] = middle - 1;
}

hem_status hemi_route_ready(hem_world *world) {
    hemi_ranks mine = {0, world->size};
    hem_status status = HEM_OK;
    if (world->size <= HEMI_ROUTE_DIRECT)
        return HEM_OK;
    hemi_engine_lock(world);
    while (mine.end - mine.low > 1 && status == HEM_OK) {
        partners p;
        plan_round(&p, mine, world->rank);
        status = hemi_lane_ready(world, p.to, HEMI_CHANNEL_SETUP);
        for (uint32_t i = 0; i < p.from_count && status == HEM_OK; i++)
            status = hemi_lane_ready(world, p.from[i], HEMI_CHANNEL_SETUP);
        mine = p.keep;
    }
    hemi_engine_unlock(world);
    return status;
}

static void begin(const route *r, hemi_letter *letter, bool sends, uint32_t peer, void *data,
                  size_t bytes) {
    hem_world *world = r->router->world;
    hemi_letter_fill(letter, world, r->router->call, sends, peer, HEMI_CHANNEL_SETUP, data, bytes);
    letter->tag = (uint32_t)(r->number & 0xffff);
    hemi_engine_lock(world);
    hemi_op_begin(&letter->op);
    hemi_engine_unlock(world);
}

/* Wait for a letter; when time is up, take it back: its memory is the caller's again. */
static hem_status finish(const route *r, hemi_letter *letter) {
    hem_world *world = r->router->world;
    hem_status status = hemi_engine_wait(world, &letter->op, hemi_router_left(r->router));
    if (status == HEM_ERR_TIMEOUT) {
        hemi_engine_lock(world);
        if (!hemi_op_is_done(&letter->op))
            hemi_letter_cancel(letter, hemi_fail(status, "%s: rank %u did not %s in time",
                                                 hemi_call_name(letter->op.call), letter->peer,
                                                 letter->sends ? "listen" : "answer"));
        hemi_engine_unlock(world);
        status = hemi_op_result(&letter->op);
    }
    hemi_engine_settle(world);
    return status;
}

/* A body that nobody has room for: let its sender know. */
static void refuse_body(const route *r, uint32_t peer) {
    hemi_letter letter;
    begin(r, &letter, false, peer, NULL, 0);
    (void)finish(r, &letter);
}

static hem_status take_body(route *r, const partners *p, uint32_t peer, const head *h) {
    hemi_bag *bag = r->bag;
    if (h->bytes == 0)
        return HEM_OK;
    if (h->bytes > PTRDIFF_MAX || !hemi_bag_reserve(bag, h->bytes, true)) {
        refuse_body(r, peer);
        return no_memory(r, h->bytes);
    }
    hemi_letter letter;
    unsigned char *at = bag->bytes + bag->used;
    begin(r, &letter, false, peer, at, h->bytes);
    hem_status status = finish(r, &letter);
    if (status != HEM_OK)
        return status;
    if (letter.op.bytes == 0)
        return hemi_fail(HEM_ERR_MEMORY, "%s: rank %u could not hand over %" PRIu64 " bytes",
                         hemi_call_name(r->router->call), peer, h->bytes);
    hemi_ranks all = {0, r->router->world->size};
    if (letter.op.bytes != h->bytes || !hemi_bag_check(at, h->bytes, h->records, p->keep, all))
        return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u routed nonsense",
                         hemi_call_name(r->router->call), peer);
    bag->used += h->bytes;
    bag->records += h->records;
    return HEM_OK;
}

static hem_status check_head(const route *r, const hemi_letter *letter, const head *h) {
    if (letter->op.bytes == sizeof *h && h->magic == HEAD_MAGIC && h->number == r->number &&
        (h->bytes != 0 || h->records == 0))
        return HEM_OK;
    return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u is in another call",
                     hemi_call_name(r->router->call), letter->peer);
}

/* Take what a partner hands over. Whatever goes wrong, nobody waits for this rank. */
static void take(route *r, const partners *p, hemi_letter *letter, const head *h) {
    hem_status status = finish(r, letter);
    if (status == HEM_OK)
        status = check_head(r, letter, h);
    if (status == HEM_OK)
        status = take_body(r, p, letter->peer, h);
    if (status != HEM_OK)
        give_up(r, status);
    else if (r->status != HEM_OK)
        hemi_bag_free(r->bag);
}

/* A body that could not be sent is waited for: send an empty one. */
static void send_excuse(const route *r, uint32_t peer) {
    hemi_letter letter;
    begin(r, &letter, true, peer, NULL, 0);
    (void)finish(r, &letter);
}

static void end_sending(route *r, hemi_letter *letter, uint64_t bytes) {
    hemi_router *router = r->router;
    hem_status status = finish(r, letter);
    if (status == HEM_OK) {
        router->messages++;
        router->bytes += bytes;
        return;
    }
    bool unsent = status == HEM_ERR_MEMORY;
    if (status == HEM_ERR_RANGE)
        /* The receiver has refused it: it says why in the next agreement. */
        status = hemi_fail(HEM_ERR_MEMORY, "%s: rank %u could not take %" PRIu64 " bytes",
                           hemi_call_name(router->call), letter->peer, bytes);
    give_up(r, status);
    if (unsent)
        send_excuse(r, letter->peer);
}

static void one_round(route *r, const partners *p) {
    hemi_bag out = {0};
    if (!hemi_bag_split(r->bag, p->keep, &out))
        give_up(r, no_memory(r, r->bag->used));
    head mine = {HEAD_MAGIC, r->number, out.used, out.records};
    head theirs[2] = {{0}};
    hemi_letter takes[2];
    hemi_letter sends[2];
    for (uint32_t i = 0; i < p->from_count; i++)
        begin(r, &takes[i], false, p->from[i], &theirs[i], sizeof theirs[i]);
    begin(r, &sends[0], true, p->to, &mine, sizeof mine);
    if (out.used > 0)
        begin(r, &sends[1], true, p->to, out.bytes, out.used);
    for (uint32_t i = 0; i < p->from_count; i++)
        take(r, p, &takes[i], &theirs[i]);
    note_peak(r->router, r->bag->room + out.room);
    end_sending(r, &sends[0], sizeof mine);
    if (out.used > 0)
        end_sending(r, &sends[1], out.used);
    hemi_bag_free(&out);
}

static void put_in_order(route *r, enum hemi_bag_key key) {
    uint64_t most = 0;
    if (!hemi_bag_sort(r->bag, key, &most))
        give_up(r, no_memory(r, r->bag->used));
    note_peak(r->router, r->bag->room + most);
}

static void route_by_crystal(route *r) {
    const hem_world *world = r->router->world;
    hemi_ranks mine = {0, world->size};
    while (mine.end - mine.low > 1) {
        partners p;
        plan_round(&p, mine, world->rank);
        one_round(r, &p);
        mine = p.keep;
    }
    put_in_order(r, HEMI_BAG_FROM);
}

/* One parcel per receiver: its records stand together. */
static size_t make_parcels(const route *r, hem_parcel *parcels) {
    const hemi_bag *bag = r->bag;
    size_t count = 0;
    uint32_t to = UINT32_MAX;
    for (const hemi_record *at = hemi_bag_next(bag, NULL); at != NULL;
         at = hemi_bag_next(bag, at)) {
        if (count == 0 || at->to != to)
            parcels[count++] = (hem_parcel){(int)at->to, 0, at};
        parcels[count - 1].bytes += hemi_record_span(at->bytes);
        to = at->to;
    }
    return count;
}

static uint64_t count_records(const hem_parcel *parcel) {
    uint64_t records = 0;
    const unsigned char *bytes = parcel->data;
    for (size_t at = 0; at < parcel->bytes && parcel->bytes - at >= sizeof(hemi_record);
         records++) {
        hemi_record record;
        memcpy(&record, bytes + at, sizeof record);
        if (record.bytes > parcel->bytes)
            break;
        at += hemi_record_span(record.bytes);
    }
    return records;
}

static hem_status collect(route *r, const hem_sparse_result *result) {
    const hem_world *world = r->router->world;
    size_t total = 0;
    for (size_t i = 0; i < result->count; i++)
        total += result->parcels[i].bytes;
    if (!hemi_bag_reserve(r->bag, total, true))
        return no_memory(r, total);
    note_peak(r->router, 2 * total);
    for (size_t i = 0; i < result->count; i++) {
        const hem_parcel *parcel = &result->parcels[i];
        uint32_t from = (uint32_t)parcel->peer;
        uint64_t records = count_records(parcel);
        if (!hemi_bag_check(parcel->data, parcel->bytes, records,
                            (hemi_ranks){world->rank, world->rank + 1},
                            (hemi_ranks){from, from + 1}))
            return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u routed nonsense",
                             hemi_call_name(r->router->call), from);
        if (parcel->bytes > 0)
            memcpy(r->bag->bytes + r->bag->used, parcel->data, parcel->bytes);
        r->bag->used += parcel->bytes;
        r->bag->records += records;
    }
    return HEM_OK;
}

static void route_directly(route *r) {
    hemi_router *router = r->router;
    hem_parcel parcels[HEMI_ROUTE_DIRECT];
    hem_sparse_result result = {0};
    put_in_order(r, HEMI_BAG_TO);
    size_t count = make_parcels(r, parcels);
    hem_status status =
        hem_sparse(router->world, parcels, count, &result, hemi_router_left(router));
    /* What is sent and what has come are there a second time meanwhile. */
    uint64_t twice = r->bag->used;
    for (size_t i = 0; i < result.count; i++)
        twice += result.parcels[i].bytes;
    note_peak(router, r->bag->room + twice);
    for (size_t i = 0; i < count && status == HEM_OK; i++) {
        router->messages += (uint32_t)parcels[i].peer != router->world->rank;
        router->bytes += (uint32_t)parcels[i].peer != router->world->rank ? parcels[i].bytes : 0;
    }
    hemi_bag_free(r->bag);
    if (status == HEM_OK && r->status == HEM_OK)
        status = collect(r, &result);
    if (status != HEM_OK)
        give_up(r, status);
    hem_sparse_free(&result);
}

hem_status hemi_route(hemi_router *router, hemi_bag *bag) {
    hem_world *world = router->world;
    route r = {.router = router, .bag = bag, .number = ++world->routes_made};
    hemi_ranks all = {0, world->size};
    if (!hemi_bag_check(bag->bytes, bag->used, bag->records, all,
                        (hemi_ranks){world->rank, world->rank + 1}))
        give_up(&r, hemi_fail(HEM_ERR_RANGE, "%s: a record is for a rank that does not exist",
                              hemi_call_name(router->call)));
    note_peak(router, bag->room);
    if (world->size > HEMI_ROUTE_DIRECT)
        route_by_crystal(&r);
    else if (world->size > 1)
        route_directly(&r);
    return r.status == HEM_OK ? HEM_OK : hemi_fail(r.status, "%s", r.text);
}
