/* Making, packing and unpacking, against loops over single elements. */
#include "halo/shape_inside.h"
#include "halo/shape_testing.h"

#include <sys/mman.h>

static void check_pack(uint64_t seed, uint64_t *state, const test_shape *t) {
    size_t element = t->spec.element;
    test_bytes field = random_field(state, t);
    test_bytes before = same_bytes(&field);
    test_bytes out = random_bytes(state, t->count * element);
    test_bytes wanted = same_bytes(&out);

    for (size_t i = 0; i < t->count; i++)
        memcpy(wanted.at + i * element, field.at + (t->offsets[i] - t->low), element);
    hemi_shape_pack(t->shape, field_of(&field, t), out.at);
    check_same(seed, "what was packed", out.at, wanted.at, out.count);
    check_same(seed, "a field that was only packed", field.at, before.at, field.count);
    free(field.memory);
    free(before.memory);
    free(out.memory);
    free(wanted.memory);
}

static void check_unpack(uint64_t seed, uint64_t *state, const test_shape *t) {
    size_t element = t->spec.element;
    test_bytes field = random_field(state, t);
    test_bytes wanted = same_bytes(&field);
    test_bytes in = random_bytes(state, t->count * element);

    for (size_t i = 0; i < t->count; i++)
        memcpy(wanted.at + (t->offsets[i] - t->low), in.at + i * element, element);
    hemi_shape_unpack(t->shape, field_of(&field, t), in.at);
    check_same(seed, "what was unpacked", field.at, wanted.at, field.count);
    free(field.memory);
    free(wanted.memory);
    free(in.memory);
}

static void random_shapes_pack_and_unpack(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 20000; round++) {
        uint64_t seed = round_seed(round);
        uint64_t random = seed;
        test_shape t;
        random_shape(&random, &t);
        check_pack(seed, &random, &t);
        check_unpack(seed, &random, &t);
        free_test_shape(&t);
    }
}

/* Chunks of every length up to two cache lines, at every alignment, in rows and in lists. */
static void every_chunk_at_every_alignment(void **state) {
    uint64_t random = 4711;

    (void)state;
    for (size_t element = 1; element <= 130; element++) {
        for (unsigned kind = 0; kind < 3; kind++) {
            test_shape t = {.spec = {.element = element, .axis_count = 2}};
            t.spec.axes[0] = (hemi_shape_axis){3, (int64_t)(element + 5) * 19};
            t.spec.axes[1] = (hemi_shape_axis){9 + element % 5, (int64_t)element + 1};
            t.spec.list = kind == 0 ? NULL : t.list;
            t.spec.list_axis = kind == 1 ? 0 : 1;
            for (size_t i = 0; i < 16; i++)
                t.list[i] = (int64_t)(i * 7 % 16);
            make_test_shape(&t);
            for (unsigned i = 0; i < 4; i++) {
                check_pack(element, &random, &t);
                check_unpack(element, &random, &t);
            }
            free_test_shape(&t);
        }
    }
}

/* What making finds. */

static hemi_shape *make(size_t element, size_t axis_count, const hemi_shape_axis *axes,
                        const int64_t *list, size_t list_axis) {
    hemi_shape_spec spec = {
        .element = element, .axis_count = axis_count, .list = list, .list_axis = list_axis};
    hemi_shape *shape = NULL;

    for (size_t k = 0; k < axis_count; k++)
        spec.axes[k] = axes[k];
    assert_int_equal(hemi_shape_make(&spec, &shape), HEM_OK);
    return shape;
}

static void check_form(hemi_shape *s, uint64_t chunk, uint32_t axis_count, uint32_t list_kind) {
    assert_int_equal(s->chunk, chunk);
    assert_int_equal(s->axis_count, axis_count);
    assert_int_equal(s->list_kind, list_kind);
    hemi_shape_free(s);
}

static void axes_that_continue_each_other_are_merged(void **state) {
    const hemi_shape_axis dense[] = {{4, 240}, {1, 7}, {5, 48}, {6, 8}};
    const hemi_shape_axis rows[] = {{4, 480}, {5, 96}, {6, 8}};
    const hemi_shape_axis padded[] = {{4, 500}, {5, 96}, {6, 8}};
    const hemi_shape_axis backward[] = {{4, -240}, {5, -48}, {6, -8}};

    (void)state;
    check_form(make(8, 4, dense, NULL, 0), 960, 0, HEMI_LIST_NONE);
    check_form(make(8, 3, rows, NULL, 0), 48, 1, HEMI_LIST_NONE);
    check_form(make(8, 3, padded, NULL, 0), 48, 2, HEMI_LIST_NONE);
    check_form(make(8, 3, backward, NULL, 0), 8, 1, HEMI_LIST_NONE);
}

static void lists_become_runs(void **state) {
    const hemi_shape_axis points[] = {{9, 8}};
    const hemi_shape_axis levels_last[] = {{9, 80}, {10, 8}};
    const hemi_shape_axis levels_first[] = {{10, 4000}, {9, 8}};
    const int64_t straight[] = {3, 4, 5, 6, 7, 8, 9, 10, 11};
    const int64_t every_second[] = {3, 5, 7, 9, 11, 13, 15, 17, 19};
    const int64_t threes[] = {3, 4, 5, 9, 10, 11, 40, 41, 42};
    const int64_t even_threes[] = {3, 4, 5, 13, 14, 15, 23, 24, 25};
    const int64_t uneven[] = {3, 4, 5, 6, 7, 8, 9, 20, 21};
    const int64_t any[] = {3, 1, 4, 15, 9, 26, 5, 35, 8};

    (void)state;
    check_form(make(8, 1, points, straight, 0), 72, 0, HEMI_LIST_NONE);
    check_form(make(8, 1, points, every_second, 0), 8, 1, HEMI_LIST_NONE);
    check_form(make(8, 1, points, threes, 0), 24, 1, HEMI_LIST_NEAR);
    check_form(make(8, 1, points, even_threes, 0), 24, 1, HEMI_LIST_NONE);
    check_form(make(8, 1, points, any, 0), 8, 1, HEMI_LIST_NEAR);
    check_form(make(8, 2, levels_last, straight, 0), 720, 0, HEMI_LIST_NONE);
    check_form(make(8, 2, levels_last, threes, 0), 240, 1, HEMI_LIST_NEAR);
    check_form(make(8, 2, levels_last, uneven, 0), 80, 1, HEMI_LIST_RUNS);
    check_form(make(8, 2, levels_last, any, 0), 80, 1, HEMI_LIST_NEAR);
    check_form(make(8, 2, levels_first, straight, 1), 72, 1, HEMI_LIST_NONE);
    check_form(make(8, 2, levels_first, any, 1), 8, 2, HEMI_LIST_NEAR);
}

/* A list over more than 4 GiB. Its memory is reserved, and touched in few places. */
static void offsets_of_64_bits(void **state) {
    const int64_t list[] = {0, 3, 600000000, 1, 599999999};
    const int64_t wide[] = {0, 3, 500000000, 1, 499999999};
    const hemi_shape_axis axes[] = {{5, 8}};
    uint64_t packed[5] = {11, 22, 33, 44, 55};
    uint64_t again[5];
    uint64_t *field = mmap(NULL, 600000001ull * 8, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)state;
    if (field == MAP_FAILED) {
        print_message("5 GiB of address space are not to be had\n");
        skip();
    }
    for (int i = 0; i < 2; i++) {
        const int64_t *points = i == 0 ? list : wide;
        hemi_shape *shape = make(8, 1, axes, points, 0);
        hemi_shape_unpack(shape, field, packed);
        for (int k = 0; k < 5; k++)
            assert_int_equal(field[points[k]], packed[k]);
        hemi_shape_pack(shape, field, again);
        assert_memory_equal(again, packed, sizeof again);
        hemi_shape_combine(shape, field, packed, HEM_U64, HEM_SUM);
        for (int k = 0; k < 5; k++)
            assert_int_equal(field[points[k]], 2 * packed[k]);
        check_form(shape, 8, 1, i == 0 ? HEMI_LIST_FAR : HEMI_LIST_NEAR);
    }
    assert_int_equal(munmap(field, 600000001ull * 8), 0);
}

/* Bytes or offsets of more than 63 bits, and specifications that make no sense. */

static hem_status try(hemi_shape_spec spec) {
    hemi_shape *shape = (hemi_shape *)&spec;
    hem_status status = hemi_shape_make(&spec, &shape);

    if (status == HEM_OK)
        hemi_shape_free(shape);
    else
        assert_ptr_equal(shape, &spec);
    return status;
}

static void what_does_not_fit_is_refused(void **state) {
    const uint64_t half = 1ull << 62;
    const int64_t top = INT64_MAX;
    const int64_t far[] = {0, INT64_MAX / 2, 5};
    const int64_t apart[] = {INT64_MIN / 2 - 9, 0, INT64_MAX / 2 + 9};

    (void)state;
    assert_int_equal(try((hemi_shape_spec){.element = 8, .axis_count = 1, .axes = {{half, 0}}}),
                     HEM_ERR_LIMIT);
    assert_int_equal(try((hemi_shape_spec){.element = 1,
                                           .axis_count = 3,
                                           .axes = {{1u << 31, 0}, {1u << 31, 0}, {4, 0}}}),
                     HEM_ERR_LIMIT);
    /* The product of these counts wraps to a small one. */
    assert_int_equal(try((hemi_shape_spec){.element = 1,
                                           .axis_count = 2,
                                           .axes = {{(1ull << 33) + 1, 0}, {(1ull << 33) + 1, 0}}}),
                     HEM_ERR_LIMIT);
    assert_int_equal(try((hemi_shape_spec){.element = 1, .axis_count = 1, .axes = {{3, top}}}),
                     HEM_ERR_LIMIT);
    assert_int_equal(
        try((hemi_shape_spec){.element = 1, .axis_count = 1, .axes = {{3, INT64_MIN}}}),
        HEM_ERR_LIMIT);
    assert_int_equal(try((hemi_shape_spec){.base = top, .element = 1}), HEM_ERR_LIMIT);
    assert_int_equal(try((hemi_shape_spec){.base = top - 1, .element = 1}), HEM_OK);
    assert_int_equal(
        try((hemi_shape_spec){.base = top - 9, .element = 1, .axis_count = 1, .axes = {{10, 1}}}),
        HEM_ERR_LIMIT);
    assert_int_equal(
        try((hemi_shape_spec){.base = -top, .element = 1, .axis_count = 1, .axes = {{10, -1}}}),
        HEM_ERR_LIMIT);
    assert_int_equal(
        try((hemi_shape_spec){.element = 1, .axis_count = 1, .axes = {{3, 4}}, .list = far}),
        HEM_ERR_LIMIT);
    assert_int_equal(
        try((hemi_shape_spec){.element = 1, .axis_count = 1, .axes = {{3, 1}}, .list = far}),
        HEM_OK);
    assert_int_equal(
        try((hemi_shape_spec){.element = 1, .axis_count = 1, .axes = {{3, 1}}, .list = apart}),
        HEM_ERR_LIMIT);
    assert_int_equal(
        try((hemi_shape_spec){
            .element = 1, .axis_count = 2, .axes = {{3, 1}, {2, top / 2 + 5}}, .list = far}),
        HEM_ERR_LIMIT);
    assert_int_equal(
        try((hemi_shape_spec){.element = 1, .axis_count = 2, .axes = {{half, top}, {0, 1}}}),
        HEM_OK);
}

static void what_makes_no_sense_is_refused(void **state) {
    const int64_t list[] = {1};

    (void)state;
    assert_int_equal(try((hemi_shape_spec){.element = 0}), HEM_ERR_ARG);
    assert_int_equal(try((hemi_shape_spec){.element = 1, .axis_count = HEMI_SHAPE_AXES + 1}),
                     HEM_ERR_ARG);
    assert_int_equal(
        try((hemi_shape_spec){
            .element = 1, .axis_count = 1, .axes = {{1, 1}}, .list = list, .list_axis = 1}),
        HEM_ERR_ARG);
    hemi_shape_free(NULL);
}

static void nothing_touches_nothing(void **state) {
    const hemi_shape_axis axes[] = {{5, 8}, {0, 8}};
    hemi_shape *shape = make(8, 2, axes, NULL, 0);
    int64_t first;
    int64_t end;

    (void)state;
    hemi_shape_bounds(shape, &first, &end);
    assert_true(first == end);
    assert_int_equal(hemi_shape_bytes(shape), 0);
    hemi_shape_pack(shape, NULL, NULL);
    hemi_shape_unpack(shape, NULL, NULL);
    hemi_shape_copy(shape, NULL, shape, NULL);
    hemi_shape_combine(shape, NULL, NULL, HEM_F64, HEM_SUM);
    hemi_shape_negate(shape, NULL, HEM_F64);
    hemi_shape_free(shape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes_pack_and_unpack),
        cmocka_unit_test(every_chunk_at_every_alignment),
        cmocka_unit_test(axes_that_continue_each_other_are_merged),
        cmocka_unit_test(lists_become_runs),
        cmocka_unit_test(offsets_of_64_bits),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(nothing_touches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
