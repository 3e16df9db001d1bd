/* Random shapes, and what they mean element by element. For tests. */
#ifndef HEMI_HALO_SHAPE_TESTING_H
#define HEMI_HALO_SHAPE_TESTING_H

#include "base/testing.h"
#include "halo/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** The most steps of a list. */
#define TEST_LIST 400

/** A shape with the memory that its specification needs, and the offset of each element. */
typedef struct test_shape {
    hemi_shape_spec spec;
    int64_t list[TEST_LIST];
    hemi_shape *shape;
    int64_t *offsets; /**< in the order of packing */
    size_t count;
    int64_t low;  /**< the first byte that is touched */
    int64_t high; /**< the first after the last */
} test_shape;

static inline uint64_t below(uint64_t *state, uint64_t n) {
    return testing_random(state) % n;
}

static inline size_t random_element(uint64_t *state) {
    static const size_t sizes[] = {1, 2, 4, 8, 8, 8, 16, 3, 12, 24, 40};
    return sizes[below(state, sizeof sizes / sizeof sizes[0])];
}

static inline uint64_t random_count(uint64_t *state) {
    switch (below(state, 40)) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
    case 4:
        return 1;
    case 5:
    case 6:
    case 7:
    case 8:
        return 30 + below(state, 100);
    default:
        return 1 + below(state, 7);
    }
}

/** Element size and counts, at most some thousand elements. */
static inline void random_counts(uint64_t *state, hemi_shape_spec *spec) {
    uint64_t total = 1;

    memset(spec, 0, sizeof *spec);
    spec->element = random_element(state);
    spec->axis_count = below(state, 10) == 0 ? below(state, HEMI_SHAPE_AXES + 1) : below(state, 5);
    for (size_t k = 0; k < spec->axis_count; k++) {
        uint64_t count = random_count(state);
        spec->axes[k].count = total * count > 4000 ? 1 : count;
        total *= spec->axes[k].count > 0 ? spec->axes[k].count : 1;
    }
}

/** Steps of a list: any, in runs, equal runs, by equal steps, or each one once in any order. */
static inline uint64_t random_list(uint64_t *state, int64_t *list, uint64_t count) {
    uint64_t kind = below(state, 6);
    uint64_t run = 1 + below(state, kind == 1 ? 20 : 4);
    uint64_t span = 2 * count + 1;
    int64_t at = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (kind == 0)
            at = (int64_t)below(state, span);
        else if (kind == 1)
            at = i == 0 || below(state, run) == 0 ? (int64_t)below(state, span) : at + 1;
        else if (kind == 2)
            at = i % run == 0 ? (int64_t)below(state, span) : at + 1;
        else if (kind == 3)
            at = (int64_t)(i * run);
        else if (kind == 4)
            at = (int64_t)(i / run * (run + 2) + i % run);
        else
            at = (int64_t)(count - 1 - i);
        list[i] = at;
    }
    for (uint64_t i = 0; i < count; i++)
        span = (uint64_t)list[i] + 1 > span ? (uint64_t)list[i] + 1 : span;
    return span;
}

/** Strides of axes in a random order, each one over all those before, or anything at all. */
static inline void random_strides(uint64_t *state, test_shape *t) {
    hemi_shape_spec *spec = &t->spec;
    bool wild = below(state, 8) == 0;
    uint64_t order = below(state, 3); /* as they are, reversed, any */
    uint64_t step = spec->element + (below(state, 6) == 0 ? below(state, 20) : 0);
    uint64_t left = (1u << spec->axis_count) - 1;

    spec->list = NULL;
    spec->list_axis = spec->axis_count > 0 ? below(state, spec->axis_count) : 0;
    while (left != 0) {
        size_t k = order == 2   ? below(state, spec->axis_count)
                   : order == 1 ? (size_t)__builtin_ctzll(left)
                                : (size_t)(63 - __builtin_clzll(left));
        hemi_shape_axis *axis = &spec->axes[k];
        uint64_t extent = axis->count;
        if ((left & 1ull << k) == 0)
            continue;
        left &= ~(1ull << k);
        if (k == spec->list_axis && extent <= TEST_LIST && below(state, 2) == 0) {
            extent = random_list(state, t->list, extent);
            spec->list = t->list;
        }
        axis->stride = wild ? (int64_t)below(state, 3 * spec->element) : (int64_t)step;
        step = step * (extent > 0 ? extent : 1) + (below(state, 4) == 0 ? below(state, 40) : 0);
        if (below(state, 5) == 0)
            axis->stride = -axis->stride;
    }
}

/** The offset of every element, by nested loops over the specification. */
static inline void enumerate(test_shape *t) {
    const hemi_shape_spec *spec = &t->spec;
    size_t total = 1;

    for (size_t k = 0; k < spec->axis_count; k++)
        total *= spec->axes[k].count;
    t->count = total;
    t->offsets = malloc((total + 1) * sizeof(int64_t));
    t->low = INT64_MAX;
    t->high = INT64_MIN;
    for (size_t i = 0; i < total; i++) {
        int64_t offset = spec->base;
        size_t rest = i;
        for (size_t k = spec->axis_count; k-- > 0;) {
            int64_t step = (int64_t)(rest % spec->axes[k].count);
            rest /= spec->axes[k].count;
            if (spec->list != NULL && k == spec->list_axis)
                step = spec->list[step];
            offset += step * spec->axes[k].stride;
        }
        t->offsets[i] = offset;
        t->low = offset < t->low ? offset : t->low;
        t->high =
            offset + (int64_t)spec->element > t->high ? offset + (int64_t)spec->element : t->high;
    }
    if (total == 0)
        t->low = t->high = 0;
}

static inline void make_test_shape(test_shape *t) {
    int64_t first;
    int64_t end;

    enumerate(t);
    assert_int_equal(hemi_shape_make(&t->spec, &t->shape), HEM_OK);
    assert_int_equal(hemi_shape_bytes(t->shape), t->count * t->spec.element);
    hemi_shape_bounds(t->shape, &first, &end);
    assert_true(first == t->low);
    assert_true(end == t->high);
}

static inline void random_shape(uint64_t *state, test_shape *t) {
    random_counts(state, &t->spec);
    random_strides(state, t);
    t->spec.base = (int64_t)below(state, 100) - 50;
    make_test_shape(t);
}

static inline void free_test_shape(test_shape *t) {
    hemi_shape_free(t->shape);
    free(t->offsets);
}

/** Bytes at some alignment, exactly as many as asked for, so that sanitizers see what is beyond. */
typedef struct test_bytes {
    unsigned char *memory;
    unsigned char *at;
    size_t count;
} test_bytes;

static inline test_bytes random_bytes(uint64_t *state, size_t count) {
    size_t shift = below(state, 3) == 0 ? 0 : below(state, 64);
    test_bytes b = {.memory = malloc(count + shift + 1), .count = count};

    assert_non_null(b.memory);
    b.at = b.memory + shift;
    for (size_t i = 0; i < count; i++)
        b.at[i] = (unsigned char)testing_random(state);
    return b;
}

static inline test_bytes same_bytes(const test_bytes *of) {
    test_bytes b = {.memory = malloc(of->count + 1), .count = of->count};

    assert_non_null(b.memory);
    b.at = b.memory;
    memcpy(b.at, of->at, of->count);
    return b;
}

/** A field for a shape. Its address may be outside of its memory. */
static inline test_bytes random_field(uint64_t *state, const test_shape *t) {
    return random_bytes(state, (size_t)(t->high - t->low));
}

static inline unsigned char *field_of(const test_bytes *b, const test_shape *t) {
    return (unsigned char *)((uintptr_t)b->at - (uintptr_t)t->low);
}

/** The seed of a round of random tests. */
static inline uint64_t round_seed(uint64_t round) {
    return 0x5eed0000u + round;
}

static inline void check_same(uint64_t seed, const char *what, const void *a, const void *b,
                              size_t n) {
    if (n > 0 && memcmp(a, b, n) != 0)
        fail_msg("%s differs with seed 0x%llx", what, (unsigned long long)seed);
}

#endif
