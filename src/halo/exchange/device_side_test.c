/* Lowering: every unit of a side is where the shape packs it from, parts that are cut make one, and
 * what kernels move by it is what the shape packs and unpacks. */
#include "device/kernels/halo_move.h"
#include "halo/exchange/device.h"
#include "halo/shape_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A part over a shape, with its list if it has one. */
typedef struct rig {
    hemi_part part;
    hemi_halo_list list;
    unsigned char *field;
} rig;

#define FIELD_BYTES 65536

static void make_rig(rig *r, const hemi_shape_spec *spec) {
    memset(r, 0, sizeof *r);
    r->field = calloc(1, FIELD_BYTES);
    assert_non_null(r->field);
    assert_int_equal(hemi_shape_make(spec, &r->part.shape), HEM_OK);
    r->part.memory = r->field + FIELD_BYTES / 2;
    r->part.bytes = hemi_shape_bytes(r->part.shape);
    assert_int_equal(hemi_halo_list_make(r->part.shape, &r->list), HEM_OK);
    r->part.list = r->list.count > 0 ? &r->list : NULL;
    for (size_t i = 0; i < FIELD_BYTES; i++)
        r->field[i] = (unsigned char)(i * 31 + i / 256 * 7);
}

static void free_rig(rig *r) {
    free(r->list.steps);
    hemi_shape_free(r->part.shape);
    free(r->field);
}

/* Packed unit by unit, as a kernel does it, against the shape's own packing. */
static void check_units(const rig *r, const hemd_halo_side *side, uint64_t first, uint64_t count,
                        uint32_t unit, const unsigned char *packed) {
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *at = side->base + hemd_halo_offset(side, i);
        assert_true(at >= r->field && at + unit <= r->field + FIELD_BYTES);
        assert_int_equal((uintptr_t)at % unit, 0);
        assert_memory_equal(at, packed + (first + i) * unit, unit);
    }
}

/* A part that moves between the field and a message, in tiles. `few`: in registers, if it may. */
static hemd_halo_part make_part(const rig *r, uint32_t unit, bool unpacks, bool few) {
    hemd_halo_part part = {.total = r->part.bytes / unit, .tile = 5, .unit = unit, .width = unit};
    hemi_halo_side_make(&r->part, unit, NULL, unpacks ? &part.to : &part.from);
    hemi_halo_side_message(part.total, unit, unpacks ? &part.from : &part.to);
    hemi_halo_part_settle(&part);
    part.few = part.few != 0 && few;
    return part;
}

static void move_part(const hemd_halo_part *part, unsigned char *message, uint32_t across) {
    for (uint64_t first = 0; first < part->total; first += part->tile)
        hemd_halo_copy(hem_warp(), part, first, message, across);
}

/* Into another field of the same shape, by what the kernels call. */
static void check_across(const rig *r, uint32_t unit, bool few, const unsigned char *packed) {
    unsigned char *field = malloc(FIELD_BYTES);
    unsigned char *wanted = malloc(FIELD_BYTES);
    assert_non_null(field);
    assert_non_null(wanted);
    hemi_part other = r->part;
    other.memory = field + (r->part.memory - r->field);
    memset(wanted, 0xa5, FIELD_BYTES);
    hemi_shape_unpack(r->part.shape, wanted + (r->part.memory - r->field), packed);
    for (uint32_t across = 1; across <= 4; across++) {
        hemd_halo_part part = {
            .total = r->part.bytes / unit, .tile = 5, .unit = unit, .width = unit};
        hemi_halo_side_make(&r->part, unit, NULL, &part.from);
        hemi_halo_side_make(&other, unit, NULL, &part.to);
        hemi_halo_part_settle(&part);
        part.few = part.few != 0 && few;
        memset(field, 0xa5, FIELD_BYTES);
        move_part(&part, NULL, across);
        assert_memory_equal(field, wanted, FIELD_BYTES);
    }
    free(wanted);
    free(field);
}

/* Out of the field and into it again, by what the kernels call. */
static void check_moves(const rig *r, uint32_t unit, bool few, const unsigned char *packed) {
    unsigned char *message = malloc(r->part.bytes);
    unsigned char *before = malloc(FIELD_BYTES);
    assert_non_null(message);
    assert_non_null(before);
    memcpy(before, r->field, FIELD_BYTES);
    for (uint64_t i = 0; i < r->part.bytes; i++)
        message[i] = (unsigned char)~packed[i];
    hemd_halo_part part = make_part(r, unit, false, few);
    move_part(&part, message, 4);
    assert_memory_equal(message, packed, r->part.bytes);

    memset(r->field, 0xa5, FIELD_BYTES);
    part = make_part(r, unit, true, few);
    move_part(&part, message, 4);
    unsigned char *moved = malloc(FIELD_BYTES);
    assert_non_null(moved);
    memcpy(moved, r->field, FIELD_BYTES);
    memset(r->field, 0xa5, FIELD_BYTES);
    hemi_shape_unpack(r->part.shape, r->part.memory, packed);
    assert_memory_equal(moved, r->field, FIELD_BYTES);
    memcpy(r->field, before, FIELD_BYTES);
    free(moved);
    free(before);
    free(message);
}

static void check_rig(const rig *r) {
    uint32_t grain = hemi_halo_grain(&r->part);
    unsigned char *packed = malloc(r->part.bytes);
    assert_non_null(packed);
    hemi_shape_pack(r->part.shape, r->part.memory, packed);
    for (uint32_t unit = grain; unit > 0; unit /= 2) {
        hemd_halo_side side;
        uint64_t total = r->part.bytes / unit;
        hemi_halo_side_make(&r->part, unit, NULL, &side);
        check_units(r, &side, 0, total, unit, packed);
        check_moves(r, unit, true, packed);
        check_moves(r, unit, false, packed);
        check_across(r, unit, true, packed);
        check_across(r, unit, false, packed);
        uint64_t steps = side.axes[side.axis_count - 1].count;
        for (uint64_t step = 0; step < steps; step += 3) {
            hemd_halo_side cut = side;
            uint64_t inside = total / steps;
            uint64_t count = (steps - step < 3 ? steps - step : 3) * inside;
            hemi_halo_side_cut(&cut, step * inside, count);
            check_units(r, &cut, step * inside, count, unit, packed);
        }
    }
    free(packed);
}

static void boxes_are_walked(void **state) {
    (void)state;
    static const hemi_shape_spec specs[] = {
        {.element = 8, .axis_count = 1, .axes = {{40, 8}}},
        {.element = 8, .axis_count = 2, .axes = {{7, 512}, {5, 8}}},
        {.element = 4, .axis_count = 3, .axes = {{3, 4096}, {5, -64}, {6, 12}}, .base = 1000},
        {.element = 12, .axis_count = 4, .axes = {{2, 9000}, {3, 800}, {4, 100}, {5, 12}}},
        {.element = 3, .axis_count = 2, .axes = {{9, 50}, {4, 7}}, .base = -301},
        {.element = 16, .axis_count = 1, .axes = {{1, 16}}},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        rig r;
        make_rig(&r, &specs[i]);
        check_rig(&r);
        free_rig(&r);
    }
}

/* The widest units, with more loops than registers: nothing of such a unit may be left behind. */
static void wide_units_have_many_axes(void **state) {
    (void)state;
    const hemi_shape_spec spec = {
        .element = 16,
        .axis_count = 5,
        .axes = {{2, 8192}, {3, 2048}, {2, 512}, {3, 128}, {2, 32}},
    };
    rig r;
    make_rig(&r, &spec);
    assert_int_equal(hemi_halo_grain(&r.part), 16);
    assert_int_equal(make_part(&r, 16, false, true).few, 0);
    check_rig(&r);
    free_rig(&r);
}

/* As many loops as a shape may have, and one more inside when it is cut into units. */
static void shapes_have_all_axes(void **state) {
    (void)state;
    const hemi_shape_spec spec = {
        .element = 8,
        .axis_count = HEMI_SHAPE_AXES,
        .axes =
            {{2, 34992}, {2, 11664}, {2, 3888}, {2, 1296}, {2, 432}, {2, 144}, {2, 48}, {2, 16}},
        .base = -30000,
    };
    hemd_halo_side side;
    rig r;
    make_rig(&r, &spec);
    assert_int_equal(r.part.shape->axis_count, HEMI_SHAPE_AXES);
    hemi_halo_side_make(&r.part, 4, NULL, &side);
    assert_int_equal(side.axis_count, HEMI_SHAPE_AXES + 1);
    check_rig(&r);
    free_rig(&r);
}

static void lists_are_walked(void **state) {
    (void)state;
    /* Scattered, with neighbours that make runs of different length, and one point twice. */
    static const int64_t scattered[] = {5, 90, 33, 70, 2, 64, 33};
    static const int64_t runs[] = {10, 11, 12, 13, 40, 41, 60, 61, 62, 63, 64, 65, 90, 91};
    const int64_t *lists[] = {scattered, runs};
    const size_t counts[] = {7, 14};
    for (size_t i = 0; i < 4; i++) {
        bool levels_inside = i >= 2;
        hemi_shape_spec spec = {.element = 8,
                                .axis_count = 2,
                                .list = lists[i % 2],
                                .list_axis = levels_inside ? 0 : 1};
        spec.axes[spec.list_axis] = (hemi_shape_axis){counts[i % 2], levels_inside ? 8 * 4 : 8};
        spec.axes[1 - spec.list_axis] = (hemi_shape_axis){4, levels_inside ? 8 : 2000};
        rig r;
        make_rig(&r, &spec);
        assert_non_null(r.part.list);
        check_rig(&r);
        free_rig(&r);
    }
}

static void divisions_are_exact(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 5, 7, 641, 65535, 65536, 1000003, INT32_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        hemd_halo_side side;
        hemi_halo_side_message(counts[c], 1, &side);
        const hemd_halo_axis *axis = &side.axes[0];
        for (uint64_t n = 0; n <= INT32_MAX; n = n * 3 / 2 + 1)
            assert_int_equal(hemd_halo_divide((uint32_t)n, axis->magic, axis->shift),
                             n / counts[c]);
        for (uint64_t k = 1; k * counts[c] <= INT32_MAX && k < 100; k++) {
            uint32_t n = (uint32_t)(k * counts[c]);
            assert_int_equal(hemd_halo_divide(n, axis->magic, axis->shift), k);
            assert_int_equal(hemd_halo_divide(n - 1, axis->magic, axis->shift), k - 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_walked),     cmocka_unit_test(wide_units_have_many_axes),
        cmocka_unit_test(shapes_have_all_axes), cmocka_unit_test(lists_are_walked),
        cmocka_unit_test(divisions_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
