#include "base/platform.h"

#include "base/atomic.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MS      1000000ll
#define SECOND  1000000000ull
#define PARKERS 3
#define ROUNDS  3000

static const hemi_platform *real;

static uint64_t now(void) {
    return real->now(real->ctx);
}

static void time_only_grows_and_is_the_machines(void **state) {
    struct timespec t;
    uint64_t before = now();

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t machine = (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
    uint64_t after = now();
    assert_true(before <= machine && machine <= after);
    for (int i = 0; i < 10000; i++) {
        uint64_t next = now();
        assert_true(next >= after);
        after = next;
    }
}

static void a_nap_lasts(void **state) {
    uint64_t start = now();

    (void)state;
    real->nap(real->ctx, 3 * MS);
    assert_true(now() - start >= 3 * MS);
}

/* For ever, were it not for the word. */
static void nobody_parks_on_a_word_that_moved(void **state) {
    uint32_t word = 5;

    (void)state;
    real->park(real->ctx, &word, 4, -1);
    real->park(real->ctx, &word, 6, INT64_MAX);
}

/* A park may return early, but not always: then it would be a busy loop. */
static void a_park_ends_with_its_limit(void **state) {
    uint32_t word = 5;
    uint64_t longest = 0;

    (void)state;
    for (int i = 0; i < 5; i++) {
        uint64_t start = now();
        real->park(real->ctx, &word, 5, 10 * MS);
        uint64_t took = now() - start;
        assert_true(took < 20 * SECOND);
        longest = took > longest ? took : longest;
    }
    assert_true(longest >= 9 * MS);
    uint64_t start = now();
    real->park(real->ctx, &word, 5, 0);
    assert_true(now() - start < SECOND);
}

static void waking_nobody_is_harmless(void **state) {
    uint32_t word = 0;

    (void)state;
    real->wake(real->ctx, &word);
    real->yield(real->ctx);
}

typedef struct bell {
    uint32_t word;
    uint32_t about_to_park;
} bell;

static void *park_until_it_moves(void *arg) {
    bell *b = arg;
    hemi_add32_acq_rel(&b->about_to_park, 1);
    while (hemi_load32_acquire(&b->word) == 0)
        real->park(real->ctx, &b->word, 0, -1);
    return NULL;
}

static void await_parkers(bell *b, uint32_t count) {
    while (hemi_load32_acquire(&b->about_to_park) < count)
        real->yield(real->ctx);
    real->nap(real->ctx, 5 * MS); /* most of the time they sleep by then */
}

static void one_wake_wakes_all(void **state) {
    bell b = {0, 0};
    pthread_t threads[PARKERS];

    (void)state;
    for (int i = 0; i < PARKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, park_until_it_moves, &b), 0);
    await_parkers(&b, PARKERS);
    hemi_store32_release(&b.word, 1);
    real->wake(real->ctx, &b.word);
    for (int i = 0; i < PARKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* A word that two processes have mapped: what a rank's doorbell is. */
static void a_wake_reaches_another_process(void **state) {
    bell *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(b, MAP_FAILED);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        park_until_it_moves(b);
        _exit(0);
    }
    await_parkers(b, 1);
    hemi_store32_release(&b->word, 1);
    real->wake(real->ctx, &b->word);
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    munmap(b, sizeof *b);
}

/* Store, then look at the other's word: one with a plain compiler barrier, one with membarrier. */
typedef struct dekker {
    uint32_t mine __attribute__((aligned(HEMI_LINE)));
    uint32_t theirs __attribute__((aligned(HEMI_LINE)));
    uint32_t round __attribute__((aligned(HEMI_LINE)));
    uint32_t saw __attribute__((aligned(HEMI_LINE)));
    uint32_t answered;
} dekker;

static void *fast_side(void *arg) {
    dekker *d = arg;
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        while (hemi_load32_acquire(&d->round) != r)
            hemi_pause();
        hemi_store32_relaxed(&d->mine, r);
        hemi_compiler_barrier();
        uint32_t saw = hemi_load32_relaxed(&d->theirs);
        hemi_store32_relaxed(&d->saw, saw);
        hemi_store32_release(&d->answered, r);
    }
    return NULL;
}

/* At least one of the two sees the other, or a sleeper and its signaller would miss each other. */
static void membarrier_fences_the_other_thread(void **state) {
    dekker d = {0};
    pthread_t thread;
    uint32_t missed = 0;

    (void)state;
    bool registered = real->membarrier_register(real->ctx);
    assert_int_equal(registered, real->membarrier(real->ctx));
    if (!registered)
        skip();
    assert_int_equal(pthread_create(&thread, NULL, fast_side, &d), 0);
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        hemi_store32_release(&d.round, r);
        hemi_store32_relaxed(&d.theirs, r);
        bool fenced = real->membarrier(real->ctx);
        uint32_t saw = hemi_load32_relaxed(&d.mine);
        while (hemi_load32_acquire(&d.answered) != r)
            real->yield(real->ctx);
        missed += !fenced || (saw != r && hemi_load32_relaxed(&d.saw) != r);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(missed, 0);
}

static void random_numbers_differ(void **state) {
    uint64_t drawn[64];

    (void)state;
    for (int i = 0; i < 64; i++) {
        drawn[i] = real->random(real->ctx);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(drawn[i], drawn[j]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_only_grows_and_is_the_machines),
        cmocka_unit_test(a_nap_lasts),
        cmocka_unit_test(nobody_parks_on_a_word_that_moved),
        cmocka_unit_test(a_park_ends_with_its_limit),
        cmocka_unit_test(waking_nobody_is_harmless),
        cmocka_unit_test(one_wake_wakes_all),
        cmocka_unit_test(a_wake_reaches_another_process),
        cmocka_unit_test(membarrier_fences_the_other_thread),
        cmocka_unit_test(random_numbers_differ),
    };
    real = hemi_platform_real();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
