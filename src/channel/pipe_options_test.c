/* How many blocks a call of a pipe takes, and which messages are short. */
#include "channel/pipe.h"

#include "base/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A pipe of two ranks on a GPU, as far as the choice looks at it: blocks of up to 32 warps, one per SM. */
static hem_pipe *make(uint32_t processors, uint32_t sharing, uint32_t blocks) {
    hem_pipe_options options = {.struct_size = sizeof options, .blocks = blocks};
    hem_pipe *pipe = calloc(1, sizeof *pipe + 2 * sizeof *pipe->peers);
    assert_non_null(pipe);
    pipe->size = 2;
    pipe->sharing = sharing;
    for (uint32_t w = 1; w <= 2 * HEMI_PIPE_WARPS; w++)
        pipe->fit[w] = processors;
    for (uint32_t w = 1; w <= HEMI_PIPE_WARPS; w++)
        pipe->fit_straight[w] = processors;
    assert_int_equal(hemi_pipe_read_options(pipe, &options), HEM_OK);
    return pipe;
}

static uint32_t blocks_of(const hem_pipe *pipe, uint32_t asked, bool straight) {
    hem_pipe_how how = {.struct_size = sizeof how, .blocks = asked};
    hemi_pipe_want want = {.lanes = pipe->lanes, .roles = 2, .straight = straight};
    hemi_pipe_form form;
    assert_int_equal(hemi_pipe_choose(pipe, &how, &want, &form), HEM_OK);
    return form.blocks;
}

static void a_quarter_of_the_gpu_is_taken(void **state) {
    (void)state;
    static const struct {
        uint32_t processors;
        uint32_t sharing;
        uint32_t blocks;
    } cases[] = {{132, 1, 16}, {132, 2, 16}, {132, 4, 8}, {132, 8, 4}, {20, 4, 1}, {4, 8, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hem_pipe *pipe = make(cases[i].processors, cases[i].sharing, 0);
        assert_int_equal(blocks_of(pipe, 0, false), cases[i].blocks);
        assert_int_equal(blocks_of(pipe, 0, true), cases[i].blocks);
        free(pipe);
    }
}

static void short_messages_are_longer_with_more_lanes(void **state) {
    (void)state;
    static const struct {
        uint32_t blocks;
        uint64_t bytes;
    } cases[] = {{1, 32768}, {2, 65536}, {0, 65536}, {64, 65536}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hem_pipe *pipe = make(132, 2, cases[i].blocks);
        assert_int_equal(pipe->short_bytes, cases[i].bytes);
        free(pipe);
    }
}

static void who_asks_gets_more(void **state) {
    (void)state;
    hem_pipe *pipe = make(132, 4, 0);
    assert_int_equal(blocks_of(pipe, 12, false), 12); /* for a call */
    free(pipe);
    pipe = make(132, 4, 64); /* for all */
    assert_int_equal(blocks_of(pipe, 0, false), 33);
    assert_int_equal(blocks_of(pipe, 64, true), 33);
    free(pipe);
}

static void what_is_too_much_is_refused(void **state) {
    (void)state;
    hem_pipe *pipe = make(132, 2, 0);
    hem_pipe_how how = {.struct_size = sizeof how, .blocks = 17};
    hemi_pipe_want want = {.lanes = 1, .roles = 1};
    hemi_pipe_form form;
    assert_int_equal(hemi_pipe_choose(pipe, &how, &want, &form), HEM_ERR_RANGE);
    hem_pipe_options options = {.struct_size = sizeof options, .blocks = 65};
    assert_int_equal(hemi_pipe_read_options(pipe, &options), HEM_ERR_RANGE);
    free(pipe);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quarter_of_the_gpu_is_taken),
        cmocka_unit_test(short_messages_are_longer_with_more_lanes),
        cmocka_unit_test(who_asks_gets_more),
        cmocka_unit_test(what_is_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
