/*
 * Many collectives in flight on one world, of different kinds, started in one order and waited for
 * in another that differs between ranks, among messages of channels and collectives of sub-worlds:
 * none disturbs the other. Persistent ones run for ever without allocating anything.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "coll_buffers.h"

#include <sched.h>

enum {
    FLYING = 8,
    CROWD = 40,
    MESSAGES = 4,
    PLANS = 14
};

/* Volatile, since compilers think that they know what malloc touches. */
static _Thread_local volatile bool counting;
static _Thread_local volatile uint64_t allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 1
/* glibc's own names of what is wrapped here; free is left as it is. */
void *__libc_malloc(size_t bytes);             /* NOLINT(*-reserved-identifier) */
void *__libc_calloc(size_t n, size_t bytes);   /* NOLINT(*-reserved-identifier) */
void *__libc_realloc(void *old, size_t bytes); /* NOLINT(*-reserved-identifier) */
void *__libc_memalign(size_t, size_t bytes);   /* NOLINT(*-reserved-identifier) */

void *malloc(size_t bytes) {
    allocations += counting;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    allocations += counting;
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes) {
    allocations += counting;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) {
    allocations += counting;
    return __libc_memalign(align, bytes);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

struct rank {
    hem_world *world;
    hem_world *half;
    uint64_t seed;
    int me;
    int size;
};

/* The order in which this rank waits. */
static void shuffle(size_t *order, size_t n, harness_rng *rng) {
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = harness_below(rng, i);
        size_t kept = order[i - 1];

        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static hem_reduction some_op(const hem_dtype *dtype, harness_rng *rng) {
    hem_reduction op;

    do
        op = (hem_reduction)(1 + harness_below(rng, HEM_USER));
    while (!coll_supported(*dtype, op));
    return op;
}

/* Drawn alike on all ranks of the world. */
static coll_case some_case(const hem_world *world, harness_rng *rng, int kind, size_t most) {
    coll_case c = {.kind = (hem_coll_kind)kind, .size = hem_world_size(world)};

    c.dtype = (hem_dtype)harness_below(rng, 17);
    if (coll_combines(c.kind))
        c.op = some_op(&c.dtype, rng);
    c.root = coll_has_root(c.kind) ? (int)harness_below(rng, (size_t)c.size) : 0;
    c.count = harness_below(rng, harness_below(rng, 3) ? 20 : most);
    c.in_place = harness_below(rng, 2) || c.kind == HEM_BROADCAST;
    c.gaps = harness_below(rng, 2);
    c.seed = harness_random(rng) / 16 * 16;
    return c;
}

/* Messages: to the right, from the left, on several channels at once. */

struct message {
    unsigned char *out;
    unsigned char *in;
    size_t bytes;
};

static void start_message(struct rank *r, struct message *m, uint32_t channel, harness_rng *rng,
                          hem_op **ops) {
    m->bytes = harness_below(rng, harness_below(rng, 2) ? 60 : 60000);
    m->out = malloc(m->bytes + 1);
    m->in = malloc(m->bytes + 1);
    CHECK(m->out && m->in);
    harness_fill(m->out, m->bytes, (uint64_t)r->me * 16 + channel);
    CHECK_OK(hem_send_start(r->world, harness_right(r->world), channel, m->out, m->bytes, &ops[0]));
    CHECK_OK(hem_recv_start(r->world, harness_left(r->world), channel, m->in, m->bytes, &ops[1]));
}

static void end_message(struct rank *r, struct message *m, uint32_t channel) {
    CHECK_FILLED(m->in, m->bytes, (uint64_t)harness_left(r->world) * 16 + channel);
    free(m->out);
    free(m->in);
}

static void start_case(hem_world *world, coll_buffers *b, const coll_case *c, hem_op **op_p) {
    b[0] = coll_buffers_make(world, c, (int)(c->seed >> 8) & 3, COLL_ANY);
    coll_buffers_fill(b);
    CHECK_OK(hem_coll_start(world, &b->coll, op_p));
}

static void end_op(hem_op *op, uint64_t dice) {
    bool done = false;

    if (dice % 2)
        CHECK_OK(hem_op_test(op, &done));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_OK(hem_op_free(op));
}

/* A wait moves only its own world on, and these are of two: look at all of them in turn. */
static void end_by_testing(hem_op **ops, size_t count, harness_rng *rng) {
    int64_t limit = harness_now() + LIMIT;
    size_t left = count;

    for (size_t i = harness_below(rng, count); left > 0; i = (i + 5) % count) {
        bool done = false;

        CHECK(harness_now() < limit);
        if (ops[i])
            CHECK_OK(hem_op_test(ops[i], &done));
        if (!done) {
            sched_yield();
            continue;
        }
        CHECK_OK(hem_op_free(ops[i]));
        ops[i] = NULL;
        left--;
    }
}

/* Eight on the world and eight on this rank's half of it, and messages between them. */
static void fly(struct rank *r, uint64_t round) {
    harness_rng shared = harness_rng_of(r->seed, round, 1);
    harness_rng halved = harness_rng_of(r->seed, round, 2 + (uint64_t)r->me % 2);
    harness_rng own = harness_rng_of(r->seed, round, 100 + (uint64_t)r->me);
    coll_buffers *b = calloc(2 * FLYING, sizeof *b);
    hem_op *ops[2 * FLYING + 2 * MESSAGES];
    struct message messages[MESSAGES];
    size_t count = 2 * FLYING + 2 * MESSAGES;

    CHECK(b != NULL);
    for (int i = 0; i < FLYING; i++) {
        coll_case c = some_case(r->world, &shared, 1 + (int)((round + (uint64_t)i) % 14), 20000);
        coll_case d = some_case(r->half, &halved, 1 + (int)harness_below(&halved, 14), 3000);

        start_case(r->world, &b[i], &c, &ops[i]);
        start_case(r->half, &b[FLYING + i], &d, &ops[FLYING + i]);
        if (i % 2 == 0)
            start_message(r, &messages[i / 2], (uint32_t)i / 2, &shared, &ops[2 * FLYING + i]);
    }
    end_by_testing(ops, count, &own);
    for (int i = 0; i < 2 * FLYING; i++) {
        coll_buffers_check(&b[i]);
        coll_buffers_free(&b[i]);
    }
    for (uint32_t i = 0; i < MESSAGES; i++)
        end_message(r, &messages[i], i);
    free(b);
}

/* More than any board has lines, all started before anything is waited for. */
static void crowd(struct rank *r, uint64_t round) {
    harness_rng shared = harness_rng_of(r->seed, round, 7);
    harness_rng own = harness_rng_of(r->seed, round, 200 + (uint64_t)r->me);
    coll_buffers *b = calloc(CROWD, sizeof *b);
    hem_op *ops[CROWD];
    size_t order[CROWD];

    CHECK(b != NULL);
    for (int i = 0; i < CROWD; i++) {
        coll_case c = some_case(r->world, &shared, 1 + (int)harness_below(&shared, 14), 300);

        start_case(r->world, &b[i], &c, &ops[i]);
    }
    if (round % 2) {
        CHECK_OK(hem_op_wait_all(ops, CROWD, LIMIT));
        for (int i = 0; i < CROWD; i++)
            CHECK_OK(hem_op_free(ops[i]));
    } else {
        shuffle(order, CROWD, &own);
        for (int i = 0; i < CROWD; i++)
            end_op(ops[order[i]], harness_random(&own));
    }
    for (int i = 0; i < CROWD; i++) {
        coll_buffers_check(&b[i]);
        coll_buffers_free(&b[i]);
    }
    free(b);
}

/* Each kind once, planned; all started together, again and again. */
static void persist(struct rank *r) {
    harness_rng shared = harness_rng_of(r->seed, 1, 8);
    coll_buffers *b = calloc(PLANS, sizeof *b);
    hem_op *ops[PLANS];
    int rounds = harness_rounds(r->size > 2 * harness_cores() ? 250 : 1000);

    CHECK(b != NULL);
    for (int i = 0; i < PLANS; i++) {
        coll_case c = some_case(r->world, &shared, 1 + i, 400);

        /* In place some results are what is sent next; the check at the end wants fresh ones. */
        c.in_place = c.kind == HEM_BROADCAST;
        b[i] = coll_buffers_make(r->world, &c, i % COLL_MEMORIES, i % COLL_ALIGNS);
        coll_buffers_fill(&b[i]);
        CHECK_OK(hem_coll_plan(r->world, &b[i].coll, &ops[i]));
    }
    for (int round = 0; round < rounds + 3; round++) {
        harness_step("persistent, round", (uint64_t)round);
        counting = round >= 3;
        for (int i = 0; i < PLANS; i++)
            CHECK_OK(hem_op_start(ops[i]));
        for (int i = 0; i < PLANS && round % 2; i++)
            CHECK_OK(hem_op_wait(ops[(i * 5 + r->me) % PLANS], LIMIT));
        CHECK_OK(hem_op_wait_all(ops, PLANS, LIMIT));
        counting = false;
    }
    if (COUNTS_ALLOCATIONS)
        CHECK_EQ(allocations, 0);
    for (int i = 0; i < PLANS; i++) {
        coll_buffers_check(&b[i]);
        CHECK_OK(hem_op_free(ops[i]));
        coll_buffers_free(&b[i]);
    }
    free(b);
}

/* The counter itself works, or the check above would say nothing. */
static void counter_counts(void) {
    void *volatile piece;

    counting = true;
    piece = malloc(10);
    counting = false;
    free(piece);
    CHECK(!COUNTS_ALLOCATIONS || allocations == 1);
    allocations = 0;
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    int rounds = harness_rounds(120 / r.size);

    counter_counts();
    r.seed = harness_seed(world);
    CHECK_OK(hem_world_split(world, r.me % 2, -r.me, &r.half));
    for (int round = 0; round < rounds; round++) {
        harness_step("in flight, round", (uint64_t)round);
        fly(&r, (uint64_t)round);
    }
    for (int round = 0; round < rounds / 2; round++) {
        harness_step("crowd, round", (uint64_t)round);
        crowd(&r, (uint64_t)round);
    }
    persist(&r);
    CHECK_OK(hem_world_close(r.half));
    harness_close(world, HEM_OK);
    return 0;
}
