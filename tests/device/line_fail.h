/* What goes wrong on lines with device memory; each leaves nothing behind. */
#ifndef HEM_TESTS_DEVICE_LINE_FAIL_H
#define HEM_TESTS_DEVICE_LINE_FAIL_H

#include "line_kit.h"

#define FAIL_BYTES ((size_t)5 << 20)

/** How an allocator misbehaves. */
typedef enum fail_way {
    FAIL_REFUSES,
    FAIL_NOTHING,  /* gives NULL */
    FAIL_WRONG,    /* gives host memory for device memory */
    FAIL_CAPTURED, /* gives a stream that is being captured */
    FAIL_WAYS
} fail_way;

typedef struct fail_pool {
    fail_way way;
    hem_stream *stream;
    int given;
    int back;
} fail_pool;

static inline hem_status fail_give(void *arg, int peer, const void *meta, size_t meta_bytes,
                                   size_t bytes, hem_line_buffer *buffer_p) {
    fail_pool *p = (fail_pool *)arg;
    (void)peer;
    (void)meta;
    (void)meta_bytes;
    if (p->way == FAIL_REFUSES)
        return HEM_ERR_MEMORY;
    if (p->way == FAIL_NOTHING)
        return HEM_OK;
    buffer_p->data = malloc(bytes);
    CHECK(buffer_p->data != NULL);
    if (p->way == FAIL_WRONG)
        buffer_p->kind = HEM_MEMORY_DEVICE;
    else
        buffer_p->stream = p->stream;
    p->given++;
    return HEM_OK;
}

static inline void fail_take(void *arg, hem_line_buffer *buffer, size_t bytes) {
    fail_pool *p = (fail_pool *)arg;
    (void)bytes;
    free(buffer->data);
    p->back++;
}

static inline hem_line *fail_line(hem_world *world, fail_pool *p) {
    hem_line_options options;
    hem_line *line = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ring = true;
    if (p != NULL) {
        options.alloc = fail_give;
        options.release = fail_take;
        options.alloc_arg = p;
    }
    CHECK_OK(hem_line_create(world, &options, &line));
    return line;
}

static inline hem_payload fail_payload(void *data, size_t bytes) {
    hem_payload payload;
    memset(&payload, 0, sizeof payload);
    payload.data = data;
    payload.data_bytes = bytes;
    return payload;
}

static inline hem_line_round fail_round(const hem_payload *payload, hem_stream *stream) {
    hem_line_round round;
    memset(&round, 0, sizeof round);
    round.struct_size = sizeof round;
    round.to_left = payload;
    round.to_right = payload;
    round.stream = stream;
    return round;
}

/** Until the line is broken. @return how. */
static inline hem_status fail_until(hem_line *line, const hem_line_round *round) {
    hem_status status = HEM_OK;
    while (status == HEM_OK) {
        hem_line_result result;
        status = hem_line_exchange(line, round, &result, LIMIT);
        if (status == HEM_OK)
            hem_line_release(&result);
    }
    return status;
}

/** Rank 1's allocator is no good: all hear of it. */
static inline void fail_refusal(hem_world *world, fail_way way, void *data, size_t bytes) {
    device_stream native = device_stream_create();
    fail_pool p;
    memset(&p, 0, sizeof p);
    p.way = hem_world_rank(world) == 1 ? way : FAIL_CAPTURED; /* with a stream that is good */
    CHECK_OK(hem_stream_cuda(world, native, &p.stream));
    if (way == FAIL_CAPTURED && hem_world_rank(world) == 1)
        device_capture_begin(native);
    hem_line *line = fail_line(world, &p);
    hem_payload payload = fail_payload(data, bytes);
    hem_line_round round = fail_round(&payload, NULL);
    hem_status status = fail_until(line, &round);
    CHECK(status == HEM_ERR_MEMORY || status == HEM_ERR_REVOKED);
    if (hem_world_rank(world) == 1)
        CHECK_EQ(status, HEM_ERR_MEMORY);
    if (hem_world_rank(world) == 1 && way == FAIL_CAPTURED)
        CHECK_SENTENCE("captured");
    CHECK_STATUS(hem_line_exchange(line, NULL, NULL, LIMIT), HEM_ERR_ARG);
    CHECK_OK(hem_line_destroy(line));
    CHECK_EQ(p.given, p.back);
    if (way == FAIL_CAPTURED && hem_world_rank(world) == 1)
        device_graph_destroy(device_capture_end(native));
    CHECK_OK(hem_stream_destroy(p.stream));
    device_stream_sync(native);
    device_stream_destroy(native);
}

/** A stream that is being captured says nothing about when: nothing is harmed. */
static inline void fail_captured(hem_world *world, void *data) {
    device_stream native = device_stream_create();
    hem_stream *stream = NULL;
    hem_line *line = fail_line(world, NULL);
    hem_line_result result;
    hem_op *op = NULL;
    hem_payload payload = fail_payload(data, 1000);
    CHECK_OK(hem_stream_cuda(world, native, &stream));
    hem_line_round round = fail_round(&payload, stream);
    device_capture_begin(native);
    CHECK_STATUS(hem_line_start(line, &round, &op), HEM_ERR_ARG);
    CHECK_SENTENCE("captured");
    CHECK_STATUS(hem_line_exchange(line, &round, &result, LIMIT), HEM_ERR_ARG);
    device_graph_destroy(device_capture_end(native));
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    hem_line_release(&result);
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_stream_destroy(stream));
    device_stream_sync(native);
    device_stream_destroy(native);
}

/** One rank gives its line up when `ms` milliseconds of a long round have gone. */
static inline void fail_destroyed(hem_world *world, int who, int ms, void *data) {
    hem_line *line = fail_line(world, NULL);
    hem_payload payload = fail_payload(data, FAIL_BYTES);
    hem_line_round round = fail_round(&payload, NULL);
    if (hem_world_rank(world) == who) {
        hem_op *ops[3];
        for (int i = 0; i < 3; i++)
            CHECK_OK(hem_line_start(line, &round, &ops[i]));
        harness_sleep_ms(ms);
        CHECK_OK(hem_progress(world));
        CHECK_OK(hem_line_destroy(line));
        for (int i = 0; i < 3; i++) { /* results that came are dropped */
            bool done = false;
            hem_status status = hem_op_test(ops[i], &done);
            CHECK(status == HEM_ERR_REVOKED || (status == HEM_OK && done));
            CHECK_OK(hem_op_free(ops[i]));
        }
        return;
    }
    CHECK_EQ(fail_until(line, &round), HEM_ERR_REVOKED);
    CHECK_OK(hem_line_destroy(line));
}

/** A started round is given up under way. If it was done before that, the line is, with the next. */
static inline void fail_cancelled(hem_world *world, int who, int ms, void *data) {
    hem_line *line = fail_line(world, NULL);
    hem_payload payload = fail_payload(data, FAIL_BYTES);
    hem_line_round round = fail_round(&payload, NULL);
    if (hem_world_rank(world) == who) {
        hem_op *op = NULL;
        CHECK_OK(hem_line_start(line, &round, &op));
        harness_sleep_ms(ms);
        CHECK_OK(hem_progress(world));
        CHECK_OK(hem_op_free(op));
        hem_status status = hem_line_start(line, &round, &op);
        CHECK(status == HEM_ERR_REVOKED || status == HEM_OK);
        CHECK_OK(hem_line_destroy(line));
        if (status == HEM_OK)
            CHECK_OK(hem_op_free(op));
        return;
    }
    CHECK_EQ(fail_until(line, &round), HEM_ERR_REVOKED);
    CHECK_OK(hem_line_destroy(line));
}

/** Results are dropped, taken or not. */
static inline void fail_dropped(hem_world *world, void *data) {
    hem_line *line = fail_line(world, NULL);
    hem_payload payload = fail_payload(data, 300000);
    hem_line_round round = fail_round(&payload, NULL);
    for (int i = 0; i < 4; i++) {
        hem_op *op = NULL;
        CHECK_OK(hem_line_start(line, &round, &op));
        CHECK_OK(hem_op_wait(op, LIMIT));
        CHECK_OK(hem_op_free(op));
    }
    CHECK_OK(hem_line_destroy(line));
}

/** A world is closed while results of its line are there: the host's part of them stays. */
static inline void fail_closed(hem_world *world, void *data) {
    hem_world *copy = NULL;
    hem_line_result result;
    hem_op *op = NULL;
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_line *line = fail_line(copy, NULL);
    hem_payload payload = fail_payload(data, 300000);
    hem_line_round round = fail_round(&payload, NULL);
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    CHECK_OK(hem_line_start(line, &round, &op));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_OK(hem_world_close(copy));
    hem_line_release(&result);
    CHECK_OK(hem_op_free(op));
    CHECK_OK(hem_line_destroy(line));
}

/** The world is revoked while long rounds are under way. */
static inline void fail_revoked(hem_world *world, void *data) {
    hem_world *copy = NULL;
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_line *line = fail_line(copy, NULL);
    hem_payload payload = fail_payload(data, FAIL_BYTES);
    hem_line_round round = fail_round(&payload, NULL);
    hem_op *op = NULL;
    if (hem_world_rank(world) == 0) {
        CHECK_OK(hem_line_start(line, &round, &op));
        CHECK_OK(hem_progress(copy));
        CHECK_OK(hem_world_revoke(copy));
        hem_status status = hem_op_wait(op, LIMIT);
        CHECK(status == HEM_ERR_REVOKED || status == HEM_OK);
        CHECK_OK(hem_op_free(op));
    } else {
        CHECK_EQ(fail_until(line, &round), HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_line_destroy(line));
    hem_status closed = hem_world_close(copy);
    CHECK(closed == HEM_OK || closed == HEM_ERR_REVOKED);
}

static inline void fail_all(hem_world *world) {
    void *data = device_alloc(FAIL_BYTES);
    void *plain = calloc(1, FAIL_BYTES);
    CHECK(plain != NULL);
    for (int way = 0; way < FAIL_WAYS; way++) {
        harness_step("refusal", (uint64_t)way);
        fail_refusal(world, (fail_way)way, data, 100);
        fail_refusal(world, (fail_way)way, data, 1000000);
        fail_refusal(world, (fail_way)way, plain, 100);
        fail_refusal(world, (fail_way)way, plain, 1000000);
    }
    harness_step("captured", 0);
    fail_captured(world, data);
    for (int i = 0; i < 6; i++) {
        harness_step("given up", (uint64_t)i);
        fail_destroyed(world, i % hem_world_size(world), i / 2, data);
        fail_cancelled(world, i % hem_world_size(world), i / 2, data);
    }
    harness_step("dropped", 0);
    fail_dropped(world, data);
    harness_step("closed", 0);
    fail_closed(world, data);
    harness_step("revoked", 0);
    fail_revoked(world, data);
    device_free(data);
    free(plain);
}

#endif
