/*
 * A rank dies while kernels of the others wait for it on a pipe with a window: before it has said where
 * its buffer is, and in the middle of a message, when half of its lanes are done. The kernels end, the
 * status says HEM_ERR_PEER, and the memory of the dead rank that they were copying into or out of does
 * not fault.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it
 * die by a signal: tests/script/device-pipe-death.sh does that.
 *
 * hem-test: ranks=2,3 modes=threads timeout=60
 */
#include "pipe_straight_kit.h"

#include <signal.h>

#define ROOM  400000
#define BYTES 300000

enum {
    SENDS_NOTHING, /* the victim was to send and has not begun */
    TAKES_NOTHING,
    SENDS_HALF, /* the victim has begun with half of its lanes */
    TAKES_HALF,
    PIPES
};

typedef struct part_args {
    hem_dev_pipe pipe;
    unsigned char *data;
    uint64_t sends;
} part_args;

/* One of two parts takes its lanes, the other one never comes. The survivor has an even number of
 * groups, so that some of them have these lanes alone and others none of them. */
DEVICE_KERNEL(straight_half_dead, part_args) {
    hem_group warp = hem_warp();
    hem_status status =
        args->sends != 0
            ? hem_dev_send_part(args->pipe, warp, 0, 2, 0, args->data, BYTES, HEM_SEC(10))
            : hem_dev_recv_part(args->pipe, warp, 0, 2, 0, args->data, BYTES, HEM_SEC(10));
    (void)status;
}

static void begin_half(pipe_kit *kit, straight_kit *it, bool sends) {
    part_args args;
    CHECK_OK(hem_pipe_device(kit->pipe, &args.pipe));
    args.data = straight_place(it, STRAIGHT_INSIDE, !sends, BYTES, 0);
    args.sends = sends ? 1 : 0;
    device_launch(straight_half_dead, kit->native, 1, 1, &args);
}

static int die(pipe_kit *kits, straight_kit *it) {
    begin_half(&kits[SENDS_HALF], it, true);
    begin_half(&kits[TAKES_HALF], it, false);
    device_stream_sync(kits[SENDS_HALF].native);
    device_stream_sync(kits[TAKES_HALF].native);
    CHECK_OK(hem_sync(kits[0].world, LIMIT));
    harness_sleep_ms(10);
    const char *manner = getenv("HEM_TEST_DIE");
    if (manner != NULL && strcmp(manner, "kill") == 0)
        (void)raise(SIGKILL);
    for (int i = 0; i < PIPES; i++)
        device_stream_destroy(kits[i].native);
    harness_forget();
    return 0;
}

static void expect_end(pipe_kit *kit) {
    device_stream_sync(kit->native);
    CHECK_STATUS(hem_pipe_status(kit->pipe), HEM_ERR_PEER);
}

static void survive(pipe_kit *kits, straight_kit *it) {
    hem_pipe_how call = pipe_kit_how(2, 2, 1, 0);
    int victim = kits[0].size - 1;
    unsigned char *send = straight_place(it, STRAIGHT_INSIDE, false, BYTES, 0);
    unsigned char *recv = straight_place(it, STRAIGHT_INSIDE, true, BYTES, 0);
    bool begun = kits[0].rank == 0;
    pipe_kit_call(&kits[SENDS_NOTHING], -1, NULL, 0, victim, recv, BYTES, &call);
    pipe_kit_call(&kits[TAKES_NOTHING], victim, send, BYTES, -1, NULL, 0, &call);
    if (begun) {
        pipe_kit_call(&kits[SENDS_HALF], -1, NULL, 0, victim, recv + 4096, BYTES, &call);
        pipe_kit_call(&kits[TAKES_HALF], victim, send, BYTES, -1, NULL, 0, &call);
    }
    CHECK_OK(hem_sync(kits[0].world, LIMIT)); /* the victim dies only now */
    for (int i = 0; i < (begun ? PIPES : SENDS_HALF); i++)
        expect_end(&kits[i]);
    hem_pipe_half half = pipe_kit_half(victim, recv, BYTES);
    CHECK_STATUS(hem_pipe_sendrecv(kits[0].pipe, NULL, &half, &call, kits[0].stream), HEM_ERR_PEER);
    CHECK_NAMES_RANK(victim);
    /* What the dead rank has in the window can still be read. */
    hem_dev_window dev;
    hemd_peer peer;
    unsigned char byte;
    CHECK_OK(hem_window_device(it->window, &dev));
    device_copy(&peer, dev.peers + victim, sizeof peer);
    device_copy(&byte, peer.data + 64, 1);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(2, 1024, 2, 1024);
    straight_kit it;
    pipe_kit kits[PIPES];
    it = straight_open_in(world, &options, ROOM, false);
    kits[0] = it.kit;
    for (int i = 1; i < PIPES; i++)
        kits[i] = pipe_kit_open(world, &options);
    if (kits[0].rank == kits[0].size - 1)
        return die(kits, &it);
    survive(kits, &it);
    for (int i = PIPES - 1; i > 0; i--)
        pipe_kit_close(&kits[i], HEM_ERR_PEER);
    straight_close(&it, HEM_ERR_PEER);
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", kits[0].rank);
        fflush(stdout);
    }
    return 0;
}
