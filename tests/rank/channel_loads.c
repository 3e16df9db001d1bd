/* Loads on channels that several tests run, with different staging. */
#include "channel_kit.h"

/* One message each way. */

struct pair {
    hem_world *world;
    int me;
    int peer;
    chan_buffer out;
    chan_buffer in;
    uint64_t number;
    bool quick; /* fewer pairs of alignments, but all of each side */
};

static void blocking(struct pair *p, size_t room) {
    size_t got = 77;
    bool first = p->me < p->peer;

    if (first)
        CHECK_OK(hem_send(p->world, p->peer, 3, p->out.at, p->out.bytes, LIMIT));
    CHECK_OK(hem_recv(p->world, p->peer, 3, p->in.at, room, &got, LIMIT));
    CHECK_EQ(got, p->in.bytes);
    if (!first)
        CHECK_OK(hem_send(p->world, p->peer, 3, p->out.at, p->out.bytes, LIMIT));
}

static void both(struct pair *p, size_t room) {
    hem_message send = {p->peer, p->out.at, p->out.bytes};
    hem_message recv = {p->peer, p->in.at, room};

    CHECK_OK(hem_sendrecv(p->world, 3, &send, &recv, LIMIT));
    CHECK_EQ(recv.bytes, p->in.bytes);
    CHECK(recv.peer == p->peer && recv.data == p->in.at && send.bytes == p->out.bytes);
}

static void started(struct pair *p, size_t room, bool send_first) {
    hem_op *ops[2] = {NULL, NULL};

    if (send_first)
        CHECK_OK(hem_send_start(p->world, p->peer, 3, p->out.at, p->out.bytes, &ops[0]));
    CHECK_OK(hem_recv_start(p->world, p->peer, 3, p->in.at, room, &ops[1]));
    if (!send_first)
        CHECK_OK(hem_send_start(p->world, p->peer, 3, p->out.at, p->out.bytes, &ops[0]));
    CHECK_OK(hem_op_wait_all(ops, 2, LIMIT));
    CHECK_EQ(hem_op_bytes(ops[1]), p->in.bytes);
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

/* `mine` bytes go out and `theirs` come in, in one of four ways, with some room to spare. */
static void swap(struct pair *p, size_t mine, size_t theirs, size_t shift_out, size_t shift_in) {
    uint64_t number = p->number++;
    size_t room = theirs + number % 3;

    harness_step("message", number);
    chan_load(&p->out, mine, shift_out, chan_tag(p->me, p->peer, 3, number));
    chan_place(&p->in, theirs, shift_in);
    if (number % 4 == 0 && p->me != p->peer)
        blocking(p, room);
    else if (number % 4 == 1)
        both(p, room);
    else
        started(p, room, number % 4 == 2);
    CHECK_LOAD(&p->in, chan_tag(p->peer, p->me, 3, number));
    CHECK_LOAD(&p->out, chan_tag(p->me, p->peer, 3, number));
}

/* Both directions have different lengths where `other` is not `bytes`. */
static void at_all_alignments(struct pair *p, size_t bytes, size_t other) {
    size_t step = bytes <= 200 || bytes == 4097 ? 1 : bytes <= 70000 ? 4 : 16;
    bool swapped = p->me > p->peer;

    if (p->quick && step < 16)
        step *= 4;
    for (size_t i = 0; i < 256; i += step) {
        size_t a = (i / 16 + i) % 16;
        size_t b = step == 16 ? (i / 16 * 7 + 3) % 16 : i / 16;

        if (swapped)
            swap(p, other, bytes, a, b);
        else
            swap(p, bytes, other, a, b);
    }
}

/* Lengths around everything that the staging is made of, whatever it was set to. */
static const size_t lengths[] = {
    0,      1,      7,      8,      9,      33,     39,      40,      41,      63,      64,
    65,     79,     80,     81,     104,    119,    120,     121,     127,     128,     129,
    160,    161,    320,    321,    1023,   1024,   1025,    2047,    2048,    2049,    4031,
    4032,   4033,   4095,   4096,   4097,   4160,   8127,    8191,    8192,    8193,    12289,
    16383,  16384,  16385,  32767,  32768,  32769,  49153,   65471,   65535,   65536,   65537,
    98303,  98305,  131071, 131072, 131073, 196609, 262080,  262143,  262144,  262145,  262209,
    393217, 524287, 524288, 524289, 786433, 983041, 1048575, 1048576, 1048577, 2097151, 2097153,
};

void chan_sizes(hem_world *world, size_t most, bool quick) {
    size_t count = sizeof lengths / sizeof *lengths;
    struct pair p = {
        .world = world,
        .me = hem_world_rank(world),
        .peer = chan_partner(world),
        .out = chan_make(most + 4096),
        .in = chan_make(most + 4096),
        .quick = quick || harness_sanitized(),
    };

    while (lengths[count - 1] > most)
        count--;
    for (size_t i = 0; i < count; i++) {
        size_t other = p.me == p.peer ? lengths[i] : lengths[count - 1 - i] % 9001;

        at_all_alignments(&p, lengths[i], i % 2 ? other : lengths[i]);
    }
    harness_step("after sizes", p.number);
    chan_free(&p.in);
    chan_free(&p.out);
}

/* One way, blocking. */

static void pour(hem_world *world, bool send, int count, size_t most, harness_rng rng) {
    int me = hem_world_rank(world);
    int peer = chan_partner(world);
    chan_buffer buffer = chan_make(most);

    for (int i = 0; i < count; i++) {
        uint64_t number = (uint64_t)i;
        size_t bytes = chan_random_bytes(&rng, most);
        size_t got = 0;

        harness_step("streamed message", number);
        if (send) {
            chan_load(&buffer, bytes, number % 16, chan_tag(me, peer, 5, number));
            CHECK_OK(hem_send(world, peer, 5, buffer.at, bytes, LIMIT));
        } else {
            chan_place(&buffer, bytes, number * 5 % 16);
            CHECK_OK(hem_recv(world, peer, 5, buffer.at, bytes + number % 2, &got, LIMIT));
            CHECK_EQ(got, bytes);
            CHECK_LOAD(&buffer, chan_tag(peer, me, 5, number));
        }
    }
    chan_free(&buffer);
}

void chan_stream(hem_world *world, int count, size_t most) {
    uint64_t seed = harness_seed(world);
    int me = hem_world_rank(world);
    int peer = chan_partner(world);
    uint64_t low = (uint64_t)(me < peer ? me : peer);

    if (peer == me)
        return;
    pour(world, me < peer, count, most, harness_rng_of(seed, low, 1));
    pour(world, me > peer, count, most, harness_rng_of(seed, low, 2));
    harness_step("after streams", 0);
}

/* Both ways, started. */

enum {
    DEPTH = 8
};

struct flow {
    hem_world *world;
    int from;
    int to;
    uint32_t channel;
    bool sends;
    size_t most;
    uint64_t count;
    uint64_t begun;
    uint64_t ended;
    harness_rng rng; /* the same on both ends */
    hem_op *ops[DEPTH];
    uint64_t numbers[DEPTH];
    chan_buffer buffers[DEPTH];
};

static void flow_open(struct flow *f, uint64_t seed) {
    f->rng = harness_rng_of(seed, (uint64_t)f->from * 1000 + (uint64_t)f->to, f->channel);
    for (int i = 0; i < DEPTH; i++)
        f->buffers[i] = chan_make(f->most);
}

static void flow_close(struct flow *f) {
    CHECK_EQ(f->ended, f->count);
    for (int i = 0; i < DEPTH; i++)
        chan_free(&f->buffers[i]);
}

static void flow_begin(struct flow *f, int place, uint64_t dice) {
    size_t bytes = chan_random_bytes(&f->rng, f->most);
    uint64_t number = f->begun++;
    chan_buffer *b = &f->buffers[place];

    f->numbers[place] = number;
    if (f->sends) {
        chan_load(b, bytes, dice % 16, chan_tag(f->from, f->to, f->channel, number));
        CHECK_OK(hem_send_start(f->world, f->to, f->channel, b->at, bytes, &f->ops[place]));
    } else {
        chan_place(b, bytes, dice % 16);
        CHECK_OK(hem_recv_start(f->world, f->from, f->channel, b->at, bytes, &f->ops[place]));
    }
}

static void flow_end(struct flow *f, int place) {
    chan_buffer *b = &f->buffers[place];

    harness_step(f->sends ? "sent" : "received", f->numbers[place]);
    if (!f->sends)
        CHECK_EQ(hem_op_bytes(f->ops[place]), b->bytes);
    CHECK_LOAD(b, chan_tag(f->from, f->to, f->channel, f->numbers[place]));
    FREE_OP(f->ops[place]);
    f->ops[place] = NULL;
    f->ended++;
}

static void flow_feed(struct flow *f, harness_rng *dice) {
    size_t depth = 1 + harness_below(dice, DEPTH);

    for (int i = 0; i < DEPTH && f->begun < f->count && f->begun - f->ended < depth; i++)
        if (!f->ops[i])
            flow_begin(f, i, harness_random(dice));
}

/* Look at some operation, wait a little for it, or wait for whichever is done first. */
static void flow_look(struct flow *f, struct flow *g, harness_rng *dice) {
    hem_op *all[2 * DEPTH];
    size_t which = harness_below(dice, 2 * DEPTH);
    size_t way = harness_below(dice, 3);
    hem_status status = HEM_OK;
    bool done = true;

    memcpy(all, f->ops, sizeof f->ops);
    memcpy(all + DEPTH, g->ops, sizeof g->ops);
    if (way < 2 && !all[which])
        return;
    if (way == 0) {
        CHECK_OK(hem_op_test(all[which], &done));
    } else if (way == 1) {
        status = hem_op_wait(all[which], HEM_US(harness_below(dice, 100)));
        done = status != HEM_ERR_TIMEOUT;
        if (done)
            CHECK_OK(status);
    } else {
        CHECK_OK(hem_op_wait_any(all, 2 * DEPTH, &which, LIMIT));
    }
    if (done && which < DEPTH)
        flow_end(f, (int)which);
    else if (done)
        flow_end(g, (int)which - DEPTH);
}

void chan_crossing(hem_world *world, uint32_t channel, int count, size_t most) {
    uint64_t seed = harness_seed(world);
    int me = hem_world_rank(world);
    int peer = chan_partner(world);
    harness_rng dice = harness_rng_of(seed, (uint64_t)me, 99 + channel);
    struct flow out = {.world = world, .from = me, .to = peer, .channel = channel};
    struct flow in = {.world = world, .from = peer, .to = me, .channel = channel};

    out.sends = true;
    out.most = in.most = most;
    out.count = in.count = (uint64_t)count;
    flow_open(&out, seed);
    flow_open(&in, seed);
    while (out.ended < out.count || in.ended < in.count) {
        flow_feed(&in, &dice);
        flow_feed(&out, &dice);
        flow_look(&out, &in, &dice);
    }
    flow_close(&out);
    flow_close(&in);
    harness_step("after crossing", 0);
}
