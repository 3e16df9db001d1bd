#include "../hem/bench_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void median_is_the_middle(void **state) {
    double odd[] = {9, 1, 5};
    double even[] = {4, 1, 3, 100};
    double one[] = {7};

    (void)state;
    assert_float_equal(hemt_median(odd, 3), 5, 0);
    assert_float_equal(hemt_median(even, 4), 3.5, 0);
    assert_float_equal(hemt_median(one, 1), 7, 0);
    assert_float_equal(hemt_median(NULL, 0), 0, 0);
}

static void spread_is_relative_to_the_median(void **state) {
    double values[] = {12, 8, 10};
    double one[] = {7};
    double zeros[] = {0, 0};

    (void)state;
    assert_float_equal(hemt_spread(values, 3), 0.4, 1e-12);
    assert_float_equal(hemt_spread(one, 1), 0, 0);
    assert_float_equal(hemt_spread(zeros, 2), 0, 0);
}

static void distances_match_within_a_quarter(void **state) {
    (void)state;
    assert_true(hemt_same_distance(100, 100));
    assert_true(hemt_same_distance(100, 124));
    assert_true(hemt_same_distance(124, 100));
    assert_false(hemt_same_distance(100, 126));
    assert_false(hemt_same_distance(126, 100));
    assert_true(hemt_same_distance(0, 126));
    assert_true(hemt_same_distance(126, 0));
}

/* Group 0 is mostly near, group 1 mostly far: far is where both have two samples. */
static void best_distance_serves_the_poorest_group(void **state) {
    const struct hemt_sample samples[] = {
        {0, 50, 1},  {0, 52, 1}, {0, 51, 1},  {0, 50, 1},  {0, 210, 4},
        {0, 220, 4}, {1, 50, 2}, {1, 215, 8}, {1, 212, 8},
    };
    size_t fewest;
    double line = hemt_best_distance(samples, COUNT(samples), 2, &fewest);

    (void)state;
    assert_int_equal(fewest, 2);
    assert_true(line >= 210 && line <= 220);
}

/* Equal for the poorest group: the distance with more samples in all. */
static void best_distance_then_takes_the_most_samples(void **state) {
    const struct hemt_sample samples[] = {
        {0, 50, 1}, {1, 50, 1}, {0, 200, 1}, {1, 200, 1}, {1, 201, 1},
    };
    size_t fewest;
    double line = hemt_best_distance(samples, COUNT(samples), 2, &fewest);

    (void)state;
    assert_int_equal(fewest, 1);
    assert_true(line >= 200);
}

/* Group 1 of 3 has failed and has no samples: it must not hold the others back. */
static void best_distance_ignores_groups_without_samples(void **state) {
    const struct hemt_sample samples[] = {{0, 50, 1}, {0, 50, 1}, {2, 50, 1}, {2, 50, 1}};
    size_t fewest;

    (void)state;
    assert_float_equal(hemt_best_distance(samples, COUNT(samples), 3, &fewest), 50, 0);
    assert_int_equal(fewest, 2);
}

static void best_distance_without_yardsticks(void **state) {
    const struct hemt_sample samples[] = {{0, 0, 1}, {0, 0, 1}, {1, 0, 1}};
    size_t fewest;

    (void)state;
    assert_float_equal(hemt_best_distance(samples, COUNT(samples), 2, &fewest), 0, 0);
    assert_int_equal(fewest, 1);
    assert_float_equal(hemt_best_distance(NULL, 0, 0, &fewest), 0, 0);
    assert_int_equal(fewest, 0);
}

static void check_ratio(double value, double base, const char *wanted) {
    char text[16];

    hemt_format_ratio(value, base, text, sizeof(text));
    assert_string_equal(text, wanted);
}

static void ratios_have_three_digits(void **state) {
    (void)state;
    check_ratio(1, 1, "1.00");
    check_ratio(2.184, 1, "2.18");
    check_ratio(0.5, 2, "0.25");
    check_ratio(9.994, 1, "9.99");
    check_ratio(9.996, 1, "10.0");
    check_ratio(99.96, 1, "100");
    check_ratio(340.4, 1, "340");
    check_ratio(5230, 1, "5.2k");
    check_ratio(1, 0, "-");
    check_ratio(0, 1, "-");
}

static void check_bytes(size_t bytes, const char *wanted) {
    char text[24];

    hemt_format_bytes(bytes, text, sizeof(text));
    assert_string_equal(text, wanted);
}

static void sizes_are_short(void **state) {
    (void)state;
    check_bytes(8, "8");
    check_bytes(1000, "1000");
    check_bytes(1024, "1k");
    check_bytes(65536, "64k");
    check_bytes(1 << 20, "1M");
    check_bytes((1 << 20) + 1024, "1025k");
    check_bytes((1 << 20) + 1, "1048577");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_is_the_middle),
        cmocka_unit_test(spread_is_relative_to_the_median),
        cmocka_unit_test(distances_match_within_a_quarter),
        cmocka_unit_test(best_distance_serves_the_poorest_group),
        cmocka_unit_test(best_distance_then_takes_the_most_samples),
        cmocka_unit_test(best_distance_ignores_groups_without_samples),
        cmocka_unit_test(best_distance_without_yardsticks),
        cmocka_unit_test(ratios_have_three_digits),
        cmocka_unit_test(sizes_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
