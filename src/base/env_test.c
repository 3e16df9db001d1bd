#include "base/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAME         "HEM_TEST_ENV"

static void numbers_are_read(void **state) {
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        {"0", 0},
        {"7", 7},
        {"00012", 12},
        {"18446744073709551615", UINT64_MAX},
        {"1K", 1024},
        {"3k", 3072},
        {"5M", 5u << 20},
        {"2G", 2ull << 30},
        {"1T", 1ull << 40},
        {"0T", 0},
        {"16777215T", 16777215ull << 40},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        uint64_t value = 99;
        assert_true(hemi_parse_number(good[i].text, &value));
        assert_int_equal(value, good[i].value);
    }
}

static void what_is_no_number_is_refused(void **state) {
    static const char *const bad[] = {
        "",
        " ",
        "-1",
        "+1",
        "x",
        "1x",
        "1 ",
        " 1",
        "1.5",
        "0x10",
        "1e3",
        "1KB",
        "1Ki",
        "K",
        "1KK",
        "1\n",
        "18446744073709551616",
        "16777216T",
        "18446744073709551615K",
        "99999999999999999999999999",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t value = 99;
        assert_false(hemi_parse_number(bad[i], &value));
        assert_int_equal(value, 99);
    }
    uint64_t value = 99;
    assert_false(hemi_parse_number(NULL, &value));
}

static void what_is_not_set_leaves_the_default(void **state) {
    uint64_t value = 42;

    (void)state;
    unsetenv(NAME);
    assert_null(hemi_env_text(NAME));
    assert_int_equal(hemi_env_number(NAME, 1, 2, &value), HEM_OK);
    assert_int_equal(value, 42);
    setenv(NAME, "", 1);
    assert_null(hemi_env_text(NAME));
    assert_int_equal(hemi_env_number(NAME, 1, 2, &value), HEM_OK);
    assert_int_equal(value, 42);
}

static void limits_belong_to_the_range(void **state) {
    uint64_t value = 0;

    (void)state;
    setenv(NAME, "3", 1);
    assert_string_equal(hemi_env_text(NAME), "3");
    assert_int_equal(hemi_env_number(NAME, 3, 3, &value), HEM_OK);
    assert_int_equal(value, 3);
    assert_int_equal(hemi_env_number(NAME, 4, 9, &value), HEM_ERR_ARG);
    assert_int_equal(hemi_env_number(NAME, 0, 2, &value), HEM_ERR_ARG);
    assert_int_equal(value, 3);
}

static void the_error_names_variable_value_and_range(void **state) {
    uint64_t value = 7;

    (void)state;
    setenv(NAME, "many", 1);
    assert_int_equal(hemi_env_number(NAME, 10, 20, &value), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), NAME));
    assert_non_null(strstr(hem_last_error(), "many"));
    assert_non_null(strstr(hem_last_error(), "10"));
    assert_non_null(strstr(hem_last_error(), "20"));
    assert_int_equal(value, 7);
}

static void a_long_value_does_not_push_the_range_out(void **state) {
    char text[4096];
    uint64_t value = 7;

    (void)state;
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    setenv(NAME, text, 1);
    assert_int_equal(hemi_env_number(NAME, 10, 12345, &value), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "12345"));
}

static void the_table_is_complete_and_has_no_doubles(void **state) {
    size_t count = 0;
    const hemi_env_entry *table = hemi_env_table(&count);

    (void)state;
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strncmp(table[i].name, "HEM_", 4), 0);
        assert_true(strlen(table[i].fallback) > 0);
        assert_true(strlen(table[i].meaning) > 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(table[i].name, table[j].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(what_is_not_set_leaves_the_default),
        cmocka_unit_test(limits_belong_to_the_range),
        cmocka_unit_test(the_error_names_variable_value_and_range),
        cmocka_unit_test(a_long_value_does_not_push_the_range_out),
        cmocka_unit_test(the_table_is_complete_and_has_no_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
