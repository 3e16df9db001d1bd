/* What owners tell: how they pack, and what they leave in their fields. */
#include "halo/exchange/connect.h"

#include <stdlib.h>
#include <string.h>

/* What an owner tells of one part; if it is direct, its shape follows. */
typedef struct answer {
    uint64_t where;       /* of the field: in the arena, or its address for threads */
    uint64_t field_bytes; /* from there to the end of what the part touches */
    uint64_t shape_bytes;
    uint8_t order[8];
} answer;

/* Answers follow each other at multiples of 8 bytes. */
static uint64_t padded(uint64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

/* From pieces this long on it is faster to read them where they are than to have them packed: of
 * shorter ones, whole lines come from another core's cache for a few bytes each. (On a Xeon, 4 fields
 * of 16 x 16 in rows of 128 bytes take 1.8 us so and 2.8 packed; single elements 5 times as long.) */
#define PIECE_MIN HEMI_LINE

/* Whether peers can read this part where it is, and had better. */
static bool is_reachable(const hemi_root *root, const hemi_part *part) {
    if (part->unwanted || part->bytes == 0)
        return false;
    if (root->settings.direct_bytes > 0 && hemi_shape_piece(part->shape) < PIECE_MIN)
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

/*
 * What lies in library memory is left there if the message is long enough: one copy saves more then
 * than waiting for the receiver costs.
 */
static void choose_direct(const hemi_root *root, hemi_halo_lane *lane) {
    uint64_t sum = 0;
    for (size_t i = 0; i < lane->sends.count; i++)
        if (is_reachable(root, &lane->sends.parts[i]))
            sum += lane->sends.parts[i].bytes;
    for (size_t i = 0; i < lane->sends.count; i++)
        lane->sends.parts[i].direct =
            sum >= root->settings.direct_bytes && is_reachable(root, &lane->sends.parts[i]);
}

static void fill_answer(const hemi_root *root, const hemi_part *part, answer *a) {
    memset(a, 0, sizeof *a);
    memcpy(a->order, part->order, sizeof part->order);
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
        choose_direct(x->world->root, &x->lanes[l]);
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

static hem_status hear_answer(const hem_exchange *x, hemi_halo_lane *lane,
                              const hemi_record *record) {
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
    const hemi_record *record = NULL;
    hem_status status = HEM_OK;
    size_t heard = 0;
    while (status == HEM_OK && (record = hemi_bag_next(bag, record)) != NULL) {
        hemi_halo_lane *lane = hemi_lane_with(x, record->from);
        status = lane != NULL ? hear_answer(x, lane, record) : hemi_connect_nonsense(record->from);
        heard++;
    }
    size_t others = x->lane_count - (hemi_lane_with(x, x->world->rank) != NULL);
    if (status == HEM_OK && heard != others)
        status = hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: not all neighbours answered");
    return status;
}
