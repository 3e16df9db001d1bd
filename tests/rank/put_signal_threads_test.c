/*
 * Several threads of one rank signal and wait on distinct ids at the same time. Each has a partner
 * thread at the peer and a word next to the others' words: a thread that looks delivers what is its
 * own, once, and disturbs no neighbour, although all come through the same pair of ranks.
 *
 * hem-test: ranks=1,2,3,4,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    THREADS = 3
};

struct player {
    hem_window *window;
    int rank;
    int peer;
    uint32_t id;
    bool first;
    uint64_t rounds;
    harness_rng rng;
};

/* The words of all threads share a cache line. */
static uint64_t *own_word(const struct player *p) {
    return (uint64_t *)hem_window_memory(p->window) + p->id;
}

static void throw_word(struct player *p, uint64_t value) {
    uint64_t dice = harness_random(&p->rng);

    CHECK_EQ(*own_word(p), value);
    CHECK_OK(hem_put_signal(p->window, p->peer, p->id * 8, &value, 8, p->id, 1));
    if (dice % 8 == 0)
        CHECK_OK(hem_flush(p->window, p->peer));
}

static void catch_word(struct player *p, uint64_t count, uint64_t want) {
    uint64_t dice = harness_random(&p->rng);

    harness_see(p->window, (int)(dice % HARNESS_SEE_WAYS), p->peer, p->id, count);
    CHECK_EQ(*own_word(p), want);
    *own_word(p) = want + 1;
    if (dice % 5 == 0)
        harness_see(p->window, HARNESS_FROM, p->peer, p->id, count);
    CHECK_EQ(*own_word(p), want + 1);
}

static void play(void *arg) {
    struct player *p = arg;

    if (p->first)
        *own_word(p) = 1;
    for (uint64_t round = 1; round <= p->rounds; round++) {
        if (p->peer == p->rank) {
            throw_word(p, round);
            catch_word(p, round, round);
        } else if (p->first) {
            throw_word(p, 2 * round - 1);
            catch_word(p, round, 2 * round);
        } else {
            catch_word(p, round, 2 * round - 1);
            throw_word(p, 2 * round);
        }
    }
    CHECK_OK(hem_barrier(p->window, p->id, LIMIT));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_window *window = harness_window(world, 256);
    struct player players[THREADS];
    harness_thread threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        players[i] = (struct player){
            .window = window,
            .rank = rank,
            .peer = (rank ^ 1) < size ? rank ^ 1 : rank,
            .id = (uint32_t)i,
            .first = rank % 2 == 0,
            .rounds = (uint64_t)harness_rounds(16000 / size),
            .rng = harness_rng_of(seed, (uint64_t)rank, (uint64_t)i),
        };
        harness_start(&threads[i], play, &players[i]);
    }
    harness_join(threads, THREADS);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
