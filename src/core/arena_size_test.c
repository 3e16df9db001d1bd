/* How large an arena may be, and who decides: the caller, the environment, the system's limits. */
#include "core/arena.h"

#include "base/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB  (1ull << 20)
#define PART (16 * MIB)

static hem_status try_make(uint32_t ranks, uint64_t part) {
    hemi_arena_plan plan = {.ranks = ranks, .kind = HEMI_KIND_ALONE, .part_bytes = part};
    hemi_arena arena;
    hem_status status = hemi_arena_make(&plan, hemi_platform_real(), &arena);
    if (status != HEM_OK)
        return status;
    /* What was made can be mapped by the others. */
    bool sound = hemi_arena_check(arena.head, arena.total_bytes) == NULL;
    hemi_arena_unmap(&arena);
    return sound ? HEM_OK : HEM_ERR_MISMATCH;
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    unsetenv("HEM_ARENA_SIZE");
    assert_int_equal(try_make(0, PART), HEM_ERR_LIMIT);
    assert_int_equal(try_make(HEMI_MAX_RANKS + 1, PART), HEM_ERR_LIMIT);
    assert_int_equal(try_make(UINT32_MAX, PART), HEM_ERR_LIMIT);
    assert_int_equal(try_make(1, 1), HEM_ERR_LIMIT);
    assert_int_equal(try_make(1, PART - 4 * MIB), HEM_ERR_LIMIT);
    assert_int_equal(try_make(1, UINT64_MAX), HEM_ERR_LIMIT);
    assert_int_equal(try_make(1, UINT64_MAX / 2), HEM_ERR_LIMIT);
    assert_int_equal(try_make(1024, 1ull << 40), HEM_ERR_LIMIT);
    assert_int_equal(try_make(2, PART + 1), HEM_OK);
}

static void the_environment_sets_the_size(void **state) {
    hemi_arena_plan plan = {.ranks = 2, .kind = HEMI_KIND_ALONE};
    hemi_arena arena;

    (void)state;
    setenv("HEM_ARENA_SIZE", "64M", 1);
    assert_int_equal(hemi_arena_make(&plan, hemi_platform_real(), &arena), HEM_OK);
    assert_int_equal(arena.part_bytes, 64 * MIB);
    hemi_arena_unmap(&arena);
    setenv("HEM_ARENA_SIZE", "15M", 1);
    assert_int_equal(try_make(2, 0), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "HEM_ARENA_SIZE"));
    setenv("HEM_ARENA_SIZE", "lots", 1);
    assert_int_equal(try_make(2, 0), HEM_ERR_ARG);
    unsetenv("HEM_ARENA_SIZE");
    assert_int_equal(try_make(2, 0), HEM_OK);
}

/* Run `body` in a child under a limit on address space; it returns 0, or the line that failed. */
static void under_limit(uint64_t bytes, int (*body)(void)) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {bytes, bytes};
        _exit(setrlimit(RLIMIT_AS, &limit) != 0 ? 1 : body() % 256);
    }
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

static int little_address_space(void) {
    RANK_CHECK(try_make(4, 0) == HEM_OK);
    RANK_CHECK(try_make(4, 128 * MIB) == HEM_OK);
    RANK_CHECK(try_make(4, 512 * MIB) == HEM_ERR_LIMIT);
    RANK_CHECK(strstr(hem_last_error(), "RLIMIT_AS") != NULL);
    RANK_CHECK(try_make(1000, 0) == HEM_ERR_LIMIT);
    RANK_CHECK(strstr(hem_last_error(), "RLIMIT_AS") != NULL);
    return 0;
}

/* The sizes that the head's check allows do not grow with the limit. */
static int much_address_space(void) {
    hem_status status = try_make(1, 1ull << 46);
    RANK_CHECK(status == HEM_OK || status == HEM_ERR_LIMIT);
    return 0;
}

static void a_limit_on_address_space_is_kept_and_named(void **state) {
    (void)state;
    unsetenv("HEM_ARENA_SIZE");
    if (TESTING_SANITIZED)
        skip(); /* a sanitizer needs more address space than any limit */
    under_limit(2048 * MIB, little_address_space);
    under_limit(1ull << 47, much_address_space);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(the_environment_sets_the_size),
        cmocka_unit_test(a_limit_on_address_space_is_kept_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
