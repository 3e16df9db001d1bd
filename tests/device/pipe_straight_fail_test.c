/*
 * What ends a message on a pipe with a window: lengths that differ between the sides, in all forms
 * and places, are HEM_ERR_MISMATCH on both, and the receiver's buffer is not written beyond its end; a
 * peer that does not come, or comes with half of its lanes only, is HEM_ERR_TIMEOUT after the limit; a
 * revoke HEM_ERR_REVOKED. Options that are refused.
 *
 * hem-test: ranks=2,3 timeout=120
 */
#include "pipe_straight_kit.h"

#define SHORT 1024
#define ROOM  200000

static hem_pipe_options small(void) {
    return pipe_kit_options(2, 1024, 2, SHORT);
}

/* The error comes, sooner or later, without another call. */
static void await_status(pipe_kit *kit, hem_status want) {
    int64_t until = harness_now() + LIMIT;
    hem_status status = hem_pipe_status(kit->pipe);
    while (status == HEM_OK && harness_now() < until) {
        harness_sleep_ms(1);
        status = hem_pipe_status(kit->pipe);
    }
    CHECK_STATUS(status, want);
}

/* A pipe on a window that others share. */
static straight_kit another(straight_kit *base) {
    straight_kit it = *base;
    hem_pipe_options options = small();
    options.window = base->window;
    it.kit = pipe_kit_open(base->kit.world, &options);
    return it;
}

/* Calls after an error come to an end by themselves, with nobody at the other side. */
static void later_calls(straight_kit *it, hem_status want) {
    hem_pipe_how how = pipe_kit_how(1, 2, 1, 0);
    unsigned char *data = straight_place(it, STRAIGHT_INSIDE, true, 8, 0);
    int peer = straight_right(it);
    pipe_kit_call(&it->kit, -1, NULL, 0, peer, data, 8, &how);
    pipe_kit_call(&it->kit, -1, NULL, 0, peer, data, ROOM / 2, &how);
    pipe_kit_call(&it->kit, peer, data, ROOM / 2, -1, NULL, 0, &how);
    device_stream_sync(it->kit.native);
    CHECK_STATUS(hem_pipe_status(it->kit.pipe), want);
}

/* Rank 0 sends `sent` bytes, rank 1 wants `wanted`. A good message goes before. */
static void differ(straight_kit *base, uint64_t where, size_t sent, size_t wanted) {
    straight_kit it = another(base);
    pipe_kit *kit = &it.kit;
    hem_pipe_how how = pipe_kit_how(1 + (uint32_t)kit->rank, 2, 1, 0);
    unsigned char *send = straight_place(&it, (enum straight_where)(where % 2), false, sent, 0);
    unsigned char *recv = straight_place(&it, (enum straight_where)(where / 2), true, wanted, 0);
    harness_step("lengths", sent * 1000000 + wanted);
    straight_clear(recv, ROOM - 200);
    pipe_kit_fill(send, ROOM - 200, 7);
    if (kit->rank == 0) {
        pipe_kit_call(kit, 1, send, wanted, -1, NULL, 0, &how);
        pipe_kit_call(kit, 1, send, sent, -1, NULL, 0, &how);
    } else if (kit->rank == 1) {
        pipe_kit_call(kit, -1, NULL, 0, 0, recv, wanted, &how);
        pipe_kit_call(kit, -1, NULL, 0, 0, recv, wanted, &how);
    }
    device_stream_sync(kit->native);
    await_status(kit, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("given the pipe up");
    harness_same(kit->world, wanted); /* all kernels have ended */
    if (kit->rank == 1) {
        unsigned char *host = (unsigned char *)malloc(ROOM);
        CHECK(host != NULL);
        device_copy(host, recv + wanted, ROOM - 200 - wanted);
        CHECK_ALL(host, ROOM - 200 - wanted, 0);
        free(host);
    }
    later_calls(&it, HEM_ERR_MISMATCH);
    pipe_kit_close(kit, HEM_OK);
}

typedef struct part_args {
    hem_dev_pipe pipe;
    unsigned char *data;
    uint64_t bytes;
    uint64_t sends;
} part_args;

/* The first of two parts takes its lanes, the other one never comes. */
DEVICE_KERNEL(straight_half, part_args) {
    hem_group warp = hem_warp();
    hem_status status =
        args->sends != 0
            ? hem_dev_send_part(args->pipe, warp, 0, 2, 0, args->data, args->bytes, HEM_FOREVER)
            : hem_dev_recv_part(args->pipe, warp, 0, 2, 0, args->data, args->bytes, HEM_FOREVER);
    (void)status; /* whether this half is done when the peer gives up is a matter of time */
}

/* Rank 1 does not come, or with half of its lanes; rank 0 gives up, and everybody gets to know. */
static void late(straight_kit *base, uint64_t where, bool sends, bool half) {
    straight_kit it = another(base);
    pipe_kit *kit = &it.kit;
    hem_pipe_how how = pipe_kit_how(1, 2, 2, 0);
    how.timeout_ns = HEM_MS(30);
    size_t bytes = 100000;
    bool mine = kit->rank == 0 ? sends : !sends;
    enum straight_where place = (enum straight_where)(mine ? where % 2 : where / 2);
    unsigned char *data = straight_place(&it, place, !mine, bytes, 0);
    harness_step("late", 100 * where + (sends ? 10 : 0) + (half ? 1 : 0));
    if (kit->rank == 0) {
        int64_t start = harness_now();
        pipe_kit_call(kit, sends ? 1 : -1, data, bytes, sends ? -1 : 1, data, bytes, &how);
        device_stream_sync(kit->native);
        CHECK_STATUS(hem_pipe_status(kit->pipe), HEM_ERR_TIMEOUT);
        CHECK(harness_now() - start >= HEM_MS(30));
    } else if (kit->rank == 1 && half) {
        part_args args;
        CHECK_OK(hem_pipe_device(kit->pipe, &args.pipe));
        args.data = data;
        args.bytes = bytes;
        args.sends = sends ? 0 : 1;
        device_launch(straight_half, kit->native, 1, 1, &args);
        device_stream_sync(kit->native);
    }
    await_status(kit, HEM_ERR_TIMEOUT);
    later_calls(&it, HEM_ERR_TIMEOUT);
    pipe_kit_close(kit, HEM_OK);
}

/* Everybody waits until rank 0 revokes the world. */
static void revoked(hem_world *world, bool sends) {
    hem_world *copy = NULL;
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_pipe_options options = small();
    straight_kit it = straight_open(copy, &options, ROOM);
    pipe_kit *kit = &it.kit;
    int peer = straight_right(&it);
    unsigned char *data = straight_place(&it, STRAIGHT_INSIDE, true, 50000, 0);
    pipe_kit_call(kit, sends ? peer : -1, data, 50000, sends ? -1 : peer, data, 50000, NULL);
    harness_sleep_ms(10);
    CHECK(!device_stream_done(kit->native));
    harness_same(world, 0);
    if (kit->rank == 0)
        CHECK_OK(hem_world_revoke(copy));
    device_stream_sync(kit->native);
    CHECK_STATUS(hem_pipe_status(kit->pipe), HEM_ERR_REVOKED);
    CHECK_OK(hem_stream_destroy(kit->stream));
    device_stream_destroy(kit->native);
    hem_status status = hem_pipe_destroy(kit->pipe);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED); /* whoever comes last finds all there */
    harness_same(world, 0);
    status = hem_window_destroy(it.window);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
    harness_same(world, 0); /* nobody closes it while another still gives something up */
    status = hem_world_close(copy);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
    device_free(it.all);
    device_free(it.outside);
}

static void refused(hem_world *world, hem_window *window, hem_status want, const char *part) {
    hem_pipe *pipe = NULL;
    hem_pipe_options options = small();
    options.window = window;
    CHECK_STATUS(hem_pipe_create(world, &options, &pipe), want);
    CHECK(pipe == NULL);
    CHECK_SENTENCE(part);
}

/* Windows in host memory, of another world, another one on each rank, or where peers are not reached. */
static void bad_windows(straight_kit *base) {
    hem_world *world = base->kit.world, *copy = NULL;
    hem_window *host = harness_window(world, 64), *alone = NULL;
    int self = base->kit.rank;
    refused(world, host, HEM_ERR_ARG, "host memory");
    harness_destroy(host);
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    refused(copy, base->window, HEM_ERR_ARG, "another world");
    CHECK_OK(hem_world_close(copy));
    refused(world, self == 0 ? base->window : NULL, HEM_ERR_MISMATCH, "hem_pipe_create");
    hem_window_options options = straight_window_options(NULL, 4096);
    options.device_peers = &self;
    options.device_peer_count = 1;
    CHECK_OK(hem_window_create(world, &options, &alone));
    refused(world, alone, HEM_ERR_UNSUPPORTED, "in the window");
    CHECK_OK(hem_window_destroy(alone));
}

int rank_main(hem_world *world) {
    static const size_t lengths[] = {8, 1000, 1025, 5000, 60000, 60001, 120000};
    size_t count = sizeof lengths / sizeof lengths[0];
    hem_pipe_options options = small();
    straight_kit base = straight_open(world, &options, ROOM);

    for (uint64_t where = 0; where < 4; where++) {
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < count; b += harness_sanitized() ? 3 : 1)
                if (a != b)
                    differ(&base, where, lengths[a], lengths[b]);
        for (int i = 0; i < 4; i++)
            late(&base, where, i % 2 == 0, i / 2 == 0);
    }
    revoked(world, false);
    revoked(world, true);
    bad_windows(&base);
    unsigned char *send = straight_place(&base, STRAIGHT_INSIDE, false, 5000, 0);
    unsigned char *recv = straight_place(&base, STRAIGHT_INSIDE, true, 5000, 0);
    pipe_kit_call(&base.kit, straight_right(&base), send, 5000, straight_left(&base), recv, 5000,
                  NULL);
    device_stream_sync(base.kit.native);
    CHECK_OK(hem_pipe_status(base.kit.pipe));
    straight_close(&base, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
