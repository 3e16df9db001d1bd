/*
 * Many operations at a time: eight per pair and direction on each channel, started in any order of
 * channels and waited for in random order. The k-th receive of a channel gets the k-th message sent
 * on it, whatever the other channels do, and hem_op_wait_any and _all say what is true.
 *
 * hem-test: ranks=1,2,3,4 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

enum {
    EACH = 8,
    MAX_OPS = 4 * 2 * EACH * 3,
    MOST = 20000
};

struct item {
    hem_op *op;
    chan_buffer buffer;
    uint64_t tag;
    bool sends;
};

struct set {
    hem_world *world;
    int me;
    harness_rng rng;
    uint64_t round;
    size_t count;
    struct item items[MAX_OPS];
};

static size_t length_of(uint64_t tag) {
    harness_rng rng = harness_rng_of(tag, 4, 2);

    return chan_random_bytes(&rng, MOST);
}

static void start(struct set *s, int peer, uint32_t channel, uint64_t number, bool sends) {
    struct item *item = &s->items[s->count++];
    chan_buffer *b = &item->buffer;
    size_t shift = harness_below(&s->rng, 16);

    item->sends = sends;
    item->tag =
        sends ? chan_tag(s->me, peer, channel, number) : chan_tag(peer, s->me, channel, number);
    if (sends) {
        chan_load(b, length_of(item->tag), shift, item->tag);
        CHECK_OK(hem_send_start(s->world, peer, channel, b->at, b->bytes, &item->op));
    } else {
        chan_place(b, length_of(item->tag), shift);
        CHECK_OK(hem_recv_start(s->world, peer, channel, b->at, b->bytes, &item->op));
    }
}

/*
 * Each lane is a peer, a channel and a direction, of which EACH operations are started, in an order
 * in which lanes take turns at random.
 */
static void start_all(struct set *s, const uint32_t *channels, size_t count) {
    size_t size = (size_t)hem_world_size(s->world);
    size_t lanes = size * count * 2;
    size_t begun[4 * 2 * 3] = {0};

    s->count = 0;
    while (s->count < lanes * EACH) {
        size_t lane = harness_below(&s->rng, lanes);

        if (begun[lane] == EACH)
            continue;
        start(s, (int)(lane / 2 % size), channels[lane / 2 / size], s->round * EACH + begun[lane],
              lane % 2);
        begun[lane]++;
    }
}

static void finish(struct set *s, struct item *item) {
    struct item old = *item;
    bool done = false;

    CHECK_OK(hem_op_test(item->op, &done));
    CHECK(done);
    if (!item->sends)
        CHECK_EQ(hem_op_bytes(item->op), item->buffer.bytes);
    CHECK_LOAD(&item->buffer, item->tag);
    FREE_OP(item->op);
    *item = s->items[--s->count];
    s->items[s->count] = old;
}

static void make_buffers(struct set *s) {
    for (size_t i = 0; i < MAX_OPS; i++)
        s->items[i].buffer = chan_make(MOST);
}

static void free_buffers(struct set *s) {
    for (size_t i = 0; i < MAX_OPS; i++)
        chan_free(&s->items[i].buffer);
}

static void wait_one(struct set *s) {
    hem_op *ops[MAX_OPS];
    size_t which = harness_below(&s->rng, s->count);

    if (harness_below(&s->rng, 2)) {
        CHECK_OK(hem_op_wait(s->items[which].op, LIMIT));
    } else {
        for (size_t i = 0; i < s->count; i++)
            ops[i] = s->items[i].op;
        CHECK_OK(hem_op_wait_any(ops, s->count, &which, LIMIT));
        CHECK(which < s->count);
    }
    finish(s, &s->items[which]);
}

static void wait_for_all(struct set *s) {
    hem_op *ops[MAX_OPS];

    for (size_t i = 0; i < s->count; i++)
        ops[i] = s->items[i].op;
    ops[s->count] = NULL;
    CHECK_OK(hem_op_wait_all(ops, s->count, LIMIT));
    while (s->count > 0)
        finish(s, &s->items[harness_below(&s->rng, s->count)]);
}

/* The channels are used in pairs of which the other end knows. */
static void rounds(struct set *s, int count) {
    for (int i = 0; i < count; i++, s->round++) {
        uint32_t first = (uint32_t)(s->round * 2 % HEM_CHANNELS);
        uint32_t channels[2] = {first, first + 1};

        harness_step("round", s->round);
        start_all(s, channels, 2);
        if (s->round % 3 == 2)
            wait_for_all(s);
        while (s->count > 0)
            wait_one(s);
    }
}

/* Every channel at once, one message each way to the neighbour, in a random order of channels. */
static void all_channels(struct set *s, int count) {
    int peer = chan_partner(s->world);

    for (int i = 0; i < count; i++, s->round++) {
        uint32_t turn = (uint32_t)harness_below(&s->rng, HEM_CHANNELS);

        harness_step("round of all channels", s->round);
        s->count = 0;
        for (uint32_t c = 0; c < 2 * HEM_CHANNELS; c++)
            start(s, peer, (turn + c * 5) % HEM_CHANNELS, s->round, c < HEM_CHANNELS);
        while (s->count > 0)
            wait_one(s);
    }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    static _Thread_local struct set s;

    s = (struct set){.world = world, .me = hem_world_rank(world)};
    s.rng = harness_rng_of(seed, (uint64_t)s.me, 7);
    make_buffers(&s);
    rounds(&s, harness_rounds(120 / hem_world_size(world)));
    all_channels(&s, harness_rounds(100));
    free_buffers(&s);
    harness_close(world, HEM_OK);
    return 0;
}
