/*
 * The event descriptor of a world: poll() finds it readable once an operation got done, reading it
 * gives the number of those, and nothing is missed, with a progress thread and without one. The
 * progress thread ends well whatever is under way: close, revoke, operations that are freed while
 * their callback runs, several worlds at once.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    EACH = 6
};

struct rank {
    hem_world *world;
    int me;
    int right;
    int left;
};

static struct rank rank_of(hem_world *world) {
    return (struct rank){world, hem_world_rank(world), harness_right(world), harness_left(world)};
}

static hem_world *copy_of(hem_world *world) {
    hem_world *copy = NULL;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    return copy;
}

static bool readable(int fd, int ms) {
    struct pollfd want = {.fd = fd, .events = POLLIN};

    CHECK(poll(&want, 1, ms) >= 0);
    return want.revents & POLLIN;
}

static void descriptor_itself(struct rank *r) {
    uint64_t word[2] = {3, 0};
    uint64_t count = 99;
    hem_op *op = NULL;
    int fd = -1;
    int again = -1;

    CHECK_OK(hem_world_event_fd(r->world, &fd));
    CHECK_OK(hem_world_event_fd(r->world, &again));
    CHECK(fd >= 0 && fd == again);
    CHECK(!readable(fd, 0));
    CHECK_OK(hem_world_event_read(r->world, &count));
    CHECK_EQ(count, 0);
    CHECK_OK(hem_recv_start(r->world, r->me, 0, &word[1], 8, &op));
    CHECK(!readable(fd, 0));
    CHECK_OK(hem_send(r->world, r->me, 0, &word[0], 8, LIMIT));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK(readable(fd, 0));
    CHECK(readable(fd, 0));
    CHECK_OK(hem_world_event_read(r->world, &count));
    CHECK_EQ(count, 1);
    CHECK(!readable(fd, 0));
    CHECK_OK(hem_world_event_read(r->world, &count));
    CHECK_EQ(count, 0);
    FREE_OP(op);
}

/* An event loop: rounds of messages both ways, of which only the descriptor tells. */
struct loop {
    struct rank *r;
    int fd;
    bool thread;
    uint64_t round;
    hem_op *ops[2 * EACH];
    chan_buffer buffers[2 * EACH];
    harness_rng rng; /* the same everywhere */
};

static void loop_start(struct loop *l) {
    struct rank *r = l->r;

    for (size_t i = 0; i < EACH; i++) {
        size_t bytes = chan_random_bytes(&l->rng, 200000);
        uint64_t number = l->round * EACH + i;
        chan_buffer *in = &l->buffers[i];
        chan_buffer *out = &l->buffers[EACH + i];

        chan_place(in, bytes, i);
        chan_load(out, bytes, i, chan_tag(r->me, r->right, 1, number));
        CHECK_OK(hem_recv_start(r->world, r->left, 1, in->at, bytes, &l->ops[i]));
        CHECK_OK(hem_send_start(r->world, r->right, 1, out->at, bytes, &l->ops[EACH + i]));
    }
}

static uint64_t loop_look(struct loop *l) {
    uint64_t found = 0;
    bool done;

    for (size_t i = 0; i < 2 * EACH; i++) {
        if (!l->ops[i])
            continue;
        CHECK_OK(hem_op_test(l->ops[i], &done));
        if (!done)
            continue;
        if (i < EACH)
            CHECK_LOAD(&l->buffers[i], chan_tag(l->r->left, l->r->me, 1, l->round * EACH + i));
        FREE_OP(l->ops[i]);
        l->ops[i] = NULL;
        found++;
    }
    return found;
}

/* Without a thread, a timer makes progress; with one, it alone does until the descriptor says so. */
static void loop_round(struct loop *l) {
    uint64_t events = 0;
    uint64_t found = 0;
    int64_t limit = harness_now() + LIMIT;

    loop_start(l);
    while (found < 2 * EACH) {
        uint64_t count = 0;

        CHECK(harness_now() < limit);
        if (!l->thread)
            CHECK_OK(hem_progress(l->r->world));
        if (!readable(l->fd, l->thread ? 5000 : 0)) {
            CHECK(!l->thread);
            sched_yield();
            continue;
        }
        CHECK_OK(hem_world_event_read(l->r->world, &count));
        events += count;
        found += loop_look(l);
    }
    for (uint64_t count = 0; events < 2 * EACH; events += count) {
        CHECK_OK(hem_world_event_read(l->r->world, &count));
        CHECK(count != 0);
    }
    CHECK_EQ(events, 2 * EACH);
    CHECK(!readable(l->fd, 0));
    l->round++;
}

static void loops(struct rank *r, bool thread, uint64_t seed, int rounds) {
    struct loop l = {.r = r, .thread = thread, .rng = harness_rng_of(seed, 3, thread)};
    uint64_t earlier = 0;

    CHECK_OK(hem_world_event_fd(r->world, &l.fd));
    CHECK_OK(hem_world_event_read(r->world, &earlier));
    for (size_t i = 0; i < 2 * EACH; i++)
        l.buffers[i] = chan_make(200000);
    for (int i = 0; i < rounds; i++) {
        harness_step(thread ? "threaded loop" : "loop", (uint64_t)i);
        loop_round(&l);
    }
    harness_step("after loops", thread);
    for (size_t i = 0; i < 2 * EACH; i++)
        chan_free(&l.buffers[i]);
}

/* Callbacks that take their time. */

struct visit {
    atomic_int begun;
    atomic_int ended;
    atomic_int status;
};

static void linger(hem_op *op, hem_status status, void *arg) {
    struct visit *v = arg;

    (void)op;
    atomic_store(&v->status, (int)status);
    atomic_fetch_add(&v->begun, 1);
    harness_sleep_ms(3);
    atomic_fetch_add(&v->ended, 1);
}

static void await(atomic_int *count, int want) {
    int64_t limit = harness_now() + LIMIT;

    while (atomic_load(count) < want) {
        CHECK(harness_now() < limit);
        sched_yield();
    }
}

/* Freed by this thread while the other one is in its callback. */
static void freed_in_callback(struct rank *r, int rounds) {
    uint64_t word[2] = {0, 0};

    for (int i = 0; i < rounds; i++) {
        struct visit v = {.begun = 0};
        hem_op *op = NULL;

        CHECK_OK(hem_recv_start(r->world, r->left, 2, &word[1], 8, &op));
        CHECK_OK(hem_op_on_done(op, linger, &v));
        CHECK_OK(hem_send(r->world, r->right, 2, &word[0], 8, LIMIT));
        await(&v.begun, 1);
        FREE_OP(op);
        await(&v.ended, 1);
        CHECK_EQ(atomic_load(&v.status), HEM_OK);
    }
}

/* Closing while the thread runs, operations are under way, and a callback may be running. */
static void closed_in_flight(hem_world *world, int rounds) {
    static _Thread_local uint8_t data[3][200000];

    for (int i = 0; i < rounds; i++) {
        struct rank r = rank_of(copy_of(world));
        struct visit v = {.begun = 0};
        hem_op *ops[3] = {NULL};

        harness_step("closing", (uint64_t)i);
        CHECK_OK(hem_progress_start(r.world));
        CHECK_OK(hem_recv_start(r.world, r.left, 0, data[0], sizeof data[0], &ops[0]));
        CHECK_OK(hem_op_on_done(ops[0], linger, &v));
        if (i % 2)
            CHECK_OK(hem_send_start(r.world, r.right, 0, data[1], sizeof data[1], &ops[1]));
        CHECK_OK(hem_recv_start(r.world, r.left, 1, data[2], 8, &ops[2]));
        if (i % 3 == 0)
            CHECK_OK(hem_progress_pause(r.world));
        CHECK_OK(hem_world_close(r.world));
        CHECK_EQ(atomic_load(&v.begun), atomic_load(&v.ended));
        for (int k = 0; k < 3; k++)
            FREE_OP(ops[k]);
    }
}

/* A revoke reaches what only the progress thread looks at. */
static void revoked(hem_world *world) {
    struct rank r = rank_of(copy_of(world));
    hem_window *window = harness_window(world, 64);
    struct visit v = {.begun = 0};
    uint64_t word = 0;
    hem_op *op = NULL;

    CHECK_OK(hem_progress_start(r.world));
    CHECK_OK(hem_recv_start(r.world, r.left, 0, &word, 8, &op));
    CHECK_OK(hem_op_on_done(op, linger, &v));
    harness_barrier(window);
    if (r.me == 0)
        CHECK_OK(hem_world_revoke(r.world));
    await(&v.ended, 1);
    CHECK_EQ(atomic_load(&v.status), HEM_ERR_REVOKED);
    FREE_OP(op);
    CHECK_OK(hem_world_close(r.world));
    harness_destroy(window);
}

/* Each world has its own thread; all are busy at the same time. */
static void several_worlds(hem_world *world, uint64_t seed) {
    struct rank all[3];

    for (int i = 0; i < 3; i++) {
        all[i] = rank_of(copy_of(world));
        CHECK_OK(hem_progress_start(all[i].world));
    }
    for (int i = 0; i < 3; i++) {
        loops(&all[i], true, seed + (uint64_t)i, harness_rounds(10));
        chan_works(all[2 - i].world, chan_partner(world), 3, 0);
    }
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            CHECK_OK(hem_progress_stop(all[i].world));
        CHECK_OK(hem_world_close(all[i].world));
    }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    struct rank r = rank_of(world);

    descriptor_itself(&r);
    loops(&r, false, seed, harness_rounds(60));
    CHECK_OK(hem_progress_start(world));
    loops(&r, true, seed, harness_rounds(60));
    freed_in_callback(&r, harness_rounds(20));
    closed_in_flight(world, harness_rounds(20));
    revoked(world);
    several_worlds(world, seed);
    CHECK_OK(hem_progress_stop(world));
    loops(&r, false, seed + 9, harness_rounds(10));
    harness_close(world, HEM_OK);
    return 0;
}
