/* What kernels say they wait for: who looks while they write sees one note or the other, and what makes no
 * sense is not followed. */
#include "device/notes.h"

#include <hem/device/note.h>
#include <hem/window.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PART    (16ull << 20)
#define RANKS   2
#define OWNER   1
#define SLOT    3
#define MS      1000000ull
#define NOW     (1000ull * MS)
#define RECORDS 500000

/* The clock of kernels on the host. */
uint64_t hem_host_now_ns(void) {
    const hemi_platform *platform = hemi_platform_real();
    return platform->now(platform->ctx);
}

static hemi_arena arena;
static uint32_t *words;
static uint64_t place;
static uint32_t ended; /* writers */

static hemd_note *note_of(uint32_t *trouble) {
    return (hemd_note *)(void *)&trouble[HEMD_TROUBLE_NOTE];
}

/* A world of both ranks, in which they have each other's numbers. */
static int set_up(void **state) {
    hemi_arena_plan plan = {.ranks = RANKS, .kind = HEMI_KIND_THREADS, .part_bytes = PART};
    (void)state;
    if (hemi_arena_make(&plan, hemi_platform_real(), &arena) != HEM_OK)
        return -1;
    place = hemi_arena_part(&arena, OWNER) + PART / 2;
    words = hemi_arena_at(&arena, place);
    *note_of(words) = (hemd_note){.world = 4, .object = 6, .size = RANKS};
    words[HEMD_TROUBLE_RANKS + RANKS] = 1;
    hemi_arena_rank(&arena, OWNER)->notes[SLOT] = place;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hemi_arena_unmap(&arena);
    return 0;
}

static hemd_want want_since(uint64_t since_ns) {
    hemd_want want = hemd_want_of(HEMD_WHAT_SIGNAL_FROM, 1, 2, HEM_GE, 5);
    want.seen = 4;
    want.since_ns = since_ns;
    return want;
}

static bool is_read(uint32_t before, hemi_flight *copy_p, uint64_t *seen_p) {
    return hemi_note_read(&arena, OWNER, SLOT, before, NOW, copy_p, seen_p);
}

static void what_is_written_is_read_until_it_changes_no_more(void **state) {
    hemd_want want = want_since(NOW);
    hemi_flight copy;
    uint64_t seen = 0;

    (void)state;
    assert_int_equal(hemi_note_seq(&arena, OWNER, SLOT), 0);
    assert_false(is_read(0, &copy, &seen));
    hemd_note_write(words, 0, &want, NOW + 3 * MS);
    assert_int_equal(hemi_note_seq(&arena, OWNER, SLOT), 2);
    assert_true(is_read(0, &copy, &seen));
    assert_false(is_read(2, &copy, &seen));
    assert_int_equal(copy.call, HEMI_CALL_KERNEL + HEMD_WHAT_SIGNAL_FROM);
    assert_int_equal(copy.peer, 0); /* of all ranks */
    assert_int_equal(copy.id, 2);
    assert_int_equal(copy.compare, HEM_GE);
    assert_int_equal(copy.wanted, 5);
    assert_int_equal(copy.world, 4);
    assert_int_equal(copy.window, 6);
    assert_int_equal(NOW - copy.since_ns, 3 * MS);
    assert_int_equal(seen, 4);

    char text[256];
    hemi_flight_describe(&copy, seen, NOW, text, sizeof text);
    assert_string_equal(text, "a kernel in hem_dev_wait_signal_from: world 4, window 6, signal 2 "
                              "from rank 0: is 4, wants >= 5, for 0.003 s");
}

/* A look of a kernel; the clock does not stand still meanwhile. */
static uint32_t look(uint64_t since_ns) {
    hemd_want want = want_since(since_ns);
    assert_int_equal(hemd_look_at_host(words, 1, RANKS, &want), HEM_OK);
    return hemi_note_seq(&arena, OWNER, SLOT);
}

static void only_long_waits_are_told_and_not_all_the_time(void **state) {
    (void)state;
    uint64_t begun = hemd_now_ns();
    uint32_t seq = look(begun);
    if (hemd_now_ns() - begun < HEMD_NOTE_NS)
        assert_int_equal(seq, 0); /* it has just begun */
    words[HEMD_TROUBLE_SEQ] = words[HEMD_TROUBLE_BEAT] = 0;
    begun = hemd_now_ns();
    assert_int_equal(look(begun - HEMD_NOTE_NS), 2);
    seq = look(0);
    if (hemd_now_ns() - begun < HEMD_NOTE_MS * MS / 2)
        assert_int_equal(seq, 2); /* just now */
    hemi_platform_real()->nap(NULL, (int64_t)(MS * 2 * HEMD_NOTE_MS));
    assert_int_equal(look(0), seq + 2);
    words[HEMD_TROUBLE_SEQ] = seq + 3; /* another one writes it */
    hemi_platform_real()->nap(NULL, (int64_t)(MS * 2 * HEMD_NOTE_MS));
    assert_int_equal(look(0), seq + 3);
}

static void who_looks_hears_of_trouble_and_tells_nothing(void **state) {
    hemd_want want = want_since(0);
    (void)state;
    words[HEMD_TROUBLE_SOME] = 1;
    words[HEMD_TROUBLE_RANKS] = (uint32_t)-HEM_ERR_PEER;
    assert_int_equal(hemd_look_at_host(words, 0, RANKS, &want), HEM_ERR_PEER);
    assert_int_equal(hemd_look_at_host(words, HEMD_ANYBODY, RANKS, &want), HEM_ERR_PEER);
    assert_int_equal(hemi_note_seq(&arena, OWNER, SLOT), 0);
    assert_int_equal(hemd_look_at_host(words, 1, RANKS, &want), HEM_OK);
    words[HEMD_TROUBLE_ALL] = (uint32_t)-HEM_ERR_REVOKED;
    assert_int_equal(hemd_look_at_host(words, HEMD_NOBODY, RANKS, &want), HEM_ERR_REVOKED);
}

/* An onlooker reads what a broken rank left there. */
static void what_makes_no_sense_is_not_followed(void **state) {
    uint64_t *named = &hemi_arena_rank(&arena, OWNER)->notes[SLOT];
    const uint64_t bad[] = {4096,
                            place + 4,
                            hemi_arena_part(&arena, 0) + PART / 2,
                            arena.total_bytes - 64,
                            arena.total_bytes,
                            UINT64_MAX - 63};
    const uint64_t worlds[] = {RANKS + 1, 1, 1ull << 62, UINT64_MAX};
    hemd_want want = want_since(0);
    hemi_flight copy;
    uint64_t seen = 0;

    (void)state;
    hemd_note_write(words, 0, &want, NOW);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        *named = bad[i];
        assert_int_equal(hemi_note_seq(&arena, OWNER, SLOT), 0);
        assert_false(is_read(0, &copy, &seen));
    }
    *named = place;
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        note_of(words)->size = worlds[i];
        assert_true(is_read(0, &copy, &seen));
        assert_int_equal(copy.peer, -1);
    }
    note_of(words)->size = RANKS;
    words[HEMD_TROUBLE_RANKS + RANKS + 1] = RANKS; /* no such rank */
    assert_true(is_read(0, &copy, &seen));
    assert_int_equal(copy.peer, -1);
    note_of(words)->what = 0;
    assert_false(is_read(0, &copy, &seen));
    note_of(words)->what = HEMD_WHAT_COUNT;
    assert_false(is_read(0, &copy, &seen));
}

/* Its process was killed in the middle of writing. */
static void a_half_written_note_is_not_shown(void **state) {
    hemd_want want = want_since(0);
    hemi_flight copy;
    uint64_t seen = 0;
    (void)state;
    hemd_note_write(words, 0, &want, NOW);
    words[HEMD_TROUBLE_SEQ] = 3;
    assert_false(is_read(0, &copy, &seen));
}

/* It looked before another one wrote, or while that one does. */
static void who_is_late_leaves_the_note_alone(void **state) {
    hemd_want first = want_since(0);
    hemd_want late = hemd_want_of(HEMD_WHAT_COUNTER, HEMD_ANYBODY, 9, HEM_GE, 11);
    hemi_flight copy;
    uint64_t seen = 0;
    (void)state;
    hemd_note_write(words, 0, &first, NOW);
    hemd_note_write(words, 0, &late, NOW);
    assert_int_equal(hemi_note_seq(&arena, OWNER, SLOT), 2);
    words[HEMD_TROUBLE_SEQ] = 3;
    hemd_note_write(words, 2, &late, NOW);
    assert_int_equal(hemi_note_seq(&arena, OWNER, SLOT), 3);
    words[HEMD_TROUBLE_SEQ] = 4;
    assert_true(is_read(0, &copy, &seen));
    assert_int_equal(copy.call, HEMI_CALL_KERNEL + HEMD_WHAT_SIGNAL_FROM);
    assert_int_equal(copy.wanted, 5);
}

/* Each writes notes whose members belong together. */
static void *write_many(void *arg) {
    for (uint64_t i = 1; i <= RECORDS; i++) {
        uint64_t n = 2 * i + (uintptr_t)arg;
        hemd_want want = hemd_want_of(HEMD_WHAT_SIGNAL, HEMD_ANYBODY, (uint32_t)n, HEM_GE, 3 * n);
        want.seen = 7 * n;
        hemd_note_write(words, hemd_load32_relaxed(&words[HEMD_TROUBLE_SEQ]) & ~1u, &want, NOW);
        for (uint32_t k = 0; k < i % 8; k++) /* the reader finds one whole now and then */
            hemi_pause();
    }
    hemi_add32_acq_rel(&ended, 1);
    return NULL;
}

static void members_belong_together(void **state) {
    pthread_t writers[2];
    uint32_t notes = 0;

    (void)state;
    for (uintptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_many, (void *)i), 0);
    for (bool over = false; !over;) {
        hemi_flight copy;
        uint64_t seen = 0;
        over = hemi_load32_acquire(&ended) == 2;
        if (!is_read(0, &copy, &seen))
            continue;
        notes++;
        assert_int_equal(copy.wanted, 3 * (uint64_t)copy.id);
        assert_int_equal(seen, 7 * (uint64_t)copy.id);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    assert_true(notes > 0);
    assert_int_equal(words[HEMD_TROUBLE_SEQ] % 2, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read_until_it_changes_no_more, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(only_long_waits_are_told_and_not_all_the_time, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_looks_hears_of_trouble_and_tells_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_half_written_note_is_not_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_late_leaves_the_note_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(members_belong_together, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
