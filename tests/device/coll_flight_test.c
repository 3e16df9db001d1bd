/*
 * Several collectives on device buffers in flight at a time, of different kinds, on the world and on each half of
 * it, by host-started runs, on streams of the caller's and in graphs, which each rank chooses for itself, in an
 * order that differs between ranks; collectives on host buffers and messages of channels go on meanwhile: none
 * disturbs the other. So do those whose runs follow each other without anybody waiting in between.
 *
 * Collectives of one stream come in one order on all ranks, since they wait for each other. A rank has two
 * streams, three more are lent for what it starts itself, and each collective has one or two blocks: what four
 * ranks have in flight finds queues and room on a GPU (docs/gpu.md).
 *
 * hem-test: ranks=1,2,3,4 modes=processes,threads timeout=120 delayed=3
 */
#include "coll_steps.h"

#include <sched.h>

enum {
    STREAMS = 2,
    HOSTED = 3,     /* that the host starts, at most, and has under way at a time */
    HOST = STREAMS, /* not on a stream of the caller's */
    WHOLE = 6,      /* of all ranks */
    FLYING = 10,    /* the others are of this rank's half */
    RUNS = 3,
    MESSAGES = 3,
    OPS = FLYING + 2 * MESSAGES + HOSTED, /* that the host waits for */
    CROWD = 16
};

/* One collective on device buffers; its twin on host buffers is under way at the same time. */
typedef struct flight {
    coll_kit kit;
    hem_op *op;
    int way; /* a stream, or HOST */
    bool started;
} flight;

/* To the right, from the left. */
typedef struct message {
    unsigned char *out;
    unsigned char *in;
    size_t bytes;
} message;

typedef struct test {
    hem_world *world;
    hem_world *half;
    int rank;
    uint64_t seed;
    harness_rng own; /* this rank's choices */
    device_stream native[STREAMS];
    hem_stream *stream[STREAMS];
    device_graph graph[STREAMS];
    flight flights[FLYING];
    message messages[MESSAGES];
    uint64_t brief; /* plans whose kernels take units, and others */
    uint64_t lengthy;
} test;

/* Planning: all ranks of a world draw alike. */

static void set_case(coll_kit *kit, harness_rng *rng, harness_rng *own, size_t most) {
    static const hem_dtype types[] = {HEM_F32, HEM_I16, HEM_F64, HEM_BF16, HEM_U8, HEM_U64};
    hem_coll_kind kind =
        (hem_coll_kind)(HEM_BROADCAST + (int)harness_below(rng, HEM_ALLTOALLV - HEM_BROADCAST + 1));
    bool combines = kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
                    kind == HEM_REDUCE_SCATTERV;
    hem_dtype dtype = types[harness_below(rng, sizeof types / sizeof types[0])];
    hem_reduction op = harness_below(rng, 3) == 0 ? HEM_MAX : HEM_SUM;
    size_t limit = harness_below(rng, 3);
    size_t count = harness_below(rng, limit == 0 ? 20 : limit == 1 ? most / 10 : most);
    bool in_place = harness_below(rng, 2) != 0;
    coll_kit_set(kit, kind, dtype, combines ? op : (hem_reduction)0, count, in_place,
                 harness_below(own, 32), rng, own);
    kit->coll.blocks = 1 + (uint32_t)harness_below(rng, 2);
}

static void plan_flight(test *t, int i, harness_rng *rng, size_t most) {
    flight *f = &t->flights[i];
    memset(f, 0, sizeof *f);
    f->kit.world = i < WHOLE ? t->world : t->half;
    f->kit.rank = hem_world_rank(f->kit.world);
    f->kit.size = hem_world_size(f->kit.world);
    set_case(&f->kit, rng, &t->own, most);
    hem_coll device = coll_kit_coll(&f->kit, true);
    CHECK_OK(hem_coll_plan(f->kit.world, &device, &f->op));
    if (f->kit.size > 1)
        ++*(coll_form_is_long(f->op) ? &t->lengthy : &t->brief);
}

static void free_flight(flight *f) {
    CHECK_OK(hem_op_free(f->op));
    coll_kit_clear(&f->kit);
}

/* Other numbers than in the last run. */
static void renew(test *t, coll_kit_buffer *b, hem_dtype dtype) {
    if (b->first != NULL)
        coll_kit_fill(b->first, b->bytes, dtype, &t->own);
    coll_kit_reset(b);
}

/* Messages. */

static void start_message(test *t, int i, harness_rng *rng, hem_op **ops) {
    message *m = &t->messages[i];
    m->bytes = harness_below(rng, harness_below(rng, 2) != 0 ? 60 : 60000);
    m->out = (unsigned char *)malloc(m->bytes + 1);
    m->in = (unsigned char *)malloc(m->bytes + 1);
    CHECK(m->out != NULL && m->in != NULL);
    harness_fill(m->out, m->bytes, (uint64_t)t->rank * MESSAGES + (uint64_t)i);
    CHECK_OK(
        hem_send_start(t->world, harness_right(t->world), (uint32_t)i, m->out, m->bytes, &ops[0]));
    CHECK_OK(
        hem_recv_start(t->world, harness_left(t->world), (uint32_t)i, m->in, m->bytes, &ops[1]));
}

static void end_message(test *t, int i) {
    message *m = &t->messages[i];
    CHECK_FILLED(m->in, m->bytes, (uint64_t)harness_left(t->world) * MESSAGES + (uint64_t)i);
    free(m->out);
    free(m->in);
}

/* Starting. */

static void choose_ways(test *t) {
    int hosted = 0;
    for (int i = 0; i < FLYING; i++) {
        flight *f = &t->flights[i];
        f->started = false;
        f->way = (int)harness_below(&t->own, STREAMS + 1);
        if (f->way == HOST && hosted++ >= HOSTED)
            f->way = i % STREAMS;
    }
}

/* All that is on a stream, one behind the other, by the same order on all ranks. */
static void put_on_stream(test *t, int s) {
    for (int i = 0; i < FLYING; i++) {
        flight *f = &t->flights[i];
        if (f->way != s || f->started)
            continue;
        CHECK_OK(hem_op_start_on(f->op, t->stream[s]));
        f->started = true;
    }
}

static void make_graphs(test *t) {
    for (int s = 0; s < STREAMS; s++) {
        t->graph[s] = NULL;
        if (harness_below(&t->own, 3) != 0)
            continue;
        device_capture_begin(t->native[s]);
        put_on_stream(t, s);
        t->graph[s] = device_capture_end(t->native[s]);
        for (int i = 0; i < FLYING; i++)
            if (t->flights[i].way == s)
                t->flights[i].started = false;
    }
}

/* A stream takes its first one that it does not have yet; a graph has all of its stream. */
static void start_one(test *t, int i) {
    int way = t->flights[i].way;
    if (way == HOST) {
        CHECK_OK(hem_op_start(t->flights[i].op));
        t->flights[i].started = true;
        return;
    }
    if (t->graph[way] != NULL) {
        device_graph_launch(t->graph[way], t->native[way]);
        for (int k = 0; k < FLYING; k++)
            t->flights[k].started = t->flights[k].started || t->flights[k].way == way;
        return;
    }
    for (i = 0; t->flights[i].way != way || t->flights[i].started;)
        i++;
    CHECK_OK(hem_op_start_on(t->flights[i].op, t->stream[way]));
    t->flights[i].started = true;
}

static void start_any(test *t) {
    int i = (int)harness_below(&t->own, FLYING);
    for (int k = 0; k < FLYING; k++, i = (i + 1) % FLYING)
        if (!t->flights[i].started) {
            start_one(t, i);
            return;
        }
}

/* A wait moves only its own world on, and these are of two: look at all of them in turn. */
static void end_by_testing(test *t, hem_op *const *ops, size_t count) {
    int64_t limit = harness_now() + LIMIT;
    bool done[OPS];
    size_t left = count;
    CHECK(count <= OPS);
    memset(done, 0, sizeof done);
    for (size_t i = harness_below(&t->own, count); left > 0; i++) {
        bool *one = &done[i % count];
        CHECK(harness_now() < limit);
        if (!*one) {
            CHECK_OK(hem_op_test(ops[i % count], one));
            left -= *one;
        }
        if (!*one)
            sched_yield();
    }
}

/* Everything new before anything begins: nobody makes graphs, or copies what others wait for, while kernels wait. */
static void prepare_run(test *t) {
    choose_ways(t);
    make_graphs(t);
    for (int i = 0; i < FLYING; i++) {
        coll_kit *kit = &t->flights[i].kit;
        renew(t, &kit->send, kit->coll.dtype);
        renew(t, &kit->recv, kit->coll.dtype);
    }
    CHECK_OK(hem_sync(t->world, LIMIT));
}

/* Collectives on host buffers in the order of all ranks, those on the device in this rank's own.
 * @return how many handles there are that are to be freed. */
static size_t start_run(test *t, harness_rng *shared, hem_op **ops) {
    size_t count = 0;
    for (int i = 0; i < FLYING; i++) {
        flight *f = &t->flights[i];
        hem_coll host = coll_kit_coll(&f->kit, false);
        CHECK_OK(hem_coll_start(f->kit.world, &host, &ops[count++]));
        if (i % 3 == 0 && i / 3 < MESSAGES) {
            start_message(t, i / 3, shared, ops + count);
            count += 2;
        }
        start_any(t);
        harness_dither(harness_random(&t->own));
    }
    return count;
}

/* All of them once, in whatever ways this rank takes. */
static void one_run(test *t, harness_rng *shared) {
    hem_op *ops[OPS];
    prepare_run(t);
    size_t handles = start_run(t, shared, ops), count = handles;
    for (int i = 0; i < FLYING; i++)
        if (t->flights[i].way == HOST)
            ops[count++] = t->flights[i].op;
    end_by_testing(t, ops, count);
    for (size_t i = 0; i < handles; i++)
        CHECK_OK(hem_op_free(ops[i]));
    for (int s = 0; s < STREAMS; s++)
        device_stream_sync(t->native[(s + t->rank) % STREAMS]);
}

static void check_run(test *t) {
    for (int i = 0; i < FLYING; i++) {
        flight *f = &t->flights[i];
        harness_step("flight", (uint64_t)i);
        CHECK_OK(hem_op_status(f->op));
        coll_kit_compare(&f->kit.send, "send");
        coll_kit_compare(&f->kit.recv, "recv");
    }
    for (int i = 0; i < MESSAGES; i++)
        end_message(t, i);
    CHECK_OK(hem_sync(t->world, LIMIT));
    for (int s = 0; s < STREAMS; s++)
        device_graph_destroy(t->graph[s]);
}

static void fly(test *t, uint64_t round) {
    harness_rng shared = harness_rng_of(t->seed, round, 1);
    harness_rng halved = harness_rng_of(t->seed, round, 2 + (uint64_t)t->rank % 2);
    for (int i = 0; i < FLYING; i++)
        plan_flight(t, i, i < WHOLE ? &shared : &halved, i < WHOLE ? 30000 : 9000);
    for (int run = 0; run < RUNS; run++) {
        harness_step("in flight, run", round * RUNS + (uint64_t)run);
        one_run(t, &shared);
        check_run(t);
    }
    for (int i = 0; i < FLYING; i++)
        free_flight(&t->flights[i]);
}

/* Runs that follow each other: what is put on a stream is not waited for, so that ranks and streams are many runs
 * apart. Of each half one is on every stream, too, and one is started by the host. */

enum {
    STREAM_PLANS = 3 * STREAMS,
    HOST_PLANS = HOSTED,
    PLANS = STREAM_PLANS + HOST_PLANS
};

/* Words that the host writes and reads while kernels wait for others: pinned, docs/gpu.md says why. */
typedef struct hosted {
    step_plan *plan;
    uint64_t *words;
    uint64_t step;
} hosted;

static void plan_all(test *t, step_plan *plans) {
    static const hem_coll_kind kinds[] = {HEM_ALLREDUCE, HEM_ALLGATHER, HEM_REDUCE_SCATTER,
                                          HEM_ALLTOALL};
    static const uint64_t counts[] = {50, 9000, 300, 700, 4000};
    for (int i = 0; i < PLANS; i++) {
        hem_world *world = i % 3 == 2 ? t->half : t->world;
        hem_coll_kind kind = kinds[i % 4];
        plans[i] = step_plan_make(world, kind, counts[i % 5], i % 2 != 0 && kind != HEM_ALLTOALL,
                                  1 + (uint32_t)i % 2);
    }
}

static void start_hosted(hosted *h) {
    const step_args *args = &h->plan->args;
    h->step++;
    for (uint64_t i = 0; i < args->send_count; i++)
        h->words[i] = step_sent(args, h->step, i);
    device_copy(args->send, h->words, (size_t)args->send_count * 8);
    CHECK_OK(hem_op_start(h->plan->op));
}

static void end_hosted(hosted *h) {
    const step_args *args = &h->plan->args;
    device_copy(h->words, args->recv, (size_t)args->recv_count * 8);
    for (uint64_t i = 0; i < args->recv_count; i++)
        CHECK_EQ(h->words[i], step_wanted(args, h->step, i));
}

/* Plans i, i + STREAMS, ... are on stream i. */
static void run_stream(test *t, step_plan *plans, int s, bool by_graph) {
    if (by_graph) {
        device_graph_launch(t->graph[s], t->native[s]);
        return;
    }
    for (int i = s; i < STREAM_PLANS; i += STREAMS)
        step_plan_run(&plans[i], t->native[s], t->stream[s]);
}

static void run_all_streams(test *t, step_plan *plans) {
    int first = (int)harness_below(&t->own, STREAMS);
    int by = 1 + (int)harness_below(&t->own, STREAMS - 1);
    for (int k = 0; k < STREAMS; k++) {
        run_stream(t, plans, (first + k * by) % STREAMS, harness_below(&t->own, 4) != 0);
        harness_dither(harness_random(&t->own));
    }
}

static void run_hosted(test *t, hosted *h, step_plan *plans) {
    hem_op *ops[HOST_PLANS];
    int first = (int)harness_below(&t->own, HOST_PLANS);
    for (int k = 0; k < HOST_PLANS; k++)
        start_hosted(&h[(first + k) % HOST_PLANS]);
    run_all_streams(t, plans);
    for (int k = 0; k < HOST_PLANS; k++)
        ops[k] = h[k].plan->op;
    end_by_testing(t, ops, HOST_PLANS);
    for (int k = 0; k < HOST_PLANS; k++)
        end_hosted(&h[k]);
}

static void end_all(test *t, step_plan *plans, hosted *h, uint64_t rounds) {
    for (int s = 0; s < STREAMS; s++)
        device_stream_sync(t->native[s]);
    CHECK_OK(hem_sync(t->world, LIMIT));
    for (int s = 0; s < STREAMS; s++)
        device_graph_destroy(t->graph[s]);
    for (int i = 0; i < PLANS; i++) {
        harness_step("plan", (uint64_t)i);
        step_plan_end(&plans[i], i < STREAM_PLANS ? rounds : 0);
    }
    for (int k = 0; k < HOST_PLANS; k++)
        device_host_free(h[k].words);
}

static void persist(test *t) {
    step_plan plans[PLANS];
    hosted h[HOST_PLANS];
    uint64_t rounds = device_replays(200);
    plan_all(t, plans);
    for (int k = 0; k < HOST_PLANS; k++) {
        const step_args *args = &plans[STREAM_PLANS + k].args;
        uint64_t words = args->send_count > args->recv_count ? args->send_count : args->recv_count;
        h[k].plan = &plans[STREAM_PLANS + k];
        h[k].step = 0;
        h[k].words = (uint64_t *)device_host_alloc((size_t)words * 8);
    }
    for (int s = 0; s < STREAMS; s++) {
        device_capture_begin(t->native[s]);
        run_stream(t, plans, s, false);
        t->graph[s] = device_capture_end(t->native[s]);
    }
    CHECK_OK(hem_sync(t->world, LIMIT));
    for (uint64_t round = 0; round < rounds; round++) {
        harness_step("persistent, round", round);
        if (round % 8 == 7)
            run_hosted(t, h, plans);
        else
            run_all_streams(t, plans);
        for (int s = 0; s < STREAMS && round % 40 == 39; s++)
            device_stream_sync(t->native[s]); /* which has a time limit, for busy machines */
    }
    end_all(t, plans, h, rounds);
}

/* Each is planned while kernels of those before are under way, and has a lent stream: more than a GPU has for ranks that
 * are threads, and making may wait for kernels there. */
static void crowd(test *t, uint64_t round) {
    harness_rng shared = harness_rng_of(t->seed, round, 7);
    hem_op *ops[CROWD];
    coll_kit kits[CROWD];
    memset(kits, 0, sizeof kits);
    for (int i = 0; i < CROWD; i++) {
        coll_kit *kit = &kits[i];
        kit->world = t->world;
        kit->rank = t->rank;
        kit->size = hem_world_size(t->world);
        set_case(kit, &shared, &t->own, 300);
        hem_coll host = coll_kit_coll(kit, false), device = coll_kit_coll(kit, true);
        coll_kit_reset(&kit->send);
        coll_kit_reset(&kit->recv);
        CHECK_OK(hem_coll_run(t->world, &host, LIMIT));
        CHECK_OK(hem_coll_start(t->world, &device, &ops[i]));
    }
    for (int i = 0; i < CROWD && round % 2 != 0; i++)
        CHECK_OK(hem_op_wait(ops[(i * 5 + t->rank) % CROWD], LIMIT));
    CHECK_OK(hem_op_wait_all(ops, CROWD, LIMIT));
    for (int i = 0; i < CROWD; i++) {
        harness_step("of a crowd", (uint64_t)i);
        CHECK_OK(hem_op_free(ops[i]));
        coll_kit_compare(&kits[i].send, "send");
        coll_kit_compare(&kits[i].recv, "recv");
        coll_kit_clear(&kits[i]);
    }
}

int rank_main(hem_world *world) {
    test *t = (test *)calloc(1, sizeof *t);
    uint64_t rounds = (uint64_t)harness_rounds(30);
    CHECK(t != NULL);
    t->world = world;
    t->rank = hem_world_rank(world);
    t->seed = harness_seed(world);
    t->own = harness_rng_of(t->seed, 3, (uint64_t)t->rank);
    CHECK_OK(hem_world_split(world, t->rank % 2, -t->rank, &t->half));
    for (int s = 0; s < STREAMS; s++) {
        t->native[s] = device_stream_create();
        CHECK_OK(hem_stream_cuda(world, t->native[s], &t->stream[s]));
    }
    for (uint64_t round = 0; round < rounds; round++)
        fly(t, round);
    CHECK(hem_world_size(world) == 1 || (t->brief > 0 && t->lengthy > 0));
    persist(t);
    for (uint64_t round = 0; round < rounds / 4 && device_stands_in(); round++)
        crowd(t, round);
    for (int s = 0; s < STREAMS; s++) {
        CHECK_OK(hem_stream_destroy(t->stream[s]));
        device_stream_destroy(t->native[s]);
    }
    CHECK_OK(hem_world_close(t->half));
    free(t);
    harness_close(world, HEM_OK);
    return 0;
}
