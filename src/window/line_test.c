#include "window/line.h"

#include "base/testing.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define SLOTS    16u
#define MESSAGES (TESTING_SANITIZED ? 20000u : 100000u)
#define CONSUMED UINT64_MAX

/* One direction of one signal between two ranks, and what the other direction says of it. */
typedef struct wire {
    hemi_line line;
    hemi_line opposite; /* written by the receiver: its ack */
    hemi_claim claim __attribute__((aligned(HEMI_LINE)));
    hemi_shadow shadow;
    uint64_t memory[SLOTS][4] __attribute__((aligned(HEMI_LINE))); /* the receiver's window */
} wire;

static wire *fresh(uint32_t seq) {
    static wire w;
    memset(&w, 0, sizeof w);
    w.line.mark = hemi_mark(seq, 0);
    w.opposite.mark = hemi_mark(0, seq);
    w.claim = (hemi_claim){seq, seq};
    w.shadow.seq = w.shadow.known = seq;
    return &w;
}

/* A payload with a signal that nobody in these tests looks at. */
static void load(wire *w, uint64_t offset, const void *src, size_t n) {
    hemi_line_send(&w->line, &w->shadow, offset, src, n, 0, 0, w->shadow.value + 1);
}

static bool deliver(wire *w) {
    uint32_t seq = 0;
    return hemi_line_waiting(&w->line, &w->claim, &seq) && hemi_line_claim(&w->claim, seq) &&
           hemi_line_move(&w->line, &w->claim, seq, (unsigned char *)w->memory, sizeof w->memory);
}

static bool is_free(wire *w) {
    return hemi_line_free(&w->shadow, &w->opposite, &w->claim);
}

static void every_length_arrives(void **state) {
    unsigned char bytes[HEMI_INLINE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i + 1);
    for (size_t n = 1; n <= HEMI_INLINE_MAX; n++)
        for (size_t offset = 0; offset < 40; offset++) {
            wire *w = fresh(0);
            const unsigned char *memory = (const unsigned char *)w->memory;
            load(w, offset, bytes, n);
            assert_true(deliver(w));
            assert_memory_equal(memory + offset, bytes, n);
            for (size_t i = 0; i < sizeof w->memory; i++)
                if (i < offset || i >= offset + n)
                    assert_int_equal(memory[i], 0);
        }
}

static void the_area_is_free_only_when_the_payload_is_in_place(void **state) {
    wire *w = fresh(0);
    uint64_t value = 5;

    (void)state;
    assert_true(is_free(w));
    load(w, 0, &value, sizeof value);
    assert_false(is_free(w));
    assert_true(deliver(w));
    assert_false(deliver(w));                                /* once */
    assert_false(hemi_line_known(&w->shadow, &w->opposite)); /* nobody has said so yet */
    assert_true(is_free(w));                                 /* but done does */
    assert_true(hemi_line_known(&w->shadow, &w->opposite));
}

static void an_ack_makes_it_free_without_a_look(void **state) {
    wire *w = fresh(0);
    hemi_shadow theirs = {0};
    uint64_t value = 5;

    (void)state;
    load(w, 0, &value, sizeof value);
    assert_true(deliver(w));
    hemi_line_signal(&w->opposite, &theirs, w->claim.done, 0, 1);
    w->claim.done = 0; /* whoever looks at it now would be told otherwise */
    assert_true(hemi_line_known(&w->shadow, &w->opposite));
    assert_true(is_free(w));
}

static void a_claim_is_given_once(void **state) {
    wire *w = fresh(7);
    uint64_t value = 5;
    uint32_t seq = 0;

    (void)state;
    load(w, 0, &value, sizeof value);
    assert_true(hemi_line_waiting(&w->line, &w->claim, &seq));
    assert_int_equal(seq, 8);
    assert_true(hemi_line_claim(&w->claim, seq));
    assert_false(hemi_line_claim(&w->claim, seq));
    assert_false(hemi_line_waiting(&w->line, &w->claim, &seq));
    assert_false(hemi_line_in_place(&w->claim, seq));
    assert_true(hemi_line_in_place(&w->claim, seq - 1));
    assert_false(hemi_line_claim(&w->claim, seq - 1)); /* too late */
    assert_false(hemi_line_claim(&w->claim, seq + 2)); /* too early */
}

static void counts_may_wrap(void **state) {
    wire *w = fresh(UINT32_MAX - 2);

    (void)state;
    for (uint64_t i = 0; i < 6; i++) {
        assert_true(is_free(w));
        load(w, 0, &i, sizeof i);
        uint32_t seq = hemi_mark_seq(w->line.mark);
        assert_false(hemi_line_in_place(&w->claim, seq));
        assert_true(deliver(w));
        assert_true(hemi_line_in_place(&w->claim, seq));
        assert_true(hemi_line_in_place(&w->claim, seq - 1));
        assert_int_equal(w->memory[0][0], i);
    }
    assert_int_equal(hemi_mark_seq(w->line.mark), 3);
}

static void a_place_outside_is_not_written(void **state) {
    static const uint64_t places[] = {
        (uint64_t)33 << 56, /* longer than a payload can be */
        (uint64_t)255 << 56,
        UINT64_MAX,
        (uint64_t)8 << 56 | sizeof(((wire *)0)->memory), /* at the end */
        (uint64_t)8 << 56 | (sizeof(((wire *)0)->memory) - 7),
        (uint64_t)8 << 56 | ((1ull << 56) - 1),
        (uint64_t)1 << 56 | (1ull << 40),
    };

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        wire *w = fresh(0);
        uint64_t value = UINT64_MAX;
        uint32_t seq = 0;
        load(w, 0, &value, sizeof value);
        w->line.place = places[i];
        assert_true(hemi_line_waiting(&w->line, &w->claim, &seq));
        assert_true(hemi_line_claim(&w->claim, seq));
        assert_false(
            hemi_line_move(&w->line, &w->claim, seq, (unsigned char *)w->memory, sizeof w->memory));
        assert_true(hemi_line_in_place(&w->claim, seq)); /* nobody waits for it for ever */
        for (size_t k = 0; k < SLOTS; k++)
            assert_int_equal(w->memory[k][0], 0);
    }
    wire *w = fresh(0);
    uint64_t value = UINT64_MAX;
    load(w, 0, &value, sizeof value);
    assert_true(hemi_line_claim(&w->claim, 1));
    assert_false(hemi_line_move(&w->line, &w->claim, 1, NULL, 0)); /* a window of no bytes */
}

static void a_signal_carries_value_look_and_ack(void **state) {
    wire *w = fresh(0);

    (void)state;
    hemi_line_signal(&w->line, &w->shadow, 9, 6, 1234);
    assert_int_equal(w->line.value, 1234);
    assert_int_equal(w->line.look, 6);
    assert_int_equal(hemi_mark_ack(w->line.mark), 9);
    assert_int_equal(w->shadow.value, 1234);
    hemi_line_signal(&w->line, &w->shadow, 10, 0, 1235);
    assert_int_equal(w->line.look, 0);
}

/*
 * Two threads: the sender loads, or puts directly when it may not, signals, and now and then puts
 * its payload in place itself; the receiver delivers and marks what it has read. Message i goes to
 * slot i % SLOTS, and the sender never runs ahead of the receiver by more than there are slots.
 */
typedef struct game {
    wire *wire;
    bool short_way; /* of delivery, which does not tell who has moved a payload */
    uint64_t read;  /* messages that the receiver has read */
    uint64_t loaded;
    uint64_t moved_by_sender;
    uint64_t moved_by_receiver;
    const char *wrong;
} game;

static void move_claimed(wire *w, uint32_t seq, uint64_t *moved) {
    if (!hemi_line_claim(&w->claim, seq))
        return;
    (void)hemi_line_move(&w->line, &w->claim, seq, (unsigned char *)w->memory, sizeof w->memory);
    (*moved)++;
}

static void await_in_place(const wire *w, uint32_t seq) {
    while (!hemi_line_in_place(&w->claim, seq))
        sched_yield();
}

static void flush(game *g) {
    wire *w = g->wire;
    uint32_t seq = w->shadow.seq;
    if (is_free(w))
        return;
    move_claimed(w, seq, &g->moved_by_sender);
    await_in_place(w, seq);
    hemi_store32_relaxed(&w->shadow.known, seq);
}

static void send_one(game *g, uint64_t i, uint64_t dice) {
    wire *w = g->wire;
    uint64_t words[4] = {i, ~i, i * 3, i ^ 0x5555};
    size_t n = dice % 4 == 0 ? sizeof words : sizeof words[0];
    if (is_free(w)) {
        load(w, i % SLOTS * sizeof words, words, n);
        g->loaded++;
    } else {
        memcpy(w->memory[i % SLOTS], words, n);
    }
    if (dice / 4 % 8 == 0)
        flush(g); /* before the signal */
    hemi_line_signal(&w->line, &w->shadow, 0, 0, i);
    if (dice / 32 % 8 == 0)
        flush(g); /* and after it, in a race with the receiver */
}

static void *sender(void *arg) {
    game *g = arg;
    uint64_t random = 1;
    for (uint64_t i = 1; i <= MESSAGES; i++) {
        while (i > hemi_load64_acquire(&g->read) + SLOTS)
            sched_yield();
        send_one(g, i, testing_random(&random));
    }
    return NULL;
}

/* What hem_wait_signal does once it has seen the value. */
static void take(game *g) {
    wire *w = g->wire;
    uint32_t seq = 0;
    if (g->short_way &&
        hemi_line_take(&w->line, &w->claim, (unsigned char *)w->memory, sizeof w->memory))
        return;
    if (hemi_line_waiting(&w->line, &w->claim, &seq))
        move_claimed(w, seq, &g->moved_by_receiver);
    await_in_place(w, seq);
}

static void *receiver(void *arg) {
    game *g = arg;
    wire *w = g->wire;
    hemi_shadow back = {0};
    uint64_t random = 2;
    for (uint64_t read = 0; read < MESSAGES && g->wrong == NULL;) {
        uint64_t seen = hemi_load64_acquire(&w->line.value);
        if (seen == read)
            sched_yield();
        take(g);
        for (; read < seen; read++) {
            uint64_t *slot = w->memory[(read + 1) % SLOTS];
            if (slot[0] != read + 1)
                g->wrong = "a message was not in place, or an old one came back";
            slot[0] = CONSUMED;
        }
        if (testing_random(&random) % 2 == 0)
            hemi_line_signal(&w->opposite, &back, hemi_load32_acquire(&w->claim.done), 0, read);
        hemi_store64_release(&g->read, read);
    }
    hemi_store64_release(&g->read, MESSAGES);
    return NULL;
}

static void play(game *g) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sender, g), 0);
    receiver(g);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(g->wrong);
    take(g); /* the last one may have come when the receiver had left */
    assert_int_equal(g->wire->claim.claim, g->wire->shadow.seq);
    assert_int_equal(g->wire->claim.done, g->wire->shadow.seq);
    assert_true(g->loaded > MESSAGES / 100 && g->moved_by_sender > 0);
}

static void each_payload_moves_exactly_once(void **state) {
    game g = {.wire = fresh(UINT32_MAX - MESSAGES / 4)}; /* so that the counts wrap on the way */

    (void)state;
    play(&g);
    print_message("%u messages, %llu in the line, moved by sender %llu, by receiver %llu\n",
                  MESSAGES, (unsigned long long)g.loaded, (unsigned long long)g.moved_by_sender,
                  (unsigned long long)g.moved_by_receiver);
    assert_int_equal(g.moved_by_sender + g.moved_by_receiver, g.loaded);
    assert_true(g.moved_by_receiver > 0);
}

static void the_short_way_is_as_good(void **state) {
    game g = {.wire = fresh(0), .short_way = true};

    (void)state;
    play(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_arrives),
        cmocka_unit_test(the_area_is_free_only_when_the_payload_is_in_place),
        cmocka_unit_test(an_ack_makes_it_free_without_a_look),
        cmocka_unit_test(a_claim_is_given_once),
        cmocka_unit_test(counts_may_wrap),
        cmocka_unit_test(a_place_outside_is_not_written),
        cmocka_unit_test(a_signal_carries_value_look_and_ack),
        cmocka_unit_test(each_payload_moves_exactly_once),
        cmocka_unit_test(the_short_way_is_as_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
