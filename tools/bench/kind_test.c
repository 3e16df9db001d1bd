#include "../hem/bench_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_benchmark_is_described(void **state) {
    (void)state;
    for (enum bench_kind kind = 0; kind < BENCH_KINDS; kind++) {
        const struct hemt_kind *info = hemt_kind(kind);
        struct hemt_sizes sizes;
        enum bench_kind found;

        assert_non_null(info->name);
        assert_non_null(info->help);
        assert_non_null(info->headline);
        assert_true(hemt_kind_find(info->name, &found));
        assert_int_equal(found, kind);
        hemt_kind_sizes(kind, 2, &sizes);
        assert_int_equal(sizes.count > 0, info->sizes != NULL);
        assert_null(hemt_kind_refuses(kind, 2, &sizes));
    }
    enum bench_kind kind;
    assert_false(hemt_kind_find("nothing", &kind));
    assert_false(hemt_kind_find("", &kind));
}

/* 8 bytes to 64 MiB, but no buffer of a rank beyond 128 MiB. */
static void default_sizes_fit_the_ranks(void **state) {
    struct hemt_sizes sizes;

    (void)state;
    hemt_kind_sizes(BENCH_ALLREDUCE, 8, &sizes);
    assert_int_equal(sizes.bytes[0], 8);
    assert_int_equal(sizes.bytes[sizes.count - 1], 64 << 20);
    hemt_kind_sizes(BENCH_ALLTOALL, 2, &sizes);
    assert_int_equal(sizes.bytes[sizes.count - 1], 64 << 20);
    hemt_kind_sizes(BENCH_ALLTOALL, 8, &sizes);
    assert_int_equal(sizes.bytes[sizes.count - 1], 8 << 20);
    hemt_kind_sizes(BENCH_ALLTOALL, 4096, &sizes);
    assert_true(sizes.count > 0 && sizes.bytes[sizes.count - 1] <= 32768);
}

static void refuses_what_cannot_be_measured(void **state) {
    const struct hemt_sizes none = {.count = 0};
    const struct hemt_sizes odd = {.bytes = {8, 12}, .count = 2};

    (void)state;
    assert_non_null(hemt_kind_refuses(BENCH_SIGNAL, 3, &none));
    assert_non_null(hemt_kind_refuses(BENCH_BARRIER, 2, &odd));
    assert_null(hemt_kind_refuses(BENCH_BARRIER, 5, &none));
    assert_non_null(hemt_kind_refuses(BENCH_SENDRECV, 3, &none));
    assert_null(hemt_kind_refuses(BENCH_SENDRECV_RING, 3, &odd));
    assert_non_null(hemt_kind_refuses(BENCH_ALLREDUCE, 3, &odd));
    assert_non_null(hemt_kind_refuses(BENCH_REDUCE_SCATTER, 3, &odd));
    assert_null(hemt_kind_refuses(BENCH_ALLTOALL, 3, &odd));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_benchmark_is_described),
        cmocka_unit_test(default_sizes_fit_the_ranks),
        cmocka_unit_test(refuses_what_cannot_be_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
