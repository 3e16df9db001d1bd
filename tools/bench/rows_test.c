#include "../hem/bench_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    DIRECT,
    RING,
    DOUBLING
};

static void joins_sizes_that_choose_alike(void **state) {
    const struct hemt_point points[] = {
        {8, {1, 3, 2}},         {512, {2, 4, 3}},           {4096, {9, 8, 4}},
        {262144, {90, 50, 60}}, {1048576, {200, 100, 120}},
    };
    struct hemt_row rows[5];

    (void)state;
    assert_int_equal(hemt_rows_choose(points, 5, rows), 3);
    assert_int_equal(rows[0].algorithm, DIRECT);
    assert_int_equal(rows[0].bytes, 1024);
    assert_int_equal(rows[1].algorithm, DOUBLING);
    assert_int_equal(rows[1].bytes, 32768);
    assert_int_equal(rows[2].algorithm, RING);
    assert_true(rows[2].bytes == SIZE_MAX);
}

/* Two per cent are noise, four are not. */
static void small_differences_change_nothing(void **state) {
    const struct hemt_point near[] = {{8, {1}}, {64, {1, 0.98}}, {512, {1}}};
    const struct hemt_point far[] = {{8, {1, 2}}, {64, {1, 0.96}}};
    struct hemt_row rows[3];

    (void)state;
    assert_int_equal(hemt_rows_choose(near, 3, rows), 1);
    assert_int_equal(rows[0].algorithm, DIRECT);
    assert_true(rows[0].bytes == SIZE_MAX);
    assert_int_equal(hemt_rows_choose(far, 2, rows), 2);
    assert_int_equal(rows[1].algorithm, RING);
}

/* What was not measured is never chosen, and an algorithm that stopped working is given up. */
static void passes_over_what_is_missing(void **state) {
    const struct hemt_point points[] = {{8, {0}}, {64, {0, 5}}, {512, {0}}, {4096, {0, 0, 7}}};
    struct hemt_row rows[4];

    (void)state;
    assert_int_equal(hemt_rows_choose(points, 1, rows), 0);
    assert_int_equal(hemt_rows_choose(points, 4, rows), 2);
    assert_int_equal(rows[0].algorithm, RING);
    assert_int_equal(rows[0].bytes, 512);
    assert_int_equal(rows[1].algorithm, DOUBLING);
}

/* A border never lies below the last size that was measured on its left. */
static void borders_lie_between(void **state) {
    const struct hemt_point points[] = {{24, {1, 2}}, {25, {2, 1}}};
    struct hemt_row rows[2];

    (void)state;
    assert_int_equal(hemt_rows_choose(points, 2, rows), 2);
    assert_int_equal(rows[0].bytes, 24);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_sizes_that_choose_alike),
        cmocka_unit_test(small_differences_change_nothing),
        cmocka_unit_test(passes_over_what_is_missing),
        cmocka_unit_test(borders_lie_between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
