#include "../hem/bench_shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct hemt_sizes none = {.count = 0};

static void reads_what_it_writes(void **state) {
    struct hemt_shape shape = {.value = {0}};
    struct hemt_shape back;
    char text[HEMT_SHAPE_TEXT];

    (void)state;
    assert_null(hemt_shape_set("dims", "2", &shape));
    assert_null(hemt_shape_set("halo", "3", &shape));
    assert_null(hemt_shape_set("fields", "16", &shape));
    assert_null(hemt_shape_set("levels", "1024", &shape));
    hemt_shape_fill(BENCH_GRID, &shape);
    hemt_shape_write(&shape, text);
    assert_null(hemt_shape_read(text, &back));
    assert_memory_equal(shape.value, back.value, sizeof(shape.value));
}

static void refuses_what_is_no_shape(void **state) {
    static const char *const bad[] = {"",        "dims",    "dims=",    "dims=4",  "dims=2x",
                                      "halo=0",  "halo=4",  "fields=0", "=1",      "depth=1",
                                      "dims=2:", "axis=-1", "mesh=2",   "levels=", "hops=65"};
    struct hemt_shape shape = {.value = {7}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_non_null(hemt_shape_read(bad[i], &shape));
    assert_int_equal(shape.value[0], 7);
}

static void refuses_what_the_benchmark_has_not(void **state) {
    struct hemt_shape shape = {.value = {0}};

    (void)state;
    assert_null(hemt_shape_set("levels", "2", &shape));
    hemt_shape_fill(BENCH_MESH, &shape);
    assert_null(hemt_shape_refuses(BENCH_MESH, &shape, &none));
    assert_non_null(hemt_shape_refuses(BENCH_GRID, &shape, &none));
    assert_non_null(hemt_shape_refuses(BENCH_ALLREDUCE, &shape, &none));
}

static void refuses_sizes_that_do_not_fit(void **state) {
    const struct hemt_sizes narrow = {.bytes = {2}, .count = 1};
    const struct hemt_sizes few = {.bytes = {100}, .count = 1};
    struct hemt_shape shape = {.value = {0}};
    struct hemt_shape flat = {.value = {0}};

    (void)state;
    assert_null(hemt_shape_set("halo", "3", &shape));
    hemt_shape_fill(BENCH_GRID, &shape);
    assert_non_null(hemt_shape_refuses(BENCH_GRID, &shape, &narrow));
    assert_non_null(hemt_shape_refuses(BENCH_MESH, &shape, &few));
    assert_null(hemt_shape_set("dims", "2", &flat));
    assert_null(hemt_shape_set("axis", "2", &flat));
    hemt_shape_fill(BENCH_GRID, &flat);
    assert_non_null(hemt_shape_refuses(BENCH_GRID, &flat, &none));
}

/* What all ranks hold together decides what is left out. */
static void default_sizes_fit_the_machine(void **state) {
    struct hemt_shape shape = {.value = {0}};
    struct hemt_sizes sizes;

    (void)state;
    hemt_shape_fill(BENCH_GRID, &shape);
    hemt_shape_sizes(BENCH_GRID, &shape, 2, &sizes);
    assert_int_equal(sizes.bytes[0], 16);
    assert_int_equal(sizes.bytes[sizes.count - 1], 256);
    shape.value[HEMT_FIELDS] = 16;
    hemt_shape_sizes(BENCH_GRID, &shape, 8, &sizes);
    assert_int_equal(sizes.bytes[sizes.count - 1], 128);
    shape.value[HEMT_DIMS] = 2;
    hemt_shape_sizes(BENCH_GRID, &shape, 2, &sizes);
    assert_int_equal(sizes.bytes[sizes.count - 1], 4096);
    hemt_shape_sizes(BENCH_LINE, &shape, 8, &sizes);
    assert_int_equal(sizes.bytes[0], 8);
}

static void says_what_it_is(void **state) {
    struct hemt_shape shape = {.value = {0}};
    char text[160];

    (void)state;
    hemt_shape_fill(BENCH_GRID, &shape);
    hemt_shape_describe(BENCH_GRID, &shape, text, sizeof(text));
    assert_string_equal(text, "3-D, halo 1, 4 fields, cut along dimension 0 first");
    hemt_shape_describe(BENCH_ALLREDUCE, &shape, text, sizeof(text));
    assert_string_equal(text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(refuses_what_is_no_shape),
        cmocka_unit_test(refuses_what_the_benchmark_has_not),
        cmocka_unit_test(refuses_sizes_that_do_not_fit),
        cmocka_unit_test(default_sizes_fit_the_machine),
        cmocka_unit_test(says_what_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
