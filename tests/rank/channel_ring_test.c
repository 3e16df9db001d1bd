/*
 * Rings and cycles of ranks that all send at the same time cannot deadlock, with a single slot and
 * a ring of one page: by hem_sendrecv and by started operations, around the world in any step, in
 * random permutations, everybody to everybody, chains with one half at either end, and to oneself.
 *
 * hem-test: ranks=1,2,3,4,5,6,7,8,9 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

enum {
    MOST = 40000,
    MAX_RANKS = 16
};

struct player {
    hem_world *world;
    int me;
    int size;
    harness_rng own;
    harness_rng common;
    chan_buffer out;
    chan_buffer in;
    uint64_t number;
};

/* Every sender's messages have a length of their own. */
static size_t length_of(const struct player *p, int from, int to) {
    static const size_t bases[] = {0, 8, 40, 41, 64, 200, 4032, 4096, 4097, 9000, 30000};
    size_t base = bases[(p->number + (uint64_t)from) % (sizeof bases / sizeof *bases)];

    return base + (size_t)(from * 3 + to) % 7;
}

static void load(struct player *p, int to, int from) {
    uint64_t dice = harness_random(&p->own);

    harness_step("message", p->number);
    harness_dither(dice >> 8);
    if (to >= 0)
        chan_load(&p->out, length_of(p, p->me, to), dice % 16, chan_tag(p->me, to, 2, p->number));
    if (from >= 0)
        chan_place(&p->in, length_of(p, from, p->me), dice / 16 % 16);
}

static void check(struct player *p, int from, size_t got) {
    CHECK_EQ(got, p->in.bytes);
    CHECK_LOAD(&p->in, chan_tag(from, p->me, 2, p->number));
}

/* A negative peer is a half that is not there; sometimes it is NULL instead. */
static void by_sendrecv(struct player *p, int to, int from) {
    hem_message send;
    hem_message recv;
    bool null = p->number % 2;

    load(p, to, from);
    send = (hem_message){to, p->out.at, p->out.bytes};
    recv = (hem_message){from, p->in.at, p->in.bytes};
    CHECK_OK(hem_sendrecv(p->world, 2, to < 0 && null ? NULL : &send,
                          from < 0 && null ? NULL : &recv, LIMIT));
    if (from >= 0)
        check(p, from, recv.bytes);
}

static void by_operations(struct player *p, int to, int from) {
    hem_op *ops[2] = {NULL, NULL};
    size_t first = harness_below(&p->own, 2);
    bool done = false;

    load(p, to, from);
    for (size_t i = 0; i < 2; i++) {
        if ((i ^ first) == 0 && to >= 0)
            CHECK_OK(hem_send_start(p->world, to, 2, p->out.at, p->out.bytes, &ops[0]));
        if ((i ^ first) == 1 && from >= 0)
            CHECK_OK(hem_recv_start(p->world, from, 2, p->in.at, p->in.bytes, &ops[1]));
    }
    first = harness_below(&p->own, 2);
    for (size_t i = 0; i < 2; i++)
        if (ops[i ^ first] && p->number % 3)
            CHECK_OK(hem_op_wait(ops[i ^ first], LIMIT));
    CHECK_OK(hem_op_wait_all(ops, 2, LIMIT));
    if (from >= 0) {
        CHECK_OK(hem_op_test(ops[1], &done));
        CHECK(done);
        check(p, from, hem_op_bytes(ops[1]));
    }
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

static void move(struct player *p, int to, int from) {
    if (harness_below(&p->own, 2))
        by_sendrecv(p, to, from);
    else
        by_operations(p, to, from);
    p->number++;
}

static void rings(struct player *p, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int step = 0; step < p->size; step++)
            move(p, (p->me + step) % p->size, (p->me + p->size - step) % p->size);
}

/* From 0 to the last rank: the ends have one half only. */
static void chains(struct player *p, int rounds) {
    for (int round = 0; round < rounds; round++)
        move(p, p->me + 1 < p->size ? p->me + 1 : -1, p->me - 1);
}

/* A permutation has cycles of all lengths, ranks that send to themselves among them. */
static void permutations(struct player *p, int rounds) {
    int to[MAX_RANKS];
    int from[MAX_RANKS] = {0};

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < p->size; i++) {
            size_t j = harness_below(&p->common, (size_t)i + 1);

            to[i] = i;
            to[i] = to[j];
            to[j] = i;
        }
        for (int i = 0; i < p->size; i++)
            from[to[i]] = i;
        move(p, to[p->me], from[p->me]);
    }
}

struct crowd {
    hem_op *ops[2 * MAX_RANKS];
    chan_buffer buffers[2 * MAX_RANKS];
};

static void crowd_start(struct player *p, struct crowd *c, int peer, bool sends) {
    int i = sends ? peer : MAX_RANKS + peer;
    chan_buffer *b = &c->buffers[i];

    if (sends) {
        chan_load(b, length_of(p, p->me, peer), (size_t)peer, chan_tag(p->me, peer, 4, p->number));
        CHECK_OK(hem_send_start(p->world, peer, 4, b->at, b->bytes, &c->ops[i]));
    } else {
        chan_place(b, length_of(p, peer, p->me), 15 - (size_t)peer);
        CHECK_OK(hem_recv_start(p->world, peer, 4, b->at, b->bytes, &c->ops[i]));
    }
}

static void crowd_end(struct player *p, struct crowd *c) {
    size_t which;

    for (int left = 2 * p->size; left > 0; left--) {
        CHECK_OK(hem_op_wait_any(c->ops, 2 * MAX_RANKS, &which, LIMIT));
        CHECK(which < 2 * MAX_RANKS && c->ops[which]);
        if (which >= MAX_RANKS)
            CHECK_LOAD(&c->buffers[which], chan_tag((int)which - MAX_RANKS, p->me, 4, p->number));
        FREE_OP(c->ops[which]);
        c->ops[which] = NULL;
    }
}

/* Everybody to everybody, itself included, at the same time and in an order of its own. */
static void crowd(struct player *p, int rounds) {
    struct crowd c = {.ops = {NULL}};

    for (int i = 0; i < 2 * MAX_RANKS; i++)
        c.buffers[i] = chan_make(MOST);
    for (int round = 0; round < rounds; round++, p->number++) {
        int turn = (int)harness_below(&p->own, (size_t)p->size);
        bool sends_first = harness_below(&p->own, 2);

        for (int i = 0; i < 2 * p->size; i++)
            crowd_start(p, &c, (turn + i) % p->size, (i < p->size) == sends_first);
        crowd_end(p, &c);
    }
    for (int i = 0; i < 2 * MAX_RANKS; i++)
        chan_free(&c.buffers[i]);
}

static int body(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rounds = harness_rounds(240 / hem_world_size(world));
    struct player p = {
        .world = world,
        .me = hem_world_rank(world),
        .size = hem_world_size(world),
        .own = harness_rng_of(seed, 1, (uint64_t)hem_world_rank(world)),
        .common = harness_rng_of(seed, 2, 0),
        .out = chan_make(MOST),
        .in = chan_make(MOST),
    };

    rings(&p, rounds / 4 + 1);
    chains(&p, rounds);
    permutations(&p, rounds);
    crowd(&p, rounds / 4 + 1);
    chan_free(&p.out);
    chan_free(&p.in);
    harness_close(world, HEM_OK);
    return 0;
}

int main(int argc, char **argv) {
    chan_geometry("1", "4096");
    return chan_main(argc, argv, body);
}
