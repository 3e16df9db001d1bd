/*
 * Exchanges on streams of the device: the host never waits; halos are written where the stream is, not
 * before; start and finish on different streams; whole steps captured into graphs and replayed, ten
 * thousand times on a GPU, mixed with eager runs, other combinations of fields and reverse runs; eight
 * exchanges in flight; what cannot be captured is refused, and nothing is harmed by that. A run happens
 * although its exchange is given up as soon as it is on the stream.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#include "halo_ring.h"

/* One step of a rule by which a wrong halo is seen at once: every cell becomes a mix of three. */
typedef struct step_args {
    uint64_t *from;
    uint64_t *to;
    uint64_t spins; /* of each thread before it begins, so that others overtake if they can */
} step_args;

#define MIX(a, b, c) (((a)*3 + (b)*5 + (c)*7 + 1) * 0x9e3779b97f4a7c15ull)

DEVICE_KERNEL(step, step_args) {
    hem_group block = hem_block();
    uint64_t start = hemd_now_ns();
    while (hemd_now_ns() - start < args->spins)
        hemd_relax();
    for (uint32_t i = 1 + block.rank; i <= RING_CELLS; i += block.size)
        args->to[i] = MIX(args->from[i - 1], args->from[i], args->from[i + 1]);
}

static void launch_step(const ring *r, uint64_t *from, uint64_t *to, uint64_t spins) {
    step_args args;
    args.from = from;
    args.to = to;
    args.spins = spins;
    device_launch(step, r->stream, 1, 2, &args);
}

static void exchange_on(const ring *r, hem_exchange *x, const hem_exchange_how *how) {
    CHECK_OK(hem_exchange_start_on(x, how, r->handle));
    CHECK_OK(hem_exchange_finish_on(x, r->handle));
}

/* What the whole ring holds after `steps` steps; this rank's cells are compared. */
static void check_steps(const ring *r, const uint64_t *memory, uint64_t seed, int steps) {
    size_t n = (size_t)RING_CELLS * (size_t)r->size;
    uint64_t *now = (uint64_t *)malloc(n * sizeof *now);
    uint64_t *next = (uint64_t *)malloc(n * sizeof *next);
    uint64_t got[RING_CELLS + 2];
    for (size_t i = 0; i < n; i++)
        now[i] = seed + i;
    for (int s = 0; s < steps; s++) {
        uint64_t *swap = now;
        for (size_t i = 0; i < n; i++)
            next[i] = MIX(now[(i + n - 1) % n], now[i], now[(i + 1) % n]);
        now = next;
        next = swap;
    }
    device_copy(got, memory, sizeof got);
    for (size_t i = 0; i < RING_CELLS; i++)
        CHECK_EQ(got[i + 1], now[(size_t)r->me * RING_CELLS + i]);
    free(now);
    free(next);
}

static void set_cells(const ring *r, uint64_t *memory, uint64_t seed) {
    uint64_t cells[RING_CELLS + 2];
    for (size_t i = 0; i < RING_CELLS + 2; i++)
        cells[i] = seed + (uint64_t)r->me * RING_CELLS + i - 1;
    cells[0] = cells[RING_CELLS + 1] = 0xdead;
    device_copy(memory, cells, sizeof cells);
}

/* Two fields take turns; graphs of two steps, eager steps in between. */
static void graphs(hem_world *world) {
    ring r = ring_make(world);
    uint64_t *memory = (uint64_t *)device_alloc(2 * (RING_CELLS + 2) * sizeof *memory);
    uint64_t *a = memory;
    uint64_t *b = memory + RING_CELLS + 2;
    hem_exchange *x = ring_bind(&r, memory, 2, 0);
    hem_exchange_how of_a;
    hem_exchange_how of_b;
    memset(&of_a, 0, sizeof of_a);
    of_a.struct_size = sizeof of_a;
    of_b = of_a;
    of_a.fields = 1;
    of_b.fields = 2;
    set_cells(&r, a, 5);
    set_cells(&r, b, 0);

    /* The first use of a `how` makes its tables: not in a capture. */
    device_capture_begin(r.stream);
    CHECK_STATUS(hem_exchange_start_on(x, &of_a, r.handle), HEM_ERR_ARG);
    CHECK_SENTENCE("captured");
    device_graph_destroy(device_capture_end(r.stream));

    int steps = 0;
    CHECK_OK(hem_exchange_prepare(x, &of_a));
    CHECK_OK(hem_exchange_prepare(x, &of_b));
    CHECK_OK(hem_exchange_prepare(x, &of_b));
    device_capture_begin(r.stream);
    exchange_on(&r, x, &of_a);
    launch_step(&r, a, b, 0);
    exchange_on(&r, x, &of_b);
    launch_step(&r, b, a, 0);
    device_graph graph = device_capture_end(r.stream);
    int rounds = (int)(device_replays(120) + 2) / 3;
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 3; k++) {
            device_graph_launch(graph, r.stream);
            steps += 2;
        }
        exchange_on(&r, x, NULL); /* both, once more: nothing changes */
        if (i % 4 == 0) {
            device_stream_sync(r.stream);
            CHECK_OK(hem_exchange_run(x, &of_a, LIMIT));
        }
        exchange_on(&r, x, &of_a);
        launch_step(&r, a, b, (uint64_t)(i % 3) * 20000);
        exchange_on(&r, x, &of_b);
        launch_step(&r, b, a, 0);
        steps += 2;
    }
    CHECK_OK(hem_exchange_finish(x, LIMIT));
    device_stream_sync(r.stream);
    CHECK_OK(hem_exchange_status(x));
    check_steps(&r, a, 5, steps);
    device_graph_destroy(graph);
    CHECK_OK(hem_exchange_destroy(x));
    device_free(memory);
    ring_free(&r);
}

#define SLOW_NS 30000000

/* A slow reader of the old halo is not overtaken, and the host does not wait for it. */
static void slow_reader(hem_world *world) {
    ring r = ring_make(world);
    uint64_t *memory = (uint64_t *)device_alloc(2 * (RING_CELLS + 2) * sizeof *memory);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    set_cells(&r, memory, 11);
    exchange_on(&r, x, NULL);
    for (int i = 0; i < harness_rounds(6); i++) {
        int64_t before = harness_now();
        launch_step(&r, memory, memory + RING_CELLS + 2, SLOW_NS); /* reads the halos, slowly */
        exchange_on(&r, x, NULL);
        exchange_on(&r, x, NULL);
        bool done = device_stream_done(r.stream);
        CHECK(!done || harness_now() - before >= SLOW_NS); /* this thread may have had to wait */
        CHECK(harness_now() - before < HEM_SEC(1) / 40 + harness_slack());
        device_stream_sync(r.stream);
        check_steps(&r, memory + RING_CELLS + 2, 11, 1);
    }
    CHECK_OK(hem_exchange_destroy(x));
    device_free(memory);
    ring_free(&r);
}

/* Starts on one stream, finishes on another, several exchanges at a time, in another order. */
static void many(hem_world *world) {
    ring r = ring_make(world);
    device_stream other = device_stream_create();
    hem_stream *handle = NULL;
    uint64_t *memory = (uint64_t *)device_alloc(RING_MOST * (RING_CELLS + 2) * sizeof *memory);
    hem_exchange *x[RING_MOST];
    CHECK_OK(hem_stream_cuda(world, other, &handle));
    for (int k = 0; k < RING_MOST; k++) {
        x[k] = ring_bind(&r, memory + (size_t)k * (RING_CELLS + 2), 1, 0);
        CHECK_STATUS(hem_exchange_finish_on(x[k], handle), HEM_ERR_ARG);
    }
    for (uint64_t round = 0; round < (uint64_t)harness_rounds(20); round++) {
        uint64_t got[RING_CELLS + 2];
        for (int k = 0; k < RING_MOST; k++)
            set_cells(&r, memory + (size_t)k * (RING_CELLS + 2), 1000 * (uint64_t)k + round);
        for (int k = 0; k < RING_MOST; k++)
            CHECK_OK(hem_exchange_start_on(x[k], NULL, r.handle));
        for (int k = RING_MOST - 1; k >= 0; k--)
            CHECK_OK(hem_exchange_finish_on(x[(k + 3) % RING_MOST], handle));
        device_stream_sync(other);
        for (int k = 0; k < RING_MOST; k++) {
            uint64_t n = (uint64_t)(RING_CELLS * r.size);
            uint64_t first = 1000 * (uint64_t)k + round;
            device_copy(got, memory + (size_t)k * (RING_CELLS + 2), sizeof got);
            CHECK_EQ(got[0], first + ((uint64_t)(r.me * RING_CELLS) + n - 1) % n);
            CHECK_EQ(got[RING_CELLS + 1], first + (uint64_t)((r.me + 1) * RING_CELLS) % n);
        }
    }
    for (int k = 0; k < RING_MOST; k++)
        CHECK_OK(hem_exchange_destroy(x[k]));
    CHECK_OK(hem_stream_destroy(handle));
    device_stream_destroy(other);
    device_free(memory);
    ring_free(&r);
}

/* Nothing is asked for, everything is given up at once; the run happens all the same. */
static void dropped(hem_world *world, uint64_t seed) {
    ring r = ring_make(world);
    device_stream native[2] = {r.stream, device_stream_create()};
    hem_stream *handles[2] = {NULL, NULL};
    uint64_t *memory = (uint64_t *)device_alloc(4 * (RING_CELLS + 2) * sizeof *memory);
    uint64_t *field = memory + 2 * (RING_CELLS + 2);
    hem_exchange *x = ring_bind(&r, field, 1, 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_stream_cuda(world, native[i], &handles[i]));
    set_cells(&r, field, seed);
    launch_step(&r, memory, memory + RING_CELLS + 2, SLOW_NS / 10 * (seed % 3));
    CHECK_OK(hem_exchange_start_on(x, NULL, handles[0]));
    CHECK_OK(hem_exchange_finish_on(x, handles[seed % 2]));
    CHECK_OK(hem_exchange_destroy(x));
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_stream_destroy(handles[i]));
    device_stream_sync(native[0]);
    device_stream_sync(native[1]);
    launch_step(&r, field, field + RING_CELLS + 2, 0);
    device_stream_sync(r.stream);
    check_steps(&r, field + RING_CELLS + 2, seed, 1);
    device_stream_destroy(native[1]);
    device_free(memory);
    ring_free(&r);
}

/* What is refused. */
static void refusals(hem_world *world) {
    ring r = ring_make(world);
    uint64_t *memory = (uint64_t *)device_alloc(2 * (RING_CELLS + 2) * sizeof *memory);
    uint64_t *plain = (uint64_t *)calloc(RING_CELLS + 2, sizeof *plain);
    hem_exchange *of_host = ring_bind(&r, plain, 1, 0);
    hem_exchange *x = ring_bind(&r, memory, 1, 0);
    CHECK_STATUS(hem_exchange_start_on(of_host, NULL, r.handle), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_exchange_finish_on(of_host, r.handle), HEM_ERR_UNSUPPORTED);
    CHECK_OK(hem_exchange_status(of_host));
    /* A run that is open on a stream is under way for the host. */
    CHECK_OK(hem_exchange_start_on(x, NULL, r.handle));
    CHECK_STATUS(hem_exchange_start(x, NULL), HEM_ERR_ARG);
    CHECK_OK(hem_exchange_finish(x, LIMIT));
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    /* Two starts: the first is finished in between. */
    CHECK_OK(hem_exchange_start_on(x, NULL, r.handle));
    CHECK_OK(hem_exchange_start_on(x, NULL, r.handle));
    CHECK_OK(hem_exchange_finish_on(x, r.handle));
    CHECK_OK(hem_exchange_finish_on(x, r.handle)); /* there is no more to finish */
    CHECK_OK(hem_exchange_finish(x, LIMIT));
    CHECK_OK(hem_exchange_status(x));
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_exchange_destroy(of_host));
    free(plain);
    device_free(memory);
    ring_free(&r);
}

int rank_main(hem_world *world) {
    CHECK_OK(hem_device_open(world, NULL));
    harness_step("graphs", 0);
    graphs(world);
    harness_step("slow reader", 0);
    slow_reader(world);
    harness_step("many", 0);
    many(world);
    for (uint64_t i = 0; i < (uint64_t)harness_rounds(12); i++) {
        harness_step("dropped", i);
        dropped(world, i);
    }
    harness_step("refusals", 0);
    refusals(world);
    harness_close(world, HEM_OK);
    return 0;
}
