/*
 * A rank that closes its world has left it: whoever waits for it, in any call, gets HEM_ERR_PEER.
 * But what it did before leaving counts: a signal that it sent is still seen, and a barrier that it
 * entered is still passed, however soon it leaves after it.
 *
 * hem-test: ranks=2,3,4,5,8,17 modes=processes,threads timeout=60
 */
#include "waits.h"

static hem_world *copy_of(hem_world *world) {
    hem_world *copy = NULL;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    return copy;
}

/*
 * The last rank leaves while the others wait for it, or before they begin to. A sum may still come
 * true as long as anybody is left, so there all but rank 0 leave.
 */
static void waiters_learn(hem_world *world, enum wait_kind kind, bool early) {
    hem_world *copy = copy_of(world);
    hem_window *window = harness_window(copy, 64);
    int last = hem_world_size(copy) - 1;

    if (hem_world_rank(copy) == last || (kind == WAIT_SUM && hem_world_rank(copy) > 0)) {
        if (!early)
            harness_sleep_ms(10);
    } else {
        if (early)
            harness_sleep_ms(10);
        if (wait_for(kind, copy, window, last) != HEM_ERR_PEER)
            harness_fail(__FILE__, __LINE__, "%s did not say that rank %d left: %s",
                         wait_name(kind), last, hem_last_error());
        if (kind == WAIT_FROM || kind == WAIT_ANY || kind == WAIT_BARRIER_PEER)
            CHECK_NAMES_RANK(last);
        CHECK_EQ(hem_world_alive(copy, last), 0);
    }
    CHECK_OK(hem_world_close(copy));
    CHECK_OK(hem_window_destroy(window));
}

/* Everybody leaves as soon as the barrier lets it go; the slowest must be let go, too. */
static void barrier_then_leave(hem_world *world, uint64_t dice) {
    hem_world *copy = copy_of(world);
    hem_window *window = harness_window(copy, 64);

    harness_dither(dice);
    CHECK_OK(hem_barrier(window, 0, LIMIT));
    CHECK_OK(hem_world_close(copy));
    CHECK_OK(hem_window_destroy(window));
}

/* The same after a destroy, which is a meeting of all, too. */
static void destroy_then_leave(hem_world *world, uint64_t dice) {
    hem_world *copy = copy_of(world);
    hem_window *window = harness_window(copy, 64);

    harness_dither(dice);
    CHECK_OK(hem_window_destroy(window));
    CHECK_OK(hem_world_close(copy));
}

/* The last rank leaves, and rank 0 tries several times to make something with it. Who comes long after
 * that to the first of these hears the same. */
static void latecomers_learn(hem_world *world) {
    hem_world *copy = copy_of(world);
    hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
    hem_window *window = NULL;
    int last = hem_world_size(copy) - 1;

    if (hem_world_rank(copy) != last) {
        if (hem_world_rank(copy) > 0)
            harness_sleep_ms(20);
        for (int i = 0; i < 6; i++)
            CHECK_STATUS(hem_window_create(copy, &options, &window), HEM_ERR_PEER);
    }
    CHECK_OK(hem_world_close(copy));
}

/* The last rank sends to all and leaves; the others look before, while or after it does. */
static void signal_then_leave(hem_world *world, harness_rng *rng, int way) {
    hem_world *copy = copy_of(world);
    hem_window *window = harness_window(copy, 64);
    int last = hem_world_size(copy) - 1;

    if (hem_world_rank(copy) == last) {
        for (int peer = 0; peer < last; peer++)
            CHECK_OK(hem_put_signal(window, peer, 8, "1234567", 8, 3, 1));
    } else {
        if (harness_below(rng, 4) == 0)
            harness_sleep_ms(3);
        harness_see(window, way, last, 3, 1);
        CHECK(memcmp((char *)hem_window_memory(window) + 8, "1234567", 8) == 0);
    }
    CHECK_OK(hem_world_close(copy));
    CHECK_OK(hem_window_destroy(window));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    harness_rng rng = harness_rng_of(seed, (uint64_t)hem_world_rank(world), 0);
    int rounds = harness_rounds(120 / hem_world_size(world));

    for (int kind = 0; kind < WAIT_DESTROY; kind++) {
        waiters_learn(world, (enum wait_kind)kind, false);
        waiters_learn(world, (enum wait_kind)kind, true);
    }
    latecomers_learn(world);
    for (int round = 0; round < rounds; round++)
        barrier_then_leave(world, harness_random(&rng));
    for (int round = 0; round < rounds; round++)
        destroy_then_leave(world, harness_random(&rng));
    for (int round = 0; round < rounds; round++)
        signal_then_leave(world, &rng, round % HARNESS_SEE_WAYS);
    harness_close(world, HEM_OK);
    return 0;
}
