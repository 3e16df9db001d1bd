/* What the search relies on: boxes touch few tiles, and equal boxes share a level. */
#include "halo/pattern/tiling.h"

#include "base/testing.h"
#include "halo/pattern/box.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    ROUNDS = 20000
};

/* Numbers of all lengths: 1 to 2^bits. */
static int64_t some_length(uint64_t *state, int bits) {
    uint64_t length = testing_random(state) >> (64 - bits);
    return 1 + (int64_t)(length >> testing_random(state) % (uint64_t)bits);
}

static hemi_tiling some_tiling(uint64_t *state) {
    hemi_tiling tiling = {.dims = 1 + (int)(testing_random(state) % HEM_DIMS)};
    for (int d = 0; d < tiling.dims; d++) {
        tiling.extent[d] = some_length(state, 62);
        tiling.unit[d] = some_length(state, 62);
        if (tiling.unit[d] > tiling.extent[d])
            tiling.unit[d] = tiling.extent[d];
    }
    return tiling;
}

static hem_box some_box(uint64_t *state, const hemi_tiling *tiling) {
    hem_box box = {{0}, {0}};
    for (int d = 0; d < tiling->dims; d++) {
        box.count[d] = some_length(state, 62);
        if (box.count[d] > tiling->extent[d])
            box.count[d] = tiling->extent[d];
        box.start[d] =
            (int64_t)(testing_random(state) % (uint64_t)(tiling->extent[d] - box.count[d] + 1));
    }
    return box;
}

static void tiles_grow_from_a_point_to_everything(void **state) {
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 1000; round++) {
        hemi_tiling tiling = some_tiling(&random);
        for (int d = 0; d < tiling.dims; d++) {
            assert_int_equal(hemi_tile_length(&tiling, 0, d), 1);
            assert_int_equal(hemi_tile_length(&tiling, HEMI_LEVEL_MIDDLE, d), tiling.unit[d]);
            assert_int_equal(hemi_tile_length(&tiling, HEMI_LEVELS - 1, d), HEMI_POINTS_MAX);
            for (int level = 1; level < HEMI_LEVELS; level++) {
                int64_t small = hemi_tile_length(&tiling, level - 1, d);
                int64_t large = hemi_tile_length(&tiling, level, d);
                assert_true(small >= 1 && small <= large && small >= large / 4);
            }
        }
    }
}

static void boxes_touch_two_tiles_per_dimension(void **state) {
    uint64_t random = 2;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        hemi_tiling tiling = some_tiling(&random);
        hem_box box = some_box(&random, &tiling);
        int level = hemi_tiling_level(&tiling, &box);
        int64_t first[HEM_DIMS];
        int64_t last[HEM_DIMS];
        uint64_t tiles = hemi_tiling_touch(&tiling, level, &box, first, last);
        assert_true(tiles >= 1 && tiles <= UINT64_C(1) << tiling.dims);
        bool longer = level == 0;
        for (int d = 0; d < tiling.dims; d++) {
            assert_true(box.count[d] <= hemi_tile_length(&tiling, level, d));
            longer = longer || box.count[d] > hemi_tile_length(&tiling, level - 1, d);
        }
        assert_true(longer);
    }
}

static void crowded_levels_are_passed_over(void **state) {
    hemi_tiling tiling = {.crowded = UINT64_MAX >> 1};
    (void)state;
    assert_int_equal(hemi_tiling_lift(&tiling, 0), HEMI_LEVELS - 1);
    tiling.crowded = 0x6;
    assert_int_equal(hemi_tiling_lift(&tiling, 0), 0);
    assert_int_equal(hemi_tiling_lift(&tiling, 1), 3);
    assert_int_equal(hemi_tiling_lift(&tiling, 3), 3);
}

static void every_tile_is_visited_once(void **state) {
    const hemi_tiling tiling = {.dims = 3, .extent = {20, 20, 20}, .unit = {3, 4, 5}};
    const hem_box box = {{2, 3, 4}, {5, 6, 7}};
    int64_t first[HEM_DIMS];
    int64_t last[HEM_DIMS];
    int64_t tile[HEM_DIMS];
    int seen[8][8][8] = {{{0}}};
    uint64_t tiles = hemi_tiling_touch(&tiling, HEMI_LEVEL_MIDDLE, &box, first, last);
    (void)state;
    memcpy(tile, first, sizeof tile);
    do {
        seen[tile[0]][tile[1]][tile[2]]++;
        tiles--;
    } while (hemi_tiling_next(&tiling, first, last, tile));
    assert_int_equal(tiles, 0);
    for (int64_t x = 2; x < 7; x++)
        for (int64_t y = 3; y < 9; y++)
            for (int64_t z = 4; z < 11; z++)
                assert_int_equal(seen[x / 3][y / 4][z / 5], 1);
}

static void too_many_tiles_are_told(void **state) {
    const hemi_tiling tiling = {
        .dims = 2, .extent = {HEMI_POINTS_MAX, HEMI_POINTS_MAX}, .unit = {1, 1}};
    const hem_box box = {{0, 0}, {HEMI_POINTS_MAX, HEMI_POINTS_MAX}};
    int64_t first[HEM_DIMS];
    int64_t last[HEM_DIMS];
    (void)state;
    assert_true(hemi_tiling_touch(&tiling, 0, &box, first, last) == UINT64_MAX);
}

/* The homes of neighbouring tiles are spread evenly. */
static void homes_are_spread(void **state) {
    const hemi_tiling tiling = {.dims = 3, .extent = {16, 16, 16}, .unit = {1, 1, 1}};
    int load[64] = {0};
    (void)state;
    for (int64_t i = 0; i < 4096; i++) {
        int64_t tile[HEM_DIMS] = {i / 256, i / 16 % 16, i % 16};
        uint32_t home = hemi_tile_home(&tiling, 0, HEMI_LEVEL_MIDDLE, tile, 64);
        assert_true(home < 64);
        load[home]++;
    }
    for (int i = 0; i < 64; i++)
        assert_true(load[i] > 32 && load[i] < 112);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_grow_from_a_point_to_everything),
        cmocka_unit_test(boxes_touch_two_tiles_per_dimension),
        cmocka_unit_test(crowded_levels_are_passed_over),
        cmocka_unit_test(every_tile_is_visited_once),
        cmocka_unit_test(too_many_tiles_are_told),
        cmocka_unit_test(homes_are_spread),
    };
    return cmocka_run_group_tests_name("tiling", tests, NULL, NULL);
}
