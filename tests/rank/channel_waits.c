#include "channel_waits.h"

#include <sched.h>
#include <stdatomic.h>

enum {
    BIG = 12000000,
    MAX_RANKS = 16
};

static const char *const names[] = {
    "recv", "send",       "full",     "sendrecv", "op",       "test",     "all",
    "any",  "persistent", "callback", "prepare",  "mid-recv", "mid-send",
};

const char *chan_wait_name(enum chan_wait kind) {
    return names[kind];
}

enum chan_wait chan_wait_of_name(const char *name) {
    int kind = 0;

    while (kind < CHAN_WAITS && strcmp(names[kind], name) != 0)
        kind++;
    return (enum chan_wait)kind;
}

void chan_wait_ready(enum chan_wait kind, hem_world *world) {
    int size = hem_world_size(world);

    if (kind == CHAN_PREPARE)
        return;
    for (int peer = 0; peer < size; peer++)
        CHECK_OK(hem_channel_prepare(world, peer, 0, LIMIT));
}

static hem_status wait_twice(hem_op *op) {
    hem_status status = hem_op_wait(op, LIMIT);

    if (status != HEM_OK)
        CHECK_STATUS(hem_op_wait(op, LIMIT), status);
    FREE_OP(op);
    return status;
}

static hem_status poll_until_done(hem_op *op) {
    int64_t limit = harness_now() + LIMIT;
    hem_status status = HEM_OK;
    bool done = false;

    while (!done && harness_now() < limit)
        status = hem_op_test(op, &done);
    CHECK(done || status != HEM_OK);
    FREE_OP(op);
    return status;
}

/* Both must end; that they cannot even be started is an end, too. */
static hem_status wait_list(hem_world *world, int other, uint8_t *data, bool any) {
    hem_op *ops[4] = {NULL};
    hem_status status;
    size_t which = 99;

    status = hem_recv_start(world, other, 0, data, 8, &ops[1]);
    if (status == HEM_OK)
        status = hem_recv_start(world, other, 0, data + 8, 8, &ops[3]);
    if (status != HEM_OK) {
        FREE_OP(ops[1]);
        return status;
    }
    if (any) {
        status = hem_op_wait_any(ops, 4, &which, LIMIT);
        CHECK(which == 1 || which == 3);
    } else {
        status = hem_op_wait_all(ops, 4, LIMIT);
    }
    FREE_OP(ops[1]);
    FREE_OP(ops[3]);
    return status;
}

static hem_status persistent(hem_world *world, int other, uint8_t *data) {
    hem_op *op = NULL;
    hem_status status;

    status = hem_recv_plan(world, other, 0, data, 8, &op);
    if (status == HEM_OK)
        status = hem_op_start(op);
    if (status == HEM_OK)
        return wait_twice(op);
    FREE_OP(op);
    return status;
}

static hem_status one_op(hem_world *world, int other, uint8_t *data, bool wait) {
    hem_op *op = NULL;
    hem_status status = hem_recv_start(world, other, 0, data, 8, &op);

    if (status != HEM_OK)
        return status;
    return wait ? wait_twice(op) : poll_until_done(op);
}

static void note_end(hem_op *op, hem_status status, void *arg) {
    (void)op;
    (void)status;
    atomic_store((atomic_bool *)arg, true);
}

static hem_status by_callback(hem_world *world, int other, uint8_t *data) {
    int64_t limit = harness_now() + LIMIT;
    atomic_bool ended = false;
    hem_op *op = NULL;
    hem_status status = hem_progress_start(world);

    if (status != HEM_OK)
        return status;
    status = hem_recv_start(world, other, 0, data, 8, &op);
    if (status == HEM_OK)
        CHECK_OK(hem_op_on_done(op, note_end, &ended));
    while (op && !atomic_load(&ended)) {
        CHECK(harness_now() < limit);
        sched_yield();
    }
    CHECK_OK(hem_progress_stop(world));
    return op ? wait_twice(op) : status;
}

static hem_status wait_in(enum chan_wait kind, hem_world *world, int other, uint8_t *data) {
    hem_message send = {other, data, BIG / 2};
    hem_message recv = {other, data + BIG / 2, BIG / 2};

    switch (kind) {
    case CHAN_RECV:
        return hem_recv(world, other, 0, data, 100, NULL, LIMIT);
    case CHAN_SEND_FULL:
        return hem_send(world, other, 0, data, 8, LIMIT);
    case CHAN_SENDRECV:
        return hem_sendrecv(world, 0, &send, &recv, LIMIT);
    case CHAN_OP_WAIT:
    case CHAN_OP_TEST:
        return one_op(world, other, data, kind == CHAN_OP_WAIT);
    case CHAN_WAIT_ALL:
    case CHAN_WAIT_ANY:
        return wait_list(world, other, data, kind == CHAN_WAIT_ANY);
    case CHAN_PERSISTENT:
        return persistent(world, other, data);
    case CHAN_CALLBACK:
        return by_callback(world, other, data);
    case CHAN_PREPARE:
        return hem_channel_prepare(world, other, 0, LIMIT);
    case CHAN_MID_RECV:
        return hem_recv(world, other, 0, data, BIG, NULL, LIMIT);
    default:
        return hem_send(world, other, 0, data, BIG, LIMIT);
    }
}

hem_status chan_wait_for(enum chan_wait kind, hem_world *world, int other) {
    uint8_t *data = calloc(1, BIG);
    hem_status status;

    CHECK(data != NULL);
    do
        status = wait_in(kind, world, other, data);
    while (status == HEM_OK);
    free(data);
    return status;
}

static hem_op *kept_ops[MAX_RANKS];
static uint8_t *kept_data;

void chan_wait_begin(enum chan_wait kind, hem_world *world) {
    int size = hem_world_size(world);

    if (kind != CHAN_MID_RECV && kind != CHAN_MID_SEND)
        return;
    kept_data = calloc((size_t)size, BIG);
    CHECK(kept_data != NULL);
    for (int peer = 0; peer < size; peer++) {
        uint8_t *data = kept_data + (size_t)peer * BIG;

        if (peer == hem_world_rank(world))
            continue;
        if (kind == CHAN_MID_RECV)
            CHECK_OK(hem_send_start(world, peer, 0, data, BIG, &kept_ops[peer]));
        else
            CHECK_OK(hem_recv_start(world, peer, 0, data, BIG, &kept_ops[peer]));
    }
    for (int i = 0; i < 20; i++)
        CHECK_OK(hem_progress(world));
}

void chan_wait_forget(bool dead) {
    for (int i = 0; i < MAX_RANKS; i++) {
        if (!dead)
            CHECK_OK(hem_op_free(kept_ops[i]));
        kept_ops[i] = NULL;
    }
    free(kept_data);
    kept_data = NULL;
}
