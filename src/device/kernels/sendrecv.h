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

HEM_DEV void hemd_kernel_sendrecv(const struct hemd_sendrecv_args *args) {
    uint32_t teams = args->warps / args->team;
    uint32_t place = hem_warp_index() / args->team; /* of the team in its block */
    bool sends = args->send.there != 0 && hem_warp_index() < args->warps;
    hemd_share share;
    share.part = hem_block_index() * teams + place % teams;
    share.parts = hem_block_count() * teams;
    share.chunk = args->chunk;
    share.timeout_ns = args->timeout_ns;
    if (args->team == 1)
        hemd_sendrecv_team(args, hem_warp(), sends, &share);
    else
        hemd_sendrecv_team(args, hem_warps(place * args->team, args->team, 1 + place), sends,
                           &share);
}

#endif
