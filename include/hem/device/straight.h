/*
 * Messages of a pipe with a window: straight from buffer to buffer, copied once, where a buffer lies in
 * the window. Only messages of the bulk form; short ones go as in every pipe.
 *
 * How this works. Before anything of a message moves on a lane, each side posts in the other's memory
 * where its own buffer lies in the window (or nowhere), and how long the message is. Each waits for the
 * other's post, and from the two posts both decide alike:
 *
 *   receiver's buffer in the window, sender's not   A pushes all of it
 *   sender's buffer in the window, receiver's not   B pulls all of it
 *   both                                            A pushes the first half of each piece, and at the
 *                                                   same time B pulls the other: twice as many SMs copy
 *   neither                                         through the bulk ring
 *
 * Who writes what. `offer`, A's post in B's memory, and `ask`, B's post in A's memory, for each lane two
 * of them by turns, each by one writer. `tail` and `credit.slots` as in the bulk form; a message that
 * goes straight takes as many slots as if it had gone through the ring, but leaves them empty.
 *
 *   A: for all its lanes: group barrier; offer {place, bytes}, release offer.number = posts + 1.
 *      for each lane: acquire ask.number = posts + 1; group barrier; decide; copy its part into B's
 *      buffer; group barrier; release tail = (slots += pieces) x slot_bytes; posts += 1.
 *      for all its lanes, if B pulls: until credit.slots >= slots.
 *   B: for all its lanes: group barrier; ask {place, bytes}, release ask.number = posts + 1.
 *      for each lane: acquire offer.number = posts + 1; group barrier; decide; copy its part out of A's
 *      buffer; group barrier; credit.slots = (slots += pieces); posts += 1.
 *      for all its lanes, if A pushes: an acquire until tail >= slots x slot_bytes; group barrier.
 *
 * Why no buffer is touched before its call has begun, or after it has returned: A pushes only after B's
 * ask and B returns only after A's tail; B pulls only after A's offer and A returns only after B's
 * credit. Posts release what the caller did with the buffer before, and are acquired.
 * Why no post is missed or overwritten unread: post n + 2 of a side lies where post n did. A side posts
 * n + 2 after it has done message n + 1, so it has read the other's post n + 1, which the other stored
 * after it had done message n, so after all its threads had read post n. One turn would not do: the
 * sender of a pushed message, and the receiver of a pulled one, may be done before the other has
 * looked. Short messages in between count in neither.
 * Why tail and credit stay true for the ring: nothing of a straight message lies in the ring, so its
 * slots are free as soon as they are counted; both sides count the same pieces, by the deal.
 * Why no wait is circular: all posts of a call are stored before its first wait, so a wait for a post
 * ends when the other side's call begins; waits at the end are for copies that wait for nothing. What
 * goes through the ring is as in every pipe.
 * Lengths that differ are found by whoever sees the other's post, on every lane, before it copies: a
 * push never goes beyond what B asked for. A short message that meets a bulk one is found by the
 * receiver on lane 0, as in every pipe.
 * After a failure the peer may still be copying into or out of the buffer, until it gets to know. The
 * memory stays, since the window outlives the pipe.
 */
#ifndef HEM_DEVICE_STRAIGHT_H
#define HEM_DEVICE_STRAIGHT_H

#include <hem/device/course.h>

/* Moving. */

/** The first part of a piece of `n` bytes, which the sender pushes if both sides copy. */
HEM_DEV uint32_t hemd_straight_cut(uint32_t n) {
    return n <= HEMD_PIPE_GRAIN ? n
                                : (n / 2 + HEMD_PIPE_GRAIN - 1) / HEMD_PIPE_GRAIN * HEMD_PIPE_GRAIN;
}

HEM_DEV void hemd_straight_copy(hem_group group, unsigned char *to, const unsigned char *from,
                                uint32_t n) {
#if defined(__CUDACC__)
    uint32_t head = (uint32_t)(0u - (uintptr_t)to) & 15u;
    if (head != 0 && n > head && (((uintptr_t)to ^ (uintptr_t)from) & 15u) == 0) {
        /* Misaligned alike: after a few bytes it is as if they were not. */
        for (uint32_t at = group.rank; at < head; at += group.size)
            to[at] = from[at];
        to += head;
        from += head;
        n -= head;
    }
#endif
    hemd_pipe_copy(group, to, from, n);
}

/** Copy this side's part of all pieces of the lane. */
HEM_DEV void hemd_course_copy(hemd_course *course, hem_group group, bool receives) {
    hemd_flow *flow = &course->flow;
    while (flow->piece < flow->deal->pieces) {
        uint32_t n = hemd_flow_length(flow);
        uint32_t cut = !course->pushed ? 0 : course->pulled ? hemd_straight_cut(n) : n;
        uint64_t at = hemd_flow_offset(flow) + (receives ? cut : 0);
        if (receives && cut < n)
            hemd_straight_copy(group, flow->data + at, course->other + at, n - cut);
        else if (!receives && cut > 0)
            hemd_straight_copy(group, course->other + at, flow->data + at, cut);
        hemd_flow_advance(flow);
    }
}

/** This side's part of the lane is copied: say so. */
HEM_DEV void hemd_course_publish(const hemd_course *course, hem_group group, bool receives) {
    const hemd_flow *flow = &course->flow;
    const hemd_way *way = flow->way;
    hem_group_sync(group);
    if (group.rank != 0)
        return;
    if (receives) {
        hemd_store64_credit(&hemd_flow_credit(flow)->slots, flow->at);
    } else {
        hemd_tail *tails = (hemd_tail *)(void *)(way->out + way->area.tails);
        hemd_store64_release(&tails[flow->lane].bytes, flow->at * flow->pipe->slot_bytes,
                             way->near != 0);
    }
}

/** The flow has left `lane` behind. */
HEM_DEV void hemd_course_next(hemd_course *course, hem_group group, uint32_t lane, bool receives) {
    const hemd_way *way = course->flow.way;
    hemd_cursor *cursor = (receives ? way->taken : way->sent) + lane;
    if (group.rank == 0 && course->flow.kept == HEM_OK)
        hemd_store64_relaxed(&cursor->posts, hemd_load64_relaxed(&cursor->posts) + 1);
    hemd_course_enter(course, receives);
}

/** The posts of a lane are there: carry out what they say. */
HEM_DEV void hemd_course_move(hemd_course *course, hem_group group, bool receives) {
    hemd_flow *flow = &course->flow;
    uint32_t lane = flow->lane;
    if (!hemd_course_decide(course, receives)) {
        flow->kept = HEM_ERR_MISMATCH;
    } else if (!course->pushed && !course->pulled) {
        course->stage = HEMD_STAGE_RING;
    } else {
        hemd_course_copy(course, group, receives);
        hemd_course_publish(course, group, receives);
        hemd_flow_leave(flow, group, receives);
        hemd_course_next(course, group, lane, receives);
    }
}

/** One step, which may be done: by all threads. */
HEM_DEV void hemd_course_step(hemd_course *course, hem_group group, bool receives) {
    hemd_flow *flow = &course->flow;
    uint32_t lane = flow->lane;
    if (course->stage == HEMD_STAGE_AGREE) {
        hemd_course_move(course, group, receives);
        return;
    }
    if (course->stage == HEMD_STAGE_END) {
        course->stage = HEMD_STAGE_DONE;
        return;
    }
    if (receives)
        hemd_recv_step(flow, group);
    else
        hemd_send_step(flow, group);
    if (flow->lane == lane)
        return;
    if (!flow->brief)
        hemd_course_next(course, group, lane, receives);
    else if (flow->lane >= flow->deal->lanes)
        course->stage = HEMD_STAGE_DONE;
}

/* Waiting, by the leader. */

/** Whether the other is done with this side's buffer; looks at one lane after the other. */
HEM_DEV bool hemd_course_ended(hemd_course *course, bool receives) {
    hemd_flow *flow = &course->flow;
    while (flow->lane < flow->deal->lanes) {
        uint64_t slots = hemd_load64_relaxed(&hemd_flow_cursor(flow, receives)->slots);
        flow->seen = hemd_flow_load(flow, receives);
        if (!hemd_flow_may(flow, receives ? slots * flow->pipe->slot_bytes : slots))
            return false;
        flow->lane += flow->parts;
    }
    return true;
}

/** Whether the next step may be done, looking once. */
HEM_DEV bool hemd_course_may(hemd_course *course, bool receives) {
    hemd_flow *flow = &course->flow;
    if (course->stage == HEMD_STAGE_END)
        return hemd_course_ended(course, receives);
    if (course->stage == HEMD_STAGE_AGREE) {
        uint64_t number = 0;
        const hemd_post *post = hemd_course_others(course, receives, &number);
        return (int64_t)(hemd_acquire64(&post->number, flow->way->near != 0) - number) >= 0;
    }
    uint64_t wants = hemd_flow_wants(flow, receives);
    if (!hemd_flow_may(flow, wants))
        flow->seen = hemd_flow_load(flow, receives);
    return hemd_flow_may(flow, wants);
}

/** One more look in vain. At the end, lane 0 may have the next message, which has any length. */
HEM_DEV hem_status hemd_course_patience(const hemd_course *course, bool receives, uint32_t *polls,
                                        uint64_t *since) {
    bool expects = receives && course->stage != HEMD_STAGE_END;
    return hemd_flow_patience(&course->flow, expects, polls, since);
}

HEM_DEV hem_status hemd_course_await(hemd_course *course, bool receives) {
    uint32_t polls = 0;
    uint64_t since = 0;
    hem_status status = course->flow.kept;
    if (status != HEM_OK)
        return status;
    for (;;) {
        if (hemd_course_may(course, receives))
            return HEM_OK;
        if (status != HEM_OK)
            return status;
        status = hemd_course_patience(course, receives, &polls, &since);
    }
}

/* Whole messages. */

/** A message of the bulk form: this group's share. */
HEM_DEV hem_status hemd_course_run(hemd_course *course, hem_group group, bool receives) {
    hem_status status = hemd_course_post(course, group, receives);
    while (status == HEM_OK && course->stage != HEMD_STAGE_DONE) {
        hem_status mine = group.rank == 0 ? hemd_course_await(course, receives) : HEM_OK;
        status = hemd_flow_agree(&course->flow, group, mine);
        if (status == HEM_OK)
            hemd_course_step(course, group, receives);
    }
    return status == HEM_OK ? hemd_flow_agree(&course->flow, group, course->flow.kept) : status;
}

HEM_DEV hem_status hemd_straight_run(const hem_dev_pipe *pipe, const hemd_way *way,
                                     const hemd_deal *deal, hem_group group, const void *data,
                                     const hemd_share *share, const hemd_ends *ends,
                                     bool receives) {
    hemd_flow flow = hemd_flow_begin(pipe, way, deal, data, share, false, receives);
    hemd_course course = hemd_course_begin(&flow, ends, receives);
    return hemd_course_run(&course, group, receives);
}

/** Whether a course can do a step, looking once. By all threads. */
HEM_DEV bool hemd_course_ready(hemd_course *course, hem_group group, bool receives) {
    hemd_flow *flow = &course->flow;
    if (course->stage == HEMD_STAGE_DONE)
        return false;
    if (receives && flow->brief)
        return hemd_recv_units_ready(flow, group);
    return hem_group_any(group, group.rank == 0 && hemd_course_may(course, receives));
}

/** Both by one group: a step of whichever can, until both are done. */
HEM_DEV hem_status hemd_courses_in_turns(hemd_course *out, hemd_course *in, hem_group group) {
    uint32_t polls[2] = {0, 0};
    uint64_t since[2] = {0, 0};
    hem_status mine = hemd_course_post(out, group, false);
    if (mine == HEM_OK)
        mine = hemd_course_post(in, group, true);
    for (;;) {
        hem_status status = hemd_flow_agree(&out->flow, group, mine);
        bool sends = out->stage != HEMD_STAGE_DONE, receives = in->stage != HEMD_STAGE_DONE;
        if (status != HEM_OK || (!sends && !receives))
            return status;
        bool out_moves = hemd_course_ready(out, group, false);
        if (out_moves)
            hemd_course_step(out, group, false);
        bool in_moves = hemd_course_ready(in, group, true);
        if (in_moves)
            hemd_course_step(in, group, true);
        mine = out->flow.kept != HEM_OK ? out->flow.kept : in->flow.kept;
        if (out_moves || in_moves || group.rank != 0 || mine != HEM_OK)
            continue;
        if (sends)
            mine = hemd_course_patience(out, false, &polls[0], &since[0]);
        if (receives && mine == HEM_OK)
            mine = hemd_course_patience(in, true, &polls[1], &since[1]);
    }
}

#endif
