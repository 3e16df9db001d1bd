/*
 * Channels of several worlds at a time, of halves of a world and of one with its ranks in another
 * order: the same channel id in two worlds is two channels. Worlds with channels can be made and
 * closed over and over, and nothing stays behind: no file, no mapping, no memory.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

enum {
    WORLDS = 4,
    MOST = 50000
};

static hem_world *split(hem_world *world, int colour, int key) {
    hem_world *part = NULL;

    CHECK_OK(hem_world_split(world, colour, key, &part));
    return part;
}

struct mover {
    hem_world *world;
    hem_op *ops[2];
    chan_buffer buffers[2];
    int from;
};

static void start(struct mover *m, uint64_t seed, uint64_t number) {
    hem_world *w = m->world;
    int me = hem_world_rank(w);
    int size = hem_world_size(w);
    int to = (me + (int)(number % 3)) % size;
    harness_rng rng = harness_rng_of(seed, number, 0);
    size_t bytes = chan_random_bytes(&rng, MOST);

    m->from = (me + 3 * size - (int)(number % 3)) % size;
    m->buffers[0] = chan_make(MOST);
    m->buffers[1] = chan_make(MOST);
    chan_load(&m->buffers[0], bytes, number % 16, seed + chan_tag(me, to, 0, number));
    chan_place(&m->buffers[1], bytes, number % 13);
    CHECK_OK(hem_send_start(w, to, 0, m->buffers[0].at, bytes, &m->ops[0]));
    CHECK_OK(hem_recv_start(w, m->from, 0, m->buffers[1].at, bytes, &m->ops[1]));
}

static void finish(struct mover *m, uint64_t seed, uint64_t number) {
    CHECK_OK(hem_op_wait_all(m->ops, 2, LIMIT));
    CHECK_LOAD(&m->buffers[1], seed + chan_tag(m->from, hem_world_rank(m->world), 0, number));
    for (int i = 0; i < 2; i++) {
        FREE_OP(m->ops[i]);
        chan_free(&m->buffers[i]);
    }
}

/* All, all backwards, odd and even, and each by itself; the same channel in each. */
static void several(hem_world *world, uint64_t seed, int rounds) {
    int me = hem_world_rank(world);
    struct mover movers[WORLDS] = {
        {.world = split(world, 0, 0)},
        {.world = split(world, 0, -me)},
        {.world = split(world, me % 2, 0)},
        {.world = split(world, me, 0)},
    };

    CHECK_EQ(hem_world_rank(movers[1].world), hem_world_size(world) - 1 - me);
    for (uint64_t round = 0; round < (uint64_t)rounds; round++) {
        harness_step("round", round);
        for (uint64_t i = 0; i < WORLDS; i++)
            start(&movers[(i + round) % WORLDS], seed + (i + round) % WORLDS, round);
        for (uint64_t i = 0; i < WORLDS; i++)
            finish(&movers[i], seed + i, round);
    }
    for (int i = 0; i < WORLDS; i++)
        CHECK_OK(hem_world_close(movers[i].world));
}

/* Operations of different worlds cannot be waited for together. */
static void mixed_lists(hem_world *world) {
    hem_world *other = split(world, 0, 0);
    int me = hem_world_rank(world);
    uint64_t words[2] = {0, 0};
    hem_op *ops[2] = {NULL, NULL};
    size_t which = 9;

    CHECK_OK(hem_recv_start(world, me, 0, &words[0], 8, &ops[0]));
    CHECK_OK(hem_recv_start(other, me, 0, &words[1], 8, &ops[1]));
    CHECK_STATUS(hem_op_wait_all(ops, 2, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_op_wait_any(ops, 2, &which, LIMIT), HEM_ERR_ARG);
    CHECK_EQ(which, 9);
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
    CHECK_OK(hem_world_close(other));
}

struct holdings {
    int files;
    int mappings;
    long resident;
};

/* Of threads in one process one looks for all: looking itself takes a file. */
static struct holdings holdings_now(hem_world *world) {
    if (harness_threads() && hem_world_rank(world) != 0)
        return (struct holdings){0};
    return (struct holdings){harness_open_files(), harness_mappings(), harness_resident_kib()};
}

/* Some operations are left as they are when the world is closed. */
static void come_and_go(hem_world *world, int round) {
    static _Thread_local uint8_t data[70000];
    hem_world *made = split(world, 0, 0);
    hem_op *ops[2] = {NULL, NULL};
    int fd = -1;

    chan_works(made, chan_partner(made), (uint32_t)round % HEM_CHANNELS, 0);
    if (round % 2)
        CHECK_OK(hem_world_event_fd(made, &fd));
    if (round % 3 == 0)
        CHECK_OK(hem_progress_start(made));
    CHECK_OK(hem_recv_start(made, harness_left(made), 3, data, 8, &ops[0]));
    if (round % 4 == 0)
        CHECK_OK(hem_send_start(made, harness_right(made), 4, data, sizeof data, &ops[1]));
    CHECK_OK(hem_world_close(made));
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

static void leaks(hem_world *world) {
    hem_window *window = harness_window(world, 64);
    struct holdings before;
    struct holdings after;

    for (int i = 0; i < 24; i++)
        come_and_go(world, i);
    harness_barrier(window);
    before = holdings_now(world);
    harness_barrier(window);
    for (int i = 0; i < harness_rounds(120); i++) {
        harness_step("coming and going", (uint64_t)i);
        come_and_go(world, i);
    }
    harness_barrier(window);
    after = holdings_now(world);
    harness_barrier(window);
    CHECK(after.files <= before.files + 2);
    if (!harness_sanitized())
        CHECK(after.mappings <= before.mappings + 24);
    if (!harness_sanitized())
        CHECK(after.resident <= before.resident + 4096);
    harness_destroy(window);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    several(world, seed, harness_rounds(150));
    mixed_lists(world);
    leaks(world);
    harness_close(world, HEM_OK);
    return 0;
}
