/*
 * Lines and the order of streams. A stream on the sending side that is held back: the round starts
 * without the host waiting, other lines go on, and what the stream then writes is what arrives. A stream
 * on the receiving side that still reads the buffer that the allocator gave: nothing lands in it before,
 * whether a stream of the device or an event of a host stream says so, and whatever the data came from. A
 * time limit ends that, and the buffer goes back untouched; so does a round that is given up. Memory
 * that is released while the stream still reads it stays until then.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "line_gate.h"

/* By one warp alone, so that its verdict is one. */
DEVICE_KERNEL(gate_read, gate_args) {
    hem_group block = hem_block();
    uint64_t wrong = 0;
    while (hemd_load64_relaxed(&args->word->open) == 0)
        hemd_relax();
    hemd_acquire(&args->word->open, false);
    if (block.rank != 0)
        return;
    for (uint64_t i = 0; i < args->bytes; i++)
        wrong += args->data[i] != GATE_BYTE(args->tag, i);
    hemd_store64_release(&args->word->seen, wrong == 0 ? 1 : 2, false);
}

typedef struct bench {
    hem_world *world;
    hem_window *window; /* for barriers */
    int me;
    device_stream native;
    hem_stream *stream; /* the same */
    hem_stream *plain;  /* of the host */
    hem_event *event;   /* on that */
    gate *word;
} bench;

/* Memory that is still in use when it is given out. */
typedef struct lender {
    bench *b;
    bool on_device;
    bool by_event;
    unsigned char *data;
    size_t bytes;
    int given;
    int back;
} lender;

static void read_on_host(hem_status status, void *arg) {
    lender *l = (lender *)arg;
    CHECK_EQ(status, HEM_OK);
    while (gate_get(&l->b->word->open) == 0)
        harness_sleep_ms(1);
    unsigned char *plain = (unsigned char *)malloc(l->bytes);
    CHECK(plain != NULL);
    device_copy(plain, l->data, l->bytes);
    uint64_t seen = 1;
    for (size_t i = 0; i < l->bytes; i++)
        if (plain[i] != GATE_OLD)
            seen = 2;
    free(plain);
    gate_set(&l->b->word->seen, seen);
}

static hem_status lend(void *arg, int peer, const void *meta, size_t meta_bytes, size_t bytes,
                       hem_line_buffer *buffer_p) {
    lender *l = (lender *)arg;
    (void)peer;
    (void)meta;
    (void)meta_bytes;
    CHECK_EQ(bytes, l->bytes);
    if (l->by_event) {
        CHECK_OK(hem_stream_call(l->b->plain, read_on_host, l));
        CHECK_OK(hem_event_record(l->b->event, l->b->plain));
        buffer_p->ready = l->b->event;
    } else {
        gate_args args = gate_args_of(l->b->word, l->data, bytes, 0);
        device_launch(gate_read, l->b->native, 1, 1, &args);
        buffer_p->stream = l->b->stream;
    }
    buffer_p->data = l->data;
    buffer_p->kind = l->on_device ? HEM_MEMORY_DEVICE : HEM_MEMORY_HOST;
    l->given++;
    return HEM_OK;
}

static void lend_back(void *arg, hem_line_buffer *buffer, size_t bytes) {
    lender *l = (lender *)arg;
    CHECK(buffer->data == l->data);
    CHECK_EQ(bytes, l->bytes);
    l->back++;
}

static hem_line *make_line(bench *b, lender *l) {
    hem_line_options options;
    hem_line *line = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    if (l != NULL) {
        options.alloc = lend;
        options.release = lend_back;
        options.alloc_arg = l;
    }
    CHECK_OK(hem_line_create(b->world, &options, &line));
    return line;
}

static void shut(bench *b) {
    gate_set(&b->word->seen, 0);
    gate_set(&b->word->open, 0);
}

static hem_line_round to_right(const hem_payload *payload, hem_stream *stream) {
    hem_line_round round;
    memset(&round, 0, sizeof round);
    round.struct_size = sizeof round;
    round.to_right = payload;
    round.stream = stream;
    return round;
}

static hem_payload payload_of(const void *data, size_t bytes) {
    hem_payload payload;
    memset(&payload, 0, sizeof payload);
    payload.meta = "meta";
    payload.meta_bytes = 4;
    payload.data = data;
    payload.data_bytes = bytes;
    return payload;
}

static void fill_on_host(hem_status status, void *arg) {
    gate_args *args = (gate_args *)arg;
    CHECK_EQ(status, HEM_OK);
    while (gate_get(&args->word->open) == 0)
        harness_sleep_ms(1);
    for (uint64_t i = 0; i < args->bytes; i++)
        args->data[i] = GATE_BYTE(args->tag, i);
}

/* Rank 0's stream is held back with what fills the payload, on the device or on the host. */
static void send_held(bench *b, hem_line *line, hem_line *other, size_t bytes, bool on_device,
                      bool on_host) {
    void *data = gate_memory(on_device, bytes);
    gate_args args = gate_args_of(b->word, data, bytes, bytes + 3);
    hem_payload payload = payload_of(data, bytes);
    hem_line_round round = to_right(&payload, on_host ? b->plain : b->stream);
    hem_line_result result;
    hem_op *op = NULL;
    bool done = true;
    harness_step("send held", bytes);
    harness_barrier(b->window); /* nobody allocates while kernels are held */
    shut(b);
    if (b->me != 0) {
        round.to_right = NULL;
        round.stream = NULL;
    } else if (on_host) {
        CHECK_OK(hem_stream_call(b->plain, fill_on_host, &args));
    } else {
        device_launch(gate_fill, b->native, 1, 2, &args);
    }
    int64_t before = harness_now();
    CHECK_OK(hem_line_start(line, &round, &op));
    CHECK(harness_now() - before < LIMIT / 4); /* it is held for ever if the host waits for it */
    for (int i = 0; i < 3; i++) {              /* meanwhile other lines go on */
        CHECK_OK(hem_line_exchange(other, NULL, &result, LIMIT));
        hem_line_release(&result);
    }
    if (b->me == 0) {
        harness_sleep_ms(10);
        CHECK_OK(hem_op_test(op, &done));
        CHECK(!done);
        gate_set(&b->word->open, 1);
    }
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_OK(hem_line_take(op, &result));
    CHECK_EQ(result.from_left.present, b->me == 1);
    if (b->me == 1)
        gate_check(result.from_left.buffer.data, result.from_left.buffer.kind, bytes, bytes + 3);
    hem_line_release(&result);
    CHECK_OK(hem_op_free(op));
    device_stream_sync(b->native);
    CHECK_OK(hem_stream_sync(b->plain, LIMIT));
    gate_free(on_device, data);
}

static void let_go(void *arg) {
    harness_sleep_ms(20);
    gate_set(&((bench *)arg)->word->open, 1);
}

/* Rank 1's buffer is in use for a while. */
static void recv_held(bench *b, size_t bytes, bool from_device, bool on_device, bool by_event) {
    lender l;
    void *data = gate_memory(from_device, bytes);
    gate_args args = gate_args_of(b->word, data, bytes, bytes + 5);
    hem_payload payload = payload_of(data, bytes);
    hem_line_round round = to_right(b->me == 0 ? &payload : NULL, NULL);
    hem_line_result result;
    harness_thread thread;
    harness_step("receive held", bytes);
    memset(&l, 0, sizeof l);
    l.b = b;
    l.bytes = bytes;
    l.on_device = on_device;
    l.by_event = by_event;
    l.data = (unsigned char *)gate_memory(on_device, bytes);
    hem_line *line = make_line(b, &l);
    if (b->me == 0) {
        gate_set(&b->word->open, 1);
        device_launch(gate_fill, b->native, 1, 2, &args);
        device_stream_sync(b->native);
    }
    harness_barrier(b->window);
    shut(b);
    if (b->me == 1)
        harness_start(&thread, let_go, b);
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    if (b->me == 1) {
        CHECK_EQ(gate_get(&b->word->seen), 1); /* all of it was old, and it is over */
        gate_check(result.from_left.buffer.data, result.from_left.buffer.kind, bytes, bytes + 5);
        harness_join(&thread, 1);
    }
    hem_line_release(&result);
    CHECK_OK(hem_line_destroy(line));
    CHECK_EQ(l.given, b->me == 1);
    CHECK_EQ(l.back, b->me == 1);
    device_stream_sync(b->native);
    CHECK_OK(hem_stream_sync(b->plain, LIMIT));
    gate_free(from_device, data);
    gate_free(on_device, l.data);
}

/* The stream does not go on in time. */
static void recv_late(bench *b, size_t bytes) {
    lender l;
    void *data = device_alloc(bytes);
    hem_payload payload = payload_of(data, bytes);
    hem_line_round round = to_right(b->me == 0 ? &payload : NULL, NULL);
    hem_line_result result;
    harness_step("late", bytes);
    memset(&l, 0, sizeof l);
    l.b = b;
    l.bytes = bytes;
    l.on_device = true;
    l.data = (unsigned char *)gate_memory(true, bytes);
    hem_line *line = make_line(b, &l);
    harness_barrier(b->window);
    shut(b);
    int64_t began = harness_now();
    hem_status status = hem_line_exchange(line, &round, &result, b->me == 1 ? HEM_MS(500) : LIMIT);
    if (b->me == 1) {
        CHECK_EQ(status, HEM_ERR_TIMEOUT);
        CHECK(harness_now() - began < LIMIT / 4);
        CHECK_EQ(l.given, 1);
    }
    while (status == HEM_OK) {
        hem_line_release(&result);
        status = hem_line_exchange(line, NULL, &result, LIMIT);
    }
    CHECK(status == HEM_ERR_REVOKED || b->me == 1);
    CHECK_EQ(l.back, l.given);
    CHECK_OK(hem_line_destroy(line));
    gate_check(l.data, HEM_MEMORY_DEVICE, bytes, 0);
    gate_set(&b->word->open, 1);
    device_stream_sync(b->native);
    device_free(data);
    device_free(l.data);
}

/* A round whose payload is not ready is given up, or its line is; then the stream goes on. */
static void give_up(bench *b, size_t bytes, bool destroy) {
    void *data = gate_memory(true, bytes);
    gate_args args = gate_args_of(b->word, data, bytes, 9);
    hem_payload payload = payload_of(data, bytes);
    hem_line_round round = to_right(&payload, b->stream);
    hem_line *line = make_line(b, NULL);
    hem_line_result result;
    hem_op *op = NULL;
    harness_step("given up", bytes);
    harness_barrier(b->window);
    shut(b);
    if (b->me == 0) {
        device_launch(gate_fill, b->native, 1, 1, &args);
        CHECK_OK(hem_line_start(line, &round, &op));
        harness_sleep_ms(5);
        if (destroy)
            CHECK_OK(hem_line_destroy(line));
        CHECK_OK(hem_op_free(op));
        if (!destroy)
            CHECK_OK(hem_line_destroy(line));
        CHECK(!device_stream_done(b->native));
        gate_set(&b->word->open, 1);
    } else {
        hem_status status = HEM_OK;
        while (status == HEM_OK) {
            status = hem_line_exchange(line, NULL, &result, LIMIT);
            if (status == HEM_OK)
                hem_line_release(&result);
        }
        CHECK_EQ(status, HEM_ERR_REVOKED);
        CHECK_OK(hem_line_destroy(line));
    }
    device_stream_sync(b->native);
    device_free(data);
}

/* What was put on the round's stream before the release still finds the data. */
static void release_early(bench *b, size_t bytes) {
    void *data = gate_memory(true, bytes);
    gate_args args = gate_args_of(b->word, data, bytes, bytes + 1);
    hem_payload payload = payload_of(data, bytes);
    hem_line *line = make_line(b, NULL);
    hem_line_round round = to_right(&payload, b->stream);
    harness_step("release early", bytes);
    harness_barrier(b->window);
    gate_set(&b->word->open, 1);
    gate_set(&b->word->seen, 0);
    device_launch(gate_fill, b->native, 1, 2, &args);
    for (int i = 0; i < 4; i++) {
        hem_line_result result;
        CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
        if (b->me > 0) {
            CHECK_EQ(result.from_left.buffer.kind, HEM_MEMORY_DEVICE);
            shut(b);
            gate_args reads = gate_args_of(b->word, result.from_left.buffer.data, bytes, bytes + 1);
            device_launch(gate_read, b->native, 1, 1, &reads);
        }
        hem_line_release(&result);
        if (b->me > 0) {
            harness_sleep_ms(2);
            gate_set(&b->word->open, 1);
            device_stream_sync(b->native);
            CHECK_EQ(gate_get(&b->word->seen), 1);
        }
    }
    CHECK_OK(hem_line_destroy(line));
    device_stream_sync(b->native);
    device_free(data);
}

static void all(bench *b) {
    static const size_t sizes[] = {1, 5000, 262144, 1000000};
    hem_line *line = make_line(b, NULL);
    hem_line *other = make_line(b, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        send_held(b, line, other, sizes[i], true, false);
        send_held(b, line, other, sizes[i], false, false);
        send_held(b, line, other, sizes[i], false, true);
        recv_held(b, sizes[i], true, true, false);
        recv_held(b, sizes[i], false, true, false);
        recv_held(b, sizes[i], true, false, false);
        recv_held(b, sizes[i], true, true, true);
        recv_held(b, sizes[i], false, true, true);
        release_early(b, sizes[i]);
    }
    recv_late(b, 10);
    recv_late(b, 700000);
    give_up(b, 10, false);
    give_up(b, 700000, false);
    give_up(b, 700000, true);
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_line_destroy(other));
}

int rank_main(hem_world *world) {
    bench b;
    memset(&b, 0, sizeof b);
    b.world = world;
    b.me = hem_world_rank(world);
    b.native = device_stream_create();
    b.word = gate_make();
    b.window = harness_window(world, 64);
    CHECK_OK(hem_stream_cuda(world, b.native, &b.stream));
    CHECK_OK(hem_stream_create(world, &b.plain));
    CHECK_OK(hem_event_create(world, &b.event));
    all(&b);
    CHECK_OK(hem_progress_start(world));
    all(&b);
    CHECK_OK(hem_progress_stop(world));
    CHECK_OK(hem_event_destroy(b.event));
    CHECK_OK(hem_stream_destroy(b.plain));
    CHECK_OK(hem_stream_destroy(b.stream));
    device_stream_destroy(b.native);
    device_host_free(b.word);
    harness_destroy(b.window);
    harness_close(world, HEM_OK);
    return 0;
}
