/*
 * The kernel of hem_pipe_sendrecv. Each block has warps that send and warps that receive, in teams
 * that know nothing of each other: a team of one warp needs no barrier, a larger one has a named
 * barrier of its own. While one team waits for a word, a fence or its memory, the others copy.
 */
#ifndef HEMI_DEVICE_KERNELS_SENDRECV_H
#define HEMI_DEVICE_KERNELS_SENDRECV_H

#include <hem/device/pipe.h>

/** One direction of a call. */
typedef struct hemd_half {
    hemd_way
        way; /**< here rather than behind a pointer, so that a short message need not load it */
    hemd_deal deal;
    void *data;
    uint64_t there; /**< not 0: there is such a half */
} hemd_half;

struct hemd_sendrecv_args {
    hem_dev_pipe pipe;
    hemd_half send;
    hemd_half recv;
    int64_t timeout_ns;
    uint32_t chunk;
    uint32_t spare;
    uint32_t warps; /**< of each role in a block */
    uint32_t team;  /**< warps of a team; divides `warps` */
};

/** The same for a pipe with a window, if a half has the bulk form. */
struct hemd_straight_args {
    struct hemd_sendrecv_args call;
    hemd_ends send;
    hemd_ends recv;
};

/** What one team does. */
HEM_DEV void hemd_sendrecv_team(const struct hemd_sendrecv_args *args, hem_group team, bool sends,
                                const hemd_share *share) {
    if (sends)
        (void)hemd_send_run(&args->pipe, &args->send.way, &args->send.deal, team, args->send.data,
                            share);
    else
        (void)hemd_recv_run(&args->pipe, &args->recv.way, &args->recv.deal, team, args->recv.data,
                            share);
}

/** What one team does in a pipe with a window. */
HEM_DEV void hemd_straight_team(const struct hemd_straight_args *args, hem_group team, bool sends,
                                const hemd_share *share) {
    const struct hemd_sendrecv_args *call = &args->call;
    const hemd_half *half = sends ? &call->send : &call->recv;
    if (half->deal.brief) {
        hemd_flow flow =
            hemd_flow_begin(&call->pipe, &half->way, &half->deal, half->data, share, true, !sends);
        (void)(sends ? hemd_send_brief(&flow, team) : hemd_recv_brief(&flow, team));
    } else if (sends) {
        (void)hemd_straight_run(&call->pipe, &call->send.way, &call->send.deal, team,
                                call->send.data, share, &args->send, false);
    } else {
        (void)hemd_straight_run(&call->pipe, &call->recv.way, &call->recv.deal, team,
                                call->recv.data, share, &args->recv, true);
    }
}

/** Which share of the call the team of this thread has. @return whether it sends. */
HEM_DEV bool hemd_sendrecv_share(const struct hemd_sendrecv_args *args, uint32_t place,
                                 hemd_share *share) {
    uint32_t teams = args->warps / args->team;
    share->part = hem_block_index() * teams + place % teams;
    share->parts = hem_block_count() * teams;
    share->chunk = args->chunk;
    share->timeout_ns = args->timeout_ns;
    return args->send.there != 0 && hem_warp_index() < args->warps;
}

HEM_DEV void hemd_kernel_sendrecv(const struct hemd_sendrecv_args *args) {
    uint32_t place = hem_warp_index() / args->team; /* of the team in its block */
    hemd_share share;
    bool sends = hemd_sendrecv_share(args, place, &share);
    if (args->team == 1)
        hemd_sendrecv_team(args, hem_warp(), sends, &share);
    else
        hemd_sendrecv_team(args, hem_warps(place * args->team, args->team, 1 + place), sends,
                           &share);
}

HEM_DEV void hemd_kernel_straight(const struct hemd_straight_args *args) {
    uint32_t place = hem_warp_index() / args->call.team;
    hemd_share share;
    bool sends = hemd_sendrecv_share(&args->call, place, &share);
    if (args->call.team == 1)
        hemd_straight_team(args, hem_warp(), sends, &share);
    else
        hemd_straight_team(args, hem_warps(place * args->call.team, args->call.team, 1 + place),
                           sends, &share);
}

#endif
