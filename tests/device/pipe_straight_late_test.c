/*
 * Nobody touches a buffer in the window before the call that names it, or after: a sender that comes
 * long before its receiver leaves the receiver's memory alone and waits, and a receiver that comes
 * first gets what the sender has when its call begins. What follows the send on its stream may change
 * the buffer at once.
 *
 * hem-test: ranks=2,3 timeout=120
 */
#include "pipe_straight_kit.h"

#define ROOM  (1u << 20)
#define BYTES 300001

typedef struct scribble_args {
    unsigned char *data;
    uint64_t bytes;
    uint32_t value;
} scribble_args;

DEVICE_KERNEL(straight_scribble, scribble_args) {
    hem_group block = hem_block();
    for (uint64_t i = block.rank; i < args->bytes; i += block.size)
        args->data[i] = (unsigned char)args->value;
}

static void scribble(pipe_kit *kit, unsigned char *data, size_t bytes, uint32_t value) {
    scribble_args args;
    args.data = data;
    args.bytes = bytes;
    args.value = value;
    device_launch(straight_scribble, kit->native, 1, 2, &args);
}

static void expect_all(const unsigned char *device, size_t bytes, uint8_t value) {
    unsigned char *host = (unsigned char *)malloc(bytes);
    CHECK(host != NULL);
    device_copy(host, device, bytes);
    CHECK_ALL(host, bytes, value);
    free(host);
}

/* Rank 0 sends; rank 1 looks at its buffer for a while, then receives. */
static void receiver_late(straight_kit *it, enum straight_where from, enum straight_where to,
                          uint64_t tag) {
    pipe_kit *kit = &it->kit;
    unsigned char *send = straight_place(it, from, false, BYTES, 0);
    unsigned char *recv = straight_place(it, to, true, BYTES, 0);
    hem_pipe_how how = pipe_kit_how(2, 1 + (uint32_t)kit->rank, 1, 0);
    if (kit->rank == 0) {
        pipe_kit_fill(send, BYTES, tag);
        pipe_kit_call(kit, 1, send, BYTES, -1, NULL, 0, &how);
        scribble(kit, send, BYTES, 0xee);
        harness_sleep_ms(20);
        CHECK(!device_stream_done(kit->native));
    } else if (kit->rank == 1) {
        scribble(kit, recv, BYTES, 0xab);
        device_stream_sync(kit->native);
    }
    harness_same(kit->world, tag); /* the sender's kernel has waited by now */
    if (kit->rank == 1) {
        expect_all(recv, BYTES, 0xab);
        /* What is on the stream before the call still owns the buffer. */
        straight_clear(recv, BYTES);
        scribble(kit, recv, BYTES, 0xcd);
        pipe_kit_call(kit, -1, NULL, 0, 0, recv, BYTES, &how);
    }
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    if (kit->rank == 1)
        pipe_kit_expect(recv, BYTES, tag);
    if (kit->rank == 0)
        expect_all(send, BYTES, 0xee);
    harness_same(kit->world, tag);
}

/* Rank 1 receives; rank 0 changes its data until it sends. */
static void sender_late(straight_kit *it, enum straight_where from, enum straight_where to,
                        uint64_t tag) {
    pipe_kit *kit = &it->kit;
    unsigned char *send = straight_place(it, from, false, BYTES, 0);
    unsigned char *recv = straight_place(it, to, true, BYTES, 0);
    hem_pipe_how how = pipe_kit_how(1 + (uint32_t)kit->rank, 2, 2, 0);
    if (kit->rank == 0)
        pipe_kit_fill(send, BYTES, tag + 1000);
    if (kit->rank == 1) {
        straight_clear(recv, BYTES);
        pipe_kit_call(kit, -1, NULL, 0, 0, recv, BYTES, &how);
        harness_sleep_ms(20);
        CHECK(!device_stream_done(kit->native));
    }
    harness_same(kit->world, tag);
    if (kit->rank == 0) {
        pipe_kit_fill(send, BYTES, tag);
        pipe_kit_call(kit, 1, send, BYTES, -1, NULL, 0, &how);
        scribble(kit, send, BYTES, 0xee);
    }
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    if (kit->rank == 1)
        pipe_kit_expect(recv, BYTES, tag);
    harness_same(kit->world, tag);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(2, 4096, 2, 1024);
    straight_kit it = straight_open(world, &options, ROOM);
    int rounds = harness_rounds(6);
    uint64_t tag = 1;
    for (int round = 0; round < rounds; round++)
        for (int from = 0; from <= STRAIGHT_OUTSIDE; from++)
            for (int to = 0; to <= STRAIGHT_OUTSIDE; to++, tag++) {
                harness_step("message", tag);
                receiver_late(&it, (enum straight_where)from, (enum straight_where)to, tag);
                sender_late(&it, (enum straight_where)from, (enum straight_where)to, tag);
            }
    straight_close(&it, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
