/* Shapes that travel: they come back the same, and whatever else comes is refused or harmless. */
#include "halo/shape_testing.h"

static test_bytes written(const test_shape *t) {
    test_bytes b = {.count = hemi_shape_write(t->shape, NULL, 0)};

    b.memory = b.at = malloc(b.count);
    memset(b.at, 0xee, b.count);
    assert_int_equal(hemi_shape_write(t->shape, b.at, b.count - 1), b.count);
    assert_int_equal(b.at[0], 0xee);
    assert_int_equal(hemi_shape_write(t->shape, b.at, b.count), b.count);
    return b;
}

/* A random shape whose first byte is byte 0 of the field. */
static void shape_from_zero(uint64_t *state, test_shape *t) {
    random_counts(state, &t->spec);
    random_strides(state, t);
    enumerate(t);
    t->spec.base = -t->low;
    free(t->offsets);
    make_test_shape(t);
}

static void check_packs_alike(uint64_t seed, uint64_t *state, const test_shape *t,
                              const hemi_shape *other) {
    test_bytes field = random_field(state, t);
    test_bytes a = random_bytes(state, t->count * t->spec.element);
    test_bytes b = random_bytes(state, t->count * t->spec.element);

    assert_int_equal(hemi_shape_bytes(other), a.count);
    hemi_shape_pack(t->shape, field_of(&field, t), a.at);
    hemi_shape_pack(other, field_of(&field, t), b.at);
    check_same(seed, "what was packed", a.at, b.at, a.count);
    free(field.memory);
    free(a.memory);
    free(b.memory);
}

static void shapes_come_back_the_same(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 5000; round++) {
        uint64_t seed = round_seed(round);
        uint64_t random = seed;
        hemi_shape *back = NULL;
        test_bytes wire;
        test_shape t;
        shape_from_zero(&random, &t);
        wire = written(&t);
        assert_int_equal(hemi_shape_read(wire.at, wire.count, (uint64_t)t.high, &back), HEM_OK);
        check_packs_alike(seed, &random, &t, back);
        hemi_shape_free(back);
        if (t.count > 0)
            assert_int_equal(hemi_shape_read(wire.at, wire.count, (uint64_t)t.high - 1, &back),
                             HEM_ERR_MISMATCH);
        free(wire.memory);
        free_test_shape(&t);
    }
}

static void other_lengths_are_refused(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 500; round++) {
        uint64_t random = round_seed(round);
        hemi_shape *back = NULL;
        test_bytes wire;
        test_shape t;
        shape_from_zero(&random, &t);
        wire = written(&t);
        /* The last word of the head says how many bytes are packed. */
        wire.at[48] ^= 1;
        assert_int_equal(hemi_shape_read(wire.at, wire.count, UINT64_MAX, &back), HEM_ERR_MISMATCH);
        wire.at[48] ^= 1;
        for (size_t n = 0; n < wire.count; n++)
            assert_int_equal(hemi_shape_read(wire.at, n, UINT64_MAX, &back), HEM_ERR_MISMATCH);
        wire.memory = realloc(wire.memory, wire.count + 64);
        memset(wire.memory + wire.count, 0, 64);
        for (size_t n = 1; n <= 64; n++)
            assert_int_equal(hemi_shape_read(wire.memory, wire.count + n, UINT64_MAX, &back),
                             HEM_ERR_MISMATCH);
        assert_null(back);
        free(wire.memory);
        free_test_shape(&t);
    }
}

static void spoil(uint64_t *state, test_bytes *wire) {
    static const uint64_t words[] = {0,          1,          2,          3,          INT64_MAX,
                                     UINT64_MAX, 1ull << 32, 1ull << 63, 1ull << 62, 0xffffffff};
    size_t at = below(state, wire->count / 4) * 4;
    uint64_t word = words[below(state, sizeof words / sizeof words[0])];
    size_t size = below(state, 2) == 0 || at + 8 > wire->count ? 4 : 8;

    if (below(state, 3) == 0)
        wire->at[below(state, wire->count)] ^= (unsigned char)(1u << below(state, 8));
    else
        memcpy(wire->at + at, &word, size);
}

/* Whatever is taken stays in the field, as sanitizers would see, and in the bytes that it says. */
static void use(const hemi_shape *shape, size_t field_bytes) {
    uint64_t bytes = hemi_shape_bytes(shape);
    int64_t first;
    int64_t end;

    hemi_shape_bounds(shape, &first, &end);
    assert_true(first >= 0 && (uint64_t)end <= field_bytes && first <= end);
    if (bytes < 1u << 20) {
        unsigned char *field = calloc(1, field_bytes + 1);
        unsigned char *packed = calloc(1, bytes + 1);
        hemi_shape_pack(shape, field, packed);
        hemi_shape_unpack(shape, field, packed);
        hemi_shape_unpack(shape, field, packed);
        free(field);
        free(packed);
    }
}

static void spoilt_bytes_do_no_harm(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 20000; round++) {
        uint64_t random = round_seed(round);
        hemi_shape *back = NULL;
        test_bytes wire;
        test_shape t;
        shape_from_zero(&random, &t);
        wire = written(&t);
        for (uint64_t n = 1 + below(&random, 3); n > 0; n--)
            spoil(&random, &wire);
        if (hemi_shape_read(wire.at, wire.count, (uint64_t)t.high, &back) == HEM_OK)
            use(back, (size_t)t.high);
        else
            assert_null(back);
        hemi_shape_free(back);
        free(wire.memory);
        free_test_shape(&t);
    }
}

/* Runs that are as long together as they should be, but not each by itself. */
static void runs_are_checked(void **state) {
    const uint64_t wrong[][2] = {{0, 72}, {72, 0}, {1, 71}, {68, 4}, {UINT64_MAX, 73}};
    test_shape t = {.spec = {.element = 8, .axis_count = 1, .axes = {{30, 8}}}};
    hemi_shape *back = NULL;
    test_bytes wire;

    (void)state;
    for (int64_t i = 0; i < 30; i++)
        t.list[i] = i + (i >= 5 ? 10 : 0) + (i >= 9 ? 10 : 0);
    t.spec.list = t.list;
    make_test_shape(&t);
    wire = written(&t);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        /* The last three runs of two words each: offset and length, which are 40, 32 and 168. */
        memcpy(wire.at + wire.count - 40, &wrong[i][0], 8);
        memcpy(wire.at + wire.count - 24, &wrong[i][1], 8);
        assert_int_equal(hemi_shape_read(wire.at, wire.count, 1 << 20, &back), HEM_ERR_MISMATCH);
        assert_null(back);
    }
    memcpy(wire.at + wire.count - 40, &(uint64_t){40}, 8);
    memcpy(wire.at + wire.count - 24, &(uint64_t){32}, 8);
    assert_int_equal(hemi_shape_read(wire.at, wire.count, 1 << 20, &back), HEM_OK);
    hemi_shape_free(back);
    free(wire.memory);
    free_test_shape(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_come_back_the_same),
        cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(spoilt_bytes_do_no_harm),
        cmocka_unit_test(runs_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
