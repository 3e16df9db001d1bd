/*
 * Eight streams, events recorded and waited for at random, by the hundred thousand: each function
 * runs after all that was put on its stream before, and after all that came before the events that
 * its stream was told to wait for, and sees what those have written. Several threads that put work
 * on one stream, and wait for it, lose nothing and miss no wake-up, however long everybody sleeps.
 *
 * hem-test: ranks=1,2 modes=processes,threads timeout=120
 */
#include "harness.h"

#include <stdatomic.h>

enum {
    STREAMS = 8,
    EVENTS = 6,
    THREADS = 3
};

struct graph;

/* One function: the `number`th of its stream, and how many of each stream must come before. */
struct step {
    struct graph *graph;
    uint32_t stream;
    uint32_t number;
    uint32_t needs[STREAMS];
    uint64_t dice;
};

struct graph {
    hem_stream *streams[STREAMS];
    hem_event *events[EVENTS];
    uint32_t after[STREAMS][STREAMS];      /* what comes before all that is put on a stream now */
    uint32_t event_after[EVENTS][STREAMS]; /* the same of an event */
    uint64_t *marks[STREAMS];              /* plain memory: written by each function */
    struct step *steps;
    atomic_uint wrong;
};

static uint64_t mark_of(uint32_t stream, uint32_t number) {
    return (uint64_t)number * 1000003 + stream + 1;
}

static void step(hem_status status, void *arg) {
    struct step *s = arg;
    struct graph *g = s->graph;
    bool good = status == HEM_OK && g->marks[s->stream][s->number] == 0;

    if (s->dice % 64 == 0)
        harness_dither(s->dice >> 8);
    for (uint32_t i = 0; i < STREAMS; i++) {
        uint32_t n = s->needs[i];
        good = good && (n == 0 || g->marks[i][n - 1] == mark_of(i, n - 1));
    }
    g->marks[s->stream][s->number] = mark_of(s->stream, s->number);
    if (!good)
        atomic_fetch_add(&g->wrong, 1);
}

static void merge(uint32_t *to, const uint32_t *from) {
    for (int i = 0; i < STREAMS; i++)
        if (to[i] < from[i])
            to[i] = from[i];
}

static void random_action(struct graph *g, harness_rng *rng, struct step *next) {
    uint32_t s = (uint32_t)harness_below(rng, STREAMS);
    size_t e = harness_below(rng, EVENTS);

    switch (harness_below(rng, 8)) {
    case 0:
        CHECK_OK(hem_event_record(g->events[e], g->streams[s]));
        memcpy(g->event_after[e], g->after[s], sizeof g->after[s]);
        break;
    case 1:
        CHECK_OK(hem_stream_wait(g->streams[s], g->events[e]));
        merge(g->after[s], g->event_after[e]);
        break;
    default:
        break;
    }
    *next = (struct step){.graph = g, .stream = s, .dice = harness_random(rng)};
    next->number = g->after[s][s]++;
    memcpy(next->needs, g->after[s], sizeof next->needs);
    next->needs[s] = next->number;
    CHECK_OK(hem_stream_call(g->streams[s], step, next));
}

static void random_graph(hem_world *world, harness_rng *rng, int count) {
    struct graph *g = calloc(1, sizeof *g);
    uint32_t total = 0;

    CHECK(g != NULL);
    g->steps = calloc((size_t)count, sizeof *g->steps);
    CHECK(g->steps != NULL);
    for (int i = 0; i < STREAMS; i++) {
        CHECK_OK(hem_stream_create(world, &g->streams[i]));
        g->marks[i] = calloc((size_t)count, sizeof(uint64_t));
        CHECK(g->marks[i] != NULL);
    }
    for (int i = 0; i < EVENTS; i++)
        CHECK_OK(hem_event_create(world, &g->events[i]));
    for (int i = 0; i < count; i++) {
        harness_step("action", (uint64_t)i);
        random_action(g, rng, &g->steps[i]);
        /* Let them run empty and fall asleep now and then. */
        if (harness_below(rng, 2000) == 0)
            harness_sleep_ms((int)harness_below(rng, 3));
        if (harness_below(rng, 500) == 0)
            CHECK_OK(hem_stream_sync(g->streams[harness_below(rng, STREAMS)], LIMIT));
        if (harness_below(rng, 500) == 0)
            CHECK_OK(hem_event_sync(g->events[harness_below(rng, EVENTS)], LIMIT));
    }
    for (int i = 0; i < EVENTS; i++)
        CHECK_OK(hem_event_destroy(g->events[i]));
    /* Functions look at the marks of other streams: all must have ended before. */
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(hem_stream_destroy(g->streams[i]));
    for (int i = 0; i < STREAMS; i++) {
        total += g->after[i][i];
        for (uint32_t k = 0; k < g->after[i][i]; k++)
            CHECK_EQ(g->marks[i][k], mark_of((uint32_t)i, k));
        free(g->marks[i]);
    }
    CHECK_EQ(total, count);
    CHECK_EQ(g->wrong, 0);
    free(g->steps);
    free(g);
}

struct crowd {
    hem_world *world;
    hem_stream *stream;
    uint64_t seed;
    int rounds;
    uint64_t sum; /* plain: only functions of one stream touch it */
    atomic_ullong given;
    atomic_uint next;
};

struct gift {
    struct crowd *crowd;
    uint64_t value;
    uint64_t seen;
};

static void take(hem_status status, void *arg) {
    struct gift *gift = arg;

    gift->seen = status == HEM_OK ? gift->value : 0;
    gift->crowd->sum += gift->value;
}

/* Put some things on the stream, perhaps sleep, wait for them. */
static void give(void *arg) {
    struct crowd *c = arg;
    harness_rng rng = harness_rng_of(c->seed, atomic_fetch_add(&c->next, 1), 7);
    struct gift gifts[4];

    for (int i = 0; i < c->rounds; i++) {
        size_t count = 1 + harness_below(&rng, 4);
        for (size_t k = 0; k < count; k++) {
            gifts[k] = (struct gift){.crowd = c, .value = 1 + harness_below(&rng, 1000)};
            atomic_fetch_add(&c->given, gifts[k].value);
            CHECK_OK(hem_stream_call(c->stream, take, &gifts[k]));
        }
        CHECK_OK(hem_stream_sync(c->stream, LIMIT));
        for (size_t k = 0; k < count; k++)
            CHECK_EQ(gifts[k].seen, gifts[k].value);
        harness_dither(harness_random(&rng));
        if (harness_below(&rng, 20) == 0)
            harness_sleep_ms(1);
    }
}

static void crowd(hem_world *world, uint64_t seed, int rounds) {
    struct crowd c = {.world = world, .seed = seed, .rounds = rounds};
    harness_thread threads[THREADS];

    CHECK_OK(hem_stream_create(world, &c.stream));
    for (int i = 0; i < THREADS; i++)
        harness_start(&threads[i], give, &c);
    harness_join(threads, THREADS);
    CHECK_OK(hem_stream_destroy(c.stream));
    CHECK_EQ(c.sum, c.given);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    harness_rng rng = harness_rng_of(seed, (uint64_t)hem_world_rank(world), 0);

    random_graph(world, &rng, harness_rounds(100000));
    for (int i = 0; i < 20; i++)
        random_graph(world, &rng, harness_rounds(500));
    crowd(world, seed + (uint64_t)hem_world_rank(world), harness_rounds(1000));
    harness_close(world, HEM_OK);
    return 0;
}
