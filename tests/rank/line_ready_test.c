/*
 * A buffer whose earlier work is not done yet is not received into: the stream that still uses it is
 * held back, and until it goes on, the buffer stays as it was, at every length and by every way that
 * data can take; then the data comes, without anybody calling anything else than the wait. A time limit
 * ends the wait, and a buffer that was never received into goes back untouched.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "line_kit.h"

#include <stdatomic.h>

#define OLD 0x5a

typedef struct pool {
    hem_world *world;
    hem_stream *stream;
    hem_event *event;
    atomic_int open; /* lets the stream go on */
    atomic_int read; /* what the stream's work saw of the buffer: 1 all old, 2 not */
    atomic_int given;
    atomic_int back;
    unsigned char *data;
    size_t bytes;
} pool;

/* The earlier work: it reads the buffer as slowly as it likes. */
static void slow_reader(hem_status status, void *arg) {
    pool *p = arg;

    CHECK_EQ(status, HEM_OK);
    while (atomic_load(&p->open) == 0)
        harness_sleep_ms(1);
    int seen = 1;
    for (size_t i = 0; i < p->bytes; i++)
        if (p->data[i] != OLD)
            seen = 2;
    atomic_store(&p->read, seen);
}

static hem_status give(void *arg, int peer, const void *meta, size_t meta_bytes, size_t bytes,
                       hem_line_buffer *buffer_p) {
    pool *p = arg;

    (void)peer;
    (void)meta;
    (void)meta_bytes;
    p->bytes = bytes;
    p->data = malloc(bytes);
    memset(p->data, OLD, bytes);
    CHECK_OK(hem_stream_call(p->stream, slow_reader, p));
    CHECK_OK(hem_event_record(p->event, p->stream));
    buffer_p->data = p->data;
    buffer_p->ready = p->event;
    atomic_fetch_add(&p->given, 1);
    return HEM_OK;
}

static void take_back(void *arg, hem_line_buffer *buffer, size_t bytes) {
    pool *p = arg;

    (void)bytes;
    free(buffer->data);
    atomic_fetch_add(&p->back, 1);
}

static void let_go(void *arg) {
    pool *p = arg;

    harness_sleep_ms(30);
    atomic_store(&p->open, 1);
}

static void set_up(pool *p, hem_world *world, hem_line **line_p) {
    hem_line_options options = {
        .struct_size = sizeof options, .alloc = give, .release = take_back, .alloc_arg = p};

    *p = (pool){.world = world};
    CHECK_OK(hem_stream_create(world, &p->stream));
    CHECK_OK(hem_event_create(world, &p->event));
    CHECK_OK(hem_line_create(world, &options, line_p));
}

static void clean_up(pool *p, hem_line *line) {
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_stream_destroy(p->stream));
    CHECK_OK(hem_event_destroy(p->event));
}

/* Rank 0 gives to rank 1, whose buffer is in use for a while. */
static void held(hem_world *world, size_t bytes) {
    int me = hem_world_rank(world);
    unsigned char *data = malloc(bytes);
    hem_payload payload = {"meta", 4, data, bytes};
    hem_line_round round = {.struct_size = sizeof round, .to_right = me == 0 ? &payload : NULL};
    hem_line_result result;
    harness_thread thread;
    hem_line *line = NULL;
    pool p;

    harness_step("bytes", bytes);
    harness_fill(data, bytes, bytes);
    set_up(&p, world, &line);
    if (me == 1)
        harness_start(&thread, let_go, &p);
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    CHECK_EQ(result.from_left.present, me == 1);
    if (me == 1) {
        /* It ended only after the reader had, and the reader saw nothing of the new data. */
        CHECK_EQ(atomic_load(&p.read), 1);
        CHECK(result.from_left.buffer.ready == p.event);
        CHECK_FILLED(result.from_left.buffer.data, bytes, bytes);
        harness_join(&thread, 1);
    }
    hem_line_release(&result);
    CHECK_EQ(atomic_load(&p.given), me == 1);
    clean_up(&p, line);
    CHECK_EQ(atomic_load(&p.back), me == 1);
    free(data);
}

/* The stream never goes on in time. */
static void late(hem_world *world, size_t bytes) {
    int me = hem_world_rank(world);
    unsigned char *data = calloc(1, bytes);
    hem_payload payload = {NULL, 0, data, bytes};
    hem_line_round round = {.struct_size = sizeof round, .to_right = me == 0 ? &payload : NULL};
    hem_line_result result;
    hem_line *line = NULL;
    pool p;

    set_up(&p, world, &line);
    int64_t began = harness_now();
    hem_status status = hem_line_exchange(line, &round, &result, me == 1 ? HEM_MS(40) : LIMIT);
    if (me == 1) {
        CHECK_EQ(status, HEM_ERR_TIMEOUT);
        CHECK(harness_now() - began < HEM_MS(40) + harness_slack());
    } else {
        while (status == HEM_OK)
            status = hem_line_exchange(line, NULL, &result, LIMIT);
        CHECK_EQ(status, HEM_ERR_REVOKED);
    }
    CHECK_EQ(atomic_load(&p.back), atomic_load(&p.given));
    p.data = NULL;
    p.bytes = 0;
    atomic_store(&p.open, 1);
    clean_up(&p, line);
    free(data);
}

int rank_main(hem_world *world) {
    static const size_t sizes[] = {1, 40, 4000, 5000, 20000, 1000000};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        held(world, sizes[i]);
    late(world, 10);
    late(world, 50000);
    CHECK_OK(hem_progress_start(world));
    held(world, 3000);
    held(world, 300000);
    CHECK_OK(hem_progress_stop(world));
    harness_close(world, HEM_OK);
    return 0;
}
