#include "../hem/bench_child.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void shell(const char *script, double limit_s, struct hemt_child *child_p) {
    char *const argv[] = {"sh", "-c", (char *)(size_t)script, NULL};

    hemt_child_run(argv, limit_s, child_p);
}

static bool is_zombie(pid_t pid) {
    char path[64];
    char state = '?';

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    int fields = fscanf(file, "%*d %*s %c", &state);
    fclose(file);
    return fields != 1 || state == 'Z';
}

static void collects_output_and_exit_code(void **state) {
    struct hemt_child child;

    (void)state;
    shell("echo one; echo two; echo first >&2; printf 'last words\\n\\n' >&2; exit 5", 20, &child);
    assert_int_equal(child.code, 5);
    assert_false(child.timed_out);
    assert_string_equal(child.output, "one\ntwo\n");
    assert_string_equal(child.last_line, "last words");
    free(child.output);
}

/* A runner's own words count more than those of its launcher. */
static void prefers_what_the_runner_said(void **state) {
    struct hemt_child child;

    (void)state;
    shell("echo 'hem-bench: bad payload' >&2; echo 'launcher: rank 1 exited' >&2; exit 3", 20,
          &child);
    assert_string_equal(child.last_line, "bad payload");
    free(child.output);
}

/* More than a pipe holds, on both streams at once. */
static void does_not_stall_on_much_output(void **state) {
    struct hemt_child child;

    (void)state;
    shell("yes out | head -c 1000000; yes err | head -c 1000000 >&2", 30, &child);
    assert_int_equal(child.code, 0);
    assert_int_equal(strlen(child.output), 1000000);
    assert_string_equal(child.last_line, "err");
    free(child.output);
}

static void tells_signals_and_missing_programs(void **state) {
    char *const missing[] = {"hem-no-such-program", NULL};
    struct hemt_child child;

    (void)state;
    shell("kill -SEGV $$", 20, &child);
    assert_int_equal(child.code, 128 + 11);
    free(child.output);
    hemt_child_run(missing, 20, &child);
    assert_int_equal(child.code, 127);
    assert_string_equal(child.output, "");
    assert_non_null(strstr(child.last_line, "hem-no-such-program cannot be started"));
    free(child.output);
}

/* One that ends on SIGTERM, and one that must be killed together with its own child. */
static void ends_what_runs_too_long(void **state) {
    struct hemt_child child;
    time_t start = time(NULL);

    (void)state;
    shell("echo before; exec sleep 60", 0.2, &child);
    assert_true(child.timed_out);
    assert_int_equal(child.code, 128 + 15);
    assert_string_equal(child.output, "before\n");
    free(child.output);
    shell("trap '' TERM; sleep 60; sleep 60", 0.2, &child);
    assert_true(child.timed_out);
    assert_int_equal(child.code, 128 + 9);
    free(child.output);
    assert_true(time(NULL) - start < 20);
}

/* A grandchild that keeps the pipe open keeps nobody waiting, and is ended. */
static void does_not_wait_for_leftovers(void **state) {
    struct hemt_child child;
    time_t start = time(NULL);

    (void)state;
    shell("sleep 60 & echo $!", 100, &child);
    assert_int_equal(child.code, 0);
    assert_true(time(NULL) - start < 30);
    pid_t left = (pid_t)atoi(child.output);
    assert_true(left > 0);
    /* It is an orphan, so whoever reaps orphans may need a moment. */
    for (int i = 0; i < 500 && kill(left, 0) == 0 && !is_zombie(left); i++)
        usleep(10000);
    assert_true(kill(left, 0) != 0 || is_zombie(left));
    free(child.output);
}

static void has_no_input(void **state) {
    struct hemt_child child;

    (void)state;
    shell("cat; echo end", 20, &child);
    assert_int_equal(child.code, 0);
    assert_string_equal(child.output, "end\n");
    free(child.output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collects_output_and_exit_code),
        cmocka_unit_test(prefers_what_the_runner_said),
        cmocka_unit_test(does_not_stall_on_much_output),
        cmocka_unit_test(tells_signals_and_missing_programs),
        cmocka_unit_test(ends_what_runs_too_long),
        cmocka_unit_test(does_not_wait_for_leftovers),
        cmocka_unit_test(has_no_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
