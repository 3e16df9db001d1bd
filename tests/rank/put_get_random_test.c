/*
 * Puts and gets of random sizes up to several MiB, among all ranks at once, at random places and
 * alignments, arrive whole and touch nothing else; also in one's own window.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    WINDOW = 12 << 20,
    LARGEST = 4 << 20
};

/* Each sender has its own part of every window. */
static size_t area_of(int size) {
    return (size_t)(WINDOW / size);
}

struct message {
    int peer;
    size_t offset;
    size_t n;
    size_t from;
    uint64_t tag;
};

/* What `sender` puts in `round`; the receiver works it out again. Sizes are even in magnitude. */
static struct message message_of(uint64_t seed, int sender, int round, int size) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)sender, (uint64_t)round);
    size_t area = area_of(size);
    struct message m;

    m.peer = (int)harness_below(&rng, (size_t)size);
    m.n = harness_below(&rng, (size_t)2 << (2 + harness_below(&rng, 20)));
    if (m.n > area)
        m.n = area;
    m.offset = harness_below(&rng, area - m.n + 1);
    m.from = harness_below(&rng, 4096);
    m.tag = harness_random(&rng);
    return m;
}

/* The area of one sender in this rank's window: its message, and zero around. */
static void check_area(const uint8_t *area, size_t bytes, const struct message *m) {
    size_t edge = 4096;
    size_t before;

    CHECK_FILLED(area + m->offset, m->n, m->tag);
    before = m->offset < edge ? m->offset : edge;
    CHECK_ALL(area + m->offset - before, before, 0);
    before = bytes - m->offset - m->n;
    CHECK_ALL(area + m->offset + m->n, before < edge ? before : edge, 0);
}

static void one_round(hem_world *world, hem_window *window, uint64_t seed, int round,
                      uint8_t *buf) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    uint8_t *mine = hem_window_memory(window);
    struct message m = message_of(seed, rank, round, size);
    size_t area = area_of(size);
    size_t offset = (size_t)rank * area + m.offset;

    harness_fill(buf + m.from, m.n, m.tag);
    CHECK_OK(hem_put(window, m.peer, offset, buf + m.from, m.n));
    memset(buf + m.from, 0, m.n);
    CHECK_OK(hem_get(window, m.peer, offset, buf + m.from, m.n));
    CHECK_FILLED(buf + m.from, m.n, m.tag);
    harness_barrier(window);
    for (int sender = 0; sender < size; sender++) {
        m = message_of(seed, sender, round, size);
        if (m.peer != rank)
            continue;
        check_area(mine + (size_t)sender * area, area, &m);
        memset(mine + (size_t)sender * area + m.offset, 0, m.n);
    }
    harness_barrier(window);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    hem_window *window = harness_window(world, WINDOW);
    uint8_t *buf = malloc(LARGEST * 2 + 8192);
    int rounds = harness_rounds(60);

    CHECK(buf != NULL);
    for (int round = 0; round < rounds; round++)
        one_round(world, window, seed, round, buf);
    free(buf);
    harness_destroy(window);
    harness_close(world, HEM_OK);
    return 0;
}
