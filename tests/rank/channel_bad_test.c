/*
 * Every call on channels and operations with a bad world, rank, channel, length, time limit or
 * pointer returns a status and a sentence at once, sends nothing, and leaves outputs alone. After
 * the world was closed, operations say so and can be freed.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <limits.h>

#define ARG(call)    CHECK_STATUS(call, HEM_ERR_ARG)
#define RANGE(call)  CHECK_STATUS(call, HEM_ERR_RANGE)
#define CLOSED(call) CHECK_STATUS(call, HEM_ERR_CLOSED)

static void no_world(void) {
    uint8_t data[8] = {0};
    hem_message half = {0, data, 8};
    hem_op *op = NULL;
    uint64_t count = 7;
    size_t got = 9;
    int fd = -7;

    ARG(hem_send(NULL, 0, 0, data, 8, 0));
    ARG(hem_recv(NULL, 0, 0, data, 8, &got, 0));
    ARG(hem_sendrecv(NULL, 0, &half, &half, 0));
    ARG(hem_send_start(NULL, 0, 0, data, 8, &op));
    ARG(hem_recv_start(NULL, 0, 0, data, 8, &op));
    ARG(hem_send_plan(NULL, 0, 0, data, 8, &op));
    ARG(hem_recv_plan(NULL, 0, 0, data, 8, &op));
    ARG(hem_channel_prepare(NULL, 0, 0, 0));
    ARG(hem_progress(NULL));
    ARG(hem_progress_start(NULL));
    ARG(hem_progress_pause(NULL));
    ARG(hem_progress_resume(NULL));
    ARG(hem_progress_stop(NULL));
    ARG(hem_world_event_fd(NULL, &fd));
    ARG(hem_world_event_read(NULL, &count));
    CHECK(op == NULL && got == 9 && fd == -7 && count == 7 && half.bytes == 8);
}

/* One call of each kind. @return the first status; all must be the same. */
static hem_status all_calls(hem_world *world, int peer, uint32_t channel, void *data, size_t bytes,
                            int64_t limit) {
    hem_op *op = NULL;
    size_t got = 9;
    hem_message half = {peer, data, bytes};
    hem_status status = hem_send(world, peer, channel, data, bytes, limit);

    CHECK_STATUS(hem_recv(world, peer, channel, data, bytes, &got, limit), status);
    if (peer >= 0) {
        CHECK_STATUS(hem_sendrecv(world, channel, &half, NULL, limit), status);
        CHECK_STATUS(hem_sendrecv(world, channel, NULL, &half, limit), status);
        CHECK_STATUS(hem_sendrecv(world, channel, &half, &half, limit), status);
    }
    if (limit >= 0) {
        CHECK_STATUS(hem_send_start(world, peer, channel, data, bytes, &op), status);
        CHECK_STATUS(hem_recv_start(world, peer, channel, data, bytes, &op), status);
        CHECK_STATUS(hem_send_plan(world, peer, channel, data, bytes, &op), status);
        CHECK_STATUS(hem_recv_plan(world, peer, channel, data, bytes, &op), status);
    }
    CHECK(op == NULL && got == 9 && half.bytes == bytes);
    return status;
}

static void bad_values(hem_world *world) {
    int size = hem_world_size(world);
    int ranks[] = {-1, -2, INT_MIN, size, size + 1, INT_MAX};
    uint32_t channels[] = {HEM_CHANNELS, HEM_CHANNELS + 1, 64, UINT32_MAX, 1u << 31};
    int64_t limits[] = {-2, -1000, INT64_MIN};
    uint8_t data[8] = {0};
    hem_status status;

    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        CHECK_EQ(all_calls(world, ranks[i], 0, data, 8, 0), HEM_ERR_RANGE);
        RANGE(hem_channel_prepare(world, ranks[i], 0, 0));
    }
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        CHECK_EQ(all_calls(world, size - 1, channels[i], data, 8, 0), HEM_ERR_RANGE);
        RANGE(hem_channel_prepare(world, size - 1, channels[i], 0));
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        CHECK_EQ(all_calls(world, size - 1, 0, data, 8, limits[i]), HEM_ERR_ARG);
        ARG(hem_channel_prepare(world, size - 1, 0, limits[i]));
    }
    CHECK_EQ(all_calls(world, size - 1, 0, NULL, 8, 0), HEM_ERR_ARG);
    CHECK_EQ(all_calls(world, size - 1, 0, NULL, 1, 0), HEM_ERR_ARG);
    status = all_calls(world, size - 1, 0, data, SIZE_MAX, 0);
    CHECK(status == HEM_ERR_RANGE || status == HEM_ERR_ARG);
    status = all_calls(world, size - 1, 0, data, SIZE_MAX - (uintptr_t)data + 2, 0);
    CHECK(status == HEM_ERR_RANGE || status == HEM_ERR_ARG);
}

static void bad_outputs(hem_world *world) {
    uint8_t data[8] = {0};
    uint64_t count = 0;
    int fd = -1;

    ARG(hem_send_start(world, 0, 0, data, 8, NULL));
    ARG(hem_recv_start(world, 0, 0, data, 8, NULL));
    ARG(hem_send_plan(world, 0, 0, data, 8, NULL));
    ARG(hem_recv_plan(world, 0, 0, data, 8, NULL));
    ARG(hem_world_event_fd(world, NULL));
    CHECK_OK(hem_world_event_fd(world, &fd));
    CHECK(fd >= 0);
    ARG(hem_world_event_read(world, NULL));
    CHECK_OK(hem_world_event_read(world, &count));
}

static void no_operation(void) {
    hem_op *none[3] = {NULL, NULL, NULL};
    bool done = true;
    size_t which = 9;

    ARG(hem_op_start(NULL));
    ARG(hem_op_test(NULL, &done));
    ARG(hem_op_wait(NULL, 0));
    ARG(hem_op_wait_all(NULL, 1, 0));
    ARG(hem_op_wait_any(NULL, 1, &which, 0));
    ARG(hem_op_on_done(NULL, NULL, NULL));
    CHECK_EQ(hem_op_bytes(NULL), 0);
    CHECK_OK(hem_op_free(NULL));
    CHECK_OK(hem_op_wait_all(none, 3, LIMIT));
    CHECK_OK(hem_op_wait_all(none, 0, LIMIT));
    CHECK(hem_op_wait_any(none, 3, &which, HEM_MS(1)) != HEM_OK);
    CHECK(hem_op_wait_any(none, 0, &which, HEM_MS(1)) != HEM_OK);
    CHECK(done && which == 9);
}

static void bad_operation_calls(hem_world *world) {
    uint8_t data[8] = {0};
    hem_op *op = NULL;
    size_t which = 9;
    bool done = true;

    CHECK_OK(hem_recv_start(world, hem_world_rank(world), 3, data, 8, &op));
    ARG(hem_op_test(op, NULL));
    ARG(hem_op_wait(op, -2));
    ARG(hem_op_wait_all(&op, 1, -2));
    ARG(hem_op_wait_any(&op, 1, &which, -2));
    ARG(hem_op_wait_any(&op, 1, NULL, 0));
    ARG(hem_op_start(op));
    CHECK_EQ(hem_op_bytes(op), 0);
    CHECK_OK(hem_op_test(op, &done));
    CHECK(!done && which == 9);
    CHECK_STATUS(hem_op_wait(op, 0), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_wait_all(&op, 1, 0), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_wait_any(&op, 1, &which, 0), HEM_ERR_TIMEOUT);
    FREE_OP(op);
    CHECK_OK(hem_recv_plan(world, hem_world_rank(world), 3, data, 8, &op));
    CHECK_EQ(hem_op_bytes(op), 0);
    ARG(hem_op_wait(op, 0));
    ARG(hem_op_test(op, &done));
    FREE_OP(op);
}

/* What is allowed although it looks odd. */
static void odd_but_good(hem_world *world) {
    hem_message none = {-5, NULL, 99};
    size_t got = 9;
    int me = hem_world_rank(world);
    hem_message empty = {me, NULL, 0};

    CHECK_OK(hem_sendrecv(world, 0, NULL, NULL, 0));
    CHECK_OK(hem_sendrecv(world, 0, &none, &none, 0));
    CHECK_EQ(none.bytes, 99);
    CHECK_OK(hem_sendrecv(world, 0, &empty, &empty, LIMIT));
    CHECK_STATUS(hem_recv(world, me, 0, NULL, 0, &got, 0), HEM_ERR_TIMEOUT);
    CHECK_EQ(got, 9);
}

static void closed(hem_world *parent) {
    static _Thread_local uint8_t data[3000000];
    hem_world *world = NULL;
    hem_op *ops[5] = {NULL};
    int me = hem_world_rank(parent);
    bool done = false;
    size_t which = 9;

    CHECK_OK(hem_world_split(parent, 0, 0, &world));
    CHECK_OK(hem_recv_start(world, harness_left(world), 0, data, 8, &ops[0]));
    CHECK_OK(hem_send_start(world, harness_right(world), 1, data, sizeof data, &ops[1]));
    CHECK_OK(hem_recv_plan(world, me, 2, data, 8, &ops[2]));
    CHECK_OK(hem_recv_start(world, me, 3, data, 8, &ops[3]));
    CHECK_OK(hem_send(world, me, 3, data, 8, LIMIT));
    CHECK_OK(hem_op_wait(ops[3], LIMIT));
    CHECK_OK(hem_send_plan(world, me, 2, data, 8, &ops[4]));
    CHECK_OK(hem_op_start(ops[4]));
    CHECK_OK(hem_world_close(world));
    for (int i = 0; i < 5; i++) {
        CLOSED(hem_op_test(ops[i], &done));
        CLOSED(hem_op_wait(ops[i], LIMIT));
        CLOSED(hem_op_wait_all(&ops[i], 1, LIMIT));
        CLOSED(hem_op_wait_any(&ops[i], 1, &which, LIMIT));
        CLOSED(hem_op_start(ops[i]));
        CLOSED(hem_op_on_done(ops[i], NULL, NULL));
        FREE_OP(ops[i]);
    }
}

int rank_main(hem_world *world) {
    no_world();
    no_operation();
    for (int used = 0; used < 2; used++) {
        harness_step(used ? "after use" : "before use", 0);
        bad_values(world);
        bad_outputs(world);
        bad_operation_calls(world);
        odd_but_good(world);
        chan_works(world, chan_partner(world), 0, 0);
    }
    closed(world);
    chan_works(world, chan_partner(world), 0, 90);
    harness_close(world, HEM_OK);
    return 0;
}
