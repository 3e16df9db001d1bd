/* What the tests of lines have in common: payloads that both sides of a link can work out. */
#ifndef HEM_TESTS_RANK_LINE_KIT_H
#define HEM_TESTS_RANK_LINE_KIT_H

#include "harness.h"

enum {
    LINE_LEFT = 0,
    LINE_RIGHT = 1
};

/** What `rank` gives to one side in a round. */
typedef struct line_gift {
    bool present;
    size_t meta_bytes;
    size_t data_bytes;
    uint64_t tag; /* of harness_fill */
} line_gift;

/** How gifts are chosen; the same on all ranks. */
typedef struct line_plan {
    uint64_t seed;
    size_t meta_most;
    size_t data_most; /* lengths are such that short ones and those around limits are common */
    bool ring;
} line_plan;

line_gift line_gift_of(const line_plan *plan, uint64_t round, int rank, int side);

/** The rank at a side, or -1. */
int line_neighbour(const hem_world *world, const line_plan *plan, int side);

/** A round's memory: what goes out, until it may be freed. */
typedef struct line_packet {
    hem_payload payloads[2];
    line_gift gifts[2];
    hem_line_round round;
} line_packet;

void line_pack(line_packet *packet, const hem_world *world, const line_plan *plan, uint64_t round);
void line_unpack(line_packet *packet);

/** The result is what the neighbours gave in round `round`. Does not free it. */
void line_check(const hem_world *world, const line_plan *plan, uint64_t round,
                const hem_line_result *result);

/** One blocking round with all checks. @return whether all are done. */
bool line_pass(hem_world *world, hem_line *line, const line_plan *plan, uint64_t round, bool done);

hem_line *line_make(hem_world *world, bool ring);

#endif
