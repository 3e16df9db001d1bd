#include "transport/transport.h"

#include "base/testing.h"
#include "core/heap.h"

#include <hem/memory.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BYTES 10000u

static hem_world *world;

static int set_up(void **state) {
    hem_world_options options = {.struct_size = sizeof options, .arena_bytes = 16u << 20};
    (void)state;
    return hem_world_open(&options, &world) == HEM_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    return hem_world_close(world) == HEM_OK ? 0 : -1;
}

static uint64_t used(void) {
    return hemi_heap_used(&world->root->arena, world->root->platform, 0);
}

static void what_is_allocated_is_zero_and_freed(void **state) {
    uint64_t before = used();

    (void)state;
    for (int i = 0; i < 200; i++) {
        hem_memory *memory = NULL;
        assert_int_equal(hem_memory_alloc(world, BYTES, &memory), HEM_OK);
        const unsigned char *bytes = hem_memory_address(memory);
        assert_int_equal((uintptr_t)bytes % 4096, 0);
        assert_int_equal(hem_memory_size(memory), BYTES);
        for (size_t k = 0; k < BYTES; k++)
            assert_int_equal(bytes[k], 0);
        memset(hem_memory_address(memory), 0xaa, BYTES);
        assert_int_equal(hem_memory_free(memory), HEM_OK);
    }
    assert_int_equal(used(), before);
}

static void nothing_is_a_size(void **state) {
    hem_memory *memory = NULL;
    unsigned char byte = 0;

    (void)state;
    assert_int_equal(hem_memory_alloc(world, 0, &memory), HEM_OK);
    assert_int_equal(hem_memory_size(memory), 0);
    assert_int_equal(hem_memory_write(memory, 0, &byte, 0), HEM_OK);
    assert_int_equal(hem_memory_write(memory, 0, &byte, 1), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_free(memory), HEM_OK);
    assert_int_equal(hem_memory_register(world, NULL, 0, &memory), HEM_OK);
    assert_int_equal(hem_memory_free(memory), HEM_OK);
}

static void too_much_is_refused_and_leaks_nothing(void **state) {
    hem_memory *memory = NULL;
    uint64_t before = used();

    (void)state;
    assert_int_equal(hem_memory_alloc(world, 1ull << 40, &memory), HEM_ERR_MEMORY);
    assert_int_equal(hem_memory_alloc(world, SIZE_MAX, &memory), HEM_ERR_MEMORY);
    assert_null(memory);
    assert_int_equal(used(), before);
    assert_int_equal(hem_memory_register(world, &before, SIZE_MAX, &memory), HEM_ERR_RANGE);
}

static void null_is_an_error_not_a_fault(void **state) {
    hem_memory *memory = NULL;
    hem_memory_handle handle = {{0}};

    (void)state;
    assert_int_equal(hem_memory_alloc(NULL, 1, &memory), HEM_ERR_ARG);
    assert_int_equal(hem_memory_alloc(world, 1, NULL), HEM_ERR_ARG);
    assert_int_equal(hem_memory_register(NULL, &memory, 1, &memory), HEM_ERR_ARG);
    assert_int_equal(hem_memory_register(world, NULL, 1, &memory), HEM_ERR_ARG);
    assert_int_equal(hem_memory_export(NULL, &handle), HEM_ERR_ARG);
    assert_int_equal(hem_memory_import(NULL, 0, &handle, &memory), HEM_ERR_ARG);
    assert_int_equal(hem_memory_import(world, 0, NULL, &memory), HEM_ERR_ARG);
    assert_int_equal(hem_memory_import(world, 1, &handle, &memory), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_import(world, -1, &handle, &memory), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_read(NULL, 0, &handle, 1), HEM_ERR_ARG);
    assert_int_equal(hem_memory_free(NULL), HEM_OK);
    assert_null(hem_memory_address(NULL));
    assert_int_equal(hem_memory_size(NULL), 0);
    assert_int_equal(hem_memory_route(NULL), 0);
}

static void every_range_is_checked(void **state) {
    hem_memory *memory = NULL;
    unsigned char bytes[16] = "0123456789abcde";
    unsigned char back[16];

    (void)state;
    assert_int_equal(hem_memory_alloc(world, BYTES, &memory), HEM_OK);
    assert_int_equal(hem_memory_write(memory, BYTES - 16, bytes, 16), HEM_OK);
    assert_int_equal(hem_memory_read(memory, BYTES - 16, back, 16), HEM_OK);
    assert_memory_equal(bytes, back, 16);
    assert_int_equal(hem_memory_write(memory, BYTES - 15, bytes, 16), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_read(memory, BYTES, back, 1), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_read(memory, SIZE_MAX, back, 16), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_read(memory, SIZE_MAX - 7, back, 8), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_read(memory, 1, back, SIZE_MAX), HEM_ERR_RANGE);
    assert_int_equal(hem_memory_read(memory, 0, NULL, 1), HEM_ERR_ARG);
    assert_int_equal(hem_memory_read(memory, BYTES, NULL, 0), HEM_OK);
    assert_int_equal(hem_memory_free(memory), HEM_OK);
}

static void what_is_exported_can_be_imported(void **state) {
    hem_memory *memory = NULL;
    hem_memory *again = NULL;
    hem_memory_handle handle;

    (void)state;
    assert_int_equal(hem_memory_alloc(world, BYTES, &memory), HEM_OK);
    assert_int_equal(hem_memory_export(memory, &handle), HEM_OK);
    assert_int_equal(hem_memory_import(world, 0, &handle, &again), HEM_OK);
    assert_ptr_equal(hem_memory_address(again), hem_memory_address(memory));
    assert_int_equal(hem_memory_size(again), BYTES);
    assert_int_equal(hem_memory_export(again, &handle), HEM_ERR_ARG);
    uint64_t before = used();
    assert_int_equal(hem_memory_free(again), HEM_OK);
    assert_int_equal(used(), before); /* what is imported is not ours to free */
    assert_int_equal(hem_memory_free(memory), HEM_OK);
}

/* Changed on the way: refused, or the change was in bytes that mean nothing. */
static void a_changed_handle_is_refused_or_harmless(void **state) {
    hem_memory *memory = NULL;
    hem_memory_handle good;

    (void)state;
    assert_int_equal(hem_memory_alloc(world, BYTES, &memory), HEM_OK);
    assert_int_equal(hem_memory_export(memory, &good), HEM_OK);
    for (size_t bit = 0; bit < 8 * sizeof good; bit++) {
        hem_memory_handle bad = good;
        hem_memory *again = NULL;
        ((unsigned char *)&bad)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (hem_memory_import(world, 0, &bad, &again) != HEM_OK) {
            assert_null(again);
            continue;
        }
        assert_ptr_equal(hem_memory_address(again), hem_memory_address(memory));
        assert_int_equal(hem_memory_size(again), BYTES);
        assert_int_equal(hem_memory_free(again), HEM_OK);
    }
    assert_int_equal(hem_memory_free(memory), HEM_OK);
}

static void handles_outlive_their_world(void **state) {
    hem_world *short_lived = NULL;
    hem_memory *memory = NULL;
    hem_memory *own = NULL;
    unsigned char byte = 1;

    (void)state;
    assert_int_equal(hem_world_open(NULL, &short_lived), HEM_OK);
    assert_int_equal(hem_memory_alloc(short_lived, BYTES, &memory), HEM_OK);
    assert_int_equal(hem_memory_register(short_lived, &byte, 1, &own), HEM_OK);
    assert_int_equal(hem_world_close(short_lived), HEM_OK);
    assert_null(hem_memory_address(memory));
    assert_int_equal(hem_memory_read(memory, 0, &byte, 1), HEM_ERR_CLOSED);
    assert_int_equal(hem_memory_write(own, 0, &byte, 1), HEM_ERR_CLOSED);
    assert_int_equal(hem_memory_free(memory), HEM_ERR_CLOSED);
    assert_int_equal(hem_memory_free(own), HEM_ERR_CLOSED);
}

/* Two ranks: what rank 0 exports rank 1 reads and writes; after a death it is told so. */
static hem_memory_handle passed[2];

static int share(hem_world *w, void *arg) {
    int me = hem_world_rank(w);
    hem_memory *mine = NULL;
    hem_memory *theirs = NULL;
    uint64_t value = 40 + (uint64_t)me;
    uint32_t *met = arg;
    RANK_CHECK(hem_memory_alloc(w, BYTES, &mine) == HEM_OK);
    RANK_CHECK(hem_memory_write(mine, 8, &value, sizeof value) == HEM_OK);
    RANK_CHECK(hem_memory_export(mine, &passed[me]) == HEM_OK);
    hemi_add32_acq_rel(met, 1);
    while (hemi_load32_acquire(met) < 2)
        w->root->platform->yield(NULL);
    RANK_CHECK(hem_memory_import(w, me, &passed[1 - me], &theirs) == HEM_ERR_RANGE);
    RANK_CHECK(hem_memory_import(w, 1 - me, &passed[1 - me], &theirs) == HEM_OK);
    RANK_CHECK(hem_memory_read(theirs, 8, &value, sizeof value) == HEM_OK);
    RANK_CHECK(value == 40 + (uint64_t)(1 - me));
    hemi_add32_acq_rel(met, 1);
    while (hemi_load32_acquire(met) < 4)
        w->root->platform->yield(NULL);
    if (me == 1)
        return 0; /* dead: it has not closed */
    while (hem_world_alive(w, 1) == 1)
        w->root->platform->yield(NULL);
    RANK_CHECK(hem_memory_read(theirs, 8, &value, sizeof value) == HEM_ERR_PEER);
    RANK_CHECK(*(uint64_t *)((char *)hem_memory_address(theirs) + 8) == 41);
    RANK_CHECK(hem_memory_import(w, 1, &passed[1], &theirs) == HEM_ERR_PEER);
    RANK_CHECK(hem_world_close(w) == HEM_ERR_PEER);
    RANK_CHECK(hem_memory_free(mine) == HEM_ERR_CLOSED);
    RANK_CHECK(hem_memory_free(theirs) == HEM_ERR_CLOSED);
    return 0;
}

static void ranks_share_memory_until_one_dies(void **state) {
    uint32_t met = 0;

    (void)state;
    assert_int_equal(hem_world_threads(2, share, &met, NULL), HEM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_allocated_is_zero_and_freed),
        cmocka_unit_test(nothing_is_a_size),
        cmocka_unit_test(too_much_is_refused_and_leaks_nothing),
        cmocka_unit_test(null_is_an_error_not_a_fault),
        cmocka_unit_test(every_range_is_checked),
        cmocka_unit_test(what_is_exported_can_be_imported),
        cmocka_unit_test(a_changed_handle_is_refused_or_harmless),
        cmocka_unit_test(handles_outlive_their_world),
        cmocka_unit_test(ranks_share_memory_until_one_dies),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
