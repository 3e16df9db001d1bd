/*
 * A put with a signal delivers exactly its bytes at every length from 0 to 100 and every alignment,
 * whether they travel in the signal's cache line or not, by whichever call the receiver looks, and
 * whether it looks after each one or only at the end.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    SLOTS = 64,
    SLOT = 256,
    GUARD = 0xEE,
    LONGEST = 100
};

struct side {
    hem_window *window;
    uint8_t *mine;
    int left;
    int right;
    uint64_t seed;
    uint64_t sent;
    uint64_t seen;
};

static uint64_t tag_of(int sender, size_t n, size_t slot) {
    return (uint64_t)sender * 1000003 + n * 1009 + slot;
}

static void send_one(struct side *s, int rank, size_t n, size_t slot, harness_rng *rng) {
    uint8_t source[LONGEST + 64];
    size_t from = harness_below(rng, 64);

    harness_fill(source + from, n, tag_of(rank, n, slot));
    CHECK_OK(hem_put_signal(s->window, s->right, slot * SLOT + 64 + slot, source + from, n, 3, 1));
    memset(source, 0x55, sizeof source);
    s->sent++;
}

static void check_one(struct side *s, size_t n, size_t slot) {
    const uint8_t *at = s->mine + slot * SLOT;

    CHECK_ALL(at, 64 + slot, GUARD);
    CHECK_FILLED(at + 64 + slot, n, tag_of(s->left, n, slot));
    CHECK_ALL(at + 64 + slot + n, SLOT - 64 - slot - n, GUARD);
}

/* Looks at each message as it comes; the sender does not wait for that. */
static void look_at_each(struct side *s, int rank, size_t n) {
    harness_rng rng = harness_rng_of(s->seed, (uint64_t)rank, n);

    for (size_t slot = 0; slot < SLOTS; slot++) {
        send_one(s, rank, n, slot, &rng);
        s->seen++;
        harness_see(s->window, (int)harness_below(&rng, HARNESS_SEE_WAYS), s->left, 3, s->seen);
        check_one(s, n, slot);
    }
}

/* Looks once, when all are there. */
static void look_at_end(struct side *s, int rank, size_t n) {
    harness_rng rng = harness_rng_of(s->seed, (uint64_t)rank, n + 1000);

    for (size_t slot = 0; slot < SLOTS; slot++)
        send_one(s, rank, n, slot, &rng);
    s->seen += SLOTS;
    harness_see(s->window, (int)harness_below(&rng, HARNESS_SEE_WAYS), s->left, 3, s->seen);
    for (size_t slot = 0; slot < SLOTS; slot++)
        check_one(s, n, slot);
}

static void clean(struct side *s) {
    harness_barrier(s->window);
    memset(s->mine, GUARD, SLOTS * SLOT);
    harness_barrier(s->window);
}

int rank_main(hem_world *world) {
    int rank = hem_world_rank(world);
    struct side s = {.left = harness_left(world), .right = harness_right(world)};

    s.seed = harness_seed(world);
    s.window = harness_window(world, SLOTS * SLOT);
    s.mine = hem_window_memory(s.window);
    for (size_t n = 0; n <= LONGEST; n++) {
        clean(&s);
        look_at_each(&s, rank, n);
        clean(&s);
        look_at_end(&s, rank, n);
    }
    harness_barrier(s.window);
    harness_destroy(s.window);
    harness_close(world, HEM_OK);
    return 0;
}
