/*
 * Time limits and revokes under a deterministic scheduler. Time is virtual: a limit of an hour
 * takes no time, and a wait that ends too early or too late is seen to the microsecond.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define HOUR HEM_SEC(3600)
/* What the points of the other ranks may take until the one whose time is up runs again. */
#define LATE HEM_US(500)

static void check_time(uint64_t start, int64_t limit_ns) {
    uint64_t took = sim_now() - start;
    SIM_CHECK(took >= (uint64_t)limit_ns);
    SIM_CHECK(took <= (uint64_t)(limit_ns + LATE));
}

static hem_status wait_in(uint64_t way, hem_window *window, int peer, int64_t limit_ns) {
    const hem_signal_want want = {peer, 0, HEM_GE, 1};
    size_t which = 0;
    switch (way) {
    case 0:
        return hem_wait_signal_from(window, peer, 0, HEM_GE, 1, limit_ns);
    case 1:
        return hem_wait_signal(window, 0, HEM_GE, 1, limit_ns);
    case 2:
        return hem_wait_signal_any(window, &want, 1, &which, limit_ns);
    case 3:
        return hem_barrier(window, 0, limit_ns);
    case 4:
        return hem_barrier_peer(window, peer, 0, limit_ns);
    default:
        return hem_wait_counter(window, 0, 1, limit_ns);
    }
}

#define WAYS 6

/* Everybody waits in vain, each in its own way and for its own time. */
static int in_vain(hem_world *world, void *unused) {
    (void)unused;
    static const int64_t limits[] = {0, HEM_US(3), HEM_MS(20), HOUR};
    hem_window *window = sim_window(world, 64);
    for (int i = 0; i < 4; i++) {
        int64_t limit = limits[(i + hem_world_rank(world)) % 4];
        /* An arrival stands after its timeout, so that barriers are left to another test. */
        uint64_t way = sim_below(3);
        uint64_t start = sim_now();
        SIM_STATUS(wait_in(way, window, sim_left(world), limit), HEM_ERR_TIMEOUT);
        check_time(start, limit);
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* The arrival of a barrier that timed out stands; the wait is taken up again. */
static int barrier_late(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    int last = hem_world_size(world) - 1;
    if (hem_world_rank(world) == last) {
        SIM_STATUS(hem_wait_counter(window, 0, 1, HOUR), HEM_ERR_TIMEOUT);
        SIM_OK(hem_barrier(window, 1, HEM_FOREVER));
    } else {
        uint64_t start = sim_now();
        SIM_STATUS(hem_barrier(window, 1, HEM_SEC(1)), HEM_ERR_TIMEOUT);
        check_time(start, HEM_SEC(1));
        SIM_OK(hem_barrier_wait(window, 1, HEM_FOREVER));
        SIM_CHECK(sim_now() - start >= (uint64_t)HOUR - HEM_SEC(1));
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* A signal that comes before the limit beats it, one that comes after does not. */
static int in_time(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
    uint64_t start = sim_now();
    if (hem_world_rank(world) == 0) {
        SIM_STATUS(hem_wait_counter(window, 0, 1, HEM_SEC(5)), HEM_ERR_TIMEOUT);
        SIM_OK(hem_signal_all(window, 0, HEM_SIGNAL_SET, 1));
    } else if (sim_below(2) == 0) {
        SIM_OK(hem_wait_signal_from(window, 0, 0, HEM_GE, 1, HEM_SEC(6)));
        SIM_CHECK(sim_now() - start >= (uint64_t)(HEM_SEC(5) - LATE));
        SIM_CHECK(sim_now() - start <= (uint64_t)(HEM_SEC(5) + LATE));
    } else {
        SIM_STATUS(hem_wait_signal_from(window, 0, 0, HEM_GE, 1, HEM_SEC(4)), HEM_ERR_TIMEOUT);
        SIM_OK(hem_wait_signal_from(window, 0, 0, HEM_GE, 1, HEM_FOREVER));
    }
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(world));
    return 0;
}

/* A rank that does not come to a collective call: those who came all get the timeout. */
static int absent(hem_world *world, void *unused) {
    (void)unused;
    hem_window *clock = sim_window(world, 64);
    if (hem_world_rank(world) == 0) {
        SIM_STATUS(hem_wait_counter(clock, 0, 1, HOUR), HEM_ERR_TIMEOUT);
    } else {
        hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
        hem_window *window = NULL;
        options.timeout_ns = HEM_SEC(1);
        SIM_STATUS(hem_window_create(world, &options, &window), HEM_ERR_TIMEOUT);
    }
    SIM_OK(hem_world_close(world));
    SIM_OK(hem_window_destroy(clock));
    return 0;
}

/* One rank gives up. Whatever the others wait in, they hear of it and go on without this world. */
static int revoke(hem_world *world, void *unused) {
    (void)unused;
    hem_window *window = sim_window(world, 64);
    hem_world *rest = NULL;
    int last = hem_world_size(world) - 1;
    if (hem_world_rank(world) == last) {
        if (sim_below(2) == 0)
            SIM_STATUS(hem_wait_counter(window, 0, 1, HEM_MS(1)), HEM_ERR_TIMEOUT);
        SIM_OK(hem_world_revoke(world));
    } else {
        SIM_STATUS(wait_in(sim_below(WAYS), window, last, HEM_FOREVER), HEM_ERR_REVOKED);
    }
    SIM_STATUS(hem_signal(window, sim_right(world), 0, HEM_SIGNAL_ADD, 1), HEM_ERR_REVOKED);
    SIM_STATUS(hem_barrier(window, 1, HEM_FOREVER), HEM_ERR_REVOKED);
    SIM_OK(hem_world_shrink(world, &rest));
    SIM_EQ(hem_world_size(rest), hem_world_size(world));
    hem_window *again = sim_window(rest, 64);
    SIM_OK(hem_barrier(again, 0, HEM_FOREVER));
    SIM_OK(hem_world_close(rest));
    SIM_OK(hem_window_destroy(again));
    SIM_OK(hem_world_close(world));
    SIM_OK(hem_window_destroy(window));
    return 0;
}

/* The same in the middle of set-up. */
static int revoke_setup(hem_world *world, void *unused) {
    (void)unused;
    const hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
    hem_window *window = NULL;
    hem_world *made = NULL;
    if (hem_world_rank(world) == 0) {
        SIM_OK(hem_world_revoke(world));
        SIM_STATUS(hem_window_create(world, &options, &window), HEM_ERR_REVOKED);
    } else if (sim_below(2) == 0) {
        SIM_STATUS(hem_world_split(world, 0, 0, &made), HEM_ERR_REVOKED);
    } else {
        SIM_STATUS(hem_window_create(world, &options, &window), HEM_ERR_REVOKED);
    }
    SIM_OK(hem_world_close(world));
    return 0;
}

/* Ranks leave a revoked world at different places: each destroys what it knows of. */
static int revoke_apart(hem_world *world, void *unused) {
    (void)unused;
    hem_window *windows[] = {sim_window(world, 64), sim_window(world, 64)};
    int first = hem_world_rank(world) == 0 ? 1 : (int)sim_below(2);
    if (hem_world_rank(world) == 0)
        SIM_OK(hem_world_revoke(world));
    hem_status status = hem_window_destroy(windows[first]);
    sim_note((uint64_t)(int64_t)status);
    /* Somebody may have closed already, which is as good a reason. */
    if (status != HEM_OK && status != HEM_ERR_PEER)
        SIM_EQ(status, HEM_ERR_REVOKED);
    SIM_OK(hem_world_close(world));
    SIM_OK(hem_window_destroy(windows[1 - first]));
    return 0;
}

static void run(const char *name, hem_rank_fn fn, int ranks, uint64_t seeds) {
    const sim_program program = {.name = name, .fn = fn};
    sim_many(&program, ranks, seeds);
}

static void test_in_vain(void **unused) {
    (void)unused;
    run("waits in vain", in_vain, 2, 200);
    run("waits in vain", in_vain, 3, 100);
}

static void test_barrier_late(void **unused) {
    (void)unused;
    run("late barrier", barrier_late, 2, 100);
    run("late barrier", barrier_late, 3, 100);
}

static void test_in_time(void **unused) {
    (void)unused;
    run("signal in time", in_time, 3, 200);
}

static void test_absent(void **unused) {
    (void)unused;
    run("absent rank", absent, 2, 100);
    run("absent rank", absent, 4, 100);
}

static void test_revoke(void **unused) {
    (void)unused;
    run("revoke", revoke, 2, 200);
    run("revoke", revoke, 3, 200);
}

static void test_revoke_apart(void **unused) {
    (void)unused;
    run("revoke, then destroy", revoke_apart, 2, 100);
    run("revoke, then destroy", revoke_apart, 3, 100);
}

static void test_revoke_setup(void **unused) {
    (void)unused;
    run("revoke in set-up", revoke_setup, 3, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_vain),      cmocka_unit_test(test_barrier_late),
        cmocka_unit_test(test_in_time),      cmocka_unit_test(test_absent),
        cmocka_unit_test(test_revoke),       cmocka_unit_test(test_revoke_setup),
        cmocka_unit_test(test_revoke_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
