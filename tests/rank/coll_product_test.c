/*
 * Every collective, with every type and operation, at counts from 0 to 100003, in place or not,
 * blocking, started and persistent, from private and library memory at any alignment, gives exactly
 * what a naive reference gives, on every rank, and touches nothing else.
 *
 * All pairs of these choices occur in a run. HEM_TEST_FULL=1 runs the whole product.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=180 labels=soak
 */
#include "coll_buffers.h"
#include "cover.h"

enum {
    KINDS = HEM_ALLTOALLV
};

enum {
    FORM_NAMED,
    FORM_RUN,
    FORM_STARTED,
    FORM_PERSISTENT,
    FORMS
};

/* What a case is made of. Kinds are in place in their second half, so that these two count as one:
 * what goes wrong in place depends on a third thing, most of all on the size. */
enum {
    KIND,
    TYPE,
    OP,
    COUNT,
    FORM,
    MEMORY,
    ALIGN,
    GAPS,
    FACTORS
};

static const size_t counts[] = {0, 1, 3, 64, 1000, 100003};
static const int levels[FACTORS] = {2 * KINDS, 17, 14, 6, FORMS, COLL_MEMORIES, COLL_ALIGNS, 2};

struct rank {
    hem_world *world;
    int me;
    int size;
    uint64_t seed;
    uint64_t hash; /**< of everything that all ranks must have received alike */
    char text[160];
};

static hem_coll_kind kind_of(int level) {
    return (hem_coll_kind)(1 + level % KINDS);
}

/* The user's, whose elements are the largest, come last. */
static hem_dtype type_of(int level) {
    return (hem_dtype)((level + 1) % levels[TYPE]);
}

static bool allows(int i, int a, int j, int b) {
    if (i == KIND && j == OP)
        return coll_combines(kind_of(a)) == (b != 0);
    if (i == TYPE && j == OP)
        return b == 0 || coll_supported(type_of(a), (hem_reduction)b);
    if (i == TYPE && j == FORM)
        return type_of(a) || b != FORM_NAMED;
    if (i == KIND && j == GAPS)
        return b == 0 || coll_is_vector(kind_of(a));
    return true;
}

/* Running one case. */

static void run_started(struct rank *r, const hem_coll *coll, uint64_t dice) {
    hem_op *op = NULL;
    bool done = false;

    CHECK_OK(hem_coll_start(r->world, coll, &op));
    CHECK(op != NULL);
    if (dice % 2) {
        int64_t limit = harness_now() + LIMIT;

        while (!done) {
            CHECK(harness_now() < limit);
            CHECK_OK(hem_op_test(op, &done));
            harness_dither(dice += 7);
        }
    }
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_OK(hem_op_free(op));
}

static void call(struct rank *r, const hem_coll *coll, int form) {
    bool nameless = coll->kind == HEM_REDUCE_SCATTERV && coll->displs;

    if (form == FORM_STARTED)
        run_started(r, coll, r->seed + (uint64_t)r->me);
    else if (form == FORM_NAMED && !nameless)
        CHECK_OK(coll_call_by_name(r->world, coll, LIMIT));
    else
        CHECK_OK(hem_coll_run(r->world, coll, LIMIT));
}

static void hash_in(struct rank *r, const coll_buffers *b) {
    const coll_case *c = &b->c;

    if (c->kind == HEM_ALLREDUCE || c->kind == HEM_ALLGATHER || c->kind == HEM_BROADCAST)
        for (size_t i = 0; i < b->recv_bytes; i++)
            r->hash = (r->hash ^ b->recv[i]) * 0x100000001b3;
}

static void run_persistent(struct rank *r, coll_buffers *b) {
    hem_op *op = NULL;

    coll_buffers_fill(b);
    CHECK_OK(hem_coll_plan(r->world, &b->coll, &op));
    for (int round = 0; round < 3; round++) {
        b->c.seed = b->c.seed / 16 * 16 + (uint64_t)round;
        coll_buffers_fill(b);
        CHECK_OK(hem_op_start(op));
        CHECK_OK(hem_op_wait(op, LIMIT));
        coll_buffers_check(b);
        hash_in(r, b);
    }
    CHECK_OK(hem_op_free(op));
}

static void run_case(struct rank *r, const coll_case *c, int form, int memory, int align) {
    coll_buffers b = coll_buffers_make(r->world, c, memory, align);

    snprintf(r->text, sizeof r->text,
             "%s %s %s %zu root %d place %d form %d mem %d align %d gaps %d case",
             coll_kind_name(c->kind), coll_type_name(c->dtype), coll_op_name(c->op), c->count,
             c->root, c->in_place, form, memory, align, c->gaps);
    if (form == FORM_PERSISTENT) {
        run_persistent(r, &b);
    } else {
        coll_buffers_fill(&b);
        call(r, &b.coll, form);
        coll_buffers_check(&b);
        hash_in(r, &b);
    }
    coll_buffers_free(&b);
}

static void run_row(struct rank *r, const cover_row *row, uint64_t number) {
    const int *level = row->level;
    harness_rng rng = harness_rng_of(r->seed, number, 0);
    coll_case c = {
        .kind = kind_of(level[KIND]),
        .dtype = type_of(level[TYPE]),
        .op = (hem_reduction)level[OP],
        .count = counts[level[COUNT]],
        .in_place = level[KIND] >= KINDS,
        .gaps = level[GAPS],
        .size = r->size,
        .seed = harness_random(&rng) / 16 * 16,
    };

    c.root = coll_has_root(c.kind) ? (int)harness_below(&rng, (size_t)r->size) : 0;
    /* A broadcast has one buffer. */
    c.in_place |= c.kind == HEM_BROADCAST;
    harness_step(r->text, number);
    run_case(r, &c, level[FORM], level[MEMORY], level[ALIGN]);
    if (number % 64 == 0)
        harness_same(r->world, r->hash);
}

/* With a sanitizer, many ranks run a third of the rows, others with each seed. */
static uint64_t run_cover(struct rank *r) {
    uint64_t every = harness_sanitized() && r->size > 4 ? 3 : 1;
    cover *c = malloc(sizeof *c);
    cover_row row;
    uint64_t number = 0;

    CHECK(c != NULL);
    cover_begin(c, FACTORS, levels, allows, r->seed);
    for (; cover_next(c, &row); number++)
        if (number % every == 0)
            run_row(r, &row, number);
    free(c);
    return number / every;
}

static bool row_allowed(const cover_row *row) {
    for (int i = 0; i < FACTORS; i++)
        for (int j = i + 1; j < FACTORS; j++)
            if (!allows(i, row->level[i], j, row->level[j]))
                return false;
    return true;
}

/* Everything, but alignments and gaps at random. */
static uint64_t run_product(struct rank *r) {
    uint64_t number = 0;
    size_t product = 1;

    for (int i = 0; i < ALIGN; i++)
        product *= (size_t)levels[i];
    for (size_t index = 0; index < product; index++) {
        cover_row row;
        size_t rest = index;

        for (int i = 0; i < ALIGN; i++) {
            row.level[i] = (int)(rest % (size_t)levels[i]);
            rest /= (size_t)levels[i];
        }
        row.level[ALIGN] = (int)(number % COLL_ALIGNS);
        row.level[GAPS] = number / COLL_ALIGNS % 2 && coll_is_vector(kind_of(row.level[KIND]));
        if (row_allowed(&row))
            run_row(r, &row, number++);
    }
    return number;
}

/*
 * Infinities, NaNs and zeros of both signs: what comes out is the processor's affair, but it is the
 * same on all ranks, every time, from any memory.
 */
static void odd_numbers(struct rank *r) {
    static const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00001, 0xffc00002, 0x7fa00003,
                                   0x80000000, 0x00000000, 0x3f800000, 0x00000001, 0x807fffff};
    static const hem_reduction ops[] = {HEM_SUM, HEM_PROD, HEM_MIN, HEM_MAX};
    size_t n = 5003;
    hem_memory *memory = NULL;
    uint32_t *from = malloc(n * 4 + 64);
    uint32_t *to = malloc(n * 4 + 64);
    uint64_t hash[4] = {0};

    CHECK(from && to);
    CHECK_OK(hem_memory_alloc(r->world, n * 4 + 64, &memory));
    for (int round = 0; round < 16; round++) {
        harness_rng rng = harness_rng_of(r->seed, (uint64_t)r->me, 99);
        char *in = (char *)(round / 4 % 2 ? hem_memory_address(memory) : from) + round % 3;
        char *out = (char *)to + (round + r->me) % 5;
        uint64_t now = 1469598103934665603u;

        for (size_t i = 0; i < n; i++)
            memcpy(in + 4 * i, &odd[harness_below(&rng, 10)], 4);
        harness_step("odd numbers, round", (uint64_t)round);
        CHECK_OK(hem_allreduce(r->world, in, out, n, HEM_F32, ops[round % 4], LIMIT));
        for (size_t i = 0; i < n * 4; i++)
            now = (now ^ (unsigned char)out[i]) * 0x100000001b3;
        harness_same(r->world, now);
        CHECK(!hash[round % 4] || hash[round % 4] == now);
        hash[round % 4] = now;
    }
    CHECK_OK(hem_memory_free(memory));
    free(from);
    free(to);
}

int rank_main(hem_world *world) {
    const char *full = getenv("HEM_TEST_FULL");
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    int64_t start = harness_now();
    uint64_t cases;

    r.seed = harness_seed(world);
    cases = full && *full && *full != '0' ? run_product(&r) : run_cover(&r);
    harness_same(world, r.hash);
    odd_numbers(&r);
    if (r.me == 0)
        printf("%llu cases in %.1f s\n", (unsigned long long)cases,
               (double)(harness_now() - start) * 1e-9);
    harness_close(world, HEM_OK);
    return 0;
}
