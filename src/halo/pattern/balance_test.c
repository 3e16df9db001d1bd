/* Cuts of grids against all cuts there are. */
#include "base/testing.h"

#include <hem/pattern.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FAR (INT64_C(1) << 62)

enum {
    ROUNDS = 3000
};

static int64_t below(uint64_t *state, int64_t n) {
    return (int64_t)(testing_random(state) % (uint64_t)n);
}

/* The surface of all boxes together, halved. */
static int64_t surface(int dims, const int64_t *extent, const int64_t *parts) {
    int64_t sum = 0;
    for (int d = 0; d < dims; d++) {
        int64_t face = parts[d];
        for (int e = 0; e < dims; e++)
            face *= e == d ? 1 : extent[e];
        sum += face;
    }
    return sum;
}

/* The least surface, by trying everything; -1: there is no cut. */
static int64_t least(int dims, const int64_t *extent, int64_t count) {
    int64_t parts[HEM_DIMS] = {1, 1, 1, 1};
    int64_t best = -1;
    for (;;) {
        int64_t product = parts[0] * parts[1] * parts[2] * parts[3];
        if (product == count) {
            int64_t now = surface(dims, extent, parts);
            best = best < 0 || now < best ? now : best;
        }
        int d = 0;
        while (d < dims && ++parts[d] > extent[d])
            parts[d++] = 1;
        if (d == dims)
            return best;
    }
}

static void surface_is_least(void **state) {
    static const int64_t most[HEM_DIMS + 1] = {0, 200, 40, 14, 7};
    uint64_t random = 1;
    int cuts = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int dims = 1 + (int)below(&random, HEM_DIMS);
        int64_t extent[HEM_DIMS] = {1, 1, 1, 1};
        int64_t parts = 1 + below(&random, 64);
        hem_grid_cut cut;
        for (int d = 0; d < dims; d++)
            extent[d] = 1 + below(&random, most[dims]);
        int64_t want = least(dims, extent, parts);
        hem_status status = hem_grid_balance(dims, extent, parts, &cut);
        assert_int_equal(status, want < 0 ? HEM_ERR_RANGE : HEM_OK);
        if (want < 0)
            continue;
        cuts++;
        assert_int_equal(cut.dims, dims);
        assert_int_equal(surface(dims, extent, cut.parts), want);
        int64_t product = 1;
        for (int d = 0; d < dims; d++)
            product *= cut.parts[d];
        assert_int_equal(product, parts);
    }
    assert_true(cuts > ROUNDS / 3);
}

static void equal_cuts_go_along_the_first_dimension(void **state) {
    const int64_t extent[3] = {64, 64, 64};
    hem_grid_cut cut;
    (void)state;
    assert_int_equal(hem_grid_balance(3, extent, 2, &cut), HEM_OK);
    assert_true(cut.parts[0] == 2 && cut.parts[1] == 1 && cut.parts[2] == 1);
    assert_int_equal(hem_grid_balance(3, extent, 32, &cut), HEM_OK);
    assert_true(cut.parts[0] == 4 && cut.parts[1] == 4 && cut.parts[2] == 2);
}

/* The boxes are a tiling, and nearly equal. */
static void parts_fill_the_grid(void **state) {
    uint64_t random = 2;
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t extent[3] = {1 + below(&random, 12), 1 + below(&random, 12),
                             1 + below(&random, 12)};
        int64_t parts = 1 + below(&random, 30);
        static int seen[12][12][12];
        hem_grid_cut cut;
        hem_box box;
        memset(seen, 0, sizeof seen);
        if (hem_grid_balance(3, extent, parts, &cut) != HEM_OK)
            continue;
        for (int64_t p = 0; p < parts; p++) {
            assert_int_equal(hem_grid_part(&cut, p, &box), HEM_OK);
            for (int d = 0; d < 3; d++) {
                assert_true(box.count[d] >= extent[d] / cut.parts[d]);
                assert_true(box.count[d] <= (extent[d] + cut.parts[d] - 1) / cut.parts[d]);
            }
            for (int64_t i = 0; i < box.count[0] * box.count[1] * box.count[2]; i++)
                seen[box.start[0] + i / box.count[2] / box.count[1]]
                    [box.start[1] + i / box.count[2] % box.count[1]]
                    [box.start[2] + i % box.count[2]]++;
        }
        for (int64_t i = 0; i < extent[0] * extent[1] * extent[2]; i++)
            assert_int_equal(
                seen[i / extent[2] / extent[1]][i / extent[2] % extent[1]][i % extent[2]], 1);
        assert_int_equal(hem_grid_part(&cut, parts, &box), HEM_ERR_RANGE);
        assert_int_equal(hem_grid_part(&cut, -1, &box), HEM_ERR_RANGE);
    }
}

static void neighbours_lie_next_to_each_other(void **state) {
    const hem_grid_cut cut = {.dims = 3, .extent = {9, 8, 7}, .parts = {3, 4, 2}};
    const bool periodic[3] = {true, false, true};
    (void)state;
    for (int64_t p = 0; p < 24; p++)
        for (int64_t i = 0; i < 729; i++) {
            int64_t step[3] = {i / 81 - 4, i / 9 % 9 - 4, i % 9 - 4};
            int64_t at[3] = {p / 8 + step[0], p / 2 % 4 + step[1], p % 2 + step[2]};
            int64_t inside[3] = {(at[0] + 30) % 3, at[1], (at[2] + 30) % 2};
            bool there = at[1] >= 0 && at[1] < 4;
            int64_t want = there ? (inside[0] * 4 + inside[1]) * 2 + inside[2] : -1;
            assert_int_equal(hem_grid_neighbour(&cut, periodic, p, step), want);
            there = there && at[0] == inside[0] && at[2] == inside[2];
            assert_int_equal(hem_grid_neighbour(&cut, NULL, p, step), there ? want : -1);
        }
}

static void any_step_is_allowed(void **state) {
    const hem_grid_cut cut = {.dims = 1, .extent = {FAR}, .parts = {FAR}};
    const bool periodic = true;
    const int64_t far[] = {INT64_MIN, INT64_MIN + 1, -FAR - 1, FAR + 1, INT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        int64_t to = (far[i] % FAR + FAR) % FAR;
        assert_int_equal(hem_grid_neighbour(&cut, &periodic, 0, &far[i]), to);
        assert_int_equal(hem_grid_neighbour(&cut, NULL, 0, &far[i]), -1);
        assert_int_equal(hem_grid_neighbour(&cut, NULL, FAR - 1, &far[i]), -1);
    }
}

static void large_numbers(void **state) {
    const int64_t extent[4] = {FAR, FAR - 1, FAR - 2, FAR};
    hem_grid_cut cut;
    hem_box box;
    (void)state;
    assert_int_equal(hem_grid_balance(4, extent, INT64_C(1) << 40, &cut), HEM_OK);
    for (int d = 0; d < 4; d++)
        assert_int_equal(cut.parts[d], 1 << 10);
    assert_int_equal(hem_grid_part(&cut, (INT64_C(1) << 40) - 1, &box), HEM_OK);
    for (int d = 0; d < 4; d++)
        assert_int_equal(box.start[d] + box.count[d], extent[d]);
    /* The number below 2^63 with the most divisors. */
    assert_int_equal(hem_grid_balance(4, extent, INT64_C(9200527969062830400) / 2, &cut), HEM_OK);
    assert_int_equal(hem_grid_balance(4, extent, INT64_C(9200527969062830400), &cut), HEM_OK);
    assert_int_equal(cut.parts[0] * cut.parts[1] * cut.parts[2] * cut.parts[3],
                     INT64_C(9200527969062830400));
    /* The grid has room for it, but no divisors fit; that is found out soon. */
    const int64_t tight[3] = {2095420, 2095420, 2095420};
    assert_int_equal(hem_grid_balance(3, tight, INT64_C(9200527969062830400), &cut), HEM_ERR_RANGE);
}

static void nonsense_is_refused(void **state) {
    const int64_t extent[2] = {4, 4};
    const int64_t bad[2] = {4, 0};
    const int64_t step[2] = {0, 0};
    hem_grid_cut cut = {.dims = 77};
    hem_grid_cut odd = {.dims = 2, .extent = {4, 4}, .parts = {5, 1}};
    hem_box box;
    (void)state;
    assert_int_equal(hem_grid_balance(0, extent, 1, &cut), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(5, extent, 1, &cut), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(2, NULL, 1, &cut), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(2, extent, 1, NULL), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(2, extent, 0, &cut), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(2, extent, -3, &cut), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(2, bad, 1, &cut), HEM_ERR_ARG);
    assert_int_equal(hem_grid_balance(2, extent, 5, &cut), HEM_ERR_RANGE);
    assert_int_equal(hem_grid_balance(2, extent, 17, &cut), HEM_ERR_RANGE);
    assert_int_equal(hem_grid_balance(2, extent, INT64_MAX, &cut), HEM_ERR_RANGE);
    assert_int_equal(cut.dims, 77);
    assert_int_equal(hem_grid_part(NULL, 0, &box), HEM_ERR_ARG);
    assert_int_equal(hem_grid_part(&cut, 0, &box), HEM_ERR_ARG);
    assert_int_equal(hem_grid_part(&odd, 0, &box), HEM_ERR_ARG);
    assert_int_equal(hem_grid_neighbour(NULL, NULL, 0, step), -1);
    assert_int_equal(hem_grid_neighbour(&odd, NULL, 0, step), -1);
    odd.parts[0] = 4;
    assert_int_equal(hem_grid_part(&odd, 0, NULL), HEM_ERR_ARG);
    assert_int_equal(hem_grid_neighbour(&odd, NULL, 0, NULL), -1);
    assert_int_equal(hem_grid_neighbour(&odd, NULL, 4, step), -1);
    assert_int_equal(hem_grid_neighbour(&odd, NULL, 3, step), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(surface_is_least),
        cmocka_unit_test(equal_cuts_go_along_the_first_dimension),
        cmocka_unit_test(parts_fill_the_grid),
        cmocka_unit_test(neighbours_lie_next_to_each_other),
        cmocka_unit_test(any_step_is_allowed),
        cmocka_unit_test(large_numbers),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
