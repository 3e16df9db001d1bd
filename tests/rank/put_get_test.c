/*
 * A put writes its bytes and no others, at every offset, length and alignment; a get reads the
 * same. Windows may differ in size between ranks, be empty, and be one's own.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    SMALL = 160,
    SPAN = 512,
    GUARD = 0xEE
};

struct ring {
    hem_window *window;
    uint8_t *mine;
    int left;
    int right;
};

static struct ring ring_of(hem_world *world, hem_window *window) {
    return (struct ring){window, hem_window_memory(window), harness_left(world),
                         harness_right(world)};
}

/* Every put of the right neighbour's whole small window, each read back with its surroundings. */
static void every_offset_and_length(hem_world *world) {
    struct ring r = ring_of(world, harness_window(world, SMALL));
    uint8_t image[SMALL] = {0};
    uint8_t back[SMALL];
    uint8_t source[SMALL];
    uint64_t tag = 1;

    for (size_t offset = 0; offset <= SMALL; offset++) {
        for (size_t n = 0; offset + n <= SMALL; n++, tag++) {
            harness_fill(source, n, tag);
            memcpy(image + offset, source, n);
            CHECK_OK(hem_put(r.window, r.right, offset, source, n));
            CHECK_OK(hem_get(r.window, r.right, 0, back, SMALL));
            CHECK(memcmp(back, image, SMALL) == 0);
        }
    }
    harness_barrier(r.window);
    CHECK(memcmp(r.mine, image, SMALL) == 0);
    harness_destroy(r.window);
}

/* Each get of every piece, into memory with guard bytes around. */
static void every_get(hem_world *world) {
    struct ring r = ring_of(world, harness_window(world, SMALL));
    uint8_t image[SMALL];
    uint8_t to[SMALL + 64];

    harness_fill(r.mine, SMALL, 77);
    harness_fill(image, SMALL, 77);
    harness_barrier(r.window);
    for (size_t offset = 0; offset <= SMALL; offset++) {
        for (size_t n = 0; offset + n <= SMALL; n++) {
            memset(to, GUARD, sizeof to);
            CHECK_OK(hem_get(r.window, r.right, offset, to + 32, n));
            CHECK_ALL(to, 32, GUARD);
            CHECK(memcmp(to + 32, image + offset, n) == 0);
            CHECK_ALL(to + 32 + n, sizeof to - 32 - n, GUARD);
        }
    }
    harness_barrier(r.window);
    CHECK_FILLED(r.mine, SMALL, 77);
    harness_destroy(r.window);
}

static void one_alignment(const struct ring *r, uint8_t *source, size_t from, size_t to, size_t n) {
    uint8_t back[SPAN + 128];

    memset(back, GUARD, sizeof back);
    CHECK_OK(hem_put(r->window, r->right, 0, back, SPAN));
    harness_fill(source + from, n, from * 64 + to);
    CHECK_OK(hem_put(r->window, r->right, to, source + from, n));
    CHECK_OK(hem_get(r->window, r->right, 0, back + from, SPAN));
    CHECK_ALL(back, from + to, GUARD);
    CHECK_FILLED(back + from + to, n, from * 64 + to);
    CHECK_ALL(back + from + to + n, sizeof back - from - to - n, GUARD);
}

static void every_alignment(hem_world *world) {
    static const size_t lengths[] = {1, 7, 8, 31, 33, 64, 100, 129, 256, 383};
    struct ring r = ring_of(world, harness_window(world, SPAN));
    uint8_t source[SPAN];

    for (size_t from = 0; from < 64; from++)
        for (size_t to = 0; to < 64; to++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                one_alignment(&r, source, from, to, lengths[i]);
    harness_barrier(r.window);
    harness_destroy(r.window);
}

/* Rank r has r * 100 bytes, so rank 0 has none at all. The ends are exact for every pair. */
static void sizes_differ(hem_world *world) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_window *window = harness_window(world, (size_t)rank * 100);
    uint8_t bytes[2048];
    size_t full;

    harness_fill(bytes, sizeof bytes, 5);
    for (int peer = 0; peer < size; peer++) {
        full = (size_t)peer * 100;
        CHECK_EQ(hem_window_bytes(window, peer), full);
        if (peer == harness_right(world))
            CHECK_OK(hem_put(window, peer, 0, bytes, full));
        CHECK_OK(hem_put(window, peer, full, bytes, 0));
        CHECK_STATUS(hem_put(window, peer, full, bytes, 1), HEM_ERR_RANGE);
        CHECK_STATUS(hem_put(window, peer, 0, bytes, full + 1), HEM_ERR_RANGE);
        CHECK_STATUS(hem_get(window, peer, full, bytes, 1), HEM_ERR_RANGE);
    }
    harness_barrier(window);
    CHECK_FILLED(hem_window_memory(window), (size_t)rank * 100, 5);
    harness_destroy(window);
}

static void translated(hem_world *world) {
    int size = hem_world_size(world);
    hem_window *window = harness_window(world, 128);
    uint8_t *mine = hem_window_memory(window);
    uint8_t *theirs;

    for (int peer = 0; peer < size; peer++) {
        theirs = hem_window_peer_address(window, peer, 64);
        CHECK(theirs != NULL);
        CHECK(hem_window_translate(window, mine + 64, peer) == theirs);
        CHECK(hem_window_translate(window, mine + 128, peer) == NULL ||
              hem_window_translate(window, mine + 128, peer) == theirs + 64);
        CHECK(hem_window_translate(window, mine - 1, peer) == NULL);
        CHECK(hem_window_translate(window, mine + 129, peer) == NULL);
        CHECK(hem_window_peer_address(window, peer, 129) == NULL);
        CHECK(hem_window_peer_address(window, peer, SIZE_MAX) == NULL);
    }
    CHECK(hem_window_peer_address(window, hem_world_rank(world), 0) == mine);
    theirs = hem_window_peer_address(window, harness_right(world), 0);
    theirs[7] = (uint8_t)(hem_world_rank(world) + 1);
    harness_barrier(window);
    CHECK_EQ(mine[7], harness_left(world) + 1);
    harness_destroy(window);
}

int rank_main(hem_world *world) {
    every_offset_and_length(world);
    every_get(world);
    every_alignment(world);
    sizes_differ(world);
    translated(world);
    harness_close(world, HEM_OK);
    return 0;
}
