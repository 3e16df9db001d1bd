/* hem_channel_prepare: the memory of a lane, both ways, ahead of time. */
#include "channel/lane.h"

static hem_status poll_reach(void *arg) {
    hemi_lane *lane = arg;
    hem_world *world = lane->world;
    hemi_engine_progress(world);
    hemi_engine_lock(world);
    hem_status status = hemi_lane_open(lane);
    if (status == HEM_OK)
        status = hemi_lane_reserve_ring(lane);
    hemi_engine_unlock(world);
    return status;
}

static hem_status doomed_reach(void *arg) {
    const hemi_lane *lane = arg;
    hemi_engine_inspect(lane->world);
    if (lane->peer == lane->world->rank || hemi_world_may_come(lane->world, lane->peer))
        return HEM_OK;
    return hemi_world_fail_peer(lane->world, lane->peer, "hem_channel_prepare");
}

/* This rank's own area: the ring too, which otherwise the peer reserves when it first needs it. */
static hem_status prepare_own(hem_world *world, uint32_t peer, uint32_t channel,
                              hemi_lane **lane_p) {
    hem_status status = hemi_lane_ready(world, peer, channel);
    if (status != HEM_OK)
        return status;
    hemi_lane *lane = hemi_lane_find(world, peer, channel);
    const hemi_track *track = &lane->rx.cursor.track;
    *lane_p = lane;
    return hemi_hub_reserve(world, (uint64_t)(track->ring - world->root->arena.base),
                            track->ring_bytes);
}

hem_status hem_channel_prepare(hem_world *world, int peer, uint32_t channel, int64_t timeout_ns) {
    static const char call[] = "hem_channel_prepare";
    hem_status status = hemi_engine_check(world, call);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, call);
    if (status != HEM_OK)
        return status;
    if (peer < 0 || (uint32_t)peer >= world->size || channel >= HEM_CHANNELS)
        return hemi_fail(HEM_ERR_RANGE, "%s: there is no rank %d or no channel %u", call, peer,
                         channel);
    status = hemi_world_check_peer(world, (uint32_t)peer, call);
    if (status != HEM_OK)
        return status;
    hemi_lane *lane = NULL;
    hemi_engine_lock(world);
    status = prepare_own(world, (uint32_t)peer, channel, &lane);
    hemi_engine_unlock(world);
    if (status != HEM_OK)
        return status;
    hemi_wait_for wait = {
        .poll = poll_reach,
        .doomed = doomed_reach,
        .arg = lane,
        .note = {.call = HEMI_CALL_CHANNEL_PREPARE,
                 .peer = (int32_t)world->members[peer],
                 .id = channel,
                 .word = &world->cells[peer].hub,
                 .wanted = 1,
                 .world = world->id},
    };
    status = hemi_engine_wait_until(world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "%s: rank %d has not used any channel or collective yet", call,
                         peer);
    return status;
}
