#include "core/flight.h"

#include <hem/window.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PART    (16ull << 20)
#define RANK    1
#define RECORDS 1000

static hemi_arena arena;

static int set_up(void **state) {
    hemi_arena_plan plan = {.ranks = 2, .kind = HEMI_KIND_THREADS, .part_bytes = PART};
    (void)state;
    return hemi_arena_make(&plan, hemi_platform_real(), &arena) == HEM_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    hemi_arena_unmap(&arena);
    return 0;
}

static uint64_t *word_in_arena(void) {
    return hemi_arena_at(&arena, hemi_arena_part(&arena, RANK) + 4096);
}

static void every_call_has_a_name(void **state) {
    (void)state;
    for (uint32_t call = 0; call < HEMI_CALL_COUNT; call++) {
        assert_non_null(hemi_call_name(call));
        for (uint32_t other = 0; other < call; other++)
            assert_string_not_equal(hemi_call_name(call), hemi_call_name(other));
    }
    assert_string_equal(hemi_call_name(HEMI_CALL_BARRIER), "hem_barrier");
    assert_non_null(hemi_call_name(HEMI_CALL_COUNT));
    assert_non_null(hemi_call_name(UINT32_MAX));
}

static void what_is_entered_is_read(void **state) {
    uint64_t *word = word_in_arena();
    hemi_flight_note note = {.call = HEMI_CALL_WAIT_SIGNAL_FROM,
                             .peer = 1,
                             .id = 2,
                             .compare = HEM_GE,
                             .wanted = 5,
                             .word = word,
                             .window = 3,
                             .world = 4,
                             .fingerprint = 6};
    hemi_flight copy;
    uint64_t seen = 0;

    (void)state;
    assert_false(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
    *word = 44;
    hemi_flight *flight = hemi_flight_enter(&arena, RANK, &note, 1000);
    assert_non_null(flight);
    assert_true(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
    assert_int_equal(seen, 44);
    assert_int_equal(copy.call, HEMI_CALL_WAIT_SIGNAL_FROM);
    assert_int_equal(copy.peer, 1);
    assert_int_equal(copy.id, 2);
    assert_int_equal(copy.compare, HEM_GE);
    assert_int_equal(copy.wanted, 5);
    assert_int_equal(copy.window, 3);
    assert_int_equal(copy.world, 4);
    assert_int_equal(copy.since_ns, 1000);
    assert_int_equal(copy.fingerprint, 6);
    assert_false(hemi_flight_read(&arena, 0, 0, &copy, &seen)); /* another rank's is its own */
    hemi_flight_update(&arena, flight, -1, NULL, 9);
    assert_true(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
    assert_int_equal(copy.peer, -1);
    assert_int_equal(copy.word, 0);
    assert_int_equal(copy.wanted, 9);
    assert_int_equal(seen, 0);
    hemi_flight_leave(flight);
    assert_false(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
}

static void there_are_only_so_many_slots(void **state) {
    hemi_flight_note note = {.call = HEMI_CALL_BARRIER};
    hemi_flight *flights[HEMI_FLIGHTS];
    hemi_flight copy;
    uint64_t seen = 0;

    (void)state;
    for (uint32_t i = 0; i < HEMI_FLIGHTS; i++) {
        note.id = i;
        flights[i] = hemi_flight_enter(&arena, RANK, &note, 0);
        assert_non_null(flights[i]);
    }
    assert_null(hemi_flight_enter(&arena, RANK, &note, 0));
    hemi_flight_update(&arena, NULL, 0, NULL, 0);
    hemi_flight_leave(NULL);
    for (uint32_t i = 0; i < HEMI_FLIGHTS; i++) {
        assert_true(hemi_flight_read(&arena, RANK, i, &copy, &seen));
        assert_int_equal(copy.id, i);
    }
    hemi_flight_leave(flights[2]);
    assert_ptr_equal(hemi_flight_enter(&arena, RANK, &note, 0), flights[2]);
    for (uint32_t i = 0; i < HEMI_FLIGHTS; i++)
        hemi_flight_leave(flights[i]);
}

/* An onlooker reads what a broken rank left there. */
static void a_word_outside_of_the_arena_is_not_followed(void **state) {
    hemi_flight *slot = &hemi_arena_rank(&arena, RANK)->flights[0];
    const uint64_t bad[] = {arena.total_bytes, arena.total_bytes - 7, 4097, UINT64_MAX,
                            UINT64_MAX - 7};
    hemi_flight copy;
    uint64_t seen = 1;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        *slot = (hemi_flight){.owner = 1, .call = HEMI_CALL_BARRIER, .word = bad[i]};
        assert_true(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
        assert_int_equal(seen, 0);
    }
    slot->word = arena.total_bytes - 8;
    assert_true(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
    memset(slot, 0, sizeof *slot);
}

/* The rank died in the middle of writing: what is there is better than nothing. */
static void a_half_written_record_is_shown(void **state) {
    hemi_flight *slot = &hemi_arena_rank(&arena, RANK)->flights[0];
    hemi_flight copy;
    uint64_t seen = 0;

    (void)state;
    *slot = (hemi_flight){.owner = 1, .seq = 3, .call = HEMI_CALL_BARRIER, .id = 8};
    assert_true(hemi_flight_read(&arena, RANK, 0, &copy, &seen));
    assert_int_equal(copy.id, 8);
    memset(slot, 0, sizeof *slot);
}

static void expect_text(const hemi_flight *flight, uint64_t seen, uint64_t now, const char *want) {
    char text[256];
    hemi_flight_describe(flight, seen, now, text, sizeof text);
    assert_string_equal(text, want);
}

static void people_can_read_it(void **state) {
    hemi_flight from = {.call = HEMI_CALL_WAIT_SIGNAL_FROM,
                        .peer = 1,
                        .id = 2,
                        .compare = HEM_GE,
                        .wanted = 5,
                        .word = 4096,
                        .window = 3,
                        .world = 7,
                        .since_ns = 1000000000};
    hemi_flight barrier = {
        .call = HEMI_CALL_BARRIER, .peer = -1, .id = 1, .world = 1, .window = 2, .since_ns = 5};
    hemi_flight open = {.call = HEMI_CALL_OPEN, .peer = 3, .world = 0};

    (void)state;
    expect_text(&from, 4, 3100000000,
                "hem_wait_signal_from: world 7, window 3, signal 2 from rank 1: is 4, wants >= 5, "
                "for 2.100 s");
    expect_text(&barrier, 0, 4,
                "hem_barrier: world 1, window 2, barrier 1 from all ranks, for 0.000 s");
    expect_text(&open, 0, 0, "hem_world_open: world 0 from rank 3, for 0.000 s");
    const char *const signs[] = {"==", "!=", "> ", ">=", "< ", "<="};
    for (uint32_t compare = HEM_EQ; compare <= HEM_LE; compare++) {
        char text[256];
        from.compare = compare;
        hemi_flight_describe(&from, 4, 0, text, sizeof text);
        char want[16] = "wants ";
        strncat(want, signs[compare - HEM_EQ], 2);
        assert_non_null(strstr(text, want));
    }
}

/* Everything as large as it can be, into every size of buffer. */
static void no_text_is_too_long(void **state) {
    hemi_flight all = {.call = HEMI_CALL_WAIT_SIGNAL_FROM, .peer = INT32_MAX, .word = 8};
    char text[400];

    (void)state;
    all.id = all.compare = UINT32_MAX;
    all.wanted = all.window = all.world = UINT64_MAX;
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, '#', sizeof text);
        hemi_flight_describe(&all, UINT64_MAX, UINT64_MAX, text, size);
        assert_true(strlen(text) < size);
        assert_int_equal(text[size], '#');
    }
    for (uint32_t call = 0; call <= HEMI_CALL_COUNT; call++) {
        all.call = call;
        hemi_flight_describe(&all, 0, 0, text, sizeof text);
        assert_non_null(strstr(text, hemi_call_name(call)));
    }
}

/* Every member of a record is made from one number, so that a mixture shows. */
static hemi_flight_note note_of(uint64_t n) {
    return (hemi_flight_note){.call = HEMI_CALL_BARRIER,
                              .peer = (int32_t)(n & 0xffff),
                              .id = (uint32_t)n,
                              .compare = (uint32_t)n,
                              .wanted = n,
                              .window = n,
                              .world = n,
                              .fingerprint = n};
}

static bool is_whole(const hemi_flight *copy) {
    uint64_t n = copy->wanted;
    return copy->peer == (int32_t)(n & 0xffff) && copy->id == (uint32_t)n &&
           copy->compare == (uint32_t)n && copy->window == n && copy->world == n &&
           copy->since_ns == n && copy->fingerprint == n;
}

static void *write_records(void *arg) {
    uint32_t *stop = arg;
    for (uint64_t n = 1; hemi_load32_acquire(stop) == 0; n++) {
        hemi_flight_note note = note_of(n);
        hemi_flight *flight = hemi_flight_enter(&arena, RANK, &note, n);
        hemi_flight_leave(flight);
    }
    return NULL;
}

/*
 * A record may be torn only if its writer was off its core for the whole of the reader's patience;
 * without the sequence number one in five is.
 */
static void an_onlooker_sees_whole_records(void **state) {
    uint32_t stop = 0;
    unsigned records = 0; /* different ones, so that the writer was at work meanwhile */
    unsigned torn = 0;
    uint64_t last = 0;
    pthread_t writer;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, write_records, &stop), 0);
    while (records < RECORDS) {
        hemi_flight copy;
        uint64_t value = 0;
        if (!hemi_flight_read(&arena, RANK, 0, &copy, &value) || copy.wanted == last) {
            hemi_platform_real()->yield(NULL);
            continue;
        }
        last = copy.wanted;
        records++;
        torn += !is_whole(&copy);
    }
    hemi_store32_release(&stop, 1);
    assert_int_equal(pthread_join(writer, NULL), 0);
    print_message("%u records read, %u torn\n", records, torn);
    assert_true(torn * 20 <= records);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_has_a_name),
        cmocka_unit_test(what_is_entered_is_read),
        cmocka_unit_test(there_are_only_so_many_slots),
        cmocka_unit_test(a_word_outside_of_the_arena_is_not_followed),
        cmocka_unit_test(a_half_written_record_is_shown),
        cmocka_unit_test(people_can_read_it),
        cmocka_unit_test(no_text_is_too_long),
        cmocka_unit_test(an_onlooker_sees_whole_records),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
