#include "core/team.h"

#include "base/testing.h"
#include "core/bootstrap/bootstrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 4
#define LIMIT HEM_SEC(20)

/* What every rank got from a step, for the main thread to compare. */
typedef struct outcome {
    hem_status status;
    char text[HEMI_ERROR_MAX];
} outcome;

static outcome outcomes[RANKS];

static hem_status note(const hem_world *world, hem_status status) {
    outcome *mine = &outcomes[hem_world_rank(world)];
    mine->status = status;
    (void)snprintf(mine->text, sizeof mine->text, "%s", hem_last_error());
    return status;
}

static void run(hem_rank_fn fn, void *arg) {
    memset(outcomes, 0, sizeof outcomes);
    hem_status status = hem_world_threads(RANKS, fn, arg, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

/* The same status and the same sentence on all of the first `count` ranks. */
static void expect_all(int count, hem_status want, const char *part) {
    for (int r = 0; r < count; r++) {
        assert_int_equal(outcomes[r].status, want);
        assert_string_equal(outcomes[r].text, outcomes[0].text);
        assert_non_null(strstr(outcomes[r].text, part));
    }
}

static hem_status agree(hem_world *world, uint32_t call, uint64_t fingerprint) {
    return hemi_team_agree(world, call, HEM_OK, fingerprint, NULL, 0, LIMIT);
}

/* More steps than there are blobs and settle words, so that each is used again. */
static int hear_everybody(hem_world *world, void *arg) {
    int me = hem_world_rank(world);
    (void)arg;
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t mine[HEMI_SAY_MAX / sizeof(uint64_t)];
        for (size_t k = 0; k < sizeof mine / sizeof mine[0]; k++)
            mine[k] = i * 1000 + (uint64_t)me * 100 + k;
        RANK_CHECK(hemi_team_agree(world, HEMI_CALL_SPLIT, HEM_OK, i, mine, sizeof mine, LIMIT) ==
                   HEM_OK);
        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t heard[HEMI_SAY_MAX / sizeof(uint64_t)];
            hemi_team_heard(world, r, heard, sizeof heard);
            for (size_t k = 0; k < sizeof heard / sizeof heard[0]; k++)
                RANK_CHECK(heard[k] == i * 1000 + r * 100ull + k);
        }
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void everybody_hears_everybody(void **state) {
    (void)state;
    run(hear_everybody, NULL);
}

static int call_something_else(hem_world *world, void *arg) {
    uint32_t call = hem_world_rank(world) == 2 ? HEMI_CALL_SPLIT : HEMI_CALL_WINDOW_CREATE;
    (void)arg;
    RANK_CHECK(note(world, agree(world, call, 0)) != HEM_OK);
    RANK_CHECK(agree(world, HEMI_CALL_SPLIT, 0) == HEM_OK); /* and then go on */
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void different_calls_are_a_mismatch_on_all(void **state) {
    (void)state;
    run(call_something_else, NULL);
    expect_all(RANKS, HEM_ERR_MISMATCH, "rank 2 called hem_world_split");
    expect_all(RANKS, HEM_ERR_MISMATCH, "hem_window_create");
}

static int pass_something_else(hem_world *world, void *arg) {
    (void)arg;
    RANK_CHECK(note(world, agree(world, HEMI_CALL_SPLIT, hem_world_rank(world) >= 2)) != HEM_OK);
    RANK_CHECK(agree(world, HEMI_CALL_SPLIT, 0) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void different_arguments_are_a_mismatch_on_all(void **state) {
    (void)state;
    run(pass_something_else, NULL);
    expect_all(RANKS, HEM_ERR_MISMATCH, "hem_world_split: rank 2 passed other arguments");
}

/* The ranks whose bit is set in *arg come with an error of their own. */
static int come_with_an_error(hem_world *world, void *arg) {
    int me = hem_world_rank(world);
    hem_status mine = HEM_OK;
    if ((*(const unsigned *)arg >> me & 1) != 0)
        mine = hemi_fail(me == 1 ? HEM_ERR_MEMORY : HEM_ERR_RANGE, "rank %d has no socks", me);
    hem_status status = hemi_team_agree(world, HEMI_CALL_SPLIT, mine, (uint64_t)me, NULL, 0, LIMIT);
    RANK_CHECK(note(world, status) != HEM_OK);
    RANK_CHECK(agree(world, HEMI_CALL_SPLIT, 0) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void the_error_of_one_is_the_error_of_all(void **state) {
    unsigned who = 1u << 1;

    (void)state;
    run(come_with_an_error, &who);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(outcomes[r].status, HEM_ERR_MEMORY);
        assert_non_null(strstr(outcomes[r].text, "rank 1 has no socks"));
    }
}

/* Word for word: also on the rank whose error it was. */
static void the_sentence_of_one_is_the_sentence_of_all(void **state) {
    unsigned who = 1u << 1;

    (void)state;
    run(come_with_an_error, &who);
    expect_all(RANKS, HEM_ERR_MEMORY, "rank 1");
}

static void of_several_errors_the_lowest_rank_wins(void **state) {
    unsigned who = 1u << 1 | 1u << 2 | 1u << 3;

    (void)state;
    run(come_with_an_error, &who);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(outcomes[r].status, HEM_ERR_MEMORY);
        assert_non_null(strstr(outcomes[r].text, "rank 1 has no socks"));
    }
}

static int come_with_nonsense(hem_world *world, void *arg) {
    int me = hem_world_rank(world);
    hem_status mine = me == 2 ? (hem_status)(HEM_ERR_LIMIT - *(const int *)arg) : HEM_OK;
    (void)note(world, hemi_team_agree(world, HEMI_CALL_SPLIT, mine, 0, NULL, 0, LIMIT));
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

/* A rank whose memory is damaged may say anything. */
static void what_is_no_status_is_not_passed_on(void **state) {
    int beyond[] = {1, 100, 1 << 30};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        run(come_with_nonsense, &beyond[i]);
        expect_all(RANKS, HEM_ERR_MISMATCH, "rank 2 names no status");
    }
}

static int come_with_a_long_sentence(hem_world *world, void *arg) {
    char longer[HEMI_ERROR_MAX];
    hem_status mine = HEM_OK;
    (void)arg;
    memset(longer, 'y', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    if (hem_world_rank(world) == 3)
        mine = hemi_fail(HEM_ERR_SYSTEM, "%s", longer);
    RANK_CHECK(note(world, hemi_team_agree(world, HEMI_CALL_SPLIT, mine, 0, NULL, 0, LIMIT)) ==
               HEM_ERR_SYSTEM);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void a_long_sentence_is_cut_on_the_way(void **state) {
    (void)state;
    run(come_with_a_long_sentence, NULL);
    for (int r = 0; r < RANKS - 1; r++)
        assert_int_equal(strncmp(outcomes[r].text, "rank 3: yyyyyyyy", 16), 0);
}

/* Rank 3 comes when the others have given up. Nobody may take the step for done. */
static int come_late(hem_world *world, void *arg) {
    const hemi_platform *platform = world->root->platform;
    bool late = hem_world_rank(world) == 3;
    (void)arg;
    if (late)
        platform->nap(platform->ctx, HEM_MS(200));
    RANK_CHECK(note(world, hemi_team_agree(world, HEMI_CALL_SPLIT, HEM_OK, 0, NULL, 0,
                                           late ? LIMIT : HEM_MS(20))) == HEM_ERR_TIMEOUT);
    RANK_CHECK(agree(world, HEMI_CALL_SPLIT, 0) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void who_comes_late_is_named_and_told(void **state) {
    (void)state;
    run(come_late, NULL);
    expect_all(RANKS, HEM_ERR_TIMEOUT, "hem_world_split: rank 3 did not come in time");
}

static int die_before(hem_world *world, void *arg) {
    (void)arg;
    if (hem_world_rank(world) == 3)
        return 0;
    RANK_CHECK(note(world, agree(world, HEMI_CALL_SPLIT, 0)) == HEM_ERR_PEER);
    RANK_CHECK(hemi_team_meet(world, HEMI_CALL_WINDOW_DESTROY, 0, LIMIT) == HEM_ERR_PEER);
    RANK_CHECK(hem_world_close(world) == HEM_ERR_PEER);
    return 0;
}

static void a_death_is_told_to_all(void **state) {
    (void)state;
    run(die_before, NULL);
    expect_all(3, HEM_ERR_PEER, "hem_world_split: rank 3 returned without closing its world");
}

/* All come at once, so that nobody has to wait: still nothing works on a revoked world. */
static int agree_when_revoked(hem_world *world, void *arg) {
    (void)arg;
    if (hem_world_rank(world) == 0)
        RANK_CHECK(hem_world_revoke(world) == HEM_OK);
    else
        while (hemi_load32_acquire(&world->team->revoked) == 0)
            world->root->platform->yield(NULL);
    for (int i = 0; i < 20; i++)
        RANK_CHECK(note(world, agree(world, HEMI_CALL_SPLIT, 0)) == HEM_ERR_REVOKED);
    hem_world *part = NULL;
    RANK_CHECK(hem_world_split(world, 0, 0, &part) == HEM_ERR_REVOKED);
    hem_status met = hemi_team_meet(world, HEMI_CALL_WINDOW_DESTROY, 0, LIMIT);
    RANK_CHECK(met == HEM_OK || met == HEM_ERR_REVOKED);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void nothing_is_agreed_on_a_revoked_world(void **state) {
    (void)state;
    run(agree_when_revoked, NULL);
    expect_all(RANKS, HEM_ERR_REVOKED, "revoked");
}

static void not_even_alone(void **state) {
    hem_world *world = NULL;
    hem_world *part = NULL;

    (void)state;
    assert_int_equal(hem_world_open(NULL, &world), HEM_OK);
    assert_int_equal(hem_world_revoke(world), HEM_OK);
    assert_int_equal(agree(world, HEMI_CALL_SPLIT, 0), HEM_ERR_REVOKED);
    assert_int_equal(hem_world_split(world, 0, 0, &part), HEM_ERR_REVOKED);
    assert_int_equal(hem_world_close(world), HEM_OK);
}

static int meet(hem_world *world, void *arg) {
    int me = hem_world_rank(world);
    (void)arg;
    for (uint64_t i = 0; i < 100; i++)
        RANK_CHECK(hemi_team_meet(world, HEMI_CALL_WINDOW_DESTROY, i, LIMIT) == HEM_OK);
    RANK_CHECK(note(world, hemi_team_meet(world, HEMI_CALL_WINDOW_DESTROY, me == 2, LIMIT)) ==
               HEM_ERR_MISMATCH);
    RANK_CHECK(agree(world, HEMI_CALL_SPLIT, 0) == HEM_OK);
    if (me == 1) {
        world->root->platform->nap(NULL, HEM_MS(300)); /* closing would be another answer */
    } else {
        RANK_CHECK(hemi_team_meet(world, HEMI_CALL_WINDOW_DESTROY, 0, HEM_MS(20)) ==
                   HEM_ERR_TIMEOUT);
        RANK_CHECK(strstr(hem_last_error(), "rank 1") != NULL);
    }
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void meetings_end(void **state) {
    (void)state;
    run(meet, NULL);
    for (int r = 0; r < RANKS; r++)
        assert_non_null(strstr(outcomes[r].text, "hem_window_destroy"));
}

/* Rank 1 sets the flag late, rank 2 never does but dies. */
static int await_flags(hem_world *world, void *arg) {
    int me = hem_world_rank(world);
    /* A word that nothing else uses here: the real flags would make close believe them. */
    size_t which = offsetof(hemi_cell, meet_tags[1]);
    (void)arg;
    RANK_CHECK(hemi_team_await_flag(world, HEMI_CALL_CLOSE, which, HEM_MS(5)) == HEM_ERR_TIMEOUT);
    RANK_CHECK(agree(world, HEMI_CALL_SPLIT, 0) == HEM_OK);
    if (me == 1)
        world->root->platform->nap(NULL, HEM_MS(20));
    if (me == 2)
        return 0;
    hemi_store32_release((uint32_t *)(void *)&world->cells[me].meet_tags[1], 1);
    hemi_team_wake(world);
    RANK_CHECK(hemi_team_await_flag(world, HEMI_CALL_CLOSE, which, LIMIT) == HEM_ERR_PEER);
    RANK_CHECK(hem_world_close(world) == HEM_ERR_PEER);
    return 0;
}

static void flags_are_awaited(void **state) {
    (void)state;
    run(await_flags, NULL);
}

/* A bad setting on one rank alone cannot be made with threads; on all, nobody may wait. */
static void a_bad_setting_is_told_at_once(void **state) {
    uint64_t start = hemi_platform_real()->now(NULL);

    (void)state;
    setenv("HEM_SPIN", "often", 1);
    assert_int_equal(hem_world_threads(RANKS, die_before, NULL, NULL), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "HEM_SPIN"));
    unsetenv("HEM_SPIN");
    assert_true(hemi_platform_real()->now(NULL) - start < (uint64_t)LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_hears_everybody),
        cmocka_unit_test(different_calls_are_a_mismatch_on_all),
        cmocka_unit_test(different_arguments_are_a_mismatch_on_all),
        cmocka_unit_test(the_error_of_one_is_the_error_of_all),
        cmocka_unit_test(the_sentence_of_one_is_the_sentence_of_all),
        cmocka_unit_test(of_several_errors_the_lowest_rank_wins),
        cmocka_unit_test(what_is_no_status_is_not_passed_on),
        cmocka_unit_test(a_long_sentence_is_cut_on_the_way),
        cmocka_unit_test(who_comes_late_is_named_and_told),
        cmocka_unit_test(a_death_is_told_to_all),
        cmocka_unit_test(nothing_is_agreed_on_a_revoked_world),
        cmocka_unit_test(not_even_alone),
        cmocka_unit_test(meetings_end),
        cmocka_unit_test(flags_are_awaited),
        cmocka_unit_test(a_bad_setting_is_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
