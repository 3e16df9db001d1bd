/* What is believed of a team block that a peer has made. */
#include "core/root.h"

#include "base/testing.h"
#include "core/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 3
#define LIMIT HEM_SEC(1)

static hemi_arena arena;
static hemi_root *root;
static uint64_t place; /* where the team under test lies */

static int set_up(void **state) {
    hemi_arena_plan plan = {.ranks = RANKS, .kind = HEMI_KIND_LAUNCHED, .part_bytes = 16ull << 20};
    const uint32_t members[RANKS] = {2, 0, 1};
    (void)state;
    if (hemi_arena_make(&plan, hemi_platform_real(), &arena) != HEM_OK)
        return -1;
    if (hemi_root_attach(&arena, hemi_platform_real(), 0, &root) != HEM_OK)
        return -1;
    place = hemi_arena_part(&root->arena, 1) + HEMI_HEAP_META;
    hemi_team_init(hemi_arena_at(&root->arena, place), 7, 1, members, RANKS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hemi_root_drop(root);
    return 0;
}

static hemi_team *team(void) {
    return hemi_arena_at(&root->arena, place);
}

static hem_status make(uint64_t offset, uint32_t rank) {
    hem_world *world = NULL;
    hem_status status = hemi_world_make(root, offset, rank, LIMIT, &world);
    if (status == HEM_OK)
        hemi_world_free(world);
    else
        assert_null(world);
    assert_int_equal(root->refs, 1);
    return status;
}

static void a_good_team_makes_a_world(void **state) {
    hem_world *world = NULL;

    (void)state;
    assert_int_equal(hemi_world_make(root, place, 1, LIMIT, &world), HEM_OK);
    assert_int_equal(hem_world_rank(world), 1);
    assert_int_equal(hem_world_size(world), RANKS);
    assert_int_equal(world->id, 7);
    assert_int_equal(root->refs, 2);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(hem_world_alive(world, r), 1);
    assert_true(hemi_liveness_ended(&root->arena, root->platform, 2, 9));
    assert_int_equal(hem_world_alive(world, 0), 0); /* rank 0 of this world is root rank 2 */
    assert_int_equal(hem_world_alive(world, RANKS), HEM_ERR_RANGE);
    assert_int_equal(hem_world_alive(world, -1), HEM_ERR_RANGE);
    hemi_world_free(world);
    assert_int_equal(root->refs, 1);
    assert_int_equal(make(root->arena.team_offset, 0), HEM_OK); /* the team of all */
}

static void no_team_is_outside_of_the_parts(void **state) {
    const uint64_t bad[] = {0,
                            root->arena.ranks_offset,
                            root->arena.team_offset + HEMI_PAGE,
                            root->arena.parts_offset - HEMI_PAGE,
                            place + 64,
                            place + 1,
                            root->arena.total_bytes - HEMI_PAGE + 64,
                            root->arena.total_bytes,
                            UINT64_MAX,
                            UINT64_MAX - HEMI_PAGE + 1};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(make(bad[i], 0), HEM_ERR_MISMATCH);
    assert_int_equal(make(root->arena.total_bytes - HEMI_PAGE, 0), HEM_ERR_MISMATCH); /* zeros */
}

static void only_ones_own_place_is_taken(void **state) {
    (void)state;
    assert_int_equal(make(place, 1), HEM_OK);
    assert_int_equal(make(place, 0), HEM_ERR_MISMATCH);
    assert_int_equal(make(place, 2), HEM_ERR_MISMATCH);
    assert_int_equal(make(place, RANKS), HEM_ERR_MISMATCH);
    assert_int_equal(make(place, UINT32_MAX), HEM_ERR_MISMATCH);
}

static void impossible_sizes_are_refused(void **state) {
    static const uint32_t bad[] = {0, 1, RANKS + 1, HEMI_MAX_RANKS, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        team()->size = bad[i];
        assert_int_equal(make(place, 1), HEM_ERR_MISMATCH);
    }
    team()->size = RANKS;
    team()->magic ^= 1;
    assert_int_equal(make(place, 1), HEM_ERR_MISMATCH);
}

/* A member that is no rank of the arena would lead to memory far outside of it. */
static void members_that_do_not_exist_are_refused(void **state) {
    static const uint32_t bad[] = {RANKS, 1u << 20, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hemi_team_members(team(), RANKS)[2] = bad[i];
        assert_int_equal(make(place, 1), HEM_ERR_MISMATCH);
    }
    hemi_team_members(team(), RANKS)[2] = 1;
    assert_int_equal(make(place, 1), HEM_OK);
}

/* As with the head of the arena: what was checked counts, not what a peer makes of it later. */
static void what_changes_later_does_no_harm(void **state) {
    hem_world *world = NULL;
    uint64_t seen = 0;

    (void)state;
    assert_int_equal(hemi_world_make(root, place, 1, LIMIT, &world), HEM_OK);
    team()->size = UINT32_MAX;
    assert_int_equal(hem_world_size(world), RANKS);
    for (uint32_t r = 0; r < RANKS; r++)
        hemi_team_members(team(), RANKS)[r] = UINT32_MAX;
    for (int r = 0; r < RANKS; r++)
        seen += (uint64_t)hem_world_alive(world, r);
    assert_in_range(seen, 0, RANKS);
    assert_int_equal(hem_world_revoke(world), HEM_OK);
    hemi_world_free(world);
}

static void null_is_an_error_not_a_fault(void **state) {
    hem_world *world = NULL;

    (void)state;
    assert_int_equal(hem_world_close(NULL), HEM_OK);
    assert_int_equal(hem_world_revoke(NULL), HEM_ERR_ARG);
    assert_int_equal(hem_world_split(NULL, 0, 0, &world), HEM_ERR_ARG);
    assert_int_equal(hem_world_shrink(NULL, &world), HEM_ERR_ARG);
    assert_int_equal(hem_world_open(NULL, NULL), HEM_ERR_ARG);
    assert_int_equal(hem_world_threads(1, NULL, NULL, NULL), HEM_ERR_ARG);
    assert_int_equal(hemi_check_timeout(-2, "test"), HEM_ERR_ARG);
    assert_int_equal(hemi_check_timeout(HEM_FOREVER, "test"), HEM_OK);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(a_good_team_makes_a_world),
        FRESH(no_team_is_outside_of_the_parts),
        FRESH(only_ones_own_place_is_taken),
        FRESH(impossible_sizes_are_refused),
        FRESH(members_that_do_not_exist_are_refused),
        FRESH(what_changes_later_does_no_harm),
        cmocka_unit_test(null_is_an_error_not_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
