/*
 * Collectives by multicast: whether all ranks can, the team, and what the kernel is told.
 *
 * How this works. From what all have said each rank sees alike whether multicast is on everywhere,
 * whether enough ranks have a device of their own, and whether kind and operation have that way. If
 * so, rank 0 makes a team and shows it to the others; each joins, and all vote; each binds its memory,
 * and all vote again. One that cannot, for whatever reason, makes all give the team up and go on as
 * if there were no multicast. Only what ends set-up anyway is an error: a death, a revoke, the limit.
 *
 * Buffers are always staged. A rank's memory of the team has a slot on lines for each part:
 *
 *   all-reduce, broadcast   one slot: the vector
 *   all-gather              one slot per rank: what it sends
 *   reduce-scatter          one slot per rank: what is for it
 *
 * What is behind the bytes of a slot, up to a whole vector, is combined with the rest and copied to
 * nobody. device/kernels/coll_multi.h has the protocol of a run.
 */
#include "coll/device.h"
#include "core/team.h"

#include <hem/coll.h>
#include <string.h>

static bool is_reduce_scatter(const hemi_coll_device *d) {
    return d->job.kind == HEM_REDUCE_SCATTER || d->job.kind == HEM_REDUCE_SCATTERV;
}

static bool is_allgather(const hemi_coll_device *d) {
    return d->job.kind == HEM_ALLGATHER || d->job.kind == HEM_ALLGATHERV;
}

#define CODE(type, op, loads, as, ptx) HEMD_COLL_CODE(type, op),

static bool combines(uint32_t code) {
    static const uint32_t codes[] = {HEMD_COLL_MULTI_CODES(CODE)};
    size_t i = 0;
    while (i < sizeof codes / sizeof codes[0] && codes[i] != code)
        i++;
    return i < sizeof codes / sizeof codes[0];
}

/* The same on all ranks. */
static bool may_be(const hemi_coll_device *d) {
    uint32_t parts = 1;
    if (d->all.multi < d->sharing || d->size < 2)
        return false;
    if (d->job.kind == HEM_ALLREDUCE || is_reduce_scatter(d))
        return combines(hemi_coll_device_code(&d->job, &parts));
    return d->job.kind == HEM_BROADCAST || is_allgather(d);
}

static bool has_slots(const hemi_coll_device *d) {
    return is_reduce_scatter(d) || is_allgather(d);
}

static hem_status vote(hemi_coll_device *d, uint64_t step, bool *good) {
    hem_world *world = d->op.world;
    uint32_t mine = *good;
    hem_status status = hemi_team_agree(world, HEMI_CALL_COLL_PLAN, HEM_OK, step, &mine,
                                        sizeof mine, d->timeout_ns);
    for (uint32_t r = 0; status == HEM_OK && r < d->size; r++) {
        uint32_t said = 0;
        hemi_team_heard(world, r, &said, sizeof said);
        *good = *good && said != 0;
    }
    hemi_team_done(world);
    return status;
}

/* Rank 0's team, at everybody who can have it: d->team. */
static hem_status show(hemi_coll_device *d, uint64_t bytes) {
    const hemi_device *device = d->device;
    hemi_device_memory made = {.address = NULL};
    if (d->rank == 0 &&
        device->module->team->make(device->context, d->size, bytes, d->group, &made) != HEM_OK)
        made.address = NULL;
    /* Room for one per rank that is not used yet. Only the first shows anything. */
    hemi_device_memory *maps = d->maps[HEMI_COLL_SEND];
    hem_status status =
        hemi_device_share(d->op.world, HEMI_CALL_COLL_PLAN, HEM_OK,
                          made.address != NULL ? &made : NULL, d->wants, maps, d->timeout_ns);
    d->team = d->rank == 0 ? made : maps[0];
    memset(&maps[0], 0, sizeof maps[0]);
    return status;
}

static hem_status build(hemi_coll_device *d, bool *good) {
    const hemi_device *device = d->device;
    const hemi_device_team_ops *team = device->module->team;
    uint64_t bytes = d->slot * (has_slots(d) ? d->size : 1);
    hem_status status = show(d, bytes);
    if (status != HEM_OK && hemi_coll_device_is_final(status))
        return status;
    *good = status == HEM_OK && d->team.address != NULL && d->team.bytes >= bytes &&
            team->join(device->context, &d->team) == HEM_OK;
    status = vote(d, 5, good);
    if (status != HEM_OK || !*good)
        return status;
    *good = team->bind(device->context, &d->team, d->rank, &d->args.multi) == HEM_OK;
    return vote(d, 6, good);
}

hem_status hemi_coll_device_team(hemi_coll_device *d) {
    char sentence[HEMI_ERROR_MAX];
    bool good = false;
    if (!may_be(d))
        return HEM_OK;
    hemi_error_save(sentence);
    d->slot = (d->all.pair_bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
    hem_status status = build(d, &good);
    d->multi = status == HEM_OK && good;
    if (!d->multi && d->team.address != NULL)
        d->device->module->memory->release(d->device->context, &d->team);
    if (status == HEM_OK)
        hemi_error_restore(sentence);
    return status;
}

unsigned char *hemi_coll_device_slot(const hemi_coll_device *d, int which, uint32_t r) {
    bool own = which == HEMI_COLL_SEND ? is_allgather(d) : is_reduce_scatter(d);
    return d->args.multi.own + (has_slots(d) ? (own ? d->rank : r) * d->slot : 0);
}

void hemi_coll_device_part(hemi_coll_device *d, uint64_t begin, uint64_t bytes) {
    hemd_coll_args *args = &d->args;
    if (has_slots(d)) {
        begin = d->rank * d->slot;
        bytes = is_allgather(d) ? d->spans[d->rank].send_bytes : d->spans[d->rank].recv_bytes;
    } else if (d->job.kind == HEM_BROADCAST) {
        begin = 0;
        bytes = d->rank == d->job.root ? d->all.pair_bytes : 0;
    }
    args->part_at = begin;
    args->vectors = (bytes + 15) / 16;
    args->to_count = !is_reduce_scatter(d);
}
