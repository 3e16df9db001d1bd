#include "core/heap.h"

#include "base/testing.h"
#include "core/liveness.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB        (1ull << 20)
#define PART       (64 * MIB)
#define PAGES      (PART / HEMI_PAGE)
#define RANK       1
#define OPERATIONS (TESTING_SANITIZED ? 30000 : 100000)
#define HELD_MAX   512

static const hemi_platform *platform;
static hemi_arena arena;

static hem_status alloc(uint64_t bytes, hemi_heap_kind kind, uint64_t *offset_p) {
    return hemi_heap_alloc(&arena, platform, RANK, bytes, kind, offset_p);
}

static void give(uint64_t offset, uint64_t cache) {
    hemi_heap_free(&arena, platform, RANK, offset, cache);
}

static uint64_t used(void) {
    return hemi_heap_used(&arena, platform, RANK);
}

static uint64_t blocks_bytes(void) {
    struct stat file;
    assert_int_equal(fstat(arena.fd, &file), 0);
    return (uint64_t)file.st_blocks * 512;
}

static int fresh_arena(void **state, uint64_t reserve) {
    hemi_arena_plan plan = {
        .ranks = 3, .kind = HEMI_KIND_THREADS, .part_bytes = PART, .reserve_bytes = reserve};
    (void)state;
    platform = hemi_platform_real();
    if (hemi_arena_make(&plan, platform, &arena) != HEM_OK)
        return -1;
    return hemi_heap_open(&arena, platform, RANK) == HEM_OK ? 0 : -1;
}

static int set_up(void **state) {
    return fresh_arena(state, 0);
}

static int set_up_with_reserve(void **state) {
    return fresh_arena(state, 4 * MIB);
}

static int tear_down(void **state) {
    (void)state;
    hemi_arena_unmap(&arena);
    return 0;
}

static bool all_bytes_are(uint64_t offset, uint64_t bytes, unsigned char value) {
    const unsigned char *at = hemi_arena_at(&arena, offset);
    return at[0] == value && memcmp(at, at + 1, bytes - 1) == 0;
}

/* The largest piece there is: everything behind the book-keeping. */
static void expect_whole_part_free(void) {
    uint64_t offset = 0;
    assert_int_equal(used(), 0);
    assert_int_equal(alloc(PART - HEMI_HEAP_META, HEMI_HEAP_SPARSE, &offset), HEM_OK);
    assert_int_equal(offset, hemi_arena_part(&arena, RANK) + HEMI_HEAP_META);
    give(offset, 0);
    assert_int_equal(used(), 0);
}

/* What the test believes: which pages are given out, and what it holds. */
typedef struct held {
    uint64_t offset;
    uint64_t pages;
    unsigned char tag;
} held;

typedef struct model {
    uint64_t random;
    unsigned char page_used[PAGES];
    held held[HELD_MAX];
    size_t count;
    uint64_t pages;
} model;

static uint64_t random_pages(model *m) {
    switch (testing_random(&m->random) % 8) {
    case 0:
        return 1 + testing_random(&m->random) % 64;
    case 1:
        return 1 + testing_random(&m->random) % 16;
    default:
        return 1 + testing_random(&m->random) % 3;
    }
}

static void mark(model *m, const held *h, unsigned char before, unsigned char after) {
    uint64_t first = (h->offset - hemi_arena_part(&arena, RANK)) / HEMI_PAGE;
    assert_int_equal(h->offset % HEMI_PAGE, 0);
    assert_true(first >= HEMI_HEAP_META / HEMI_PAGE && first + h->pages <= PAGES);
    for (uint64_t i = first; i < first + h->pages; i++) {
        assert_int_equal(m->page_used[i], before);
        m->page_used[i] = after;
    }
}

static void take_one(model *m) {
    held h = {.pages = random_pages(m), .tag = (unsigned char)(1 + m->random % 255)};
    uint64_t cut = testing_random(&m->random) % HEMI_PAGE; /* sizes need not be whole pages */
    hemi_heap_kind kind = m->random % 4 == 0 ? HEMI_HEAP_SPARSE : HEMI_HEAP_RESERVED;
    assert_int_equal(alloc(h.pages * HEMI_PAGE - cut, kind, &h.offset), HEM_OK);
    mark(m, &h, 0, 1);
    assert_true(all_bytes_are(h.offset, h.pages * HEMI_PAGE, 0));
    memset(hemi_arena_at(&arena, h.offset), h.tag, h.pages * HEMI_PAGE);
    m->held[m->count++] = h;
    m->pages += h.pages;
}

static void give_one(model *m) {
    size_t i = testing_random(&m->random) % m->count;
    held h = m->held[i];
    assert_true(all_bytes_are(h.offset, h.pages * HEMI_PAGE, h.tag));
    mark(m, &h, 1, 0);
    give(h.offset, m->random % 3 == 0 ? 0 : 2 * MIB);
    m->held[i] = m->held[--m->count];
    m->pages -= h.pages;
}

static void random_use_matches_the_model(void **state) {
    model *m = calloc(1, sizeof *m);

    (void)state;
    assert_non_null(m);
    m->random = 20240731;
    for (int i = 0; i < OPERATIONS; i++) {
        /* Waves: grow for a while, then shrink. */
        size_t aim = i / 5000 % 2 == 0 ? HELD_MAX : HELD_MAX / 8;
        bool grow = m->count < aim ? testing_random(&m->random) % 4 != 0
                                   : testing_random(&m->random) % 4 == 0;
        if (m->count == 0 || (grow && m->count < HELD_MAX))
            take_one(m);
        else
            give_one(m);
        if (i % 1000 == 0)
            assert_int_equal(used(), m->pages * HEMI_PAGE);
    }
    while (m->count > 0)
        give_one(m);
    free(m);
    expect_whole_part_free();
}

static void sizes_are_rounded_up_to_pages(void **state) {
    uint64_t offset = 0;

    (void)state;
    assert_int_equal(alloc(0, HEMI_HEAP_RESERVED, &offset), HEM_OK);
    assert_int_equal(used(), HEMI_PAGE);
    give(offset, 0);
    assert_int_equal(alloc(HEMI_PAGE + 1, HEMI_HEAP_RESERVED, &offset), HEM_OK);
    assert_int_equal(used(), 2 * HEMI_PAGE);
    give(offset, 0);
}

static void too_much_is_refused(void **state) {
    static const uint64_t bad[] = {PART - HEMI_HEAP_META + 1, PART, PART + 1, UINT64_MAX,
                                   UINT64_MAX - 4094};
    uint64_t offset = 7;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(alloc(bad[i], HEMI_HEAP_RESERVED, &offset), HEM_ERR_MEMORY);
        assert_int_equal(alloc(bad[i], HEMI_HEAP_SPARSE, &offset), HEM_ERR_MEMORY);
        assert_non_null(strstr(hem_last_error(), "HEM_ARENA_SIZE"));
    }
    assert_int_equal(offset, 7);
    expect_whole_part_free();
}

/* Freed twice, or never allocated, or the middle of something. */
static void what_was_not_allocated_is_not_freed(void **state) {
    uint64_t a = 0;
    uint64_t b = 0;

    (void)state;
    assert_int_equal(alloc(4ull * HEMI_PAGE, HEMI_HEAP_RESERVED, &a), HEM_OK);
    assert_int_equal(alloc(4ull * HEMI_PAGE, HEMI_HEAP_RESERVED, &b), HEM_OK);
    give(a + HEMI_PAGE, 0);
    give(0, 0);
    give(UINT64_MAX, 0);
    assert_int_equal(used(), 8 * HEMI_PAGE);
    give(a, MIB);
    give(a, MIB);
    assert_int_equal(used(), 4 * HEMI_PAGE);
    give(b, MIB);
    expect_whole_part_free();
}

/* Fill the part with pieces of 1 MiB; returns how many fitted. */
static size_t fill_up(uint64_t *offsets) {
    size_t count = 0;
    while (alloc(MIB, HEMI_HEAP_SPARSE, &offsets[count]) == HEM_OK)
        count++;
    return count;
}

static void exhaustion_is_survived(void **state) {
    uint64_t offsets[PART / MIB + 1];
    uint64_t more = 0;
    size_t count = fill_up(offsets);

    (void)state;
    assert_int_equal(count, (PART - HEMI_HEAP_META) / MIB);
    for (size_t i = 0; i < count; i += 2)
        give(offsets[i], 0);
    assert_int_equal(alloc(2 * MIB, HEMI_HEAP_SPARSE, &more), HEM_ERR_MEMORY);
    for (size_t i = 0; i < count; i += 2)
        assert_int_equal(alloc(MIB, HEMI_HEAP_SPARSE, &offsets[i]), HEM_OK);
    assert_int_equal(used(), count * MIB);
    for (size_t i = 0; i < count; i++)
        give(offsets[i], 0);
    expect_whole_part_free();
}

static void what_is_cached_does_not_stand_in_the_way(void **state) {
    uint64_t offsets[16];
    uint64_t whole = 0;

    (void)state;
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(alloc(MIB, HEMI_HEAP_RESERVED, &offsets[i]), HEM_OK);
    for (size_t i = 0; i < 16; i++)
        give(offsets[15 - i], UINT64_MAX);
    memset(hemi_arena_at(&arena, offsets[7]), 0xee, MIB);
    /* Larger than what is cached, and than what is not: only all of it together is enough. */
    assert_int_equal(alloc(60 * MIB, HEMI_HEAP_SPARSE, &whole), HEM_OK);
    assert_true(all_bytes_are(whole, 20 * MIB, 0));
    give(whole, 0);
    expect_whole_part_free();
}

static void the_cache_keeps_to_its_limit(void **state) {
    uint64_t offsets[32];
    uint64_t start = blocks_bytes();

    (void)state;
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(alloc(MIB / 4, HEMI_HEAP_RESERVED, &offsets[i]), HEM_OK);
    assert_int_equal(blocks_bytes(), start + 8 * MIB);
    for (size_t i = 0; i < 32; i++)
        give(offsets[i], 2 * MIB);
    assert_int_equal(blocks_bytes(), start + 2 * MIB);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(alloc(MIB / 4, HEMI_HEAP_RESERVED, &offsets[i]), HEM_OK);
    assert_int_equal(blocks_bytes(), start + 2 * MIB); /* all from the cache */
    for (size_t i = 0; i < 8; i++)
        give(offsets[i], 0);
    assert_int_equal(blocks_bytes(), start);
}

static void the_reserve_is_used_first_and_is_clean(void **state) {
    uint64_t start = blocks_bytes();
    uint64_t a = 0;
    uint64_t b = 0;

    (void)state;
    assert_int_equal(alloc(3 * MIB, HEMI_HEAP_RESERVED, &a), HEM_OK);
    assert_int_equal(alloc(MIB, HEMI_HEAP_RESERVED, &b), HEM_OK);
    assert_int_equal(blocks_bytes(), start);
    assert_true(all_bytes_are(a, 3 * MIB, 0));
    memset(hemi_arena_at(&arena, a), 0x11, 3 * MIB);
    give(a, UINT64_MAX);
    give(b, UINT64_MAX);
    assert_int_equal(alloc(4 * MIB, HEMI_HEAP_RESERVED, &a), HEM_OK);
    assert_true(all_bytes_are(a, 4 * MIB, 0));
    assert_int_equal(blocks_bytes(), start);
    give(a, 0);
    expect_whole_part_free();
}

/* More pieces than the book-keeping holds: the last ones fail, and nothing is overwritten. */
static void too_many_pieces_are_refused(void **state) {
    uint64_t *offsets = calloc(PAGES, sizeof *offsets);
    uint64_t extra = 0;
    size_t count = 0;

    (void)state;
    assert_non_null(offsets);
    while (count < PAGES && alloc(1, HEMI_HEAP_SPARSE, &offsets[count]) == HEM_OK) {
        memset(hemi_arena_at(&arena, offsets[count]), 0x5a, HEMI_PAGE);
        count++;
    }
    assert_in_range(count, 10000, PAGES - 1000);
    assert_non_null(strstr(hem_last_error(), "pieces"));
    give(offsets[5], 0);
    assert_int_equal(alloc(1, HEMI_HEAP_SPARSE, &extra), HEM_OK); /* an exact fit needs no entry */
    assert_int_equal(extra, offsets[5]);
    memset(hemi_arena_at(&arena, extra), 0x5a, HEMI_PAGE);
    for (size_t i = 0; i < count; i++)
        assert_true(all_bytes_are(offsets[i], HEMI_PAGE, 0x5a));
    for (size_t i = 0; i < count; i++)
        give(offsets[i], 0);
    free(offsets);
    expect_whole_part_free();
}

/* A descriptor through which nothing can be reserved stands for a machine without memory. */
static void no_memory_behind_it_is_an_error_and_no_leak(void **state) {
    hemi_arena poor = arena;
    uint64_t offset = 7;

    (void)state;
    poor.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(hemi_heap_alloc(&poor, platform, RANK, MIB, HEMI_HEAP_RESERVED, &offset),
                     HEM_ERR_MEMORY);
    assert_int_equal(offset, 7);
    close(poor.fd);
    assert_int_equal(used(), 0);
    assert_int_equal(alloc(MIB, HEMI_HEAP_RESERVED, &offset), HEM_OK);
    give(offset, 0);
    expect_whole_part_free();
}

static void opening_again_changes_nothing(void **state) {
    uint64_t offset = 0;

    (void)state;
    assert_int_equal(alloc(MIB, HEMI_HEAP_RESERVED, &offset), HEM_OK);
    assert_int_equal(hemi_heap_open(&arena, platform, RANK), HEM_OK);
    assert_int_equal(used(), MIB);
    give(offset, 0);
    expect_whole_part_free();
}

static void *use_from_thread(void *arg) {
    uint64_t random = (uint64_t)(uintptr_t)arg;
    unsigned char tag = (unsigned char)random;
    for (int i = 0; i < 2000; i++) {
        uint64_t bytes = (1 + testing_random(&random) % 4) * HEMI_PAGE;
        uint64_t offset = 0;
        if (alloc(bytes, HEMI_HEAP_RESERVED, &offset) != HEM_OK || !all_bytes_are(offset, bytes, 0))
            return "an allocation failed or was not zero";
        memset(hemi_arena_at(&arena, offset), tag, bytes);
        if (i % 16 == 0)
            platform->yield(platform->ctx);
        if (!all_bytes_are(offset, bytes, tag))
            return "somebody else wrote into it";
        give(offset, random % 2 == 0 ? 0 : MIB);
    }
    return NULL;
}

static void threads_of_a_rank_share_it(void **state) {
    pthread_t threads[4];

    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_from_thread, (void *)(i + 1)), 0);
    for (size_t i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    expect_whole_part_free();
}

/* A rank that died as a thread writes to what the others have freed, until it is buried. */
static void what_the_dying_may_touch_is_not_used_again(void **state) {
    static const hemi_heap_kind kinds[] = {HEMI_HEAP_RESERVED, HEMI_HEAP_SPARSE};
    const uint64_t bytes = PART / 4;
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        uint64_t first = 0;
        uint64_t second = 0;
        uint64_t third = 0;
        assert_int_equal(alloc(bytes, kinds[k], &first), HEM_OK);
        hemi_liveness_dying(&arena);
        hemi_liveness_dying(&arena);
        give(first, PART);
        assert_int_equal(used(), 0);
        give(first, PART); /* as if it were not there */
        assert_int_equal(alloc(bytes, kinds[k], &second), HEM_OK);
        assert_true(second >= first + bytes || first >= second + bytes);
        memset(hemi_arena_at(&arena, first), 1, 4096);
        hemi_liveness_buried(&arena);
        assert_int_equal(alloc(3 * bytes, kinds[k], &third), HEM_ERR_MEMORY);
        hemi_liveness_buried(&arena);
        give(second, 0);
        assert_int_equal(alloc(3 * bytes, kinds[k], &third), HEM_OK);
        assert_true(all_bytes_are(third, 3 * bytes, 0));
        give(third, 0);
        expect_whole_part_free();
    }
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(random_use_matches_the_model),
        FRESH(sizes_are_rounded_up_to_pages),
        FRESH(too_much_is_refused),
        FRESH(what_was_not_allocated_is_not_freed),
        FRESH(exhaustion_is_survived),
        FRESH(what_is_cached_does_not_stand_in_the_way),
        FRESH(the_cache_keeps_to_its_limit),
        cmocka_unit_test_setup_teardown(the_reserve_is_used_first_and_is_clean, set_up_with_reserve,
                                        tear_down),
        FRESH(too_many_pieces_are_refused),
        FRESH(no_memory_behind_it_is_an_error_and_no_leak),
        FRESH(opening_again_changes_nothing),
        FRESH(threads_of_a_rank_share_it),
        FRESH(what_the_dying_may_touch_is_not_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
