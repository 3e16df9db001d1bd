/*
 * A rank dies while kernels of the others wait for its message, or for it to make room: they end, the
 * status says HEM_ERR_PEER, and what it had sent before can still be received.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it
 * die by a signal: tests/script/device-pipe-death.sh does that.
 *
 * hem-test: ranks=2,3 modes=threads timeout=60
 */
#include "pipe_kit.h"

#include <signal.h>

#define ROOM 200000

/* The last rank is the victim. It sends one short and one long message to each, and is gone. */
static int die(pipe_kit *kits, unsigned char *data) {
    hem_pipe_how how = pipe_kit_how(1, 2, 1, 0);
    pipe_kit_fill(data, 3000, 5);
    for (int r = 0; r < kits[0].size - 1; r++) {
        pipe_kit_call(&kits[0], r, data, 100, -1, NULL, 0, &how);
        pipe_kit_call(&kits[0], r, data, 3000, -1, NULL, 0, &how);
    }
    device_stream_sync(kits[0].native);
    CHECK_OK(hem_sync(kits[0].world, LIMIT));
    harness_sleep_ms(30);
    const char *manner = getenv("HEM_TEST_DIE");
    if (manner != NULL && strcmp(manner, "kill") == 0)
        (void)raise(SIGKILL);
    for (int i = 0; i < 4; i++)
        device_stream_destroy(kits[i].native);
    device_free(data);
    harness_forget();
    return 0;
}

static void survive(pipe_kit *kits, unsigned char *data) {
    hem_pipe_how how = pipe_kit_how(2, 2, 1, 0);
    int victim = kits[0].size - 1;
    /* The first pipe waits for a long message, the second for a short one, the third for room. */
    pipe_kit_call(&kits[1], -1, NULL, 0, victim, data + 64, ROOM / 2, &how);
    pipe_kit_call(&kits[2], -1, NULL, 0, victim, data + 64, 8, &how);
    pipe_kit_call(&kits[3], victim, data, ROOM, -1, NULL, 0, &how);
    CHECK_OK(hem_sync(kits[0].world, LIMIT)); /* the victim dies only now */
    for (int i = 1; i < 4; i++) {
        device_stream_sync(kits[i].native);
        CHECK_STATUS(hem_pipe_status(kits[i].pipe), HEM_ERR_PEER);
    }
    /* Kernels still reach what was sent, although a call on the host is refused now. */
    hem_pipe_half half = pipe_kit_half(victim, data + 64, 100);
    CHECK_STATUS(hem_pipe_sendrecv(kits[0].pipe, NULL, &half, &how, kits[0].stream), HEM_ERR_PEER);
    CHECK_NAMES_RANK(victim);
}

typedef struct last_args {
    hem_dev_pipe pipe;
    unsigned char *data;
    int32_t peer;
    uint64_t *status;
} last_args;

DEVICE_KERNEL(pipe_last_words, last_args) {
    hem_group block = hem_block();
    hem_status status =
        hem_dev_recv(args->pipe, block, args->peer, args->data + 16, 100, HEM_FOREVER);
    if (status == HEM_OK)
        status = hem_dev_recv(args->pipe, block, args->peer, args->data + 1024, 3000, HEM_FOREVER);
    if (block.rank == 0)
        args->status[0] = (uint64_t)-status;
    status = hem_dev_recv(args->pipe, block, args->peer, args->data + 8192, 100, HEM_FOREVER);
    if (block.rank == 0)
        args->status[1] = (uint64_t)-status;
}

static void last_words(pipe_kit *kit) {
    last_args args;
    uint64_t status[2] = {99, 99};
    CHECK_OK(hem_pipe_device(kit->pipe, &args.pipe));
    args.data = (unsigned char *)device_alloc(16384);
    args.status = (uint64_t *)device_alloc(16);
    args.peer = kit->size - 1;
    device_launch(pipe_last_words, kit->native, 1, 2, &args);
    device_stream_sync(kit->native);
    device_copy(status, args.status, 16);
    CHECK_EQ(status[0], 0);
    CHECK_EQ(status[1], (uint64_t)-HEM_ERR_PEER);
    pipe_kit_expect(args.data + 16, 100, 5);
    pipe_kit_expect(args.data + 1024, 3000, 5);
    device_free(args.data);
    device_free(args.status);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(2, 1024, 2, 1024);
    unsigned char *data = (unsigned char *)device_alloc(ROOM + 64);
    pipe_kit kits[4];
    for (int i = 0; i < 4; i++)
        kits[i] = pipe_kit_open(world, &options);
    if (kits[0].rank == kits[0].size - 1)
        return die(kits, data);
    survive(kits, data);
    last_words(&kits[0]);
    for (int i = 0; i < 4; i++)
        pipe_kit_close(&kits[i], HEM_ERR_PEER);
    device_free(data);
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", kits[0].rank);
        fflush(stdout);
    }
    return 0;
}
