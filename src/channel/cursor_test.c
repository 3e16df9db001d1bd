/* The cursor protocol driven by hand: two areas, a sender and a receiver, one thread. */
#include "channel/cursor.h"

#include "base/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEAD_BYTES 4096
#define RING_MAX   16384
#define LENGTH_MAX 5000

/* Rank A sends to rank B. */
typedef struct pair {
    unsigned char *at_a; /* A's hub: written by B */
    unsigned char *at_b;
    hemi_tx tx;
    hemi_rx rx;
} pair;

static void open_pair(pair *p, uint32_t slots, uint64_t ring) {
    memset(p, 0, sizeof *p);
    p->at_a = aligned_alloc(HEMI_LINE, HEAD_BYTES + RING_MAX);
    p->at_b = aligned_alloc(HEMI_LINE, HEAD_BYTES + RING_MAX);
    assert_non_null(p->at_a);
    assert_non_null(p->at_b);
    memset(p->at_a, 0, HEAD_BYTES + RING_MAX);
    memset(p->at_b, 0, HEAD_BYTES + RING_MAX);
    hemi_track_init(&p->tx.track, p->at_b, HEAD_BYTES, slots, ring);
    hemi_track_init(&p->rx.track, p->at_b, HEAD_BYTES, slots, ring);
    p->tx.mine = (hemi_credit *)(void *)p->at_b;
    p->tx.theirs = (const hemi_credit *)(const void *)p->at_a;
    p->rx.mine = (hemi_credit *)(void *)p->at_a;
    p->rx.theirs = (const hemi_credit *)(const void *)p->at_b;
}

static void close_pair(pair *p) {
    free(p->at_a);
    free(p->at_b);
}

static unsigned char byte_of(uint64_t message, size_t i) {
    return (unsigned char)(message * 31 + i * 7 + (i >> 8));
}

/* A message on its way, as either side sees it. */
typedef struct half {
    uint64_t number;
    size_t bytes;
    size_t moved;
} half;

/* @return whether something went. */
static bool send_some(pair *p, half *h, const unsigned char *data, uint64_t chunk) {
    if (!hemi_tx_has_slot(&p->tx)) {
        assert_true(hemi_tx_reload(&p->tx));
        if (!hemi_tx_has_slot(&p->tx))
            return false;
    }
    if (h->bytes <= HEMI_SLOT_BYTES) {
        hemi_tx_inline(&p->tx, data, h->bytes);
        h->moved = h->bytes;
        h->number++;
        return true;
    }
    uint64_t left = h->bytes - h->moved;
    uint64_t skip = 0;
    uint64_t length = hemi_tx_room(&p->tx, left < chunk ? left : chunk, &skip);
    if (length == 0) {
        assert_true(hemi_tx_reload(&p->tx));
        length = hemi_tx_room(&p->tx, left < chunk ? left : chunk, &skip);
        if (length == 0)
            return false;
    }
    memcpy(hemi_tx_place(&p->tx, skip), data + h->moved, length);
    hemi_tx_chunk(&p->tx, skip, length, chunk, h->moved, h->bytes);
    h->moved += length;
    h->number += h->moved == h->bytes;
    return true;
}

/* Take a slot and compare what it brings with message h->number. @return whether there was one. */
static bool take_some(pair *p, half *h) {
    if (!hemi_rx_ready(&p->rx))
        return false;
    hemi_header header;
    hemi_rx_header(&p->rx, &header);
    bool first = h->moved == 0;
    const char *wrong = first ? hemi_rx_check_first(&p->rx, &header)
                              : hemi_rx_check_next(&p->rx, &header, h->bytes, h->moved);
    assert_null(wrong);
    if (first)
        h->bytes = header.bytes;
    bool whole = header.kind == (HEMI_SLOT_MESSAGE | HEMI_SLOT_LANES);
    const unsigned char *from =
        whole ? hemi_rx_slot(&p->rx)->payload : hemi_rx_place(&p->rx, &header);
    for (size_t i = 0; i < header.length; i++)
        assert_int_equal(from[i], byte_of(h->number, h->moved + i));
    h->moved += header.length;
    bool last = h->moved == h->bytes;
    if (whole)
        hemi_rx_credit(&p->rx);
    else
        hemi_rx_credit_chunk(&p->rx, &header, last);
    if (last) {
        h->moved = 0;
        h->number++;
    }
    return true;
}

static void fill(unsigned char *data, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(number, i);
}

/* Send `count` messages, taking turns as the dice fall. */
static void pass_messages(uint32_t slots, uint64_t ring, uint64_t count, uint64_t seed) {
    static unsigned char data[LENGTH_MAX];
    pair p;
    open_pair(&p, slots, ring);
    half out = {0};
    half in = {0};
    uint64_t state = seed;
    uint64_t idle = 0;
    for (uint64_t sent = 0; in.number < count;) {
        bool moved = false;
        uint64_t dice = testing_random(&state);
        if (out.number == sent && sent < count) {
            /* First every length around the slot's, then any. */
            out.bytes = sent < 200 ? sent : dice % LENGTH_MAX;
            out.moved = 0;
            fill(data, sent, out.bytes);
            sent++;
        }
        if (out.number < sent && dice >> 60 < 9)
            moved = send_some(&p, &out, data, 64 + (dice >> 8) % (ring / 64) * 64);
        if (dice >> 60 > 6)
            moved = take_some(&p, &in) || moved;
        idle = moved ? 0 : idle + 1;
        assert_true(idle < 1000); /* it never gets stuck */
    }
    assert_false(hemi_rx_ready(&p.rx));
    assert_true(hemi_tx_reload(&p.tx));
    assert_int_equal(p.tx.slot_tail, p.tx.slot_head);
    assert_int_equal(p.tx.byte_tail, p.tx.byte_head); /* padding has come back, too */
    close_pair(&p);
}

static void every_length_and_wrap_goes_through(void **state) {
    (void)state;
    static const uint32_t slots[] = {1, 2, 3, 8, 32};
    static const uint64_t rings[] = {4096, 8192, 12288, 16384};
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        for (size_t r = 0; r < sizeof rings / sizeof *rings; r++)
            pass_messages(slots[s], rings[r], 1200, s * 100 + r);
}

static void slots_run_out_and_come_back(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 3, 4096);
    for (uint64_t round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++) {
            assert_true(hemi_tx_has_slot(&p.tx));
            hemi_tx_inline(&p.tx, &round, sizeof round);
        }
        assert_false(hemi_tx_has_slot(&p.tx));
        assert_true(hemi_tx_reload(&p.tx));
        assert_false(hemi_tx_has_slot(&p.tx));
        for (int i = 0; i < 3; i++) {
            assert_true(hemi_rx_ready(&p.rx));
            hemi_rx_credit(&p.rx);
            assert_true(hemi_tx_reload(&p.tx));
            assert_int_equal(p.tx.slot_tail - p.tx.slot_head, 2 - i); /* each by itself */
        }
        /* All slots hold old messages of the same content now, and none looks like a new one. */
        assert_false(hemi_rx_ready(&p.rx));
    }
    close_pair(&p);
}

static void a_chunk_is_contiguous(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 32, 4096);
    uint64_t skip = 0;
    p.tx.byte_tail = p.tx.byte_head = 4096 * 5 + 4032; /* a line before the end */
    p.tx.track.ring_at = 4032;
    assert_int_equal(hemi_tx_room(&p.tx, 64, &skip), 64);
    assert_int_equal(skip, 0);
    assert_int_equal(hemi_tx_room(&p.tx, 200, &skip), 64); /* too much is left to skip it */
    assert_int_equal(skip, 0);
    assert_int_equal(hemi_tx_room(&p.tx, 1024, &skip), 1024);
    assert_int_equal(skip, 64);
    assert_ptr_equal(hemi_tx_place(&p.tx, skip), p.tx.track.ring);
    assert_int_equal(hemi_tx_room(&p.tx, 4096, &skip), 64); /* no room behind the skipped line */
    assert_int_equal(skip, 0);
    p.tx.byte_head -= 4096; /* full */
    assert_int_equal(hemi_tx_room(&p.tx, 64, &skip), 0);
    close_pair(&p);
}

/* A good header of each kind, and then one wrong field. */
typedef struct lie {
    const char *what;
    bool next; /* it goes on with a message of 9000 bytes of which 4096 have come */
    uint32_t kind;
    uint32_t length;
    uint64_t bytes;
    hemi_chunk chunk;
    bool good;
} lie;

#define KIND(k) ((k) | HEMI_SLOT_LANES)
#define AT      81920 /* ring bytes used up: at the start of a ring of 8192 */

static const lie lies[] = {
    {"inline", false, KIND(HEMI_SLOT_MESSAGE), 40, 40, {0}, true},
    {"inline, too long", false, KIND(HEMI_SLOT_MESSAGE), 41, 41, {0}, false},
    {"inline, two lengths", false, KIND(HEMI_SLOT_MESSAGE), 8, 9, {0}, false},
    {"no lanes", false, HEMI_SLOT_MESSAGE, 8, 8, {0}, false},
    {"two lanes", false, HEMI_SLOT_MESSAGE | 2 << 8, 8, 8, {0}, false},
    {"lane bits", false, KIND(HEMI_SLOT_MESSAGE) | 1u << 15, 8, 8, {0}, false},
    {"tagged", false, KIND(HEMI_SLOT_MESSAGE) | 7u << HEMI_SLOT_TAG, 8, 8, {0}, true},
    {"kind 0", false, KIND(0), 8, 8, {0}, false},
    {"kind too large", false, KIND(HEMI_SLOT_KINDS), 8, 8, {0}, false},
    {"chunk without a message", false, KIND(HEMI_SLOT_CHUNK), 64, 64, {AT, 0, 64}, false},
    {"end without a message", false, KIND(HEMI_SLOT_FIN), 0, 64, {0}, false},
    {"abort without a message", false, KIND(HEMI_SLOT_ABORT), 0, 0, {0}, false},
    {"bulk", false, KIND(HEMI_SLOT_BULK), 4096, 9000, {AT, 0, 4096}, true},
    {"bulk, skipping", false, KIND(HEMI_SLOT_BULK), 4096, 9000, {AT + 4096, 0, 4096}, true},
    {"bulk, empty", false, KIND(HEMI_SLOT_BULK), 0, 9000, {AT, 0, 4096}, false},
    {"bulk, longer than all", false, KIND(HEMI_SLOT_BULK), 128, 100, {AT, 0, 4096}, false},
    {"bulk, longer than the ring", false, KIND(HEMI_SLOT_BULK), 8256, 9000, {AT, 0, 8256}, false},
    {"bulk, ragged", false, KIND(HEMI_SLOT_BULK), 4095, 9000, {AT, 0, 4096}, false},
    {"bulk, not from the start", false, KIND(HEMI_SLOT_BULK), 64, 9000, {AT, 64, 4096}, false},
    {"chunk longer than said", false, KIND(HEMI_SLOT_BULK), 4096, 9000, {AT, 0, 64}, false},
    {"chunk size", false, KIND(HEMI_SLOT_BULK), 4096, 9000, {AT, 0, 8256}, false},
    {"place used up", false, KIND(HEMI_SLOT_BULK), 64, 9000, {AT - 64, 0, 64}, false},
    {"place not free", false, KIND(HEMI_SLOT_BULK), 64, 9000, {AT + 8192, 0, 64}, false},
    {"place half free", false, KIND(HEMI_SLOT_BULK), 128, 9000, {AT + 8128, 0, 128}, false},
    {"place far away", false, KIND(HEMI_SLOT_BULK), 64, 9000, {UINT64_MAX - 63, 0, 64}, false},
    {"place within a line", false, KIND(HEMI_SLOT_BULK), 64, 9000, {AT + 8, 0, 64}, false},
    {"offer", false, KIND(HEMI_SLOT_OFFER), 0, 9000, {0}, true},
    {"offer of nothing", false, KIND(HEMI_SLOT_OFFER), 0, 0, {0}, false},
    {"offer with bytes", false, KIND(HEMI_SLOT_OFFER), 8, 9000, {0}, false},
    {"next", true, KIND(HEMI_SLOT_CHUNK), 4096, 9000, {AT, 4096, 4096}, true},
    {"last, ragged", true, KIND(HEMI_SLOT_CHUNK), 4904, 9000, {AT, 4096, 4928}, true},
    {"next, other length", true, KIND(HEMI_SLOT_CHUNK), 4096, 9001, {AT, 4096, 4096}, false},
    {"next, one missing", true, KIND(HEMI_SLOT_CHUNK), 64, 9000, {AT, 8192, 4096}, false},
    {"next, one again", true, KIND(HEMI_SLOT_CHUNK), 64, 9000, {AT, 0, 4096}, false},
    {"next, too much", true, KIND(HEMI_SLOT_CHUNK), 4928, 9000, {AT, 4096, 4928}, false},
    {"next, place", true, KIND(HEMI_SLOT_CHUNK), 64, 9000, {AT - 64, 4096, 64}, false},
    {"message in a message", true, KIND(HEMI_SLOT_MESSAGE), 8, 8, {0}, false},
    {"bulk in a message", true, KIND(HEMI_SLOT_BULK), 64, 9000, {AT, 0, 64}, false},
    {"end of a push in a message", true, KIND(HEMI_SLOT_FIN), 0, 9000, {0}, false},
    {"abort", true, KIND(HEMI_SLOT_ABORT), 0, 4096, {0}, true},
    {"abort elsewhere", true, KIND(HEMI_SLOT_ABORT), 0, 4095, {0}, false},
    {"abort with bytes", true, KIND(HEMI_SLOT_ABORT), 1, 4096, {0}, false},
};

static void a_lie_is_found(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 4, 8192);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const lie *l = &lies[i];
        p.rx.byte_head = AT;
        hemi_slot *slot = &p.tx.track.slots[0];
        slot->kind = l->kind;
        slot->length = l->length;
        slot->bytes = l->bytes;
        memcpy(slot->payload, &l->chunk, sizeof l->chunk);
        hemi_header h;
        hemi_rx_header(&p.rx, &h);
        const char *wrong =
            l->next ? hemi_rx_check_next(&p.rx, &h, 9000, 4096) : hemi_rx_check_first(&p.rx, &h);
        if ((wrong == NULL) != l->good)
            print_error("%s: %s\n", l->what, wrong == NULL ? "found good" : wrong);
        assert_true((wrong == NULL) == l->good);
    }
    /* In the middle of a ring, what is good must not reach around its end. */
    p.rx.track.ring_at = 4096;
    hemi_header around = {KIND(HEMI_SLOT_BULK), 0, 4160, 9000, {{AT, 0, 4160}}};
    assert_non_null(hemi_rx_check_first(&p.rx, &around));
    around.length = 4096;
    assert_null(hemi_rx_check_first(&p.rx, &around));
    close_pair(&p);
}

static void a_lie_in_the_credits_is_found(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 4, 8192);
    for (int i = 0; i < 3; i++)
        hemi_tx_chunk(&p.tx, 0, 64, 64, 0, 64);
    static const uint64_t good[][2] = {{0, 0}, {1, 64}, {3, 192}};
    static const uint64_t bad[][2] = {{4, 192}, {3, 193}, {UINT64_MAX - 1, 0}, {0, UINT64_MAX / 2}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        p.rx.mine->slots = good[i][0];
        p.rx.mine->bytes = good[i][1];
        assert_true(hemi_tx_reload(&p.tx));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p.rx.mine->slots = bad[i][0];
        p.rx.mine->bytes = bad[i][1];
        assert_false(hemi_tx_reload(&p.tx));
        assert_int_equal(p.tx.slot_head, 3);
        assert_int_equal(p.tx.byte_head, 192);
    }
    close_pair(&p);
}

static void an_offer_is_answered(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 2, 4096);
    uint64_t detail = 0;
    hemi_offer offer = {HEMI_OFFER_LIBRARY, 4096, 1};
    hemi_tx_inline(&p.tx, NULL, 0);
    uint64_t number = hemi_tx_offer(&p.tx, &offer, 100000);
    assert_int_equal(number, 2);
    assert_int_equal(hemi_tx_verdict(&p.tx, number, &detail), HEMI_VERDICT_NONE);
    hemi_rx_say(&p.rx, number - 1, HEMI_VERDICT_RANGE, 7); /* about an older one */
    assert_int_equal(hemi_tx_verdict(&p.tx, number, &detail), HEMI_VERDICT_NONE);
    hemi_rx_say(&p.rx, number, HEMI_VERDICT_RANGE, 77);
    assert_int_equal(hemi_tx_verdict(&p.tx, number, &detail), HEMI_VERDICT_RANGE);
    assert_int_equal(detail, 77);
    close_pair(&p);
}

/* Whoever takes a buffer away sees who touches it, or is seen. */
static void a_buffer_is_touched_or_taken_away(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 2, 4096);
    assert_true(hemi_rx_pull_begin(&p.rx, 5));
    hemi_tx_withdraw(&p.tx, 5);
    assert_true(hemi_tx_pulled(&p.tx, 5));
    hemi_rx_pull_end(&p.rx);
    assert_false(hemi_tx_pulled(&p.tx, 5));
    assert_false(hemi_rx_pull_begin(&p.rx, 5));
    hemi_rx_pull_end(&p.rx);
    assert_false(hemi_rx_pull_begin(&p.rx, 4)); /* all before it are void, too */
    assert_true(hemi_rx_pull_begin(&p.rx, 6));
    hemi_rx_pull_end(&p.rx);

    assert_false(hemi_tx_push_begin(&p.tx, 6)); /* nobody said that it may */
    hemi_tx_push_end(&p.tx);
    hemi_rx_say(&p.rx, 6, HEMI_VERDICT_PUSH, 4096);
    assert_true(hemi_tx_push_begin(&p.tx, 6));
    hemi_rx_take_back(&p.rx, 6);
    assert_int_equal(p.tx.theirs->detail, 4096); /* the sender may have seen the permission only */
    assert_true(hemi_rx_pushed(&p.rx, 6));
    hemi_tx_push_end(&p.tx);
    assert_false(hemi_rx_pushed(&p.rx, 6));
    assert_false(hemi_tx_push_begin(&p.tx, 6));
    close_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_and_wrap_goes_through),
        cmocka_unit_test(slots_run_out_and_come_back),
        cmocka_unit_test(a_chunk_is_contiguous),
        cmocka_unit_test(a_lie_is_found),
        cmocka_unit_test(a_lie_in_the_credits_is_found),
        cmocka_unit_test(an_offer_is_answered),
        cmocka_unit_test(a_buffer_is_touched_or_taken_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
