/*
 * A first use of a channel by one side alone ends with HEM_ERR_TIMEOUT, not before its limit and
 * not much after, and hangs nobody. What was started waits for the other side and gets done when it
 * comes. hem_channel_prepare makes the staging, by both ranks or by one alone.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

static const int64_t limits[] = {0, HEM_US(50), HEM_MS(4), HEM_MS(30)};

struct place {
    hem_world *world; /* fresh: nobody has used a channel of it */
    hem_window *window;
    int me;
};

static struct place enter(hem_world *parent) {
    struct place p = {.me = hem_world_rank(parent)};

    CHECK_OK(hem_world_split(parent, 0, 0, &p.world));
    p.window = harness_window(p.world, 64);
    return p;
}

static void leave(struct place *p) {
    harness_barrier(p->window);
    harness_destroy(p->window);
    CHECK_OK(hem_world_close(p->world));
}

static void check_time(int64_t start, int64_t limit) {
    int64_t took = harness_now() - start;

    if (took < limit || took > limit + harness_slack())
        harness_fail(__FILE__, __LINE__, "a limit of %lld ns took %lld ns", (long long)limit,
                     (long long)took);
}

enum {
    SEND,
    SEND_LARGE,
    RECV,
    SENDRECV,
    PREPARE,
    WAYS
};

static hem_status alone(hem_world *world, int way, void *data, int64_t limit) {
    hem_message half = {1, data, 16};
    size_t got = 3;

    switch (way) {
    case SEND:
        return hem_send(world, 1, 9, data, 16, limit);
    case SEND_LARGE:
        return hem_send(world, 1, 9, data, 3000000, limit);
    case RECV:
        return hem_recv(world, 1, 9, data, 16, &got, limit);
    case SENDRECV:
        return hem_sendrecv(world, 9, &half, &half, limit);
    default:
        return hem_channel_prepare(world, 1, 9, limit);
    }
}

/* Rank 0 tries alone; then rank 1 comes, gets none of what was withdrawn, and all is well. */
static void one_side(hem_world *parent, int way) {
    struct place p = enter(parent);
    uint8_t *data = calloc(1, 3000000);

    if (p.me == 0) {
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            int64_t start = harness_now();

            CHECK_STATUS(alone(p.world, way, data, limits[i]), HEM_ERR_TIMEOUT);
            check_time(start, limits[i]);
            CHECK_NAMES_RANK(1);
        }
    }
    harness_barrier(p.window);
    if (p.me < 2)
        chan_works(p.world, 1 - p.me, 9, 0);
    leave(&p);
    free(data);
}

/* The side that has been there all the time is not held up by one that comes and goes. */
static void other_goes_on(hem_world *parent) {
    struct place p = enter(parent);
    uint64_t word = 0;

    if (p.me == 0) {
        CHECK_STATUS(hem_recv(p.world, 1, 0, &word, 8, NULL, HEM_MS(30)), HEM_ERR_TIMEOUT);
    } else {
        for (int i = 0; i < 100; i++)
            CHECK_OK(hem_fetch_add(p.window, 0, 0, 1, NULL));
    }
    harness_barrier(p.window);
    leave(&p);
}

/* What was started before the other side came is done once it is there, in order. */
static void started_early(hem_world *parent, size_t bytes) {
    struct place p = enter(parent);
    chan_buffer out[3];
    chan_buffer in[3];
    hem_op *ops[6] = {NULL};
    bool done = true;

    if (p.me != 0)
        harness_barrier(p.window);
    for (size_t i = 0; i < 3 && p.me < 2; i++) {
        out[i] = chan_make(bytes);
        in[i] = chan_make(bytes);
        chan_load(&out[i], bytes, i, chan_tag(p.me, 1 - p.me, 1, i));
        chan_place(&in[i], bytes, i);
        CHECK_OK(hem_send_start(p.world, 1 - p.me, 1, out[i].at, bytes, &ops[i]));
        CHECK_OK(hem_recv_start(p.world, 1 - p.me, 1, in[i].at, bytes, &ops[3 + i]));
        CHECK_OK(hem_op_test(ops[i], &done));
    }
    if (p.me == 0) {
        CHECK_STATUS(hem_op_wait(ops[5], 0), HEM_ERR_TIMEOUT);
        harness_barrier(p.window);
    }
    CHECK_OK(hem_op_wait_all(ops, p.me < 2 ? 6 : 0, LIMIT));
    for (size_t i = 0; i < 3 && p.me < 2; i++) {
        CHECK_LOAD(&in[i], chan_tag(1 - p.me, p.me, 1, i));
        FREE_OP(ops[i]);
        FREE_OP(ops[3 + i]);
        chan_free(&in[i]);
        chan_free(&out[i]);
    }
    leave(&p);
}

/* Planned and started, but the other side never comes: freeing it ends it. */
static void given_up(hem_world *parent) {
    struct place p = enter(parent);
    uint8_t data[64] = {0};
    hem_op *ops[4] = {NULL};
    bool done = true;

    if (p.me == 0) {
        CHECK_OK(hem_send_start(p.world, 1, 2, data, 64, &ops[0]));
        CHECK_OK(hem_recv_start(p.world, 1, 2, data, 64, &ops[1]));
        CHECK_OK(hem_send_plan(p.world, 1, 3, data, 64, &ops[2]));
        CHECK_OK(hem_recv_plan(p.world, 1, 3, data, 64, &ops[3]));
        CHECK_OK(hem_op_start(ops[2]));
        CHECK_OK(hem_op_start(ops[3]));
        for (int i = 0; i < 4; i++) {
            CHECK_OK(hem_op_test(ops[i], &done));
            CHECK(!done);
        }
        CHECK_STATUS(hem_op_wait_all(ops, 4, HEM_MS(2)), HEM_ERR_TIMEOUT);
        for (int i = 0; i < 4; i++)
            FREE_OP(ops[i]);
    }
    harness_barrier(p.window);
    if (p.me < 2) {
        chan_works(p.world, 1 - p.me, 2, 0);
        chan_works(p.world, 1 - p.me, 3, 0);
    }
    leave(&p);
}

/* Any use of any channel lets the other side prepare without help. */
static void prepared(hem_world *parent) {
    struct place p = enter(parent);
    int right = harness_right(p.world);
    int left = harness_left(p.world);
    uint64_t word = 5;

    CHECK_OK(hem_channel_prepare(p.world, right, 4, LIMIT));
    CHECK_OK(hem_channel_prepare(p.world, left, 4, LIMIT));
    CHECK_OK(hem_channel_prepare(p.world, left, 4, 0));
    harness_barrier(p.window);
    if (p.me == 0) {
        CHECK_OK(hem_channel_prepare(p.world, 1, 15, 0));
        CHECK_OK(hem_channel_prepare(p.world, 0, 15, LIMIT));
        CHECK_OK(hem_send(p.world, 1, 15, &word, 8, 0));
    }
    harness_barrier(p.window);
    if (p.me == 1) {
        word = 0;
        CHECK_OK(hem_recv(p.world, 0, 15, &word, 8, NULL, 0));
        CHECK_EQ(word, 5);
    }
    if (p.me < 2)
        chan_works(p.world, 1 - p.me, 15, 0);
    leave(&p);
}

int rank_main(hem_world *world) {
    for (int way = 0; way < WAYS; way++) {
        harness_step("first use alone, way", (uint64_t)way);
        one_side(world, way);
    }
    harness_step("after first uses", 0);
    other_goes_on(world);
    started_early(world, 8);
    started_early(world, 5000);
    started_early(world, 2000000);
    given_up(world);
    prepared(world);
    harness_close(world, HEM_OK);
    return 0;
}
