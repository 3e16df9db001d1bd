/* Pinned memory of the library: cut out of chunks that are pinned once, and unpinned by the last. */
#include "device/testing.h"

#include "base/testing.h"

#include <hem/coll.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(10)
#define MANY  200

static hem_status run(int ranks, hem_rank_fn fn) {
    memset(&fake, 0, sizeof fake);
    return hem_world_threads(ranks, fn, NULL, NULL);
}

static unsigned char *at(const hem_world *world, const hemi_pinned *pinned) {
    return hemi_arena_at(&world->root->arena, pinned->offset);
}

static bool all_are(const unsigned char *bytes, uint64_t n, unsigned char value) {
    for (uint64_t i = 0; i < n; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* Pieces of many lengths: zeroed, apart from each other, and used again. */
static int cut(hem_world *world, void *arg) {
    hemi_root *root = world->root;
    hemi_pinned pieces[MANY];
    (void)arg;
    RANK_CHECK(hemi_device_use(root, &fake_module) == HEM_OK);
    memset(pieces, 0, sizeof pieces);
    for (uint32_t i = 0; i < 20 * MANY; i++) {
        hemi_pinned *p = &pieces[i * 7 % MANY];
        if (p->bytes > 0)
            RANK_CHECK(all_are(at(world, p), p->bytes, (unsigned char)(i * 7 % MANY)));
        hemi_device_pinned_free(root, p);
        RANK_CHECK(p->offset == 0);
        RANK_CHECK(hemi_device_pinned_alloc(root, 1 + i * 37 % 1000, p) == HEM_OK);
        RANK_CHECK(hemi_device_pinned_fits(root, root->rank, p) && p->offset % 256 == 0);
        RANK_CHECK(all_are(at(world, p), p->bytes, 0));
        memset(at(world, p), (int)(i * 7 % MANY), p->bytes);
    }
    /* At most 200 KiB at a time: they fit into one chunk. */
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 1);
    hemi_pinned large = {0};
    RANK_CHECK(hemi_device_pinned_alloc(root, 1u << 20, &large) == HEM_OK);
    RANK_CHECK(large.chunk_bytes == 1u << 20 && hemi_load32_acquire(&fake.pinned) == 2);
    hemi_device_pinned_free(root, &large);
    RANK_CHECK(hemi_device_pinned_alloc(root, 1u << 20, &large) == HEM_OK);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 2);
    return hem_world_close(world);
}

static void pieces_are_cut_out_of_chunks(void **state) {
    (void)state;
    assert_int_equal(run(1, cut), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

static int refuse(hem_world *world, void *arg) {
    hemi_root *root = world->root;
    hemi_pinned good = {0};
    void *seen = NULL;
    (void)arg;
    RANK_CHECK(hemi_device_use(root, &fake_module) == HEM_OK);
    RANK_CHECK(hemi_device_pinned_alloc(root, 512, &good) == HEM_OK);
    hemi_pinned bad[7] = {good, good, good, good, good, good, good};
    bad[0].offset = good.chunk + good.chunk_bytes;
    bad[1].offset = good.chunk - 256;
    bad[2].bytes = good.chunk_bytes + 1;
    bad[3].chunk_bytes *= 2;
    bad[4].chunk = bad[4].offset = 0;
    bad[5].offset += 8;
    bad[6].bytes = UINT64_MAX;
    for (int i = 0; i < 7; i++) {
        RANK_CHECK(!hemi_device_pinned_fits(root, root->rank, &bad[i]));
        RANK_CHECK(hemi_device_pinned_see(root, root->rank, &bad[i], &seen) == HEM_ERR_MISMATCH);
    }
    RANK_CHECK(hemi_device_pinned_see(root, root->rank, &good, &seen) == HEM_OK);
    RANK_CHECK(seen == at(world, &good));
    /* It is not of the other rank. */
    RANK_CHECK(!hemi_device_pinned_fits(root, 1 - root->rank, &good));
    return hem_world_close(world);
}

static void what_peers_say_is_checked(void **state) {
    (void)state;
    assert_int_equal(run(2, refuse), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

static hemi_pinned shown; /* of rank 1, before all meet */
static uint32_t dead;     /* the device of rank 1 is closed */

/* Rank 1 dies; what it has pinned is unpinned by rank 0, which sees it until then. */
static int inherit(hem_world *world, void *arg) {
    hemi_root *root = world->root;
    uint64_t field[4];
    void *seen = NULL;
    (void)arg;
    RANK_CHECK(hemi_device_use(root, &fake_module) == HEM_OK);
    if (root->rank == 1)
        RANK_CHECK(hemi_device_pinned_alloc(root, 64, &shown) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    RANK_CHECK(hemi_device_pinned_see(root, 1, &shown, &seen) == HEM_OK);
    RANK_CHECK(seen == at(world, &shown));
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    if (root->rank == 1)
        return 0;
    for (int i = 0; i < 10000 && hemi_load32_acquire(&fake.closed) == 0; i++)
        world->root->platform->nap(world->root->platform->ctx, 1000000);
    RANK_CHECK(hemi_load32_acquire(&fake.closed) == 1);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 2);
    /* The caller's own goes at once. */
    memset(field, 0, sizeof field);
    RANK_CHECK(hemi_device_pin(root, field, sizeof field, false, &seen) == HEM_OK && seen == field);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 3);
    hemi_device_unpin(root, field, sizeof field);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 2);
    hemi_store32_release(&dead, 1);
    return hem_world_close(world) == HEM_ERR_PEER ? 0 : 1;
}

static void the_last_unpins_all(void **state) {
    (void)state;
    assert_int_equal(run(2, inherit), HEM_OK);
    assert_int_equal(dead, 1);
    assert_int_equal(fake.pinned, 0);
    assert_int_equal(fake.closed, 2);
}

static uint64_t left[8]; /* a field of rank 1, which dies with it shown */

static int leave_field(hem_world *world, void *arg) {
    hemi_root *root = world->root;
    void *seen = NULL;
    (void)arg;
    RANK_CHECK(hemi_device_use(root, &fake_module) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    if (root->rank == 1) {
        RANK_CHECK(hemi_device_pin(root, left, sizeof left, false, &seen) == HEM_OK);
        hemi_liveness_ended(&root->arena, root->platform, 1, 255);
        hemi_device_unpin(root, left, sizeof left);
        RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 1);
        return 0;
    }
    for (int i = 0; i < 10000 && hemi_load32_acquire(&fake.closed) == 0; i++)
        root->platform->nap(root->platform->ctx, 1000000);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 1);
    /* Other memory may be there by now: what was left is unpinned first. */
    RANK_CHECK(hemi_device_pin(root, &left[4], 8, true, &seen) == HEM_OK);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 1);
    hemi_device_unpin(root, &left[4], 8);
    RANK_CHECK(hemi_load32_acquire(&fake.pinned) == 0);
    return hem_world_close(world) == HEM_ERR_PEER ? 0 : 1;
}

static void fields_of_the_dead_make_way(void **state) {
    (void)state;
    assert_int_equal(run(2, leave_field), HEM_OK);
    assert_int_equal(fake.pinned, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_cut_out_of_chunks),
        cmocka_unit_test(what_peers_say_is_checked),
        cmocka_unit_test(the_last_unpins_all),
        cmocka_unit_test(fields_of_the_dead_make_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
