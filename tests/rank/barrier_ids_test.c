/*
 * Barriers of different ids do not know of each other: ranks may have arrived at several at once
 * and wait for them in different orders, a barrier that one rank has not reached stays closed, and
 * several threads of a rank may each use an id of their own.
 *
 * hem-test: ranks=1,2,3,4,5,8,17 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    IDS = 6,
    RANKS = 64
};

static void shuffle(uint32_t *ids, harness_rng *rng) {
    for (size_t i = IDS - 1; i > 0; i--) {
        size_t k = harness_below(rng, i + 1);
        uint32_t t = ids[i];

        ids[i] = ids[k];
        ids[k] = t;
    }
}

/* Each rank arrives at all ids in its own order and waits for them in another one. */
static void any_order(hem_window *window, harness_rng *own, int rounds) {
    uint32_t ids[IDS] = {0, 1, 2, 3, 4, 5};

    for (int round = 0; round < rounds; round++) {
        shuffle(ids, own);
        for (int i = 0; i < IDS; i++)
            CHECK_OK(hem_barrier_arrive(window, ids[i]));
        shuffle(ids, own);
        for (int i = 0; i < IDS; i++)
            CHECK_OK(hem_barrier_wait(window, ids[i], LIMIT));
    }
}

/* One rank stays away from id 1 while id 2 is used over and over; id 1 must not open. */
static void stays_closed(hem_world *world, hem_window *window, int rounds) {
    int size = hem_world_size(world);
    bool done;

    if (size == 1)
        return;
    for (int round = 0; round < rounds; round++) {
        bool late = hem_world_rank(world) == round % size;

        if (!late)
            CHECK_OK(hem_barrier_arrive(window, 1));
        for (int i = 0; i < 3; i++) {
            CHECK_OK(hem_barrier(window, 2, LIMIT));
            done = false;
            if (!late)
                CHECK_OK(hem_barrier_test(window, 1, &done));
            CHECK(!done);
        }
        CHECK_OK(hem_barrier(window, 2, LIMIT));
        if (late)
            CHECK_OK(hem_barrier_arrive(window, 1));
        CHECK_OK(hem_barrier_wait(window, 1, LIMIT));
    }
}

/* To have entered is enough: nobody needs the others to be in a barrier call meanwhile. */
static void entered_is_enough(hem_world *world, hem_window *window, int rounds) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    int first;

    for (int round = 1; round <= rounds; round++) {
        first = round % size;
        CHECK_OK(hem_barrier_arrive(window, 4));
        if (rank != first)
            CHECK_OK(hem_wait_signal_from(window, first, 9, HEM_EQ, (uint64_t)round, LIMIT));
        CHECK_OK(hem_barrier_wait(window, 4, LIMIT));
        if (rank == first)
            CHECK_OK(hem_signal_all(window, 9, HEM_SIGNAL_SET, (uint64_t)round));
        CHECK_OK(hem_barrier(window, 5, LIMIT));
    }
}

struct crosser {
    hem_window *window;
    uint32_t id;
    int rank;
    int size;
    int rounds;
};

/* A thread's rounds through its own barrier id, with words that prove each one: they
 * travel with signals that nobody looks at. */
static void cross(void *arg) {
    struct crosser *c = arg;
    const uint64_t *mine = hem_window_memory(c->window);
    uint64_t word;
    size_t place;

    for (int round = 1; round <= c->rounds; round++) {
        place = (c->id * 2 + (size_t)(round & 1)) * RANKS;
        word = (uint64_t)round;
        for (int peer = 0; peer < c->size; peer++)
            CHECK_OK(
                hem_put_signal(c->window, peer, (place + (size_t)c->rank) * 8, &word, 8, c->id, 1));
        CHECK_OK(hem_barrier(c->window, c->id, LIMIT));
        for (int peer = 0; peer < c->size; peer++)
            CHECK_EQ(mine[place + (size_t)peer], round);
    }
}

static void threads(hem_world *world, hem_window *window, int rounds) {
    struct crosser crossers[3];
    harness_thread running[3];

    for (uint32_t i = 0; i < 3; i++) {
        crossers[i] =
            (struct crosser){window, i + 3, hem_world_rank(world), hem_world_size(world), rounds};
        harness_start(&running[i], cross, &crossers[i]);
    }
    harness_join(running, 3);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    hem_window *window = harness_window_ids(world, IDS * 2 * RANKS * 8, 0, IDS, 0);
    harness_rng own = harness_rng_of(seed, 1, (uint64_t)hem_world_rank(world));
    int size = hem_world_size(world);

    any_order(window, &own, harness_rounds(1000));
    stays_closed(world, window, harness_rounds(500));
    entered_is_enough(world, window, harness_rounds(1000 / size));
    threads(world, window, harness_rounds(4000 / size));
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
