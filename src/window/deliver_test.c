/* Payloads in a signal's line, in the moments that only happen when somebody is stopped or dies. */
#include "window/window.h"

#include "base/testing.h"

#include <hem/hem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(20)
#define SOON  HEM_SEC(2)

static hem_window *open_window(hem_world *world, int64_t timeout_ns) {
    hem_window_options options = {
        .struct_size = sizeof options, .bytes = 4096, .timeout_ns = timeout_ns};
    hem_window *window = NULL;
    return hem_window_create(world, &options, &window) == HEM_OK ? window : NULL;
}

static uint64_t now(const hem_window *window) {
    return window->root->platform->now(window->root->platform->ctx);
}

static void run(hem_rank_fn fn) {
    uint32_t word = 0; /* for ranks that must not talk through the window */
    hem_status status = hem_world_threads(2, fn, &word, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

static int finish(hem_world *world, hem_window *window) {
    RANK_CHECK(hem_barrier(window, 3, LIMIT) == HEM_OK);
    RANK_CHECK(hem_window_destroy(window) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

/* The strong signal promised the payload; a weak one behind it must not take that back. */
static int strong_then_weak(hem_world *world, void *arg) {
    hem_window *window = open_window(world, LIMIT);
    uint64_t value = 0x1122334455667788;
    (void)arg;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 1) {
        RANK_CHECK(hem_put_signal(window, 0, 64, &value, sizeof value, 2, 1) == HEM_OK);
        RANK_CHECK(hem_signal(window, 0, 1, HEM_SIGNAL_ADD, 1) == HEM_OK);
        RANK_CHECK(hem_signal(window, 0, 1, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1) == HEM_OK);
        RANK_CHECK(hem_signal(window, 0, 3, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1) == HEM_OK);
    } else {
        RANK_CHECK(hem_wait_signal_from(window, 1, 3, HEM_GE, 1, LIMIT) == HEM_OK);
        RANK_CHECK(hem_wait_signal_from(window, 1, 1, HEM_GE, 1, LIMIT) == HEM_OK);
        RANK_CHECK(*(uint64_t *)((char *)hem_window_memory(window) + 64) == value);
    }
    return finish(world, window);
}

static void a_weak_signal_takes_nothing_back(void **state) {
    (void)state;
    run(strong_then_weak);
}

/* Rank 1 has claimed its own payload, as in a flush, and was stopped before it moved it. */
static int send_and_stop(hem_window *window, uint64_t value) {
    RANK_CHECK(hem_put_signal(window, 0, 64, &value, sizeof value, 0, 1) == HEM_OK);
    RANK_CHECK(window->peers[0]->shadows[0].seq == 1);
    RANK_CHECK(hemi_line_claim(&window->peers[0]->out_claims[0], 1));
    return hem_signal(window, 0, 1, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1) == HEM_OK ? 0 : __LINE__;
}

static int go_on(hem_window *window) {
    hemi_peer *peer = window->peers[0];
    RANK_CHECK(hemi_line_move(&peer->out[0], &peer->out_claims[0], 1, peer->data.mapped,
                              peer->data.bytes));
    return 0;
}

static int wait_for_the_stopped(hem_world *world, void *arg) {
    hem_window *window = open_window(world, LIMIT);
    bool done = false;
    uint64_t value = 0;
    (void)arg;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 1) {
        RANK_CHECK(send_and_stop(window, 77) == 0);
        RANK_CHECK(hem_wait_signal_from(window, 0, 1, HEM_GE, 1, LIMIT) == HEM_OK);
        RANK_CHECK(go_on(window) == 0);
        return finish(world, window);
    }
    RANK_CHECK(hem_wait_signal_from(window, 1, 1, HEM_GE, 1, LIMIT) == HEM_OK);
    uint64_t start = now(window);
    hem_status waited = hem_wait_signal_from(window, 1, 0, HEM_GE, 1, HEM_MS(50));
    uint64_t wait_took = now(window) - start;
    hem_status tested = hem_test_signal_from(window, 1, 0, HEM_GE, 1, &done);
    hem_status read = hem_read_signal_from(window, 1, 0, &value);
    uint64_t all_took = now(window) - start;
    RANK_CHECK(hem_signal(window, 1, 1, HEM_SIGNAL_ADD, 1) == HEM_OK);
    RANK_CHECK(hem_wait_signal_from(window, 1, 0, HEM_GE, 1, LIMIT) == HEM_OK);
    RANK_CHECK(*(uint64_t *)((char *)hem_window_memory(window) + 64) == 77);
    RANK_CHECK(finish(world, window) == 0);
    /* Only now, so that a failure here does not hang rank 1. */
    RANK_CHECK(waited == HEM_ERR_TIMEOUT);
    RANK_CHECK(wait_took < (uint64_t)SOON);
    RANK_CHECK((tested != HEM_OK || !done) && read != HEM_OK);
    RANK_CHECK(all_took < (uint64_t)SOON); /* these two do not block at all */
    return 0;
}

static void a_stopped_sender_does_not_stop_a_wait_with_a_limit(void **state) {
    (void)state;
    run(wait_for_the_stopped);
}

/*
 * The same in a barrier: rank 1 has entered, but what it put before is not in place. A limit that
 * passes leaves the arrival standing, and the next wait takes it up.
 */
static int enter_with_the_stopped(hem_world *world, void *arg) {
    hem_window *window = open_window(world, LIMIT);
    uint32_t *go = arg;
    bool done = true;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 1) {
        RANK_CHECK(send_and_stop(window, 99) == 0);
        RANK_CHECK(hem_barrier_arrive(window, 0) == HEM_OK);
        while (hemi_load32_acquire(go) == 0)
            window->root->platform->yield(NULL);
        RANK_CHECK(go_on(window) == 0);
        RANK_CHECK(hem_barrier_wait(window, 0, LIMIT) == HEM_OK);
        return finish(world, window);
    }
    RANK_CHECK(hem_wait_signal_from(window, 1, 1, HEM_GE, 1, LIMIT) == HEM_OK);
    uint64_t start = now(window);
    RANK_CHECK(hem_barrier_arrive(window, 0) == HEM_OK);
    hem_status waited = hem_barrier_wait(window, 0, HEM_MS(500));
    hem_status tested = hem_barrier_test(window, 0, &done);
    uint64_t took = now(window) - start;
    hemi_store32_release(go, 1);
    hem_status again = hem_barrier_wait(window, 0, LIMIT);
    uint64_t value = *(uint64_t *)((char *)hem_window_memory(window) + 64);
    RANK_CHECK(finish(world, window) == 0);
    RANK_CHECK(waited == HEM_ERR_TIMEOUT);
    RANK_CHECK(tested == HEM_OK && !done);
    RANK_CHECK(took < (uint64_t)SOON); /* the test does not block */
    RANK_CHECK(again == HEM_OK && value == 99);
    return 0;
}

static void a_stopped_sender_does_not_break_a_barrier(void **state) {
    (void)state;
    run(enter_with_the_stopped);
}

/* The same, but rank 1 is dead: what it had claimed is for rank 0 to finish. */
static int wait_for_the_dead(hem_world *world, void *arg) {
    hem_window *window = open_window(world, LIMIT);
    (void)arg;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 1)
        return send_and_stop(window, 88);
    RANK_CHECK(hem_wait_signal_from(window, 1, 1, HEM_GE, 1, LIMIT) == HEM_OK);
    RANK_CHECK(hem_wait_signal_from(window, 1, 0, HEM_GE, 1, LIMIT) == HEM_OK);
    RANK_CHECK(*(uint64_t *)((char *)hem_window_memory(window) + 64) == 88);
    RANK_CHECK(hem_window_destroy(window) == HEM_ERR_PEER);
    RANK_CHECK(hem_world_close(world) == HEM_ERR_PEER);
    return 0;
}

static void a_dead_senders_payload_is_delivered(void **state) {
    (void)state;
    run(wait_for_the_dead);
}

/* Rank 0, the receiver, dies with the claim: whoever sent it is told when it flushes. */
static int flush_to_the_dead(hem_world *world, void *arg) {
    hem_window *window = open_window(world, LIMIT);
    uint64_t value = 5;
    (void)arg;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 0) {
        RANK_CHECK(hem_wait_signal_from(window, 1, 1, HEM_GE, 1, LIMIT) == HEM_OK);
        RANK_CHECK(hemi_line_claim(&window->peers[1]->in_claims[0], 1));
        return 0;
    }
    RANK_CHECK(hem_put_signal(window, 0, 64, &value, sizeof value, 0, 1) == HEM_OK);
    RANK_CHECK(hem_signal(window, 0, 1, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1) == HEM_OK);
    while (hem_world_alive(world, 0) == 1)
        window->root->platform->yield(NULL);
    RANK_CHECK(hem_flush(window, 0) == HEM_ERR_PEER);
    RANK_CHECK(hem_flush_all(window) == HEM_ERR_PEER);
    RANK_CHECK(hem_put(window, 0, 64, &value, sizeof value) == HEM_ERR_PEER);
    RANK_CHECK(hem_window_destroy(window) == HEM_ERR_PEER);
    RANK_CHECK(hem_world_close(world) == HEM_ERR_PEER);
    return 0;
}

static void a_flush_to_the_dead_ends(void **state) {
    (void)state;
    run(flush_to_the_dead);
}

/* What a broken peer sends is refused, and nothing is written. */
static int refuse_a_bad_place(hem_world *world, void *arg) {
    hem_window *window = open_window(world, HEM_MS(100));
    uint64_t value = UINT64_MAX;
    (void)arg;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 1) {
        RANK_CHECK(hem_put_signal(window, 0, 64, &value, sizeof value, 5, 1) == HEM_OK);
        window->peers[0]->out[5].place = (uint64_t)8 << HEMI_PLACE_SHIFT | 4090;
        RANK_CHECK(hem_signal(window, 0, 1, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1) == HEM_OK);
    } else {
        const unsigned char *memory = hem_window_memory(window);
        RANK_CHECK(hem_wait_signal_from(window, 1, 1, HEM_GE, 1, LIMIT) == HEM_OK);
        RANK_CHECK(hem_wait_signal_from(window, 1, 5, HEM_GE, 1, LIMIT) == HEM_ERR_MISMATCH);
        RANK_CHECK(strstr(hem_last_error(), "rank 1") != NULL);
        for (size_t i = 0; i < 4096; i++)
            RANK_CHECK(memory[i] == 0);
    }
    return finish(world, window);
}

static void a_payload_for_nowhere_is_refused(void **state) {
    (void)state;
    run(refuse_a_bad_place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weak_signal_takes_nothing_back),
        cmocka_unit_test(a_stopped_sender_does_not_stop_a_wait_with_a_limit),
        cmocka_unit_test(a_stopped_sender_does_not_break_a_barrier),
        cmocka_unit_test(a_dead_senders_payload_is_delivered),
        cmocka_unit_test(a_flush_to_the_dead_ends),
        cmocka_unit_test(a_payload_for_nowhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
