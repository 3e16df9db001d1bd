/*
 * Combining and negating. What an element becomes is what the portable kernels of collectives make
 * of it, one element at a time; they are tested beside their source.
 */
#include "coll/reduce/reduce.h"
#include "halo/shape_testing.h"

/* Bytes of numbers that are often special: 0, 1, infinities, NaN, all bits, small ones. */
static void season(uint64_t *state, hem_dtype dtype, test_bytes *b, size_t shift) {
    static const uint16_t halves[] = {0,      0x8000, 0x3c00, 0x7c00, 0xfc00,
                                      0x7e01, 0xfe00, 0x3f80, 0x7f80, 0xff80,
                                      0x7fc1, 0x0001, 0xffff, 0x7f7f, 0x7bff};
    size_t size = hem_dtype_size(dtype);

    for (size_t at = shift; at + size <= b->count; at += size) {
        uint16_t half = halves[below(state, sizeof halves / sizeof halves[0])];
        if (below(state, 3) > 0)
            continue;
        memset(b->at + at, 0, size);
        if (size == 1)
            b->at[at] = (unsigned char)half;
        else
            memcpy(b->at + at + size - 2, &half, 2);
    }
}

static void check_combine(uint64_t seed, uint64_t *state, const test_shape *t, hem_dtype dtype,
                          hem_reduction op) {
    size_t element = t->spec.element;
    test_bytes field = random_field(state, t);
    test_bytes in = random_bytes(state, t->count * element);
    test_bytes wanted;
    hemi_reducer one;

    if (t->count > 0)
        season(state, dtype, &field, (size_t)(t->offsets[0] - t->low) % element);
    season(state, dtype, &in, 0);
    wanted = same_bytes(&field);
    assert_int_equal(hemi_reducer_find_in(0, dtype, op, &one), HEM_OK);
    for (size_t i = 0; i < t->count; i++) {
        unsigned char *place = wanted.at + (t->offsets[i] - t->low);
        const void *sources[] = {place, in.at + i * element};
        hemi_reduce(&one, place, sources, 2, 1);
    }
    hemi_shape_combine(t->shape, field_of(&field, t), in.at, dtype, op);
    check_same(seed, "what was combined", field.at, wanted.at, wanted.count);
    free(field.memory);
    free(in.memory);
    free(wanted.memory);
}

/* The sign of everything that has one, and two's complement of integers. */
static void negate_bytes(hem_dtype dtype, unsigned char *e, size_t size) {
    bool integer = dtype >= HEM_I8 && dtype <= HEM_I64;
    unsigned carry = 1;

    for (size_t i = 0; integer && i < size; i++) {
        carry += (unsigned char)~e[i];
        e[i] = (unsigned char)carry;
        carry >>= 8;
    }
    if (!integer)
        e[size - 1] ^= 0x80;
    if (dtype == HEM_C64 || dtype == HEM_C128)
        e[size / 2 - 1] ^= 0x80;
}

static void check_negate(uint64_t seed, uint64_t *state, const test_shape *t, hem_dtype dtype) {
    test_bytes field = random_field(state, t);
    test_bytes wanted = same_bytes(&field);

    for (size_t i = 0; i < t->count; i++)
        negate_bytes(dtype, wanted.at + (t->offsets[i] - t->low), t->spec.element);
    hemi_shape_negate(t->shape, field_of(&field, t), dtype);
    check_same(seed, "what was negated", field.at, wanted.at, wanted.count);
    free(field.memory);
    free(wanted.memory);
}

static void random_shapes_are_combined(void **state) {
    static const hem_reduction ops[] = {HEM_SUM, HEM_MIN, HEM_MAX};

    (void)state;
    for (uint64_t round = 0; round < 40000; round++) {
        uint64_t seed = round_seed(round);
        uint64_t random = seed;
        hem_dtype dtype = (hem_dtype)(HEM_BYTE + below(&random, HEM_BOOL));
        test_shape t;
        random_counts(&random, &t.spec);
        t.spec.element = hem_dtype_size(dtype);
        random_strides(&random, &t);
        make_test_shape(&t);
        for (size_t i = 0; i < 3; i++) {
            if (hemi_shape_can_combine(dtype, ops[i]))
                check_combine(seed, &random, &t, dtype, ops[i]);
        }
        if (hemi_shape_can_negate(dtype))
            check_negate(seed, &random, &t, dtype);
        free_test_shape(&t);
    }
}

/* A list that names a point again adds to it again, in the order of the list. */
static void points_named_twice_are_combined_in_order(void **state) {
    const int64_t list[] = {2, 0, 2, 1, 2};
    const double in[] = {1e300, 1.0, -1e300, 2.0, 3.0};
    double field[] = {10.0, 20.0, 30.0};
    hemi_shape_spec spec = {.element = 8, .axis_count = 1, .axes = {{5, 8}}, .list = list};
    hemi_shape *shape;

    (void)state;
    assert_int_equal(hemi_shape_make(&spec, &shape), HEM_OK);
    hemi_shape_combine(shape, field, in, HEM_F64, HEM_SUM);
    assert_true(field[0] == 11.0 && field[1] == 22.0 && field[2] == 3.0);
    hemi_shape_free(shape);
}

static void types_have_what_makes_sense(void **state) {
    /* Sum, minimum, maximum, negation. */
    static const char *const has[HEM_BOOL + 1] = {
        [HEM_BYTE] = "....", [HEM_I8] = "xxxx",  [HEM_I16] = "xxxx",  [HEM_I32] = "xxxx",
        [HEM_I64] = "xxxx",  [HEM_U8] = "xxx.",  [HEM_U16] = "xxx.",  [HEM_U32] = "xxx.",
        [HEM_U64] = "xxx.",  [HEM_F16] = "xxxx", [HEM_BF16] = "xxxx", [HEM_F32] = "xxxx",
        [HEM_F64] = "xxxx",  [HEM_C64] = "x..x", [HEM_C128] = "x..x", [HEM_BOOL] = "xxx.",
    };

    (void)state;
    for (int d = HEM_BYTE; d <= HEM_BOOL; d++) {
        hem_dtype dtype = (hem_dtype)d;
        assert_int_equal(hemi_shape_can_combine(dtype, HEM_SUM), has[d][0] == 'x');
        assert_int_equal(hemi_shape_can_combine(dtype, HEM_MIN), has[d][1] == 'x');
        assert_int_equal(hemi_shape_can_combine(dtype, HEM_MAX), has[d][2] == 'x');
        assert_int_equal(hemi_shape_can_negate(dtype), has[d][3] == 'x');
        assert_false(hemi_shape_can_combine(dtype, HEM_PROD));
        assert_false(hemi_shape_can_combine(dtype, HEM_MAXLOC));
        assert_false(hemi_shape_can_combine(dtype, HEM_USER));
    }
    assert_false(hemi_shape_can_combine((hem_dtype)0, HEM_SUM));
    assert_false(hemi_shape_can_combine((hem_dtype)(HEM_BOOL + 1), HEM_SUM));
    assert_false(hemi_shape_can_combine(HEM_F64, (hem_reduction)0));
    assert_false(hemi_shape_can_negate((hem_dtype)0));
    assert_false(hemi_shape_can_negate((hem_dtype)(HEM_BOOL + 1)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes_are_combined),
        cmocka_unit_test(points_named_twice_are_combined_in_order),
        cmocka_unit_test(types_have_what_makes_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
