#include "core/arena.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB   (1ull << 20)
#define PART  (16 * MIB)
#define RANKS 3

static hemi_arena make(uint32_t ranks, uint64_t part, uint64_t reserve) {
    hemi_arena_plan plan = {.ranks = ranks,
                            .kind = HEMI_KIND_LAUNCHED,
                            .part_bytes = part,
                            .reserve_bytes = reserve,
                            .command = "a test"};
    hemi_arena arena;
    assert_int_equal(hemi_arena_make(&plan, hemi_platform_real(), &arena), HEM_OK);
    return arena;
}

static uint64_t blocks_bytes(const hemi_arena *arena) {
    struct stat file;
    assert_int_equal(fstat(arena->fd, &file), 0);
    return (uint64_t)file.st_blocks * 512;
}

static void what_is_made_is_what_was_asked_for(void **state) {
    hemi_arena arena = make(RANKS, PART, 0);
    const hemi_team *team = hemi_arena_at(&arena, arena.team_offset);

    (void)state;
    assert_int_equal(arena.ranks, RANKS);
    assert_int_equal(arena.kind, HEMI_KIND_LAUNCHED);
    assert_int_equal(arena.part_bytes, PART);
    assert_string_equal(arena.head->command, "a test");
    assert_int_equal(team->magic, HEMI_TEAM_MAGIC);
    assert_int_equal(team->size, RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(hemi_team_members((hemi_team *)team, RANKS)[r], r);
        assert_int_equal(hemi_arena_rank(&arena, r)->state, HEMI_STATE_NEW);
    }
    hemi_arena_unmap(&arena);
}

/* Nobody can pull it from under a rank, and no program that a rank starts inherits it. */
static void the_file_is_sealed_and_closed_on_exec(void **state) {
    hemi_arena arena = make(1, PART, 0);
    int seals = fcntl(arena.fd, F_GET_SEALS);

    (void)state;
    assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    assert_int_not_equal(ftruncate(arena.fd, 4096), 0);
    assert_true(fcntl(arena.fd, F_GETFD) & FD_CLOEXEC);
    hemi_arena_unmap(&arena);
}

static void a_second_mapping_sees_the_same(void **state) {
    hemi_arena arena = make(RANKS, PART, 0);
    hemi_arena second;
    hemi_arena onlooker;

    (void)state;
    assert_int_equal(hemi_arena_map(arena.fd, true, &second), HEM_OK);
    assert_int_equal(hemi_arena_map(arena.fd, false, &onlooker), HEM_OK);
    assert_int_not_equal(second.fd, arena.fd);
    assert_true(fcntl(second.fd, F_GETFD) & FD_CLOEXEC);
    hemi_arena_rank(&second, 2)->pid = 77;
    assert_int_equal(hemi_arena_rank(&arena, 2)->pid, 77);
    assert_int_equal(hemi_arena_rank(&onlooker, 2)->pid, 77);
    hemi_arena_unmap(&arena);
    assert_int_equal(hemi_arena_rank(&second, 2)->pid, 77);
    hemi_arena_unmap(&second);
    hemi_arena_unmap(&onlooker);
}

static void unmapping_nothing_is_harmless(void **state) {
    hemi_arena arena = {.fd = -1};

    (void)state;
    hemi_arena_unmap(&arena);
    arena = make(1, PART, 0);
    hemi_arena_unmap(&arena);
    hemi_arena_unmap(&arena);
}

/* The members of the head on which addresses depend, and kinds of which there is none. */
#define FIELD(name) offsetof(hemi_arena_head, name), sizeof(((hemi_arena_head *)NULL)->name)

static void every_flipped_bit_of_the_layout_is_refused(void **state) {
    static const struct {
        size_t offset;
        size_t bytes;
    } fields[] = {
        {FIELD(magic)},        {FIELD(version)},     {FIELD(total_bytes)},  {FIELD(ranks)},
        {FIELD(ranks_offset)}, {FIELD(team_offset)}, {FIELD(parts_offset)}, {FIELD(part_bytes)},
    };
    hemi_arena arena = make(RANKS, PART, 8ull * 4096);

    (void)state;
    assert_null(hemi_arena_check(arena.head, arena.total_bytes));
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
        for (size_t bit = 0; bit < 8 * fields[f].bytes; bit++) {
            hemi_arena_head head = *arena.head;
            ((unsigned char *)&head)[fields[f].offset + bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_non_null(hemi_arena_check(&head, arena.total_bytes));
            /* Nor when the file is as long as the head then says. */
            if (head.total_bytes != arena.total_bytes)
                assert_non_null(hemi_arena_check(&head, head.total_bytes));
        }
    hemi_arena_unmap(&arena);
}

static void an_unknown_kind_is_refused(void **state) {
    static const uint32_t bad[] = {0, HEMI_KIND_ALONE + 1, UINT32_MAX};
    hemi_arena arena = make(RANKS, PART, 0);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hemi_arena_head head = *arena.head;
        head.kind = bad[i];
        assert_non_null(hemi_arena_check(&head, arena.total_bytes));
    }
    hemi_arena_unmap(&arena);
}

static void a_reserve_that_cannot_be_is_refused(void **state) {
    static const uint64_t bad[] = {1, 4095, 4097, PART / 2 + 4096, UINT64_MAX, UINT64_MAX - 4095};
    hemi_arena arena = make(RANKS, PART, 0);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hemi_arena_head head = *arena.head;
        head.reserve_bytes = bad[i];
        assert_non_null(hemi_arena_check(&head, arena.total_bytes));
    }
    hemi_arena_unmap(&arena);
}

static void a_file_of_another_length_is_refused(void **state) {
    hemi_arena arena = make(RANKS, PART, 0);

    (void)state;
    assert_non_null(hemi_arena_check(arena.head, arena.total_bytes - 1));
    assert_non_null(hemi_arena_check(arena.head, arena.total_bytes + 4096));
    assert_non_null(hemi_arena_check(arena.head, 0));
    assert_non_null(hemi_arena_check(arena.head, UINT64_MAX));
    hemi_arena_unmap(&arena);
}

/* What people read may be anything. */
static void what_is_only_for_people_is_not_judged(void **state) {
    hemi_arena arena = make(RANKS, PART, 0);
    hemi_arena_head head = *arena.head;

    (void)state;
    head.job = ~head.job;
    head.start_ns = 0;
    head.maker_pid = UINT32_MAX;
    memset(head.command, 'x', sizeof head.command);
    assert_null(hemi_arena_check(&head, arena.total_bytes));
    hemi_arena_unmap(&arena);
}

/* Copy a good head into a file of `bytes` bytes and try to map it. */
static hem_status map_copy(uint64_t bytes, bool sealed) {
    hemi_arena arena = make(1, PART, 0);
    hemi_arena copy;
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    size_t part = bytes < sizeof *arena.head ? (size_t)bytes : sizeof *arena.head;
    assert_int_equal(pwrite(fd, arena.head, part, 0), part);
    if (sealed)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    hem_status status = hemi_arena_map(fd, true, &copy);
    if (status == HEM_OK)
        hemi_arena_unmap(&copy);
    close(fd);
    hemi_arena_unmap(&arena);
    return status;
}

static void only_an_arena_can_be_mapped(void **state) {
    hemi_arena arena = make(1, PART, 0);
    uint64_t right = arena.total_bytes;
    int pipes[2];

    (void)state;
    hemi_arena_unmap(&arena);
    assert_int_equal(map_copy(right, true), HEM_OK);
    assert_int_equal(map_copy(0, true), HEM_ERR_ARG);
    assert_int_equal(map_copy(100, true), HEM_ERR_ARG);
    assert_int_equal(map_copy(right - 4096, true), HEM_ERR_ARG);
    assert_int_equal(map_copy(right + 4096, true), HEM_ERR_ARG);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(hemi_arena_map(pipes[0], true, &arena), HEM_ERR_ARG);
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(hemi_arena_map(pipes[0], true, &arena), HEM_ERR_SYSTEM);
    assert_int_equal(hemi_arena_map(-1, true, &arena), HEM_ERR_SYSTEM);
}

/* Without the seal, whoever has the file can shorten it, and every rank gets SIGBUS. */
static void a_file_that_can_shrink_is_refused(void **state) {
    hemi_arena arena = make(1, PART, 0);
    uint64_t right = arena.total_bytes;

    (void)state;
    hemi_arena_unmap(&arena);
    assert_int_not_equal(map_copy(right, false), HEM_OK);
}

static void many_ranks_cost_little(void **state) {
    hemi_arena arena = make(1000, 1024 * MIB, 0);
    hemi_arena second;

    (void)state;
    assert_int_equal(hemi_arena_map(arena.fd, true, &second), HEM_OK);
    /* A block and a cell, once per rank and not per pair of ranks. */
    assert_true(blocks_bytes(&arena) <= 1000ull * 2 * HEMI_PAGE);
    hemi_arena_unmap(&second);
    hemi_arena_unmap(&arena);
}

static void memory_is_reserved_and_given_back(void **state) {
    hemi_arena arena = make(1, PART, 0);
    uint64_t offset = hemi_arena_part(&arena, 0) + MIB;
    uint64_t before = blocks_bytes(&arena);

    (void)state;
    assert_int_equal(hemi_arena_reserve(&arena, offset, MIB), HEM_OK);
    assert_int_equal(blocks_bytes(&arena), before + MIB);
    memset(hemi_arena_at(&arena, offset), 0xcd, MIB);
    hemi_arena_release(&arena, offset, MIB);
    assert_int_equal(blocks_bytes(&arena), before);
    const unsigned char *bytes = hemi_arena_at(&arena, offset);
    assert_int_equal(bytes[0] | bytes[MIB / 2] | bytes[MIB - 1], 0);
    assert_int_equal(hemi_arena_reserve(&arena, arena.total_bytes, 4096), HEM_ERR_MEMORY);
    hemi_arena_unmap(&arena);
}

/* Where holes cannot be punched, the pages must still read as zero. */
static void what_cannot_be_given_back_is_cleared(void **state) {
    hemi_arena arena = make(1, PART, 0);
    hemi_arena mute = arena;
    uint64_t offset = hemi_arena_part(&arena, 0) + MIB;
    unsigned char *bytes = hemi_arena_at(&arena, offset);

    (void)state;
    memset(bytes, 0xcd, 8192);
    mute.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    hemi_arena_release(&mute, offset, 8192);
    for (size_t i = 0; i < 8192; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(hemi_arena_reserve(&mute, offset, 8192), HEM_ERR_MEMORY);
    close(mute.fd);
    hemi_arena_unmap(&arena);
}

static void the_reserve_is_there_from_the_start(void **state) {
    hemi_arena plain = make(RANKS, PART, 0);
    hemi_arena rich = make(RANKS, PART, MIB + 1);
    hemi_arena greedy = make(RANKS, PART, UINT64_MAX / 2);

    (void)state;
    assert_int_equal(rich.reserve_bytes, MIB + 4096);
    assert_int_equal(blocks_bytes(&rich), blocks_bytes(&plain) + RANKS * (MIB + 4096));
    assert_int_equal(greedy.reserve_bytes, PART / 2);
    hemi_arena_unmap(&plain);
    hemi_arena_unmap(&rich);
    hemi_arena_unmap(&greedy);
}

static void ranges_are_inside_of_one_part(void **state) {
    hemi_arena arena = make(RANKS, PART, 0);
    uint64_t start = hemi_arena_part(&arena, 1);

    (void)state;
    assert_true(hemi_arena_in_part(&arena, 1, start + MIB, PART - MIB));
    assert_true(hemi_arena_in_part(&arena, 1, start + PART, 0));
    assert_false(hemi_arena_in_part(&arena, 1, start + MIB, PART - MIB + 1));
    assert_false(hemi_arena_in_part(&arena, 1, start - 1, 1));
    assert_false(hemi_arena_in_part(&arena, 1, start + PART, 1));
    assert_false(hemi_arena_in_part(&arena, 1, start + MIB, UINT64_MAX));
    assert_false(hemi_arena_in_part(&arena, 1, UINT64_MAX, 2));
    assert_false(hemi_arena_in_part(&arena, RANKS, start + RANKS * PART, 0));
    assert_false(hemi_arena_in_part(&arena, UINT32_MAX, start, 0));
    hemi_arena_unmap(&arena);
}

/* A handle that names the heap's own book-keeping would let a put destroy it. */
static void the_book_keeping_of_the_heap_is_nobodys_memory(void **state) {
    hemi_arena arena = make(RANKS, PART, 0);
    uint64_t start = hemi_arena_part(&arena, 1);

    (void)state;
    assert_true(hemi_arena_in_part(&arena, 1, start + HEMI_HEAP_META, 4096));
    assert_false(hemi_arena_in_part(&arena, 1, start, 4096));
    assert_false(hemi_arena_in_part(&arena, 1, start + HEMI_HEAP_META - 1, 4096));
    hemi_arena_unmap(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_made_is_what_was_asked_for),
        cmocka_unit_test(the_file_is_sealed_and_closed_on_exec),
        cmocka_unit_test(a_second_mapping_sees_the_same),
        cmocka_unit_test(unmapping_nothing_is_harmless),
        cmocka_unit_test(every_flipped_bit_of_the_layout_is_refused),
        cmocka_unit_test(an_unknown_kind_is_refused),
        cmocka_unit_test(a_reserve_that_cannot_be_is_refused),
        cmocka_unit_test(a_file_of_another_length_is_refused),
        cmocka_unit_test(what_is_only_for_people_is_not_judged),
        cmocka_unit_test(only_an_arena_can_be_mapped),
        cmocka_unit_test(a_file_that_can_shrink_is_refused),
        cmocka_unit_test(many_ranks_cost_little),
        cmocka_unit_test(memory_is_reserved_and_given_back),
        cmocka_unit_test(what_cannot_be_given_back_is_cleared),
        cmocka_unit_test(the_reserve_is_there_from_the_start),
        cmocka_unit_test(ranges_are_inside_of_one_part),
        cmocka_unit_test(the_book_keeping_of_the_heap_is_nobodys_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
