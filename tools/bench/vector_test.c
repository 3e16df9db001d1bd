#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    LARGEST = 37,
    RANKS = 5
};

/* Every length, also from the middle of a longer vector, with neighbours that stay as they are. */
static void fills_exactly_what_it_checks(void **state) {
    double memory[LARGEST + 2];

    (void)state;
    for (size_t count = 0; count <= LARGEST; count++) {
        memory[0] = -1;
        memory[count + 1] = -1;
        bench_vector_fill(memory + 1, count, 3, 7, 2);
        assert_true(bench_vector_check(memory + 1, count, 3, 7, 2));
        assert_true(memory[0] < 0 && memory[count + 1] < 0);
    }
}

static void a_part_is_like_the_whole(void **state) {
    double whole[LARGEST];

    (void)state;
    bench_vector_fill(whole, LARGEST, 0, 9, 1);
    for (size_t first = 0; first < LARGEST; first++)
        assert_true(bench_vector_check(whole + first, LARGEST - first, first, 9, 1));
}

static void sum_up(double *sums, const int *parts, int count) {
    double part[LARGEST];

    for (size_t i = 0; i < LARGEST; i++)
        sums[i] = 0;
    for (int p = 0; p < count; p++) {
        bench_vector_fill(part, LARGEST, 0, 11, parts[p] + 1);
        for (size_t i = 0; i < LARGEST; i++)
            sums[i] += part[i];
    }
}

/* The sum of all ranks is right; with one missing or one twice it is not. */
static void tells_a_right_sum_from_others(void **state) {
    const int all[] = {0, 1, 2, 3, 4};
    const int missing[] = {0, 1, 3, 4};
    const int twice[] = {0, 1, 1, 3, 4};
    double total = bench_vector_total(RANKS);
    double sums[LARGEST];

    (void)state;
    sum_up(sums, all, RANKS);
    assert_true(bench_vector_check(sums, LARGEST, 0, 11, total));
    assert_false(bench_vector_check(sums, LARGEST, 0, 12, total));
    assert_false(bench_vector_check(sums, LARGEST, 1, 11, total));
    sum_up(sums, missing, RANKS - 1);
    assert_false(bench_vector_check(sums, LARGEST, 0, 11, total));
    sum_up(sums, twice, RANKS);
    assert_false(bench_vector_check(sums, LARGEST, 0, 11, total));
}

static void sees_every_element(void **state) {
    double values[LARGEST];

    (void)state;
    for (size_t i = 0; i < LARGEST; i++) {
        bench_vector_fill(values, LARGEST, 0, 13, 1);
        values[i] += 1;
        assert_false(bench_vector_check(values, LARGEST, 0, 13, 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_exactly_what_it_checks),
        cmocka_unit_test(a_part_is_like_the_whole),
        cmocka_unit_test(tells_a_right_sum_from_others),
        cmocka_unit_test(sees_every_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
