/*
 * With a single slot and a ring of one page, payloads of every size still go both ways around a line, in
 * calls that wait and in many rounds that are started ahead; nothing deadlocks.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "channel_kit.h"
#include "line_kit.h"

enum {
    AHEAD = 10
};

static void ahead(hem_world *world, const line_plan *plan) {
    hem_line *line = line_make(world, plan->ring);
    line_packet packets[AHEAD];
    hem_op *ops[AHEAD];
    hem_line_result result;

    for (uint64_t i = 0; i < AHEAD; i++) {
        line_pack(&packets[i], world, plan, i + 1);
        CHECK_OK(hem_line_start(line, &packets[i].round, &ops[i]));
    }
    for (uint64_t i = 0; i < AHEAD; i++) {
        CHECK_OK(hem_op_wait(ops[i], LIMIT));
        CHECK_OK(hem_line_take(ops[i], &result));
        line_check(world, plan, i + 1, &result);
        hem_line_release(&result);
        CHECK_OK(hem_op_free(ops[i]));
        line_unpack(&packets[i]);
    }
    CHECK_OK(hem_line_destroy(line));
}

static int body(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (int ring = 0; ring <= 1; ring++) {
        line_plan plan = {seed, 9000, 100000, ring};
        hem_line *line = line_make(world, ring);

        for (int i = 1; i <= harness_rounds(60); i++)
            CHECK(!line_pass(world, line, &plan, (uint64_t)i, false));
        CHECK_OK(hem_line_destroy(line));
        ahead(world, &plan);
    }
    harness_close(world, HEM_OK);
    return 0;
}

int main(int argc, char **argv) {
    chan_geometry("1", "4096");
    return chan_main(argc, argv, body);
}
