/* Descriptors come from those who may send them, and nothing else stays open. */
#include "device/fds.h"

#include "base/testing.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 7

static hemi_fds from = {.socket = -1};
static hemi_fds to = {.socket = -1};
static int sample = -1;
static int before; /* descriptors that were open */

static int count_open(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int set_up(void **state) {
    (void)state;
    sample = memfd_create("sample", MFD_CLOEXEC);
    if (sample < 0 || hemi_fds_open(hemi_platform_real(), &from) != HEM_OK ||
        hemi_fds_open(hemi_platform_real(), &to) != HEM_OK)
        return -1;
    before = count_open();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(count_open(), before);
    hemi_fds_close(&from);
    hemi_fds_close(&from);
    hemi_fds_close(&to);
    close(sample);
    return 0;
}

static hem_status take(uint32_t *rank_p, int *fd_p) {
    *rank_p = 99;
    *fd_p = -1;
    return hemi_fds_take(&to, RANKS, rank_p, fd_p);
}

static void assert_nothing(void) {
    uint32_t rank = 0;
    int fd = -1;
    assert_int_equal(take(&rank, &fd), HEMI_AGAIN);
    assert_int_equal(fd, -1);
    assert_int_equal(count_open(), before);
}

static void a_descriptor_arrives(void **state) {
    uint32_t rank = 0;
    int fd = -1;
    struct stat a;
    struct stat b;

    (void)state;
    assert_nothing();
    assert_int_equal(hemi_fds_send(&from, &to.where, 6, sample), HEM_OK);
    assert_int_equal(take(&rank, &fd), HEM_OK);
    assert_int_equal(rank, 6);
    assert_int_equal(fstat(sample, &a), 0);
    assert_int_equal(fstat(fd, &b), 0);
    assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    assert_nothing();
}

static void a_wrong_token_is_dropped(void **state) {
    hemi_fds_name wrong = to.where;
    uint32_t rank = 0;
    int fd = -1;

    (void)state;
    wrong.token ^= 1;
    assert_int_equal(hemi_fds_send(&from, &wrong, 1, sample), HEM_OK);
    assert_int_equal(hemi_fds_send(&from, &to.where, RANKS, sample), HEM_OK);
    assert_int_equal(hemi_fds_send(&from, &to.where, 2, sample), HEM_OK);
    assert_int_equal(take(&rank, &fd), HEM_OK);
    assert_int_equal(rank, 2);
    close(fd);
    assert_nothing();
}

/* Send anything, with `count` descriptors. */
static void send_raw(const void *bytes, size_t n, size_t count) {
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    struct iovec data = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    union {
        char space[CMSG_SPACE(32 * sizeof(int))];
        struct cmsghdr align;
    } control = {.space = {0}};
    assert_int_equal(getsockname(to.socket, (struct sockaddr *)&address, &size), 0);
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = size, .msg_iov = &data, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; i++)
            memcpy(CMSG_DATA(header) + i * sizeof(int), &sample, sizeof sample);
    }
    assert_int_equal(sendmsg(from.socket, &message, 0), n);
}

/* A letter as hemi_fds_send writes it, fetched by sending one to oneself. */
static hemi_fds_letter good_letter(void) {
    hemi_fds_letter letter;
    assert_int_equal(hemi_fds_send(&from, &to.where, 3, sample), HEM_OK);
    assert_int_equal(recv(to.socket, &letter, sizeof letter, 0), sizeof letter);
    return letter;
}

static void strange_messages_are_dropped(void **state) {
    unsigned char much[4096] = {0};
    hemi_fds_letter good = good_letter();

    (void)state;
    memcpy(much, &good, sizeof good);
    send_raw(much, 0, 0);
    send_raw(much, 1, 1);
    send_raw(much, sizeof good - 1, 1);
    send_raw(much, sizeof good + 1, 1);
    send_raw(much, sizeof much, 1);
    assert_nothing();
    send_raw(&good, sizeof good, 0);
    send_raw(&good, sizeof good, 2);
    send_raw(&good, sizeof good, 4);
    assert_nothing();
    /* More than there is room for: the kernel drops the rest. */
    send_raw(&good, sizeof good, 30);
    assert_nothing();
    hemi_fds_letter bad = good;
    bad.magic ^= 1;
    send_raw(&bad, sizeof bad, 1);
    bad = good;
    bad.zero = 1;
    send_raw(&bad, sizeof bad, 1);
    assert_nothing();
}

static void letters_are_parsed(void **state) {
    hemi_fds_letter good = good_letter();
    uint32_t rank = 0;

    (void)state;
    assert_null(hemi_fds_parse(&good, sizeof good, to.where.token, 4, &rank));
    assert_int_equal(rank, 3);
    assert_non_null(hemi_fds_parse(&good, sizeof good, to.where.token, 3, &rank));
    assert_non_null(hemi_fds_parse(&good, sizeof good, to.where.token + 1, 4, &rank));
    assert_non_null(hemi_fds_parse(&good, sizeof good - 1, to.where.token, 4, &rank));
    assert_non_null(hemi_fds_parse(&good, 0, to.where.token, 4, &rank));
}

static void a_full_queue_is_no_error(void **state) {
    int sent = 0;
    int taken = 0;
    uint32_t rank = 0;
    int fd = -1;

    (void)state;
    while (sent < 5000 && hemi_fds_send(&from, &to.where, 0, sample) == HEM_OK)
        sent++;
    assert_true(sent > 0 && sent < 5000);
    assert_int_equal(hemi_fds_send(&from, &to.where, 0, sample), HEMI_AGAIN);
    for (; take(&rank, &fd) == HEM_OK; taken++)
        close(fd);
    assert_int_equal(taken, sent);
    assert_int_equal(hemi_fds_send(&from, &to.where, 5, sample), HEM_OK);
    assert_int_equal(take(&rank, &fd), HEM_OK);
    close(fd);
}

static void a_receiver_that_is_gone_is_no_error(void **state) {
    hemi_fds_name nobody = {.name = 12345, .token = 1};
    (void)state;
    assert_int_equal(hemi_fds_send(&from, &nobody, 0, sample), HEMI_AGAIN);
}

static void no_descriptor_left_is_said(void **state) {
    struct rlimit old;
    uint32_t rank = 0;
    int fd = -1;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(hemi_fds_send(&from, &to.where, 1, sample), HEM_OK);
    int lowest = dup(0);
    struct rlimit few = {.rlim_cur = (rlim_t)lowest, .rlim_max = old.rlim_max};
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    hem_status status = take(&rank, &fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(status, HEM_ERR_LIMIT);
    assert_non_null(strstr(hem_last_error(), "RLIMIT_NOFILE"));
    assert_nothing();
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(a_descriptor_arrives),         FRESH(a_wrong_token_is_dropped),
        FRESH(strange_messages_are_dropped), FRESH(letters_are_parsed),
        FRESH(a_full_queue_is_no_error),     FRESH(a_receiver_that_is_gone_is_no_error),
        FRESH(no_descriptor_left_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
