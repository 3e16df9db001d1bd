/*
 * Streams of the device see the halos behind hem_exchange_finish_on, whoever has started the run, and
 * wherever it was finished before: by the host, on a stream of the host, on another stream of the device,
 * in a graph. What no stream can wait for is refused.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#include "halo_ring.h"

#define ALL (RING_CELLS + 2)

typedef struct look_args {
    const uint64_t *from;
    uint64_t *to;
} look_args;

DEVICE_KERNEL(look, look_args) {
    hem_group block = hem_block();
    for (uint32_t i = block.rank; i < ALL; i += block.size)
        args->to[i] = args->from[i];
}

/* A ring with a second stream, and what a kernel saw there. */
typedef struct scene {
    ring r;
    device_stream other;
    hem_stream *handle; /* the other's */
    uint64_t *field;
    uint64_t *seen;
    hem_exchange *x;
    uint64_t round;
} scene;

static scene scene_make(hem_world *world) {
    scene s;
    memset(&s, 0, sizeof s);
    s.r = ring_make(world);
    s.other = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, s.other, &s.handle));
    s.field = (uint64_t *)device_alloc(ALL * sizeof *s.field);
    s.seen = (uint64_t *)device_alloc(ALL * sizeof *s.seen);
    s.x = ring_bind(&s.r, s.field, 1, 0);
    return s;
}

static void scene_free(scene *s) {
    CHECK_OK(hem_exchange_status(s->x));
    CHECK_OK(hem_exchange_destroy(s->x));
    CHECK_OK(hem_stream_destroy(s->handle));
    device_stream_destroy(s->other);
    device_free(s->field);
    device_free(s->seen);
    ring_free(&s->r);
}

/* New values; halos are of nobody. Every other rank comes late, so that others have to wait. */
static void fill(scene *s) {
    uint64_t cells[ALL];
    s->round++;
    for (uint64_t i = 0; i < ALL; i++)
        cells[i] = s->round * 1000 + (uint64_t)(s->r.me * RING_CELLS) + i - 1;
    cells[0] = cells[ALL - 1] = 7;
    device_copy(s->field, cells, sizeof cells);
    memset(cells, 0, sizeof cells);
    device_copy(s->seen, cells, sizeof cells);
    if ((s->r.me + (int)s->round) % 2)
        harness_sleep_ms(4);
}

static void look_on(const scene *s, device_stream stream) {
    look_args args;
    args.from = s->field;
    args.to = s->seen;
    device_launch(look, stream, 1, 1, &args);
}

static void check_seen(const scene *s, device_stream stream) {
    uint64_t got[ALL];
    uint64_t n = (uint64_t)(RING_CELLS * s->r.size);
    uint64_t first = (uint64_t)(s->r.me * RING_CELLS);
    device_stream_sync(stream);
    device_copy(got, s->seen, sizeof got);
    for (uint64_t i = 0; i < ALL; i++)
        CHECK_EQ(got[i], s->round * 1000 + (first + n + i - 1) % n);
}

/* The twin of plain_start in tests/rank/halo_stream_test.c. */
static void plain_start(scene *s) {
    fill(s);
    CHECK_OK(hem_exchange_start(s->x, NULL));
    CHECK_OK(hem_exchange_finish_on(s->x, s->r.handle));
    CHECK_OK(hem_exchange_finish_on(s->x, s->handle));
    look_on(s, s->other);
    check_seen(s, s->other);
    device_stream_sync(s->r.stream);
    CHECK_OK(hem_exchange_finish(s->x, LIMIT));
    CHECK_OK(hem_exchange_finish_on(s->x, s->handle)); /* it is over */
}

/* A second finish, on another stream. */
static void two_finishes(scene *s) {
    fill(s);
    CHECK_OK(hem_exchange_start_on(s->x, NULL, s->r.handle));
    CHECK_OK(hem_exchange_finish_on(s->x, s->r.handle));
    CHECK_OK(hem_exchange_finish_on(s->x, s->handle));
    look_on(s, s->other);
    check_seen(s, s->other);
}

/* The run has begun on a stream of the host, where nobody finishes it. */
static void host_stream(scene *s, hem_stream *host) {
    fill(s);
    CHECK_OK(hem_exchange_finish(s->x, LIMIT));
    CHECK_OK(hem_exchange_start_on(s->x, NULL, host));
    CHECK_OK(hem_stream_sync(host, LIMIT));
    CHECK_OK(hem_exchange_finish_on(s->x, s->handle));
    look_on(s, s->other);
    check_seen(s, s->other);
    CHECK_OK(hem_exchange_finish(s->x, LIMIT));
}

static void hold(hem_status status, void *arg) {
    bool *open = (bool *)arg;
    int64_t limit = harness_now() + LIMIT / 2;
    CHECK_OK(status);
    while (!__atomic_load_n(open, __ATOMIC_ACQUIRE) && harness_now() < limit)
        harness_sleep_ms(1);
}

/* It has not even begun there. */
static void held_start(scene *s, hem_stream *host) {
    bool open = false;
    fill(s);
    CHECK_OK(hem_stream_call(host, hold, &open));
    CHECK_OK(hem_exchange_start_on(s->x, NULL, host));
    CHECK_STATUS(hem_exchange_finish_on(s->x, s->handle), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("waits on a stream of the host");
    __atomic_store_n(&open, true, __ATOMIC_RELEASE);
    CHECK_OK(hem_exchange_finish(s->x, LIMIT));
    look_on(s, s->other);
    check_seen(s, s->other);
    CHECK_OK(hem_stream_sync(host, LIMIT));
}

/* Both finishes are part of a graph. */
static void in_graph(scene *s) {
    CHECK_OK(hem_exchange_finish(s->x, LIMIT));
    device_capture_begin(s->r.stream);
    CHECK_OK(hem_exchange_start_on(s->x, NULL, s->r.handle));
    CHECK_OK(hem_exchange_finish_on(s->x, s->r.handle));
    CHECK_OK(hem_exchange_finish_on(s->x, s->handle));
    look_on(s, s->other);
    device_stream_order(s->other, s->r.stream);
    device_graph graph = device_capture_end(s->r.stream);
    for (int i = 0; i < 3; i++) {
        fill(s);
        device_graph_launch(graph, s->r.stream);
        check_seen(s, s->r.stream);
        CHECK_OK(hem_exchange_finish_on(s->x, s->handle)); /* nothing is left to wait for */
    }
    device_graph_destroy(graph);
}

/* A graph cannot wait for a run that is under way outside of it. The neighbours have not begun. */
static void outside(scene *s) {
    if (s->r.size == 1)
        return;
    fill(s);
    if (s->r.me == 0) {
        CHECK_OK(hem_exchange_start(s->x, NULL));
        device_capture_begin(s->other);
        CHECK_STATUS(hem_exchange_finish_on(s->x, s->handle), HEM_ERR_ARG);
        CHECK_SENTENCE("no part of the graph");
        device_graph_destroy(device_capture_end(s->other));
    }
    CHECK_OK(hem_sync(s->r.world, LIMIT));
    if (s->r.me != 0)
        CHECK_OK(hem_exchange_start(s->x, NULL));
    CHECK_OK(hem_exchange_finish_on(s->x, s->handle));
    look_on(s, s->other);
    check_seen(s, s->other);
    CHECK_OK(hem_exchange_finish(s->x, LIMIT));
}

int rank_main(hem_world *world) {
    hem_stream *host = NULL;
    CHECK_OK(hem_device_open(world, NULL));
    CHECK_OK(hem_stream_create(world, &host));
    for (int i = 0; i < harness_rounds(12); i++) {
        scene s = scene_make(world);
        harness_step("scene", (uint64_t)i);
        CHECK_STATUS(hem_exchange_finish_on(s.x, s.handle), HEM_ERR_ARG);
        for (int k = 0; k < 3; k++) {
            plain_start(&s);
            two_finishes(&s);
            host_stream(&s, host);
            held_start(&s, host);
        }
        in_graph(&s);
        outside(&s);
        scene_free(&s);
    }
    CHECK_OK(hem_stream_destroy(host));
    harness_close(world, HEM_OK);
    return 0;
}
