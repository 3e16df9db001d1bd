#include "plan/plan.h"

#include "plan/testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void add_bytes(const void *arg, void *out, const void *const *sources, size_t source_count,
                      size_t count) {
    const unsigned char *more = arg;
    for (size_t i = 0; i < count; i++) {
        unsigned char sum = *more;
        for (size_t s = 0; s < source_count; s++)
            sum = (unsigned char)(sum + ((const unsigned char *)sources[s])[i]);
        ((unsigned char *)out)[i] = sum;
    }
}

static hemi_place input(size_t offset) {
    return hemi_place_at(HEMI_INPUT, offset);
}

static hemi_place output(size_t offset) {
    return hemi_place_at(HEMI_OUTPUT, offset);
}

static hemi_place scratch(size_t offset) {
    return hemi_place_at(HEMI_SCRATCH, offset);
}

static void begin(hemi_plan *plan, uint32_t rank, uint32_t size) {
    const unsigned char one = 1;
    hemi_plan_init(plan, rank, size);
    hemi_plan_combine_by(plan, 4, add_bytes, &one, 1);
    /* The tests below are about spaces of 64 bytes. */
    plan->rooms[HEMI_INPUT] = plan->rooms[HEMI_OUTPUT] = plan->rooms[HEMI_SCRATCH] = 64;
}

static void steps_are_recorded(void **state) {
    (void)state;
    hemi_plan plan;
    begin(&plan, 1, 3);
    hemi_plan_round(&plan);
    hemi_plan_send(&plan, 0, input(8), 16);
    hemi_plan_recv(&plan, 2, scratch(100), 28);
    hemi_plan_round(&plan);
    hemi_plan_round(&plan);
    hemi_plan_copy(&plan, output(0), input(4), 0);
    hemi_plan_send(&plan, 0, input(0), 0);
    hemi_plan_round(&plan);
    hemi_plan_reduce(&plan, output(0), scratch(100), input(60), 12);
    hemi_plan_send_signal(&plan, 2);
    assert_int_equal(hemi_plan_finish(&plan), HEM_OK);
    assert_int_equal(plan.round_count, 2);
    assert_int_equal(plan.step_count, 4);
    assert_int_equal(plan.ends[0], 2);
    assert_int_equal(plan.ends[1], 4);
    assert_int_equal(plan.source_count, 2);
    assert_int_equal(plan.rooms[HEMI_INPUT], 72);
    assert_int_equal(plan.rooms[HEMI_OUTPUT], 64);
    assert_int_equal(plan.rooms[HEMI_SCRATCH], 128);
    assert_int_equal(plan.steps[3].bytes, 0);
    assert_int_equal(hemi_plan_check(&plan), HEM_OK);
    hemi_plan_free(&plan);
    hemi_plan_free(&plan);
}

/* An empty plan is a good one, and so is one of many rounds. */
static void plans_may_be_empty_or_long(void **state) {
    (void)state;
    hemi_plan plan;
    begin(&plan, 0, 1);
    assert_int_equal(hemi_plan_finish(&plan), HEM_OK);
    assert_int_equal(hemi_plan_check(&plan), HEM_OK);
    hemi_plan_free(&plan);
    begin(&plan, 0, 1);
    for (size_t i = 0; i < 1000; i++) {
        hemi_plan_copy(&plan, output(0), input(4 * (i % 8)), 4);
        hemi_plan_reduce(&plan, output(4), output(4), scratch(0), 4);
        hemi_plan_round(&plan);
    }
    assert_int_equal(hemi_plan_finish(&plan), HEM_OK);
    assert_int_equal(plan.round_count, 1000);
    assert_int_equal(plan.source_count, 3000);
    assert_int_equal(hemi_plan_check(&plan), HEM_OK);
    hemi_plan_free(&plan);
}

/* Each makes a plan of one round with something wrong in it. */

static void no_such_rank(hemi_plan *plan) {
    hemi_plan_send(plan, 3, input(0), 4);
}

static void to_itself(hemi_plan *plan) {
    hemi_plan_send(plan, 1, input(0), 4);
}

static void input_written(hemi_plan *plan) {
    hemi_plan_recv(plan, 0, input(0), 4);
}

static void half_an_element(hemi_plan *plan) {
    hemi_plan_reduce(plan, output(0), input(0), scratch(0), 6);
}

static void across_its_source(hemi_plan *plan) {
    hemi_plan_reduce(plan, output(0), output(4), scratch(0), 8);
}

static void copy_onto_itself(hemi_plan *plan) {
    hemi_plan_copy(plan, output(0), output(0), 8);
}

static void two_writers(hemi_plan *plan) {
    hemi_plan_recv(plan, 0, output(0), 8);
    hemi_plan_recv(plan, 2, output(4), 8);
}

static void written_while_sent(hemi_plan *plan) {
    hemi_plan_send(plan, 0, output(0), 8);
    hemi_plan_recv(plan, 2, output(7), 1);
}

static void written_while_combined(hemi_plan *plan) {
    hemi_plan_recv(plan, 2, scratch(0), 4);
    hemi_plan_reduce(plan, output(0), scratch(0), input(0), 4);
}

static void copied_while_combined(hemi_plan *plan) {
    hemi_plan_reduce(plan, output(0), scratch(0), input(0), 4);
    hemi_plan_copy(plan, output(8), output(0), 4);
}

static void no_sources(hemi_plan *plan) {
    hemi_plan_reduce_sources(plan, output(0), 4);
}

static void outside(hemi_plan *plan) {
    hemi_plan_send(plan, 0, input(0), 65);
    plan->rooms[HEMI_INPUT] = 64;
}

static void outside_by_wrapping(hemi_plan *plan) {
    hemi_plan_send(plan, 0, input(0), 32);
    plan->steps[0].at.offset = SIZE_MAX - 8;
}

static void source_outside(hemi_plan *plan) {
    hemi_plan_copy(plan, output(0), input(60), 8);
    plan->rooms[HEMI_INPUT] = 64;
}

static void no_such_space(hemi_plan *plan) {
    hemi_plan_send(plan, 0, input(0), 4);
    plan->steps[0].at.space = HEMI_SPACES;
}

static void no_such_kind(hemi_plan *plan) {
    hemi_plan_send(plan, 0, input(0), 4);
    plan->steps[0].kind = 77;
}

static void nothing_to_combine_with(hemi_plan *plan) {
    hemi_plan_reduce(plan, output(0), scratch(0), input(0), 4);
    plan->combine = NULL;
}

static void two_sources_of_a_copy(hemi_plan *plan) {
    hemi_plan_source(plan, input(0));
    hemi_plan_copy(plan, output(0), scratch(0), 4);
}

static void sources_beyond_the_table(hemi_plan *plan) {
    hemi_plan_reduce(plan, output(0), scratch(0), input(0), 4);
    plan->steps[0].source_count = SIZE_MAX;
}

static void bad_plans_are_found_out(void **state) {
    (void)state;
    void (*const makers[])(hemi_plan *) = {
        no_such_rank,
        to_itself,
        input_written,
        half_an_element,
        across_its_source,
        copy_onto_itself,
        two_writers,
        written_while_sent,
        written_while_combined,
        copied_while_combined,
        no_sources,
        outside,
        outside_by_wrapping,
        source_outside,
        no_such_space,
        no_such_kind,
        nothing_to_combine_with,
        two_sources_of_a_copy,
        sources_beyond_the_table,
    };
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        hemi_plan plan;
        begin(&plan, 1, 3);
        makers[i](&plan);
        assert_int_equal(hemi_plan_finish(&plan), HEM_OK);
        if (hemi_plan_check(&plan) != HEM_ERR_ARG)
            fail_msg("bad plan %zu passes", i);
        assert_non_null(strstr(hem_last_error(), "plan of rank 1, round 0, step"));
        hemi_plan_free(&plan);
    }
}

static void rounds_must_hold_all_steps(void **state) {
    (void)state;
    hemi_plan plan;
    begin(&plan, 1, 3);
    hemi_plan_send(&plan, 0, input(0), 4);
    hemi_plan_send(&plan, 0, input(0), 4);
    assert_int_equal(hemi_plan_finish(&plan), HEM_OK);
    plan.ends[0] = 1;
    assert_int_equal(hemi_plan_check(&plan), HEM_ERR_ARG);
    plan.ends[0] = 3;
    assert_int_equal(hemi_plan_check(&plan), HEM_ERR_ARG);
    plan.ends[0] = 2;
    assert_int_equal(hemi_plan_check(&plan), HEM_OK);
    plan.rank = 3;
    assert_int_equal(hemi_plan_check(&plan), HEM_ERR_ARG);
    hemi_plan_free(&plan);
}

/* Two ranks send each other a message; rank 0 one more if told so. */
static hem_status exchange(size_t bytes, size_t expected, bool send_first, bool extra) {
    hemi_plan plans[2];
    for (uint32_t r = 0; r < 2; r++) {
        begin(&plans[r], r, 2);
        if (send_first) {
            hemi_plan_send(&plans[r], 1 - r, input(0), bytes);
            hemi_plan_round(&plans[r]);
        }
        hemi_plan_recv(&plans[r], 1 - r, output(0), expected);
        if (!send_first)
            hemi_plan_send(&plans[r], 1 - r, input(0), bytes);
        if (extra && r == 0)
            hemi_plan_send(&plans[r], 1, input(8), 4);
        assert_int_equal(hemi_plan_finish(&plans[r]), HEM_OK);
    }
    hem_status status = hemi_plans_check(plans, 2);
    hemi_plan_free(&plans[0]);
    hemi_plan_free(&plans[1]);
    return status;
}

static void plans_of_ranks_must_agree(void **state) {
    (void)state;
    assert_int_equal(exchange(8, 8, false, false), HEM_OK);
    assert_int_equal(exchange(8, 12, false, false), HEM_ERR_MISMATCH);
    assert_non_null(strstr(hem_last_error(), "sends 8 bytes"));
    assert_non_null(strstr(hem_last_error(), "expects 12"));
    /* This ends only if somebody buffers. */
    assert_int_equal(exchange(8, 8, true, false), HEM_ERR_MISMATCH);
    assert_non_null(strstr(hem_last_error(), "rank 0 is stuck in round 0 of 2"));
    assert_int_equal(exchange(8, 8, false, true), HEM_ERR_MISMATCH);
    assert_non_null(strstr(hem_last_error(), "stuck"));
}

static void a_plan_can_be_read(void **state) {
    (void)state;
    hemi_plan plan;
    char text[1024] = "";
    begin(&plan, 1, 3);
    hemi_plan_send(&plan, 2, input(8), 16);
    hemi_plan_recv(&plan, 0, scratch(0), 4);
    hemi_plan_round(&plan);
    hemi_plan_reduce(&plan, output(4), scratch(0), input(0), 4);
    hemi_plan_copy(&plan, output(8), input(4), 2);
    assert_int_equal(hemi_plan_finish(&plan), HEM_OK);
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    hemi_plan_print(&plan, file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "rank 1 of 3: 4 steps in 2 rounds, 64 bytes of input, 64 of output, "
                              "64 of scratch\n"
                              "round 0\n"
                              "  send   16 bytes input+8 to 2\n"
                              "  recv   4 bytes scratch+0 from 0\n"
                              "round 1\n"
                              "  reduce 4 bytes output+4 = scratch+0 op input+0\n"
                              "  copy   2 bytes output+8 = input+4\n");
    for (size_t room = 1; room < 64; room++) {
        char cut[64];
        memset(cut, '#', sizeof cut);
        hemi_step_text(&plan, &plan.steps[2], cut, room);
        assert_non_null(memchr(cut, '\0', room));
        assert_true(room == 64 || cut[room] == '#');
    }
    hemi_plan_free(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_recorded),        cmocka_unit_test(plans_may_be_empty_or_long),
        cmocka_unit_test(bad_plans_are_found_out),   cmocka_unit_test(rounds_must_hold_all_steps),
        cmocka_unit_test(plans_of_ranks_must_agree), cmocka_unit_test(a_plan_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
