/* The short way: whole messages of one slot, without a letter and without queueing. */
#include "channel/direct.h"

bool hemi_direct_send_chunk(hemi_lane *lane, const void *data, size_t bytes) {
    hemi_tx *tx = &lane->tx.cursor;
    uint64_t skip = 0;
    if (bytes > HEMI_WHOLE_MAX || !lane->tx.reserved || bytes > tx->track.ring_bytes)
        return false;
    uint64_t room = hemi_tx_room(tx, bytes, &skip);
    if (room != bytes && hemi_tx_reload(tx))
        room = hemi_tx_room(tx, bytes, &skip);
    if (room != bytes)
        return false;
    memcpy(hemi_tx_place(tx, skip), data, bytes);
    hemi_tx_chunk(tx, skip, bytes, hemi_round_line(bytes), 0, bytes);
    return true;
}

bool hemi_direct_take_chunk(hemi_lane *lane, void *data, size_t room, size_t *bytes_p) {
    hemi_rx *rx = &lane->rx.cursor;
    hemi_header h;
    hemi_rx_header(rx, &h);
    if (h.kind != (HEMI_SLOT_BULK | HEMI_SLOT_LANES) || h.length != h.bytes || h.bytes > room ||
        h.bytes >= HEMI_OFFER_MIN || hemi_rx_check_first(rx, &h) != NULL)
        return false;
    memcpy(data, hemi_rx_place(rx, &h), h.length);
    hemi_rx_credit_chunk(rx, &h, true);
    *bytes_p = h.length;
    return true;
}

static hem_status poll_slot(void *arg) {
    const hemi_lane *lane = arg;
    if (hemi_rx_ready(&lane->rx.cursor))
        return HEM_OK;
    if (__builtin_expect(hemi_load32_relaxed(&lane->world->engine.listed) != 0, 0))
        hemi_engine_progress(lane->world);
    return HEMI_AGAIN;
}

static hem_status doomed_slot(void *arg) {
    hemi_lane *lane = arg;
    hem_world *world = lane->world;
    hemi_engine_inspect(world);
    if (hemi_world_may_come(world, lane->peer) || lane->peer == world->rank)
        return HEM_OK;
    return HEM_ERR_PEER;
}

hem_status hemi_direct_wait(hemi_lane *lane, uint32_t call, int64_t timeout_ns) {
    hem_world *world = lane->world;
    hemi_wait_for wait = {
        .poll = poll_slot,
        .doomed = doomed_slot,
        .arg = lane,
        .note = {.call = call,
                 .peer = (int32_t)world->members[lane->peer],
                 .id = lane->channel,
                 .word = &hemi_rx_slot(&lane->rx.cursor)->stamp,
                 .wanted = lane->rx.cursor.slot_head + 1,
                 .world = world->id},
    };
    hem_status status = hemi_engine_wait_until(world, &wait, timeout_ns);
    if (__builtin_expect(status == HEM_ERR_PEER, 0))
        return hemi_world_fail_peer(world, lane->peer, hemi_call_name(call));
    return status;
}
