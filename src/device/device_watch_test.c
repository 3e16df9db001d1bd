/* Kernels are told of deaths, revokes and closes, and of nothing else; signallers do not pay. */
#include "device/testing.h"

#include "base/testing.h"

#include <hem/coll.h>
#include <hem/device/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(10)

static void sleep_ms(long ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Ten seconds at most. */
static bool becomes(const uint32_t *word, hem_status status) {
    for (int i = 0; i < 10000 && hemi_load32_acquire(word) != (uint32_t)-status; i++)
        sleep_ms(1);
    return hemi_load32_acquire(word) == (uint32_t)-status;
}

static hem_status begin(hem_world *world, hemi_trouble **trouble_p, uint32_t **words_p) {
    uint32_t *device = NULL;
    hem_status status = hemi_device_use(world->root, &fake_module);
    if (status == HEM_OK)
        status = hemi_trouble_watch(world, 7, trouble_p, &device);
    if (status != HEM_OK)
        return status;
    *words_p = hemi_trouble_words(*trouble_p);
    return device == *words_p ? HEM_OK : HEM_ERR_ARG;
}

static bool is_quiet(const uint32_t *words, int ranks) {
    for (int r = 0; r < ranks; r++)
        if (hemi_load32_acquire(&words[HEMD_TROUBLE_RANKS + r]) != 0)
            return false;
    /* The words of a note are the host's from the beginning, but nobody has written one. */
    for (int i = 0; i < HEMD_TROUBLE_NOTE; i++)
        if (hemi_load32_acquire(&words[i]) != 0)
            return false;
    return true;
}

static hem_status run(int ranks, hem_rank_fn fn) {
    memset(&fake, 0, sizeof fake);
    return hem_world_threads(ranks, fn, NULL, NULL);
}

static int revoke_half(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    hemi_trouble *apart = NULL;
    uint32_t *words = NULL;
    uint32_t *apart_words = NULL;
    hem_world *half = NULL;
    (void)arg;
    RANK_CHECK(hem_world_split(world, 0, 0, &half) == HEM_OK);
    RANK_CHECK(begin(half, &trouble, &words) == HEM_OK);
    RANK_CHECK(begin(world, &apart, &apart_words) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    RANK_CHECK(is_quiet(words, 3) && is_quiet(apart_words, 3));
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    if (hem_world_rank(world) == 1)
        RANK_CHECK(hem_world_revoke(half) == HEM_OK);
    RANK_CHECK(becomes(&words[HEMD_TROUBLE_ALL], HEM_ERR_REVOKED));
    RANK_CHECK(words[HEMD_TROUBLE_SOME] == 0);
    /* What is made later is told at once. */
    hemi_trouble *late = NULL;
    uint32_t *late_words = NULL;
    RANK_CHECK(begin(half, &late, &late_words) == HEM_OK);
    RANK_CHECK(late_words[HEMD_TROUBLE_ALL] == (uint32_t)-HEM_ERR_REVOKED);
    hemi_trouble_end(late, false);
    hemi_trouble_end(trouble, false);
    RANK_CHECK(is_quiet(apart_words, 3));
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    hemi_trouble_end(apart, false);
    hemi_trouble_end(NULL, true);
    RANK_CHECK(hem_world_close(half) == HEM_OK);
    return hem_world_close(world);
}

static void a_revoke_is_told(void **state) {
    (void)state;
    assert_int_equal(run(3, revoke_half), HEM_OK);
    assert_int_equal(fake.pinned, 0);
    assert_int_equal(fake.closed, 3);
}

static uint32_t checked; /* survivors that have seen what they should */

/* Rank 1 leaves without closing or ending anything. */
static int die(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    uint32_t *words = NULL;
    (void)arg;
    RANK_CHECK(begin(world, &trouble, &words) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    if (hem_world_rank(world) == 1) {
        sleep_ms(50);
        return 0;
    }
    RANK_CHECK(becomes(&words[HEMD_TROUBLE_RANKS + 1], HEM_ERR_PEER));
    RANK_CHECK(becomes(&words[HEMD_TROUBLE_SOME], (hem_status)-1));
    RANK_CHECK(words[HEMD_TROUBLE_ALL] == 0 && words[HEMD_TROUBLE_RANKS] == 0 &&
               words[HEMD_TROUBLE_RANKS + 2] == 0);
    hemi_add32_acq_rel(&checked, 1);
    RANK_CHECK(becomes(&checked, (hem_status)-2)); /* who closes is told, too */
    hemi_trouble_end(trouble, false);
    return hem_world_close(world) == HEM_ERR_PEER ? 0 : 1;
}

static void a_death_is_told(void **state) {
    (void)state;
    assert_int_equal(run(3, die), HEM_OK);
    assert_int_equal(fake.pinned, 0);
    assert_int_equal(fake.closed, 3);
}

static int leave(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    uint32_t *words = NULL;
    hem_world *half = NULL;
    (void)arg;
    RANK_CHECK(hem_world_split(world, 0, 0, &half) == HEM_OK);
    RANK_CHECK(begin(half, &trouble, &words) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    /* Only what wakes the watcher brings the word: nothing else happens in this rank. */
    sleep_ms(hem_world_rank(world) == 0 ? 100 : 0);
    if (hem_world_rank(world) != 0)
        RANK_CHECK(becomes(&words[HEMD_TROUBLE_RANKS], HEM_ERR_PEER));
    hemi_trouble_end(trouble, false);
    RANK_CHECK(hem_world_close(half) == HEM_OK);
    return hem_world_close(world);
}

static void a_close_is_told(void **state) {
    (void)state;
    assert_int_equal(run(3, leave), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

static int close_own(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    hemi_trouble *other = NULL;
    uint32_t *words = NULL;
    uint32_t *other_words = NULL;
    (void)arg;
    RANK_CHECK(begin(world, &trouble, &words) == HEM_OK);
    RANK_CHECK(begin(world, &other, &other_words) == HEM_OK);
    hemi_trouble_end(trouble, true);
    /* Kernels have not been seen to end: the word is still there for them. */
    RANK_CHECK(hemi_load32_acquire(&words[HEMD_TROUBLE_ALL]) == (uint32_t)-HEM_ERR_CLOSED);
    hemi_trouble_end(other, false);
    /* One chunk holds them all, and stays: unpinning would wait for kernels. */
    RANK_CHECK(fake.pinned == 1);
    return hem_world_close(world);
}

static void the_own_end_is_told(void **state) {
    (void)state;
    assert_int_equal(run(1, close_own), HEM_OK);
    assert_int_equal(fake.pinned, 0);
    assert_int_equal(fake.last, -HEM_ERR_CLOSED);
}

/* A rank that has ended: its kernels are told, and nothing more is watched. */
static int end_rank(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    hemi_trouble *late = NULL;
    uint32_t *words = NULL;
    (void)arg;
    RANK_CHECK(begin(world, &trouble, &words) == HEM_OK);
    world->root->device_abandon(world->root->device);
    RANK_CHECK(hemi_load32_acquire(&words[HEMD_TROUBLE_ALL]) == (uint32_t)-HEM_ERR_CLOSED);
    RANK_CHECK(begin(world, &late, &words) == HEM_ERR_CLOSED && late == NULL);
    RANK_CHECK(fake.pinned == 1);
    hemi_trouble_end(trouble, true);
    return hem_world_close(world);
}

static void an_abandoned_rank_ends_its_kernels(void **state) {
    (void)state;
    assert_int_equal(run(1, end_rank), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

static int refuse_to_pin(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    uint32_t *words = NULL;
    (void)arg;
    fake.refuse_pin = (uint32_t)-HEM_ERR_LIMIT;
    RANK_CHECK(begin(world, &trouble, &words) == HEM_ERR_LIMIT && trouble == NULL);
    RANK_CHECK(strstr(hem_last_error(), "refuses to pin") != NULL);
    return hem_world_close(world);
}

static void what_cannot_be_pinned_is_an_error(void **state) {
    (void)state;
    assert_int_equal(run(1, refuse_to_pin), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

/* The watcher sleeps, and yet nobody who signals this rank has to wake anybody. */
static int look_at_sleepers(hem_world *world, void *arg) {
    hemi_trouble *trouble = NULL;
    uint32_t *words = NULL;
    (void)arg;
    RANK_CHECK(begin(world, &trouble, &words) == HEM_OK);
    sleep_ms(50);
    RANK_CHECK(hemi_load32_acquire(&world->root->me->sleepers) == 0);
    RANK_CHECK(is_quiet(words, 1));
    hemi_trouble_end(trouble, false);
    return hem_world_close(world);
}

static void signallers_do_not_pay(void **state) {
    (void)state;
    assert_int_equal(run(1, look_at_sleepers), HEM_OK);
}

static int come_and_go(hem_world *world, void *arg) {
    (void)arg;
    for (int i = 0; i < 300; i++) {
        hemi_trouble *troubles[3] = {NULL, NULL, NULL};
        uint32_t *words = NULL;
        for (int j = 0; j < 3; j++)
            RANK_CHECK(begin(world, &troubles[j], &words) == HEM_OK);
        hemi_liveness_alarm(&world->root->arena, world->root->platform);
        RANK_CHECK(is_quiet(words, 3));
        for (int j = 0; j < 3; j++)
            hemi_trouble_end(troubles[(i + j) % 3], false);
    }
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    return hem_world_close(world);
}

static void troubles_come_and_go(void **state) {
    (void)state;
    assert_int_equal(run(3, come_and_go), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_revoke_is_told),
        cmocka_unit_test(a_death_is_told),
        cmocka_unit_test(a_close_is_told),
        cmocka_unit_test(the_own_end_is_told),
        cmocka_unit_test(an_abandoned_rank_ends_its_kernels),
        cmocka_unit_test(what_cannot_be_pinned_is_an_error),
        cmocka_unit_test(signallers_do_not_pay),
        cmocka_unit_test(troubles_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
