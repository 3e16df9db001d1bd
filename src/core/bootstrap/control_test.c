#include "core/bootstrap/control.h"

#include "core/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 4

static const hemi_control_hello good = {HEMI_CONTROL_MAGIC, HEMI_LAYOUT_VERSION, 3};

static void a_hello_says_who_it_is(void **state) {
    uint32_t rank = 99;

    (void)state;
    assert_null(hemi_control_parse(&good, sizeof good, RANKS, &rank));
    assert_int_equal(rank, 3);
}

/* The buffer has just the length that is said, so that a sanitizer sees any byte read beyond. */
static void every_other_length_is_refused(void **state) {
    uint32_t rank = 99;

    (void)state;
    for (size_t bytes = 0; bytes < 3 * sizeof good; bytes++) {
        unsigned char *message = calloc(1, bytes > 0 ? bytes : 1);
        assert_non_null(message);
        memcpy(message, &good, bytes < sizeof good ? bytes : sizeof good);
        const char *wrong = hemi_control_parse(message, bytes, RANKS, &rank);
        assert_int_equal(wrong == NULL, bytes == sizeof good);
        free(message);
    }
    rank = 99;
    assert_non_null(hemi_control_parse("", 0, RANKS, &rank));
    assert_int_equal(rank, 99);
}

static void every_flipped_bit_is_refused_or_another_rank(void **state) {
    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof good; bit++) {
        hemi_control_hello hello = good;
        uint32_t rank = 99;
        ((unsigned char *)&hello)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (hemi_control_parse(&hello, sizeof hello, RANKS, &rank) == NULL) {
            assert_true(hello.rank < RANKS);
            assert_int_equal(rank, hello.rank);
            assert_int_equal(hello.magic, good.magic);
            assert_int_equal(hello.version, good.version);
        } else {
            assert_int_equal(rank, 99);
        }
    }
}

static void a_rank_that_does_not_exist_is_refused(void **state) {
    hemi_control_hello hello = good;
    uint32_t rank = 99;

    (void)state;
    hello.rank = RANKS;
    assert_non_null(hemi_control_parse(&hello, sizeof hello, RANKS, &rank));
    hello.rank = UINT32_MAX;
    assert_non_null(hemi_control_parse(&hello, sizeof hello, RANKS, &rank));
    hello.rank = 0;
    assert_non_null(hemi_control_parse(&hello, sizeof hello, 0, &rank));
    assert_int_equal(rank, 99);
}

static void what_is_sent_is_understood(void **state) {
    int ends[2];
    unsigned char message[64];
    uint32_t rank = 99;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(hemi_control_send_hello(ends[1], 2), HEM_OK);
    ssize_t got = recv(ends[0], message, sizeof message, 0);
    assert_true(got > 0);
    assert_null(hemi_control_parse(message, (size_t)got, RANKS, &rank));
    assert_int_equal(rank, 2);
    /* The launcher has gone: an error, and no signal that would end the rank. */
    close(ends[0]);
    assert_int_equal(hemi_control_send_hello(ends[1], 2), HEM_ERR_SYSTEM);
    assert_non_null(strstr(hem_last_error(), "rank 2"));
    close(ends[1]);
    assert_int_equal(hemi_control_send_hello(ends[1], 2), HEM_ERR_SYSTEM);
}

static const char *const names[] = {"HEM_ARENA_FD", "HEM_CONTROL_FD", "HEM_SIZE", "HEM_RANK"};

/* Set all four; NULL unsets. */
static hem_status read_environment(const char *const values[4], hemi_launch_info *info,
                                   int *launched) {
    for (size_t i = 0; i < 4; i++) {
        if (values[i] != NULL)
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
    hem_status status = hemi_control_environment(info, launched);
    for (size_t i = 0; i < 4; i++)
        unsetenv(names[i]);
    return status;
}

static void the_launcher_is_recognised(void **state) {
    static const char *const values[4] = {"7", "8", "4", "3"};
    hemi_launch_info info;
    int launched = 99;

    (void)state;
    assert_int_equal(read_environment(values, &info, &launched), HEM_OK);
    assert_int_equal(launched, 1);
    assert_int_equal(info.arena_fd, 7);
    assert_int_equal(info.control_fd, 8);
    assert_int_equal(info.size, 4);
    assert_int_equal(info.rank, 3);
}

static void no_launcher_is_no_error(void **state) {
    static const char *const none[4] = {NULL, NULL, NULL, NULL};
    static const char *const empty[4] = {"", NULL, "4", "3"};
    hemi_launch_info info;
    int launched = 99;

    (void)state;
    assert_int_equal(read_environment(none, &info, &launched), HEM_OK);
    assert_int_equal(launched, 0);
    launched = 99;
    assert_int_equal(read_environment(empty, &info, &launched), HEM_OK);
    assert_int_equal(launched, 0);
}

static void a_half_set_environment_is_an_error(void **state) {
    static const char *const bad[][4] = {
        {"7", "8", "4", NULL},
        {"7", "8", NULL, "3"},
        {"7", NULL, "4", "3"},
        {"7", "8", "4", "4"},
        {"7", "8", "0", "0"},
        {"7", "8", "65537", "0"},
        {"2", "8", "4", "3"},
        {"7", "-1", "4", "3"},
        {"7", "8", "4", "-1"},
        {"x", "8", "4", "3"},
        {"7", "8", "four", "3"},
        {"2147483648", "8", "4", "3"},
        {"7", "99999999999999999999", "4", "3"},
        {"7", "8", "", "3"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hemi_launch_info info;
        int launched = 99;
        assert_int_equal(read_environment(bad[i], &info, &launched), HEM_ERR_ARG);
        assert_int_equal(launched, 0);
        assert_non_null(strstr(hem_last_error(), "HEM_"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_says_who_it_is),
        cmocka_unit_test(every_other_length_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused_or_another_rank),
        cmocka_unit_test(a_rank_that_does_not_exist_is_refused),
        cmocka_unit_test(what_is_sent_is_understood),
        cmocka_unit_test(the_launcher_is_recognised),
        cmocka_unit_test(no_launcher_is_no_error),
        cmocka_unit_test(a_half_set_environment_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
