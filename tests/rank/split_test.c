/*
 * A split makes one world per colour, ordered by key and then by old rank; who gives no colour gets
 * none. The parts are worlds like any other: they have windows, can be split again, and live on
 * when the world they came from is closed.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <limits.h>

/* A ring of puts and a barrier: whoever should be in the world is, and nobody else. */
static void check_works(hem_world *world) {
    hem_window *window = harness_window(world, 64);
    uint64_t word = (uint64_t)hem_world_rank(world) + 1000;

    CHECK_OK(hem_put_signal(window, harness_right(world), 8, &word, 8, 0, 1));
    CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, 1, LIMIT));
    memcpy(&word, (char *)hem_window_memory(window) + 8, 8);
    CHECK_EQ(word, harness_left(world) + 1000);
    CHECK_EQ(hem_world_local_size(world), hem_world_size(world));
    CHECK_EQ(hem_world_local_rank(world), hem_world_rank(world));
    for (int rank = 0; rank < hem_world_size(world); rank++) {
        CHECK_EQ(hem_world_alive(world, rank), 1);
        CHECK_EQ(hem_world_host(world, rank), 0);
    }
    harness_destroy(window);
}

static hem_world *split(hem_world *world, int colour, int key, int want_rank, int want_size) {
    hem_world *part = NULL;

    CHECK_OK(hem_world_split(world, colour, key, &part));
    CHECK(part != NULL);
    CHECK_EQ(hem_world_rank(part), want_rank);
    CHECK_EQ(hem_world_size(part), want_size);
    check_works(part);
    return part;
}

static void by_parity(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);

    CHECK_OK(hem_world_close(split(world, rank % 2, 0, rank / 2, (size + 1 - rank % 2) / 2)));
}

static void by_key(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    int place;

    CHECK_OK(hem_world_close(split(world, 7, -rank, size - 1 - rank, size)));
    CHECK_OK(hem_world_close(split(world, INT_MAX, INT_MAX, rank, size)));
    place = rank == size - 1 ? 0 : rank + 1;
    CHECK_OK(hem_world_close(split(world, 0, rank == size - 1 ? INT_MIN : 5, place, size)));
    CHECK_OK(hem_world_close(split(world, rank, 0, 0, 1)));
}

static void without_colour(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_world *part = world;

    if (rank == 0) {
        CHECK_OK(hem_world_split(world, HEM_NO_COLOUR, 0, &part));
        CHECK(part == NULL);
    } else {
        CHECK_OK(hem_world_close(split(world, 1, 0, rank - 1, size - 1)));
    }
    part = world;
    CHECK_OK(hem_world_split(world, HEM_NO_COLOUR, 0, &part));
    CHECK(part == NULL);
}

/* Halves of halves down to one, all open at once, each used, closed from the outside in. */
static void nested(hem_world *world) {
    hem_world *chain[8] = {world};
    int depth = 0;
    int rank;
    int size;

    while ((size = hem_world_size(chain[depth])) > 1) {
        rank = hem_world_rank(chain[depth]);
        if (rank < size / 2)
            chain[depth + 1] = split(chain[depth], 0, 0, rank, size / 2);
        else
            chain[depth + 1] = split(chain[depth], 1, 0, rank - size / 2, size - size / 2);
        depth++;
    }
    for (int i = 1; i <= depth; i++) {
        check_works(chain[i]);
        CHECK_OK(hem_world_close(chain[i]));
    }
}

/* A rank that asks for an impossible colour makes the split fail for all. */
static void bad_colour(hem_world *world) {
    int last = hem_world_size(world) - 1;
    hem_world *part = world;

    CHECK_STATUS(hem_world_split(world, hem_world_rank(world) == last ? -3 : 0, 0, &part),
                 HEM_ERR_ARG);
    CHECK(part == world);
    if (hem_world_rank(world) != last)
        CHECK_NAMES_RANK(last);
    check_works(world);
}

int rank_main(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_world *part;
    hem_world *again;

    check_works(world);
    by_parity(world);
    by_key(world);
    without_colour(world);
    nested(world);
    bad_colour(world);
    part = split(world, 3, -rank, size - 1 - rank, size);
    harness_close(world, HEM_OK);
    check_works(part);
    again = split(part, 0, 0, size - 1 - rank, size);
    CHECK_OK(hem_world_close(part));
    check_works(again);
    CHECK_OK(hem_world_close(again));
    return 0;
}
