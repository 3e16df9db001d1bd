/*
 * Pipes from inside kernels: messages between buffers of GPUs, through staging.
 *
 * How this works. Between two ranks A and B there are `lanes` lanes each way. A lane is a queue of its
 * own: nothing is shared between lanes, and a group of threads that works on one needs no other. How
 * a message is dealt out to lanes depends on its length and on the pipe's own numbers only
 * (hemd_deal_out), so the two sides need not agree on blocks, warps or chunks; each may change them
 * from call to call. A lane has two rings in B's memory, one for each form of messages:
 *
 *   bulk    slots x slot_bytes. A piece of a message takes one slot, also if it is shorter.
 *   short   units of 8 bytes of data and a stamp, stored in one piece of 16 bytes.
 *
 * Who writes what. A's area at B holds both rings, `tail` and the heads of slots, written by A alone;
 * B's area at A holds B's credits, written by B alone. Each side keeps its cursors (messages, units
 * and slots so far) in its own memory: loaded when a call comes to the lane, stored when it leaves.
 * All of them only grow. Calls on a pipe are ordered, so a cursor has one user at a time.
 *
 *   bulk    A: wait until slots - credit.slots < the ring's; copy a chunk into slot slots % ring; on
 *              lane 0, with the first, store {length, messages} into the slot's head; group barrier;
 *              leader: release tail = slots x slot_bytes + bytes in this slot; after the last chunk
 *              of it slots += 1.
 *           B: leader: until tail >= slots x slot_bytes + the bytes it wants, an acquire; group
 *              barrier; copy out; group barrier; leader: credit.slots = slots += 1.
 *   short   A: wait until units + n - credit.units <= ring; store n units with the stamp
 *              messages << 24 | length; no fence. units += n.
 *           B: every thread polls its own units for just this stamp, and has the data with it; group
 *              barrier; leader: credit.units = units += n.
 *
 * Why no wait is missed: a tail or a credit is at least what it is waited for and stays so. A unit
 * keeps its stamp until B has given credit for it.
 * Why nothing is overwritten unread: A writes a slot or a unit again only after B's credit for it,
 * which B stores when the loads are complete: their values were stored, or compared, before the
 * barrier. A head belongs to its slot.
 * Why nothing stale is taken: `tail` counts bytes since the pipe was made; a unit that was there
 * before has the stamp of an earlier message, which is lower, and bulk data never lies where a stamp
 * is looked for.
 * Why later messages of another length are safe: a message leaves both sides' cursors of each lane
 * that it used advanced by the same amounts, by the deal; lanes that it did not use stay as they were.
 * A slot that is not filled up counts as a whole, on both sides.
 * Why rings of ranks do not deadlock: sending and receiving are done by different groups, or taken in
 * turns without waiting; both walk their lanes upwards. Take the lowest lane that is not done: neither
 * side is beyond it, and it has no other work before it.
 * Lengths that differ: lane 0 is used by every message. Its receiver finds the number of the message
 * that it waits for with another length, in a stamp or a head of either form, and gives up.
 *
 * Who gives up stores its status into its `error`, which its other groups look at, and `refused` at
 * all peers, which those look at who wait for this rank. Later calls end at once.
 */
#ifndef HEM_DEVICE_PIPE_H
#define HEM_DEVICE_PIPE_H

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

/* What kernels call. All threads of the group call it with the same arguments. */

/** Whether `peer` was named when the pipe was made. */
HEM_DEV hem_status hemd_pipe_check(const hem_dev_pipe *pipe, int peer) {
    if (peer < 0 || peer >= pipe->window.size)
        return HEM_ERR_RANGE;
    return pipe->ways[peer].out != NULL ? HEM_OK : HEM_ERR_ARG;
}

/**
 * Send one message of `n` bytes to `peer`, which may be this rank.
 *
 * Returns when `data` may be reused. It arrives in the order of calls, also of hem_pipe_sendrecv.
 * One group of the rank at a time sends to a peer, and what one did before the other is ordered by a
 * barrier or by the stream; sending and receiving are apart. After an error the pipe is given up.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_CLOSED, HEM_ERR_MISMATCH;
 *         HEM_ERR_RANGE or HEM_ERR_ARG for a peer that is none of this pipe.
 */
HEM_DEV hem_status hem_dev_send(hem_dev_pipe pipe, hem_group group, int peer, const void *data,
                                uint64_t n, int64_t timeout_ns) {
    hem_status status = hemd_pipe_check(&pipe, peer);
    if (status != HEM_OK)
        return status;
    hemd_share share = {0, 1, 0, timeout_ns};
    hemd_deal deal = hemd_deal_out(&pipe, n);
    return hemd_send_run(&pipe, &pipe.ways[peer], &deal, group, data, &share);
}

/** Receive the next message of `peer`, which has `n` bytes. As hem_dev_send otherwise. */
HEM_DEV hem_status hem_dev_recv(hem_dev_pipe pipe, hem_group group, int peer, void *data,
                                uint64_t n, int64_t timeout_ns) {
    hem_status status = hemd_pipe_check(&pipe, peer);
    if (status != HEM_OK)
        return status;
    hemd_share share = {0, 1, 0, timeout_ns};
    hemd_deal deal = hemd_deal_out(&pipe, n);
    return hemd_recv_run(&pipe, &pipe.ways[peer], &deal, group, data, &share);
}

/**
 * Send and receive the same message with several groups at once, from any blocks that run at the same
 * time: this one is number `part` of `parts`, and all of them call this. The sides may have different
 * numbers of parts.
 */
HEM_DEV hem_status hem_dev_send_part(hem_dev_pipe pipe, hem_group group, uint32_t part,
                                     uint32_t parts, int peer, const void *data, uint64_t n,
                                     int64_t timeout_ns) {
    hem_status status = hemd_pipe_check(&pipe, peer);
    if (status != HEM_OK)
        return status;
    hemd_share share = {part, parts, 0, timeout_ns};
    hemd_deal deal = hemd_deal_out(&pipe, n);
    return hemd_send_run(&pipe, &pipe.ways[peer], &deal, group, data, &share);
}

HEM_DEV hem_status hem_dev_recv_part(hem_dev_pipe pipe, hem_group group, uint32_t part,
                                     uint32_t parts, int peer, void *data, uint64_t n,
                                     int64_t timeout_ns) {
    hem_status status = hemd_pipe_check(&pipe, peer);
    if (status != HEM_OK)
        return status;
    hemd_share share = {part, parts, 0, timeout_ns};
    hemd_deal deal = hemd_deal_out(&pipe, n);
    return hemd_recv_run(&pipe, &pipe.ways[peer], &deal, group, data, &share);
}

/**
 * Send one message and receive another, by one group in turns, so that rings of ranks do not
 * deadlock. The peers may differ. Faster: some warps call hem_dev_send, others hem_dev_recv.
 */
HEM_DEV hem_status hem_dev_sendrecv(hem_dev_pipe pipe, hem_group group, int to, const void *send,
                                    uint64_t send_n, int from, void *recv, uint64_t recv_n,
                                    int64_t timeout_ns) {
    hem_status status = hemd_pipe_check(&pipe, to);
    if (status == HEM_OK)
        status = hemd_pipe_check(&pipe, from);
    if (status != HEM_OK)
        return status;
    hemd_share share = {0, 1, 0, timeout_ns};
    hemd_deal out_deal = hemd_deal_out(&pipe, send_n), in_deal = hemd_deal_out(&pipe, recv_n);
    hemd_flow out =
        hemd_flow_begin(&pipe, &pipe.ways[to], &out_deal, send, &share, out_deal.brief != 0, false);
    hemd_flow in =
        hemd_flow_begin(&pipe, &pipe.ways[from], &in_deal, recv, &share, in_deal.brief != 0, true);
    return hemd_flows_in_turns(&out, &in, group);
}

#endif
