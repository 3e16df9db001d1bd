/*
 * Several threads of one rank send and receive on the same channel with the same peer. Every
 * message is received whole by exactly one of them, no thread sees those of one sender out of
 * order, and receives that give up while they wait lose no short message. Several threads may wait
 * for the same operation. A receive that blocks has its turn among those that are started.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <stdatomic.h>

enum {
    THREADS = 3,
    MAX_EACH = 12000
};

struct head {
    uint32_t thread;
    uint32_t number;
};

/* What all threads of a rank share. */
struct crowd {
    hem_world *world;
    int to;
    int from;
    uint64_t seed;
    size_t most;
    bool hasty; /* receives have short limits */
    uint32_t each;
    atomic_uint taken; /* receives that are done or promised */
    atomic_uchar *seen;
};

struct player {
    struct crowd *crowd;
    uint32_t thread;
    harness_rng rng;
};

static size_t length_of(const struct crowd *c, const struct head *h) {
    harness_rng rng = harness_rng_of(c->seed, h->thread, h->number);
    size_t bytes = chan_random_bytes(&rng, c->most);

    return bytes < sizeof *h ? sizeof *h : bytes;
}

static uint64_t tag_of(const struct head *h) {
    return (uint64_t)h->thread << 32 | h->number;
}

static void send_some(void *arg) {
    struct player *p = arg;
    struct crowd *c = p->crowd;
    chan_buffer b = chan_make(c->most);
    hem_op *op = NULL;

    for (uint32_t i = 0; i < c->each; i++) {
        struct head h = {p->thread, i};

        harness_step("sent by a thread", i);
        chan_load(&b, length_of(c, &h), i % 16, tag_of(&h));
        memcpy(b.at, &h, sizeof h);
        if (i % 3) {
            CHECK_OK(hem_send(c->world, c->to, 0, b.at, b.bytes, LIMIT));
        } else {
            CHECK_OK(hem_send_start(c->world, c->to, 0, b.at, b.bytes, &op));
            CHECK_OK(hem_op_wait(op, LIMIT));
            FREE_OP(op);
        }
    }
    chan_free(&b);
}

static hem_status take(struct player *p, chan_buffer *b, size_t *got) {
    struct crowd *c = p->crowd;
    size_t dice = harness_below(&p->rng, 4);
    int64_t limit = c->hasty ? HEM_US(harness_below(&p->rng, 60)) : LIMIT;
    hem_op *op = NULL;
    hem_status status;

    if (dice != 0)
        return hem_recv(c->world, c->from, 0, b->at, c->most, got, limit);
    CHECK_OK(hem_recv_start(c->world, c->from, 0, b->at, c->most, &op));
    status = hem_op_wait(op, LIMIT);
    *got = hem_op_bytes(op);
    FREE_OP(op);
    return status;
}

static void check_message(struct crowd *c, chan_buffer *b, size_t got, int64_t *last) {
    struct head h;

    memcpy(&h, b->at, sizeof h);
    CHECK(h.thread < THREADS && h.number < c->each);
    harness_step("received by a thread", h.number);
    CHECK_EQ(got, length_of(c, &h));
    CHECK((int64_t)h.number > last[h.thread]);
    last[h.thread] = h.number;
    CHECK_EQ(atomic_fetch_add(&c->seen[h.thread * MAX_EACH + h.number], 1), 0);
    chan_fill(b->at, sizeof h, tag_of(&h));
    CHECK_BYTES(b->at, got, tag_of(&h));
    CHECK_GUARDS(b);
}

/* Each receive is promised before it begins, so that none waits for a message that never comes. */
static void recv_some(void *arg) {
    struct player *p = arg;
    struct crowd *c = p->crowd;
    chan_buffer b = chan_make(c->most);
    int64_t last[THREADS] = {-1, -1, -1};
    size_t got = 0;

    while (atomic_fetch_add(&c->taken, 1) < THREADS * c->each) {
        hem_status status;

        chan_place(&b, c->most, harness_below(&p->rng, 16));
        do
            status = take(p, &b, &got);
        while (c->hasty && status == HEM_ERR_TIMEOUT);
        CHECK_OK(status);
        check_message(c, &b, got, last);
    }
    chan_free(&b);
}

static void crowded(hem_world *world, uint64_t seed, size_t most, bool hasty, int each) {
    struct crowd c = {
        .world = world,
        .to = harness_right(world),
        .from = harness_left(world),
        .seed = seed,
        .most = most,
        .hasty = hasty,
        .each = (uint32_t)each,
        .seen = calloc(THREADS, MAX_EACH),
    };
    struct player players[2 * THREADS];
    harness_thread threads[2 * THREADS];

    CHECK(c.seen != NULL && each <= MAX_EACH);
    for (uint32_t i = 0; i < 2 * THREADS; i++) {
        players[i] = (struct player){.crowd = &c, .thread = i / 2};
        players[i].rng = harness_rng_of(seed, i, (uint64_t)hem_world_rank(world));
        harness_start(&threads[i], i % 2 ? recv_some : send_some, &players[i]);
    }
    harness_join(threads, 2 * THREADS);
    for (uint32_t t = 0; t < THREADS; t++)
        for (uint32_t i = 0; i < c.each; i++)
            CHECK_EQ(c.seen[t * MAX_EACH + i], 1);
    free(c.seen);
}

/* All wait for one operation. */

struct vigil {
    hem_op *op;
    atomic_int done;
};

static void keep_vigil(void *arg) {
    struct vigil *v = arg;
    size_t which = 9;

    if (atomic_fetch_add(&v->done, 1) % 2)
        CHECK_OK(hem_op_wait(v->op, LIMIT));
    else
        CHECK_OK(hem_op_wait_any(&v->op, 1, &which, LIMIT));
    CHECK_EQ(hem_op_bytes(v->op), 8);
}

static void vigils(hem_world *world, int rounds) {
    harness_thread threads[THREADS];
    uint64_t word = 0;

    for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
        struct vigil v = {.op = NULL};

        harness_step("vigil", i);
        CHECK_OK(hem_recv_start(world, harness_left(world), 1, &word, 8, &v.op));
        for (int k = 0; k < THREADS; k++)
            harness_start(&threads[k], keep_vigil, &v);
        CHECK_OK(hem_send(world, harness_right(world), 1, &i, 8, LIMIT));
        harness_join(threads, THREADS);
        CHECK_EQ(word, i);
        FREE_OP(v.op);
    }
}

/* A receive that blocks was there first, and one that is started afterwards comes after it. */

struct early {
    hem_world *world;
    chan_buffer buffer;
    atomic_bool there;
    size_t got;
};

static void come_first(void *arg) {
    struct early *e = arg;

    atomic_store(&e->there, true);
    CHECK_OK(hem_recv(e->world, harness_left(e->world), 2, e->buffer.at, e->buffer.bytes, &e->got,
                      LIMIT));
}

/* @return whether the thread that was to come first did. */
static bool turn(hem_world *world, hem_window *window, size_t bytes) {
    struct early e = {.world = world, .buffer = chan_make(bytes)};
    chan_buffer out = chan_make(bytes);
    chan_buffer late = chan_make(bytes);
    harness_thread thread;
    hem_op *ops[3] = {NULL};

    chan_place(&e.buffer, bytes, 1);
    chan_place(&late, bytes, 2);
    chan_load(&out, bytes, 3, 1);
    harness_start(&thread, come_first, &e);
    while (!atomic_load(&e.there))
        harness_sleep_ms(1);
    harness_sleep_ms(10);
    CHECK_OK(hem_recv_start(world, harness_left(world), 2, late.at, bytes, &ops[0]));
    harness_barrier(window);
    CHECK_OK(hem_send_start(world, harness_right(world), 2, out.at, bytes, &ops[1]));
    CHECK_OK(hem_send_start(world, harness_right(world), 2, out.at, bytes - 1, &ops[2]));
    CHECK_OK(hem_op_wait_all(ops, 3, LIMIT));
    harness_join(&thread, 1);
    CHECK_EQ(e.got + hem_op_bytes(ops[0]), 2 * bytes - 1);
    for (int i = 0; i < 3; i++)
        FREE_OP(ops[i]);
    chan_free(&e.buffer);
    chan_free(&late);
    chan_free(&out);
    return e.got == bytes;
}

/* On a busy machine the thread may be late now and then, but not always. */
static void turns(hem_world *world) {
    static const size_t lengths[] = {30, 3000, 100000};
    hem_window *window = harness_window(world, 64);

    for (size_t i = 0; i < 3; i++) {
        int first = 0;

        harness_step("turn", i);
        for (int k = 0; k < 5; k++)
            first += turn(world, window, lengths[i]);
        CHECK(first > 0);
    }
    harness_destroy(window);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int each = harness_rounds(900 / hem_world_size(world));

    crowded(world, seed, 40, false, each < MAX_EACH ? each : MAX_EACH);
    crowded(world, seed + 1, 40, true, each < MAX_EACH ? each : MAX_EACH);
    crowded(world, seed + 2, 6000, false, each < MAX_EACH ? each : MAX_EACH);
    crowded(world, seed + 3, 400000, false, each / 4 + 1);
    vigils(world, harness_rounds(60));
    turns(world);
    harness_close(world, HEM_OK);
    return 0;
}
