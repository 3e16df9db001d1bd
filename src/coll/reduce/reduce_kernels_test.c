/*
 * hem-test: timeout=120 labels=single
 *
 * Every type with every operation, in every set of kernels that this processor has, against the
 * naive reference: the same bits. So the sets agree among each other, too.
 */
#include "coll/reduce/kernel.h"
#include "coll/reduce/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST_SOURCES 9
#define MOST_OFFSET  64
#define GUARD        64

/** Real numbers that are easily got wrong. */
static double awkward_real(uint64_t *seed) {
    static const double values[] = {
        0.0,         -0.0,      1.0,        -1.0,      NAN,       INFINITY,  -INFINITY,
        0x1p-14,     0x1p-24,   0x1p-25,    0x1.8p-25, 65504.0,   65520.0,   0x1.ffcp15,
        0x1.fffep15, 2048.0,    0x1.fep127, 0x1p-126,  0x1p-133,  0x1p-149,  0x1.fffffep127,
        0x1.ffp127,  0x1p-1022, 0x1p-1074,  3.0,       0x1.fffp0, 0x1.00ap1, -2049.0,
    };
    uint64_t random = testing_random(seed);

    if (random % 2 == 0)
        return values[random / 2 % (sizeof values / sizeof *values)];
    return ldexp((double)(int64_t)testing_random(seed), -60 - (int)(random / 2 % 8));
}

static element awkward_element(hem_dtype t, uint64_t *seed) {
    static const uint64_t integers[] = {0,      1,      2,          255,        128,
                                        0x7fff, 0x8000, 0x80000000, 1ull << 63, UINT64_MAX};
    uint64_t random = testing_random(seed);
    element e;

    for (int i = 0; i < 2; i++)
        e.words[i] = (int64_t)testing_random(seed);
    if (random % 4 == 0)
        return e;
    if (t == HEM_C64 || t == HEM_C128) {
        for (int i = 0; i < 2; i++) {
            double part = awkward_real(seed);
            if (t == HEM_C64)
                e.c64[i] = (float)part;
            else
                e.c128[i] = part;
        }
        return e;
    }
    element lone = is_real(t) ? real_element(t, awkward_real(seed))
                              : integer_element(integers[random / 4 % 10]);
    memcpy(e.bytes, lone.bytes, 8);
    e.words[1] = (int64_t)(random >> 32) % 4;
    return e;
}

/* Sources, the result that is wanted, and room to run in, all longer than needed by offsets. */
typedef struct bench {
    hem_dtype dtype;
    hem_reduction op;
    hemi_reducer reducer;
    size_t most; /* elements */
    size_t room; /* bytes of a buffer */
    unsigned char *sources[MOST_SOURCES];
    unsigned char *wanted;
    unsigned char *out;
    unsigned char *copy;
    uint64_t seed;
} bench;

static void bench_create(bench *b, hem_dtype dtype, hem_reduction op, size_t most) {
    size_t e = b->reducer.element;

    b->dtype = dtype;
    b->op = op;
    b->most = most;
    b->room = most * e + MOST_OFFSET + GUARD;
    b->seed = (uint64_t)dtype * 100 + (uint64_t)op;
    b->wanted = malloc(b->room);
    b->out = malloc(b->room);
    b->copy = malloc(b->room);
    for (size_t s = 0; s < MOST_SOURCES; s++)
        b->sources[s] = malloc(b->room);
    for (size_t s = 0; s < MOST_SOURCES; s++) {
        for (size_t i = 0; i < most; i++) {
            element value = awkward_element(dtype, &b->seed);
            memcpy(b->sources[s] + i * e, value.bytes, e);
        }
    }
}

static void bench_destroy(bench *b) {
    for (size_t s = 0; s < MOST_SOURCES; s++)
        free(b->sources[s]);
    free(b->wanted);
    free(b->out);
    free(b->copy);
}

static void fill_wanted(bench *b, size_t n, size_t count) {
    size_t e = b->reducer.element;

    for (size_t i = 0; i < count; i++) {
        element elements[MOST_SOURCES] = {{{0}}};
        for (size_t s = 0; s < n; s++)
            memcpy(elements[s].bytes, b->sources[s] + i * e, e);
        element result = reference(b->dtype, b->op, elements, n);
        memcpy(b->wanted + i * e, result.bytes, e);
    }
}

static void show_difference(const bench *b, const unsigned char *out, size_t n, size_t count) {
    size_t e = b->reducer.element;

    for (size_t i = 0; i < count; i++) {
        if (memcmp(out + i * e, b->wanted + i * e, e) == 0)
            continue;
        print_error("type %d op %d, %zu sources, element %zu of %zu:\n", (int)b->dtype, (int)b->op,
                    n, i, count);
        for (size_t byte = 0; byte < e; byte++)
            print_error(" %02x/%02x", out[i * e + byte], b->wanted[i * e + byte]);
        print_error(" (got/wanted)\n");
        return;
    }
}

/* One run. `alias` is the source that `out` is, or n for none. The source is moved aside to out's
 * place, with its offset, so that the sources themselves stay as they are. */
static void run_once(bench *b, size_t n, size_t count, size_t alias) {
    const void *sources[MOST_SOURCES];
    size_t offset = testing_random(&b->seed) % MOST_OFFSET;
    size_t bytes = count * b->reducer.element;
    unsigned char *out = b->out + offset;

    memset(b->out, 0xa5, b->room);
    for (size_t s = 0; s < n; s++)
        sources[s] = b->sources[s];
    if (alias < n) {
        memcpy(out, b->sources[alias], bytes);
        sources[alias] = out;
    }
    /* One of the other sources at an odd place. */
    size_t moved = testing_random(&b->seed) % n;
    if (moved != alias) {
        size_t place = testing_random(&b->seed) % MOST_OFFSET;
        memcpy(b->copy + place, b->sources[moved], bytes);
        sources[moved] = b->copy + place;
    }
    hemi_reduce(&b->reducer, out, sources, n, count);
    if (memcmp(out, b->wanted, bytes) != 0)
        show_difference(b, out, n, count);
    assert_memory_equal(out, b->wanted, bytes);
    for (size_t i = 0; i < offset; i++)
        assert_int_equal(b->out[i], 0xa5);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(out[bytes + i], 0xa5);
}

/* Every set on the same sources; without alias, or with `out` as each source in turn. */
static void run_sets(bench *b, size_t n, size_t count, bool aliases) {
    fill_wanted(b, n, count);
    for (unsigned set = 0; set < TESTING_SETS; set++) {
        if (hemi_reducer_find_in(set, b->dtype, b->op, &b->reducer) != HEM_OK)
            continue;
        for (size_t alias = aliases ? 0 : n; alias <= n; alias++)
            run_once(b, n, count, alias);
    }
    assert_int_equal(hemi_reducer_find(b->dtype, b->op, NULL, NULL, 0, &b->reducer), HEM_OK);
    run_once(b, n, count, n);
}

static void run_type(hem_dtype dtype, hem_reduction op) {
    static const size_t few[] = {0, 1, 3, 64, 1000};
    static const size_t many[] = {4, 5, 9};
    bench b = {0};
    size_t accumulator;
    size_t block;

    if (hemi_reducer_find(dtype, op, NULL, NULL, 0, &b.reducer) != HEM_OK)
        return;
    accumulator = dtype == HEM_F16 || dtype == HEM_BF16 ? 4 : b.reducer.element;
    block = HEMI_REDUCE_BLOCK / accumulator;
    bench_create(&b, dtype, op, block > 1000 ? 2 * block + 1 : 1026);
    for (size_t n = 1; n <= MOST_SOURCES; n++) {
        for (size_t i = 0; i < sizeof few / sizeof *few; i++)
            run_sets(&b, n, few[i], few[i] != 64);
    }
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        for (size_t count = block - 1; count <= block + 1; count++)
            run_sets(&b, many[i], count, false);
        run_sets(&b, many[i], 2 * block + 1 < b.most ? 2 * block + 1 : b.most, false);
    }
    bench_destroy(&b);
}

static void every_type_and_operation(void **state) {
    (void)state;
    for (int dtype = HEM_BYTE; dtype <= HEM_BOOL; dtype++) {
        for (int op = HEM_SUM; op <= HEM_MAXLOC; op++)
            run_type((hem_dtype)dtype, (hem_reduction)op);
    }
}

static void long_vectors(void **state) {
    static const struct {
        hem_dtype dtype;
        hem_reduction op;
    } cases[] = {{HEM_F32, HEM_SUM},  {HEM_F16, HEM_SUM},    {HEM_BF16, HEM_PROD},
                 {HEM_I64, HEM_MAX},  {HEM_U8, HEM_LXOR},    {HEM_F64, HEM_MIN},
                 {HEM_C64, HEM_PROD}, {HEM_F32, HEM_MINLOC}, {HEM_I16, HEM_SUM}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b = {0};
        assert_int_equal(hemi_reducer_find(cases[i].dtype, cases[i].op, NULL, NULL, 0, &b.reducer),
                         HEM_OK);
        bench_create(&b, cases[i].dtype, cases[i].op, 100003);
        run_sets(&b, 2, 100003, true);
        run_sets(&b, 3, 100003, false);
        run_sets(&b, 5, 100003, false);
        bench_destroy(&b);
    }
}

/* Offsets of out and of two sources, each alone and all at once. */
static void every_alignment(void **state) {
    static const hem_dtype dtypes[] = {HEM_U8, HEM_F16, HEM_BF16, HEM_F32, HEM_F64, HEM_C128};
    enum {
        COUNT = 77
    };

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        bench b = {0};
        assert_int_equal(hemi_reducer_find(dtypes[d], HEM_SUM, NULL, NULL, 0, &b.reducer), HEM_OK);
        bench_create(&b, dtypes[d], HEM_SUM, COUNT);
        fill_wanted(&b, 2, COUNT);
        for (unsigned place = 0; place < 64 * 64; place++) {
            size_t bytes = COUNT * b.reducer.element;
            unsigned char first[COUNT * 16 + 64];
            const void *sources[2] = {first + place % 64, b.copy + place / 64};
            unsigned char *out = b.out + (place ^ place / 64) % 64;
            if (hemi_reducer_find_in(place % 3, dtypes[d], HEM_SUM, &b.reducer) != HEM_OK)
                continue;
            memcpy(first + place % 64, b.sources[0], bytes);
            memcpy(b.copy + place / 64, b.sources[1], bytes);
            hemi_reduce(&b.reducer, out, sources, 2, COUNT);
            assert_memory_equal(out, b.wanted, bytes);
        }
        bench_destroy(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_operation),
        cmocka_unit_test(long_vectors),
        cmocka_unit_test(every_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
