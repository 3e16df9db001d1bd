/*
 * fetch_add and compare_swap are atomic for all ranks and threads: no addition is lost, each old
 * value is given to one caller only, and a lock built from compare_swap protects plain memory.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <sched.h>

enum {
    SUM = 0,
    TICKET = 8,
    SERVING = 16,
    LOCK = 24,
    PLAIN = 32,
    SEEN = 64
};

/* Every rank adds its own amount at one word of every rank; old values only grow. */
static void add_up(hem_world *world, hem_window *window, int rounds) {
    uint64_t mine = (uint64_t)hem_world_rank(world) + 1;
    uint64_t size = (uint64_t)hem_world_size(world);
    uint64_t last[16] = {0};
    uint64_t old;

    for (int round = 0; round < rounds; round++) {
        for (int peer = 0; peer < (int)size; peer++) {
            CHECK_OK(hem_fetch_add(window, peer, SUM, mine, &old));
            CHECK(round == 0 || old >= last[peer] + mine);
            last[peer] = old;
        }
    }
    CHECK_OK(hem_fetch_add(window, 0, SUM, 0, NULL));
    harness_barrier(window);
    CHECK_OK(hem_fetch_add(window, (int)mine - 1, SUM, 0, &old));
    CHECK_EQ(old, (uint64_t)rounds * size * (size + 1) / 2);
    harness_barrier(window);
}

/* Adds one to a plain word at rank 0 while holding the lock. A lost update shows in the sum. */
static void bump(hem_window *window) {
    uint64_t plain;

    CHECK_OK(hem_get(window, 0, PLAIN, &plain, sizeof plain));
    plain++;
    CHECK_OK(hem_put(window, 0, PLAIN, &plain, sizeof plain));
    CHECK_OK(hem_flush(window, 0));
}

static void with_lock(hem_window *window, uint64_t me) {
    uint64_t old = 1;

    for (;;) {
        CHECK_OK(hem_compare_swap(window, 0, LOCK, 0, me, &old));
        if (old == 0)
            break;
        sched_yield();
    }
    bump(window);
    CHECK_OK(hem_compare_swap(window, 0, LOCK, me, 0, &old));
    CHECK_EQ(old, me);
}

/* A ticket lock: tickets are drawn with compare_swap, and served in order. */
static void with_ticket(hem_window *window) {
    uint64_t ticket = 0;
    uint64_t old = 1;

    for (;;) {
        CHECK_OK(hem_compare_swap(window, 0, TICKET, ticket, ticket + 1, &old));
        if (old == ticket)
            break;
        ticket = old;
    }
    for (old = ~ticket; old != ticket; sched_yield())
        CHECK_OK(hem_fetch_add(window, 0, SERVING, 0, &old));
    bump(window);
    CHECK_OK(hem_fetch_add(window, 0, SERVING, 1, &old));
    CHECK_EQ(old, ticket);
}

static void locks(hem_world *world, hem_window *window, int rounds) {
    uint64_t me = (uint64_t)hem_world_rank(world) + 1;
    uint64_t all = (uint64_t)rounds * (uint64_t)hem_world_size(world);
    uint64_t plain;

    for (int round = 0; round < rounds; round++)
        with_lock(window, me);
    harness_barrier(window);
    for (int round = 0; round < rounds; round++)
        with_ticket(window);
    harness_barrier(window);
    CHECK_OK(hem_get(window, 0, PLAIN, &plain, sizeof plain));
    CHECK_EQ(plain, 2 * all);
    harness_barrier(window);
}

/* A number drawn by fetch_add belongs to its drawer alone: each place of a table is taken once. */
static void draw(hem_world *world, hem_window *window, uint64_t places) {
    uint64_t me = (uint64_t)hem_world_rank(world) + 1;
    uint64_t number = 0;
    uint64_t old;

    for (;;) {
        CHECK_OK(hem_fetch_add(window, 0, SEEN, 1, &number));
        if (number >= places)
            break;
        CHECK_OK(hem_compare_swap(window, 0, SEEN + 8 + number * 8, 0, me, &old));
        CHECK_EQ(old, 0);
    }
    harness_barrier(window);
    for (uint64_t i = 0; hem_world_rank(world) == 0 && i < places; i++)
        CHECK(((uint64_t *)hem_window_memory(window))[SEEN / 8 + 1 + i] != 0);
    harness_barrier(window);
}

int rank_main(hem_world *world) {
    uint64_t places = 3000;
    hem_window *window = harness_window(world, SEEN + 8 + places * 8);
    int size = hem_world_size(world);

    add_up(world, window, harness_rounds(20000 / size));
    locks(world, window, harness_rounds(4000 / (size * size)));
    draw(world, window, places);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
