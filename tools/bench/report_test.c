#include "../hem/bench_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE(impl, bytes, us, line_ns)                                                             \
    "{\"bench\":\"signal\",\"impl\":\"" impl "\",\"ranks\":2,\"bytes\":" bytes ",\"us\":" us       \
    ",\"gbps\":0.1,\"line_ns\":" line_ns "}\n"

/* What `print` writes to stdout, to be freed. */
static char *printed(void (*print)(const struct hemt_report *), const struct hemt_report *report) {
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    char *text = calloc(1, 65536);

    assert_non_null(file);
    assert_non_null(text);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    print(report);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static void takes_lines_and_skips_noise(void **state) {
    struct hemt_report report = {.bench = "signal", .ranks = 2};

    (void)state;
    assert_int_equal(hemt_report_take(&report, ""), 0);
    assert_int_equal(hemt_report_take(&report, "a warning of some library\n"), 0);
    assert_int_equal(hemt_report_take(&report, "{\"impl\":\"hem\",\"bytes\":8}\n"), 0);
    assert_int_equal(hemt_report_take(&report, LINE("hem", "8", "0.1", "50") "\nnoise\n"), 1);
    assert_int_equal(hemt_report_take(&report, LINE("hem", "64", "0.2", "50")), 1);
    assert_int_equal(hemt_report_take(&report, LINE("ucx", "8", "0", "50")), 1);
    assert_int_equal(report.group_count, 3);
    assert_int_equal(hemt_report_take(&report, LINE("hem", "8", "0.1", "50")), 1);
    assert_int_equal(report.group_count, 3);
    assert_int_equal(report.sample_count, 3);
    assert_true(hemt_report_has(&report, "hem"));
    assert_false(hemt_report_has(&report, "ucx"));
    hemt_report_free(&report);
}

/* Three near and one far: the far ones do not move the medians. */
static void compares_at_one_distance(void **state) {
    struct hemt_report report = {.bench = "signal", .ranks = 2};

    (void)state;
    for (int i = 0; i < 3; i++) {
        hemt_report_take(&report, LINE("hem", "8", "0.1", "50") LINE("ucx", "8", "0.25", "51"));
    }
    hemt_report_take(&report, LINE("hem", "8", "0.9", "220") LINE("ucx", "8", "1.8", "215"));
    assert_int_equal(hemt_report_fewest(&report), 3);
    char *text = printed(hemt_report_json, &report);
    assert_non_null(strstr(text, "\"impl\":\"hem\",\"ranks\":2,\"bytes\":8,\"us\":0.1000,"));
    assert_non_null(strstr(text, "\"impl\":\"ucx\",\"ranks\":2,\"bytes\":8,\"us\":0.2500,"));
    assert_null(strstr(text, "0.9"));
    free(text);
    hemt_report_free(&report);
}

/* Medians by name, at the distance at which most can be compared. */
static void gives_medians(void **state) {
    struct hemt_report report = {.bench = "signal", .ranks = 2};

    (void)state;
    hemt_report_take(&report, LINE("ring", "8", "3", "50") LINE("ring", "8", "1", "51"));
    hemt_report_take(&report, LINE("ring", "8", "2", "50") LINE("ring", "8", "90", "210"));
    hemt_report_take(&report, LINE("ring", "64", "5", "50") LINE("direct", "8", "7", "50"));
    assert_true(hemt_report_median(&report, "ring", 8) == 2);
    assert_true(hemt_report_median(&report, "ring", 64) == 5);
    assert_true(hemt_report_median(&report, "direct", 8) == 7);
    assert_true(hemt_report_median(&report, "direct", 64) == 0);
    assert_true(hemt_report_median(&report, "doubling", 8) == 0);
    hemt_report_free(&report);
}

static void print_plain_table(const struct hemt_report *report) {
    hemt_report_table(report, false);
}

static void table_shows_ratios_and_notes_once(void **state) {
    struct hemt_report report = {.bench = "signal", .ranks = 2, .rounds = 1};

    (void)state;
    hemt_report_take(&report, LINE("ucx", "8", "0.25", "50") LINE("ucx", "4096", "3", "50")
                                  LINE("hem", "8", "0.1", "50") LINE("raw", "8", "0.09", "50"));
    hemt_report_note(&report, "mpich: failed with exit code %d", 3);
    hemt_report_note(&report, "mpich: failed with exit code %d", 3);
    char *text = printed(print_plain_table, &report);
    char *hem = strstr(text, "hem  ");
    char *raw = strstr(text, "raw  ");
    char *ucx = strstr(text, "ucx  ");
    assert_true(hem != NULL && raw > hem && ucx > raw);
    assert_non_null(strstr(text, "2.50\n"));
    assert_non_null(strstr(text, "0.90\n"));
    assert_non_null(strstr(text, " 4k "));
    char *note = strstr(text, "mpich: failed with exit code 3\n");
    assert_non_null(note);
    assert_null(strstr(note + 1, "mpich"));
    assert_null(strstr(text, "\033"));
    free(text);
    hemt_report_free(&report);
}

/* A runner that found no quiet moment has a row all the same, but none in the JSON. */
static void shows_what_could_not_be_measured(void **state) {
    struct hemt_report report = {.bench = "signal", .ranks = 2, .rounds = 1};

    (void)state;
    hemt_report_take(&report, LINE("hem", "8", "0.1", "50") LINE("ucx", "8", "0", "50"));
    char *text = printed(print_plain_table, &report);
    assert_non_null(strstr(text, "          ucx                  -"));
    assert_non_null(strstr(text, "too busy"));
    free(text);
    text = printed(hemt_report_json, &report);
    assert_null(strstr(text, "ucx"));
    free(text);
    hemt_report_free(&report);
}

#define HALO(impl, ranks, more)                                                                    \
    "{\"bench\":\"grid\",\"impl\":\"" impl "\",\"ranks\":" ranks                                   \
    ",\"bytes\":16,\"us\":2,\"gbps\":1,\"line_ns\":50" more "}\n"

/* The rate is that of the bytes that moved, if the size is something else. */
static void tells_what_moved_from_the_size(void **state) {
    struct hemt_report report = {.bench = "grid", .about = "3-D", .ranks = 2, .rounds = 1};

    (void)state;
    hemt_report_take(&report, HALO("hem-lib", "2", ",\"moved\":6000")
                                  HALO("raw-memcpy", "2", ",\"moved\":6000")
                                      HALO("openmpi-persistent", "2", ",\"moved\":6000"));
    char *text = printed(print_plain_table, &report);
    assert_non_null(strstr(text, "\n3-D\n"));
    assert_non_null(strstr(text, "    edge  impl"));
    assert_non_null(strstr(text, "openmpi-persistent      2.000       6000     3.000"));
    assert_non_null(strstr(text, "rate of hem-lib / memcpy: 16: 1.00\n"));
    free(text);
    text = printed(hemt_report_json, &report);
    assert_non_null(strstr(text, "\"gbps\":3.0000,"));
    assert_non_null(strstr(text, ",\"moved\":6000}"));
    free(text);
    hemt_report_free(&report);
}

/* Numbers of ranks are told apart, and each is compared with Hem's. */
static void shows_several_numbers_of_ranks(void **state) {
    struct hemt_report report = {.bench = "pattern-setup", .rounds = 1};

    (void)state;
    hemt_report_take(&report, HALO("hem", "64", ",\"messages\":9,\"peak\":777") HALO("hem", "2", "")
                                  HALO("mpich", "64", ",\"peak\":888"));
    assert_int_equal(report.group_count, 3);
    char *text = printed(print_plain_table, &report);
    char *few = strstr(text, "\n    2        16  hem");
    char *many = strstr(text, "\n   64        16  hem");
    assert_true(few != NULL && many > few);
    assert_non_null(strstr(many, "        9        777"));
    assert_non_null(strstr(many, "        -        888"));
    assert_null(strstr(text, "GB/s"));
    free(text);
    text = printed(hemt_report_json, &report);
    assert_non_null(strstr(text, "\"impl\":\"mpich\",\"ranks\":64,"));
    free(text);
    hemt_report_free(&report);
}

#define GPU_LINE(impl, us, blocks)                                                                 \
    "{\"bench\":\"gpu-sendrecv\",\"impl\":\"" impl "\",\"ranks\":2,\"bytes\":1048576,\"us\":" us   \
    ",\"gbps\":1,\"line_ns\":0,\"blocks\":" blocks ",\"l2\":1}\n"

/* Each way is compared with Hem's same way, in the order of the blocks, and notes stand below. */
static void compares_ways_on_gpus(void **state) {
    struct hemt_report report = {.bench = "gpu-sendrecv", .ranks = 2, .rounds = 1};

    (void)state;
    assert_int_equal(
        hemt_report_take(
            &report, GPU_LINE("nccl-both-8", "30", "6") GPU_LINE("hem-both-16", "5", "16")
                         GPU_LINE("hem-both-8", "10", "8") "{\"note\":\"a GPU with 132 SMs\"}\n"),
        3);
    assert_false(hemt_report_has(&report, "hem"));
    assert_true(hemt_report_has_some(&report, "hem"));
    assert_true(hemt_report_has_some(&report, "nccl"));
    assert_false(hemt_report_has_some(&report, "raw"));
    char *text = printed(print_plain_table, &report);
    const char *hem = strstr(text, "hem-both-8 ");
    const char *nccl = strstr(text, "nccl-both-8");
    const char *more = strstr(text, "hem-both-16");
    assert_non_null(hem);
    assert_true(hem < nccl && nccl < more);
    assert_non_null(strstr(text, "a GPU with 132 SMs\n"));
    const char *ratio = strstr(nccl, "3.0");
    assert_true(ratio != NULL && ratio < more);
    assert_non_null(strstr(nccl, "     6   in"));
    free(text);
    hemt_report_free(&report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_lines_and_skips_noise),
        cmocka_unit_test(compares_at_one_distance),
        cmocka_unit_test(gives_medians),
        cmocka_unit_test(table_shows_ratios_and_notes_once),
        cmocka_unit_test(shows_what_could_not_be_measured),
        cmocka_unit_test(tells_what_moved_from_the_size),
        cmocka_unit_test(shows_several_numbers_of_ranks),
        cmocka_unit_test(compares_ways_on_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
