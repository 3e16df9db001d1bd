#include "halo/exchange/message.h"

/* Which parts this rank packs in a run, and which it unpacks. */
static const hemi_parts *outgoing(const hem_exchange *x, const hemi_halo_lane *lane) {
    return x->how.combine == 0 ? &lane->sends : &lane->recvs;
}

static const hemi_parts *incoming(const hem_exchange *x, const hemi_halo_lane *lane) {
    return x->how.combine == 0 ? &lane->recvs : &lane->sends;
}

/* Reverse runs copy nothing in one go. */
static bool is_direct(const hem_exchange *x, const hemi_part *part) {
    return part->direct && x->how.combine == 0;
}

static bool is_in(const hem_exchange *x, const hemi_part *part) {
    return x->whole ? !part->unwanted : hemi_part_is_in(part, &x->how);
}

static uint64_t message_bytes(const hem_exchange *x, const hemi_parts *parts) {
    if (x->whole)
        return parts->bytes;
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (is_in(x, &parts->parts[i]) && !is_direct(x, &parts->parts[i]))
            sum += hemi_part_room(&parts->parts[i]);
    return sum;
}

/* What both sides of a message must agree on. */
static uint64_t check_of(const hem_exchange *x, uint64_t bytes) {
    return x->how_hash ^ bytes;
}

void hemi_message_pack(hem_exchange *x, hemi_halo_lane *lane) {
    const hemi_parts *parts = outgoing(x, lane);
    uint64_t bytes = message_bytes(x, parts);
    unsigned char *out = hemi_way_out(&lane->way, x->run, bytes);
    lane->waits = false;
    for (size_t i = 0; i < parts->count; i++) {
        const hemi_part *part = &parts->parts[i];
        if (!is_in(x, part))
            continue;
        if (is_direct(x, part)) {
            lane->waits = true;
            continue;
        }
        hemi_shape_pack(part->shape, part->memory, out);
        out += hemi_part_room(part);
    }
    hemi_way_post(&lane->way, x->run, check_of(x, bytes));
    hemi_wake(x->world->root, lane->way.block);
    lane->packed = true;
}

/* A value of an owner and what came from its copy. */
static void combine_part(const hem_exchange *x, const hemi_part *part, unsigned char *in) {
    if (part->frozen)
        return;
    if (part->negated)
        hemi_shape_negate(part->packed, in, part->field->dtype);
    if (x->how.combine == HEM_COMBINE_REPLACE)
        hemi_shape_unpack(part->shape, part->memory, in);
    else
        hemi_shape_combine(part->shape, part->memory, in, part->field->dtype,
                           hemi_combine_reduction(x->how.combine));
}

static void fill_part(const hemi_part *part, const unsigned char *in) {
    if (part->direct)
        hemi_shape_pair_copy(part->pair, part->memory, part->from);
    else
        hemi_shape_unpack(part->shape, part->memory, in);
    if (part->negated)
        hemi_shape_negate(part->shape, part->memory, part->field->dtype);
}

bool hemi_message_pulls(const hem_exchange *x, const hemi_halo_lane *lane) {
    const hemi_parts *parts = incoming(x, lane);
    if (x->whole)
        return parts->direct != 0;
    for (size_t i = 0; i < parts->count; i++)
        if (is_in(x, &parts->parts[i]) && is_direct(x, &parts->parts[i]))
            return true;
    return false;
}

/* A neighbour has given up. If one of them is dead, that is why. */
hem_status hemi_exchange_fail_gone(const hem_exchange *x, const hemi_halo_lane *lane) {
    for (size_t l = 0; l < x->lane_count; l++) {
        uint32_t peer = x->lanes[l].way.peer;
        if (!hemi_liveness_may_come(&x->world->root->arena, x->world->members[peer]))
            return hemi_world_fail_peer(x->world, peer, "hem_exchange_finish");
    }
    bool destroyed = (hemi_way_gone(&lane->way) & HEMI_GONE_BROKEN) == 0;
    return hemi_fail(HEM_ERR_REVOKED,
                     "hem_exchange_finish: rank %u has %s this exchange in or "
                     "before run %llu",
                     lane->way.peer, destroyed ? "destroyed" : "given up",
                     (unsigned long long)x->run);
}

/* The message is here. */
hem_status hemi_message_take(hem_exchange *x, hemi_halo_lane *lane) {
    const hemi_parts *parts = incoming(x, lane);
    uint64_t bytes = message_bytes(x, parts);
    if (__builtin_expect(hemi_way_check(&lane->way, x->run) != check_of(x, bytes), 0))
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_exchange_finish: run %llu of rank %u is not what rank %u does: other "
                         "fields, sides or combination",
                         (unsigned long long)x->run, lane->way.peer, x->world->rank);
    if (hemi_message_pulls(x, lane) && !hemi_way_pull(&lane->way, x->run))
        return hemi_exchange_fail_gone(x, lane);
    unsigned char *in = hemi_way_in(&lane->way, x->run, bytes);
    for (size_t i = 0; i < parts->count; i++) {
        const hemi_part *part = &parts->parts[i];
        if (!is_in(x, part))
            continue;
        if (x->how.combine == 0)
            fill_part(part, in);
        else
            combine_part(x, part, in);
        if (!is_direct(x, part))
            in += hemi_part_room(part);
    }
    hemi_way_take(&lane->way, x->run);
    hemi_wake(x->world->root, lane->way.block);
    lane->taken = true;
    return HEM_OK;
}

/* Within this rank a part goes through scratch memory, so that it is combined as any other. */
static void combine_own(const hem_exchange *x, const hemi_part *halo, const hemi_part *owner) {
    if (owner->frozen)
        return;
    hemi_shape_pack(halo->shape, halo->memory, x->scratch);
    combine_part(x, owner, x->scratch);
}

/* Between domains of this rank there is no message. */
void hemi_message_copy_own(hem_exchange *x, hemi_halo_lane *lane) {
    for (size_t i = 0; i < lane->recvs.count; i++) {
        const hemi_part *halo = &lane->recvs.parts[i];
        const hemi_part *owner = &lane->sends.parts[i];
        if (!is_in(x, halo))
            continue;
        if (x->how.combine != 0) {
            combine_own(x, halo, owner);
            continue;
        }
        hemi_shape_pair_copy(halo->pair, halo->memory, owner->memory);
        if (halo->negated)
            hemi_shape_negate(halo->shape, halo->memory, halo->field->dtype);
    }
    lane->taken = true;
}
