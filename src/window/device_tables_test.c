/* Where things lie in the control block that kernels use. */
#include "window/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct piece {
    uint64_t start;
    uint64_t end;
} piece;

static int by_start(const void *a, const void *b) {
    const piece *left = a;
    const piece *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* Everything that a control block holds, in any order. */
static void check_apart(uint32_t size, uint32_t signals, uint32_t device_signals, uint32_t barriers,
                        uint32_t counters, uint32_t mixed) {
    hemi_device_layout l;
    hemi_device_lay_out(&l, size, signals, device_signals, barriers, counters, mixed);
    const uint64_t ranks = size;
    const uint64_t more = (uint64_t)HEMD_MIXED_KINDS * mixed;
    piece pieces[] = {
        {0, ranks * l.row_bytes},
        {l.arrivals, l.arrivals + ranks * l.arrival_bytes},
        {l.pair_epochs, l.pair_epochs + ranks * barriers * sizeof(uint64_t)},
        {l.epochs, l.epochs + barriers * sizeof(uint64_t)},
        {l.counters, l.counters + counters * sizeof(uint64_t)},
        {l.claims, l.claims + ranks * sizeof(hemd_claims)},
        {l.peers, l.peers + ranks * sizeof(hemd_peer)},
        {l.home, l.home + sizeof(hemd_home)},
        {l.bytes, l.bytes},
    };
    size_t count = sizeof pieces / sizeof pieces[0];
    qsort(pieces, count, sizeof pieces[0], by_start);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pieces[i].start % HEM_DEV_LINE, 0);
    for (size_t i = 0; i + 1 < count; i++)
        assert_true(pieces[i].end <= pieces[i + 1].start);
    /* Rows hold what they must, and no two of them share a line. */
    assert_true(l.row_bytes >= (device_signals + more) * sizeof(hemd_slot));
    assert_true(l.arrival_bytes >= 2 * (uint64_t)barriers * sizeof(uint64_t));
    assert_true(l.host_row_bytes >= (signals - device_signals + more) * sizeof(hemd_slot));
    assert_int_equal(l.row_bytes % HEM_DEV_LINE, 0);
    assert_int_equal(l.arrival_bytes % HEM_DEV_LINE, 0);
    assert_int_equal(l.host_row_bytes % HEM_DEV_LINE, 0);
    assert_int_equal(l.host_bytes, ranks * l.host_row_bytes);
}

static void pieces_do_not_overlap(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 8, 17, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_apart(sizes[i], 16, 12, 4, 4, 0);
        check_apart(sizes[i], 1, 0, 1, 1, 1);
        check_apart(sizes[i], 1, 1, 1, 1, 1);
        check_apart(sizes[i], 9, 8, 8, 17, 3);
        check_apart(sizes[i], 4096, 4096, 256, 4096, 256);
        check_apart(sizes[i], 4096, 1, 255, 4095, 254);
    }
}

static void no_slots_where_no_id_is_for_cpus(void **state) {
    (void)state;
    hemi_device_layout l;
    hemi_device_lay_out(&l, 5, 7, 7, 1, 1, 0);
    assert_int_equal(l.host_bytes, 0);
    hemi_device_lay_out(&l, 5, 7, 0, 1, 1, 0);
    assert_int_equal(l.row_bytes, 0);
    assert_int_equal(l.host_bytes, 5 * HEM_DEV_LINE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_overlap),
        cmocka_unit_test(no_slots_where_no_id_is_for_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
