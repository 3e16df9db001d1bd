/*
 * "I am done" rides along: all ranks hear that all are done in one and the same round, the one in which
 * the last rank said so plus the number of ranks minus 1, not before and not after; in open lines and
 * rings, whoever is last, with rounds started ahead as well; and it stays so.
 *
 * hem-test: ranks=1,2,3,4,5,8,9 modes=processes,threads timeout=60
 */
#include "line_kit.h"

enum {
    AHEAD = 40
};

static uint64_t said(uint64_t seed, uint64_t trial, int rank, uint64_t most) {
    harness_rng rng = harness_rng_of(seed, trial, (uint64_t)rank);

    return 1 + harness_below(&rng, most);
}

static uint64_t expected(const hem_world *world, uint64_t seed, uint64_t trial, uint64_t most) {
    uint64_t last = 0;
    int size = hem_world_size(world);

    for (int rank = 0; rank < size; rank++) {
        uint64_t round = said(seed, trial, rank, most);
        last = round > last ? round : last;
    }
    return last + (uint64_t)size - 1;
}

/* `done` is said once, or from then on, which is the same. */
static bool says(uint64_t round, uint64_t mine, uint64_t trial) {
    return trial % 2 == 0 ? round == mine : round >= mine;
}

static void in_a_loop(hem_world *world, uint64_t seed, uint64_t trial, bool ring) {
    line_plan plan = {seed + trial, 20, 200, ring};
    hem_line *line = line_make(world, ring);
    uint64_t mine = said(seed, trial, hem_world_rank(world), 12);
    uint64_t want = expected(world, seed, trial, 12);
    uint64_t round = 0;

    do {
        round++;
    } while (!line_pass(world, line, &plan, round, says(round, mine, trial)));
    CHECK_EQ(round, want);
    for (int i = 1; i <= 3; i++)
        CHECK(line_pass(world, line, &plan, round + (uint64_t)i, false));
    CHECK_OK(hem_line_destroy(line));
}

static void ahead(hem_world *world, uint64_t seed, uint64_t trial, bool ring) {
    hem_line *line = line_make(world, ring);
    uint64_t mine = said(seed, trial, hem_world_rank(world), 20);
    uint64_t want = expected(world, seed, trial, 20);
    hem_op *ops[AHEAD];

    for (uint64_t i = 0; i < AHEAD; i++) {
        hem_line_round round = {.struct_size = sizeof round, .done = says(i + 1, mine, trial)};
        CHECK_OK(hem_line_start(line, &round, &ops[i]));
    }
    for (uint64_t i = 0; i < AHEAD; i++) {
        hem_line_result result;
        CHECK_OK(hem_op_wait(ops[i], LIMIT));
        CHECK_OK(hem_line_take(ops[i], &result));
        harness_step("round", i + 1);
        CHECK_EQ(result.all_done, i + 1 >= want);
        CHECK_OK(hem_op_free(ops[i]));
    }
    CHECK_OK(hem_line_destroy(line));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (uint64_t trial = 0; trial < (uint64_t)harness_rounds(10); trial++) {
        in_a_loop(world, seed, trial, trial % 3 == 0);
        ahead(world, seed, trial, trial % 3 == 1);
    }
    harness_close(world, HEM_OK);
    return 0;
}
