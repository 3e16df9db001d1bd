#include "base/status.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_status_has_its_name(void **state) {
    (void)state;
    assert_string_equal(hem_status_name(HEM_OK), "HEM_OK");
    assert_string_equal(hem_status_name(HEM_ERR_LIMIT), "HEM_ERR_LIMIT");
    for (int a = HEM_OK; a >= HEM_ERR_LIMIT; a--) {
        const char *name = hem_status_name((hem_status)a);
        assert_int_equal(strncmp(name, "HEM_", 4), 0);
        for (int b = HEM_OK; b > a; b--)
            assert_string_not_equal(name, hem_status_name((hem_status)b));
    }
}

static void other_numbers_have_a_name_too(void **state) {
    const int strange[] = {1, HEM_ERR_LIMIT - 1, INT_MIN, INT_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        assert_string_equal(hem_status_name((hem_status)strange[i]), "unknown hem_status");
}

static void a_failure_is_recorded_and_passed_on(void **state) {
    (void)state;
    assert_int_equal(hemi_fail(HEM_ERR_RANGE, "rank %d of %u", -3, 7u), HEM_ERR_RANGE);
    assert_string_equal(hem_last_error(), "rank -3 of 7");
    assert_string_equal(hem_status_name(HEM_OK), "HEM_OK");
    assert_string_equal(hem_last_error(), "rank -3 of 7");
}

static void a_sentence_may_quote_the_one_before(void **state) {
    (void)state;
    assert_int_equal(hemi_fail(HEM_ERR_PEER, "it broke"), HEM_ERR_PEER);
    assert_int_equal(hemi_fail(HEM_ERR_ARG, "rank 1: %s", hem_last_error()), HEM_ERR_ARG);
    assert_string_equal(hem_last_error(), "rank 1: it broke");
}

static void a_long_sentence_is_cut(void **state) {
    char longer[2 * HEMI_ERROR_MAX];

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(hemi_fail(HEM_ERR_ARG, "%s", longer), HEM_ERR_ARG);
    assert_int_equal(strlen(hem_last_error()), HEMI_ERROR_MAX - 1);
}

static void a_system_error_says_why(void **state) {
    (void)state;
    assert_int_equal(hemi_fail_errno(ENOENT, "cannot open %s", "it"), HEM_ERR_SYSTEM);
    assert_string_equal(hem_last_error(), "cannot open it: No such file or directory");
}

/* The reason is what helps, so that it stays when the rest is too long. */
static void a_long_system_error_still_says_why(void **state) {
    char longer[2 * HEMI_ERROR_MAX];

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(hemi_fail_errno(EPERM, "%s", longer), HEM_ERR_SYSTEM);
    assert_non_null(strstr(hem_last_error(), "Operation not permitted"));
    assert_true(strlen(hem_last_error()) < HEMI_ERROR_MAX);
}

typedef struct other_thread {
    char first[HEMI_ERROR_MAX];
    char second[HEMI_ERROR_MAX];
} other_thread;

static void *fail_elsewhere(void *arg) {
    other_thread *other = arg;
    (void)snprintf(other->first, sizeof other->first, "%s", hem_last_error());
    (void)hemi_fail(HEM_ERR_MEMORY, "elsewhere");
    (void)snprintf(other->second, sizeof other->second, "%s", hem_last_error());
    return NULL;
}

static void each_thread_has_its_own(void **state) {
    other_thread other;
    pthread_t thread;

    (void)state;
    (void)hemi_fail(HEM_ERR_ARG, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(other.first, "");
    assert_string_equal(other.second, "elsewhere");
    assert_string_equal(hem_last_error(), "here");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(other_numbers_have_a_name_too),
        cmocka_unit_test(a_failure_is_recorded_and_passed_on),
        cmocka_unit_test(a_sentence_may_quote_the_one_before),
        cmocka_unit_test(a_long_sentence_is_cut),
        cmocka_unit_test(a_system_error_says_why),
        cmocka_unit_test(a_long_system_error_still_says_why),
        cmocka_unit_test(each_thread_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
