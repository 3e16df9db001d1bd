/*
 * A world is closed while kernels of a window, a pipe, an exchange and collectives wait in it: all of
 * them end, later calls say HEM_ERR_CLOSED, everything can still be given up, and the device works on. A
 * rank that closes earlier than others ends what waits for it with HEM_ERR_PEER.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "all_kit.h"

enum {
    WAITING,   /* kernels wait for rank 0, and all close */
    UNDER_WAY, /* kernels run, and all close at once */
    LEFT,      /* rank 0 closes, and the others only when they have heard of it */
    CASES
};

/* `left`: somebody may have closed by now. */
static void put_steps(all_kit *kit, int steps, bool left) {
    for (int i = 0; i < steps; i++)
        for (int part = 0; part < ALL_PARTS; part++) {
            hem_status status = all_try_step(kit, part, i % 2 == 0);
            CHECK(status == HEM_OK ||
                  (left && (status == HEM_ERR_PEER || status == HEM_ERR_REVOKED)));
        }
}

/* What waited for rank 0, or for others that had to give up because of it, has ended. */
static void check_left(all_kit *kit) {
    for (int part = 0; part < ALL_PARTS; part++) {
        harness_step("left", (uint64_t)part);
        device_stream_sync(kit->native[part]);
        hem_status status = all_status(kit, part);
        CHECK(status == HEM_ERR_PEER || (part == ALL_HALO && status == HEM_ERR_REVOKED));
    }
}

static void check_calls(all_kit *kit) {
    hem_dev_window dev;
    hem_dev_pipe pipe;
    for (int part = 0; part < ALL_PARTS; part++)
        device_stream_sync(kit->native[part]);
    CHECK_STATUS(hem_window_device(kit->window, &dev), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_pipe_device(kit->pipe, &pipe), HEM_ERR_CLOSED);
    CHECK_STATUS(all_pipe_call(kit, ALL_SHORT), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_status(kit->exchange), HEM_ERR_CLOSED);
    CHECK_STATUS(all_halo_call(kit), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_run(kit->exchange, NULL, LIMIT), HEM_ERR_CLOSED);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(hem_op_status(kit->ops[i]), HEM_ERR_CLOSED);
        CHECK_STATUS(hem_op_start_on(kit->ops[i], kit->stream[ALL_COLL]), HEM_ERR_CLOSED);
    }
}

static void one_case(hem_world *world, int which, int steps) {
    hem_world *own = NULL;
    CHECK_OK(hem_world_split(world, 0, hem_world_rank(world), &own));
    all_kit kit = all_open(own, true);
    put_steps(&kit, 2, false);
    all_check(&kit, 2);
    kit.blind = true;
    CHECK_OK(hem_sync(world, LIMIT));
    if (kit.rank != 0 || which == UNDER_WAY)
        put_steps(&kit, steps, which != WAITING);
    if (which == WAITING)
        CHECK_OK(hem_sync(world, LIMIT));
    if (which == LEFT && kit.rank != 0)
        check_left(&kit);
    CHECK_OK(hem_world_close(own));
    check_calls(&kit);
    /* Kernels of others may have been at what is here. */
    CHECK_OK(hem_sync(world, LIMIT));
    all_close(&kit, HEM_OK);
}

int rank_main(hem_world *world) {
    for (int i = 0; i < harness_rounds(4 * CASES); i++) {
        harness_step("case", (uint64_t)i);
        one_case(world, i % CASES, 2 + i / CASES);
    }
    all_kit kit = all_open(world, true);
    put_steps(&kit, 3, false);
    all_check(&kit, 3);
    all_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
