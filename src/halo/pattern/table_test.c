#include "halo/pattern/table.h"

#include "base/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Ids as meshes have them: in a row, in strides of powers of two, at random, and the largest. */
static int64_t id_at(int kind, uint64_t i) {
    uint64_t state = i;
    switch (kind) {
    case 0:
        return (int64_t)i;
    case 1:
        return (int64_t)(i << 40);
    case 2:
        return (int64_t)(testing_random(&state) >> 1);
    default:
        return INT64_MAX - (int64_t)i;
    }
}

static void ids_are_found(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (size_t count = 0; count < 5000; count = count * 2 + 1) {
            hemi_table table = {0};
            assert_int_equal(hemi_table_make(&table, count), HEM_OK);
            for (size_t i = 0; i < count; i++)
                assert_true(hemi_table_add(&table, id_at(kind, i), i, NULL));
            for (size_t i = 0; i < count; i++) {
                uint64_t *value = NULL;
                assert_false(hemi_table_add(&table, id_at(kind, i), 7, &value));
                assert_int_equal(*value, i);
                assert_ptr_equal(hemi_table_find(&table, id_at(kind, i)), value);
            }
            for (size_t i = count; i < count + 100; i++)
                assert_null(hemi_table_find(&table, id_at(kind, i)));
            assert_null(hemi_table_find(&table, -1));
            assert_null(hemi_table_find(&table, INT64_MIN));
            assert_true(hemi_table_bytes(&table) <= (3 * count + 8) * sizeof(hemi_entry));
            hemi_table_free(&table);
        }
}

static void homes_are_spread_evenly(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (uint32_t ranks = 1; ranks <= 100; ranks = ranks * 3 + 1) {
            uint64_t counts[128] = {0};
            const uint64_t each = 1000;
            for (uint64_t i = 0; i < each * ranks; i++) {
                uint32_t home = hemi_id_home(id_at(kind, i), ranks);
                assert_true(home < ranks);
                counts[home]++;
            }
            /* Of so many, a fifth more or less is six standard deviations. */
            for (uint32_t r = 0; r < ranks; r++)
                assert_true(counts[r] > each * 4 / 5 && counts[r] < each * 6 / 5);
        }
}

static void too_much_is_refused(void **state) {
    (void)state;
    hemi_table table = {0};
    assert_int_equal(hemi_table_make(&table, SIZE_MAX), HEM_ERR_MEMORY);
    assert_int_equal(hemi_table_make(&table, SIZE_MAX / 16), HEM_ERR_MEMORY);
    assert_int_equal(hemi_table_bytes(&table), 0);
    assert_null(hemi_table_find(&table, 0));
    hemi_table_free(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_found),
        cmocka_unit_test(homes_are_spread_evenly),
        cmocka_unit_test(too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
