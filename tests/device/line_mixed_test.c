/*
 * Lines whose payloads are in host and in device memory, by turns and at random, of lengths from 0 to
 * some MiB, with metadata that rides along or goes by itself: in open lines and rings, one round after
 * the other and several ahead, with and without a stream. Without an allocator each comes into the kind
 * of memory that it was sent from; an allocator chooses by itself, so that all pairs of kinds are met.
 * What was received stays as it is when later rounds come and when the line is gone, and memory of the
 * library's that is kept is the caller's. A rank that has not opened its device gets all in host memory.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#include "line_kit.h"

#define AHEAD 5

/* An allocator that takes host and device memory by turns. */
typedef struct pool {
    uint64_t turn;
    uint64_t given;
    uint64_t back;
} pool;

static hem_status give(void *arg, int peer, const void *meta, size_t meta_bytes, size_t bytes,
                       hem_line_buffer *buffer_p) {
    pool *p = (pool *)arg;
    (void)peer;
    (void)meta;
    (void)meta_bytes;
    CHECK(bytes > 0);
    bool on_device = p->turn++ % 2 != 0;
    buffer_p->data = on_device ? device_alloc(bytes) : malloc(bytes);
    /* Device memory is known without being named. */
    buffer_p->kind = on_device && p->turn % 4 != 0 ? HEM_MEMORY_DEVICE : HEM_MEMORY_HOST;
    buffer_p->own = on_device ? p : NULL;
    CHECK(buffer_p->data != NULL);
    p->given++;
    return HEM_OK;
}

static void take_back(void *arg, hem_line_buffer *buffer, size_t bytes) {
    pool *p = (pool *)arg;
    CHECK(bytes > 0);
    CHECK_EQ(buffer->kind, buffer->own != NULL ? HEM_MEMORY_DEVICE : HEM_MEMORY_HOST);
    if (buffer->own != NULL)
        device_free(buffer->data);
    else
        free(buffer->data);
    p->back++;
}

static hem_line *make_line(hem_world *world, bool ring, pool *p) {
    hem_line_options options;
    hem_line *line = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ring = ring;
    if (p != NULL) {
        memset(p, 0, sizeof *p);
        options.alloc = give;
        options.release = take_back;
        options.alloc_arg = p;
    }
    CHECK_OK(hem_line_create(world, &options, &line));
    return line;
}

static void check_result(const hem_world *world, bool ring, uint64_t seed, uint64_t round,
                         const hem_line_result *result, bool by_kind) {
    const hem_delivery *sides[2];
    sides[LINE_LEFT] = &result->from_left;
    sides[LINE_RIGHT] = &result->from_right;
    CHECK_EQ(result->round, round);
    for (int s = LINE_LEFT; s <= LINE_RIGHT; s++) {
        line_gift gift = line_check_side(world, ring, seed, round, sides[s], s);
        if (by_kind && gift.present && gift.data_bytes > 0)
            CHECK_EQ(sides[s]->buffer.kind, gift.on_device ? HEM_MEMORY_DEVICE : HEM_MEMORY_HOST);
    }
}

/* One round after the other; the last results are kept until the line is gone. */
static void in_turn(hem_world *world, bool ring, bool own, hem_stream *stream, uint64_t seed) {
    pool p;
    hem_line *line = make_line(world, ring, own ? &p : NULL);
    hem_line_result old;
    uint64_t rounds = (uint64_t)harness_rounds(30);
    memset(&old, 0, sizeof old);
    for (uint64_t i = 1; i <= rounds; i++) {
        line_packet packet;
        hem_line_result result;
        harness_step("round", i);
        line_pack(&packet, world, seed, i);
        packet.round.stream = i % 3 == 0 ? NULL : stream;
        CHECK_OK(hem_line_exchange(line, &packet.round, &result, LIMIT));
        line_unpack(&packet);
        check_result(world, ring, seed, i, &result, !own);
        if (i > 1)
            check_result(world, ring, seed, i - 1, &old, !own);
        hem_line_release(&old);
        old = result;
    }
    CHECK_OK(hem_line_destroy(line));
    check_result(world, ring, seed, rounds, &old, !own);
    hem_line_release(&old);
    if (own)
        CHECK_EQ(p.given, p.back);
}

static void ahead(hem_world *world, bool own, hem_stream *stream, uint64_t seed) {
    pool p;
    hem_line *line = make_line(world, true, own ? &p : NULL);
    line_packet packets[AHEAD];
    hem_op *ops[AHEAD];
    uint64_t rounds = (uint64_t)harness_rounds(25);
    for (uint64_t i = 1; i <= rounds + AHEAD; i++) {
        uint64_t k = i % AHEAD;
        harness_step("ahead", i);
        if (i > AHEAD) {
            hem_line_result result;
            CHECK_OK(hem_op_wait(ops[k], LIMIT));
            CHECK_OK(hem_line_take(ops[k], &result));
            check_result(world, true, seed, i - AHEAD, &result, !own);
            CHECK_OK(hem_op_free(ops[k]));
            check_result(world, true, seed, i - AHEAD, &result, !own);
            hem_line_release(&result);
            line_unpack(&packets[k]);
        }
        if (i > rounds)
            continue;
        line_pack(&packets[k], world, seed, i);
        packets[k].round.stream = i % 2 == 0 ? NULL : stream;
        CHECK_OK(hem_line_start(line, &packets[k].round, &ops[k]));
    }
    CHECK_OK(hem_line_destroy(line));
    if (own)
        CHECK_EQ(p.given, p.back);
}

/* Memory of the library's that stays when the result is released. */
static void keep(hem_world *world) {
    hem_line *line = make_line(world, true, NULL);
    line_gift gift;
    hem_payload payload;
    hem_line_round round;
    hem_line_result result;
    memset(&gift, 0, sizeof gift);
    gift.on_device = true;
    gift.data_bytes = 300000;
    gift.tag = 77;
    memset(&payload, 0, sizeof payload);
    payload.data = line_make_data(&gift);
    payload.data_bytes = gift.data_bytes;
    memset(&round, 0, sizeof round);
    round.struct_size = sizeof round;
    round.to_right = &payload;
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    CHECK_OK(hem_line_destroy(line));
    if (hem_world_size(world) > 1) {
        void *mine = result.from_left.buffer.data;
        CHECK_EQ(result.from_left.buffer.kind, HEM_MEMORY_DEVICE);
        result.from_left.buffer.data = NULL;
        hem_line_release(&result);
        line_check_data(mine, HEM_MEMORY_DEVICE, gift.data_bytes, gift.tag);
        if (device_stands_in())
            device_free(
                mine); /* for CUDA it is cudaFreeAsync that does it, when the process ends */
    }
    line_free_data(&gift, (void *)(uintptr_t)payload.data);
}

/* Rank 0 alone has opened its device: what it gives out of device memory comes into the host's. */
static void half_open(hem_world *world) {
    static const size_t sizes[] = {1, 5000, 300000, 2000000};
    int me = hem_world_rank(world);
    if (me == 0)
        CHECK_OK(hem_device_open(world, NULL));
    hem_line *line = make_line(world, true, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        line_gift gift;
        hem_payload payload;
        hem_line_round round;
        hem_line_result result;
        harness_step("half open", i);
        memset(&gift, 0, sizeof gift);
        gift.on_device = me == 0;
        gift.data_bytes = sizes[i];
        gift.tag = i;
        memset(&payload, 0, sizeof payload);
        payload.data = line_make_data(&gift);
        payload.data_bytes = gift.data_bytes;
        memset(&round, 0, sizeof round);
        round.struct_size = sizeof round;
        round.to_right = &payload;
        CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
        CHECK_EQ(result.from_left.present, hem_world_size(world) > 1);
        if (result.from_left.present) {
            CHECK_EQ(result.from_left.buffer.kind, HEM_MEMORY_HOST);
            CHECK_FILLED(result.from_left.buffer.data, gift.data_bytes, gift.tag);
        }
        hem_line_release(&result);
        line_free_data(&gift, (void *)(uintptr_t)payload.data);
    }
    CHECK_OK(hem_line_destroy(line));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    device_stream native = device_stream_create();
    hem_stream *stream = NULL;
    hem_stream *plain = NULL;
    half_open(world);
    CHECK_OK(hem_stream_cuda(world, native, &stream));
    CHECK_OK(hem_stream_create(world, &plain));
    in_turn(world, false, false, stream, seed);
    in_turn(world, true, false, NULL, seed + 1);
    in_turn(world, false, true, plain, seed + 2);
    in_turn(world, true, true, stream, seed + 3);
    ahead(world, false, stream, seed + 4);
    ahead(world, true, plain, seed + 5);
    keep(world);
    CHECK_OK(hem_progress_start(world));
    ahead(world, false, stream, seed + 6);
    in_turn(world, true, true, stream, seed + 7);
    CHECK_OK(hem_progress_stop(world));
    CHECK_OK(hem_stream_destroy(plain));
    CHECK_OK(hem_stream_destroy(stream));
    device_stream_sync(native);
    device_stream_destroy(native);
    harness_close(world, HEM_OK);
    return 0;
}
