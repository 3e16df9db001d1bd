/*
 * Several threads of one rank send and receive on channels of their own at the same time, blocking
 * and started, to neighbours and to themselves; some only make progress, wait for operations that
 * another thread started, or free them.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <sched.h>
#include <stdatomic.h>

enum {
    THREADS = 3,
    MOST = 90000
};

struct player {
    hem_world *world;
    int me;
    uint32_t channel;
    int rounds;
    harness_rng rng;
    harness_rng common;
};

/* Each thread goes around the ring of ranks on its own channel. */
static void play(void *arg) {
    struct player *p = arg;
    int to = harness_right(p->world);
    int from = harness_left(p->world);
    chan_buffer out = chan_make(MOST);
    chan_buffer in = chan_make(MOST);

    for (uint64_t i = 0; i < (uint64_t)p->rounds; i++) {
        size_t bytes = chan_random_bytes(&p->common, MOST);
        hem_message send = {.peer = to, .bytes = bytes};
        hem_message recv = {.peer = from, .bytes = bytes};

        harness_step("thread's message", p->channel * 1000000 + i);
        chan_load(&out, bytes, i % 16, chan_tag(p->me, to, p->channel, i));
        chan_place(&in, bytes, 15 - i % 16);
        send.data = out.at;
        recv.data = in.at;
        CHECK_OK(hem_sendrecv(p->world, p->channel, &send, &recv, LIMIT));
        CHECK_EQ(recv.bytes, bytes);
        CHECK_LOAD(&in, chan_tag(from, p->me, p->channel, i));
        harness_dither(harness_random(&p->rng));
    }
    chan_free(&in);
    chan_free(&out);
}

static void all_play(hem_world *world, uint64_t seed, int rounds) {
    struct player players[THREADS];
    harness_thread threads[THREADS];
    int me = hem_world_rank(world);

    for (uint32_t i = 0; i < THREADS; i++) {
        players[i] = (struct player){
            .world = world,
            .me = me,
            .channel = i * 5,
            .rounds = rounds,
            .rng = harness_rng_of(seed, (uint64_t)me, i),
            .common = harness_rng_of(seed, 1000, i),
        };
        harness_start(&threads[i], play, &players[i]);
    }
    harness_join(threads, THREADS);
}

/* One thread sends, another receives, on the same channel and pair. */
struct stream {
    hem_world *world;
    int peer;
    int rounds;
    harness_rng common;
};

static void only_send(void *arg) {
    struct stream *s = arg;
    int me = hem_world_rank(s->world);
    chan_buffer b = chan_make(MOST);

    for (uint64_t i = 0; i < (uint64_t)s->rounds; i++) {
        size_t bytes = chan_random_bytes(&s->common, MOST);

        chan_load(&b, bytes, i % 16, chan_tag(me, s->peer, 2, i));
        CHECK_OK(hem_send(s->world, s->peer, 2, b.at, bytes, LIMIT));
    }
    chan_free(&b);
}

static void only_recv(void *arg) {
    struct stream *s = arg;
    int me = hem_world_rank(s->world);
    chan_buffer b = chan_make(MOST);
    size_t got;

    for (uint64_t i = 0; i < (uint64_t)s->rounds; i++) {
        size_t bytes = chan_random_bytes(&s->common, MOST);

        harness_step("received by a thread", i);
        got = 1;
        chan_place(&b, bytes, i % 16);
        CHECK_OK(hem_recv(s->world, s->peer, 2, b.at, bytes, &got, LIMIT));
        CHECK_EQ(got, bytes);
        CHECK_LOAD(&b, chan_tag(s->peer, me, 2, i));
    }
    chan_free(&b);
}

static void two_roles(hem_world *world, uint64_t seed, int rounds) {
    struct stream halves[2];
    harness_thread threads[2];

    for (int i = 0; i < 2; i++)
        halves[i] = (struct stream){
            .world = world,
            .peer = i ? harness_left(world) : harness_right(world),
            .rounds = rounds,
            .common = harness_rng_of(seed, 2000, 0),
        };
    harness_start(&threads[0], only_send, &halves[0]);
    harness_start(&threads[1], only_recv, &halves[1]);
    harness_join(threads, 2);
}

/* Operations go through a mailbox: one thread starts them, others wait for them. */
struct mailbox {
    hem_world *world;
    _Atomic(hem_op *) op;
    atomic_bool over;
};

static void make_progress(void *arg) {
    struct mailbox *m = arg;

    while (!atomic_load(&m->over)) {
        CHECK_OK(hem_progress(m->world));
        sched_yield();
    }
}

static void wait_for_mail(void *arg) {
    struct mailbox *m = arg;

    while (!atomic_load(&m->over)) {
        hem_op *op = atomic_load(&m->op);

        if (op) {
            CHECK_OK(hem_op_wait(op, LIMIT));
            FREE_OP(op);
            atomic_store(&m->op, NULL);
        } else {
            sched_yield();
        }
    }
}

static void hand_over(struct mailbox *m, hem_op *op) {
    atomic_store(&m->op, op);
    while (atomic_load(&m->op))
        sched_yield();
}

static void exchange_mail(struct mailbox *m, uint64_t count) {
    int me = hem_world_rank(m->world);
    int to = harness_right(m->world);
    int from = harness_left(m->world);
    chan_buffer out = chan_make(MOST);
    chan_buffer in = chan_make(MOST);
    hem_op *ops[2];

    for (uint64_t i = 0; i < count; i++) {
        size_t bytes = i * 7919 % MOST;

        harness_step("mail", i);
        chan_load(&out, bytes, i % 16, chan_tag(me, to, 3, i));
        chan_place(&in, bytes, i % 13);
        CHECK_OK(hem_recv_start(m->world, from, 3, in.at, bytes, &ops[0]));
        CHECK_OK(hem_send_start(m->world, to, 3, out.at, bytes, &ops[1]));
        hand_over(m, ops[i % 2]);
        hand_over(m, ops[1 - i % 2]);
        CHECK_LOAD(&in, chan_tag(from, me, 3, i));
    }
    chan_free(&in);
    chan_free(&out);
}

static void mail(hem_world *world, uint64_t count) {
    struct mailbox m = {.world = world};
    harness_thread threads[2];

    harness_start(&threads[0], make_progress, &m);
    harness_start(&threads[1], wait_for_mail, &m);
    exchange_mail(&m, count);
    atomic_store(&m.over, true);
    harness_join(threads, 2);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int rounds = harness_rounds(1500 / hem_world_size(world));

    all_play(world, seed, rounds);
    two_roles(world, seed, rounds);
    mail(world, (uint64_t)rounds / 2);
    harness_close(world, HEM_OK);
    return 0;
}
