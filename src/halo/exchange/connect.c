/*
 * Connecting an exchange: where the areas are, and what both sides mean by each part.
 *
 * Two rounds. First every receiver tells each neighbour where its messages land and which parts it
 * expects; the owner compares them with what it would send. Then every owner tells in which order of
 * axes it packs, and which parts it leaves in its field, to be copied from there. Failures are agreed
 * at the end: a rank that has found one goes on with empty hands until then.
 */
#include "halo/exchange/connect.h"
#include "core/heap.h"
#include "core/team.h"
#include "halo/exchange/engine.h"

#include <stdlib.h>
#include <string.h>

uint64_t hemi_parts_room(const hemi_parts *parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->count; i++)
        sum += hemi_part_room(&parts->parts[i]);
    return sum;
}

static uint64_t count_direct(const hemi_parts *parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (parts->parts[i].direct)
            sum += parts->parts[i].bytes;
    return sum;
}

static void add_up(hemi_parts *parts) {
    const hem_exchange_how everything = {0};
    parts->all = hemi_parts_room(parts);
    parts->direct = count_direct(parts);
    parts->bytes = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (hemi_part_is_in(&parts->parts[i], &everything) && !parts->parts[i].direct)
            parts->bytes += hemi_part_room(&parts->parts[i]);
}

/* Shapes of what this rank sends, and how long everything is. */
static hem_status shape_sends(hem_exchange *x) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_parts *sends = &x->lanes[l].sends;
        for (size_t i = 0; i < sends->count && status == HEM_OK; i++) {
            hemi_part_order(&sends->parts[i], sends->parts[i].order);
            status = hemi_part_shape(&sends->parts[i]);
        }
        hemi_parts *recvs = &x->lanes[l].recvs;
        for (size_t i = 0; i < recvs->count && status == HEM_OK; i++) {
            hemi_part *part = &recvs->parts[i];
            const hemi_part_key *key = &part->key;
            uint64_t n = key->points;
            if (__builtin_mul_overflow(n, key->levels, &n) ||
                __builtin_mul_overflow(n, key->half != 0 ? 1 : key->components, &n) ||
                __builtin_mul_overflow(n, key->element, &n) || n > INT64_MAX / 4)
                return hemi_fail(HEM_ERR_LIMIT, "hem_exchange_create: field %u is too large",
                                 key->number);
            part->bytes = n;
            part->unwanted = part->frozen;
        }
    }
    return status;
}

static uint64_t area_at(hem_exchange *x, size_t lane) {
    uint64_t sum = 0;
    for (size_t l = 0; l < lane; l++)
        if (x->lanes[l].way.in_bytes != UINT64_MAX)
            sum += hemi_area_bytes(x->lanes[l].way.in_bytes);
    return sum;
}

static void orphan(hemi_child *child, bool dead) {
    hem_exchange *x =
        (hem_exchange *)(void *)((unsigned char *)child - offsetof(struct hem_exchange, child));
    bool alone = true;
    /* All ranks have closed the world, and tell their kernels so. */
    if (!dead) {
        hemi_halo_device_drain(x);
        alone = hemi_halo_engine_part(x);
    }
    /* Where all neighbours have given it up, too, nothing of theirs is on its way any more. */
    hemi_halo_device_free(x, dead || !hemi_exchange_all_left(x));
    if (!alone)
        x->memory = 0; /* somebody may still write there: it is not given back */
    hemi_exchange_release(x);
    x->world = NULL;
}

uint64_t hemi_lane_landing(const hem_exchange *x, const hemi_halo_lane *lane) {
    uint64_t forward = hemi_parts_room(&lane->recvs);
    uint64_t reverse = hemi_parts_room(&lane->sends);
    if (x->on_device)
        return 0; /* the messages are in device memory */
    return hemi_landing_bytes(forward > reverse ? forward : reverse);
}

/* One block holds the areas of all neighbours. A lane to oneself has none. */
static hem_status allocate(hem_exchange *x, hem_world *world) {
    hemi_root *root = world->root;
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        bool own = lane->way.peer == world->rank;
        lane->way.in_bytes = own ? UINT64_MAX : hemi_lane_landing(x, lane);
    }
    x->world = world;
    x->memory_bytes = area_at(x, x->lane_count);
    if (x->memory_bytes == 0 && x->on_device)
        x->memory_bytes = HEMI_LINE; /* so that it hears when the world closes */
    if (x->memory_bytes == 0)
        return HEM_OK;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank, x->memory_bytes,
                                        HEMI_HEAP_RESERVED, &x->memory);
    if (status != HEM_OK) {
        x->memory = 0;
        return status;
    }
    x->child.orphan = orphan;
    hemi_world_adopt(world, &x->child);
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer != world->rank)
            x->lanes[l].way.in = hemi_arena_at(&root->arena, x->memory + area_at(x, l));
    return HEM_OK;
}

void hemi_exchange_release(hem_exchange *x) {
    if (x->memory == 0 || x->world == NULL)
        return;
    hemi_root *root = x->world->root;
    if (!x->world->keep_memory)
        hemi_heap_free(&root->arena, root->platform, root->rank, x->memory, root->cache_bytes);
    x->memory = 0;
}

/* Domains of this rank among each other: both sides are here. */
static hem_status shape_own(hem_exchange *x) {
    hemi_halo_lane *lane = hemi_lane_with(x, x->world->rank);
    if (lane == NULL)
        return HEM_OK;
    if (lane->sends.count != lane->recvs.count)
        return hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: the domains of this rank do not "
                                           "have the same fields");
    hem_status status = HEM_OK;
    uint64_t most = 0;
    for (size_t i = 0; i < lane->recvs.count && status == HEM_OK; i++) {
        hemi_part *part = &lane->recvs.parts[i];
        hemi_part *from = &lane->sends.parts[i];
        most = part->bytes > most ? part->bytes : most;
        if (memcmp(&part->key, &from->key, sizeof part->key) != 0)
            return hemi_part_differs(x, x->world->rank, &from->key, &part->key);
        memcpy(part->order, from->order, sizeof part->order);
        status = hemi_part_shape(part);
        if (status == HEM_OK)
            status = hemi_shape_pair_make(part->shape, from->shape, &part->pair);
        from->unwanted = part->unwanted;
    }
    x->scratch = most > 0 ? malloc(most) : NULL;
    if (status == HEM_OK && most > 0 && x->scratch == NULL)
        status = hemi_connect_no_memory();
    return status;
}

/* What came back from a halo is negated before it is combined: contiguous, as it landed. */
static hem_status shape_packed(hem_exchange *x) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count; l++)
        for (size_t i = 0; i < x->lanes[l].sends.count && status == HEM_OK; i++) {
            hemi_part *part = &x->lanes[l].sends.parts[i];
            if (!part->negated)
                continue;
            uint64_t element = part->field->element;
            hemi_shape_spec spec = {.element = element,
                                    .axis_count = 1,
                                    .axes = {{part->bytes / element, (int64_t)element}}};
            status = hemi_shape_make(&spec, &part->packed);
        }
    return status;
}

static void first_failure(hem_status *status, hem_status next, char *sentence) {
    if (*status != HEM_OK || next == HEM_OK)
        return;
    *status = next;
    hemi_error_save(sentence);
}

/* A third one, of an exchange on a device: which values go straight into halos. */
static void talk_of_halos(hem_exchange *x, hemi_router *router, hem_status *status,
                          char *sentence) {
    hemi_bag bag = {0};
    if (*status == HEM_OK)
        first_failure(status, hemi_offer_say(x, &bag), sentence);
    first_failure(status, hemi_route(router, &bag), sentence);
    if (*status == HEM_OK)
        first_failure(status, hemi_offer_hear(x, &bag), sentence);
    hemi_bag_free(&bag);
}

/* The two rounds. Whoever fails takes part in the second one with nothing to say. */
static hem_status talk(hem_exchange *x, hemi_router *router, char *sentence) {
    hemi_bag bag = {0};
    hem_status status = HEM_OK;
    first_failure(&status, hemi_hello_say(x, &bag), sentence);
    first_failure(&status, hemi_route(router, &bag), sentence);
    if (status == HEM_OK)
        first_failure(&status, hemi_hello_hear(x, &bag), sentence);
    hemi_bag_free(&bag);
    bag = (hemi_bag){0};
    if (status == HEM_OK)
        first_failure(&status, hemi_answer_say(x, &bag), sentence);
    first_failure(&status, hemi_route(router, &bag), sentence);
    if (status == HEM_OK)
        first_failure(&status, hemi_answer_hear(x, &bag), sentence);
    hemi_bag_free(&bag);
    if (x->device != NULL && x->way != HEM_EXCHANGE_STAGED)
        talk_of_halos(x, router, &status, sentence);
    if (status == HEM_OK)
        first_failure(&status, shape_own(x), sentence);
    if (status == HEM_OK)
        first_failure(&status, shape_packed(x), sentence);
    if (status == HEM_OK && x->device != NULL)
        first_failure(&status, hemi_halo_device_settle(x), sentence);
    return status;
}

/* Some rank has a field in device memory: what this one has allocated for the host is too much. */
static hem_status go_to_device(hem_exchange *x, hem_world *world, int64_t timeout_ns) {
    hem_status status = HEM_OK;
    if (!x->on_device) {
        x->on_device = true;
        if (x->memory != 0)
            hemi_world_abandon(world, &x->child);
        hemi_exchange_release(x);
        status = allocate(x, world);
    }
    return hemi_halo_device_connect(x, status, timeout_ns);
}

hem_status hemi_exchange_connect(hem_exchange *x, hem_world *world, hem_status status) {
    hemi_router router = {0};
    hemi_votes votes = {.mine = x->on_device};
    if (status == HEM_OK)
        status = hemi_parts_make(x);
    if (status == HEM_OK)
        status = shape_sends(x);
    if (status == HEM_OK)
        status = allocate(x, world);
    status = hemi_router_begin(&router, world, HEMI_CALL_EXCHANGE_CREATE, status, (uint64_t)x->way,
                               x->setup_timeout_ns, &votes);
    if (status == HEM_OK && votes.all == 0 && x->way > HEM_EXCHANGE_BEST)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "hem_exchange_create: no rank has a field in device "
                                              "memory, which the way that was asked for is about");
    if (status == HEM_OK && votes.all != 0) {
        /* Here, where all ranks have agreed, so that all count alike. */
        x->number = ++world->objects_made;
        status = go_to_device(x, world, hemi_router_left(&router));
    }
    if (status != HEM_OK)
        return status;
    char sentence[HEMI_ERROR_MAX] = "";
    status = talk(x, &router, sentence);
    if (status != HEM_OK)
        hemi_error_restore(sentence);
    status = hemi_team_agree(world, HEMI_CALL_EXCHANGE_CREATE, status, 0, NULL, 0,
                             hemi_router_left(&router));
    if (status == HEM_OK && x->device != NULL)
        hemi_halo_engine_open(x->device);
    for (size_t l = 0; l < x->lane_count; l++) {
        add_up(&x->lanes[l].sends);
        add_up(&x->lanes[l].recvs);
    }
    return status;
}
