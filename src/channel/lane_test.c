/* Lanes between two ranks that are threads, in the moments that are hard to meet by chance. */
#include "channel/lane.h"

#include "base/testing.h"

#include <hem/hem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(20)
#define SOON  HEM_MS(30)
#define BIG   (3u << 20)
#define SYNC  15

typedef struct rank {
    hem_world *world;
    int me;
    int peer;
    unsigned char *data; /* BIG bytes, private */
    hem_memory *memory;  /* BIG bytes, of the library */
    unsigned char *library;
} rank;

typedef int (*rank_body)(rank *r);

/* With `apart`, the ranks behave as processes do: private addresses of the other mean nothing. */
static int run_body(hem_world *world, rank_body body, bool apart) {
    rank r = {.world = world, .me = hem_world_rank(world), .peer = 1 - hem_world_rank(world)};
    if (apart) {
        world->root->threads = false;
        world->root->settings.copy = HEMI_COPY_STAGED; /* a test that wants another way says so */
    }
    r.data = calloc(1, BIG);
    RANK_CHECK(r.data != NULL);
    RANK_CHECK(hem_memory_alloc(world, BIG, &r.memory) == HEM_OK);
    r.library = hem_memory_address(r.memory);
    int line = body(&r);
    free(r.data);
    RANK_CHECK(line == 0);
    RANK_CHECK(hem_memory_free(r.memory) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static int run_near(hem_world *world, void *arg) {
    return run_body(world, *(rank_body *)arg, false);
}

static int run_apart(hem_world *world, void *arg) {
    return run_body(world, *(rank_body *)arg, true);
}

static void run(rank_body body, hem_rank_fn how) {
    hem_status status = hem_world_threads(2, how, &body, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

static int sync(rank *r) {
    hem_message none = {r->peer, NULL, 0};
    hem_message also = none;
    RANK_CHECK(hem_sendrecv(r->world, SYNC, &none, &also, LIMIT) == HEM_OK);
    return 0;
}

static hemi_lane *lane_of(rank *r, uint32_t channel) {
    return hemi_lane_find(r->world, (uint32_t)r->peer, channel);
}

static void fill(unsigned char *data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 13 + (i >> 9) + seed);
}

static bool is_filled(const unsigned char *data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(i * 13 + (i >> 9) + seed))
            return false;
    return true;
}

/* Messages of a few lengths go through on this channel. */
static int works(rank *r, uint32_t channel) {
    static const size_t lengths[] = {0, 8, 40, 41, 5000, 20000, 1000003};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned char *in = malloc(lengths[i] + 1);
        fill(r->data, lengths[i], (unsigned)(i + (size_t)r->me));
        hem_message send = {r->peer, r->data, lengths[i]};
        hem_message recv = {r->peer, in, lengths[i] + 1};
        RANK_CHECK(hem_sendrecv(r->world, channel, &send, &recv, LIMIT) == HEM_OK);
        RANK_CHECK(recv.bytes == lengths[i]);
        RANK_CHECK(is_filled(in, lengths[i], (unsigned)(i + (size_t)r->peer)));
        free(in);
    }
    return 0;
}

/* Nonsense from a peer breaks the one direction of the one channel, and says so. */
static int send_nonsense(rank *r) {
    unsigned char byte = 0;
    RANK_CHECK(works(r, 0) == 0);
    RANK_CHECK(works(r, 1) == 0);
    RANK_CHECK(sync(r) == 0);
    if (r->me == 0) {
        hemi_engine_lock(r->world);
        hemi_lane *lane = lane_of(r, 0);
        hemi_tx_post(&lane->tx.cursor, 77, 5, 5);
        hemi_lane_wake(lane);
        hemi_engine_unlock(r->world);
    } else {
        for (int i = 0; i < 3; i++)
            RANK_CHECK(hem_recv(r->world, 0, 0, &byte, 1, NULL, LIMIT) == HEM_ERR_MISMATCH);
        RANK_CHECK(strstr(hem_last_error(), "rank 0") != NULL);
        RANK_CHECK(hem_send(r->world, 0, 0, "x", 1, LIMIT) == HEM_OK);
    }
    if (r->me == 0)
        RANK_CHECK(hem_recv(r->world, 1, 0, &byte, 1, NULL, LIMIT) == HEM_OK && byte == 'x');
    return works(r, 1);
}

static void nonsense_breaks_one_direction(void **state) {
    (void)state;
    run(send_nonsense, run_near);
}

/* Credits that cannot be break the other direction. */
static int give_back_too_much(rank *r) {
    RANK_CHECK(works(r, 0) == 0);
    RANK_CHECK(sync(r) == 0);
    if (r->me == 1)
        hemi_store64_release(&lane_of(r, 0)->rx.cursor.mine->slots, UINT64_MAX / 2);
    RANK_CHECK(sync(r) == 0);
    if (r->me == 0) {
        hem_status status = HEM_OK;
        for (int i = 0; i < 100 && status == HEM_OK; i++)
            status = hem_send(r->world, 1, 0, "x", 1, LIMIT);
        RANK_CHECK(status == HEM_ERR_MISMATCH);
        RANK_CHECK(hem_send(r->world, 1, 0, "x", 1, LIMIT) == HEM_ERR_MISMATCH);
    }
    return works(r, 1);
}

static void credits_that_cannot_be_are_found(void **state) {
    (void)state;
    run(give_back_too_much, run_near);
}

static bool names(size_t a, size_t b) {
    char first[32];
    char second[32];
    (void)snprintf(first, sizeof first, "%zu", a);
    (void)snprintf(second, sizeof second, "%zu", b);
    return strstr(hem_last_error(), first) != NULL && strstr(hem_last_error(), second) != NULL;
}

/* A message that does not fit: the receiver's call fails, and the sender's if it is under way. */
static int too_small(rank *r) {
    static const size_t lengths[] = {1, 40, 41, 8000, 2000000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t bytes = lengths[i];
        if (r->me == 0) {
            hem_status status = hem_send(r->world, 1, 2, r->data, bytes, LIMIT);
            if (bytes > 1000000)
                RANK_CHECK(status == HEM_ERR_RANGE && names(bytes, bytes - 1));
            else
                RANK_CHECK(status == HEM_OK);
        } else {
            r->library[bytes - 1] = 99;
            RANK_CHECK(hem_recv(r->world, 0, 2, r->library, bytes - 1, NULL, LIMIT) ==
                       HEM_ERR_RANGE);
            RANK_CHECK(names(bytes, bytes - 1));
            RANK_CHECK(r->library[bytes - 1] == 99);
        }
        RANK_CHECK(works(r, 2) == 0);
    }
    return 0;
}

static void too_small_a_buffer_fails_both(void **state) {
    (void)state;
    run(too_small, run_near);
    run(too_small, run_apart);
}

/* From private into library memory: once the receiver is known to like it, the data is pushed. */
static int push(rank *r) {
    for (unsigned i = 0; i < 4; i++) {
        if (r->me == 0) {
            fill(r->data, BIG, i);
            RANK_CHECK(hem_send(r->world, 1, 3, r->data, BIG, LIMIT) == HEM_OK);
            uint64_t verdict = lane_of(r, 3)->tx.cursor.theirs->verdict;
            RANK_CHECK(i == 0 || (verdict & 0xff) == HEMI_VERDICT_PUSH);
        } else {
            size_t bytes = 0;
            RANK_CHECK(hem_recv(r->world, 0, 3, r->library, BIG, &bytes, LIMIT) == HEM_OK);
            RANK_CHECK(bytes == BIG && is_filled(r->library, BIG, i));
        }
        RANK_CHECK(sync(r) == 0);
    }
    /* Into private memory again: staged, and after that not offered any more. */
    for (unsigned i = 0; i < 2; i++) {
        if (r->me == 0)
            RANK_CHECK(hem_send(r->world, 1, 3, r->data, BIG, LIMIT) == HEM_OK);
        else
            RANK_CHECK(hem_recv(r->world, 0, 3, r->data, BIG, NULL, LIMIT) == HEM_OK);
        RANK_CHECK(sync(r) == 0);
    }
    if (r->me == 1)
        RANK_CHECK(is_filled(r->data, BIG, 3));
    else
        RANK_CHECK(lane_of(r, 3)->tx.cursor.theirs->likes == 0);
    return works(r, 3);
}

static void library_memory_is_pushed_into(void **state) {
    (void)state;
    run(push, run_apart);
}

/* A receive that is freed while the sender may push: its memory is not touched afterwards. */
static int take_back(rank *r) {
    hem_op *op = NULL;
    RANK_CHECK(push(r) == 0);
    memset(r->library, 5, BIG);
    if (r->me == 1) {
        RANK_CHECK(hem_recv(r->world, 0, 3, r->library, BIG, NULL, LIMIT) == HEM_OK);
        memset(r->library, 5, BIG);
        RANK_CHECK(hem_recv_start(r->world, 0, 3, r->library, BIG, &op) == HEM_OK);
        RANK_CHECK(sync(r) == 0); /* the offer is there */
        while (lane_of(r, 3)->rx.phase != HEMI_RX_PUSH)
            RANK_CHECK(hem_progress(r->world) == HEM_OK);
        RANK_CHECK(hem_op_free(op) == HEM_OK);
        RANK_CHECK(sync(r) == 0);
    } else {
        RANK_CHECK(hem_send(r->world, 1, 3, r->data, BIG, LIMIT) == HEM_OK);
        RANK_CHECK(hem_send_start(r->world, 1, 3, r->data, BIG, &op) == HEM_OK);
        RANK_CHECK(lane_of(r, 3)->tx.phase == HEMI_TX_OFFERED);
        hemi_engine_lock(r->world); /* as if this rank were stopped here */
        hemi_engine_unlist(r->world, &lane_of(r, 3)->task);
        hemi_engine_unlock(r->world);
        RANK_CHECK(sync(r) == 0);
        RANK_CHECK(sync(r) == 0);
        hemi_engine_lock(r->world);
        hemi_engine_list(r->world, &lane_of(r, 3)->task);
        hemi_engine_unlock(r->world);
        RANK_CHECK(hem_op_wait(op, LIMIT) == HEM_OK);
        RANK_CHECK(hem_op_free(op) == HEM_OK);
    }
    RANK_CHECK(works(r, 3) == 0);
    for (size_t i = 0; i < BIG; i++)
        RANK_CHECK(r->library[i] == 5);
    return 0;
}

static void a_push_can_be_taken_back(void **state) {
    (void)state;
    run(take_back, run_apart);
}

/* In one copy by the system, or staged where that is refused. */
static int single(rank *r) {
    r->world->root->settings.copy = HEMI_COPY_SINGLE;
    if (r->me == 0) {
        fill(r->data, BIG, 8);
        RANK_CHECK(hem_send(r->world, 1, 4, r->data, BIG, LIMIT) == HEM_OK);
        uint64_t verdict = lane_of(r, 4)->tx.cursor.theirs->verdict & 0xff;
        RANK_CHECK(verdict == HEMI_VERDICT_DONE || verdict == HEMI_VERDICT_STAGE);
    } else {
        RANK_CHECK(hem_recv(r->world, 0, 4, r->data, BIG, NULL, LIMIT) == HEM_OK);
        RANK_CHECK(is_filled(r->data, BIG, 8));
    }
    return works(r, 4);
}

static void one_copy_by_the_system(void **state) {
    (void)state;
    run(single, run_apart);
}

/* Nobody receives: the message is withdrawn, and the receiver gets what comes after it. */
static int withdraw(rank *r) {
    RANK_CHECK(works(r, 5) == 0);
    if (r->me == 0) {
        RANK_CHECK(hem_send(r->world, 1, 5, r->data, BIG, SOON) == HEM_ERR_TIMEOUT);
        memset(r->data, 0xff, BIG);
        RANK_CHECK(hem_send(r->world, 1, 5, "next", 5, LIMIT) == HEM_OK);
    }
    RANK_CHECK(sync(r) == 0);
    if (r->me == 1) {
        size_t bytes = 0;
        hem_status status = hem_recv(r->world, 0, 5, r->library, BIG, &bytes, LIMIT);
        /* Staged, its beginning had arrived; offered, nothing had. */
        RANK_CHECK(r->world->root->threads ? status == HEM_OK : status == HEM_ERR_REVOKED);
        if (status == HEM_ERR_REVOKED)
            RANK_CHECK(hem_recv(r->world, 0, 5, r->library, BIG, &bytes, LIMIT) == HEM_OK);
        RANK_CHECK(bytes == 5 && strcmp((char *)r->library, "next") == 0);
    }
    return works(r, 5);
}

static void what_timed_out_is_withdrawn(void **state) {
    (void)state;
    run(withdraw, run_near);
    run(withdraw, run_apart);
}

/* A receive goes away in the middle: the lane throws the rest away, and the send is done. */
static int discard(rank *r) {
    hem_op *op = NULL;
    if (r->me == 0) {
        RANK_CHECK(hem_send(r->world, 1, 6, r->data, BIG, LIMIT) == HEM_OK);
    } else {
        RANK_CHECK(hem_recv_start(r->world, 0, 6, r->library, BIG, &op) == HEM_OK);
        while (lane_of(r, 6)->rx.moved == 0)
            RANK_CHECK(hem_progress(r->world) == HEM_OK);
        RANK_CHECK(lane_of(r, 6)->rx.moved < BIG);
        RANK_CHECK(hem_op_free(op) == HEM_OK);
        memset(r->library, 6, BIG);
    }
    RANK_CHECK(works(r, 6) == 0);
    for (size_t i = 0; i < BIG && r->me == 1; i++)
        RANK_CHECK(r->library[i] == 6);
    return 0;
}

static void what_nobody_wants_is_thrown_away(void **state) {
    (void)state;
    run(discard, run_apart);
}

static int post_tagged(rank *r, hemi_letter *letter, bool sends, uint32_t tag, void *data,
                       size_t bytes) {
    hemi_engine_lock(r->world);
    hemi_letter_init(letter, r->world, sends, (uint32_t)r->peer, HEMI_CHANNEL_OWN, data, bytes);
    letter->tag = tag;
    hemi_op_begin(&letter->op);
    hemi_engine_unlock(r->world);
    return 0;
}

static int send_tagged(rank *r, uint32_t tag, size_t bytes) {
    hemi_letter letter;
    fill(r->data, bytes, tag);
    RANK_CHECK(post_tagged(r, &letter, true, tag, r->data, bytes) == 0);
    RANK_CHECK(hemi_engine_wait(r->world, &letter.op, LIMIT) == HEM_OK);
    return 0;
}

/* The library's own messages: what is older than expected is skipped, what is newer waits. */
static int tags(rank *r) {
    static const size_t lengths[] = {8, 5000, 20000};
    for (unsigned i = 0; i < 3 && r->me == 0; i++)
        RANK_CHECK(send_tagged(r, 0xffff, lengths[i]) == 0);
    if (r->me == 0)
        RANK_CHECK(send_tagged(r, 2, 5000) == 0);
    RANK_CHECK(sync(r) == 0);
    if (r->me == 1) {
        hemi_letter early;
        hemi_letter right;
        RANK_CHECK(post_tagged(r, &early, false, 1, r->library, BIG) == 0);
        RANK_CHECK(hemi_engine_wait(r->world, &early.op, SOON) == HEM_ERR_TIMEOUT);
        hemi_engine_lock(r->world);
        early.op.type->cancel(&early.op);
        hemi_engine_unlock(r->world);
        RANK_CHECK(post_tagged(r, &right, false, 2, r->library, BIG) == 0);
        RANK_CHECK(hemi_engine_wait(r->world, &right.op, LIMIT) == HEM_OK);
        RANK_CHECK(right.op.bytes == 5000 && is_filled(r->library, 5000, 2));
    }
    return works(r, 7);
}

static void old_messages_are_skipped(void **state) {
    (void)state;
    run(tags, run_apart);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_breaks_one_direction),
        cmocka_unit_test(credits_that_cannot_be_are_found),
        cmocka_unit_test(too_small_a_buffer_fails_both),
        cmocka_unit_test(library_memory_is_pushed_into),
        cmocka_unit_test(a_push_can_be_taken_back),
        cmocka_unit_test(one_copy_by_the_system),
        cmocka_unit_test(what_timed_out_is_withdrawn),
        cmocka_unit_test(what_nobody_wants_is_thrown_away),
        cmocka_unit_test(old_messages_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
