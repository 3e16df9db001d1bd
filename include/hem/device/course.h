/*
 * How the two sides of a message of a pipe with a window agree on where it goes. Why it is safe stands
 * in hem/device/straight.h.
 */
#ifndef HEM_DEVICE_COURSE_H
#define HEM_DEVICE_COURSE_H

#include <hem/device/steps.h>

/** What a side knows by itself of where its message begins and ends. */
typedef struct hemd_ends {
    uint64_t here; /**< offset of its own buffer in its memory of the window, or HEMD_NOWHERE */
    unsigned char *far; /**< the peer's memory of the window */
    uint64_t far_bytes;
} hemd_ends;

enum hemd_stage {
    HEMD_STAGE_RING = 0, /**< moves through a ring; in this stage the flow does everything */
    HEMD_STAGE_AGREE,    /**< waits for the other's post on this lane */
    HEMD_STAGE_END,      /**< waits until the other is done with this side's buffer */
    HEMD_STAGE_DONE
};

/** A flow that may go straight. */
typedef struct hemd_course {
    hemd_flow flow;
    hemd_ends ends;
    unsigned char *other; /**< the peer's buffer, where it can be reached */
    uint32_t first;       /**< the first lane of this group */
    enum hemd_stage stage;
    bool pushed; /**< the sender copies */
    bool pulled; /**< the receiver copies; both: a half each; none: through the ring */
} hemd_course;

/** Where `n` bytes at `data` lie in `bytes` bytes at `base`. */
HEM_DEV uint64_t hemd_place_in(const unsigned char *base, uint64_t bytes, const void *data,
                               uint64_t n) {
    uint64_t place = (uint64_t)(uintptr_t)data - (uint64_t)(uintptr_t)base;
    return base != NULL && place <= bytes && n <= bytes - place ? place : HEMD_NOWHERE;
}

/** The ends of a message, from the tables of the window. */
HEM_DEV hemd_ends hemd_ends_of(const hem_dev_pipe *pipe, int peer, const void *data, uint64_t n) {
    const hemd_peer *mine = &pipe->straight.peers[pipe->straight.rank];
    const hemd_peer *theirs = &pipe->straight.peers[peer];
    hemd_ends ends;
    ends.here = hemd_place_in(mine->data, mine->bytes, data, n);
    ends.far = theirs->data;
    ends.far_bytes = theirs->data != NULL ? theirs->bytes : 0;
    return ends;
}

/** Come to a lane, unless there is none left. */
HEM_DEV void hemd_course_enter(hemd_course *course, bool receives) {
    if (course->flow.lane < course->flow.deal->lanes) {
        course->stage = HEMD_STAGE_AGREE;
        return;
    }
    course->stage = (receives ? course->pushed : course->pulled) ? HEMD_STAGE_END : HEMD_STAGE_DONE;
    course->flow.lane = course->first;
}

HEM_DEV hemd_course hemd_course_begin(const hemd_flow *flow, const hemd_ends *ends, bool receives) {
    hemd_course course;
    course.flow = *flow;
    course.ends = *ends;
    course.other = NULL;
    course.first = flow->lane;
    course.stage = HEMD_STAGE_RING;
    course.pushed = course.pulled = false;
    if (!flow->brief || flow->lane >= flow->deal->lanes)
        hemd_course_enter(&course, receives);
    return course;
}

/** What a thread posts for one lane. */
typedef struct hemd_notice {
    uint64_t lane;
    uint64_t number;
    uint64_t message;
} hemd_notice;

/** Load what is posted for a lane, if there is such a lane. */
HEM_DEV hemd_notice hemd_course_notice(const hemd_course *course, uint64_t lane, bool receives) {
    const hemd_way *way = course->flow.way;
    const hemd_cursor *cursor = (receives ? way->taken : way->sent) + lane;
    hemd_notice notice = {lane, 0, 0};
    if (lane < course->flow.deal->lanes) {
        notice.number = hemd_load64_relaxed(&cursor->posts) + 1;
        notice.message = hemd_load64_relaxed(&cursor->messages) + 1;
    }
    return notice;
}

/** By one thread: post for one lane. */
HEM_DEV void hemd_course_tell(const hemd_course *course, hemd_notice notice, bool receives) {
    const hemd_way *way = course->flow.way;
    hemd_post *post =
        (hemd_post *)(void *)(way->out + (receives ? way->area.asks : way->area.offers)) +
        (notice.lane * HEMD_PIPE_POSTS + notice.number % HEMD_PIPE_POSTS);
    hemd_store64_relaxed(&post->place, course->ends.here);
    hemd_store64_relaxed(&post->bytes, course->flow.deal->bytes);
    hemd_store64_relaxed(&post->message, notice.message);
    hemd_store64_release(&post->number, notice.number, way->near != 0);
}

/** Post for all lanes of this group, a thread for each. Nothing if the pipe has failed. */
HEM_DEV hem_status hemd_course_post(const hemd_course *course, hem_group group, bool receives) {
    const hemd_flow *flow = &course->flow;
    uint64_t step = (uint64_t)group.size * flow->parts;
    uint64_t lane = course->first + (uint64_t)group.rank * flow->parts;
    /* The loads are under way while the status is agreed on. The barrier in that is for what the group
     * has done with the buffer. */
    hemd_notice notice = hemd_course_notice(course, lane, receives);
    hem_status status = hemd_flow_agree(flow, group, flow->kept);
    if (status != HEM_OK || course->stage != HEMD_STAGE_AGREE)
        return status;
    while (notice.lane < flow->deal->lanes) {
        hemd_course_tell(course, notice, receives);
        notice = hemd_course_notice(course, notice.lane + step, receives);
    }
    return HEM_OK;
}

/** The other's post for this lane and its number. */
HEM_DEV const hemd_post *hemd_course_others(const hemd_course *course, bool receives,
                                            uint64_t *number_p) {
    const hemd_flow *flow = &course->flow;
    *number_p = hemd_load64_relaxed(&hemd_flow_cursor(flow, receives)->posts) + 1;
    return hemd_way_post(flow->way, flow->lane, *number_p, receives);
}

/** By all threads: the other's post is there. @return whether it fits to this side's. */
HEM_DEV bool hemd_course_decide(hemd_course *course, bool receives) {
    uint64_t number = 0, n = course->flow.deal->bytes;
    const hemd_post *post = hemd_course_others(course, receives, &number);
    uint64_t place = hemd_load64_relaxed(&post->place);
    uint64_t bytes = hemd_load64_relaxed(&post->bytes);
    bool here = course->ends.here != HEMD_NOWHERE, there = place != HEMD_NOWHERE;
    course->pushed = receives ? here : there;
    course->pulled = receives ? there : here;
    bool fits = place <= course->ends.far_bytes && n <= course->ends.far_bytes - place;
    if (there && fits)
        course->other = course->ends.far + place;
    return bytes == n && (!there || fits);
}

#endif
