/*
 * What ends a message that cannot be: lengths that differ between the sides, in all combinations of
 * forms, are HEM_ERR_MISMATCH on both; a peer that does not come, or does not receive, HEM_ERR_TIMEOUT
 * after the limit; a revoke HEM_ERR_REVOKED. The kernels end, later calls do nothing, and other pipes
 * of the same ranks go on.
 *
 * hem-test: ranks=2,3 timeout=120
 */
#include "pipe_kit.h"

#define SHORT 1024
#define ROOM  100000

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

/* Calls after an error come to an end by themselves, with nobody at the other side. */
static void later_calls(pipe_kit *kit, unsigned char *data, hem_status want) {
    hem_pipe_how how = pipe_kit_how(1, 2, 1, 0);
    int peer = (kit->rank + 1) % kit->size;
    pipe_kit_call(kit, -1, NULL, 0, peer, data, 8, &how);
    pipe_kit_call(kit, -1, NULL, 0, peer, data, ROOM, &how);
    pipe_kit_call(kit, peer, data, ROOM, -1, NULL, 0, &how);
    device_stream_sync(kit->native);
    CHECK_STATUS(hem_pipe_status(kit->pipe), want);
}

/* Rank 0 sends `sent` bytes, rank 1 wants `wanted`. A good message goes before. */
static void differ(hem_world *world, unsigned char *data, size_t sent, size_t wanted) {
    hem_pipe_options options = small();
    pipe_kit kit = pipe_kit_open(world, &options);
    hem_pipe_how how = pipe_kit_how(1 + (uint32_t)kit.rank, 2, 1, 0);
    harness_step("lengths", sent * 1000000 + wanted);
    if (kit.rank == 0) {
        pipe_kit_call(&kit, 1, data, wanted, -1, NULL, 0, &how);
        pipe_kit_call(&kit, 1, data, sent, -1, NULL, 0, &how);
    } else if (kit.rank == 1) {
        pipe_kit_call(&kit, -1, NULL, 0, 0, data, wanted, &how);
        pipe_kit_call(&kit, -1, NULL, 0, 0, data, wanted, &how);
    }
    device_stream_sync(kit.native);
    await_status(&kit, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("given the pipe up");
    later_calls(&kit, data, HEM_ERR_MISMATCH);
    pipe_kit_close(&kit, HEM_OK);
}

/* Rank 1 does not come; rank 0 gives up, and everybody gets to know. */
static void late(hem_world *world, unsigned char *data, bool sends, size_t bytes) {
    hem_pipe_options options = small();
    pipe_kit kit = pipe_kit_open(world, &options);
    hem_pipe_how how = pipe_kit_how(1, 2, 2, 0);
    how.timeout_ns = HEM_MS(30);
    if (kit.rank == 0) {
        int64_t start = harness_now();
        if (sends)
            pipe_kit_call(&kit, 1, data, bytes, -1, NULL, 0, &how);
        else
            pipe_kit_call(&kit, -1, NULL, 0, 1, data, bytes, &how);
        device_stream_sync(kit.native);
        CHECK_STATUS(hem_pipe_status(kit.pipe), HEM_ERR_TIMEOUT);
        CHECK(harness_now() - start >= HEM_MS(30));
    }
    await_status(&kit, HEM_ERR_TIMEOUT);
    later_calls(&kit, data, HEM_ERR_TIMEOUT);
    pipe_kit_close(&kit, HEM_OK);
}

/* Everybody waits, both ways and in either form, until rank 0 revokes the world. */
static void revoked(hem_world *world, unsigned char *data, size_t bytes) {
    hem_world *copy = NULL;
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_pipe_options options = small();
    pipe_kit kit = pipe_kit_open(copy, &options);
    hem_pipe_how how = pipe_kit_how(2, 2, 1, 0);
    int peer = (kit.rank + 1) % kit.size;
    pipe_kit_call(&kit, -1, NULL, 0, peer, data, bytes, &how);
    harness_sleep_ms(10);
    CHECK(!device_stream_done(kit.native));
    harness_same(world, 0);
    if (kit.rank == 0)
        CHECK_OK(hem_world_revoke(copy));
    device_stream_sync(kit.native);
    CHECK_STATUS(hem_pipe_status(kit.pipe), HEM_ERR_REVOKED);
    hem_pipe_half half = pipe_kit_half(peer, data, bytes);
    CHECK_STATUS(hem_pipe_sendrecv(kit.pipe, &half, NULL, &how, kit.stream), HEM_ERR_REVOKED);
    CHECK_OK(hem_stream_destroy(kit.stream));
    device_stream_destroy(kit.native);
    hem_status status = hem_pipe_destroy(kit.pipe);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED); /* whoever comes last finds all there */
    harness_same(world, 0); /* nobody closes it while another still gives the pipe up */
    status = hem_world_close(copy);
    CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
}

/* The world is closed before its pipe is given up. */
static void closed(hem_world *world, unsigned char *data) {
    hem_world *copy = NULL;
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_pipe_options options = small();
    pipe_kit kit = pipe_kit_open(copy, &options);
    device_stream_sync(kit.native);
    CHECK_OK(hem_stream_destroy(kit.stream));
    CHECK_OK(hem_stream_cuda(world, kit.native, &kit.stream));
    CHECK_OK(hem_world_close(copy));
    hem_pipe_half half = pipe_kit_half(0, data, 8);
    hem_dev_pipe dev;
    CHECK_STATUS(hem_pipe_sendrecv(kit.pipe, &half, NULL, NULL, kit.stream), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_pipe_status(kit.pipe), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_pipe_device(kit.pipe, &dev), HEM_ERR_CLOSED);
    pipe_kit_close(&kit, HEM_OK);
}

int rank_main(hem_world *world) {
    static const size_t lengths[] = {0, 8, 9, 1000, 1025, 5000, 60000, 60001};
    size_t count = sizeof lengths / sizeof lengths[0];
    unsigned char *data = (unsigned char *)device_alloc(ROOM);
    hem_pipe_options options = small();
    pipe_kit good = pipe_kit_open(world, &options);

    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < count; b += harness_sanitized() ? 3 : 1)
            if (a != b)
                differ(world, data, lengths[a], lengths[b]);
    late(world, data, false, 8);
    late(world, data, false, 50000);
    late(world, data, true, ROOM);
    revoked(world, data, 8);
    revoked(world, data, 50000);
    closed(world, data);
    pipe_kit_call(&good, (good.rank + 1) % good.size, data, 5000,
                  (good.rank + good.size - 1) % good.size, data + ROOM / 2, 5000, NULL);
    device_stream_sync(good.native);
    CHECK_OK(hem_pipe_status(good.pipe));
    pipe_kit_close(&good, HEM_OK);
    device_free(data);
    harness_close(world, HEM_OK);
    return 0;
}
