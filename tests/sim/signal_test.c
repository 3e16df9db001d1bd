/*
 * Data with signals under a deterministic scheduler: payloads that ride in the signal's line, the
 * sender's flush racing with the receiver's wait, bursts, overlapping puts, a third rank that
 * looks.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define ROUNDS 6
#define PLACE  64

/* Lengths around the limit of what rides in a line, and one far beyond. */
static size_t length_of(uint64_t message) {
    static const size_t lengths[] = {8, 1, 32, 33, 5, 200, 31};
    return lengths[message % (sizeof lengths / sizeof lengths[0])];
}

/* All the ways to see that signal `id` of `peer` has reached `value`. */
static void see(hem_window *window, int peer, uint32_t id, uint64_t value) {
    const hem_signal_want want = {peer, id, HEM_GE, value};
    size_t which = 1;
    bool done = false;
    uint64_t seen = 0;
    switch (sim_below(5)) {
    case 0:
        SIM_OK(hem_wait_signal_from(window, peer, id, HEM_GE, value, HEM_FOREVER));
        return;
    case 1:
        SIM_OK(hem_wait_signal(window, id, HEM_GE, value, HEM_FOREVER));
        return;
    case 2:
        SIM_OK(hem_wait_signal_any(window, &want, 1, &which, HEM_FOREVER));
        SIM_EQ(which, 0);
        return;
    case 3:
        SIM_OK(hem_test_signal_from(window, peer, id, HEM_GE, value, &done));
        if (!done)
            SIM_OK(hem_wait_signal_from(window, peer, id, HEM_GE, value, HEM_FOREVER));
        return;
    default:
        SIM_OK(hem_read_signal_from(window, peer, id, &seen));
        if (seen < value)
            SIM_OK(hem_wait_signal_from(window, peer, id, HEM_GE, value, HEM_FOREVER));
        return;
    }
}

/* After the message was seen, its place is the receiver's: nobody may write it again. */
static void check_and_own(unsigned char *place, uint64_t message) {
    size_t n = length_of(message);
    SIM_CHECK(sim_filled(place, n, message));
    memset(place, 0xee, n);
}

static void check_still_own(const unsigned char *place, uint64_t message) {
    for (size_t i = 0; i < length_of(message); i++)
        SIM_EQ(place[i], 0xee);
}

static void send(hem_window *window, int to, uint64_t message, uint32_t id) {
    unsigned char bytes[256];
    size_t n = length_of(message);
    sim_fill(bytes, n, message);
    SIM_OK(hem_put_signal(window, to, PLACE, bytes, n, id, 1));
    memset(bytes, 0, sizeof bytes);
    if (sim_below(2) == 0)
        SIM_OK(hem_flush(window, to));
}

static int ping_pong(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 512);
    unsigned char *place = (unsigned char *)hem_window_memory(window) + PLACE;
    int peer = 1 - hem_world_rank(world);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        if (hem_world_rank(world) == 0)
            send(window, peer, i, 0);
        see(window, peer, 0, i);
        check_and_own(place, i);
        if (sim_below(2) == 0)
            SIM_OK(hem_flush_all(window));
        check_still_own(place, i);
        if (hem_world_rank(world) == 1)
            send(window, peer, i, 0);
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* Many messages without waiting, over several ids, each at its own place. */
static void burst_out(hem_window *window, int to) {
    unsigned char bytes[32];
    for (uint64_t i = 0; i < 3 * ROUNDS; i++) {
        sim_fill(bytes, sizeof bytes, i);
        SIM_OK(hem_put_signal(window, to, 32 * (size_t)i, bytes, sizeof bytes, (uint32_t)i % 3, 1));
        if (sim_below(4) == 0)
            SIM_OK(hem_flush(window, to));
    }
}

static void burst_in(hem_window *window, int from) {
    const unsigned char *memory = hem_window_memory(window);
    for (uint64_t i = 0; i < 3 * ROUNDS; i++) {
        /* A strong signal: everything before it is there, whichever id it came with. So not every
         * signal need be looked at. */
        if (i < 3 * ROUNDS - 1 && sim_below(2) == 0)
            continue;
        see(window, from, (uint32_t)i % 3, i / 3 + 1);
        for (uint64_t before = 0; before <= i; before++)
            SIM_CHECK(sim_filled(memory + 32 * before, 32, before));
    }
}

static int burst(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 32 * 3 * ROUNDS);
    if (hem_world_rank(world) == 0)
        burst_out(window, 1);
    else
        burst_in(window, 0);
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* The same place again and again, in the line, directly and by value: the last one stays. */
static int overlap(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    const uint64_t *word = hem_window_memory(window);
    int peer = 1 - hem_world_rank(world);
    for (uint64_t i = 1; i <= 2 * ROUNDS; i++) {
        uint64_t got = 0;
        if (sim_below(2) == 0)
            SIM_OK(hem_put_signal(window, peer, 0, &i, sizeof i, (uint32_t)sim_below(3), 1));
        else if (sim_below(2) == 0)
            SIM_OK(hem_put(window, peer, 0, &i, sizeof i));
        else
            SIM_OK(hem_put_value(window, peer, 0, i));
        SIM_OK(hem_get(window, peer, 0, &got, sizeof got));
        SIM_EQ(got, i);
        if (sim_below(3) == 0) {
            uint64_t ignored = 0;
            SIM_OK(hem_read_signal(window, (uint32_t)sim_below(3), &ignored));
        }
    }
    SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
    SIM_EQ(*word, 2 * ROUNDS);
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* Rank 0 puts to rank 1, flushes, and tells rank 2, which looks into rank 1's memory. */
static int third(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 512);
    unsigned char bytes[256];
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        size_t n = length_of(i);
        if (hem_world_rank(world) == 0) {
            sim_fill(bytes, n, i);
            SIM_OK(hem_put_signal(window, 1, PLACE, bytes, n, 0, 1));
            SIM_OK(hem_flush(window, 1));
            SIM_OK(hem_signal(window, 2, 1, HEM_SIGNAL_ADD, 1));
        } else if (hem_world_rank(world) == 1) {
            see(window, 0, 0, i);
            SIM_CHECK(sim_filled((unsigned char *)hem_window_memory(window) + PLACE, n, i));
        } else {
            see(window, 0, 1, i);
            SIM_OK(hem_get(window, 1, PLACE, bytes, n));
            SIM_CHECK(sim_filled(bytes, n, i));
        }
        SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

static void run(const char *name, hem_rank_fn fn, int ranks, uint64_t seeds) {
    const sim_program program = {.name = name, .fn = fn};
    sim_many(&program, ranks, seeds);
}

static void test_ping_pong(void **unused) {
    (void)unused;
    run("ping-pong", ping_pong, 2, 600);
}

static void test_burst(void **unused) {
    (void)unused;
    run("burst", burst, 2, 300);
}

static void test_overlap(void **unused) {
    (void)unused;
    run("overlap", overlap, 2, 300);
}

static void test_third(void **unused) {
    (void)unused;
    run("third rank", third, 3, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_third),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
