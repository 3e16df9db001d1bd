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
 * A pipe with a window (hem_pipe_options.window) does the bulk form in another way, so that data need
 * not go through a ring: hem/device/straight.h.
 *
 * Who gives up stores its status into its `error`, which its other groups look at, and `refused` at
 * all peers, which those look at who wait for this rank. Later calls end at once.
 */
#ifndef HEM_DEVICE_PIPE_H
#define HEM_DEVICE_PIPE_H

#include <hem/device/straight.h>

/* What kernels call. All threads of the group call it with the same arguments. */

/** Whether `peer` was named when the pipe was made. */
HEM_DEV hem_status hemd_pipe_check(const hem_dev_pipe *pipe, int peer) {
    if (peer < 0 || peer >= pipe->window.size)
        return HEM_ERR_RANGE;
    return pipe->ways[peer].out != NULL ? HEM_OK : HEM_ERR_ARG;
}

/** A message of the bulk form in a pipe with a window. Not inline: it is long, and copies a lot. */
HEM_DEV_SLOW hem_status hemd_dev_straight(const hem_dev_pipe *pipe, const hemd_deal *deal,
                                          hem_group group, int peer, const void *data,
                                          const hemd_share *share, bool receives) {
    hemd_ends ends = hemd_ends_of(pipe, peer, data, deal->bytes);
    return hemd_straight_run(pipe, &pipe->ways[peer], deal, group, data, share, &ends, receives);
}

HEM_DEV hem_status hemd_dev_send(const hem_dev_pipe *pipe, hem_group group, int peer,
                                 const void *data, uint64_t n, const hemd_share *share) {
    hem_status status = hemd_pipe_check(pipe, peer);
    if (status != HEM_OK)
        return status;
    hemd_deal deal = hemd_deal_out(pipe, n);
    if (!deal.brief && pipe->straight.peers != NULL)
        return hemd_dev_straight(pipe, &deal, group, peer, data, share, false);
    return hemd_send_run(pipe, &pipe->ways[peer], &deal, group, data, share);
}

HEM_DEV hem_status hemd_dev_recv(const hem_dev_pipe *pipe, hem_group group, int peer, void *data,
                                 uint64_t n, const hemd_share *share) {
    hem_status status = hemd_pipe_check(pipe, peer);
    if (status != HEM_OK)
        return status;
    hemd_deal deal = hemd_deal_out(pipe, n);
    if (!deal.brief && pipe->straight.peers != NULL)
        return hemd_dev_straight(pipe, &deal, group, peer, data, share, true);
    return hemd_recv_run(pipe, &pipe->ways[peer], &deal, group, data, share);
}

/** hem_dev_sendrecv in a pipe with a window, if not both messages are short. */
HEM_DEV_SLOW hem_status hemd_dev_straights(const hem_dev_pipe *pipe, const hemd_flow *send,
                                           const hemd_flow *recv, hem_group group) {
    hemd_ends there = hemd_ends_of(pipe, send->way->peer, send->data, send->deal->bytes);
    hemd_ends here = hemd_ends_of(pipe, recv->way->peer, recv->data, recv->deal->bytes);
    hemd_course out = hemd_course_begin(send, &there, false);
    hemd_course in = hemd_course_begin(recv, &here, true);
    return hemd_courses_in_turns(&out, &in, group);
}

/**
 * Send one message of `n` bytes to `peer`, which may be this rank.
 *
 * Returns when `data` may be reused. It arrives in the order of calls, also of hem_pipe_sendrecv. In a
 * pipe with a window, one of more than short_bytes bytes waits for its receive to begin.
 * One group of the rank at a time sends to a peer, and what one did before the other is ordered by a
 * barrier or by the stream; sending and receiving are apart. After an error the pipe is given up.
 * @return HEM_OK, HEM_ERR_TIMEOUT, HEM_ERR_PEER, HEM_ERR_REVOKED, HEM_ERR_CLOSED, HEM_ERR_MISMATCH;
 *         HEM_ERR_RANGE or HEM_ERR_ARG for a peer that is none of this pipe.
 */
HEM_DEV hem_status hem_dev_send(hem_dev_pipe pipe, hem_group group, int peer, const void *data,
                                uint64_t n, int64_t timeout_ns) {
    hemd_share share = {0, 1, 0, timeout_ns};
    return hemd_dev_send(&pipe, group, peer, data, n, &share);
}

/** Receive the next message of `peer`, which has `n` bytes. As hem_dev_send otherwise. */
HEM_DEV hem_status hem_dev_recv(hem_dev_pipe pipe, hem_group group, int peer, void *data,
                                uint64_t n, int64_t timeout_ns) {
    hemd_share share = {0, 1, 0, timeout_ns};
    return hemd_dev_recv(&pipe, group, peer, data, n, &share);
}

/**
 * hem_dev_send by several groups at once, of any blocks that run at the same time: this one is number
 * `part` of `parts`, and all of them call this for the same message. The receiver may have another
 * number of parts. @return as hem_dev_send.
 */
HEM_DEV hem_status hem_dev_send_part(hem_dev_pipe pipe, hem_group group, uint32_t part,
                                     uint32_t parts, int peer, const void *data, uint64_t n,
                                     int64_t timeout_ns) {
    hemd_share share = {part, parts, 0, timeout_ns};
    return hemd_dev_send(&pipe, group, peer, data, n, &share);
}

/** hem_dev_recv by several groups at once, as hem_dev_send_part. */
HEM_DEV hem_status hem_dev_recv_part(hem_dev_pipe pipe, hem_group group, uint32_t part,
                                     uint32_t parts, int peer, void *data, uint64_t n,
                                     int64_t timeout_ns) {
    hemd_share share = {part, parts, 0, timeout_ns};
    return hemd_dev_recv(&pipe, group, peer, data, n, &share);
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
    if (pipe.straight.peers != NULL && !(out.brief && in.brief))
        return hemd_dev_straights(&pipe, &out, &in, group);
    return hemd_flows_in_turns(&out, &in, group);
}

#endif
