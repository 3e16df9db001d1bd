#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What the library knows, and what callers of an older and of a newer version have. */
typedef struct known {
    size_t struct_size;
    uint64_t first;
    uint64_t second;
} known;

typedef struct older {
    size_t struct_size;
    uint64_t first;
} older;

typedef struct newer {
    known base;
    uint64_t third;
    uint8_t fourth;
} newer;

static void null_means_all_defaults(void **state) {
    known into;

    (void)state;
    memset(&into, 0xab, sizeof into);
    assert_int_equal(hemi_options_read(&into, sizeof into, NULL, "test"), HEM_OK);
    assert_int_equal(into.struct_size, 0);
    assert_int_equal(into.first, 0);
    assert_int_equal(into.second, 0);
}

static void the_same_version_is_copied(void **state) {
    known from = {sizeof from, 1, 2};
    known into;

    (void)state;
    assert_int_equal(hemi_options_read(&into, sizeof into, &from, "test"), HEM_OK);
    assert_memory_equal(&into, &from, sizeof into);
}

static void an_older_caller_gets_zeros(void **state) {
    older from = {sizeof from, 1};
    known into;

    (void)state;
    memset(&into, 0xab, sizeof into);
    assert_int_equal(hemi_options_read(&into, sizeof into, &from, "test"), HEM_OK);
    assert_int_equal(into.first, 1);
    assert_int_equal(into.second, 0);
}

/* A struct that ends in the middle of a member: only what is there is read. */
static void half_a_member_is_not_read_beyond(void **state) {
    unsigned char from[sizeof(size_t) + 3];
    size_t size = sizeof from;
    known into;

    (void)state;
    memset(from, 0xff, sizeof from);
    memcpy(from, &size, sizeof size);
    assert_int_equal(hemi_options_read(&into, sizeof into, from, "test"), HEM_OK);
    assert_int_equal(into.first, 0xffffff);
    assert_int_equal(into.second, 0);
}

static void a_newer_caller_is_welcome_with_zeros(void **state) {
    newer from;
    known into;

    (void)state;
    memset(&from, 0, sizeof from); /* an initialiser leaves the padding at the end as it is */
    from.base = (known){sizeof from, 1, 2};
    assert_int_equal(hemi_options_read(&into, sizeof into, &from, "test"), HEM_OK);
    assert_int_equal(into.first, 1);
    assert_int_equal(into.second, 2);
}

static void every_unknown_byte_that_is_set_is_refused(void **state) {
    (void)state;
    for (size_t i = sizeof(known); i < sizeof(newer); i++) {
        newer from;
        memset(&from, 0, sizeof from);
        from.base.struct_size = sizeof from;
        ((unsigned char *)&from)[i] = 1;
        known into;
        assert_int_equal(hemi_options_read(&into, sizeof into, &from, "hem_thing"), HEM_ERR_ARG);
        assert_non_null(strstr(hem_last_error(), "hem_thing"));
    }
}

static void a_size_that_was_never_set_is_refused(void **state) {
    const size_t bad[] = {0, 1, sizeof(size_t) - 1, 4097, SIZE_MAX, SIZE_MAX / 2};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        known from = {bad[i], 1, 2};
        known into;
        assert_int_equal(hemi_options_read(&into, sizeof into, &from, "hem_thing"), HEM_ERR_ARG);
        assert_non_null(strstr(hem_last_error(), "struct_size"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_means_all_defaults),
        cmocka_unit_test(the_same_version_is_copied),
        cmocka_unit_test(an_older_caller_gets_zeros),
        cmocka_unit_test(half_a_member_is_not_read_beyond),
        cmocka_unit_test(a_newer_caller_is_welcome_with_zeros),
        cmocka_unit_test(every_unknown_byte_that_is_set_is_refused),
        cmocka_unit_test(a_size_that_was_never_set_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
