/*
 * Several worlds are open at a time and do not disturb each other: their traffic interleaves, one
 * may be revoked or closed while another works, and worlds opened again, within the job or alone,
 * match by the order of the calls.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    WORLDS = 4
};

struct place {
    hem_world *world;
    hem_window *window;
    uint64_t sent;
};

/* Under the launcher a second open makes a second world of all; ranks as threads split instead. */
static hem_world *another(hem_world *world) {
    hem_world_options options = {.struct_size = sizeof options};
    hem_world *made = NULL;

    if (harness_threads())
        CHECK_OK(hem_world_split(world, 0, hem_world_rank(world), &made));
    else
        CHECK_OK(hem_world_open(&options, &made));
    CHECK_EQ(hem_world_size(made), hem_world_size(world));
    CHECK_EQ(hem_world_rank(made), hem_world_rank(world));
    return made;
}

/* One message to the right in a world of the caller's choice, at its own pace. */
static void send(struct place *p) {
    uint64_t word = ++p->sent * 10 + (uint64_t)hem_world_rank(p->world);

    CHECK_OK(
        hem_put_signal(p->window, harness_right(p->world), (p->sent % 64) * 8, &word, 8, 2, 1));
}

static void receive(struct place *p, uint64_t number) {
    const uint64_t *words = hem_window_memory(p->window);

    CHECK_OK(hem_wait_signal(p->window, 2, HEM_GE, number, LIMIT));
    CHECK_EQ(words[number % 64], number * 10 + (uint64_t)harness_left(p->world));
}

/* Every rank sends in the worlds in an order of its own, and receives in another. */
static void interleaved(struct place *places, uint64_t seed, int rank, int rounds) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)rank, 1);
    size_t shift;

    for (int round = 1; round <= rounds; round++) {
        shift = harness_below(&rng, WORLDS);
        for (size_t i = 0; i < WORLDS; i++)
            send(&places[(i + shift) % WORLDS]);
        shift = harness_below(&rng, WORLDS);
        for (size_t i = 0; i < WORLDS; i++)
            receive(&places[(i + shift) % WORLDS], (uint64_t)round);
        for (size_t i = 0; round % 32 == 0 && i < WORLDS; i++)
            harness_barrier(places[i].window);
    }
}

/* World 1 is revoked; worlds 0, 2 and 3 do not mind. */
static void one_revoked(struct place *places, int rounds) {
    harness_barrier(places[0].window);
    if (hem_world_rank(places[1].world) == 0)
        CHECK_OK(hem_world_revoke(places[1].world));
    CHECK_STATUS(hem_barrier(places[1].window, 0, LIMIT), HEM_ERR_REVOKED);
    for (int i = 0; i < WORLDS; i++) {
        if (i == 1)
            continue;
        send(&places[i]);
        receive(&places[i], (uint64_t)rounds + 1);
        harness_barrier(places[i].window);
    }
}

/* A world of one, besides everything else. */
static void alone(void) {
    hem_world_options options = {.struct_size = sizeof options};
    hem_world *world;
    hem_window *window;
    uint64_t value;

    if (!harness_threads())
        return;
    CHECK_OK(hem_world_open(&options, &world));
    CHECK_EQ(hem_world_size(world), 1);
    window = harness_window(world, 8);
    CHECK_OK(hem_put_signal(window, 0, 0, "1234567", 8, 0, 3));
    CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, 3, LIMIT));
    CHECK_OK(hem_fetch_add(window, 0, 0, 0, &value));
    CHECK(memcmp(&value, "1234567", 8) == 0);
    harness_barrier(window);
    harness_destroy(window);
    CHECK_OK(hem_world_close(world));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rounds = harness_rounds(1600 / hem_world_size(world));
    struct place places[WORLDS] = {{.world = world}};

    for (int i = 0; i < WORLDS; i++) {
        if (i > 0)
            places[i].world = another(world);
        places[i].window = harness_window(places[i].world, 64 * 8);
    }
    alone();
    interleaved(places, seed, hem_world_rank(world), rounds);
    one_revoked(places, rounds);
    alone();
    harness_destroy(places[0].window);
    harness_close(world, HEM_OK);
    for (int i = 1; i < WORLDS; i++) {
        hem_window_destroy(places[i].window);
        CHECK_OK(hem_world_close(places[i].world));
    }
    return 0;
}
