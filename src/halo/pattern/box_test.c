/* Boxes against single points, and at the ends of what 64 bits can name. */
#include "halo/pattern/box.h"

#include "base/testing.h"
#include "halo/pattern/images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FAR HEMI_POINTS_MAX

enum {
    ROUNDS = 2000,
    EDGE = 12
};

static int64_t below(uint64_t *state, int64_t n) {
    return (int64_t)(testing_random(state) % (uint64_t)n);
}

static bool has(int dims, const hem_box *box, const int64_t *at) {
    for (int d = 0; d < dims; d++)
        if (at[d] < box->start[d] || at[d] - box->start[d] >= box->count[d])
            return false;
    return true;
}

static void division_rounds_down(void **state) {
    (void)state;
    for (int64_t a = -20; a <= 20; a++)
        for (int64_t b = 1; b <= 7; b++) {
            int64_t q = hemi_floor_div(a, b);
            assert_true(q * b <= a && a < (q + 1) * b);
        }
    assert_int_equal(hemi_floor_div(-FAR, FAR), -1);
    assert_int_equal(hemi_floor_div(INT64_MAX, FAR), 1);
}

static void points_are_counted_up_to_the_limit(void **state) {
    hem_box box = {{0}, {INT64_C(1) << 31, INT64_C(1) << 31, 1, 1}};
    (void)state;
    assert_int_equal(hemi_box_points(4, &box), FAR);
    box.count[2] = 2;
    assert_int_equal(hemi_box_points(4, &box), -1);
    box.count[2] = INT64_MAX;
    assert_int_equal(hemi_box_points(4, &box), -1);
    box.count[3] = 0;
    assert_int_equal(hemi_box_points(4, &box), 0);
    assert_int_equal(hemi_box_points(2, &box), FAR);
}

static void inside_is_checked_without_overflow(void **state) {
    const int64_t extent[1] = {FAR};
    const struct {
        int64_t start;
        int64_t count;
        bool inside;
    } cases[] = {
        {0, FAR, true},        {0, FAR + 1, false}, {1, FAR, false},
        {FAR - 1, 1, true},    {FAR, 1, false},     {FAR - 1, INT64_MAX, false},
        {INT64_MAX, 1, false}, {-1, 2, false},      {INT64_MIN, INT64_MAX, false},
        {0, 0, false},         {5, -1, false},      {INT64_MAX, INT64_MIN, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hem_box box = {{cases[i].start}, {cases[i].count}};
        assert_int_equal(hemi_box_inside(1, &box, extent), cases[i].inside);
    }
}

static hem_box some_box(uint64_t *state, int dims) {
    hem_box box = {{0}, {0}};
    for (int d = 0; d < dims; d++) {
        box.start[d] = below(state, EDGE);
        box.count[d] = 1 + below(state, EDGE - box.start[d]);
    }
    return box;
}

static void meeting_is_having_points_in_common(void **state) {
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        hem_box a = some_box(&random, 2);
        hem_box b = some_box(&random, 2);
        hem_box meet = {{0}, {0}};
        bool any = false;
        bool said = hemi_box_meet(2, &a, &b, &meet);
        for (int64_t x = 0; x < EDGE; x++)
            for (int64_t y = 0; y < EDGE; y++) {
                int64_t at[2] = {x, y};
                bool both = has(2, &a, at) && has(2, &b, at);
                any = any || both;
                assert_int_equal(both, said && has(2, &meet, at));
            }
        assert_int_equal(any, said);
    }
}

static void subtraction_leaves_the_rest_once(void **state) {
    uint64_t random = 2;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        hem_box outer = some_box(&random, 3);
        hem_box inner = outer;
        hem_box parts[2 * HEM_DIMS];
        for (int d = 0; d < 3; d++) {
            inner.start[d] += below(&random, outer.count[d]);
            inner.count[d] = 1 + below(&random, outer.start[d] + outer.count[d] - inner.start[d]);
        }
        int count = hemi_box_subtract(3, &outer, &inner, parts);
        int64_t points = hemi_box_points(3, &inner);
        for (int i = 0; i < count; i++) {
            hem_box meet;
            points += hemi_box_points(3, &parts[i]);
            assert_true(hemi_box_points(3, &parts[i]) > 0);
            assert_false(hemi_box_meet(3, &parts[i], &inner, &meet));
            assert_true(hemi_box_meet(3, &parts[i], &outer, &meet));
            assert_memory_equal(&meet, &parts[i], 3 * sizeof *meet.start);
            for (int k = 0; k < i; k++)
                assert_false(hemi_box_meet(3, &parts[i], &parts[k], &meet));
        }
        assert_int_equal(points, hemi_box_points(3, &outer));
    }
}

static void wrapping_finds_every_point_once(void **state) {
    uint64_t random = 3;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t extent[2] = {1 + below(&random, 6), 1 + below(&random, 6)};
        bool periodic[2] = {below(&random, 2) == 0, below(&random, 2) == 0};
        hem_box box = {{below(&random, 20) - 10, below(&random, 20) - 10},
                       {below(&random, 12), below(&random, 12)}};
        hem_box parts[1 << HEM_DIMS];
        int want[6][6] = {{0}};
        int count = hemi_box_wrap(2, &box, extent, periodic, parts);
        for (int64_t x = box.start[0]; x < box.start[0] + box.count[0]; x++)
            for (int64_t y = box.start[1]; y < box.start[1] + box.count[1]; y++) {
                int64_t in[2] = {x, y};
                for (int d = 0; d < 2; d++)
                    if (periodic[d])
                        in[d] -= hemi_floor_div(in[d], extent[d]) * extent[d];
                if (in[0] >= 0 && in[0] < extent[0] && in[1] >= 0 && in[1] < extent[1])
                    want[in[0]][in[1]] = 1;
            }
        for (int i = 0; i < count; i++)
            for (int64_t x = 0; x < parts[i].count[0]; x++)
                for (int64_t y = 0; y < parts[i].count[1]; y++)
                    want[parts[i].start[0] + x][parts[i].start[1] + y]--;
        for (int i = 0; i < 36; i++)
            assert_int_equal(want[i / 6][i % 6], 0);
    }
}

/* Every position of a halo, from its pieces and by wrapping. */
static void check_pieces(const hemi_axis *axis, hemi_stretch own, hemi_stretch owner) {
    hemi_cover pieces[64];
    int seen[64] = {0};
    size_t count = hemi_axis_pieces(axis, own, owner, pieces);
    int64_t inside = 0;
    assert_true(count <= hemi_axis_room(axis, own));
    for (size_t i = 0; i < count; i++)
        for (int64_t k = 0; k < pieces[i].count; k++) {
            int64_t at = pieces[i].mine + k;
            int64_t in = own.start + at;
            assert_true(at >= -axis->low && at < own.count + axis->high);
            assert_int_equal(pieces[i].low, at < 0);
            assert_int_equal(pieces[i].high, at >= own.count);
            if (axis->periodic)
                in -= hemi_floor_div(in, axis->extent) * axis->extent;
            assert_int_equal(in, owner.start + pieces[i].theirs + k);
            assert_true(pieces[i].theirs + k < owner.count);
            seen[at + axis->low]++;
        }
    for (int64_t at = -axis->low; at < own.count + axis->high; at++) {
        int64_t in = own.start + at;
        if (axis->periodic)
            in -= hemi_floor_div(in, axis->extent) * axis->extent;
        inside += in >= 0 && in < axis->extent;
        assert_int_equal(seen[at + axis->low], in >= owner.start && in < owner.start + owner.count);
    }
    assert_int_equal(inside, hemi_axis_inside(axis, own));
}

static void pieces_are_what_an_owner_covers(void **state) {
    uint64_t random = 4;
    (void)state;
    for (int round = 0; round < 10 * ROUNDS; round++) {
        hemi_axis axis = {1 + below(&random, 10), below(&random, 2) == 0, below(&random, 20),
                          below(&random, 20)};
        hemi_stretch own = {below(&random, axis.extent), 0};
        hemi_stretch owner = {below(&random, axis.extent), 0};
        own.count = 1 + below(&random, axis.extent - own.start);
        owner.count = 1 + below(&random, axis.extent - owner.start);
        check_pieces(&axis, own, owner);
    }
}

/* Ends that are as far out as they can be. With UBSan this finds every overflow on the way. */
static void far_ends_do_not_overflow(void **state) {
    hemi_axis axis = {FAR, true, FAR / 2 - 1, FAR / 2 - 1};
    hemi_stretch first = {0, 2};
    hemi_stretch last = {FAR - 2, 2};
    hemi_cover pieces[8];
    (void)state;
    assert_int_equal(hemi_axis_pieces(&axis, first, last, pieces), 1);
    assert_int_equal(pieces[0].mine, -2);
    assert_int_equal(pieces[0].count, 2);
    assert_int_equal(pieces[0].theirs, 0);
    assert_int_equal(pieces[0].low, 1);
    assert_int_equal(hemi_axis_pieces(&axis, last, first, pieces), 1);
    assert_int_equal(pieces[0].mine, 2);
    assert_int_equal(pieces[0].high, 1);
    assert_int_equal(hemi_axis_room(&axis, first), 4);
    assert_int_equal(hemi_axis_inside(&axis, last), FAR);
    axis.low = FAR - 2;
    axis.high = 0;
    assert_int_equal(hemi_axis_pieces(&axis, first, last, pieces), 1);
    assert_int_equal(hemi_axis_pieces(&axis, last, (hemi_stretch){0, FAR}, pieces), 2);
    axis = (hemi_axis){FAR - 1, true, 0, FAR - 1};
    assert_int_equal(
        hemi_axis_pieces(&axis, (hemi_stretch){FAR - 2, 1}, (hemi_stretch){0, FAR - 1}, pieces), 2);
    assert_int_equal(pieces[1].count, FAR - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(division_rounds_down),
        cmocka_unit_test(points_are_counted_up_to_the_limit),
        cmocka_unit_test(inside_is_checked_without_overflow),
        cmocka_unit_test(meeting_is_having_points_in_common),
        cmocka_unit_test(subtraction_leaves_the_rest_once),
        cmocka_unit_test(wrapping_finds_every_point_once),
        cmocka_unit_test(pieces_are_what_an_owner_covers),
        cmocka_unit_test(far_ends_do_not_overflow),
    };
    return cmocka_run_group_tests_name("box", tests, NULL, NULL);
}
