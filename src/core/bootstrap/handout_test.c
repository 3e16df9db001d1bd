#include "core/bootstrap/handout.h"

#include "base/status.h"
#include "core/liveness.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 3
#define MS    1000000ll
#define LATER (20000 * MS)

static const hemi_platform *platform;
static hemi_arena arena;
static hemi_handout *handout;

static int set_up(void **state) {
    hemi_arena_plan plan = {.ranks = RANKS, .kind = HEMI_KIND_CALLBACK, .part_bytes = 16ull << 20};
    (void)state;
    platform = hemi_platform_real();
    if (hemi_arena_make(&plan, platform, &arena) != HEM_OK)
        return -1;
    for (uint32_t r = 0; r < RANKS; r++) {
        hemi_arena_rank(&arena, r)->pid = (uint32_t)getpid();
        hemi_arena_rank(&arena, r)->state = HEMI_STATE_ALIVE;
    }
    return hemi_handout_open(platform, &handout) == HEM_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    hemi_handout_close(handout);
    hemi_arena_unmap(&arena);
    handout = NULL;
    return 0;
}

static uint64_t now(void) {
    return platform->now(platform->ctx);
}

typedef struct fetcher {
    hemi_handout_name name;
    uint32_t rank;
    int64_t timeout_ns;
    pthread_t thread;
    hem_status status;
    int fd;
    char error[HEMI_ERROR_MAX];
    uint64_t took_ns;
} fetcher;

static void *fetch(void *arg) {
    fetcher *f = arg;
    uint64_t start = now();
    f->fd = -1;
    f->status = hemi_handout_fetch(&f->name, f->rank, f->timeout_ns, &f->fd);
    f->took_ns = now() - start;
    (void)snprintf(f->error, sizeof f->error, "%s", hem_last_error());
    return NULL;
}

static fetcher fetcher_of(uint32_t rank) {
    return (fetcher){
        .name = *hemi_handout_where(handout), .rank = rank, .timeout_ns = LATER, .fd = -1};
}

static void start(fetcher *f) {
    assert_int_equal(pthread_create(&f->thread, NULL, fetch, f), 0);
}

static void finish(fetcher *f) {
    assert_int_equal(pthread_join(f->thread, NULL), 0);
}

static void expect_served(fetcher *f) {
    struct stat mine;
    struct stat theirs;
    finish(f);
    assert_int_equal(f->status, HEM_OK);
    assert_int_equal(fstat(arena.fd, &mine), 0);
    assert_int_equal(fstat(f->fd, &theirs), 0);
    assert_int_equal(mine.st_ino, theirs.st_ino);
    close(f->fd);
}

static void expect_refused(fetcher *f) {
    finish(f);
    assert_int_equal(f->status, HEM_ERR_PEER);
    assert_non_null(strstr(f->error, "rank 0"));
    assert_int_equal(f->fd, -1);
}

static void everybody_gets_the_arena(void **state) {
    fetcher one = fetcher_of(1);
    fetcher two = fetcher_of(2);

    (void)state;
    start(&one);
    start(&two);
    hemi_handout_serve(handout, &arena, LATER);
    expect_served(&one);
    expect_served(&two);
    assert_true(hemi_liveness_may_come(&arena, 1) && hemi_liveness_may_come(&arena, 2));
}

/* All of these come first, and none may keep the real ones from being served. */
static void strangers_are_turned_away(void **state) {
    fetcher wrong_token = fetcher_of(1);
    fetcher rank_zero = fetcher_of(0);
    fetcher no_such_rank = fetcher_of(RANKS);
    fetcher huge_rank = fetcher_of(UINT32_MAX);
    fetcher one = fetcher_of(1);
    fetcher two = fetcher_of(2);

    (void)state;
    wrong_token.name.token ^= 1;
    start(&wrong_token);
    start(&rank_zero);
    start(&no_such_rank);
    start(&huge_rank);
    platform->nap(platform->ctx, 50 * MS);
    start(&one);
    start(&two);
    hemi_handout_serve(handout, &arena, LATER);
    expect_served(&one);
    expect_served(&two);
    hemi_handout_close(handout); /* for those that were still in the queue */
    handout = NULL;
    expect_refused(&wrong_token);
    expect_refused(&rank_zero);
    expect_refused(&no_such_rank);
    expect_refused(&huge_rank);
}

static int connect_raw(const hemi_handout_name *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hem-%016" PRIx64, name->name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

/* Says too little, too much, nothing and leaves, nothing and stays. */
static void nonsense_holds_nobody_up(void **state) {
    const hemi_handout_name *name = hemi_handout_where(handout);
    unsigned char bytes[256] = {0};
    int fds[4];
    fetcher one = fetcher_of(1);
    fetcher two = fetcher_of(2);

    (void)state;
    for (int i = 0; i < 4; i++)
        fds[i] = connect_raw(name);
    assert_int_equal(send(fds[0], bytes, 3, 0), 3);
    assert_int_equal(send(fds[1], bytes, sizeof bytes, 0), sizeof bytes);
    close(fds[2]);
    start(&one);
    start(&two);
    uint64_t begin = now();
    hemi_handout_serve(handout, &arena, LATER);
    assert_true(now() - begin < 10000 * MS);
    expect_served(&one);
    expect_served(&two);
    close(fds[0]);
    close(fds[1]);
    close(fds[3]);
}

static void who_does_not_come_is_declared_ended(void **state) {
    fetcher one = fetcher_of(1);

    (void)state;
    start(&one);
    hemi_handout_serve(handout, &arena, 200 * MS);
    expect_served(&one);
    assert_true(hemi_liveness_may_come(&arena, 1));
    assert_false(hemi_liveness_may_come(&arena, 2));
}

static void who_died_is_not_waited_for(void **state) {
    fetcher one = fetcher_of(1);
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    hemi_arena_rank(&arena, 2)->pid = (uint32_t)child;
    assert_int_equal(waitpid(child, NULL, 0), child);
    start(&one);
    uint64_t begin = now();
    hemi_handout_serve(handout, &arena, LATER);
    assert_true(now() - begin < (uint64_t)LATER / 2);
    expect_served(&one);
    assert_false(hemi_liveness_may_come(&arena, 2));
}

static void nobody_there_is_an_error(void **state) {
    fetcher one = fetcher_of(1);

    (void)state;
    one.name.name ^= 1;
    start(&one);
    expect_refused(&one);
}

/* Rank 0 has opened but does not hand out. */
static void a_fetch_ends_with_its_limit(void **state) {
    fetcher one = fetcher_of(1);

    (void)state;
    one.timeout_ns = 50 * MS;
    start(&one);
    finish(&one);
    assert_int_equal(one.status, HEM_ERR_TIMEOUT);
    assert_non_null(strstr(one.error, "rank 0"));
    assert_true(one.took_ns >= 50 * MS);
}

static void ignore(int number) {
    (void)number;
}

/* Profilers and shells send signals at any time. One must not take the limit away. */
static void a_signal_leaves_the_limit_alone(void **state) {
    struct sigaction action = {.sa_handler = ignore};
    fetcher one = fetcher_of(1);

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    one.timeout_ns = 400 * MS;
    start(&one);
    platform->nap(platform->ctx, 100 * MS);
    pthread_kill(one.thread, SIGUSR1);
    platform->nap(platform->ctx, 900 * MS);
    hemi_handout_close(handout); /* ends a fetch that has lost its limit */
    handout = NULL;
    finish(&one);
    assert_int_equal(one.status, HEM_ERR_TIMEOUT);
    assert_true(one.took_ns >= 350 * MS);
}

/* Nor fail the opening. */
static void a_signal_does_not_fail_a_fetch(void **state) {
    struct sigaction action = {.sa_handler = ignore};
    fetcher one = fetcher_of(1);
    fetcher two = fetcher_of(2);

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    start(&one);
    start(&two);
    platform->nap(platform->ctx, 50 * MS);
    pthread_kill(one.thread, SIGUSR1);
    pthread_kill(two.thread, SIGUSR1);
    platform->nap(platform->ctx, 50 * MS);
    hemi_handout_serve(handout, &arena, LATER);
    expect_served(&one);
    expect_served(&two);
}

/* Listen in rank 0's place and keep the message. */
static hemi_handout_ask ask_on_the_wire(const hemi_handout_name *name, uint32_t rank) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    hemi_handout_ask ask;
    fetcher f = {.name = {name->name ^ 2, name->token}, .rank = rank, .timeout_ns = LATER};
    int n =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hem-%016" PRIx64, f.name.name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    start(&f);
    int peer = accept(fd, NULL, NULL);
    assert_true(peer >= 0);
    assert_int_equal(recv(peer, &ask, sizeof ask, 0), sizeof ask);
    close(peer);
    close(fd);
    finish(&f);
    assert_int_equal(f.status, HEM_ERR_PEER); /* it was promised an arena and got none */
    return ask;
}

static void what_is_asked_is_checked(void **state) {
    const hemi_handout_name *name = hemi_handout_where(handout);
    hemi_handout_ask good = ask_on_the_wire(name, 2);
    unsigned char longer[sizeof good + 8] = {0};
    uint32_t rank = 99;

    (void)state;
    assert_null(hemi_handout_parse(&good, sizeof good, name->token, RANKS, &rank));
    assert_int_equal(rank, 2);
    rank = 99;
    memcpy(longer, &good, sizeof good);
    for (size_t bytes = 0; bytes <= sizeof longer; bytes++)
        if (bytes != sizeof good)
            assert_non_null(hemi_handout_parse(longer, bytes, name->token, RANKS, &rank));
    for (size_t bit = 0; bit < 8 * sizeof good; bit++) {
        hemi_handout_ask bad = good;
        ((unsigned char *)&bad)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (hemi_handout_parse(&bad, sizeof bad, name->token, 2, &rank) == NULL)
            fail_msg("bit %zu does not matter", bit);
    }
    assert_non_null(hemi_handout_parse(&good, sizeof good, name->token + 1, RANKS, &rank));
    assert_non_null(hemi_handout_parse(&good, sizeof good, name->token, 2, &rank));
    assert_int_equal(rank, 99);
}

static void names_and_tokens_are_not_used_twice(void **state) {
    hemi_handout *other = NULL;

    (void)state;
    assert_int_equal(hemi_handout_open(platform, &other), HEM_OK);
    assert_int_not_equal(hemi_handout_where(other)->name, hemi_handout_where(handout)->name);
    assert_int_not_equal(hemi_handout_where(other)->token, hemi_handout_where(handout)->token);
    hemi_handout_close(other);
    hemi_handout_close(NULL);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(everybody_gets_the_arena),
        FRESH(strangers_are_turned_away),
        FRESH(nonsense_holds_nobody_up),
        FRESH(who_does_not_come_is_declared_ended),
        FRESH(who_died_is_not_waited_for),
        FRESH(nobody_there_is_an_error),
        FRESH(a_fetch_ends_with_its_limit),
        FRESH(a_signal_leaves_the_limit_alone),
        FRESH(a_signal_does_not_fail_a_fetch),
        FRESH(what_is_asked_is_checked),
        FRESH(names_and_tokens_are_not_used_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
