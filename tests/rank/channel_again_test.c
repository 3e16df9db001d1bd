/*
 * Persistent sends and receives: planned once, run ten thousand times with new contents each time,
 * one at a time and several at once, in any order of waiting, and a run allocates nothing.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <sched.h>

/* The allocator of this program counts what each thread asks for, unless a sanitizer has its own. */
#define COUNTS (!HARNESS_SANITIZED)

static _Thread_local uint64_t allocations;

#if COUNTS
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    allocations++;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    allocations++;
    return __libc_memalign(alignment, bytes);
}
#endif

enum {
    EACH = 4
};

struct half {
    hem_op *op;
    chan_buffer buffer;
};

struct pair {
    hem_world *world;
    int me;
    int peer;
    uint32_t channel;
    harness_rng rng;
    struct half out[EACH];
    struct half in[EACH];
};

static void plan(struct pair *p, size_t bytes) {
    for (size_t i = 0; i < EACH; i++) {
        struct half *out = &p->out[i];
        struct half *in = &p->in[i];

        out->buffer = chan_make(bytes);
        in->buffer = chan_make(bytes);
        chan_place(&out->buffer, bytes, i * 5);
        chan_place(&in->buffer, bytes, 15 - i);
        CHECK_OK(hem_send_plan(p->world, p->peer, p->channel, out->buffer.at, bytes, &out->op));
        CHECK_OK(hem_recv_plan(p->world, p->peer, p->channel, in->buffer.at, bytes + i, &in->op));
    }
}

static void start(struct pair *p, uint64_t number) {
    struct half *out = &p->out[number % EACH];
    struct half *in = &p->in[number % EACH];

    chan_load(&out->buffer, out->buffer.bytes, number % EACH * 5,
              chan_tag(p->me, p->peer, p->channel, number));
    CHECK_OK(hem_op_start(in->op));
    CHECK_OK(hem_op_start(out->op));
}

static void finish(struct pair *p, uint64_t number) {
    struct half *out = &p->out[number % EACH];
    struct half *in = &p->in[number % EACH];
    bool done = false;

    if (number % 3 == 0)
        CHECK_OK(hem_op_wait(out->op, LIMIT));
    if (number % 5 == 0) {
        while (!done) {
            CHECK_OK(hem_op_test(in->op, &done));
            sched_yield();
        }
    } else {
        CHECK_OK(hem_op_wait(in->op, LIMIT));
    }
    CHECK_OK(hem_op_wait(out->op, LIMIT));
    CHECK_EQ(hem_op_bytes(in->op), in->buffer.bytes);
    CHECK_LOAD(&in->buffer, chan_tag(p->peer, p->me, p->channel, number));
}

/* Up to EACH runs are under way at a time; `number` goes on from run to run. */
static void run(struct pair *p, uint64_t first, uint64_t count) {
    uint64_t begun = 0;
    uint64_t ended = 0;

    while (ended < count) {
        uint64_t depth = 1 + harness_below(&p->rng, EACH);

        harness_step("run", first + ended);
        while (begun < count && begun - ended < depth)
            start(p, first + begun++);
        finish(p, first + ended++);
    }
}

/* Starting what is under way is refused; so is starting what is not persistent. */
static void refused(struct pair *p) {
    uint64_t words[2] = {1, 2};
    hem_op *ops[2] = {NULL, NULL};

    CHECK_OK(hem_recv_plan(p->world, p->me, p->channel, &words[1], 8, &ops[0]));
    CHECK_OK(hem_op_start(ops[0]));
    CHECK_STATUS(hem_op_start(ops[0]), HEM_ERR_ARG);
    CHECK_OK(hem_send_start(p->world, p->me, p->channel, &words[0], 8, &ops[1]));
    CHECK_STATUS(hem_op_start(ops[1]), HEM_ERR_ARG);
    CHECK_OK(hem_op_wait_all(ops, 2, LIMIT));
    CHECK_STATUS(hem_op_start(ops[1]), HEM_ERR_ARG);
    CHECK_EQ(words[1], 1);
    CHECK_OK(hem_op_start(ops[0]));
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

static void lengths(struct pair *p, size_t bytes, int runs) {
    uint64_t before;

    p->channel = (p->channel + 1) % HEM_CHANNELS;
    plan(p, bytes);
    run(p, 0, 50);
    before = allocations;
    run(p, 50, (uint64_t)harness_rounds(runs));
    CHECK_EQ(allocations, before);
    refused(p);
    for (size_t i = 0; i < EACH; i++) {
        FREE_OP(p->in[i].op);
        FREE_OP(p->out[i].op);
        chan_free(&p->in[i].buffer);
        chan_free(&p->out[i].buffer);
    }
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    struct pair p = {
        .world = world,
        .me = hem_world_rank(world),
        .peer = chan_partner(world),
        .rng = harness_rng_of(seed, 3, (uint64_t)hem_world_rank(world)),
    };

    lengths(&p, 8, 10000);
    lengths(&p, 0, 500);
    lengths(&p, 40, 1000);
    lengths(&p, 41, 10000);
    lengths(&p, 5000, 2000);
    lengths(&p, 150000, 200);
    lengths(&p, 2000000, 20);
    harness_close(world, HEM_OK);
    return 0;
}
