#include "../hem/bench_sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void reads_numbers_and_units(void **state) {
    struct hemt_sizes sizes;

    (void)state;
    assert_null(hemt_sizes_parse("8,4k,1M,3K,2m,1G", &sizes));
    assert_int_equal(sizes.count, 6);
    assert_int_equal(sizes.bytes[0], 8);
    assert_int_equal(sizes.bytes[1], 4096);
    assert_int_equal(sizes.bytes[2], 1 << 20);
    assert_int_equal(sizes.bytes[3], 3072);
    assert_int_equal(sizes.bytes[4], 2 << 20);
    assert_int_equal(sizes.bytes[5], 1 << 30);
}

static void refuses_what_is_no_list(void **state) {
    static const char *const bad[] = {
        "",      ",",  "8,",    ",8",  "8,,9",    "0",    "-8",
        "+8",    " 8", "8 ",    "k",   "8kk",     "8kb",  "8;9",
        "eight", "2G", "1025M", "8,8", "1k,1024", "0x10", "18446744073709551616",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hemt_sizes sizes = {.count = 77};
        assert_non_null(hemt_sizes_parse(bad[i], &sizes));
        assert_int_equal(sizes.count, 77);
    }
}

static void takes_64_and_no_more(void **state) {
    struct hemt_sizes sizes;
    char text[512] = "";
    size_t used = 0;

    (void)state;
    for (unsigned i = 0; i < HEMT_SIZES_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i ? "," : "", i + 1);
    assert_null(hemt_sizes_parse(text, &sizes));
    assert_int_equal(sizes.count, HEMT_SIZES_MAX);
    assert_int_equal(sizes.bytes[63], 64);
    snprintf(text + used, sizeof(text) - used, ",65");
    assert_non_null(hemt_sizes_parse(text, &sizes));
}

static void reads_growing_numbers_of_ranks(void **state) {
    static const char *const bad[] = {"", "1", "0", "4,2", "2,2", "2,", ",2", "2;4", "x", "4097"};
    struct hemt_ranks ranks = {.count = 7};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(hemt_ranks_parse(bad[i], &ranks));
    assert_int_equal(ranks.count, 7);
    assert_true(hemt_ranks_parse("2,8,4096", &ranks));
    assert_int_equal(ranks.count, 3);
    assert_int_equal(ranks.ranks[2], 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_numbers_and_units),
        cmocka_unit_test(refuses_what_is_no_list),
        cmocka_unit_test(takes_64_and_no_more),
        cmocka_unit_test(reads_growing_numbers_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
