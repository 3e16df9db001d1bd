/*
 * Nothing is lost when nobody looks: a thousand short payloads from every rank to every rank, on
 * several ids mixed, are all in place after one wait for the sum.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    BURST = 1000,
    STRIDE = 48,
    IDS = 5,
    ALL_ID = 7
};

struct piece {
    size_t n;
    size_t shift;
    uint32_t id;
    uint64_t tag;
};

static struct piece piece_of(uint64_t seed, int from, int to, int round, int i) {
    harness_rng rng =
        harness_rng_of(seed, (uint64_t)(from * 64 + to), (uint64_t)(round * BURST + i));
    struct piece p;

    p.n = harness_below(&rng, 33);
    p.shift = harness_below(&rng, STRIDE - p.n + 1);
    p.id = (uint32_t)harness_below(&rng, IDS);
    p.tag = harness_random(&rng);
    return p;
}

static size_t place_of(int from, int i) {
    return ((size_t)from * BURST + (size_t)i) * STRIDE;
}

static void send_all(hem_world *world, hem_window *window, uint64_t seed, int round) {
    int rank = hem_world_rank(world);
    uint8_t bytes[STRIDE];
    struct piece p;
    size_t offset;

    for (int i = 0; i < BURST; i++) {
        for (int peer = 0; peer < hem_world_size(world); peer++) {
            p = piece_of(seed, rank, peer, round, i);
            offset = place_of(rank, i) + p.shift;
            harness_fill(bytes, p.n, p.tag);
            CHECK_OK(hem_put_signal(window, peer, offset, bytes, p.n, p.id, 1));
        }
    }
    for (int peer = 0; peer < hem_world_size(world); peer++)
        CHECK_OK(hem_signal(window, peer, ALL_ID, HEM_SIGNAL_ADD, BURST));
}

static void check_all(hem_world *world, hem_window *window, uint64_t seed, int round) {
    int rank = hem_world_rank(world);
    uint8_t *mine = hem_window_memory(window);
    struct piece p;
    uint8_t *at;

    for (int from = 0; from < hem_world_size(world); from++) {
        for (int i = 0; i < BURST; i++) {
            p = piece_of(seed, from, rank, round, i);
            at = mine + place_of(from, i);
            CHECK_ALL(at, p.shift, 0);
            CHECK_FILLED(at + p.shift, p.n, p.tag);
            CHECK_ALL(at + p.shift + p.n, STRIDE - p.shift - p.n, 0);
        }
    }
}

/* The slots of each id add up to what was sent on it. */
static void check_sums(hem_world *world, hem_window *window, uint64_t seed, int rounds) {
    uint64_t want[IDS] = {0};
    uint64_t value;

    for (int from = 0; from < hem_world_size(world); from++)
        for (int round = 0; round < rounds; round++)
            for (int i = 0; i < BURST; i++)
                want[piece_of(seed, from, hem_world_rank(world), round, i).id]++;
    for (uint32_t id = 0; id < IDS; id++) {
        CHECK_OK(hem_read_signal(window, id, &value));
        CHECK_EQ(value, want[id]);
    }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int size = hem_world_size(world);
    size_t bytes = (size_t)size * BURST * STRIDE;
    hem_window *window = harness_window(world, bytes);
    int rounds = harness_rounds(8);
    uint64_t sum;

    for (int round = 0; round < rounds; round++) {
        send_all(world, window, seed, round);
        sum = (uint64_t)(round + 1) * BURST * (uint64_t)size;
        CHECK_OK(hem_wait_signal(window, ALL_ID, HEM_GE, sum, LIMIT));
        check_all(world, window, seed, round);
        memset(hem_window_memory(window), 0, bytes);
        harness_barrier(window);
    }
    check_sums(world, window, seed, rounds);
    harness_barrier(window);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
