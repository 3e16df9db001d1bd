/* What owners tell: how they pack, and what they leave in their fields. */
#include "halo/exchange/connect.h"

#include <stdlib.h>
#include <string.h>

/* What an owner tells of one part; if it is direct, its shape follows. */
typedef struct answer {
    uint64_t where;       /* of the field: in the arena, or its address for threads */
    uint64_t field_bytes; /* from there to the end of what the part touches */
    uint64_t shape_bytes;
    uint64_t reachable; /* device memory: this rank can write into the halo itself */
    uint8_t order[8];
} answer;

/* Answers follow each other at multiples of 8 bytes. */
static uint64_t padded(uint64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

/*
 * What lies in library memory is left there if the message and its pieces are long enough: one copy
 * saves more then than waiting for the receiver costs. Of shorter pieces whole lines come from another
 * core's cache for a few bytes each. With more neighbours the waiting weighs more: they are packed one
 * after the other while others come. Measured on a Xeon, rows of 128 bytes: 4 fields of 16 x 16 to one
 * neighbour take 2.1 us so and 2.9 packed; 16 fields to seven neighbours 44 and 31.
 */
typedef struct limits {
    uint64_t bytes; /* of a message */
    uint64_t piece; /* on average */
} limits;

static limits find_limits(const hem_exchange *x) {
    uint64_t bytes = x->world->root->settings.direct_bytes;
    size_t others = x->lane_count - (hemi_lane_with(x, x->world->rank) != NULL);
    if (bytes == 0)
        return (limits){0, 0};
    return others <= 2 ? (limits){bytes, HEMI_LINE} : (limits){8 * bytes, 512};
}

/* Whether peers can read this part where it is. */
static bool is_reachable(const hemi_root *root, const hemi_part *part) {
    if (part->unwanted || part->bytes == 0)
        return false;
    if (root->threads)
        return true;
    int64_t first = 0;
    int64_t end = 0;
    hemi_shape_bounds(part->shape, &first, &end);
    uint64_t offset = (uint64_t)((uintptr_t)part->memory - (uintptr_t)root->arena.base);
    return first >= 0 && offset < root->arena.total_bytes &&
           hemi_arena_in_part(&root->arena, root->rank, offset, (uint64_t)end);
}

static void choose_direct(const hem_exchange *x, hemi_halo_lane *lane) {
    limits least = find_limits(x);
    uint64_t sum = 0;
    for (size_t i = 0; i < lane->sends.count; i++) {
        hemi_part *part = &lane->sends.parts[i];
        part->direct =
            is_reachable(x->world->root, part) && hemi_shape_piece(part->shape) >= least.piece;
        sum += part->direct ? part->bytes : 0;
    }
    for (size_t i = 0; i < lane->sends.count && sum < least.bytes; i++)
        lane->sends.parts[i].direct = false;
}

static void fill_answer(const hemi_root *root, const hemi_part *part, answer *a) {
    memset(a, 0, sizeof *a);
    memcpy(a->order, part->order, sizeof part->order);
    a->reachable = part->reachable;
    if (!part->direct)
        return;
    int64_t first = 0;
    int64_t end = 0;
    hemi_shape_bounds(part->shape, &first, &end);
    a->where = (uintptr_t)part->memory - (root->threads ? 0 : (uintptr_t)root->arena.base);
    a->field_bytes = (uint64_t)end;
    a->shape_bytes = hemi_shape_write(part->shape, NULL, 0);
}

/* All answers to one neighbour, one after the other. */
static hem_status answer_lane(const hemi_root *root, const hemi_halo_lane *lane, uint32_t rank,
                              hemi_bag *bag) {
    size_t bytes = 0;
    answer a;
    for (size_t i = 0; i < lane->sends.count; i++) {
        fill_answer(root, &lane->sends.parts[i], &a);
        bytes += sizeof a + padded(a.shape_bytes);
    }
    unsigned char *text = calloc(1, bytes + 1);
    if (text == NULL)
        return hemi_connect_no_memory();
    size_t at = 0;
    for (size_t i = 0; i < lane->sends.count; i++) {
        fill_answer(root, &lane->sends.parts[i], &a);
        memcpy(text + at, &a, sizeof a);
        at += sizeof a;
        if (a.shape_bytes > 0)
            (void)hemi_shape_write(lane->sends.parts[i].shape, text + at, a.shape_bytes);
        at += padded(a.shape_bytes);
    }
    hem_status status = hemi_bag_add(bag, rank, lane->way.peer, text, bytes);
    free(text);
    return status;
}

hem_status hemi_answer_say(hem_exchange *x, hemi_bag *bag) {
    hem_status status = HEM_OK;
    uint32_t rank = x->world->rank;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++) {
        if (x->lanes[l].way.peer == rank)
            continue;
        if (x->device == NULL)
            choose_direct(x, &x->lanes[l]);
        status = answer_lane(x->world->root, &x->lanes[l], rank, bag);
    }
    return status;
}

/* Where the owner's field is, as seen from here. */
static hem_status reach_field(const hem_exchange *x, uint32_t peer, hemi_part *part,
                              const answer *a, const unsigned char *shape) {
    const hemi_root *root = x->world->root;
    if (!root->threads &&
        !hemi_arena_in_part(&root->arena, x->world->members[peer], a->where, a->field_bytes))
        return hemi_connect_nonsense(peer);
    hem_status status = hemi_shape_read(shape, a->shape_bytes, a->field_bytes, &part->from_shape);
    if (status != HEM_OK)
        return status;
    part->direct = true;
    if (hemi_shape_bytes(part->from_shape) != part->bytes)
        return hemi_connect_nonsense(peer);
    status = hemi_shape_pair_make(part->shape, part->from_shape, &part->pair);
    part->from = root->threads ? (const unsigned char *)(uintptr_t)a->where
                               : hemi_arena_at(&root->arena, a->where);
    return status;
}

static hem_status hear_answer(hem_exchange *x, hemi_halo_lane *lane, const hemi_record *record) {
    const unsigned char *text = hemi_record_data(record);
    uint64_t left = record->bytes;
    for (size_t i = 0; i < lane->recvs.count; i++) {
        hemi_part *part = &lane->recvs.parts[i];
        answer a;
        if (left < sizeof a)
            return hemi_connect_nonsense(record->from);
        memcpy(&a, text, sizeof a);
        text += sizeof a;
        left -= sizeof a;
        if (a.shape_bytes > left || padded(a.shape_bytes) > left)
            return hemi_connect_nonsense(record->from);
        memcpy(part->order, a.order, sizeof part->order);
        part->reachable = a.reachable != 0;
        uint64_t expected = part->bytes;
        hem_status status = hemi_part_shape(part);
        if (status == HEM_OK && part->bytes != expected)
            status = hemi_connect_nonsense(record->from);
        if (status == HEM_OK && a.shape_bytes > 0)
            status = reach_field(x, record->from, part, &a, text);
        if (status != HEM_OK)
            return status;
        text += padded(a.shape_bytes);
        left -= padded(a.shape_bytes);
    }
    return left == 0 ? HEM_OK : hemi_connect_nonsense(record->from);
}

hem_status hemi_answer_hear(hem_exchange *x, const hemi_bag *bag) {
    return hemi_connect_hear(x, bag, hear_answer, "answered");
}
