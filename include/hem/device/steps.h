/*
 * The steps of a message of a pipe, lane by lane, in either form: by a group that sends or receives, or
 * by one that does both in turns. Why it is safe stands in hem/device/pipe.h.
 */
#ifndef HEM_DEVICE_STEPS_H
#define HEM_DEVICE_STEPS_H

#include <hem/device/brief.h>

/** How a group takes part in a message: as part `part` of `parts`. */
typedef struct hemd_share {
    uint32_t part;
    uint32_t parts;
    uint32_t chunk; /**< what is published, or awaited, at once; 0: a whole slot */
    int64_t timeout_ns;
} hemd_share;

HEM_DEV hemd_cursor *hemd_flow_cursor(const hemd_flow *flow, bool receives) {
    return (receives ? flow->way->taken : flow->way->sent) + flow->lane;
}

/** Come to a lane: load what is needed to begin, all at once. The leader changes the cursor again only
 *  after a barrier, by when all threads have loaded it. */
HEM_DEV void hemd_flow_enter(hemd_flow *flow, bool receives) {
    if (flow->lane >= flow->deal->lanes)
        return;
    const hemd_cursor *cursor = hemd_flow_cursor(flow, receives);
    flow->at = hemd_load64_relaxed(flow->brief ? &cursor->units : &cursor->slots);
    flow->stamp = (hemd_load64_relaxed(&cursor->messages) + 1) << HEMD_PIPE_LENGTH_BITS |
                  flow->deal->bytes; /* used in the short form */
    flow->turn = (uint32_t)hemd_load64_relaxed(&cursor->turn);
    flow->seen = receives && flow->brief ? 0 : hemd_flow_load(flow, receives);
    flow->piece = flow->lane;
    flow->filled = 0;
}

/** The lane is done: keep how far it has come, and go to the next. */
HEM_DEV void hemd_flow_leave(hemd_flow *flow, hem_group group, bool receives) {
    if (group.rank == 0 && flow->kept == HEM_OK) {
        hemd_cursor *cursor = hemd_flow_cursor(flow, receives);
        hemd_store64_relaxed(&cursor->messages, hemd_load64_relaxed(&cursor->messages) + 1);
        hemd_store64_relaxed(flow->brief ? &cursor->units : &cursor->slots, flow->at);
        hemd_store64_relaxed(&cursor->turn, flow->turn);
    }
    flow->lane += flow->parts;
    hemd_flow_enter(flow, receives);
}

/** One step of a flow that may be done: by all threads. Leaves the lane after its last. */
HEM_DEV void hemd_send_step(hemd_flow *flow, hem_group group) {
    if (flow->brief) {
        uint64_t data[4];
        hemd_send_gather(flow, group.size, group.rank, data);
        hemd_send_units(flow, group, data);
    } else {
        hemd_send_chunk(flow, group);
    }
    if (flow->piece >= flow->deal->pieces)
        hemd_flow_leave(flow, group, false);
}

HEM_DEV void hemd_recv_step(hemd_flow *flow, hem_group group) {
    if (flow->brief)
        (void)hemd_recv_units(flow, group);
    else
        hemd_recv_chunk(flow, group);
    if (flow->piece >= flow->deal->pieces)
        hemd_flow_leave(flow, group, true);
}

HEM_DEV hemd_flow hemd_flow_begin(const hem_dev_pipe *pipe, const hemd_way *way,
                                  const hemd_deal *deal, const void *data, const hemd_share *share,
                                  bool brief, bool receives) {
    hemd_flow flow;
    flow.brief = brief;
    flow.pipe = pipe;
    flow.way = way;
    flow.deal = deal;
    flow.data = (unsigned char *)(uintptr_t)data;
    flow.chunk = share->chunk == 0 ? (uint32_t)pipe->slot_bytes : share->chunk;
    flow.timeout_ns = share->timeout_ns;
    flow.parts = share->parts;
    flow.lane = share->part;
    flow.turn = flow.piece = flow.filled = 0;
    flow.at = flow.stamp = flow.seen = 0;
    flow.kept = (hem_status)(-(int32_t)hemd_load64_relaxed(way->error));
    hemd_flow_enter(&flow, receives);
    return flow;
}

/** Give the leader's status to all, and if it is bad, to everybody else who should know. */
HEM_DEV hem_status hemd_flow_agree(const hemd_flow *flow, hem_group group, hem_status leaders) {
    hem_status status = hem_group_agree(group, leaders);
    if (status != HEM_OK && group.rank == 0)
        hemd_pipe_fail(flow->pipe, flow->way, status);
    return status;
}

/** The short form: everything that does not depend on each other is loaded at once. */
HEM_DEV hem_status hemd_send_brief(hemd_flow *flow, hem_group group) {
    while (flow->lane < flow->deal->lanes) {
        uint64_t data[4];
        hemd_send_gather(flow, group.size, group.rank, data);
        hem_status mine = group.rank == 0 ? hemd_flow_await(flow, false) : HEM_OK;
        hem_status status = hemd_flow_agree(flow, group, mine);
        if (status != HEM_OK)
            return status;
        hemd_send_units(flow, group, data);
        hemd_flow_leave(flow, group, false);
    }
    return hemd_flow_agree(flow, group, flow->kept);
}

/* That the pipe has failed before is found at the end, or by waiting in vain. */
HEM_DEV hem_status hemd_recv_brief(hemd_flow *flow, hem_group group) {
    while (flow->lane < flow->deal->lanes && hemd_recv_units(flow, group))
        hemd_flow_leave(flow, group, true);
    return hemd_flow_agree(flow, group, flow->kept);
}

HEM_DEV hem_status hemd_send_bulk(hemd_flow *flow, hem_group group) {
    while (flow->lane < flow->deal->lanes) {
        hem_status mine = group.rank == 0 ? hemd_flow_await(flow, false) : HEM_OK;
        hem_status status = hemd_flow_agree(flow, group, mine);
        if (status != HEM_OK)
            return status;
        hemd_send_step(flow, group);
    }
    return hemd_flow_agree(flow, group, flow->kept);
}

HEM_DEV hem_status hemd_recv_bulk(hemd_flow *flow, hem_group group) {
    while (flow->lane < flow->deal->lanes) {
        hem_status mine = group.rank == 0 ? hemd_flow_await(flow, true) : HEM_OK;
        hem_status status = hemd_flow_agree(flow, group, mine);
        if (status != HEM_OK)
            return status;
        hemd_recv_step(flow, group);
    }
    return hemd_flow_agree(flow, group, flow->kept);
}

/** Send or receive a group's share. The forms are apart, so that each keeps little in registers. */
HEM_DEV hem_status hemd_send_run(const hem_dev_pipe *pipe, const hemd_way *way,
                                 const hemd_deal *deal, hem_group group, const void *data,
                                 const hemd_share *share) {
    if (deal->brief) {
        hemd_flow flow = hemd_flow_begin(pipe, way, deal, data, share, true, false);
        return hemd_send_brief(&flow, group);
    }
    hemd_flow flow = hemd_flow_begin(pipe, way, deal, data, share, false, false);
    return hemd_send_bulk(&flow, group);
}

HEM_DEV hem_status hemd_recv_run(const hem_dev_pipe *pipe, const hemd_way *way,
                                 const hemd_deal *deal, hem_group group, void *data,
                                 const hemd_share *share) {
    if (deal->brief) {
        hemd_flow flow = hemd_flow_begin(pipe, way, deal, data, share, true, true);
        return hemd_recv_brief(&flow, group);
    }
    hemd_flow flow = hemd_flow_begin(pipe, way, deal, data, share, false, true);
    return hemd_recv_bulk(&flow, group);
}

/** Whether a flow can do a step, looking once. By all threads. */
HEM_DEV bool hemd_flow_ready(hemd_flow *flow, hem_group group, bool receives) {
    if (flow->lane >= flow->deal->lanes)
        return false;
    if (receives && flow->brief)
        return hemd_recv_units_ready(flow, group);
    bool ready = false;
    if (group.rank == 0) {
        uint64_t wants = hemd_flow_wants(flow, receives);
        if (!hemd_flow_may(flow, wants))
            flow->seen = hemd_flow_load(flow, receives);
        ready = hemd_flow_may(flow, wants);
    }
    return hem_group_any(group, ready);
}

/** Both by one group: a step of whichever can, until both are done. */
HEM_DEV hem_status hemd_flows_in_turns(hemd_flow *out, hemd_flow *in, hem_group group) {
    uint32_t polls[2] = {0, 0};
    uint64_t since[2] = {0, 0};
    hem_status mine = out->kept;
    for (;;) {
        hem_status status = hemd_flow_agree(out, group, mine);
        bool sends = out->lane < out->deal->lanes, receives = in->lane < in->deal->lanes;
        if (status != HEM_OK || (!sends && !receives))
            return status;
        bool out_moves = hemd_flow_ready(out, group, false);
        if (out_moves)
            hemd_send_step(out, group);
        bool in_moves = hemd_flow_ready(in, group, true);
        if (in_moves)
            hemd_recv_step(in, group);
        mine = in->kept;
        if (out_moves || in_moves || group.rank != 0 || mine != HEM_OK)
            continue;
        if (sends)
            mine = hemd_flow_patience(out, false, &polls[0], &since[0]);
        if (receives && mine == HEM_OK)
            mine = hemd_flow_patience(in, true, &polls[1], &since[1]);
    }
}

#endif
