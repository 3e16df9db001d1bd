/* Which transport leads where, and which names of memory are believed. */
#include "transport/transport.h"

#include "base/testing.h"
#include "core/bootstrap/bootstrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 4ull

static hem_world *world;
static hemi_root *root;

static int set_up(void **state) {
    hem_world_options options = {.struct_size = sizeof options, .arena_bytes = 16u << 20};
    (void)state;
    if (hem_world_open(&options, &world) != HEM_OK)
        return -1;
    root = world->root;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return hem_world_close(world) == HEM_OK ? 0 : -1;
}

/* Behind the book-keeping, where memory is given out. */
static uint64_t first_offset(void) {
    return hemi_arena_part(&root->arena, 0) + HEMI_HEAP_META;
}

static hemi_name library_name(void) {
    return hemi_name_make(root, HEMI_NAME_LIBRARY, first_offset(), PAGES * HEMI_PAGE);
}

static void every_transport_is_whole(void **state) {
    size_t count = 0;

    (void)state;
    for (; hemi_transports[count] != NULL; count++) {
        assert_non_null(hemi_transports[count]->name);
        assert_non_null(hemi_transports[count]->reach);
        assert_non_null(hemi_transports[count]->attach);
    }
    assert_true(count >= 2);
}

static int routes(hem_world *w, void *arg) {
    uint32_t me = w->root->rank;
    (void)arg;
    for (uint32_t r = 0; r < 3; r++) {
        const hemi_transport *transport = hemi_transport_select(w->root, r);
        RANK_CHECK(transport != NULL);
        RANK_CHECK(strcmp(transport->name, r == me ? "self" : "shm") == 0);
        RANK_CHECK((transport->reach(w->root, r) & HEM_ROUTE_SAME_PROCESS) != 0);
    }
    RANK_CHECK(hemi_transport_select(w->root, 3) == NULL);
    RANK_CHECK(hemi_transport_select(w->root, UINT32_MAX) == NULL);
    RANK_CHECK(hem_route_query(w, 3) == HEM_ERR_RANGE);
    RANK_CHECK(hem_route_query(w, -1) == HEM_ERR_RANGE);
    RANK_CHECK((hem_route_query(w, 0) & HEM_ROUTE_MAPPED) != 0);
    RANK_CHECK(hem_world_close(w) == HEM_OK);
    return 0;
}

static void the_best_route_is_taken(void **state) {
    (void)state;
    assert_int_equal(hem_world_threads(3, routes, NULL, NULL), HEM_OK);
}

static void a_good_name_is_believed(void **state) {
    hemi_name library = library_name();
    hemi_name own = hemi_name_make(root, HEMI_NAME_OWN, (uintptr_t)&library, sizeof library);
    hemi_region region;

    (void)state;
    assert_int_equal(hemi_name_check(root, &library, 0), HEM_OK);
    assert_int_equal(hemi_name_check(root, &own, 0), HEM_OK);
    assert_int_equal(hemi_region_attach(root, &library, 0, &region), HEM_OK);
    assert_ptr_equal(region.mapped, hemi_arena_at(&root->arena, first_offset()));
    assert_int_equal(region.bytes, PAGES * HEMI_PAGE);
    assert_true(region.route & HEM_ROUTE_ATOMIC);
    assert_int_equal(hemi_region_attach(root, &own, 0, &region), HEM_OK);
    assert_ptr_equal(region.mapped, &library);
    assert_false(region.route & (HEM_ROUTE_ATOMIC | HEM_ROUTE_SIGNAL));
}

static void every_changed_byte_of_a_name_is_refused(void **state) {
    const hemi_name names[] = {library_name(),
                               hemi_name_make(root, HEMI_NAME_OWN, (uintptr_t)root, sizeof *root)};

    (void)state;
    for (size_t which = 0; which < 2; which++)
        for (size_t i = 0; i < sizeof(hemi_name); i++)
            for (unsigned change = 1; change < 256; change++) {
                hemi_name bad = names[which];
                ((unsigned char *)&bad)[i] ^= (unsigned char)change;
                hemi_region region = {.bytes = 77};
                assert_int_equal(hemi_name_check(root, &bad, 0), HEM_ERR_RANGE);
                assert_int_equal(hemi_region_attach(root, &bad, 0, &region), HEM_ERR_RANGE);
                assert_int_equal(region.bytes, 77);
            }
}

static void another_ranks_name_is_refused(void **state) {
    hemi_name name = library_name();

    (void)state;
    assert_int_equal(hemi_name_check(root, &name, 1), HEM_ERR_RANGE);
    assert_non_null(strstr(hem_last_error(), "rank 0"));
    assert_int_equal(hemi_name_check(root, &name, UINT32_MAX), HEM_ERR_RANGE);
}

static void another_jobs_name_is_refused(void **state) {
    hem_world *other = NULL;
    hemi_name name = library_name();

    (void)state;
    assert_int_equal(hem_world_open(NULL, &other), HEM_OK);
    assert_int_equal(hemi_name_check(other->root, &name, 0), HEM_ERR_RANGE);
    assert_int_equal(hem_world_close(other), HEM_OK);
}

/* Well made, but of memory that cannot be: the check does not rest on the sum alone. */
static void impossible_ranges_are_refused(void **state) {
    const hemi_arena *arena = &root->arena;
    uint64_t part = hemi_arena_part(arena, 0);
    const struct {
        enum hemi_name_kind kind;
        uint64_t where;
        uint64_t bytes;
    } bad[] = {
        {HEMI_NAME_LIBRARY, 0, 1},
        {HEMI_NAME_LIBRARY, arena->ranks_offset, 64},
        {HEMI_NAME_LIBRARY, part - 1, 1},
        {HEMI_NAME_LIBRARY, part, 8}, /* the heap's book-keeping */
        {HEMI_NAME_LIBRARY, part + HEMI_HEAP_META - 8, 16},
        {HEMI_NAME_LIBRARY, first_offset(), arena->part_bytes},
        {HEMI_NAME_LIBRARY, part + arena->part_bytes, 1},
        {HEMI_NAME_LIBRARY, first_offset(), UINT64_MAX},
        {HEMI_NAME_LIBRARY, UINT64_MAX, UINT64_MAX},
        {HEMI_NAME_LIBRARY, UINT64_MAX - 7, 8},
        {HEMI_NAME_OWN, UINT64_MAX, 1},
        {HEMI_NAME_OWN, 4096, UINT64_MAX},
        {(enum hemi_name_kind)0, first_offset(), 8},
        {(enum hemi_name_kind)3, first_offset(), 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hemi_name name = hemi_name_make(root, bad[i].kind, bad[i].where, bad[i].bytes);
        if (hemi_name_check(root, &name, 0) == HEM_OK)
            fail_msg("range %zu is believed", i);
    }
}

static void regions_are_copied_to_and_from(void **state) {
    hemi_name name = library_name();
    hemi_region region;
    unsigned char bytes[3 * HEMI_PAGE];
    unsigned char back[sizeof bytes];

    (void)state;
    assert_int_equal(hemi_region_attach(root, &name, 0, &region), HEM_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + 1);
    assert_int_equal(hemi_region_put(&region, 13, bytes, sizeof bytes), HEM_OK);
    assert_int_equal(region.mapped[12], 0);
    assert_int_equal(region.mapped[13 + sizeof bytes], 0);
    assert_int_equal(hemi_region_get(&region, 13, back, sizeof back), HEM_OK);
    assert_memory_equal(bytes, back, sizeof bytes);
    assert_int_equal(hemi_region_put(&region, PAGES * HEMI_PAGE, NULL, 0), HEM_OK);
    assert_int_equal(hemi_region_get(&region, PAGES * HEMI_PAGE, NULL, 0), HEM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transport_is_whole),
        cmocka_unit_test(the_best_route_is_taken),
        cmocka_unit_test(a_good_name_is_believed),
        cmocka_unit_test(every_changed_byte_of_a_name_is_refused),
        cmocka_unit_test(another_ranks_name_is_refused),
        cmocka_unit_test(another_jobs_name_is_refused),
        cmocka_unit_test(impossible_ranges_are_refused),
        cmocka_unit_test(regions_are_copied_to_and_from),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
