/*
 * Straight into the neighbours' halos: which parts go that way, and who says so.
 *
 * How this works. Ranks have shown each other the device memory of their fields (device_pieces.c).
 * Then, part by part: in its hello the receiver tells in which piece the halo is; in its answer the
 * owner tells whether it reaches that; and the receiver, which by now knows in what order the owner
 * packs, decides, and offers where the halo is and its shape. What is offered is checked against the
 * piece that was mapped. So both sides know of each part which way it goes.
 */
#include "halo/exchange/connect.h"
#include "halo/exchange/device.h"
#include "halo/shape_inside.h"

#include <stdlib.h>
#include <string.h>

/* Pieces of a halo that lie side by side, in bytes on average, from which it is taken to pay: shorter
 * ones are sectors of a GPU's memory that are written in part. */
#define LEAST_PIECE 32u

static hem_status unreachable(const hem_exchange *x, const hemi_part *part) {
    return hemi_fail(
        HEM_ERR_UNSUPPORTED,
        "hem_exchange_create: kernels of rank %u cannot write into field %u of rank %u "
        "itself: its memory is none that can be shown to them",
        part->link->peer, part->key.number, x->world->rank);
}

/* Whether pieces of a shape are long enough. */
bool hemi_halo_pays(const hem_exchange *x, const hemi_shape *shape) {
    return x->way != HEM_EXCHANGE_BEST || hemi_shape_piece(shape) >= LEAST_PIECE;
}

void hemi_halo_part_reach(const hem_exchange *x, uint32_t peer, hemi_part *part, uint64_t piece) {
    const hemi_halo_device *d = x->device;
    part->reachable =
        d != NULL && piece > 0 && piece <= d->piece_count && d->pieces[piece - 1].maps != NULL &&
        d->pieces[piece - 1].maps[peer].address != NULL && part->bytes > 0 && !part->unwanted;
    part->piece = part->reachable ? (uint32_t)piece : 0;
}

/* What a receiver tells of one part; if it is direct, the halo's shape follows. */
typedef struct offer {
    uint64_t direct;
    uint64_t negated;
    uint64_t where; /* of the field in the piece */
    uint64_t shape_bytes;
} offer;

static uint64_t padded(uint64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

/* Of receiving parts, once the answer was heard. */
static void choose(const hem_exchange *x, hemi_parts *recvs) {
    for (size_t i = 0; i < recvs->count; i++) {
        hemi_part *part = &recvs->parts[i];
        part->direct = part->reachable && part->piece != 0 && hemi_halo_pays(x, part->shape);
    }
}

static void fill_offer(const hem_exchange *x, const hemi_part *part, offer *o) {
    *o = (offer){.direct = part->direct, .negated = part->negated};
    if (!part->direct)
        return;
    o->where = (uintptr_t)part->memory - (uintptr_t)x->device->pieces[part->piece - 1].mine.address;
    o->shape_bytes = hemi_shape_write(part->shape, NULL, 0);
}

static hem_status offer_lane(const hem_exchange *x, const hemi_halo_lane *lane, hemi_bag *bag) {
    const hemi_parts *recvs = &lane->recvs;
    uint64_t bytes = 0;
    offer o;
    for (size_t i = 0; i < recvs->count; i++) {
        fill_offer(x, &recvs->parts[i], &o);
        bytes += sizeof o + padded(o.shape_bytes);
    }
    unsigned char *text = calloc(1, bytes + 1);
    if (text == NULL)
        return hemi_connect_no_memory();
    uint64_t at = 0;
    for (size_t i = 0; i < recvs->count; i++) {
        fill_offer(x, &recvs->parts[i], &o);
        memcpy(text + at, &o, sizeof o);
        at += sizeof o;
        if (o.shape_bytes > 0)
            (void)hemi_shape_write(recvs->parts[i].shape, text + at, o.shape_bytes);
        at += padded(o.shape_bytes);
    }
    hem_status status = hemi_bag_add(bag, x->world->rank, lane->way.peer, text, bytes);
    free(text);
    return status;
}

/* If this way was asked for, all that is wanted of a field in device memory must go it. */
static hem_status insist(const hem_exchange *x, const hemi_parts *recvs) {
    for (size_t i = 0; i < recvs->count; i++) {
        const hemi_part *part = &recvs->parts[i];
        if (x->way == HEM_EXCHANGE_BEST || part->unwanted || part->bytes == 0)
            continue;
        if (!part->direct && hemi_halo_is_on_device(x->device, part->field))
            return unreachable(x, part);
    }
    return HEM_OK;
}

hem_status hemi_offer_say(hem_exchange *x, hemi_bag *bag) {
    hem_status status = HEM_OK;
    hem_status first = HEM_OK;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        if (lane->way.peer == x->world->rank)
            continue;
        choose(x, &lane->recvs);
        status = offer_lane(x, lane, bag);
        if (first == HEM_OK)
            first = insist(x, &lane->recvs);
    }
    return status != HEM_OK ? status : first;
}

/* The halo of a neighbour, as kernels of this rank write it: only what was shown, only whole elements. */
static hem_status reach_halo(const hem_exchange *x, uint32_t peer, hemi_part *part, const offer *o,
                             const unsigned char *shape) {
    if (!part->reachable)
        return hemi_connect_nonsense(peer);
    const hemi_device_memory *map = &x->device->pieces[part->piece - 1].maps[peer];
    if (o->where > map->bytes)
        return hemi_connect_nonsense(peer);
    part->there = calloc(1, sizeof *part->there);
    if (part->there == NULL)
        return hemi_connect_no_memory();
    hemi_part *there = part->there;
    hem_status status =
        hemi_shape_read(shape, o->shape_bytes, map->bytes - o->where, &there->shape);
    if (status != HEM_OK)
        return status;
    if (there->shape->bytes != part->bytes || there->shape->element != part->shape->element ||
        there->shape->chunk % part->shape->element != 0)
        return hemi_connect_nonsense(peer);
    there->field = part->field; /* for its type */
    there->memory = (unsigned char *)map->address + o->where;
    there->bytes = part->bytes;
    there->negated = o->negated != 0;
    part->direct = true;
    return HEM_OK;
}

static hem_status hear_offer(hem_exchange *x, hemi_halo_lane *lane, const hemi_record *record) {
    const unsigned char *text = hemi_record_data(record);
    uint64_t left = record->bytes;
    for (size_t i = 0; i < lane->sends.count; i++) {
        offer o;
        if (left < sizeof o)
            return hemi_connect_nonsense(record->from);
        memcpy(&o, text, sizeof o);
        text += sizeof o;
        left -= sizeof o;
        if (o.shape_bytes > left || padded(o.shape_bytes) > left)
            return hemi_connect_nonsense(record->from);
        hem_status status = HEM_OK;
        if (o.direct != 0)
            status = reach_halo(x, record->from, &lane->sends.parts[i], &o, text);
        if (status != HEM_OK)
            return status;
        text += padded(o.shape_bytes);
        left -= padded(o.shape_bytes);
    }
    return left == 0 ? HEM_OK : hemi_connect_nonsense(record->from);
}

hem_status hemi_offer_hear(hem_exchange *x, const hemi_bag *bag) {
    return hemi_connect_hear(x, bag, hear_offer, "offered");
}
