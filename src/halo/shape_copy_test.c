/* Copying between fields whose shapes have nothing in common but their elements. */
#include "halo/shape_testing.h"

/* The same elements under other strides, perhaps with a list on another axis; or as one axis. */
static void other_shape(uint64_t *state, const test_shape *of, test_shape *t) {
    t->spec = of->spec;
    if (below(state, 3) == 0) {
        t->spec.axis_count = 1;
        t->spec.axes[0].count = of->count;
    }
    random_strides(state, t);
    t->spec.base = (int64_t)below(state, 100) - 50;
    make_test_shape(t);
}

static void check_copy(uint64_t seed, uint64_t *state, const test_shape *to,
                       const test_shape *from) {
    size_t element = to->spec.element;
    test_bytes source = random_field(state, from);
    test_bytes target = random_field(state, to);
    test_bytes wanted = same_bytes(&target);

    for (size_t i = 0; i < to->count; i++)
        memcpy(wanted.at + (to->offsets[i] - to->low), source.at + (from->offsets[i] - from->low),
               element);
    hemi_shape_copy(to->shape, field_of(&target, to), from->shape, field_of(&source, from));
    check_same(seed, "what was copied", target.at, wanted.at, wanted.count);
    free(source.memory);
    free(target.memory);
    free(wanted.memory);
}

/* A pair may be used again, and does the same. */
static void check_pair(uint64_t seed, uint64_t *state, const test_shape *to,
                       const test_shape *from) {
    test_bytes source = random_field(state, from);
    test_bytes target = random_field(state, to);
    test_bytes wanted = same_bytes(&target);
    hemi_shape_pair *pair;

    assert_int_equal(hemi_shape_pair_make(to->shape, from->shape, &pair), HEM_OK);
    hemi_shape_copy(to->shape, field_of(&wanted, to), from->shape, field_of(&source, from));
    for (int i = 0; i < 2; i++) {
        hemi_shape_pair_copy(pair, field_of(&target, to), field_of(&source, from));
        check_same(seed, "what a pair copied", target.at, wanted.at, wanted.count);
    }
    hemi_shape_pair_free(pair);
    free(source.memory);
    free(target.memory);
    free(wanted.memory);
}

static void random_shapes_are_copied(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 10000; round++) {
        uint64_t seed = round_seed(round);
        uint64_t random = seed;
        test_shape from;
        test_shape to;
        random_shape(&random, &from);
        other_shape(&random, &from, &to);
        check_copy(seed, &random, &to, &from);
        check_copy(seed, &random, &from, &to);
        check_copy(seed, &random, &to, &to);
        check_pair(seed, &random, &to, &from);
        free_test_shape(&from);
        free_test_shape(&to);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
