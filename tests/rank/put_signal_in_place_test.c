/*
 * A payload is delivered once. The receiver owns the delivered bytes: it may change them in place,
 * and nothing brings the old ones back, neither looking again, nor a later signal without bytes,
 * nor the sender's flush. A word is sent back and forth and grows by one at each end.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    ID = 1,
    EMPTY_ID = 2,
    AT = 40
};

struct pair {
    hem_window *window;
    uint8_t *mine;
    int peer;
    harness_rng rng;
};

static void check_word(const struct pair *p, uint64_t want) {
    uint64_t value;

    memcpy(&value, p->mine + AT, sizeof value);
    CHECK_EQ(value, want);
}

/* Sends the word and up to 32 bytes that follow it. Now and then flushes, or signals again. */
static void throw_word(struct pair *p, uint64_t value) {
    uint64_t dice = harness_random(&p->rng);
    uint8_t bytes[48];
    size_t n = sizeof value + dice % 33;

    check_word(p, value);
    memcpy(bytes, &value, sizeof value);
    harness_fill(bytes + sizeof value, n - sizeof value, value);
    CHECK_OK(hem_put_signal(p->window, p->peer, AT, bytes, n, ID, 1));
    if ((dice >> 8) % 4 == 0)
        CHECK_OK(hem_flush(p->window, p->peer));
    if ((dice >> 16) % 16 == 0)
        CHECK_OK(hem_signal(p->window, p->peer, EMPTY_ID, HEM_SIGNAL_ADD, 1));
}

/* Waits for the peer's throw number `count`, changes the word in place, and looks again. */
static void catch_word(struct pair *p, uint64_t count, uint64_t want) {
    uint64_t dice = harness_random(&p->rng);
    uint64_t changed = want + 1;
    uint64_t unused;

    harness_see(p->window, (int)(dice % HARNESS_SEE_WAYS), p->peer, ID, count);
    check_word(p, want);
    memcpy(p->mine + AT, &changed, sizeof changed);
    if ((dice >> 8) % 8 == 0) {
        harness_see(p->window, (int)((dice >> 16) % HARNESS_SEE_WAYS), p->peer, ID, count);
        CHECK_OK(hem_read_signal(p->window, EMPTY_ID, &unused));
        CHECK_OK(hem_read_signal_from(p->window, p->peer, EMPTY_ID, &unused));
    }
    harness_dither(dice >> 32);
    check_word(p, changed);
}

/* Turn t is the throw of value t; turns alternate between the two. */
static void play(struct pair *p, bool first, uint64_t rounds) {
    uint64_t one = 1;

    if (first)
        memcpy(p->mine + AT, &one, sizeof one);
    for (uint64_t round = 1; round <= rounds; round++) {
        if (first) {
            throw_word(p, 2 * round - 1);
            catch_word(p, round, 2 * round);
        } else {
            catch_word(p, round, 2 * round - 1);
            throw_word(p, 2 * round);
        }
    }
}

static void play_alone(struct pair *p, uint64_t rounds) {
    uint64_t one = 1;

    memcpy(p->mine + AT, &one, sizeof one);
    for (uint64_t round = 1; round <= rounds; round++) {
        throw_word(p, round);
        catch_word(p, round, round);
    }
}

int rank_main(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    int rounds = harness_rounds(size <= 3 ? 100000 : size <= 5 ? 20000 : 8000);
    uint64_t seed = harness_seed(world);
    struct pair p = {.window = harness_window(world, 256), .peer = rank ^ 1};

    p.mine = hem_window_memory(p.window);
    p.rng = harness_rng_of(seed, (uint64_t)rank, 0);
    if (p.peer < size) {
        play(&p, rank % 2 == 0, (uint64_t)rounds);
    } else {
        p.peer = rank;
        play_alone(&p, (uint64_t)rounds);
    }
    harness_barrier(p.window);
    harness_destroy(p.window);
    harness_close(world, HEM_OK);
    return 0;
}
