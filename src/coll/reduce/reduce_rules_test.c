/*
 * What the table of types and operations holds, what is refused and how, rounding of f16 and bf16
 * over all their values, and reductions of the caller's.
 */
#include "coll/reduce/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void types_have_the_operations_that_make_sense(void **state) {
    static const struct {
        const char *name;
        const char *ops; /* from HEM_SUM to HEM_MAXLOC */
    } types[] = {
        [HEM_BYTE] = {"byte", ".......xxx.."}, [HEM_I8] = {"i8", "xxxxxxxxxxxx"},
        [HEM_I16] = {"i16", "xxxxxxxxxxxx"},   [HEM_I32] = {"i32", "xxxxxxxxxxxx"},
        [HEM_I64] = {"i64", "xxxxxxxxxxxx"},   [HEM_U8] = {"u8", "xxxxxxxxxxxx"},
        [HEM_U16] = {"u16", "xxxxxxxxxxxx"},   [HEM_U32] = {"u32", "xxxxxxxxxxxx"},
        [HEM_U64] = {"u64", "xxxxxxxxxxxx"},   [HEM_F16] = {"f16", "xxxxxxx...xx"},
        [HEM_BF16] = {"bf16", "xxxxxxx...xx"}, [HEM_F32] = {"f32", "xxxxxxx...xx"},
        [HEM_F64] = {"f64", "xxxxxxx...xx"},   [HEM_C64] = {"c64", "xx..xxx....."},
        [HEM_C128] = {"c128", "xx..xxx....."}, [HEM_BOOL] = {"bool", "xxxxxxxxxx.."},
    };
    static const char *const ops[] = {"sum",  "prod", "min", "max",  "land",   "lor",
                                      "lxor", "band", "bor", "bxor", "minloc", "maxloc"};

    (void)state;
    for (int t = HEM_BYTE; t <= HEM_BOOL; t++) {
        for (int op = HEM_SUM; op <= HEM_MAXLOC; op++) {
            char sentence[80];
            bool has = types[t].ops[op - HEM_SUM] == 'x';
            hemi_reducer r = {.element = 4711};
            hem_status status =
                hemi_reducer_find((hem_dtype)t, (hem_reduction)op, NULL, NULL, 0, &r);
            assert_int_equal(status, has ? HEM_OK : HEM_ERR_UNSUPPORTED);
            if (has) {
                size_t bytes = op >= HEM_MINLOC ? 16 : hem_dtype_size((hem_dtype)t);
                assert_int_equal(r.element, bytes);
                continue;
            }
            (void)snprintf(sentence, sizeof sentence, "the type %s does not have the reduction %s",
                           types[t].name, ops[op - HEM_SUM]);
            assert_string_equal(hem_last_error(), sentence);
            assert_int_equal(r.element, 4711);
        }
    }
}

static void nothing(void *into, const void *from, size_t count, void *arg) {
    (void)into;
    (void)from;
    (void)count;
    (void)arg;
}

static void bad_arguments_are_told(void **state) {
    hemi_reducer r;

    (void)state;
    assert_int_equal(hemi_reducer_find(HEM_F32, (hem_reduction)0, NULL, NULL, 0, &r), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "no reduction 0"));
    assert_int_equal(hemi_reducer_find(HEM_F32, (hem_reduction)14, NULL, NULL, 0, &r), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "no reduction 14"));
    assert_int_equal(hemi_reducer_find((hem_dtype)0, HEM_SUM, NULL, NULL, 0, &r), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "no element type 0"));
    assert_int_equal(hemi_reducer_find((hem_dtype)17, HEM_MINLOC, NULL, NULL, 0, &r), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "no element type 17"));
    assert_int_equal(hemi_reducer_find((hem_dtype)0, HEM_USER, NULL, NULL, 8, &r), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "function"));
    assert_int_equal(hemi_reducer_find((hem_dtype)0, HEM_USER, nothing, NULL, 0, &r), HEM_ERR_ARG);
    assert_non_null(strstr(hem_last_error(), "size"));
    assert_int_equal(hemi_reducer_find((hem_dtype)0, HEM_USER, nothing, NULL, 65537, &r),
                     HEM_ERR_UNSUPPORTED);
    assert_non_null(strstr(hem_last_error(), "65537"));
    assert_int_equal(hemi_reducer_find_in(3, HEM_F32, HEM_SUM, &r), HEM_ERR_UNSUPPORTED);
    assert_int_equal(hemi_reducer_find_in(0, HEM_F32, HEM_SUM, &r), HEM_OK);
}

/* All values against some: every subnormal, every rounding of the last bit, infinities, NaNs. */
static void all_halves_round_right(void **state) {
    static const double others[] = {0.0, 1.0, -1.0, 0x1p-24, 0x1.004p0, 0x1.01p0, 32752.0, 0x1p-11};
    static uint16_t all[65536];
    static uint16_t other[65536];
    static uint16_t out[65536];
    const void *sources[2] = {all, other};

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (unsigned run = 0; run < 2 * 2 * 8 * TESTING_SETS; run++) {
        hem_dtype t = run % 2 == 0 ? HEM_F16 : HEM_BF16;
        hem_reduction op = run / 2 % 2 == 0 ? HEM_SUM : HEM_PROD;
        element second = real_element(t, others[run / 4 % 8]);
        hemi_reducer r;
        if (hemi_reducer_find_in(run / 32, t, op, &r) != HEM_OK)
            continue;
        for (unsigned i = 0; i < 65536; i++)
            other[i] = second.u16;
        hemi_reduce(&r, out, sources, 2, 65536);
        for (unsigned i = 0; i < 65536; i++) {
            element pair[2] = {{.u16 = (uint16_t)i}, second};
            assert_int_equal(out[i], reference(t, op, pair, 2).u16);
        }
    }
}

/* 2048 + 1 is 2048 in f16, however often; in f32 the ones add up. Likewise 256 in bf16. */
static void halves_are_rounded_once(void **state) {
    const uint16_t big[2] = {0x6800, 0x4380};
    const uint16_t one[2] = {0x3c00, 0x3f80};
    const uint16_t much[2] = {0x6804, 0x4384};

    (void)state;
    for (unsigned run = 0; run < 2 * TESTING_SETS; run++) {
        unsigned type = run % 2;
        const void *sources[9] = {&big[type]};
        uint16_t out = 0;
        hemi_reducer r;
        if (hemi_reducer_find_in(run / 2, type == 0 ? HEM_F16 : HEM_BF16, HEM_SUM, &r) != HEM_OK)
            continue;
        for (size_t s = 1; s < 9; s++)
            sources[s] = &one[type];
        hemi_reduce(&r, &out, sources, 9, 1);
        assert_int_equal(out, much[type]);
    }
}

/* Maps x -> a x + b modulo 2^32, one after the other: associative, not commutative. */
typedef struct affine {
    uint32_t a;
    uint32_t b;
} affine;

typedef struct affine_arg {
    size_t per_element;
    size_t elements;
} affine_arg;

static void compose(void *into, const void *from, size_t count, void *arg) {
    affine_arg *seen = arg;
    affine *x = into;
    const affine *y = from;

    seen->elements += count;
    for (size_t i = 0; i < count * seen->per_element; i++)
        x[i] = (affine){x[i].a * y[i].a, x[i].b * y[i].a + y[i].b};
}

static affine composed(affine *const *sources, size_t n, size_t i) {
    affine result = sources[0][i];

    for (size_t s = 1; s < n; s++) {
        affine next = sources[s][i];
        result = (affine){result.a * next.a, result.b * next.a + next.b};
    }
    return result;
}

/* `out` is source `alias`, or none if that is n. */
static void run_user(size_t per_element, size_t n, size_t count, size_t alias, uint64_t *seed) {
    affine_arg arg = {per_element, 0};
    size_t total = per_element * count;
    affine *data[6];
    affine *wanted = malloc((total + 1) * sizeof *wanted);
    affine *out;
    hemi_reducer r;

    for (size_t s = 0; s < 6; s++) {
        data[s] = malloc((total + 1) * sizeof **data);
        for (size_t i = 0; i < total; i++)
            data[s][i] = (affine){(uint32_t)testing_random(seed), (uint32_t)testing_random(seed)};
    }
    out = alias < n ? data[alias] : data[5];
    out[total] = (affine){47, 11};
    for (size_t i = 0; i < total; i++)
        wanted[i] = composed(data, n, i);
    assert_int_equal(
        hemi_reducer_find((hem_dtype)0, HEM_USER, compose, &arg, per_element * sizeof(affine), &r),
        HEM_OK);
    hemi_reduce(&r, out, (const void *const *)data, n, count);
    assert_memory_equal(out, wanted, total * sizeof *wanted);
    assert_int_equal(out[total].a, 47);
    assert_int_equal(arg.elements, (n - 1) * count);
    for (size_t s = 0; s < 6; s++)
        free(data[s]);
    free(wanted);
}

static void functions_of_the_caller(void **state) {
    static const struct {
        size_t per_element;
        size_t counts[3];
    } cases[] = {{1, {0, 1, 5000}},
                 {3, {1, 341, 1000}},
                 {1024, {1, 2, 3}},
                 {1025, {1, 2, 3}},
                 {8192, {1, 2, 3}}};
    uint64_t seed = 1;

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t n = 1; n <= 5; n++) {
            for (size_t alias = 0; alias <= n; alias++) {
                for (size_t i = 0; i < 3; i++)
                    run_user(cases[c].per_element, n, cases[c].counts[i], alias, &seed);
            }
        }
    }
}

static void no_source_and_no_elements_touch_nothing(void **state) {
    uint64_t out = 42;
    hemi_reducer r;

    (void)state;
    assert_int_equal(hemi_reducer_find(HEM_U64, HEM_SUM, NULL, NULL, 0, &r), HEM_OK);
    hemi_reduce(&r, &out, NULL, 0, 1);
    assert_int_equal(out, 42);
    hemi_reduce(&r, NULL, (const void *[]){NULL, NULL}, 2, 0);
    hemi_reduce(&r, NULL, (const void *[]){NULL}, 1, 0);
    hemi_reduce(&r, NULL, (const void *[]){NULL, NULL, NULL, NULL}, 4, 0);
    assert_int_equal(hemi_reducer_find((hem_dtype)0, HEM_USER, nothing, NULL, 8, &r), HEM_OK);
    hemi_reduce(&r, NULL, (const void *[]){NULL, NULL}, 2, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_the_operations_that_make_sense),
        cmocka_unit_test(bad_arguments_are_told),
        cmocka_unit_test(all_halves_round_right),
        cmocka_unit_test(halves_are_rounded_once),
        cmocka_unit_test(functions_of_the_caller),
        cmocka_unit_test(no_source_and_no_elements_touch_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
