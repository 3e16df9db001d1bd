/*
 * That ThreadSanitizer sees a missing fence in code that kernels and host threads share: data behind a
 * word that is stored without one is a race, and behind a fence, a releasing store or an addition is none.
 * Without ThreadSanitizer only the latter is tried.
 */
#include <hem/device/word.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RACE 66 /* ThreadSanitizer's exit code */

enum how {
    FENCED,
    RELEASED,
    ADDED,
    FENCED_BEFORE_A_LOAD,
    BARE,
    ADDED_BARE
};

typedef struct pair {
    enum how how;
    uint64_t word;
    uint64_t data;
} pair;

uint64_t hem_host_now_ns(void) {
    return 0;
}

void hem_host_relax(void) {
    sched_yield();
}

static void *give(void *arg) {
    pair *p = arg;
    p->data = 7;
    if (p->how == FENCED || p->how == FENCED_BEFORE_A_LOAD)
        hemd_fence(false);
    if (p->how == FENCED_BEFORE_A_LOAD) { /* what comes after the load is not behind the fence */
        (void)hemd_load64_relaxed(&p->word);
        p->data = 8;
    }
    if (p->how == RELEASED)
        hemd_store64_release(&p->word, 1, false);
    else if (p->how == ADDED)
        hemd_add64_release(&p->word, 1, false);
    else if (p->how == ADDED_BARE)
        hemd_add64_relaxed(&p->word, 1);
    else
        hemd_store64_relaxed(&p->word, 1);
    return NULL;
}

static uint64_t pass(enum how how) {
    pair p = {.how = how};
    pthread_t giver;
    assert_int_equal(pthread_create(&giver, NULL, give, &p), 0);
    while (hemd_load64_relaxed(&p.word) == 0)
        hemd_relax();
    hemd_acquire(&p.word, false);
    uint64_t seen = p.data;
    pthread_join(giver, NULL);
    return seen;
}

static void ordered_data_are_seen(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++)
        for (int how = FENCED; how <= ADDED; how++)
            assert_int_equal(pass((enum how)how), 7);
}

static void bare_stores_are_races(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__)
    for (int how = FENCED_BEFORE_A_LOAD; how <= ADDED_BARE; how++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(STDERR_FILENO); /* its report is what is wanted */
            (void)pass((enum how)how);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), RACE);
    }
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_stores_are_races),
        cmocka_unit_test(ordered_data_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
