#include "window/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint32_t rank_counts[] = {1, 2, 3, 16, 17, 1000, 1024, 1025, HEMI_MAX_RANKS};
static const uint32_t signal_counts[] = {0, 1, 2, 7, 8, 9, 16, 63, 64, 65, 4096};
static const uint32_t barrier_counts[] = {1, 2, 3, 4, 5, 8, 255, 256};
static const uint32_t counter_counts[] = {1, 3, 4, 8, 9, 4096};

typedef struct range {
    uint64_t start;
    uint64_t end;
} range;

/* In order, without overlap. */
static void expect_apart(const range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(ranges[i].start <= ranges[i].end);
        assert_true(i == 0 || ranges[i - 1].end <= ranges[i].start);
    }
}

static void check_block(const hemi_window_layout *l, uint32_t ranks, uint32_t barriers,
                        uint32_t counters) {
    const range parts[] = {
        {0, sizeof(hemi_window_head)},
        {l->states, l->states + (uint64_t)barriers * sizeof(hemi_barrier_state)},
        {l->counters, l->counters + (uint64_t)counters * sizeof(uint64_t)},
        {l->list, l->list + (uint64_t)ranks * sizeof(uint32_t)},
        {l->rows, l->rows + (uint64_t)ranks * l->row_bytes},
        {l->bytes, l->bytes},
    };
    expect_apart(parts, COUNT(parts));
    assert_int_equal(l->states % _Alignof(hemi_barrier_state), 0);
    assert_int_equal(l->counters % HEMI_LINE, 0);
    /* What nobody uses has no page of its own: list and rows start new ones. */
    assert_int_equal(l->list % HEMI_PAGE, 0);
    assert_int_equal(l->rows % HEMI_PAGE, 0);
}

static void check_row(const hemi_window_layout *l, uint32_t signals, uint32_t barriers) {
    const range parts[] = {
        {0, (uint64_t)signals * sizeof(hemi_line)},
        {l->row_arrivals, l->row_arrivals + 2 * (uint64_t)barriers * sizeof(hemi_arrival)},
        {l->row_claims, l->row_claims + (uint64_t)signals * sizeof(hemi_claim)},
        {l->row_pairs, l->row_pairs + (uint64_t)barriers * sizeof(hemi_barrier_state)},
        {l->row_bytes, l->row_bytes},
    };
    expect_apart(parts, COUNT(parts));
    /* Rows of different peers, and within a row what either side writes, share no cache line. */
    assert_int_equal(l->row_bytes % HEMI_LINE, 0);
    assert_int_equal(l->row_arrivals % HEMI_LINE, 0);
    assert_int_equal(l->row_claims % HEMI_LINE, 0);
    assert_int_equal(l->row_pairs % _Alignof(hemi_barrier_state), 0);
}

static void nothing_overlaps_and_peers_share_no_line(void **state) {
    (void)state;
    for (size_t r = 0; r < COUNT(rank_counts); r++)
        for (size_t s = 0; s < COUNT(signal_counts); s++)
            for (size_t b = 0; b < COUNT(barrier_counts); b++)
                for (size_t c = 0; c < COUNT(counter_counts); c++) {
                    hemi_window_layout l;
                    memset(&l, 0xff, sizeof l);
                    hemi_window_lay_out(&l, rank_counts[r], signal_counts[s], barrier_counts[b],
                                        counter_counts[c]);
                    check_block(&l, rank_counts[r], barrier_counts[b], counter_counts[c]);
                    check_row(&l, signal_counts[s], barrier_counts[b]);
                }
}

/* The largest of everything: 64 bits are enough, and no multiplication was done in 32. */
static void the_largest_window_does_not_overflow(void **state) {
    hemi_window_layout l;

    (void)state;
    hemi_window_lay_out(&l, HEMI_MAX_RANKS, 4096, 256, 4096);
    assert_true(l.bytes > (uint64_t)HEMI_MAX_RANKS * 4096 * sizeof(hemi_line));
    assert_true(l.bytes < 1ull << 40);
}

/* The same on every rank, whatever was in memory before. */
static void it_depends_on_nothing_else(void **state) {
    hemi_window_layout a;
    hemi_window_layout b;

    (void)state;
    memset(&a, 0x00, sizeof a);
    memset(&b, 0xff, sizeof b);
    hemi_window_lay_out(&a, 5, 16, 4, 4);
    hemi_window_lay_out(&b, 5, 16, 4, 4);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The word that peers count up must not lie in a line that the owner's barrier writes. */
static void the_list_of_users_has_its_own_line(void **state) {
    hemi_window_layout l;

    (void)state;
    hemi_window_lay_out(&l, 2, 1, 1, 1);
    assert_true(l.states / HEMI_LINE > offsetof(hemi_window_head, users) / HEMI_LINE);
    assert_true(offsetof(hemi_window_head, users) / HEMI_LINE >
                (offsetof(hemi_window_head, data) + sizeof(hemi_name) - 1) / HEMI_LINE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_overlaps_and_peers_share_no_line),
        cmocka_unit_test(the_largest_window_does_not_overflow),
        cmocka_unit_test(it_depends_on_nothing_else),
        cmocka_unit_test(the_list_of_users_has_its_own_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
