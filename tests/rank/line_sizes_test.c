/*
 * Payloads of every size come whole, on the right side and in the right round: lengths around all
 * limits, metadata up to 1 MiB, nothing and empty told apart, different each way; open and as a ring,
 * where two ranks are each other's both neighbours; many rounds without a pause.
 *
 * hem-test: ranks=1,2,3,4,5,8,9 modes=processes,threads timeout=60
 */
#include "line_kit.h"

/* Nothing, an empty payload, and metadata or data only. */
static void empties(hem_world *world, bool ring) {
    hem_line *line = line_make(world, ring);
    line_plan plan = {.ring = ring};
    hem_payload left = {"m", 1, NULL, 0};
    hem_payload right = {NULL, 0, NULL, 0};
    hem_line_round round = {.struct_size = sizeof round, .to_left = &left, .to_right = &right};
    hem_line_result result;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(hem_line_exchange(line, i == 1 ? NULL : &round, &result, LIMIT));
        bool from_left = i != 1 && line_neighbour(world, &plan, LINE_LEFT) >= 0;
        bool from_right = i != 1 && line_neighbour(world, &plan, LINE_RIGHT) >= 0;
        CHECK_EQ(result.from_left.present, from_left);
        CHECK_EQ(result.from_right.present, from_right);
        CHECK_EQ(result.from_left.meta_bytes + result.from_left.data_bytes, 0);
        CHECK_EQ(result.from_right.meta_bytes, from_right);
        CHECK(!from_right || memcmp(result.from_right.meta, "m", 1) == 0);
        CHECK(result.from_right.buffer.data == NULL && result.from_left.buffer.data == NULL);
        hem_line_release(&result);
        hem_line_release(&result);
    }
    hem_line_release(NULL);
    CHECK_OK(hem_line_destroy(line));
}

static void passes(hem_world *world, const line_plan *plan, int rounds) {
    hem_line *line = line_make(world, plan->ring);

    for (int i = 1; i <= rounds; i++)
        CHECK(!line_pass(world, line, plan, (uint64_t)i, false));
    CHECK_OK(hem_line_destroy(line));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (int ring = 0; ring <= 1; ring++) {
        line_plan small = {seed, 100, 4200, ring};
        line_plan large = {seed + 1, 1u << 20, 1u << 20, ring};

        empties(world, ring);
        passes(world, &small, harness_rounds(200));
        passes(world, &large, harness_rounds(40));
    }
    harness_close(world, HEM_OK);
    return 0;
}
