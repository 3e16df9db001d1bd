#include "window/window.h"

#include "base/testing.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static hem_window_options options_of(const hem_buffer *buffers, size_t count) {
    return (hem_window_options){
        .struct_size = sizeof(hem_window_options), .buffers = buffers, .buffer_count = count};
}

/* Place and free; returns the status, and the bytes needed. */
static hem_status place(const hem_window_options *options, uint64_t *bytes) {
    hem_buffer *copy = NULL;
    hem_status status = hemi_buffers_place(options, &copy, bytes);
    if (status == HEM_OK)
        hemi_buffers_free(copy, options->buffer_count);
    else
        assert_null(copy);
    return status;
}

static void every_type_has_its_size(void **state) {
    static const struct {
        hem_dtype dtype;
        size_t bytes;
    } sizes[] = {
        {HEM_BYTE, 1}, {HEM_I8, 1},  {HEM_I16, 2},   {HEM_I32, 4},  {HEM_I64, 8},  {HEM_U8, 1},
        {HEM_U16, 2},  {HEM_U32, 4}, {HEM_U64, 8},   {HEM_F16, 2},  {HEM_BF16, 2}, {HEM_F32, 4},
        {HEM_F64, 8},  {HEM_C64, 8}, {HEM_C128, 16}, {HEM_BOOL, 1},
    };

    (void)state;
    assert_int_equal(COUNT(sizes), HEM_BOOL);
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_int_equal(hem_dtype_size(sizes[i].dtype), sizes[i].bytes);
    assert_int_equal(hem_dtype_size((hem_dtype)0), 0);
    assert_int_equal(hem_dtype_size((hem_dtype)(HEM_BOOL + 1)), 0);
    assert_int_equal(hem_dtype_size((hem_dtype)-1), 0);
}

static void buffers_lie_behind_each_other_aligned(void **state) {
    static const size_t aligns[] = {0, 1, 2, 8, 64, 256, 4096};
    const hem_buffer buffers[] = {{"a", HEM_U8, 3, 99},
                                  {"b", HEM_F64, 7, 99},
                                  {"none", HEM_C128, 0, 99},
                                  {"c", HEM_I16, 1, 99}};
    hem_window_options options = options_of(buffers, COUNT(buffers));

    (void)state;
    for (size_t i = 0; i < COUNT(aligns); i++) {
        hem_buffer *copy = NULL;
        uint64_t bytes = 0;
        uint64_t end = 0;
        size_t align = aligns[i] == 0 ? 64 : aligns[i];
        options.align = aligns[i];
        assert_int_equal(hemi_buffers_place(&options, &copy, &bytes), HEM_OK);
        for (size_t k = 0; k < COUNT(buffers); k++) {
            assert_int_equal(copy[k].offset % align, 0);
            assert_true(copy[k].offset >= end && copy[k].offset < end + align);
            end = copy[k].offset + copy[k].count * hem_dtype_size(copy[k].dtype);
            assert_string_equal(copy[k].name, buffers[k].name);
            assert_ptr_not_equal(copy[k].name, buffers[k].name);
        }
        assert_int_equal(bytes, end);
        hemi_buffers_free(copy, COUNT(buffers));
    }
}

static void they_must_fit_where_a_size_is_given(void **state) {
    const hem_buffer buffers[] = {{"a", HEM_U8, 1, 0}, {"b", HEM_U8, 36, 0}};
    hem_window_options options = options_of(buffers, 2);
    uint64_t bytes = 100;

    (void)state;
    assert_int_equal(place(&options, &bytes), HEM_OK);
    assert_int_equal(bytes, 100);
    bytes = 99;
    assert_int_equal(place(&options, &bytes), HEM_ERR_RANGE);
    assert_non_null(strstr(hem_last_error(), "100"));
    assert_int_equal(bytes, 99);
}

static void bad_buffers_are_refused(void **state) {
    char longer[300];
    const hem_buffer good = {"good", HEM_U8, 1, 0};
    const hem_buffer bad[] = {
        {NULL, HEM_U8, 1, 0},
        {"", HEM_U8, 1, 0},
        {longer, HEM_U8, 1, 0},
        {"good", HEM_F64, 1, 0},
        {"x", (hem_dtype)0, 1, 0},
        {"x", (hem_dtype)17, 1, 0},
        {"x", HEM_U8, SIZE_MAX, 0},
        {"x", HEM_F64, SIZE_MAX / 8, 0},
        {"x", HEM_F64, SIZE_MAX / 4, 0},
        {"x", HEM_C128, SIZE_MAX / 16 + 1, 0},
    };

    (void)state;
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i < COUNT(bad); i++) {
        hem_buffer buffers[] = {good, bad[i], {"last", HEM_U8, 64, 0}};
        hem_window_options options = options_of(buffers, 3);
        uint64_t bytes = 0;
        assert_int_not_equal(place(&options, &bytes), HEM_OK);
        assert_int_equal(bytes, 0);
        (void)hemi_window_fingerprint(&options); /* must not follow what was refused */
    }
}

static void bad_alignments_and_counts_are_refused(void **state) {
    static const size_t bad[] = {3, 63, 65, 8192, SIZE_MAX, (size_t)1 << 63};
    const hem_buffer buffer = {"a", HEM_U8, 1, 0};
    hem_window_options options = options_of(&buffer, 1);
    uint64_t bytes = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        options.align = bad[i];
        assert_int_equal(place(&options, &bytes), HEM_ERR_ARG);
    }
    options = options_of(NULL, 1);
    assert_int_equal(place(&options, &bytes), HEM_ERR_ARG);
    options = options_of(&buffer, SIZE_MAX);
    assert_int_equal(place(&options, &bytes), HEM_ERR_ARG);
    (void)hemi_window_fingerprint(&options);
    options = options_of(NULL, 0);
    assert_int_equal(place(&options, &bytes), HEM_OK);
    hemi_buffers_free(NULL, 3);
}

static void the_fingerprint_tells_what_must_agree(void **state) {
    const hem_buffer a[] = {{"a", HEM_U8, 1, 0}, {"b", HEM_F64, 2, 0}};
    const hem_buffer swapped[] = {a[1], a[0]};
    const hem_buffer renamed[] = {{"ab", HEM_U8, 1, 0}, {"b", HEM_F64, 2, 0}};
    const hem_buffer retyped[] = {{"a", HEM_I8, 1, 0}, {"b", HEM_F64, 2, 0}};
    const hem_buffer longer[] = {{"a", HEM_U8, 500, 0}, {"b", HEM_F64, 9, 0}};
    hem_window_options base = options_of(a, 2);
    uint64_t want = hemi_window_fingerprint(&base);
    hem_window_options other[8];

    (void)state;
    for (size_t i = 0; i < COUNT(other); i++)
        other[i] = base;
    other[0].buffers = swapped;
    other[1].buffers = renamed;
    other[2].buffers = retyped;
    other[3].buffer_count = 1;
    other[4].signals = 3;
    other[5].barriers = 3;
    other[6].counters = 3;
    other[7].memory = &base;
    for (size_t i = 0; i < COUNT(other); i++)
        assert_int_not_equal(hemi_window_fingerprint(&other[i]), want);
    base.buffers = longer;
    base.bytes = 77;
    base.timeout_ns = 5;
    assert_int_equal(hemi_window_fingerprint(&base), want); /* these may differ */
}

static size_t allocated(void) {
    return mallinfo2().uordblks;
}

/* Buffers that are fine in themselves, but more than the arena holds: nothing may be left. */
static void a_refused_window_leaves_nothing_behind(void **state) {
    char name[201];
    const hem_buffer buffer = {name, HEM_U8, 1ull << 45, 0};
    hem_window_options options = options_of(&buffer, 1);
    hem_world *world = NULL;
    hem_window *window = NULL;

    (void)state;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(hem_world_open(NULL, &world), HEM_OK);
    assert_int_equal(hem_window_create(world, &options, &window), HEM_ERR_MEMORY);
    size_t before = allocated();
    for (int i = 0; i < 100; i++)
        assert_int_equal(hem_window_create(world, &options, &window), HEM_ERR_MEMORY);
    assert_true(allocated() < before + 100 * sizeof name);
    assert_int_equal(hem_world_close(world), HEM_OK);
}

/* 64 is the default, so that one rank may say it and another leave it out. */
static int say_the_default(hem_world *world, void *arg) {
    const hem_buffer buffer = {"a", HEM_U8, 1, 0};
    hem_window_options options = options_of(&buffer, 1);
    hem_window *window = NULL;
    (void)arg;
    if (hem_world_rank(world) == 1) {
        options.align = 64;
        options.signals = 16;
        options.barriers = 4;
        options.counters = 4;
    }
    RANK_CHECK(hem_window_create(world, &options, &window) == HEM_OK);
    RANK_CHECK(hem_window_destroy(window) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

static void a_default_may_be_written_out(void **state) {
    (void)state;
    assert_int_equal(hem_world_threads(2, say_the_default, NULL, NULL), HEM_OK);
}

static void buffers_are_found_by_name(void **state) {
    const hem_buffer buffers[] = {{"a", HEM_U8, 3, 0}, {"b", HEM_F64, 7, 0}};
    hem_window_options options = options_of(buffers, 2);
    hem_world *world = NULL;
    hem_window *window = NULL;
    hem_buffer found = {0};

    (void)state;
    assert_int_equal(hem_world_open(NULL, &world), HEM_OK);
    assert_int_equal(hem_window_create(world, &options, &window), HEM_OK);
    assert_int_equal(hem_window_buffer(window, "b", &found), HEM_OK);
    assert_int_equal(found.offset, 64);
    assert_int_equal(found.count, 7);
    assert_int_equal(hem_window_buffer(window, "c", &found), HEM_ERR_RANGE);
    assert_int_equal(hem_window_buffer(window, NULL, &found), HEM_ERR_ARG);
    assert_int_equal(hem_window_buffer(window, "b", NULL), HEM_ERR_ARG);
    assert_int_equal(hem_window_buffer(NULL, "b", &found), HEM_ERR_ARG);
    assert_int_equal(hem_window_bytes(window, 0), 64 + 56);
    assert_int_equal(hem_world_close(world), HEM_OK);
    assert_int_equal(hem_window_buffer(window, "b", &found), HEM_ERR_CLOSED);
    assert_int_equal(hem_window_destroy(window), HEM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_size),
        cmocka_unit_test(buffers_lie_behind_each_other_aligned),
        cmocka_unit_test(they_must_fit_where_a_size_is_given),
        cmocka_unit_test(bad_buffers_are_refused),
        cmocka_unit_test(bad_alignments_and_counts_are_refused),
        cmocka_unit_test(the_fingerprint_tells_what_must_agree),
        cmocka_unit_test(a_refused_window_leaves_nothing_behind),
        cmocka_unit_test(a_default_may_be_written_out),
        cmocka_unit_test(buffers_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
