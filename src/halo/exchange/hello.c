/* What receivers tell their neighbours, and what those make of it. */
#include "halo/exchange/connect.h"
#include "halo/exchange/device.h"

#include <stdlib.h>
#include <string.h>

/* What a receiver tells a neighbour, followed by keys and one byte for each: whether it is wanted. */
typedef struct hello {
    uint64_t where; /* of the area, in the arena */
    uint64_t landing_bytes;
    uint64_t count;
    /* Of an exchange on a device: the area with its landing buffers, and whose memory that is. */
    uint64_t device_at;
    uint64_t device_bytes;
    uint8_t uuid[HEMI_DEVICE_UUID];
} hello;

typedef struct hello_part {
    hemi_part_key key;
    uint32_t unwanted;
    uint32_t piece; /* of what the receiver has shown; 0: none */
} hello_part;

hem_status hemi_connect_no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory to tell the neighbours");
}

hem_status hemi_hello_say(const hem_exchange *x, hemi_bag *bag) {
    uint32_t rank = x->world->rank;
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++) {
        const hemi_halo_lane *lane = &x->lanes[l];
        if (lane->way.peer == rank)
            continue;
        size_t bytes = sizeof(hello) + lane->recvs.count * sizeof(hello_part);
        unsigned char *text = calloc(1, bytes);
        if (text == NULL)
            return hemi_connect_no_memory();
        hello *head = (hello *)(void *)text;
        hello_part *parts = (hello_part *)(void *)(head + 1);
        *head = (hello){.where = (uint64_t)((const unsigned char *)lane->way.in -
                                            (const unsigned char *)x->world->root->arena.base),
                        .landing_bytes = lane->way.in_bytes,
                        .count = lane->recvs.count};
        if (x->device != NULL) {
            head->device_at = x->device->reach[l].in_at;
            head->device_bytes = x->device->reach[l].in_bytes;
            memcpy(head->uuid, x->device->device->facts.uuid, sizeof head->uuid);
        }
        for (size_t i = 0; i < lane->recvs.count; i++) {
            parts[i].key = lane->recvs.parts[i].key;
            parts[i].unwanted = lane->recvs.parts[i].unwanted;
            parts[i].piece = lane->recvs.parts[i].piece;
        }
        status = hemi_bag_add(bag, rank, lane->way.peer, text, bytes);
        free(text);
    }
    return status;
}

hemi_halo_lane *hemi_lane_with(const hem_exchange *x, uint32_t peer) {
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer == peer)
            return &x->lanes[l];
    return NULL;
}

hem_status hemi_part_differs(const hem_exchange *x, uint32_t peer, const hemi_part_key *ours,
                             const hemi_part_key *theirs) {
    uint32_t me = x->world->rank;
    const hemi_part_key *key = ours != NULL ? ours : theirs;
    if (ours == NULL || theirs == NULL || ours->pattern != theirs->pattern ||
        ours->number != theirs->number)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_exchange_create: ranks %u and %u do not bind the same fields: field "
                         "%u of pattern %llu is missing on one of them",
                         me, peer, key->number, (unsigned long long)key->pattern);
    return hemi_fail(HEM_ERR_MISMATCH,
                     "hem_exchange_create: field %u has elements of type %u with %llu bytes, %llu "
                     "levels and %llu components on rank %u, and of type %u with %llu bytes, %llu "
                     "levels and %llu components on rank %u",
                     key->number, ours->dtype, (unsigned long long)ours->element,
                     (unsigned long long)ours->levels, (unsigned long long)ours->components, me,
                     theirs->dtype, (unsigned long long)theirs->element,
                     (unsigned long long)theirs->levels, (unsigned long long)theirs->components,
                     peer);
}

static hem_status compare(const hem_exchange *x, hemi_halo_lane *lane, const hello_part *parts,
                          size_t count) {
    hemi_parts *sends = &lane->sends;
    for (size_t i = 0; i < count || i < sends->count; i++) {
        const hemi_part_key *ours = i < sends->count ? &sends->parts[i].key : NULL;
        const hemi_part_key *theirs = i < count ? &parts[i].key : NULL;
        if (ours == NULL || theirs == NULL || memcmp(ours, theirs, sizeof *ours) != 0)
            return hemi_part_differs(x, lane->way.peer, ours, theirs);
        sends->parts[i].unwanted = parts[i].unwanted != 0;
        hemi_halo_part_reach(x, lane->way.peer, &sends->parts[i], parts[i].piece);
    }
    return HEM_OK;
}

hem_status hemi_connect_nonsense(uint32_t peer) {
    return hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: what rank %u says is not possible",
                     peer);
}

hem_status hemi_connect_hear(hem_exchange *x, const hemi_bag *bag, hemi_hear_fn hear,
                             const char *told) {
    const hemi_record *record = NULL;
    hem_status status = HEM_OK;
    size_t heard = 0;
    while (status == HEM_OK && (record = hemi_bag_next(bag, record)) != NULL) {
        hemi_halo_lane *lane = hemi_lane_with(x, record->from);
        status = lane != NULL ? hear(x, lane, record) : hemi_connect_nonsense(record->from);
        heard++;
    }
    size_t others = x->lane_count - (hemi_lane_with(x, x->world->rank) != NULL);
    if (status == HEM_OK && heard != others)
        status = hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: not all neighbours %s", told);
    return status;
}

static hem_status hear_hello(hem_exchange *x, hemi_halo_lane *lane, const hemi_record *record) {
    const hemi_root *root = x->world->root;
    const hello *head = hemi_record_data(record);
    if (record->bytes < sizeof *head || (record->bytes - sizeof *head) % sizeof(hello_part) != 0 ||
        (record->bytes - sizeof *head) / sizeof(hello_part) != head->count)
        return hemi_connect_nonsense(record->from);
    uint32_t owner = x->world->members[record->from];
    if (head->landing_bytes > INT64_MAX / 4 || head->landing_bytes % HEMI_LINE != 0 ||
        head->where % HEMI_LINE != 0 ||
        !hemi_arena_in_part(&root->arena, owner, head->where, hemi_area_bytes(head->landing_bytes)))
        return hemi_connect_nonsense(record->from);
    hem_status status = compare(x, lane, (const hello_part *)(const void *)(head + 1), head->count);
    if (status != HEM_OK)
        return status;
    /* Both add up the same parts; it is where this rank will write. */
    if (head->landing_bytes != hemi_lane_landing(x, lane))
        return hemi_connect_nonsense(record->from);
    if (x->device != NULL)
        status = hemi_halo_device_hear(x, (size_t)(lane - x->lanes), head->device_at,
                                       head->device_bytes, head->uuid);
    if (status != HEM_OK)
        return status;
    lane->way.out = hemi_arena_at(&root->arena, head->where);
    lane->way.out_bytes = head->landing_bytes;
    lane->way.block = hemi_arena_rank(&root->arena, owner);
    lane->way.closed = &x->world->cells[record->from].closed;
    return HEM_OK;
}

hem_status hemi_hello_hear(hem_exchange *x, const hemi_bag *bag) {
    const hemi_record *record = NULL;
    hem_status status = HEM_OK;
    while (status == HEM_OK && (record = hemi_bag_next(bag, record)) != NULL) {
        hemi_halo_lane *lane = hemi_lane_with(x, record->from);
        if (lane == NULL)
            status =
                hemi_fail(HEM_ERR_MISMATCH,
                          "hem_exchange_create: rank %u exchanges with rank %u, which binds no "
                          "field of that pattern",
                          record->from, x->world->rank);
        else
            status = hear_hello(x, lane, record);
    }
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++)
        if (x->lanes[l].way.peer != x->world->rank && x->lanes[l].way.out == NULL)
            status =
                hemi_fail(HEM_ERR_MISMATCH,
                          "hem_exchange_create: rank %u exchanges with rank %u, which binds no "
                          "field of that pattern",
                          x->world->rank, x->lanes[l].way.peer);
    return status;
}
